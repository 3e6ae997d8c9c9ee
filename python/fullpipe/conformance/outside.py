"""Cases that can be judged from outside: a program is played on a path, and its packets alone are measured.

The program is anybody's: a command of a client and of a server that send as long as they are let, at least a
minute. Every case here is a scenario of the kernel world. Cases that ask for a window, a phase or an estimate
are listed as not visible. The numbers were written down before the first result.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import polars as pl

from fullpipe._native import WorldError
from fullpipe.api import Watcher
from fullpipe.ask.programs import Program
from fullpipe.conformance import registry
from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.conformity import FAIL, NOT_APPLICABLE, PASS, Check, Conformity, Played, Result
from fullpipe.errors import mistake
from fullpipe.results.runs import Run

WORLD = "kernel"
NOT_VISIBLE = "not visible from outside"
# What a start takes away: no case judges the first seconds.
_START_S = 3.0
_RTT_MS = 40.0


@dataclass(frozen=True)
class Outside:
    """A case: the scenario besides its flows, and what is measured of its run."""

    case: Case
    duration_s: float
    path: dict[str, Any]
    measure: Callable[[Run], Measured]
    # When each flow starts.
    starts_s: tuple[float, ...] = (0.0,)

    def document(self, program: Program) -> dict[str, Any]:
        """The scenario of the case with this program."""
        said = program.document()
        label = said.pop("label", "program")
        flows = [
            {**said, "label": f"{label}-{number}", "start": f"{start} s", "start_jitter": 0}
            for number, start in enumerate(self.starts_s, start=1)
        ]
        path = {"rtt": f"{_RTT_MS:g} ms", **self.path}
        return {"name": self.case.name, "duration": f"{self.duration_s:g} s", "path": path, "flows": flows}


def conform(
    program: Program,
    cases: Sequence[str] | None = None,
    *,
    attempts: int = 3,
    watch: Watcher | None = None,
) -> Conformity:
    """Holds a program against the cases that can be judged from outside, or those of them that are named.

    Raises `WorldError` if the program fails in every case, or the kernel world cannot run.
    """
    from fullpipe import api
    from fullpipe.ask import scenario

    names = [one.case.name for one in CASES]
    inside = [case for case in registry.every() if cases is None or case.name in cases]
    for name in cases or ():
        if name not in names and name not in [case.name for case in inside]:
            raise mistake("case", name, "the name of a case", f"for a program: {', '.join(names)}")
    chosen = [one for one in CASES if cases is None or one.case.name in cases]
    results: list[Result] = []
    failures: list[WorldError] = []
    for done, one in enumerate(chosen):
        if watch is not None:
            watch(WORLD, done, len(chosen))
        if len(one.starts_s) > 1 and not ("{port}" in program.client and "{port}" in program.server):
            why = "it runs several at a time, and needs {port} in both commands"
            results.append(Result(one.case, NOT_APPLICABLE, why))
            continue
        what = scenario.from_document(one.document(program))
        try:
            ran = api.run(what, world=WORLD, attempts=attempts)
        except WorldError as error:
            failures.append(error)
            results.append(Result(one.case, FAIL, str(error), _unmet(one.case)))
            continue
        results.append(_judged(one, ran.runs[0], Played("", ran, (), repeatable=False)))
    if failures and len(failures) == sum(result.verdict != NOT_APPLICABLE for result in results):
        raise failures[0]
    results += [Result(case, NOT_APPLICABLE, NOT_VISIBLE) for case in inside]
    label = program.label or program.client.split()[0].rpartition("/")[2]
    return Conformity(label, WORLD, tuple(results))


def _judged(one: Outside, run: Run, played: Played) -> Result:
    if run.untrustworthy:
        why = f"the run cannot be trusted: {run.untrustworthy[0]}"
        return Result(one.case, NOT_APPLICABLE, why, played=(played,))
    ended = [flow["label"] for flow in run.summary["flows"] if flow["completed"]]
    if ended:
        why = f"{ended[0]} ended before the case did, after {one.duration_s:g} s; let it send for longer"
        return Result(one.case, NOT_APPLICABLE, why, played=(played,))
    measured = one.measure(run)
    checks = tuple(Check(of, measured.get(of.key), run.seed) for of in one.case.criteria)
    verdict = PASS if all(check.met for check in checks) else FAIL
    return Result(one.case, verdict, "", checks, (played,))


def _unmet(case: Case) -> tuple[Check, ...]:
    return tuple(Check(of, None, 1) for of in case.criteria)


def _rate(run: Run, flow: int, from_s: float, to_s: float) -> float:
    """Payload bits that a flow delivered per second between two times."""
    label = run.summary["flows"][flow]["label"]
    series = run.flow_series().filter(pl.col("flow") == label).sort("time_s")

    def delivered(at: float) -> float:
        until = series.filter(pl.col("time_s") <= at)
        return float(until["delivered_bytes"][-1]) if len(until) else 0.0

    return (delivered(to_s) - delivered(from_s)) * 8 / (to_s - from_s)


def _queue_ms(run: Run, from_s: float, to_s: float) -> float:
    """The median of the queue's delay between two times."""
    series = run.link_series().filter(pl.col("link") == "bottleneck")
    between = series.filter((pl.col("time_s") >= from_s) & (pl.col("time_s") <= to_s))
    median = between["queue_delay_ms"].median()
    return float(median) if isinstance(median, int | float) else math.nan


def _mbps(value: float) -> float:
    return value * 1e6


def _in_words(from_s: float, to_s: float, mbps: float) -> Callable[[Run], Measured]:
    """Goodput as a share of the link, and the median queue in round trips, between two times."""

    def measure(run: Run) -> Measured:
        return {
            "goodput": 100 * _rate(run, 0, from_s, to_s) / _mbps(mbps),
            "queue": _queue_ms(run, from_s, to_s) / _RTT_MS,
            "dropped": 100 * float(run.summary["flows"][0]["loss_ratio"] or 0.0),
        }

    return measure


def _together(from_s: float, to_s: float, mbps: float, flows: int) -> Callable[[Run], Measured]:
    """The shares of flows between two times."""

    def measure(run: Run) -> Measured:
        rates = [_rate(run, flow, from_s, to_s) for flow in range(flows)]
        total = math.fsum(rates)
        squares = math.fsum(rate * rate for rate in rates)
        return {
            "total": 100 * total / _mbps(mbps),
            "last": 100 * rates[-1] / total if total else 0.0,
            "jain": total * total / (flows * squares) if squares else 0.0,
        }

    return measure


def _goodput(low: float, source: str, says: str = "goodput as a share of the link") -> Criterion:
    return Criterion("goodput", says, low=low, unit="%", source=source)


def _queue(high: float, source: str) -> Criterion:
    return Criterion("queue", "median delay of the queue, in round trips", high=high, source=source)


def _case(name: str, title: str, source: str, about: str, *criteria: Criterion) -> Case:
    return Case(name, title, source, about, criteria, _no_play, phases=False)


def _no_play(_lab: object) -> NoReturn:
    raise NotImplementedError("a case from outside is no play")


_HEADERS = "headers take 4 % of TCP and up to 8 % of QUIC"
_TWO_BDP = "ours: a window of 2 BDP, which the draft's cwnd_gain gives, leaves one BDP to the queue"

CASES: tuple[Outside, ...] = (
    Outside(
        _case(
            "outside-clean-path",
            "A clean path is used",
            "draft 3.1",
            "20 Mbit/s, 40 ms and 1 BDP of buffer, without losses, from 3 to 12 s.",
            _goodput(80, f"ours: {_HEADERS}, and probing for the round-trip time a few more"),
        ),
        12,
        {"rate": "20 Mbit/s", "buffer": "1 bdp"},
        _in_words(_START_S, 12, 20),
    ),
    Outside(
        _case(
            "outside-deep-buffer",
            "A deep buffer is not filled",
            "draft 3.1",
            "20 Mbit/s, 40 ms and 8 BDP of buffer, from 6 to 15 s.",
            _queue(1.25, f"{_TWO_BDP}, and a quarter for what the hosts hold back"),
            _goodput(80, "ours: as on the clean path"),
        ),
        15,
        {"rate": "20 Mbit/s", "buffer": "8 bdp"},
        _in_words(6, 15, 20),
    ),
    Outside(
        _case(
            "outside-rate-up",
            "A rate that doubles is found",
            "draft 5.3.3",
            "10 Mbit/s become 20 after 8 s, at 40 ms with 1 BDP of buffer; judged from 15 to 20 s.",
            _goodput(75, "ours: two waits between probes (2 to 3 s each) are over by then"),
        ),
        20,
        {"rate": "10 Mbit/s", "buffer": "1 bdp", "changes": [{"at": "8 s", "rate": "20 Mbit/s"}]},
        _in_words(15, 20, 20),
    ),
    Outside(
        _case(
            "outside-rate-down",
            "A rate that halves leaves no queue",
            "draft 5.5.8",
            "20 Mbit/s become 10 after 8 s, at 40 ms with 4 BDP of buffer; judged from 14 to 20 s.",
            _queue(1.25, f"{_TWO_BDP}, and a quarter for what the hosts hold back"),
            _goodput(80, "ours: as on the clean path"),
        ),
        20,
        {"rate": "20 Mbit/s", "buffer": "4 bdp", "changes": [{"at": "8 s", "rate": "10 Mbit/s"}]},
        _in_words(14, 20, 10),
    ),
    Outside(
        _case(
            "outside-random-loss",
            "One packet in a hundred may be lost at random",
            "draft 5.5.9.2",
            "20 Mbit/s, 40 ms, 1 BDP of buffer and random loss of 1 %, from 3 to 15 s.",
            _goodput(65, "ours: BBRLossThresh is 2 %; some rounds exceed it by chance"),
            Criterion("dropped", "dropped packets", low=0.3, unit="%", source="ours: there were losses"),
        ),
        15,
        {"rate": "20 Mbit/s", "buffer": "1 bdp", "loss": "1 %"},
        _in_words(_START_S, 15, 20),
    ),
    Outside(
        _case(
            "outside-latecomer",
            "A second flow gets its share",
            "draft 3.1",
            "20 Mbit/s, 40 ms and 1 BDP of buffer. A second flow starts at 10 s; judged from 25 to 35 s.",
            Criterion(
                "last",
                "share of the latecomer",
                low=25,
                high=75,
                unit="%",
                source="ours: half of a fair share",
            ),
            Criterion("total", "goodput of both as a share of the link", low=80, unit="%", source="ours"),
        ),
        35,
        {"rate": "20 Mbit/s", "buffer": "1 bdp"},
        _together(25, 35, 20, 2),
        (0.0, 10.0),
    ),
    Outside(
        _case(
            "outside-four-flows",
            "Four flows do not collapse, and share",
            "draft 3.1",
            "20 Mbit/s, 40 ms and 1 BDP of buffer. Four flows start together; judged from 10 to 25 s.",
            Criterion("total", "goodput of all as a share of the link", low=80, unit="%", source="ours"),
            Criterion(
                "jain",
                "Jain's index of their goodputs",
                low=0.8,
                source="ours: one of four at a third of its share",
            ),
        ),
        25,
        {"rate": "20 Mbit/s", "buffer": "1 bdp"},
        _together(10, 25, 20, 4),
        (0.0, 0.0, 0.0, 0.0),
    ),
)
