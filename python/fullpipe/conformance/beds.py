"""The worlds on which cases are played, as beds. A world whose runs can be advanced step by step is one more line here."""

from collections.abc import Mapping
from typing import Any

from fullpipe.conformance.stage import Bed, Opener
from fullpipe.results.runs import Run
from fullpipe.simulation import Simulation

_HEADERS_BYTES = 52  # IP, and TCP with time stamps.
_MTU_BYTES = 1500


class Simulated:
    """A run of the simulator."""

    payload_share = (_MTU_BYTES - _HEADERS_BYTES) / _MTU_BYTES

    def __init__(self, document: Mapping[str, Any], seed: int) -> None:
        self._simulation = Simulation(document, seed=seed)

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

    def finish(self) -> Run:
        """Ends it, and returns its record."""
        return self._simulation.finish()


def simulated(document: Mapping[str, Any], seed: int) -> Bed:
    """Opens a scenario in the simulator."""
    return Simulated(document, seed)


BEDS: dict[str, Opener] = {"sim": simulated}
