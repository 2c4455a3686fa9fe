# SPDX-License-Identifier: MIT
"""The three forms of a log line, taken apart without mercy."""
import json
import re

from mcp import wait_for

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
LEVELS = "error|warning|notice|info|debug"
# A bare value may have spaces where no KEY= follows them: names of upstreams do.
VALUE = r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
TEXT = re.compile(r"(%s) (%s) ([a-z_.-]+): (.+)" % (STAMP, LEVELS))
PAIR = re.compile(r'([A-Za-z0-9_.-]+)=(%s|[^ "=\\]*)(?= |$)' % VALUE)
FIELDS = ("client", "method", "upstream", "tool", "end", "reason", "ok", "is_err", "err_src",
          "ans", "ms", "in", "out", "added", "trace")
# Behind them, where something was found in the result.
FOUND = ("gql", "gql_n", "gql_code", "gql_path")


def clean(raw):
    """A line as bytes, with its end: valid UTF-8 and no control byte; its text."""
    assert raw.endswith(b"\n") and len(raw) <= 4096, raw
    text = raw[:-1].decode("utf-8")
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text), raw
    return text


def unquote(value):
    if not value.startswith('"'):
        return value
    whole = value.removesuffix("...")[1:-1]
    return re.sub(r"\\(x[0-9a-f]{2}|.)",
                  lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" else m[1], whole)


def pairs(text):
    return {k: unquote(v) for k, v in PAIR.findall(text)}


def parse_text(raw):
    found = TEXT.fullmatch(clean(raw))
    assert found, raw
    return {"ts": found[1], "level": found[2], "module": found[3], "rest": found[4],
            **pairs(found[4])}


def parse_logfmt(raw):
    text, at, found = clean(raw), 0, {}
    while at < len(text):
        pair = PAIR.match(text, at)
        assert pair, (text[at:], raw)
        assert pair[1] not in found, raw
        found[pair[1]] = unquote(pair[2])
        at = pair.end() + 1
    assert re.fullmatch(STAMP, found["ts"]) and re.fullmatch(LEVELS, found["level"]), raw
    assert list(found)[:4] == ["ts", "level", "module", "event"], raw
    return found


def parse_json(raw):
    def once(members):
        assert len({k for k, _ in members}) == len(members), raw
        return dict(members)

    found = json.loads(clean(raw), object_pairs_hook=once)
    assert re.fullmatch(STAMP, found["ts"]) and re.fullmatch(LEVELS, found["level"]), raw
    assert list(found)[:4] == ["ts", "level", "module", "event"], raw
    return found


PARSE = {"text": parse_text, "logfmt": parse_logfmt, "json": parse_json}


def calls(mv):
    """The call lines so far, in the text form, each as its fields in their order."""
    found = []
    for raw in list(mv.log_lines):
        line = raw.decode("utf-8", "replace").rstrip("\n")
        if " call: done " in line:
            every = dict(PAIR.findall(line.partition(" call: done ")[2]))
            names = tuple(every)
            found_names = names[len(FIELDS):]
            assert names[:len(FIELDS)] == FIELDS, line
            assert found_names == tuple(f for f in FOUND if f in found_names), line
            found.append({k: unquote(v) for k, v in every.items()})
    return found


def ended(mv, n):
    """The lines of the n calls so far: an answer may be there before its line."""
    wait_for(lambda: len(calls(mv)) >= n, 5, "%d calls are logged" % n)
    return calls(mv)
