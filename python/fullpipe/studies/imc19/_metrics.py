"""Slow-start thresholds that earlier runs would leave, for orders in which the paper may have made its runs.

Linux kept the slow-start threshold of a connection for the next one to the same host, by default until 5.6
(tcp_metrics.c; tcp_no_ssthresh_metrics_save in ip-sysctl). The paper's runs were between the same two hosts,
so a connection that both ends close in order hands its threshold to the next one. iperf3's do not: its server
closes while data is on the way, and the connection that is reset leaves nothing (docs/hosts.md, "Metrics of
earlier connections"; measured with iperf3 3.12). So what is judged begins without a threshold, and the orders
are in the tables of set-ups: they show what another way to end a run would have done. The paper does not give
the order of its runs, but says that "for each network configuration, we run the iPerf3 experiment 5 times"
(section 4.1). BBR begins without a threshold (tcp_bbr.c, bbr_init).

The orders are replayed with a BBR that sets a threshold when Startup ends, as 6.12's does. Early versions of
tcp_bbr.c did not; whether 4.15's did was not read.
Runs with default memory begin with the thresholds of those with the maximum.

`_orders` computes the thresholds. They are kept here, so that a study's runs do not depend on each other.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

NONE, REPETITIONS, GRID, RANDOM = "no metrics", "repetitions innermost", "grid innermost", "random order"
ORDERS = (REPETITIONS, GRID, RANDOM)
FILE = "thresholds.json"


def threshold(order: str, path: str) -> int:
    """What CUBIC begins with on a path (`place`), in segments; 0 is nothing."""
    return 0 if order == NONE else _thresholds()[order][path]


def place(rate_mbps: int, rtt_ms: int, buffer_kb: int) -> str:
    """A path as it is named in the file."""
    return f"{rate_mbps} {rtt_ms} {buffer_kb}"


@cache
def _thresholds() -> Mapping[str, Mapping[str, int]]:
    text = resources.files("fullpipe.studies.imc19").joinpath(FILE).read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, int]] = json.loads(text)
    return found
