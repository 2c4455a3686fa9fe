# SPDX-License-Identifier: MIT
"""What becomes of a result, worked out from trees: says the same as the product in another
way, so that the two can be compared on results that nobody has thought of."""
import json
import re

KNOWN = {"data", "errors", "extensions", "hasNext", "pending", "incremental", "completed",
         "_warning"}
TWICE = "\0twice"  # among the members of an object that has data or errors twice
SPACE = " \t\r\n"
HIT = ("partial", "failed")


def parse(text):
    def members(pairs):
        keys = [k for k, _ in pairs]
        twice = any(keys.count(k) > 1 for k in ("data", "errors"))
        return {**dict(pairs), **({TWICE: True} if twice else {})}

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, object_pairs_hook=members, parse_constant=refuse)


# -- one value ---------------------------------------------------------------------------


def has_leaf(v):
    if isinstance(v, dict):
        return any(has_leaf(x) for k, x in v.items() if k != "__typename")
    if isinstance(v, list):
        return v == [] or any(map(has_leaf, v))
    return v is not None


def has_data(data, deep):
    if isinstance(data, dict):
        members = [x for k, x in data.items() if k != "__typename"]
    else:
        members = data if isinstance(data, list) else []
    return any(has_leaf(x) if deep else x is not None for x in members)


def objects_of(v, member):
    found = v.get(member)
    return [x for x in found if isinstance(x, dict)] if isinstance(found, list) else []


def survives(v, deep):
    return has_data(v.get("data"), deep) or any(
        has_data(i.get(k), deep) for i in objects_of(v, "incremental") for k in ("data", "items"))


def outcome(v, n, deep):
    return ("partial" if survives(v, deep) else "failed"), n


def judge_on(v, deep):
    if isinstance(v, list):
        each = [judge_on(x, deep) if isinstance(x, dict) else ("nothing", 0) for x in v]
        words, n = {w for w, _ in each}, sum(k for _, k in each)
        if not v or not words <= {"clean", *HIT}:
            return "nothing", 0
        return ("clean" if n == 0 else "failed" if words == {"failed"} else "partial"), n
    if TWICE in v or not {"data", "errors"} & set(v):
        return "nothing", 0
    errors = v.get("errors")
    if errors is not None and not isinstance(errors, list):
        return "malformed", 0
    n = len(errors or []) + sum(
        len(i["errors"]) for m in ("incremental", "completed") for i in objects_of(v, m)
        if isinstance(i.get("errors"), list))
    return outcome(v, n, deep) if n else ("clean", 0)


def is_well_formed(errors):
    return isinstance(errors, list) and all(
        isinstance(e, dict) and isinstance(e.get("message"), str) for e in errors)


def judge_auto(v, deep, tool):
    if not isinstance(v, dict) or TWICE in v:
        return "nothing", 0
    errors, only_known = v.get("errors"), set(v) <= KNOWN
    if errors in (None, []):
        return ("clean" if only_known and isinstance(v.get("data"), dict) else "nothing"), 0
    if not is_well_formed(errors):
        return "nothing", 0
    if not only_known or not all(isinstance(v.get(k) or {}, dict) and v.get(k) not in ("", [], 0)
                                 for k in ("extensions", "data")):
        near = "data" in v or set(v) <= {"errors", "extensions"}
        return ("suspect" if near else "nothing"), 0
    if tool["vetoed"] if "data" in v else not tool["evident"]:
        return "suspect", 0
    return outcome(v, len(errors), deep)


def judge(v, options, tool):
    """(word, number of errors)"""
    if options["graphql"] == "on":
        return judge_on(v, options["deep"]) if isinstance(v, (dict, list)) else ("nothing", 0)
    return judge_auto(v, options["deep"], tool)


# -- where values are --------------------------------------------------------------------

FENCE = re.compile(r"[ \t\r\n]*(`{3,})[ \t]*(?:json|JSON)?[ \t]*\r?\n(.*)\r?\n[ \t]*(`{3,})"
                   r"[ \t\r\n]*", re.S)


def bare(text, at, is_on):
    if text.startswith("\ufeff"):
        text, at = text[1:], at + 1
    at += len(text) - len(text.lstrip(SPACE))
    text = text.strip(SPACE)
    if text[:1] not in (("{", "[") if is_on else ("{",)):
        return None
    try:
        return parse(text), at
    except ValueError:
        return None


def value_of(text, is_on):
    """(value, its offset) of a text that is nothing but JSON, or a fence around it."""
    fenced = FENCE.fullmatch(text)
    if fenced and len(fenced[3]) >= len(fenced[1]):
        return bare(fenced[2], fenced.start(2), is_on)
    return bare(text, 0, is_on)


# -- all of a result ---------------------------------------------------------------------


def gate(r, raw, options):
    """Why it is not looked at."""
    checks = [(options["graphql"] == "off", "off"), (r["type"] == '"task"', "not_complete"),
              (r["flag"] == "true", "upstream_error"), ("errors" not in raw, "none"),
              (r["flag"] not in (None, "false", "null"), "malformed"),
              (r["meta"] is not None and "/graphql" in r["meta"], "already")]
    return next((word for holds, word in checks if holds), None)


def candidates(r, options, tool):
    """[place ("s" or the number of a block), value, offset, word, errors]"""
    found = [] if r["structured"] is None else [("s", r["structured"]["value"], 0)]
    for i, block in enumerate(r["blocks"]):
        at = value_of(block["text"], options["graphql"] == "on") if "text" in block else None
        found += [(i, *at)] if at else []
    return [(*c, *judge(c[1], options, tool)) for c in found]


def combine(r, found):
    words = {c[3] for c in found}
    has_media = any("media" in b for b in r["blocks"])
    if "failed" in words and not words & {"partial", "clean"} and not has_media:
        return "error"
    if words & set(HIT):
        return "partial"
    return next((w for w in ("clean", "suspect", "malformed") if w in words), "none")


def edits_of_partial(r, hits, is_open):
    """{"inline": {place: (errors, offset)}, "add": None, "sentence" or "mirror"}"""
    is_inline = hits[0][0] != "s" or is_open
    inline = {c[0]: (c[4], c[2]) for c in hits if is_inline and isinstance(c[1], dict)
              and "_warning" not in c[1]}
    texts = [b["text"] for b in r["blocks"] if "text" in b]
    is_said = any(t.startswith("Partial result: ") for t in texts) or any(
        c[0] != "s" and (c[0] in inline or "_warning" in c[1]) for c in hits)
    is_usable = len(texts) < len(r["blocks"]) or any(t.strip(SPACE) for t in texts)
    add = "sentence" if is_usable else "mirror"
    if is_said or (add == "mirror" and ("s" in inline or "_warning" in hits[0][1])):
        add = None
    return {"inline": inline, "add": add}


def expect(r, raw, options, tool):
    """(outcome, edits or None)"""
    word = gate(r, raw, options)
    if word:
        return word, None
    found = candidates(r, options, tool)
    word, hits = combine(r, found), [c for c in found if c[3] in HIT]
    if word not in ("partial", "error"):
        return word, None
    edits = {"inline": {}, "add": None}
    if word == "error" and not any(c[0] != "s" and c[3] == "failed" for c in found):
        edits["add"] = "failure"
    elif word == "partial" and not options["meta"]:
        edits = edits_of_partial(r, hits, tool["open"])
    return word, {**edits, "outcome": word, "n": hits[0][4]}
