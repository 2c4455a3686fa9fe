# SPDX-License-Identifier: MIT
"""Checks messages of mcpvisor against the official JSON Schema of a revision.

The schemas are no part of the project. They are read from $MCP_SCHEMA_DIR, else
from ../shared/schema beside the repository; without them nothing is checked.
"""
import functools
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]

RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tasks/get": "GetTaskResult",
    "tasks/result": "CallToolResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
}
NOTICES = {
    "notifications/progress": "ProgressNotification",
    "notifications/tasks/status": "TaskStatusNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/cancelled": "CancelledNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
    "notifications/elicitation/complete": "ElicitationCompleteNotification",
    # What a server asks.
    "elicitation/create": "ElicitRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "roots/list": "ListRootsRequest",
}
ERRORS = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}


def folder():
    path = Path(os.environ.get("MCP_SCHEMA_DIR", REPO.parent / "shared" / "schema"))
    return path if path.is_dir() else None


@functools.lru_cache(maxsize=None)
def document(revision):
    where = folder()
    path = where / (revision + ".json") if where else None
    return json.loads(path.read_text()) if path and path.is_file() else None


@functools.lru_cache(maxsize=None)
def validator(revision, name):
    """The validator of one definition, or None if there is nothing to check."""
    doc = document(revision)
    if doc is None:
        return None
    import jsonschema

    key = "$defs" if "$defs" in doc else "definitions"
    if name not in doc[key]:
        return None
    cls = jsonschema.validators.validator_for(doc)
    return cls({"$schema": doc["$schema"], "$ref": "#/%s/%s" % (key, name), key: doc[key]})


def complaints(revision, name, value):
    v = validator(revision, name)
    if v is None:
        return []
    return ["%s %s at %s: %s" % (revision, name, list(e.absolute_path), e.message[:300])
            for e in v.iter_errors(value)]


def check(revision, method, msg):
    """What is wrong with one message; method is that of the request it answers."""
    if "method" in msg:
        name = NOTICES.get(msg["method"])
        if name is None:
            return ["mcpvisor sent %s, which no revision lets it send" % msg["method"]]
        if validator(revision, name) is None and document(revision):
            return ["%s has no %s" % (revision, msg["method"])]
        return complaints(revision, name, msg)
    if "error" in msg:
        if msg.get("id") is None:
            return []
        name = ERRORS.get(msg["error"].get("code"))
        if name and validator(revision, name):
            return complaints(revision, name, msg)
        name = "JSONRPCErrorResponse"
        return complaints(revision, name if validator(revision, name) else "JSONRPCError", msg)
    name = RESULTS.get(method)
    if method == "tools/call" and "task" in msg["result"]:
        name = "CreateTaskResult"
    if msg["result"].get("resultType") == "task":
        name = None  # of an extension, which has no schema there
    if msg["result"].get("resultType") == "input_required":
        name = "InputRequiredResult"
    return complaints(revision, name, msg["result"]) if name else []
