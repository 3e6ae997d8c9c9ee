"""A run in the simulator as an object: advance it, look at it, change its path, finish it.

    scenario = {"path": {"rate": "20 Mbit/s", "rtt": "40 ms"}, "flows": [{"controller": "bbr1"}]}
    with fp.Simulation(scenario) as s:
        s.advance("2 s")
        s.flows[0].cwnd
        s.path.change(rate="5 Mbit/s")
        s.advance("2 s")
        run = s.finish()

docs/tutorials/simulation.md describes it.
"""

import json
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import overload

import fullpipe._native as _native
from fullpipe.api import Runnable, load
from fullpipe.errors import mistake
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import sim
from fullpipe.scenario.path_fields import Amount
from fullpipe.scenario.scenario import Alternative

_DEFAULT_DURATION = "20 s"
# Nanoseconds in 64 bits.
_LONGEST_STEP_S = 1e10


class Simulation:
    """A run of a scenario, step by step. Given as a file, a dict of the same shape, or an alternative."""

    def __init__(self, what: Runnable | Alternative, seed: int | None = None) -> None:
        alternative = what if isinstance(what, Alternative) else _only(what)
        whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
        if seed is not None and not (whole and 0 <= seed < 2**64):
            raise mistake("seed", seed, "a whole number from 0 to 2^64 - 1", "e.g. 1")
        self._alternative = alternative
        self._seed = int(alternative.spec["seed"]) if seed is None else seed
        self._native = _native.Simulation(alternative.spec_json, self._seed, sim.brought(alternative))
        self._run: Run | None = None
        self.flows = Flows(self._native)
        self.queues = Queues(self._native)
        self.path = Path(self._native)

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves it as it is: a run that is not finished is forgotten with its last reference."""

    def advance(self, duration: Amount | None = None, *, until: Amount | None = None) -> bool:
        """Runs for a time (`"100 ms"`, or seconds), or until a time of the run; to the end without either.

        What happens at the very end of the step is part of it. Returns whether the run goes on: it is over
        at the end of the scenario, or when all flows have ended. Ctrl-C stops it between two events, and it
        can go on.
        """
        if duration is not None and until is not None:
            raise mistake("until", until, "a duration or until, not both", "leave one of them out")
        return self._native.advance(_time(duration), _time(until))

    def looks(
        self, step_s: float, most: int, phase: str | None = None, is_in: bool = True
    ) -> tuple[list[tuple[object, ...]], bool]:
        """Advances by a step at most so many times; what the first flow shows behind each, and if it goes on.

        It ends behind the first step that shows the flow in `phase`, or without `is_in` out of it. A look has
        the fields of `fullpipe.conformance.stage.Seen`.
        """
        if not 1e-9 <= step_s <= _LONGEST_STEP_S:
            raise mistake("step_s", step_s, "seconds, at least a nanosecond", "e.g. 0.01")
        if most < 0:
            raise mistake("most", most, "a number of steps", "e.g. 100")
        return self._native.looks(round(step_s * 1e9), most, phase, is_in)

    @property
    def now(self) -> float:
        """How far the run has come, in seconds."""
        return self._native.times_ns()[0] / 1e9

    @property
    def end(self) -> float:
        """When it ends at the latest, in seconds."""
        return self._native.times_ns()[1] / 1e9

    @property
    def running(self) -> bool:
        """Whether advancing it changes something."""
        return self._run is None and self._native.runs()

    def finish(self) -> Run:
        """Ends the run where it is, and returns its record: the same kind as that of `fullpipe.run`."""
        if self._run is None:
            (summary, flows, links), spec_json = self._native.finish()
            alternative = self._alternative
            if json.loads(spec_json) != alternative.spec:
                alternative = Alternative(alternative.label, spec_json, alternative.own)
            self._run = Run.of(alternative, sim.NAME, self._seed, summary, flows, links)
        return self._run

    def __repr__(self) -> str:
        name = f"Simulation of {self._alternative.label!r}, seed {self._seed}"
        if self._run is not None:
            return f"<{name}: finished>"
        try:
            lines = [f"<{name}: {self.now:.6f} of {self.end:g} s", *map(_line, self.flows)]
        except RuntimeError as error:
            return f"<{name}: {error}>"
        lines += [
            f"  {queue.name}: {queue.backlog_bytes} bytes, {queue.dropped_packets} packets dropped"
            for queue in self.queues
        ]
        return "\n".join(lines) + ">"


class Flows(Sequence[_native.FlowNow]):
    """The flows of a simulation. Each access shows the flow as it is then."""

    def __init__(self, native: _native.Simulation) -> None:
        self._native = native

    def __len__(self) -> int:
        return self._native.flows()

    @overload
    def __getitem__(self, index: int) -> _native.FlowNow: ...
    @overload
    def __getitem__(self, index: slice) -> list[_native.FlowNow]: ...
    def __getitem__(self, index: int | slice) -> _native.FlowNow | list[_native.FlowNow]:
        if isinstance(index, slice):
            return [self._native.flow(one) for one in range(len(self))[index]]
        return self._native.flow(range(len(self))[index])

    def __repr__(self) -> str:
        return "\n".join(map(_line, self))


class Queues:
    """The queues of a simulation, by position or by name. Each access shows the queue as it is then."""

    def __init__(self, native: _native.Simulation) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native.queues())

    def __iter__(self) -> Iterator[_native.QueueNow]:
        return iter(self._native.queues())

    def __getitem__(self, key: int | str) -> _native.QueueNow:
        queues = self._native.queues()
        if isinstance(key, int):
            return queues[key]
        found = {queue.name: queue for queue in queues}
        if key not in found:
            raise mistake("queue", key, f"one of {', '.join(found)}", "choose one of these")
        return found[key]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))


class Path:
    """The path of a simulation."""

    def __init__(self, native: _native.Simulation) -> None:
        self._native = native

    def change(
        self,
        *,
        rate: Amount | None = None,
        rtt: Amount | None = None,
        delay: Amount | None = None,
        loss: Amount | None = None,
        buffer: Amount | None = None,
        element: str | None = None,
    ) -> None:
        """Changes the path now: all that is given, or nothing if some of it cannot change.

        Without `element`, these are the fields of a scenario's `path`: the bottleneck's rate and buffer, the
        loss behind it, the round-trip time. `delay` is the one-way delay towards the receivers. `element` is
        the name of a queue, or a position such as `"forward[2]"`.
        """
        self._native.change(element, _text(rate), _time(delay), _time(rtt), _text(loss), _text(buffer))


def _only(what: Runnable) -> Alternative:
    alternatives = load(_complete(what)).alternatives
    if len(alternatives) > 1:
        labels = ", ".join(one.label for one in alternatives)
        raise mistake("compare", labels, "one alternative", "pass one of `fullpipe.load(...).alternatives`")
    return alternatives[0]


def _complete(what: Runnable) -> Runnable:
    """The document with a name and a duration, which a run that is advanced step by step hardly needs."""
    if isinstance(what, dict):
        return {"name": "simulation", "duration": _DEFAULT_DURATION, **what}
    return what


def _text(amount: Amount | None) -> str | None:
    return None if amount is None else str(amount)


def _time(amount: Amount | None) -> str | None:
    """A number is seconds."""
    try:
        return f"{amount:.9f} s" if isinstance(amount, int | float) else amount
    except OverflowError:
        raise mistake("time", "a number of hundreds of digits", "seconds", "give a shorter time") from None


def _line(flow: _native.FlowNow) -> str:
    if not flow.connected:
        return f"  {flow.label}: not connected"
    rtt = "" if flow.rtt_ms is None else f", RTT {flow.rtt_ms:.1f} ms"
    rate = "" if flow.delivery_rate_bps is None else f", delivers {flow.delivery_rate_bps / 1e6:.2f} Mbit/s"
    return f"  {flow.label}: {flow.phase}, cwnd {flow.cwnd}, {flow.inflight} in flight{rtt}{rate}"
