"""Fullpipe compares congestion controls on one path: simulated, and over the machine's own Linux TCP.

    import fullpipe as fp

    r = fp.compare(["bbr1", "cubic"], rate="100 Mbit/s", rtt="40 ms", buffer="1 bdp")
    r.summary     # one row a world and controller: means over seeds with 95 % confidence intervals
    r.plot()      # throughput over time, the controller's phases shaded
    r.report("report.html")

Every name is loaded when it is first used, so that `import fullpipe` costs nothing: the command line starts
at once, and the kernel world's child processes stay small and single-threaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullpipe._native import Cancelled, ScenarioError, TraceError, WorldError
    from fullpipe.agreement import Agreement
    from fullpipe.api import agree, compare, controllers, run, schema
    from fullpipe.results import Results, Run
    from fullpipe.traces import read_trace

__all__ = [
    "Agreement",
    "Cancelled",
    "Results",
    "Run",
    "ScenarioError",
    "TraceError",
    "WorldError",
    "__version__",
    "agree",
    "compare",
    "controllers",
    "read_trace",
    "run",
    "schema",
]

_HOME = {
    "agree": "fullpipe.api",
    "compare": "fullpipe.api",
    "controllers": "fullpipe.api",
    "run": "fullpipe.api",
    "schema": "fullpipe.api",
    "Agreement": "fullpipe.agreement",
    "read_trace": "fullpipe.traces",
    "Results": "fullpipe.results",
    "Run": "fullpipe.results",
    "Cancelled": "fullpipe._native",
    "ScenarioError": "fullpipe._native",
    "TraceError": "fullpipe._native",
    "WorldError": "fullpipe._native",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("fullpipe._native").version()
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fullpipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
