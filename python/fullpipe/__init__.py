"""Fullpipe compares congestion controls on one path: simulated, and over the machine's own Linux TCP.

    import fullpipe as fp

    r = fp.compare(["bbr1", "cubic"], rate="100 Mbit/s", rtt="40 ms", buffer="1 bdp")
    r.summary     # one row for each world and controller: means over seeds with 95 % confidence intervals
    r.plot()      # throughput over time, with the controller's phases shaded
    r.report("report.html")

    print(fp.advise(rate="50 Mbit/s", rtt="80 ms", buffer="200 KB"))  # which one that path should run

Every name is loaded on first use, so that `import fullpipe` is cheap: the command line starts at once, and
the kernel world's child processes stay small and single-threaded.
"""

# As in `typing`, whose import takes milliseconds in which Ctrl-C would be a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fullpipe._native import Cancelled, ControllerError, RecordingError, ScenarioError, WorldError
    from fullpipe.advisor.advice import Advice
    from fullpipe.advisor.interface import advise, decision_map
    from fullpipe.advisor.map import DecisionMap
    from fullpipe.agreement.agreement import Agreement
    from fullpipe.api import agree, compare, controllers, load, run, run_in_order, schema
    from fullpipe.conformance.conformance_report import ConformanceReport
    from fullpipe.conformance.recordings import read_recording
    from fullpipe.conformance.run import conform
    from fullpipe.errors import OutputError
    from fullpipe.measures.run import Run, left_metrics
    from fullpipe.report.results import Results
    from fullpipe.scenario.controllers import Controller, Limits
    from fullpipe.scenario.programs import Program
    from fullpipe.simulation import Simulation

__all__ = [
    "Advice",
    "Agreement",
    "Cancelled",
    "ConformanceReport",
    "Controller",
    "ControllerError",
    "DecisionMap",
    "Limits",
    "OutputError",
    "Program",
    "RecordingError",
    "Results",
    "Run",
    "ScenarioError",
    "Simulation",
    "WorldError",
    "__version__",
    "advise",
    "agree",
    "compare",
    "conform",
    "controllers",
    "decision_map",
    "left_metrics",
    "load",
    "queues",
    "read_recording",
    "run",
    "run_in_order",
    "schema",
]

_HOME = {
    "Advice": "fullpipe.advisor.advice",
    "advise": "fullpipe.advisor.interface",
    "decision_map": "fullpipe.advisor.interface",
    "DecisionMap": "fullpipe.advisor.map",
    "agree": "fullpipe.api",
    "compare": "fullpipe.api",
    "controllers": "fullpipe.api",
    "conform": "fullpipe.conformance.run",
    "ConformanceReport": "fullpipe.conformance.conformance_report",
    "load": "fullpipe.api",
    "queues": "fullpipe.api",
    "Controller": "fullpipe.scenario.controllers",
    "Limits": "fullpipe.scenario.controllers",
    "Program": "fullpipe.scenario.programs",
    "ControllerError": "fullpipe._native",
    "Simulation": "fullpipe.simulation",
    "run": "fullpipe.api",
    "run_in_order": "fullpipe.api",
    "schema": "fullpipe.api",
    "Agreement": "fullpipe.agreement.agreement",
    "OutputError": "fullpipe.errors",
    "read_recording": "fullpipe.conformance.recordings",
    "Results": "fullpipe.report.results",
    "Run": "fullpipe.measures.run",
    "left_metrics": "fullpipe.measures.run",
    "Cancelled": "fullpipe._native",
    "ScenarioError": "fullpipe._native",
    "RecordingError": "fullpipe._native",
    "WorldError": "fullpipe._native",
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == "__version__":
        return import_module("fullpipe._native").version()
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fullpipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
