# SPDX-License-Identifier: MIT
"""The upstreams of the soak: what each does wrong, and what a caller may still rely on."""

ALWAYS, MAYBE, NEVER = "always", "maybe", "never"
# What a call may be told that its upstream failed.
FAILED = {"died", "backoff", "parked", "starting", "stopping", "closed", "spawn_failed",
          "timeout"}
LIE = '{"nonce":"LIE"}'
BIG = 1 << 20
LONGEST_S = 30


def result(era, args="${ARGS}", text=""):
    """A result with the caller's arguments, or with somebody else's."""
    kind = '"resultType":"complete",' if era == "modern" else ""
    return '{"content":[{"type":"text","text":"%s"}],%s"structuredContent":%s}' % (
        text, kind, args)


def answer(era, key, args=LIE):
    return ["raw", '{"jsonrpc":"2.0","id":%s,"result":%s}' % (key, result(era, args))]


class Role:
    """tools: name to (weight, steps or None for an echo, what a call of it gets)."""

    def __init__(self, name, era, tools, weight=4, options=None, want_state="ready", **more):
        self.name, self.era, self.weight = name, era, weight
        self.tools = {t: (w, want) for t, (w, _, want) in tools.items()}
        self.options = {"restart_base_ms": 50, "restart_max_ms": 400, "restart_limit": 0,
                        "call_ms": LONGEST_S * 1000, "term_ms": 300, "kill_ms": 300,
                        **(options or {})}
        self.want_state = want_state
        self.reasons = set(FAILED)
        self.behaviour = {
            "era": era, "tools": list(tools), "logging": True,
            "calls": {t: steps for t, (_, steps, _) in tools.items() if steps is not None},
            **more}

    def limit_s(self, tool):
        own = [t["call_ms"] for t in self.options.get("tool", ()) if t["tool"] == tool]
        return (own or [self.options["call_ms"]])[0] / 1000

    def pick(self, rng):
        names = list(self.tools)
        return rng.choices(names, [self.tools[n][0] for n in names])[0]


def good(name, era, **kw):
    return Role(name, era, {"echo": (1, None, ALWAYS)}, prompts=["ask"], **kw)


def slow(name, era):
    nap = [["sleep", 30], ["progress", 1], ["sleep", 30], ["progress", 2],
           ["reply", result(era)]]
    return Role(name, era, {"nap": (1, nap, ALWAYS)})


def big(name, era):
    pre, post = result(era, text="|").split("|")
    steps = [["reply", {"pre": pre, "repeat": "x", "n": BIG, "post": post}]]
    return Role(name, era, {"big": (1, steps, ALWAYS)}, weight=1)


def flood(name, era):
    log = ["notify", "notifications/message", '{"level":"error","data":"%s"}' % ("m" * 200)]
    stderr = ["stderr", {"repeat": "e" * 120 + "\n", "n": 300}]
    noise = ["bytes", {"repeat": "n", "n": BIG, "post": "\n"}]
    odd = ["bytes", {"pre": '{"jsonrpc":"2.0","odd":"', "repeat": "o", "n": BIG, "post": '"}\n'}]
    return Role(name, era, {
        "stderr": (4, [stderr, ["reply", result(era)]], ALWAYS),
        "log": (4, [["repeat", 50, [log]], ["reply", result(era)]], ALWAYS),
        "noise": (1, [noise, ["reply", result(era)], odd], ALWAYS)})


def lies(name, era):
    right, doubled = ["reply", result(era)], ["reply", result(era, LIE)]
    wrong = [answer(era, key) for key in (
        "987654321", '"x"', "null", "-1", "0", '"${ID}"', "[]", "true")]
    garbage = [["bytes", "garbage\n"], ["bytes", "{\n"], ["bytes", "\n\n[]\n"],
               ["bytes", {"hex": "fffe800a"}], ["raw", '{"jsonrpc":"2.0","id":77777777}'],
               ["raw", '{"jsonrpc":"1.0","id":${ID},"result":%s}' % result(era, LIE)]]
    tokens = [["progress", 1, t] for t in ("987654321", '"x"', "null", "-1", '"${ID}"')]
    return Role(name, era, {
        "wrong": (2, [*wrong, right, *wrong], ALWAYS),
        "twice": (2, [right, doubled], ALWAYS),
        "late": (1, [right, ["sleep", 300], doubled], ALWAYS),
        "garbage": (2, [*garbage[:-1], right], ALWAYS),
        "tokens": (2, [*tokens, ["progress", 1], right, *tokens, ["progress", 2]], ALWAYS),
        "asks": (1, [["request", "a", "roots/list"], ["request", 1, "no/such"], right],
                 ALWAYS)})


def storm(name, era):
    both = ["echo", "storm"]
    return Role(name, era, {
        "echo": (3, None, ALWAYS),
        "storm": (1, [["repeat", 10, [["changed", "tools"]]], ["set", "tools", both + ["more"]],
                      ["changed", "tools"], ["reply", result(era)], ["set", "tools", both],
                      ["changed", "tools"]], ALWAYS)})


def crash(name, era):
    half = [["bytes", '{"jsonrpc":"2.0","id":${ID},"result":{"content":['], ["exit", 1]]
    return Role(name, era, {
        "echo": (20, None, MAYBE), "die": (1, [["kill"]], NEVER), "half": (1, half, NEVER),
        "deaf": (1, [["close_stdout"], ["sleep", 200], ["exit", 0]], NEVER)})


def hang(name, era):
    late = [["sleep", 2500], ["reply", result(era)]]
    return Role(name, era, {"echo": (8, None, ALWAYS), "hang": (1, [], NEVER),
                            "late": (1, late, NEVER)}, options=hang_limits(1500))


def hang_limits(ms):
    """The other tool has its upstream's time."""
    return {"tool": [{"tool": t, "call_ms": ms} for t in ("hang", "late")]}


def block(name, era):
    """Reads nothing for a while, so that what is sent to it waits."""
    return Role(name, era, {"echo": (60, None, MAYBE), "block": (1, [["block", 1800]], NEVER)},
                options={"call_ms": 1500})


def forks(name, era):
    """Grandchildren that hold its pipes and ignore TERM; then it leaves."""
    return Role(name, era, {
        "echo": (12, None, MAYBE), "fork": (1, [["linger"], ["reply", result(era)]], MAYBE),
        "leave": (1, [["linger"], ["exit", 0]], NEVER)}, weight=2)


def every():
    return [
        good("plain_l", "legacy"), good("plain_m", "modern"), slow("slow_l", "legacy"),
        big("big_m", "modern"), flood("flood_l", "legacy"), flood("flood_m", "modern"),
        lies("lies_l", "legacy"), lies("lies_m", "modern"), storm("storm_l", "legacy"),
        storm("storm_m", "modern"), crash("crash_l", "legacy"), crash("crash_m", "modern"),
        hang("hang_l", "legacy"), block("block_m", "modern"), forks("forks_l", "legacy"),
        Role("exits_l", "legacy", {"echo": (1, None, MAYBE)}, weight=2, exit_after_reply=True),
        Role("stays_m", "modern", {"echo": (1, None, MAYBE)}, weight=2, ignore_eof=True,
             ignore_term=True),
        good("sleeps_m", "modern", options={"start": "on_use", "idle_stop_ms": 150},
             want_state="asleep", weight=1),
        Role("doomed_l", "legacy", {"echo": (1, None, NEVER)}, weight=1, want_state="parked",
             options={"restart_limit": 3}, on={"start": [["exit", 1]]}),
        good("moves_m", "modern"),
        # Beyond the twenty: processes of their own for sessions and for calls.
        Role("own_l", "legacy", {"echo": (1, None, MAYBE)}, weight=1,
             options={"isolation": "session"}),
        Role("each_m", "modern", {"echo": (1, None, MAYBE)}, weight=1,
             options={"isolation": "call"}),
    ]


def fickle():
    """Comes and goes with reloads, so its tool may be unknown as well."""
    role = Role("fickle_l", "legacy", {"echo": (1, None, MAYBE)}, weight=2)
    role.may_be_unknown = True
    return role
