"""The Python interface, with words and units as people type them: `advise` and `decision_map`."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fullpipe import files
from fullpipe.advisor import advice, map, question
from fullpipe.advisor.advice import Advice, Beginner, Watcher
from fullpipe.advisor.map import SEEDS, STEPS, DecisionMap
from fullpipe.advisor.question import QUANTITIES, Question
from fullpipe.errors import mistake, stated
from fullpipe.runs.engines import Engine
from fullpipe.runs.memory import Memory
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import Progress
from fullpipe.runs.worlds import registry
from fullpipe.scenario.path import NAMES, OPTIONS
from fullpipe.scenario.path_fields import Amount, Range
from fullpipe.text import joined

# A value with its unit; what is not known exactly is a range: "20..80 ms", or its two ends.
Given: TypeAlias = Amount | tuple[str, str] | Range
# Flows that share the path: "cubic:3", several of these, or numbers by name.
Others: TypeAlias = str | Sequence[str] | Mapping[str, int]


def advise(
    *,
    ecn: bool = False,
    competitors: Others = (),
    flow_size: Amount | None = None,
    pacing: bool = True,
    tcp_memory: str | None = None,
    duration: Amount | None = None,
    goal: str | None = None,
    candidates: str | Sequence[str] | None = None,
    world: str = registry.DEFAULT,
    budget: float | None = None,
    seeds: int | None = None,
    watch: Watcher | None = None,
    begin: Beginner | None = None,
    **path: Any,
) -> Advice:
    """Says which congestion control a path should run, what would change that, and how to apply it.

    Values are strings with units, as in `compare`: `rate="50 Mbit/s"`, `rtt="80 ms"`, `buffer="200 KB"`. What
    is not known exactly is a range, `rtt="20..80 ms"` or `("20 ms", "80 ms")`: the answer is then over all of
    it. `policer` is a token bucket that drops, `"20 Mbit/s, 500 KB"`. `competitors` share the path:
    `"cubic:3"`, a list of these, or `{"cubic": 3}`. `flow_size` is that of the user's flows, which should
    then complete soon; without it they are long. `pacing` says whether the hosts pace all flows by fq, which
    the answer's lines set; without it, only controllers that pace themselves are. `tcp_memory` is `"max"` or
    `"linux"`. `goal` is what counts: `"throughput"`, `"delay"`, `"balance"` or `"neighbours"`
    (docs/how-to/advisor.md); by default `"balance"`, or `"throughput"` if `flow_size` is given. `duration` is
    how long a long flow is watched, from its start; by default 300 round trips, but 20 to 60 s, and less on
    fast paths. `candidates` are the controllers to choose from, by default those of this machine's kernel.
    `world` is where they run.

    The answer takes about 5 seconds, or at most `budget`, as far as the time of runs is known beforehand.
    With `seeds`, the most seeds of a path, it takes as long as these need, and is the same on any machine.
    `watch` is called with what is being done, and which part of the whole is done; `begin`, before that, with
    the runs of the first round and how long they take.

    Raises `ScenarioError`, which names the argument, and `WorldError` for a world that cannot run it.
    """
    _check("budget", budget, int | float, "a number of seconds", "e.g. 5")
    _check("seeds", seeds, int, "a whole number", "e.g. 8")
    asked = ask(
        **path,
        ecn=ecn,
        competitors=competitors,
        flow_size=flow_size,
        pacing=pacing,
        tcp_memory=tcp_memory,
        duration=duration,
        candidates=candidates,
    )
    return advice.advise(
        asked,
        goal=goal,
        world=world,
        budget_s=budget,
        seeds=seeds,
        watch=watch or (lambda _doing, _done: None),
        begin=begin or (lambda _runs, _seconds: None),
    )


def decision_map(
    *,
    ecn: bool = False,
    competitors: Others = (),
    flow_size: Amount | None = None,
    pacing: bool = True,
    tcp_memory: str | None = None,
    duration: Amount | None = None,
    goal: str | None = None,
    candidates: str | Sequence[str] | None = None,
    world: str = registry.DEFAULT,
    x: str | None = None,
    steps: int = STEPS,
    seeds: int = SEEDS,
    out: str | Path | None = None,
    engine: Engine | None = None,
    watch: Callable[[Progress], None] | None = None,
    **path: Any,
) -> DecisionMap:
    """Says which congestion control is best where, over the two quantities that are ranges.

    `decision_map(rate="1..1000 Mbit/s", rtt="5..300 ms", buffer="100 KB")` has `steps` values on each axis,
    evenly on a logarithmic scale, and `seeds` seeds at each point. `x` names the quantity that goes across,
    by default the first one of the two. The others are those of `advise`. `out` is a folder in which runs are
    kept: the same call resumes there. `engine` runs them, by default this machine's cores.

    Raises `ScenarioError`, which names the argument.
    """
    assumed = {"rtt": "40 ms"} if "deliveries" in path else {"rate": "100 Mbit/s", "rtt": "40 ms"}
    asked = ask(
        **{**assumed, **path},
        ecn=ecn,
        competitors=competitors,
        flow_size=flow_size,
        pacing=pacing,
        tcp_memory=tcp_memory,
        duration=duration,
        candidates=candidates,
    )
    across, upwards = _axes(asked, x)
    plan = map.ask(asked, across, upwards, goal=goal, world=world, steps=steps, seeds=seeds)
    store = Memory() if out is None else Store(Path(out))
    # The same call resumes: an error about the disk says so.
    kept = contextlib.nullcontext() if out is None else files.runs_kept(Path(out))
    with kept:
        return map.draw(plan, store, engine, watch=watch or (lambda _progress: None))


def ask(
    *,
    competitors: Others,
    candidates: str | Sequence[str] | None,
    **others: Any,
) -> Question:
    """The question that these arguments ask."""
    for name in ("rate", "rtt"):
        if others.get(name) is None and (name == "rtt" or others.get("deliveries") is None):
            raise stated(
                name, "none", f"{name}: a value is needed, e.g. {_EXAMPLES[name]}", "a value", "give it"
            )
    return Question(**fields(competitors=competitors, candidates=candidates, **others))


_EXAMPLES = {"rate": "50 Mbit/s", "rtt": "40 ms"}
_KNOWN = {one.name for one in dataclasses.fields(Question)}


def fields(*, competitors: Others, candidates: str | Sequence[str] | None, **others: Any) -> dict[str, Any]:
    """Fields of a `Question`; quantities that are None stay so."""
    if unknown := [name for name in others if name not in _KNOWN]:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; the path has {joined(NAMES)}")
    for name in (*(one.name for one in OPTIONS if one.shape in ("queue", "text")), "tcp_memory"):
        _check(name, others.get(name), str, "a text", "`fullpipe help advise` describes it")
    for name in ("ecn", "pacing"):
        _check(name, others.get(name), bool, "True or False", f"e.g. {name}=True")
    found = {
        name: _quantity(name, value) if name in QUANTITIES and value is not None else value
        for name, value in others.items()
    }
    return found | {"competitors": _competitors(competitors), "candidates": _names("candidates", candidates)}


def _check(name: str, given: object, kind: Any, expected: str, fix: str) -> None:
    """Raises `ScenarioError` for an argument of another type: callers need not check theirs."""
    if given is not None and (not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool)):
        raise mistake(name, given, expected, fix)


def _quantity(name: str, given: Given) -> Amount | Range:
    if isinstance(given, Range):
        return given
    if isinstance(given, tuple):
        if len(given) != 2:
            raise mistake(name, given, "a value, or a range of two", 'e.g. ("20 ms", "80 ms")')
        return Range(str(given[0]), str(given[1]))
    return question.parsed(name, given)


def _competitors(given: Others) -> tuple[tuple[str, int], ...]:
    if isinstance(given, Mapping):
        for count in given.values():
            _check("competitors", count, int, "whole numbers of flows", 'e.g. {"cubic": 3}')
        given = [f"{name}:{count}" for name, count in given.items()]
    return question.competitors(_names("competitors", given))


def _names(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    _check(name, given, str | Sequence, "names of controllers", 'e.g. ["cubic", "bbr1"]')
    names = (given,) if isinstance(given, str) else tuple(given or ())
    for one in names:
        if not isinstance(one, str):
            raise mistake(name, one, "names of controllers", 'e.g. ["cubic", "bbr1"]')
    return names


def _axes(asked: Question, x: str | None) -> tuple[str, str]:
    """The quantities across and upwards."""
    ranges = asked.ranges
    if len(ranges) != 2:
        found = ", ".join(ranges) or "none"
        raise stated(
            "rate",
            found,
            f'a map has two axes: give two of {", ".join(QUANTITIES)} as ranges, e.g. rate="1..100 Mbit/s"; '
            f"ranges were given for: {found}",
            "two ranges",
            "give two ranges",
        )
    if x is None:
        return ranges[0], ranges[1]
    if x not in ranges:
        raise mistake("x", x, f"one of the ranges, {ranges[0]} or {ranges[1]}", "name one of them")
    return x, next(name for name in ranges if name != x)
