# SPDX-License-Identifier: MIT
"""Results that nobody has thought of: what clients get is what label_model.py says, a second
mcpvisor changes nothing of it, and the counters agree."""
import collections
import json
import random

import pytest

import label_cases as cases
import label_model
from label_cases import OURS

E = {"message": "boom", "path": ["a", 1], "extensions": {"code": "C"}}
NOT_THERE = object()
DATA = [NOT_THERE, None, {}, {"a": None}, {"a": {"x": None}}, {"a": []}, {"a": [None]}, [1], [],
        "x", 0, {"__typename": "Q", "a": None}, {"a": 0}, {"a": False, "b": {}}, {"a": {"b": "\u00e9"}},
        *[{"a": 1, "b": None}] * 5]
ERRORS = [NOT_THERE, None, [], "text", {}, [1], [{"code": 1}], [{"message": None}], [E, E],
          [{"message": "x", "k": [1]}], *[[E]] * 7, [{"message": "\u00fc", "errorType": "T"}]]
MORE = [{}, {}, {}, {}, {"extensions": {}}, {"extensions": None}, {"extensions": "x"},
        {"status": 200}, {"hasNext": True}, {"_warning": cases.sentence()}, {"_warning": 7},
        {"incremental": [{"data": {"z": 1}, "errors": [E]}]}, {"incremental": [{"items": [None]}]},
        {"completed": [{"errors": [E, E]}]}]
AROUND = ["%s"] * 8 + ["\n  %s\n", "\ufeff%s", "```json\n%s\n```", "```\n%s\n```\n",
                       "````JSON\r\n%s\r\n````", "Here: %s", "%s done", "[%s]", "[%s,1]"]
OTHERS = ["", "  \n", 'the "errors" in prose', "Partial result: 3 rows of errors", '"errors"']
MEDIA = '{"type":"image","data":"AA==","mimeType":"image/png"}'
FUTURE = '{"type":"x-future","extra":["errors"]}'
TAKES = {"nothing": {}, "file": {"File-Path": {"type": "string"}},
         "document": {"query": {"type": "string"}, "variables": {}}}
BOTH = {"data": {}, "errors": {}}
# An outputSchema, and where a member may be added: at the top, in an object or a string that is
# its "result".
SCHEMAS = [
    (None, 1, 1, 1), ({}, 1, 1, 1), ({"properties": BOTH}, 1, 1, 1),
    ({"properties": BOTH, "additionalProperties": False}, 0, 0, 0),
    ({"$ref": "#/$defs/R"}, 0, 0, 0),
    ({"properties": {"result": {"type": "string"}}}, 1, 0, 1), ({"maxProperties": 9}, 0, 1, 1),
    ({"properties": {"result": {"type": "string", "maxLength": 9}}}, 1, 0, 0),
    ({"properties": {"result": {"type": "object"}}}, 1, 1, 0),
    ({"properties": {"result": {"additionalProperties": False}}}, 1, 0, 1),
    ({"properties": {"_warning": {"type": "number"}}}, 0, 1, 1),
    ({"properties": {"_warning": {"type": "string"}}}, 1, 1, 1)]
FORMS = ["%s", '{"result":%s}', '{"result":"%s"}']  # in that order
ORDER = ["content", "structuredContent", "isError", "_meta", "resultType"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def value(self):
        members = {"data": self.r.choice(DATA), "errors": self.r.choice(ERRORS),
                   **self.r.choice(MORE)}
        members = [(k, v) for k, v in members.items() if v is not NOT_THERE]
        self.r.shuffle(members)
        text = json.dumps(dict(members), ensure_ascii=self.r.random() < .5,
                          indent=self.r.choice([None, None, 2]))
        if members and self.r.random() < .05:
            text = text[:-1] + ',"data":null,"data":1}'
        return text.replace('"errors"', '"\\u0065rrors"') if self.r.random() < .03 else text

    def block(self):
        if self.r.random() < .1:
            return self.r.choice([{"raw": MEDIA, "media": True}, {"raw": FUTURE}])
        text = self.r.choice(AROUND) % self.value()
        return {"text": self.r.choice(OTHERS) if self.r.random() < .15 else text,
                "ascii": self.r.random() < .5}

    def tool(self, form):
        schema, *is_open = self.r.choice(SCHEMAS)
        takes = self.r.choice(["nothing", "nothing", "file", "document"])
        definition = {"inputSchema": {"type": "object", "properties": TAKES[takes]}}
        if schema is not None:
            definition["outputSchema"] = {"type": "object", **schema}
        evident = takes == "document" or bool(schema) and schema.get("properties") == BOTH
        return definition, {"evident": evident, "vetoed": takes == "file" and not evident,
                            "open": bool(is_open[form])}

    def result(self):
        structured, form = None, self.r.randrange(3)
        blocks = [self.block() for _ in range(self.r.choice([0, 1, 1, 1, 2, 3]))]
        if self.r.random() < .5:
            text = self.value().replace("\n", " ")
            structured = {"text": text, "form": form, "value": label_model.parse(text)}
        return {"blocks": blocks, "structured": structured, "form": form,
                "flag": self.r.choice([None] * 9 + ["false", "null", "true", '"true"']),
                "meta": self.r.choice([None] * 5 + [
                    "{}", '{"k":1.0}', '{ "k" : 2 }', '{"%sgraphql":{}}' % OURS]),
                "type": self.r.choice([None] * 9 + ['"complete"', '"task"']),
                "order": self.r.sample(ORDER, len(ORDER))}


# -- the bytes of a result, with and without labels ----------------------------------------


def inside(text, ascii_only):
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def warned(text, put, ascii_only=None):
    """text with the warning behind the { at an offset; ascii_only: within a string."""
    is_string = ascii_only is not None
    if put is None:
        return inside(text, ascii_only) if is_string else text
    n, at = put
    at = text.index("{", at) + 1
    warning = '"_warning":"%s",' % cases.sentence(n)
    if not is_string:
        return text[:at] + warning + text[at:]
    return (inside(text[:at], ascii_only) + warning.replace('"', '\\"')
            + inside(text[at:], ascii_only))


def raw_block(block, put=None):
    if "raw" in block:
        return block["raw"]
    return '{"type":"text","text":"%s"}' % warned(block["text"], put, block["ascii"])


def added(r, edits, got):
    """The block that is put behind the others; of a failure its words are of the product."""
    if edits["add"] is None:
        return []
    if edits["add"] == "sentence":
        return [cases.block(cases.sentence(edits["n"]))]
    last = json.loads(got)["content"][-1]["text"]
    if edits["add"] == "failure":
        assert last.startswith("GraphQL request failed: %d error(s), no data." % edits["n"]), got
        return [cases.block(last)]
    s = r["structured"]
    mirror = FORMS[s["form"]] % warned(s["text"], (edits["n"], 0), of_string(s))
    return [cases.block(mirror)]


def of_string(s):
    return True if s["form"] == 2 else None


def render(r, edits=None, got=None):
    inline, more = (edits["inline"], added(r, edits, got)) if edits else ({}, [])
    s, meta, flag = r["structured"], r["meta"], r["flag"]
    ours = edits and '"%sgraphql":{"outcome":"%s","errors":%d}' % (
        OURS, edits["outcome"], edits["n"])
    is_failed = bool(edits) and edits["outcome"] == "error"
    if ours and meta is not None:
        meta = "{" + ours + ("," if meta != "{}" else "") + meta[1:]
    members = {
        "content": "[%s]" % ",".join(
            [raw_block(b, inline.get(i)) for i, b in enumerate(r["blocks"])] + more),
        "structuredContent": s and FORMS[s["form"]] % warned(
            s["text"], inline.get("s"), of_string(s)),
        "isError": "true" if is_failed and flag else flag, "_meta": meta, "resultType": r["type"]}
    parts = ['"%s":%s' % (m, members[m]) for m in r["order"] if members[m] is not None]
    parts += ['"isError":true'] if is_failed and not flag else []
    parts += ['"_meta":{%s}' % ours] if ours and r["meta"] is None else []
    return "{%s}" % ",".join(parts)


# -- the runs ----------------------------------------------------------------------------

OPTIONS = [{"graphql": m, "deep": d, "meta": a} for m, d, a in [
    ("auto", False, False), ("on", False, False), ("auto", True, False), ("on", True, True),
    ("off", False, False)]]


def conf_of(o):
    return {"graphql": o["graphql"], "graphql_survival": "deep" if o["deep"] else "shallow",
            "graphql_annotate": "meta" if o["meta"] else "full"}


def ask_all(serve_conf, tools, raws, options):
    up = cases.upstream({n: (tools[n], raws[n], None) for n in raws})
    mv = serve_conf(alpha=up, per={"alpha": options}, log_level="info")
    mv.check_schema = False
    c = mv.legacy()
    wire = c.wire()
    got = {n: c.call("alpha__" + n, {}, wire=wire).span("result").decode() for n in raws}
    return got, mv.upstream_status("alpha")["calls"]["labels"]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_random_results(serve_conf, options):
    maker = Maker(str(options))
    results, tools, facts, raws = {}, {}, {}, {}
    for i in range(250):
        n = "t%d" % i
        results[n] = maker.result()
        tools[n], facts[n] = maker.tool(results[n]["form"])
        raws[n] = render(results[n])
    got, counted = ask_all(serve_conf, tools, raws, conf_of(options))
    words, changed = collections.Counter(), {}
    for n, r in results.items():
        word, edits = label_model.expect(r, raws[n], options, facts[n])
        words[word] += 1
        want = render(r, edits, got[n])
        assert got[n] == want, "\n".join(["", word, json.dumps(tools[n]), raws[n], want, got[n]])
        if edits:
            changed[n] = got[n]
    assert {k: v for k, v in counted.items() if v} == dict(words)
    assert bool(changed) == (options["graphql"] != "off")
    assert not changed or {"partial", "error", "clean", "none", "already"} <= set(words)
    # Whatever the second one is told to do.
    for other in [{"graphql": "on"}, {"fail_if": ["text:."]}] if changed else []:
        assert ask_all(serve_conf, tools, changed, other)[0] == changed
