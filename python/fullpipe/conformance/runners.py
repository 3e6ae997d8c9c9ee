"""Where cases are played: the worlds whose runs can be advanced step by step, and the bench of the laws."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import fullpipe._native as _native
from fullpipe._native import FlowNow
from fullpipe.api import load
from fullpipe.conformance.case import NotApplicableError
from fullpipe.conformance.stage import Above, Bed, Opener, Seen, Wait
from fullpipe.measures.run import Run, Runs
from fullpipe.runs.worlds import answer, quic, quic_program, stacks
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario.controllers import Chosen, is_of_stack, of_stacks
from fullpipe.scenario.scenario import Alternative, Scenario
from fullpipe.simulation import Simulation

_HEADERS_BYTES = 52  # IP, and TCP with time stamps.
_MTU_BYTES = 1500
# A step of a case takes a program milliseconds: one that needs so many seconds of real time hangs.
_PATIENCE_S = 60.0
# Behind an adapter, each turn has a limit of its own; this one is for a stack that is far too slow.
_PATIENCE_OF_ADAPTERS_S = 600.0
_LATE = re.compile(r"does not answer within \S+ s\b")


class Simulated:
    """A run of the simulator."""

    payload_share = (_MTU_BYTES - _HEADERS_BYTES) / _MTU_BYTES
    derives_states = False
    unreported: Mapping[str, str] = MappingProxyType({})
    tells_acks = True

    def __init__(self, document: Mapping[str, Any], seed: int) -> None:
        self._scenario = load(document)
        self._simulation = Simulation(self._scenario, seed=seed)

    def steps(
        self, seconds: float, most: int, wait: Wait | Above | None = None
    ) -> tuple[Sequence[Seen], bool]:
        """Runs step by step, and looks behind each."""
        if not isinstance(wait, Above):
            looks, goes_on = self._simulation.looks(seconds, most, *(wait or ()))
            return list(map(Seen._make, looks)), goes_on
        # A call costs little in this process.
        seen: list[Seen] = []
        while True:
            more, goes_on = self.steps(seconds, 1)
            seen += more
            if len(seen) == most or not goes_on or wait.is_met(seen[-1]):
                return seen, goes_on

    def flow(self) -> Any:
        """The flow as it is now."""
        return self._simulation.flows[0]

    def change(self, **amounts: str) -> None:
        """Changes the path now."""
        self._simulation.path.change(**amounts)

    def dropped(self) -> int:
        """Packets that queues have dropped."""
        return sum(queue.dropped_packets for queue in self._simulation.queues)

    def record(self) -> Runs:
        """Ends it, and returns its record."""
        ended_ns = round(self._simulation.now * 1e9)
        return _recorded(self._scenario, self._simulation.finish(), ended_ns)


def _simulated(document: Mapping[str, Any], seed: int) -> Bed:
    return Simulated(document, seed)


# Of 1500 bytes, IPv4 and UDP have 28. The packet's header and tag have 27: a byte of flags, 8 of a
# connection's id, 2 of its number, 16 of the tag (RFC 9000 section 17.3.1, RFC 9001 section 5.3). The frame
# has 7 or 8: its type, the stream, an offset of 4, and a length if another follows (RFC 9000 section 19.8).
_DATAGRAM_BYTES = _MTU_BYTES - 28
_STREAM_BYTES = _DATAGRAM_BYTES - 27 - 7


class OverQuic:
    """A run of the QUIC world, in a process of its program.

    A stage that this world refuses makes its case not applicable.
    """

    payload_share = _STREAM_BYTES / _MTU_BYTES

    def __init__(self, document: Mapping[str, Any], seed: int) -> None:
        self._scenario = load(document)
        (self._alternative,) = self._scenario.alternatives
        self._seed = seed
        if (reason := quic.WORLD.refuses(self._alternative)) is not None:
            raise NotApplicableError(reason)
        spec_json = self._alternative.spec_json
        adapters = stacks.behind(of_stacks(spec_json))
        self._talk = quic_program.Talk(
            "play", patience_s=_PATIENCE_OF_ADAPTERS_S if adapters else _PATIENCE_S
        )
        self._states = (
            _States(tells_losses=all("lost" in one.about["tells"] for one in adapters)) if adapters else None
        )
        self.derives_states = bool(adapters)
        self.tells_acks = all("acked" in one.about["tells"] for one in adapters)
        self.unreported: Mapping[str, str] = {
            field: told
            for told, fields in _TOLD.items()
            if any(told not in one.about["tells"] for one in adapters)
            for field in fields
        }
        self._now = self._asked({"spec": spec_json, "seed": seed, **stacks.requested(spec_json)})

    def steps(
        self, seconds: float, most: int, wait: Wait | Above | None = None
    ) -> tuple[Sequence[Seen], bool]:
        """Runs step by step, and looks behind each: all in one answer of the program."""
        request: dict[str, object] = {"step_ns": round(seconds * 1e9), "steps": most}
        if isinstance(wait, Above):
            request["until_above"] = wait._asdict()
        elif wait is not None:
            request["until_in" if wait.is_in else "until_out"] = wait.phase
        self._talk.report({"look": request})
        self._now, columns = self._talk.looks(most)
        if self._states is not None:
            columns["state"] = self._states.of(columns)
        return list(map(Seen, *(columns[name] for name in Seen._fields))), bool(self._now["running"])

    def flow(self) -> Any:
        """The flow as it is now."""
        return SimpleNamespace(**{**_UNKNOWN, **self._now["flow"]})

    def change(self, **amounts: str) -> None:
        """Changes the path now."""
        self._now = self._asked({"change": amounts})

    def dropped(self) -> int:
        """Packets that queues have dropped."""
        return sum(int(queue["dropped_packets"]) for queue in self._now["queues"])

    def record(self) -> Runs:
        """Ends it, and returns its record."""
        ended_ns = int(self._now["now_ns"])
        self._talk.report({"finish": True})
        message = self._talk.record(self._alternative.spec_json)
        self._talk.close()
        run = Run.of(self._alternative, quic.NAME, self._seed, *message)
        # The program may be a developer's own.
        run = answer.checked(quic.NAME, Job(self._alternative, self._seed), run)
        return _recorded(self._scenario, run, ended_ns)

    def _asked(self, request: Mapping[str, object]) -> dict[str, Any]:
        self._talk.report(request)
        return self._talk.state()


def too_slow(controller: str, error: _native.WorldError) -> str | None:
    """Why a run was broken off, if by a limit of real time; None if the error is another."""
    late = _LATE.search(str(error))
    if late is None:
        return None
    # What the program's own error says behind it is how to build the program.
    of_adapter = stacks.behind([controller])
    who = f"stack {controller.partition(':')[0]}" if of_adapter else f"the world {quic.NAME}"
    why = str(error)[late.start() :] if str(error).startswith("stack ") else late[0]
    return f"{who} is too slow: it {why}"


# What an adapter may tell, and the fields of a `Look` that are unknown without it. Rounds end when what was
# in flight is delivered.
_TOLD = {
    "window": ("cwnd",),
    "in_flight": ("inflight", "round"),
    "srtt": ("rtt_ms",),
    "pacing_rate": ("pacing_bps",),
    "bandwidth": ("bandwidth_bps",),
    "lost": ("lost",),
    "timeouts": ("timeouts",),
}


class _States:
    """Whether a stack behind an adapter repairs losses, which no adapter tells; the world shows it as open.

    A recovery begins when more is lost, and ends when all is delivered that had been sent then (RFC 9002
    section 7.3.2, by the receiver instead of the acknowledgement), or when the stack says so by its phase.
    """

    def __init__(self, *, tells_losses: bool) -> None:
        self._tells_losses = tells_losses
        self._lost = 0
        self._ends = 0

    def of(self, columns: Mapping[str, Sequence[Any]]) -> list[str | None]:
        """The state of each look; none where the adapter does not tell losses."""
        if not self._tells_losses:
            return [None] * len(columns["lost"])
        found: list[str | None] = []
        names = ("connected", "phase", "lost", "segments_sent", "delivered_segments")
        for connected, phase, lost, sent, delivered in zip(*(columns[name] for name in names), strict=True):
            if lost > self._lost:
                self._lost, self._ends = lost, sent - lost
            repairs = phase == "recovery" or delivered < self._ends
            found.append(None if not connected else "recovery" if repairs else "open")
        return found


# What a stack may not show. The program says the rest by the names of `FlowNow`.
_UNKNOWN: dict[str, Any] = {
    **{name: None for name, one in vars(FlowNow).items() if not name.startswith("_")},
    **dict.fromkeys(("inflight", "delivered_bytes", "delivered_segments", "segments_sent"), 0),
    **dict.fromkeys(("lost", "retransmits", "timeouts"), 0),
    "connected": False,
    "completed": False,
}


def _over_quic(document: Mapping[str, Any], seed: int) -> Bed:
    return OverQuic(document, seed)


def _recorded(scenario: Scenario, run: Run, ended_ns: int) -> Runs:
    """The record of what was played, in a scenario that is no longer than that."""
    spec = {**run.alternative.spec, "duration_ns": ended_ns}
    alternative: Alternative = replace(run.alternative, spec_json=json.dumps(spec))
    return Runs(replace(scenario, alternatives=(alternative,)), [replace(run, alternative=alternative)])


# A world is one more line.
BEDS: dict[str, Opener] = {"sim": _simulated, quic.NAME: _over_quic}


def world_of(controller: Chosen) -> str:
    """Where a controller is played if nobody says where: one inside a QUIC stack runs nowhere else."""
    return quic.NAME if isinstance(controller, str) and is_of_stack(controller.strip()) else "sim"


# A law that a controller in Python cannot be held to: nothing says whether it answers delay.
_OF_BUILT_IN = ("jitter",)


def broken(controller: Chosen, law: str) -> str | None:
    """How a controller breaks a law of the crate `fullpipe-conformance`; None if it obeys."""
    document = {
        "name": "law",
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms"},
        "flows": [{"controller": controller}],
    }
    (alternative,) = load(document).alternatives
    if is_of_stack(alternative.spec["flows"][0]["controller"]):
        raise NotApplicableError("a law is about Fullpipe's own events, which a QUIC stack does not have")
    brings: Callable[[], Any] | None = None
    if alternative.own:
        if law in _OF_BUILT_IN:
            raise NotApplicableError("a class in Python does not say whether it answers delay")
        own = alternative.own[0]

        def brings() -> Any:
            return own.plug(0)

    return _native.law(law, alternative.spec_json, brings)
