# SPDX-License-Identifier: MIT
"""Options of remote upstreams: what is wrong with them, what is shown, what is sent."""
import json
import re

import pytest

from remote_server import RemoteServer
from upstream import wait_for

SECRET = "hush-4711"
URL = 'url = "https://mcp.example.org/mcp"; '

# What stands on line 4 of the conf, what it is about, and a word of what is said.
MISTAKES = [
    ('command = "x"; url = "https://h/";', None, "both a command and a url"),
    (URL + 'args = ["a"];', "args", "of kind stdio, and"),
    (URL + "env : { A = \"1\"; };", "env", "stdio, exec or shell"),
    (URL + 'env_file = "x";', "env_file", "stdio, exec or shell"),
    (URL + 'env_pass = ["A"];', "env_pass", "stdio, exec or shell"),
    (URL + 'cwd = "/";', "cwd", "stdio, exec or shell"),
    *(('command = "x"; %s;' % o, o.split()[0], "of kind http") for o in (
        "headers : { A = \"b\"; }", 'ca_file = "c"', 'cert_file = "c"', 'key_file = "c"',
        'proxy = ""', "tls_verify = false", "connect_ms = 1", 'transport = "auto"')),
    ('url = "mcp.example.org";', "url", "https://"),
    ('url = "http://me:%s@h/";' % SECRET, "url", "password"),
    ('url = "wss://h/mcp";', "url", "WebSocket"),
    ('url = "http://h:x/%s";' % SECRET, "url", "URL"),
    (URL + "headers : { Host = \"h\"; };", "headers.Host", "itself"),
    (URL + "headers : { mcp-param-x = \"h\"; };", "headers.mcp-param-x", "itself"),
    (URL + 'headers : { A = "%s\\r\\nB: c"; };' % SECRET, "headers.A", "line break"),
    (URL + 'headers : { A = "${NOT_SET}"; };', "headers.A", "NOT_SET"),
    (URL + 'headers : { A = "${file:not-there}"; };', "headers.A", "not-there"),
    (URL + 'headers : { A = "b"; a = "c"; };', "headers.a", "twice"),
    (URL + 'transport = "http";', "transport", '"streamable"'),
    (URL + "connect_ms = 0;", "connect_ms", "1 to 600000"),
    (URL + 'tls_verify = "no";', "tls_verify", "true or false"),
    (URL + 'roots = ["/srv"];', "roots.0", "file:///"),
    (URL + 'roots = "all";', "roots", '"client"'),
    (URL + "question_ms = 0;", "question_ms", "1 to 86400000"),
]


@pytest.mark.parametrize("text, key, word", MISTAKES, ids=range(len(MISTAKES)))
def test_each_mistake_has_its_place(check, text, key, word):
    err = check("\nupstream : {\n  a : {\n    %s\n  };\n};\n" % text, code=1)[2]
    said, count = err.splitlines()
    found = re.fullmatch(r".*/mcpvisor\.conf:(\d+): upstream\.a(?:\.([^:]*))?: (.*)", said)
    assert found and (found[1], found[2]) == ("4", key) and word in found[3], said
    assert count == "1 error" and SECRET not in err


def test_neither_command_nor_url(check):
    err = check("\nupstream : { a : {\n era = \"auto\"; }; };\n", code=1)[2]
    assert re.search(r"conf:2: upstream\.a: command is missing \(or url", err)


def dump(check, conf, **env):
    out = check(conf, "--dump", code=0, **env)[1]
    assert SECRET not in out
    return dict(line.split(" = ", 1) for line in out.splitlines())


def test_what_is_shown_and_what_is_not(check):
    (check.folder / "token").write_text(SECRET + "\n")
    said = dump(check, """
defaults : { connect_ms = "2s"; cwd = "/"; headers : { X-All = "%s"; }; };
upstream : {
  a : { url = "https://mcp.example.org:8443/mcp?key=%s"; tls_verify = false;
        headers : { Authorization = "Bearer ${file:token}"; X-Env = "${MARK}"; };
        proxy = "http://me:%s@proxy:1"; ca_file = "ca.pem"; roots = ["file:///srv"]; };
  b : { url = "https://${MARK}/mcp"; };
  c : { command = "/bin/true"; };
};
""" % (SECRET, SECRET, SECRET), MARK=SECRET)
    a = {k.removeprefix("upstream.a."): v for k, v in said.items() if k.startswith("upstream.a.")}
    assert a["url"] == '"https://mcp.example.org:8443/mcp" (secret)'
    assert a["tls_verify"] == "false" and a["connect_ms"] == "2000"
    assert a["transport"] == '"auto"' and a["roots"] == '["file:///srv"]'
    assert {k for k, v in a.items() if v == "(secret)"} == {
        "headers.Authorization", "headers.X-Env", "headers.X-All", "proxy"}
    assert a["ca_file"] == json.dumps(str(check.folder / "ca.pem"))
    assert not {"cwd", "command", "args"} & set(a)
    assert said["upstream.b.url"] == "(secret)"
    assert said["upstream.c.cwd"] == '"/"' and "upstream.c.connect_ms" not in said


def test_servers_of_client_files(check):
    (check.folder / "servers.json").write_text("""{ "mcpServers": {
  "one": { "type": "http", "url": "https://example.org/%s", "args": [], "env": {},
           "headers": { "Authorization": "Bearer %s" } },
  "two": { "serverUrl": "https://example.org/", "env": { "A": "b" } },
  "three": { "type": "sse", "url": "https://example.org/sse",
             "mcpvisor": { "connect_ms": 7, "roots": "none" } }
} }
""" % (SECRET, SECRET))
    conf = 'mcp_servers = ["servers.json"];\n'
    rc, out, err = check(conf, code=0)
    (warning,) = [x for x in out.splitlines() if x.startswith("note: ")]
    assert re.search('servers.json:4: entry "two": env is ignored', warning)
    said = dump(check, conf)
    assert said["upstream.one.url"] == said["upstream.one.headers.Authorization"] == "(secret)"
    assert said["upstream.one.transport"] == said["upstream.two.transport"] == '"auto"'
    assert said["upstream.three.transport"] == '"sse"'
    assert said["upstream.three.connect_ms"] == "7" and said["upstream.three.roots"] == '"none"'


@pytest.mark.parametrize("entry, words", [
    ({"type": "ws", "url": "ws://h/"}, "WebSocket"),
    ({"type": "http"}, "url is missing"),
    ({"url": "https://h/", "command": "x"}, "both a command and a url"),
    ({"url": "https://me:%s@h/" % SECRET}, "url has a user"),
    ({"url": "https://h/", "headers": {"Host": SECRET}}, '"Host": is a header'),
    ({"url": "https://h/", "headers": {"A": SECRET + "\n"}}, '"A": has a line break'),
    ({"url": "https://h/", "mcpvisor": {"key_file": "k"}}, "no cert_file"),
    ({"command": "x", "mcpvisor": {"tls_verify": False}}, "option of remote servers"),
])
def test_entries_of_client_files_that_cannot_be(check, entry, words):
    (check.folder / "servers.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
    err = check('mcp_servers = ["servers.json"];\n', code=1)[2]
    assert 'upstream "a": ' in err and words in err and SECRET not in err


# -- a real server -----------------------------------------------------------------------


@pytest.fixture
def server():
    s = RemoteServer("modern")
    yield s
    s.close()


def test_headers_are_read_again_when_their_file_changes(serve_conf, server, tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    mv = serve_conf(alpha={"url": server.url, "headers": {
        "Authorization": "Bearer ${file:%s}" % token, "X-Fixed": "${FIXED}"}},
        env={"FIXED": "fixed"})
    c = mv.legacy()
    assert c.tools()

    def sent():
        assert c.call("alpha__echo", {}).result
        r = server.seen("tools/call")[-1]
        return r.header("Authorization"), r.header("X-Fixed")

    assert sent() == ("Bearer first", "fixed")
    token.write_text("other\n")
    assert sent() == ("Bearer other", "fixed")
    new = tmp_path / "new"
    new.write_text("third")
    new.rename(token)
    assert sent() == ("Bearer third", "fixed")
    # A reload that finds the same conf and another token changes nothing.
    token.write_text("fourth")
    assert "restarts" not in mv.reload() and sent() == ("Bearer fourth", "fixed")
    assert not re.search("first|other|third|fourth", mv.log())


def test_status_says_where_it_is(serve_conf, server):
    mv = serve_conf(alpha={"url": server.url + "?key=" + SECRET})
    wait_for(lambda: mv.upstream_status("alpha")["state"] == "ready", 5, "it is ready")
    up = mv.upstream_status("alpha")
    assert up["url"] == "http://127.0.0.1:%d" % server.port and up["pid"] is None
    out = mv.control("status")[1]
    assert re.search(r"^alpha +ready +.* remote ", out, re.M) and SECRET not in out
    assert SECRET not in mv.log()
