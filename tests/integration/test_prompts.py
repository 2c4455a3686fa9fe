# SPDX-License-Identifier: MIT
"""Prompts and completions are routed by their published name or their template."""
import pytest


def test_a_prompt_reaches_its_owner_with_its_own_name(serve):
    mv = serve(alpha={"prompts": ["greet"]}, beta={"era": "modern", "prompts": ["greet"]})
    mv.legacy()
    for up in ("beta", "alpha"):
        got = mv.ask("prompts/get", '{"name":"%s__greet","arguments":{"who":"\\u00e9"}}' % up)
        assert got.result["messages"][0]["content"]["text"] == 'greet {"who":"\\u00e9"}'
        assert len(mv[up].inputs("prompts/get")) == 1


@pytest.mark.parametrize("params", ['{"name":"alpha__nope"}', '{"name":"greet"}', "{}",
                                    '{"name":7}'])
@pytest.mark.parametrize("client", ["legacy", "modern"])
def test_an_unknown_prompt_is_invalid_params(serve, client, params):
    import json
    mv = serve(alpha={"prompts": ["greet"]})
    mv.speak(client)
    mv.ask("prompts/list").result
    assert mv.ask("prompts/get", json.loads(params)).code == -32602
    assert mv["alpha"].inputs("prompts/get") == []


def complete(mv, ref, **more):
    return mv.ask("completion/complete", {
        "ref": ref, "argument": {"name": "a", "value": "v"}, **more})


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
def test_o_047_completions_are_the_owners(each, upstream):
    mv = each(beta={"prompts": ["greet"]},
              alpha={"era": upstream, "prompts": ["greet"], "resourceTemplates": ["t:{x}"]})
    mv.ask("prompts/list").result
    got = complete(mv, {"type": "ref/prompt", "name": "alpha__greet", "title": "T"},
                   context={"arguments": {"z": "1"}})
    assert got.result["completion"]["values"] == ["greet", '{"name":"a","value":"v"}']
    sent = mv["alpha"].inputs("completion/complete")[0].msg["params"]
    assert sent["ref"] == {"type": "ref/prompt", "name": "greet", "title": "T"}
    assert sent["context"] == {"arguments": {"z": "1"}}
    got = complete(mv, {"type": "ref/resource", "uri": "t:{x}"})
    assert got.result["completion"]["values"][0] == "t:{x}"
    assert mv["beta"].inputs("completion/complete") == []


def test_o_047_an_unknown_ref_is_invalid_params(each):
    mv = each(alpha={"prompts": ["greet"], "resourceTemplates": ["t:{x}"]})
    for ref in ({"type": "ref/prompt", "name": "alpha__nope"}, {"type": "ref/prompt"},
                {"type": "ref/resource", "uri": "nobody:{x}"},
                {"type": "ref/other", "name": "x"}, {}, 7):
        assert complete(mv, ref).code == -32602
    assert mv["alpha"].inputs("completion/complete") == []


def test_o_047_an_upstream_without_completions(each):
    """The rule: no values, rather than an error."""
    mv = each(alpha={"prompts": ["greet"], "capabilities": {"prompts": {}}})
    got = complete(mv, {"type": "ref/prompt", "name": "alpha__greet"})
    assert got.result["completion"]["values"] == []
    assert mv["alpha"].inputs("completion/complete") == []


def test_the_completions_capability_is_a_union(serve):
    mv = serve(alpha={"tools": ["echo"]}, beta={"prompts": ["p"]})
    assert "completions" in mv.legacy().result["capabilities"]
    mv = serve(alpha={"tools": ["echo"]})
    assert "completions" not in mv.legacy().result["capabilities"]
