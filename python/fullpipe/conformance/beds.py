"""Where cases are played: the worlds whose runs can be advanced step by step, and the bench of the laws."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fullpipe import _native
from fullpipe.api import load
from fullpipe.ask.controllers import Chosen
from fullpipe.conformance.case import NotApplicableError
from fullpipe.conformance.stage import Bed, Opener
from fullpipe.results.runs import Runs
from fullpipe.simulation import Simulation

_HEADERS_BYTES = 52  # IP, and TCP with time stamps.
_MTU_BYTES = 1500


class Simulated:
    """A run of the simulator."""

    payload_share = (_MTU_BYTES - _HEADERS_BYTES) / _MTU_BYTES

    def __init__(self, document: Mapping[str, Any], seed: int) -> None:
        self._scenario = load(document)
        self._simulation = Simulation(self._scenario, seed=seed)

    def advance(self, seconds: float) -> bool:
        """Runs for a time; whether it goes on."""
        return self._simulation.advance(seconds)

    def flow(self) -> Any:
        """The flow as it is now."""
        return self._simulation.flows[0]

    def change(self, **amounts: str) -> None:
        """Changes the path now."""
        self._simulation.path.change(**amounts)

    def dropped(self) -> int:
        """Packets that queues have dropped."""
        return sum(queue.dropped_packets for queue in self._simulation.queues)

    def queued_bytes(self) -> int:
        """What waits in queues now."""
        return sum(queue.backlog_bytes for queue in self._simulation.queues)

    def record(self) -> Runs:
        """Ends it, and returns its record."""
        ended_ns = round(self._simulation.now * 1e9)
        run = self._simulation.finish()
        # No longer than it was played.
        spec = {**run.alternative.spec, "duration_ns": ended_ns}
        alternative = replace(run.alternative, spec_json=json.dumps(spec))
        scenario = replace(self._scenario, alternatives=(alternative,))
        return Runs(scenario, [replace(run, alternative=alternative)])


def _simulated(document: Mapping[str, Any], seed: int) -> Bed:
    return Simulated(document, seed)


# A world is one more line.
BEDS: dict[str, Opener] = {"sim": _simulated}

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
    brings: Callable[[], Any] | None = None
    if alternative.own:
        if law in _OF_BUILT_IN:
            raise NotApplicableError("a class in Python does not say whether it answers delay")
        own = alternative.own[0]

        def brings() -> Any:
            return own.plug(0)

    return _native.law(law, alternative.spec_json, brings)
