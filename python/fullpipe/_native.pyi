"""The native half of Fullpipe. Private: use the names in `fullpipe`."""

from typing import final

__all__ = [
    "Cancel",
    "Cancelled",
    "RecordingError",
    "ScenarioError",
    "TraceError",
    "WorldError",
    "build",
    "controllers",
    "file_kind",
    "kernel_doctor",
    "kernel_probe",
    "kernel_record",
    "kernel_run",
    "line_of",
    "path_facts",
    "read_capture",
    "read_document",
    "read_parquet",
    "replay",
    "resolve",
    "resolve_file",
    "schema",
    "shell",
    "simulate",
    "version",
]

class ScenarioError(ValueError):
    """What a user said cannot be run. `str()` is one sentence: field, given, expected, how to fix it."""

    field: str
    given: str
    expected: str
    fix: str
    file: str  # Empty where the document is no file.
    line: int | None  # In that file or document, from 1.

class WorldError(RuntimeError):
    """A world could not run, e.g. for want of permission. `str()` says what was attempted and the fix."""

    fix: str

class RecordingError(ValueError):
    """A file is no recording, packet capture or Parquet file that can be read. `str()` says what is wrong."""

TraceError = RecordingError

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

def resolve(document: str, format: str, base_dir: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Resolves a document ("toml" or "json"): itself in JSON; label and spec in JSON of each alternative.

    A scenario that compares nothing has one. Paths of delivery traces are relative to base_dir.
    """

def resolve_file(path: str) -> tuple[str, list[tuple[str, str]]]:
    """The same of a scenario file. Trace paths are relative to its folder; errors name file and line."""

def read_document(path: str, field: str, expected: str) -> tuple[str, str]:
    """Reads a document of any shape, TOML or JSON by its name: its text, and itself in JSON.

    An error names `field` and what is `expected`, or the file and the place in it.
    """

def line_of(text: str, path: str, field: str) -> int | None:
    """The line, from 1, of a field such as `cells[0].rate` in the text of a document read from `path`."""

def simulate(spec_json: str, seed: int, cancel: Cancel | None = None) -> tuple[str, bytes, bytes]:
    """Runs a spec in the simulator without the GIL: summary JSON, flow series and link series as Parquet."""

def kernel_run(spec_json: str, seed: int) -> tuple[str, bytes, bytes]:
    """Runs a spec over Linux TCP. Only in a fresh single-threaded process: it enters namespaces."""

def kernel_record(spec_json: str, seed: int, algorithm: str) -> tuple[str, bytes]:
    """Runs a spec over Linux TCP and records the calls of "bbr" or "cubic": summary JSON and the recording.

    Only in a fresh single-threaded process, as root.
    """

def kernel_probe(spec_json: str, seed: int, probe_json: str) -> tuple[str, bytes]:
    """Sends numbered datagrams over the forward path: measures as JSON; four 64-bit integers a datagram.

    These are when it was sent, arrived and should have arrived (nanoseconds, -1 for never), and whether it
    should have. Only in a fresh single-threaded process.
    """

def replay(path: str) -> str:
    """Replays a recording without the GIL: JSON with calls, the first difference and the branches reached."""

def read_capture(path: str) -> tuple[str, bytes]:
    """Reads a pcap or pcapng file: what it holds as JSON; four unsigned 64-bit integers a transfer.

    Flow, start and pause in nanoseconds, bytes; in this machine's byte order.
    """

def file_kind(path: str) -> tuple[str, str, str] | None:
    """The kind of a file by its content, what to call it, and which command takes it; None if unknown."""

def read_parquet(path: str) -> bytes:
    """Reads a Parquet file into an Arrow IPC stream. Raises `RecordingError` if it is damaged."""

def path_facts(spec_json: str) -> str:
    """What the path of a spec allows, as JSON: `PathFacts` in crates/scenario/src/facts.rs."""

def kernel_doctor() -> str:
    """JSON list of what the kernel world needs: name, ok, found, fix."""

def shell(spec_json: str, command: list[str], server: list[str] | None) -> int:
    """Runs a command behind the spec's path; returns its exit code. Only in a process of its own."""
