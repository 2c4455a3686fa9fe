# SPDX-License-Identifier: MIT
"""What the conformance suite looks up in a server, once for both eras.

The suite dictates names, texts and shapes. A tool is a function of a Call: it may report
progress, log, and ask the client.
"""

import json
import time

from fixture_call import (CAPABILITY, IMAGE, PNG, ROOTS, WAV, elicit, elicit_strings,
                          embedded, message, sample, sampled, schema, text)

STEP_S = 0.05  # between two notices of one call

# Tools

TOOLS = {}


def tool(name, description, input_schema=None):
    def register(fn):
        TOOLS[name] = ({"name": name, "description": description,
                        "inputSchema": input_schema or schema()}, fn)
        return fn
    return register


# The first of the list: the suite calls it without knowing it.
@tool("test_simple_text", "Returns a line of text")
def simple_text(_):
    return [text("This is a simple text response for testing.")]


@tool("test_image_content", "Returns an image")
def image_content(_):
    return [IMAGE]


@tool("test_audio_content", "Returns a sound")
def audio_content(_):
    return [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]


@tool("test_embedded_resource", "Returns a resource in its result")
def embedded_resource(_):
    return [embedded("test://embedded-resource", "text/plain",
                     "This is an embedded resource content.")]


@tool("test_multiple_content_types", "Returns text, an image and a resource")
def multiple_content_types(_):
    return [text("Multiple content types test:"), IMAGE,
            embedded("test://mixed-content-resource", "application/json",
                     '{"test":"data","value":123}')]


@tool("test_tool_with_logging", "Logs three messages")
def tool_with_logging(call):
    call.log("Tool execution started")
    time.sleep(STEP_S)
    call.log("Tool processing data")
    time.sleep(STEP_S)
    call.log("Tool execution completed")
    return [text("Three messages were logged")]


@tool("test_tool_with_progress", "Reports progress three times")
def tool_with_progress(call):
    call.progress(0, 100)
    time.sleep(STEP_S)
    call.progress(50, 100)
    time.sleep(STEP_S)
    call.progress(100, 100)
    return [text("Done in three steps")]


@tool("test_error_handling", "Always fails")
def error_handling(_):
    return {"isError": True,
            "content": [text("This tool intentionally returns an error for testing")]}


@tool("test_sampling", "Has the client's model answer",
      schema({"prompt": {"type": "string"}}, ["prompt"]))
def sampling(call):
    answer = call.ask_one("answer", sample(call.string("prompt"), 100))
    return [text("LLM response: " + sampled(answer))]


def told(answer):
    return "action=%s, content=%s" % (
        answer["action"], json.dumps(answer.get("content", {})))


@tool("test_elicitation", "Has the user answer",
      schema({"message": {"type": "string"}}, ["message"]))
def elicitation(call):
    answer = call.ask_one("user", elicit(call.string("message"), {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }, ["username", "email"]))
    return [text("User response: " + told(answer))]


@tool("test_elicitation_sep1034_defaults", "Asks with a default of each type")
def elicitation_defaults(call):
    answer = call.ask_one("form", elicit("Please check these values", {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"],
                   "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }))
    return [text("Elicitation completed: " + told(answer))]


def titled(*pairs):
    return [{"const": c, "title": t} for c, t in pairs]


@tool("test_elicitation_sep1330_enums", "Asks with each kind of choice")
def elicitation_enums(call):
    options = ["option1", "option2", "option3"]
    answer = call.ask_one("form", elicit("Please choose", {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled(
            ("value1", "First Option"), ("value2", "Second Option"),
            ("value3", "Third Option"))},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                       "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(
            ("value1", "First Choice"), ("value2", "Second Choice"),
            ("value3", "Third Choice"))}},
    }))
    return [text("Elicitation completed: " + told(answer))]


@tool("test_reconnection", "Takes 100 ms, so that a stream can be closed meanwhile")
def reconnection(_):
    time.sleep(0.1)
    return [text("Here in spite of all")]


@tool("json_schema_2020_12_tool", "Has a schema with the vocabulary of 2020-12", {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {
        "$anchor": "addressDef", "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}},
           "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
})
def json_schema(call):
    return [text(json.dumps(call.args))]


@tool("test_missing_capability", "Works only for clients that declare sampling")
def missing_capability(call):
    call.require("sampling")
    return [text("The client can sample")]


@tool("test_streaming_elicitation", "Reports progress, then asks")
def streaming_elicitation(call):
    call.progress(1, 2)
    answer = call.ask_one("confirm", elicit_strings("What next?", "next"))
    return [text("Elicitation completed: " + told(answer))]


@tool("test_logging_tool", "Logs one message")
def logging_tool(call):
    call.log("A message of test_logging_tool")
    return [text("One message was logged, if it was wanted")]


@tool("test_trigger_tool_change", "Changes the list of tools")
def trigger_tool_change(call):
    call.server.world.toggle("tools")
    return [text("The list of tools has changed")]


@tool("test_trigger_prompt_change", "Changes the list of prompts")
def trigger_prompt_change(call):
    call.server.world.toggle("prompts")
    return [text("The list of prompts has changed")]


def greeting(answer):
    if answer["action"] != "accept":
        return [text("Hello, whoever you are!")]
    return [text("Hello, %s!" % answer["content"]["name"])]


@tool("test_input_required_result_elicitation", "Asks for a name")
def ask_elicitation(call):
    return greeting(call.ask_one("user_name",
                                 elicit_strings("What is your name?", "name")))


@tool("test_input_required_result_sampling", "Asks the client's model")
def ask_sampling(call):
    answer = call.ask_one("capital_question",
                          sample("What is the capital of France?", 100))
    return [text(sampled(answer))]


@tool("test_input_required_result_list_roots", "Asks for the roots")
def ask_roots(call):
    answer = call.ask_one("client_roots", ROOTS)
    return [text("Roots: " + ", ".join(str(r.get("uri")) for r in answer["roots"]))]


def confirm(call):
    return call.ask_one("confirm", elicit("Please confirm", {"ok": {"type": "boolean"}},
                                          ["ok"]), state=True)


@tool("test_input_required_result_request_state", "Asks, and has its state brought back")
def ask_with_state(call):
    return [text("state-ok, " + told(confirm(call)))]


@tool("test_input_required_result_multiple_inputs", "Asks three questions at once")
def ask_three(call):
    answers = call.ask({
        "user_name": elicit_strings("What is your name?", "name"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }, state=True)
    return greeting(answers["user_name"]) + [
        text(sampled(answers["greeting"])),
        text("%d roots" % len(answers["client_roots"]["roots"]))]


@tool("test_input_required_result_multi_round", "Asks twice, one after the other")
def ask_twice(call):
    name = call.ask_one("step1", elicit_strings("Step 1: What is your name?", "name"),
                        state=True)
    color = call.ask_one("step2", elicit_strings(
        "Step 2: What is your favorite color?", "color"), state=True)
    return [text("First: %s. Second: %s." % (told(name), told(color)))]


@tool("test_input_required_result_tampered_state", "Refuses a state that was changed")
def ask_with_sealed_state(call):
    return [text("The state is whole, " + told(confirm(call)))]


@tool("test_input_required_result_capabilities", "Asks what the client can answer")
def ask_what_is_possible(call):
    questions = {
        "elicited": elicit_strings("What is your name?", "name"),
        "sampled": sample("What is the capital of France?", 100),
    }
    possible = {k: q for k, q in questions.items()
                if CAPABILITY[q["method"]] in call.capabilities}
    if not possible:
        return [text("This client answers no questions")]
    return [text("Answered: " + ", ".join(call.ask(possible)))]


@tool("test_x_mcp_header", "Has a parameter that goes into a header",
      schema({"region": {"type": "string", "x-mcp-header": "Region"}}, ["region"]))
def x_mcp_header(call):
    return [text("Region: " + call.string("region"))]


@tool("test_dynamic_tool", "Comes and goes")
def dynamic_tool(_):
    return [text("Here for now")]


# Prompts

PROMPTS = {}


def prompt(name, description, *arguments):
    def register(fn):
        definition = {"name": name, "description": description}
        if arguments:
            definition["arguments"] = [
                {"name": a, "description": "A text", "required": True} for a in arguments]
        PROMPTS[name] = (definition, fn)
        return fn
    return register


@prompt("test_simple_prompt", "A prompt without arguments")
def simple_prompt(_):
    return [message(text("This is a simple prompt for testing."))]


@prompt("test_prompt_with_arguments", "A prompt with two arguments", "arg1", "arg2")
def prompt_with_arguments(call):
    return [message(text("Prompt with arguments: arg1='%s', arg2='%s'" % (
        call.string("arg1"), call.string("arg2"))))]


@prompt("test_prompt_with_embedded_resource", "A prompt with a resource in it",
        "resourceUri")
def prompt_with_resource(call):
    uri = call.string("resourceUri")
    return [message(embedded(uri, "text/plain", "Embedded resource content for testing.")),
            message(text("Please process the embedded resource above."))]


@prompt("test_prompt_with_image", "A prompt with an image in it")
def prompt_with_image(_):
    return [message(IMAGE), message(text("Please analyze the image above."))]


@prompt("test_input_required_result_prompt", "A prompt that asks first")
def prompt_that_asks(call):
    answer = call.ask_one("user_context", elicit_strings(
        "What context should the prompt use?", "context"))
    return [message(text("With " + told(answer)))]


@prompt("test_dynamic_prompt", "Comes and goes")
def dynamic_prompt(_):
    return [message(text("Here for now"))]


DYNAMIC = {"test_dynamic_tool", "test_dynamic_prompt", "test://dynamic"}

# Resources

RESOURCES = [
    {"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain",
     "description": "A text"},
    {"uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png",
     "description": "An image"},
    {"uri": "test://watched-resource", "name": "watched-resource",
     "mimeType": "text/plain", "description": "Can be subscribed to"},
    {"uri": "test://dynamic", "name": "dynamic", "mimeType": "text/plain",
     "description": "Comes and goes"},
]
TEMPLATES = [
    {"uriTemplate": "test://template/{id}/data", "name": "template",
     "mimeType": "application/json", "description": "Data by id"},
]
CONTENTS = {
    "test://static-text": {"mimeType": "text/plain",
                           "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content."},
    "test://dynamic": {"mimeType": "text/plain", "text": "Here for now"},
}
COMPLETIONS = {("test_prompt_with_arguments", "arg1"): ["paris", "park", "party", "test"]}


def resource(uri):
    """Its contents, a function of the call that gives them, or None."""
    found = CONTENTS.get(uri)
    if found is None and isinstance(uri, str):
        start, end = "test://template/", "/data"
        middle = uri[len(start):-len(end)]
        if uri.startswith(start) and uri.endswith(end) and middle and "/" not in middle:
            found = {"mimeType": "application/json", "text": json.dumps({
                "id": middle, "templateTest": True, "data": "Data for ID: " + middle})}
    return found
