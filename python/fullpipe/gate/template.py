"""The gate file that `fullpipe gate init` writes: the same cases for each subject, with comments."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fullpipe.conformance.loss.case import traits
from fullpipe.errors import mistake
from fullpipe.runs.worlds import quic_program, registry, stacks
from fullpipe.runs.worlds.world import refusal
from fullpipe.scenario import scenario
from fullpipe.scenario.controllers import of_stacks

_PATH: Mapping[str, Any] = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "duration": "5 s"}
# What each case is about, its name, and what differs from `_PATH`.
_CASES: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    (
        "A plain path. The promises hold whatever the baseline has.",
        "steady",
        {"at_least": {"goodput_bps": "80 %"}, "at_most": {"queue_delay_p95_ms": "1.1 bdp"}},
    ),
    (
        "Buffers: a quarter of a bandwidth-delay product, and four of them.",
        "shallow-buffer",
        {"buffer": "0.25 bdp"},
    ),
    ("", "deep-buffer", {"buffer": "4 bdp"}),
    ("Slow, fast, short and long paths.", "slow-path", {"rate": "2 Mbit/s", "rtt": "100 ms"}),
    ("", "fast-path", {"rate": "200 Mbit/s", "rtt": "10 ms", "duration": "2 s"}),
    ("", "short-path", {"rate": "50 Mbit/s", "rtt": "2 ms", "duration": "2 s"}),
    ("", "long-path", {"rtt": "200 ms", "duration": "10 s"}),
    ("Random loss, jitter and reordering.", "loss-0.1", {"loss": "0.1 %"}),
    ("", "loss-1", {"loss": "1 %"}),
    ("", "jitter", {"jitter": "5 ms"}),
    ("", "reordering", {"reorder": "1 %, 5 ms"}),
    ("A policer, and queues that drop or mark early.", "policer", {"policer": "10 Mbit/s, 100 KB"}),
    ("", "codel", {"queue": "codel", "buffer": "4 bdp"}),
    ("", "pie", {"queue": "pie", "buffer": "4 bdp"}),
    ("", "codel-ecn", {"queue": "codel", "buffer": "4 bdp", "ecn": True}),
    ("Several flows: of the subject, and beside others.", "two-flows", {"flows": 2}),
    ("", "four-flows", {"flows": 4}),
    ("", "beside-cubic", {"beside": ["cubic"]}),
    ("", "beside-bbr3", {"beside": ["bbr3"]}),
)
# Conformance cases: laws that every controller obeys, and what can be seen of a stack's own.
_LAWS = ("law.run", "law.losses", "law.timeout")
_SEEN = ("clean-path", "tail-loss")
# Of BBR's phases; whoever fails one by design fails it in the baseline, too.
_PHASES = ("startup-plateau", "drain-inflight", "up-loss", "probe-rtt")
# Of loss-based control, by what the subject is.
_LOSS: Mapping[str, Sequence[str]] = {
    "cubic": ("decrease-cubic", "cubic-k", "minimum-window", "outage-threshold-cubic"),
    "reno": ("decrease-reno", "one-packet-a-round", "minimum-window", "outage-threshold-reno"),
}
_HEAD = """\
# What `fullpipe gate` runs. docs/how-to/gate.md explains every key.
#
#   fullpipe gate record    writes the baseline, gate-baseline.jsonl: commit it
#   fullpipe gate check     runs again and compares; exit code 1 if something changed
#
# Each case is exact: any difference of its record is a change. To tolerate some, write instead of that
#   within = {{ goodput_bps = "1 %", queue_delay_p95_ms = "5 %, 1 ms" }}
# Promises hold whatever the baseline has:
#   at_least = {{ goodput_bps = "90 %" }}         # of the link's rate
#   at_most = {{ queue_delay_p95_ms = "1.5 bdp" }}
#   not_worse_than = "cubic"                    # in goodput, by more than 1 %

subject = {subject}
worlds = [{world}]
seeds = 3
"""


def subjects(stack: str | None, controllers: Sequence[str]) -> list[str]:
    """The subjects: our controllers, or those of a stack in the world quic.

    `stack` is the name of one, or `NAME=COMMAND` with the command of its adapter, which is started.

    Raises:
        ScenarioError: The stack or a controller does not exist.
        WorldError: The adapter does not answer as one.
    """
    if stack is None:
        return list(dict.fromkeys(controllers)) or ["cubic"]
    if "=" in stack:
        stacks.give([stacks.of_text(stack)])
        stack = stack.partition("=")[0].strip()
    offered = [str(one["name"]) for one in quic_program.controllers()]
    own = [name for name in offered if name.partition(":")[0] == stack]
    there = list(dict.fromkeys(name.partition(":")[0] for name in offered))
    if offered and not own:
        raise mistake("stack", stack, f"one of {', '.join(there)}", "name one of these")
    wanted = [f"{stack}:{name}" for name in dict.fromkeys(controllers)] or own
    if not wanted:
        fix = f"{quic_program.FIX}, or give --controllers"
        raise mistake("stack", stack, "a stack in the program fullpipe-quic, which is missing", fix)
    for name in wanted:
        if offered and name not in own:
            raise mistake("controllers", name, f"one of {', '.join(own)}", "name one of these")
        if not of_stacks(json.dumps({"flows": [{"controller": name}]})):
            raise mistake("stack", stack, "a QUIC stack that the world quic knows", "e.g. noq or quinn")
    return wanted


def text_of(names: Sequence[str]) -> str:
    """The gate file for these subjects.

    Raises:
        ScenarioError: A subject does not exist.
    """
    of_stack = bool(of_stacks(json.dumps({"flows": [{"controller": names[0]}]})))
    world = "quic" if of_stack else registry.DEFAULT
    parts = [_HEAD.format(subject=json.dumps(names[0]), world=json.dumps(world))]
    for number, name in enumerate(names):
        prefix = f"{_short(name)}-" if len(names) > 1 else ""
        subject = {"subject": name} if number else {}
        for about, title, changes in _CASES:
            keys = {**_PATH, **changes}
            if _runs(name, keys, world):
                parts.append(_case(about, {"name": prefix + title, "kind": "compare", **subject, **keys}))
        parts.append(_conform(prefix, subject, of_stack=of_stack))
        if name.startswith("bbr"):
            keys = {"name": f"{prefix}phases", "kind": "conform", **subject, "conform": list(_PHASES)}
            parts.append(_case("BBR's phases. Verdicts and values stay as they are.", keys))
        for what in traits(name, "any", own=False) & _LOSS.keys():
            keys = {"name": f"{prefix}loss", "kind": "conform", **subject, "suite": "loss"}
            about = "By the RFCs; `fullpipe conform --suite loss --list` has all."
            parts.append(_case(about, {**keys, "conform": list(_LOSS[what])}))
    return "\n".join(parts)


def _conform(prefix: str, subject: Mapping[str, str], *, of_stack: bool) -> str:
    about = "Conformance cases; `fullpipe conform --list` has all."
    keys = {"name": f"{prefix}conform", "kind": "conform", **subject}
    if of_stack:
        return _case(about, {**keys, "conform": list(_SEEN)})
    return _case(about, {**keys, "conform": list(_LAWS), "must_pass": True})


def _short(subject: str) -> str:
    return subject.replace(":", "-").replace(",", "-")


def _runs(subject: str, keys: Mapping[str, Any], world: str) -> bool:
    """Whether the world runs the case, as far as that is known without a run."""
    path = {name: keys[name] for name in keys if name not in _NOT_OF_PATH}
    document = {
        "name": "init",
        "duration": keys["duration"],
        "path": path,
        "hosts": {"ecn": bool(keys.get("ecn", False))},
        "flows": [{}, *({"controller": one} for one in keys.get("beside", ()))],
        "compare": [subject],
    }
    loaded = scenario.from_document(document, parameters={"compare": "controllers"})
    there = world not in registry.optional(there=False)
    return not there or refusal(registry.named(world), loaded.alternatives[0]) is None


_NOT_OF_PATH = frozenset({"duration", "ecn", "flows", "beside", "at_least", "at_most"})


def _case(about: str, keys: Mapping[str, Any]) -> str:
    return "\n".join(_lines(about, keys)) + "\n"


def _lines(about: str, keys: Mapping[str, Any]) -> Iterator[str]:
    if about:
        yield f"# {about}"
    yield "[[case]]"
    for key, value in keys.items():
        yield f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
