"""Fullpipe compares congestion controls on one path: simulated, and over the machine's own Linux TCP.

    import fullpipe as fp

    r = fp.compare(["bbr1", "cubic"], rate="100 Mbit/s", rtt="40 ms", buffer="1 bdp")
    r.summary     # one row for each world and controller: means over seeds with 95 % confidence intervals
    r.plot()      # throughput over time, with the controller's phases shaded
    r.report("report.html")

Every name is loaded on first use, so that `import fullpipe` is cheap: the command line starts at once, and
the kernel world's child processes stay small and single-threaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullpipe._native import Cancelled, RecordingError, ScenarioError, WorldError
    from fullpipe.agreement import Agreement
    from fullpipe.api import agree, compare, controllers, run, schema
    from fullpipe.errors import OutputError
    from fullpipe.recordings import read_recording
    from fullpipe.results import Results, Run

__all__ = [
    "Agreement",
    "Cancelled",
    "OutputError",
    "RecordingError",
    "Results",
    "Run",
    "ScenarioError",
    "WorldError",
    "__version__",
    "agree",
    "compare",
    "controllers",
    "read_recording",
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
    "OutputError": "fullpipe.errors",
    "read_recording": "fullpipe.recordings",
    # Former names, which still work.
    "read_trace": "fullpipe.recordings",
    "Results": "fullpipe.results",
    "Run": "fullpipe.results",
    "Cancelled": "fullpipe._native",
    "ScenarioError": "fullpipe._native",
    "TraceError": "fullpipe._native",
    "RecordingError": "fullpipe._native",
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
