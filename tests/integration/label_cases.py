# SPDX-License-Identifier: MIT
"""Results that hold an answer of GraphQL, and what a client gets in their place."""
import json

OURS = "io.github.mcpvisor/"
# Spellings that a parser and writer of JSON would change.
ODD = ('{"id":12345678901234567890,"x":1.0,"y":1e3,"z":-0,"s":"\\u00e9\\/ \u00e9 \\ud83d\\ude00",'
       '"d":1,"d":2}')
E = '{"message":"boom","path":["a"],"extensions":{"code":"FORBIDDEN","id":12345678901234567890}}'
P = '{"data":{"a":null,"b":%s},"errors":[%s]}' % (ODD, E)
F = '{"data":{"a":null},"errors":[%s]}' % E
N = '{"data":null,"errors":[%s]}' % E
CLEAN = '{"data":{"a":1},"errors":[]}'
PRETTY = json.dumps({"data": {"a": None, "b": 1}, "errors": [{"message": "boom"}]}, indent=2)

PLAIN = {"inputSchema": {"type": "object"}}
ANSWER = {"type": "object", "properties": {"data": {}, "errors": {}}}
OPEN = {**PLAIN, "outputSchema": ANSWER}
CLOSED = {**PLAIN, "outputSchema": {**ANSWER, "additionalProperties": False}}
STRING = {**PLAIN, "outputSchema": {"type": "object", "properties": {
    "result": {"type": "string"}}, "required": ["result"]}}
FOREIGN = {"inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def sentence(n=1):
    return ("Partial result: %d field error(s) \u2014 some fields are missing or null; "
            "see `errors`." % n)


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def block(text):
    return '{"type":"text","text":%s}' % quoted(text)


def result(content=(), structured=None, more=""):
    """The bytes of a result: texts, the JSON of structuredContent, members in front."""
    text = '{%s"content":[%s]' % (more, ",".join(map(block, content)))
    return text + (',"structuredContent":' + structured if structured else "") + "}"


def warned(answer, n=1):
    at = answer.index("{") + 1
    return '%s"_warning":%s,%s' % (answer[:at], quoted(sentence(n)), answer[at:])


def with_meta(raw, outcome, n=1, before=""):
    """A result with our member, and what else is put at its end."""
    ours = '"%sgraphql":{"outcome":"%s","errors":%d}' % (OURS, outcome, n)
    return '%s%s,"_meta":{%s}}' % (raw[:-1], before, ours)


def partial(raw, n=1):
    return with_meta(raw, "partial", n)


def failed(raw, n=1):
    return with_meta(raw, "error", n, ',"isError":true')


FAILURE = "GraphQL request failed: 1 error(s), no data. [1] boom at a (FORBIDDEN)"
FENCED = "```json\n%s\n```"
KEPT = '"_meta":{"k":1.0},'
OUT = '"%sgraphql":{"outcome":"%s","errors":1},'
STRUCTURED = '{"result":%s}'

# Name: the tool, what its upstream says, what a client gets (None: the same), the outcome.
CASES = {
    "text": (PLAIN, result([P]), partial(result([warned(P)])), "partial"),
    "both": (OPEN, result([P], P), partial(result([warned(P)], warned(P))), "partial"),
    "untyped": (PLAIN, result([P], P), partial(result([warned(P)], warned(P))), "partial"),
    "closed": (CLOSED, result([P], P), partial(result([P, sentence()], P)), "partial"),
    "alone": (OPEN, result([], P), partial(result([], warned(P))), "partial"),
    "mirror": (CLOSED, result([], P), partial(result([warned(P)], P)), "partial"),
    "prose": (OPEN, result(["3 rows"], P), partial(result(["3 rows", sentence()], warned(P))),
              "partial"),
    "string": (STRING, result([P], STRUCTURED % quoted(P)),
               partial(result([warned(P)], STRUCTURED % quoted(warned(P)))), "partial"),
    "fenced": (PLAIN, result([FENCED % PRETTY]), partial(result([warned(FENCED % PRETTY)])),
               "partial"),
    "two": (PLAIN, result([P.replace("[%s]" % E, "[%s,%s]" % (E, E))]),
            partial(result([warned(P.replace("[%s]" % E, "[%s,%s]" % (E, E)), 2)]), 2), "partial"),
    "kept": (PLAIN, result([P], None, KEPT),
             result([warned(P)], None, '"_meta":{%s"k":1.0},' % (OUT % (OURS, "partial"))),
             "partial"),
    "failed": (PLAIN, result([F]), failed(result([F])), "error"),
    "null": (PLAIN, result([N]), failed(result([N])), "error"),
    "flag": (PLAIN, result([N], None, '"isError": false, '),
             with_meta(result([N], None, '"isError": true, '), "error"), "error"),
    "nulled": (OPEN, result(["3 rows"], N), failed(result(["3 rows", FAILURE], N)), "error"),
    "closed_null": (CLOSED, result([N], N), failed(result([N], N)), "error"),
    "said": (PLAIN, result([P], None, '"isError":true,'), None, "upstream_error"),
    "clean": (PLAIN, result([CLEAN]), None, "clean"),
    "row": (PLAIN, result(['{"data":{"errors":[{"message":"row 3"}]}}']), None, "clean"),
    "words": (PLAIN, result(['the word "errors" alone']), None, "none"),
    "around": (PLAIN, result(["Here: " + P]), None, "none"),
    "foreign": (FOREIGN, result([N]), None, "suspect"),
    "bare": (PLAIN, result(['{"errors":[%s]}' % E]), None, "suspect"),
    "empty": (PLAIN, result([]), None, "none"),
}


def upstream(cases=None, era="legacy", **more):
    """A scripted upstream with a tool for each case; echo stays for fences."""
    cases = CASES if cases is None else cases
    tools = [{"name": n, **c[0]} for n, c in cases.items()]
    calls = {n: [["reply", {"hex": from_upstream(c[1], era).encode().hex()}]]
             for n, c in cases.items()}
    return {"era": era, "tools": ["echo", *tools], **more,
            "calls": {**calls, **more.get("calls", {})}}


def from_upstream(raw, era):
    return '{"resultType":"complete",' + raw[1:] if era == "modern" else raw


def seen(case, upstream_era, client_is_modern):
    """The bytes of the result that a client gets."""
    raw = case[1] if case[2] is None else case[2]
    modern = upstream_era == "modern" or client_is_modern
    return from_upstream(raw, "modern" if modern else "legacy").encode()
