"""The same TCP flows in the simulator, on the measured path.

A measured flow is one draw of chance, so it is compared with the range of several seeds, and something more.
"""

from dataclasses import dataclass
from pathlib import Path

from fullpipe import api
from fullpipe._native import ScenarioError
from fullpipe.measures.measures import BY_NAME, Summary, known
from fullpipe.probe import path_file
from fullpipe.probe.analysis.estimate import Estimates
from fullpipe.probe.flows import TcpFlow
from fullpipe.scenario import scenario
from fullpipe.text import joined

# The kernel's names of controllers that have another one here.
_NAMES = {"bbr": "bbr1"}
_SEEDS = 10
# How far outside of the simulated range a flow may be.
_GOODPUT, _RTT, _RETRANSMISSIONS = 0.1, 0.1, 0.5
_FEW = 5


@dataclass(frozen=True)
class Compared:
    """A measure, of the flow and of its simulations: least, mean and most."""

    measured: float
    least: float
    mean: float
    most: float
    off: bool


@dataclass(frozen=True)
class Checked:
    """A flow and its simulations."""

    flow: TcpFlow
    goodput_mbps: Compared
    rtt_ms: Compared
    retransmissions: Compared
    # Which part of the model misses; empty if none does.
    misses: str


def validate(
    found: Estimates, flows: list[TcpFlow], mtu: int, folder: Path
) -> tuple[list[Checked], list[str]]:
    """Each flow beside its simulation, and sentences on those that could not be simulated."""
    checked: list[Checked] = []
    notes: list[str] = []
    for flow in flows:
        document = {
            "name": "validation",
            "duration": f"{flow.seconds:.3f} s",
            "path": path_file.document(found, swapped=flow.direction == "back"),
            "hosts": {"model": "linux", "mtu": mtu},
            "flows": [{"controller": _NAMES.get(flow.controller, flow.controller)}],
        }
        try:
            results = api.run(scenario.from_document(document, folder, code=False), seeds=_SEEDS)
        except ScenarioError as error:
            notes.append(f"TCP {flow.controller} {flow.direction} could not be simulated: {error}")
            continue
        checked.append(_compare(flow, [run.summary for run in results.runs]))
    return checked, notes


def _compare(flow: TcpFlow, summaries: list[Summary]) -> Checked:
    def of(measure: str, measured: float, factor: float, slack: float, few: float = 0.0) -> Compared:
        found = known([BY_NAME[measure].take(one) for one in summaries])
        assert found is not None, "each flow has these measures"
        least, mean, most = (value * factor for value in (found.least, found.mean, found.most))
        off = not least * (1 - slack) - few <= measured <= most * (1 + slack) + few
        return Compared(measured, least, mean, most, off)

    goodput = of("goodput_bps", flow.goodput_bps / 1e6, 1e-6, _GOODPUT)
    rtt = of("rtt_mean_ms", flow.rtt_ms, 1.0, _RTT, 0.5)
    again = of("retransmits", flow.retransmissions, 1.0, _RETRANSMISSIONS, _FEW)
    return Checked(flow, goodput, rtt, again, _part(goodput, rtt, again))


def _part(goodput: Compared, rtt: Compared, again: Compared) -> str:
    """Which part of the model explains a miss."""
    parts = []
    if rtt.off:
        parts.append("the queue (its size or discipline)")
    if again.off:
        parts.append("the random loss" if not rtt.off else "what is lost")
    if goodput.off and not parts:
        parts.append("the rate, or what the hosts themselves allow")
    return joined(parts)
