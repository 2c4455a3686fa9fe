#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An MCP server on stdio that answers as many that stand before a GraphQL API do: with
whatever the API said, as a plain success."""
import json
import sys

FORBIDDEN = {"message": "Must be an admin", "path": ["deleteIssue"],
             "extensions": {"code": "FORBIDDEN", "http": {"status": 403}}}
SLOW = {"message": "Search took too long", "path": ["search", 1, "author"],
        "extensions": {"code": "TIMEOUT"}}
ANSWERS = {
    "delete_issue": {"data": {"deleteIssue": None}, "errors": [FORBIDDEN]},
    "search": {"data": {"search": [{"title": "Crash at start", "author": "Ann"},
                                   {"title": "Wrong total", "author": None}]},
               "errors": [SLOW]},
    "get_me": {"data": {"viewer": None}},
    "close_issue": {"ok": False, "error": "403 Forbidden"},
}


def result_of(msg):
    if msg["method"] == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "issues", "version": "1"}}
    if msg["method"] == "tools/list":
        return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ANSWERS]}
    if msg["method"] == "tools/call":
        text = json.dumps(ANSWERS[msg["params"]["name"]], separators=(",", ":"))
        return {"content": [{"type": "text", "text": text}]}
    return None


for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    answer = {"jsonrpc": "2.0", "id": msg["id"], "result": result_of(msg)}
    if answer["result"] is None:
        del answer["result"]
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer, separators=(",", ":")), flush=True)
