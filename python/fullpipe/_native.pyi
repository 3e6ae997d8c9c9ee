"""The native half of Fullpipe. Private: use the names in `fullpipe`."""

from typing import final

__all__ = [
    "Cancel",
    "Cancelled",
    "ScenarioError",
    "TraceError",
    "WorldError",
    "build",
    "controllers",
    "kernel_doctor",
    "kernel_probe",
    "kernel_record",
    "kernel_run",
    "read_capture",
    "replay",
    "resolve",
    "schema",
    "shell",
    "simulate",
    "version",
]

class ScenarioError(ValueError):
    """What a user said cannot be run. `str()` is one sentence: field, given, expected, how to mend it."""

    field: str
    given: str
    expected: str
    mend: str

class WorldError(RuntimeError):
    """A world could not run, e.g. for want of permission. `str()` says what was attempted and the mend."""

    mend: str

class TraceError(ValueError):
    """A file is no trace that can be replayed, or no packet capture. `str()` says what was found."""

class Cancelled(Exception):
    """The run was cancelled through its `Cancel`."""

@final
class Cancel:
    """Stops runs that were given it, soon after `set()`."""

    def __init__(self) -> None: ...
    def set(self) -> None: ...

def version() -> str: ...
def build(world: str) -> str:
    """What decides the runs of "sim" or "kernel": a fingerprint of the sources of that world."""

def schema() -> str:
    """JSON Schema of a scenario document."""

def controllers() -> str:
    """JSON list of controllers: name, summary, source, kernel (name in Linux or null), parameters."""

def resolve(document: str, format: str, base_dir: str | None) -> list[tuple[str, str]]:
    """The alternatives of a document ("toml" or "json"): label and resolved spec in JSON of each, in order.

    A scenario that compares nothing has one. Trace paths are relative to base_dir.
    """

def simulate(spec_json: str, seed: int, cancel: Cancel | None = None) -> tuple[str, bytes, bytes]:
    """Runs a spec in the simulator without the GIL: summary JSON, flow series and link series as Parquet."""

def kernel_run(spec_json: str, seed: int) -> tuple[str, bytes, bytes]:
    """Runs a spec over Linux TCP. Only in a fresh single-threaded process: it enters namespaces."""

def kernel_record(spec_json: str, seed: int, algorithm: str) -> tuple[str, bytes]:
    """Runs a spec over Linux TCP and records the calls of "bbr" or "cubic": summary JSON and the trace.

    Only in a fresh single-threaded process, as root.
    """

def kernel_probe(spec_json: str, seed: int, probe_json: str) -> tuple[str, bytes]:
    """Sends numbered datagrams over the forward path: measures as JSON; four 64-bit integers a datagram.

    These are when it was sent, arrived and should have arrived (nanoseconds, -1 for never), and whether it
    should have. Only in a fresh single-threaded process.
    """

def replay(path: str) -> str:
    """Replays a trace without the GIL: JSON with calls, the first difference and the branches reached."""

def read_capture(path: str) -> tuple[str, bytes]:
    """Reads a pcap or pcapng file: what it holds as JSON; four unsigned 64-bit integers a transfer.

    Flow, start and pause in nanoseconds, bytes; in this machine's byte order.
    """

def kernel_doctor() -> str:
    """JSON list of what the kernel world needs: name, ok, found, mend."""

def shell(spec_json: str, command: list[str], server: list[str] | None) -> int:
    """Runs a command behind the spec's path; returns its exit code. Only in a process of its own."""
