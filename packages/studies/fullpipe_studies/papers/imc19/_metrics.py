"""Slow-start thresholds that earlier runs would leave, for orders in which the paper may have made its runs.

Linux kept the slow-start threshold of a connection for the next one to the same host, by default until 5.6
(tcp_metrics.c; tcp_no_ssthresh_metrics_save in ip-sysctl). The paper's runs were between the same two hosts,
so a connection that both ends close in order hands its threshold to the next one. iperf3's do not: its server
closes while data is on the way, and the connection that is reset leaves nothing (docs/explanation/hosts.md,
"Metrics of earlier connections"; measured with iperf3 3.12). So what is judged begins without a threshold,
and the orders are in the tables of set-ups: they show what another way to end a run would have done. The
paper does not give the order of its runs, but says that "for each network configuration, we run the iPerf3
experiment 5 times" (section 4.1). BBR begins without a threshold (tcp_bbr.c, bbr_init).

The orders are replayed with a BBR that sets a threshold when Startup ends, as 6.12's does. Early versions of
tcp_bbr.c did not; whether 4.15's did was not read. The replayed runs have the maximum memory, last 30 s and
are on the judged test bed; runs with default memory have no orders. Only the threshold of an entry is passed
on, neither its RTT nor its reordering.

`_orders` computes the thresholds. They are kept here, so that a study's runs do not depend on each other.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from fullpipe._native import ScenarioError
from fullpipe.errors import stated

NONE, REPETITIONS, GRID, RANDOM = "no metrics", "repetitions innermost", "grid innermost", "random order"
ORDERS = (REPETITIONS, GRID, RANDOM)
FILE = "thresholds.json"


def begun(order: str, controller: str, path: str) -> int:
    """What a controller begins with on a path (`place`), in segments; 0 is nothing.

    Raises:
        ValueError: No thresholds were replayed for that controller.
        ScenarioError: The file of thresholds is damaged.
    """
    if order == NONE or controller.partition(":")[0] == "bbr1":
        return 0
    if controller != "cubic":
        raise ValueError(f"no thresholds were replayed for {controller}: make them with `_orders`")
    return threshold(order, path)


def threshold(order: str, path: str) -> int:
    """What CUBIC begins with on a path (`place`), in segments; 0 is nothing.

    Raises:
        ScenarioError: The file of thresholds is damaged.
    """
    if order == NONE:
        return 0
    left = _thresholds()[order].get(path)
    if left is None:
        raise _damaged(f"it has no path {path!r} of {order!r}")
    return left


def place(rate_mbps: int, rtt_ms: int, buffer_kb: int) -> str:
    """A path as it is named in the file."""
    return f"{rate_mbps} {rtt_ms} {buffer_kb}"


@cache
def _thresholds() -> Mapping[str, Mapping[str, int]]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(str(error)) from None
    for order in ORDERS:
        by_path = found.get(order) if isinstance(found, dict) else None
        if not isinstance(by_path, dict):
            raise _damaged(f"it has no paths of {order!r}")
        for path, left in by_path.items():
            if not isinstance(left, int) or isinstance(left, bool) or left < 0:
                raise _damaged(f"{path!r} of {order!r} is {left!r}, which is no number of segments")
    return found  # type: ignore[no-any-return]


def _file() -> Traversable:
    return resources.files("fullpipe_studies.papers.imc19").joinpath(FILE)


def _damaged(how: str) -> ScenarioError:
    fix = "install Fullpipe again, or make it again with `python -m fullpipe_studies.papers.imc19._orders`"
    return stated("thresholds", FILE, f"{_file()} is damaged: {how}; {fix}", "slow-start thresholds", fix)
