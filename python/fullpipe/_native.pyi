"""The native half of Fullpipe. Private: use the names in `fullpipe`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self, TypeAlias, final

__all__ = [
    "Ack",
    "Cancel",
    "Cancelled",
    "CeMarks",
    "Config",
    "Connection",
    "ControllerError",
    "FlowNow",
    "Logs",
    "Lost",
    "ProbePlane",
    "QueueNow",
    "RateSample",
    "RecordingError",
    "RttSample",
    "ScenarioError",
    "Sent",
    "Simulation",
    "StateChange",
    "TailRepair",
    "TransmitStart",
    "Undo",
    "WindowUnused",
    "WorldError",
    "build",
    "controllers",
    "file_kind",
    "kernel_doctor",
    "kernel_load",
    "kernel_load_own",
    "kernel_loadable",
    "kernel_probe",
    "kernel_prove",
    "kernel_record",
    "kernel_run",
    "kernel_status",
    "kernel_unload",
    "law",
    "laws",
    "line_of",
    "path_facts",
    "path_options",
    "qdisc_doctor",
    "qdisc_refuses",
    "qdisc_run",
    "queues",
    "read_capture",
    "read_document",
    "read_parquet",
    "replay",
    "resolve",
    "resolve_file",
    "scenario_notes",
    "schema",
    "shell",
    "simulate",
    "simulate_with",
    "tables",
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

class ControllerError(RuntimeError):
    """A controller of the user's own raised an exception, which is the `__cause__`."""

    controller: str
    event: str  # The method, or "limits" or "phase" for an attribute.
    flow: int
    time_s: float  # Simulated.

class Cancelled(Exception):
    """The run was cancelled through its `Cancel`."""

@final
class Cancel:
    """Stops runs that were given it, soon after `set()`."""

    def __init__(self) -> None: ...
    def set(self) -> None: ...

@final
class ProbePlane:
    """One end of a path measurement's datagrams: receives until it is ended, or a limit is reached.

    Needs Linux; elsewhere, it raises `WorldError` when it is made.
    """

    def __new__(
        cls,
        sockets: Sequence[int],
        *,
        v6: bool,
        cookie: int,
        sent_bytes: int,
        received_bytes: int,
        rate_bps: float,
        seconds: float,
        records: int,
    ) -> Self: ...
    def send(
        self,
        stream: int,
        pieces: Sequence[tuple[float, int, int, bool, int]],
        *,
        echo: bool,
        rule: tuple[str, float, float],
        silence_s: float,
    ) -> tuple[bytes, str, float]:
        """Sends a stage: columns of what was sent, why it ended, and how late the latest packet was."""

    def arrived(self, stream: int) -> bytes:
        """Takes out what arrived of a stage, as columns: nanoseconds i64, number u32, ECN u8."""

    def exchanges(self) -> bytes:
        """The echoes of the latest stage of these: of each four times i64 in nanoseconds."""

    def moved(self) -> tuple[int, int]:
        """Bytes that left and that arrived."""

    def spend(self, count: int, *, line: bool) -> float | None:
        """Takes bytes that something else sends from the budget; `line`: for the control connection.

        0: they are taken. Else nothing was: seconds until the rate allows it, or None without the bytes.
        """

    def left(self) -> int:
        """Bytes that may still leave, without those of the control connection."""

    def dropped_here(self) -> int:
        """Datagrams that this machine dropped because nobody read them."""

    def end(self) -> None:
        """Ends sending and receiving."""

@final
class Config:
    """What does not change during a connection."""

    @property
    def mss(self) -> int:
        """Payload bytes of a full-sized segment."""

    @property
    def initial_cwnd(self) -> int:
        """In segments."""

    @property
    def paced(self) -> bool:
        """Whether segments leave at the pacing rate."""

@final
class Connection:
    """The connection's counters after the event's bookkeeping."""

    @property
    def now_s(self) -> float:
        """Simulated time."""

    @property
    def delivered(self) -> int:
        """Segments delivered so far, each once."""

    @property
    def delivered_time_s(self) -> float:
        """When `delivered` last grew."""

    @property
    def lost(self) -> int:
        """Segments marked lost so far."""

    @property
    def packets_out(self) -> int:
        """Segments sent and not cumulatively acknowledged."""

    @property
    def in_flight(self) -> int:
        """Segments believed in the network."""

    @property
    def srtt_s(self) -> float | None:
        """Smoothed RTT."""

    @property
    def min_rtt_s(self) -> float | None: ...
    @property
    def departure_s(self) -> float:
        """Earliest departure of the next paced burst."""

    @property
    def state(self) -> Literal["open", "disorder", "cwr", "recovery", "loss"]: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def random(self) -> int:
        """A fresh 32-bit random number of the flow."""

@final
class TransmitStart:
    """Data is about to leave and nothing is in flight."""

    @property
    def connection(self) -> Connection: ...
    @property
    def last_sent_s(self) -> float:
        """When data last left."""

    @property
    def rto_s(self) -> float:
        """The retransmission timeout."""

@final
class WindowUnused:
    """The application left the window unfilled."""

    @property
    def connection(self) -> Connection: ...
    @property
    def used(self) -> int:
        """The most segments that were out in that time."""

@final
class Sent:
    """A burst left."""

    @property
    def departure_s(self) -> float: ...
    @property
    def segments(self) -> int:
        """In the burst."""

    @property
    def prior_in_flight(self) -> int:
        """Before it."""

    @property
    def prior_packets_out(self) -> int:
        """Before it; zero after idle."""

    @property
    def retransmission(self) -> bool: ...

@final
class RttSample:
    """An ACK brought an RTT."""

    @property
    def now_s(self) -> float: ...
    @property
    def rtt_s(self) -> float: ...
    @property
    def snd_una(self) -> int:
        """SND.UNA after this ACK, in segments."""

    @property
    def snd_nxt(self) -> int:
        """In segments."""

@final
class RateSample:
    """The delivery-rate sample of an ACK."""

    @property
    def delivered(self) -> int | None:
        """Segments over the interval; None if no segment was newly delivered."""

    @property
    def interval_s(self) -> float | None:
        """None if there is no sample, or it is shorter than the minimum RTT."""

    @property
    def prior_delivered(self) -> int:
        """`Connection.delivered` when the sampled segment was sent."""

    @property
    def prior_delivered_time_s(self) -> float: ...
    @property
    def app_limited(self) -> bool:
        """The segment was sent while the application limited the sender."""

    @property
    def retransmitted(self) -> bool: ...
    @property
    def tx_in_flight(self) -> int: ...
    @property
    def lost_since_sent(self) -> int: ...

@final
class Ack:
    """An ACK was processed."""

    @property
    def now_s(self) -> float: ...
    @property
    def connection(self) -> Connection: ...
    @property
    def prior_in_flight(self) -> int: ...
    @property
    def newly_delivered(self) -> int:
        """Segments acknowledged or SACKed by it."""

    @property
    def newly_lost(self) -> int:
        """Segments marked lost by it."""

    @property
    def newly_acked(self) -> int:
        """Segments acknowledged cumulatively by it."""

    @property
    def rtt_s(self) -> float | None:
        """None if ambiguous."""

    @property
    def maybe_delayed(self) -> bool: ...
    @property
    def una_advanced(self) -> bool:
        """SND.UNA advanced."""

    @property
    def snd_una(self) -> int: ...
    @property
    def snd_nxt(self) -> int: ...
    @property
    def sample(self) -> RateSample: ...
    @property
    def cwnd_limited(self) -> bool:
        """The window limited the sender in the last round."""

    @property
    def max_packets_out(self) -> int: ...
    @property
    def may_raise_cwnd(self) -> bool:
        """Whether the window may grow on this ACK."""

    @property
    def may_answer_probe(self) -> bool:
        """It may answer a segment or the tail probe that repeated it."""

@final
class Lost:
    """A run of segments that left together was marked lost."""

    @property
    def segments(self) -> int: ...
    @property
    def new_range(self) -> bool:
        """It does not touch the run before it."""

    @property
    def tx_in_flight(self) -> int:
        """Segments in flight when it was sent."""

    @property
    def tx_delivered(self) -> int:
        """`Connection.delivered` when it was sent."""

    @property
    def tx_lost(self) -> int:
        """`Connection.lost` when it was sent."""

    @property
    def lost(self) -> int:
        """`Connection.lost` with it."""

    @property
    def app_limited(self) -> bool: ...

@final
class TailRepair:
    """A tail probe repaired a loss."""

    @property
    def now_s(self) -> float: ...
    @property
    def delivered(self) -> int:
        """`Connection.delivered`, with what this ACK delivered."""

    @property
    def segments(self) -> int: ...
    @property
    def app_limited(self) -> bool:
        """The segment was first sent while the application limited the sender."""

@final
class CeMarks:
    """What an ACK says of congestion marks."""

    @property
    def echoed(self) -> bool:
        """It echoes marks; the first echo in a window changes the state to "cwr"."""

    @property
    def segments(self) -> int:
        """Segments that it newly acknowledged or SACKed, if it echoes marks; else 0."""

    @property
    def delivered(self) -> int:
        """`Connection.delivered` with them."""

    @property
    def snd_una(self) -> int:
        """`SND.UNA` after the ACK, in segments."""

    @property
    def snd_nxt(self) -> int:
        """`SND.NXT`, in segments."""

@final
class StateChange:
    """The recovery state changed."""

    @property
    def connection(self) -> Connection:
        """Its state is the one before the change."""

    @property
    def to(self) -> Literal["open", "disorder", "cwr", "recovery", "loss"]:
        """The state after it."""

    @property
    def reduce(self) -> bool:
        """A new reduction begins."""

    @property
    def proven(self) -> bool:
        """It cannot be undone."""

    @property
    def trigger(self) -> Literal["ack", "timer"]: ...

@final
class Undo:
    """The reduction last begun was spurious."""

    @property
    def connection(self) -> Connection: ...

@final
class FlowNow:
    """A flow as it was when it was asked for. None stands for what is not known yet."""

    @property
    def label(self) -> str: ...
    @property
    def controller(self) -> str: ...
    @property
    def connected(self) -> bool: ...
    @property
    def phase(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...
    @property
    def cwnd(self) -> int | None: ...
    @property
    def ssthresh(self) -> int | None: ...
    @property
    def pacing_rate_bps(self) -> int | None: ...
    @property
    def inflight(self) -> int: ...
    @property
    def rtt_ms(self) -> float | None: ...
    @property
    def min_rtt_ms(self) -> float | None: ...
    @property
    def delivery_rate_bps(self) -> int | None: ...
    @property
    def bandwidth_bps(self) -> int | None: ...
    @property
    def delivered_bytes(self) -> int: ...
    @property
    def delivered_segments(self) -> int: ...
    @property
    def segments_sent(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def retransmits(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def transfers_ms(self) -> list[float]: ...
    @property
    def ended_s(self) -> float | None: ...
    @property
    def completed(self) -> bool: ...

@final
class QueueNow:
    """A queue as it was when it was asked for."""

    @property
    def name(self) -> str: ...
    @property
    def backlog_bytes(self) -> int: ...
    @property
    def delay_ms(self) -> float | None: ...
    @property
    def arrived_packets(self) -> int: ...
    @property
    def dropped_packets(self) -> int: ...
    @property
    def early_packets(self) -> int: ...
    @property
    def marked_packets(self) -> int: ...

@final
class Simulation:
    """A run that is advanced step by step. Use `fullpipe.Simulation`."""

    def __new__(cls, spec_json: str, seed: int, controllers: Sequence[_Brought]) -> Simulation: ...
    def advance(self, duration: str | None, until: str | None) -> bool: ...
    def looks(
        self, step_ns: int, most: int, phase: str | None = None, is_in: bool = True
    ) -> tuple[list[tuple[object, ...]], bool]: ...
    def times_ns(self) -> tuple[int, int]: ...
    def runs(self) -> bool: ...
    def flows(self) -> int: ...
    def flow(self, index: int) -> FlowNow: ...
    def queues(self) -> list[QueueNow]: ...
    def change(
        self,
        element: str | None,
        rate: str | None,
        delay: str | None,
        rtt: str | None,
        loss: str | None,
        buffer: str | None,
    ) -> None: ...
    def finish(self) -> tuple[tuple[str, bytes, bytes], str]: ...

def version() -> str: ...
def build(world: str) -> str:
    """What decides the runs of "sim" or "kernel": a fingerprint of the sources of that world."""

def path_options() -> str:
    """The keys of a path that are options and arguments, as JSON: `Option` in scenario/path.py."""

def schema() -> str:
    """JSON Schema of a scenario document."""

def controllers() -> str:
    """JSON list of controllers: name, summary, source, kernel (name in Linux or null), parameters."""

def queues() -> str:
    """JSON list of queue disciplines: name, summary, source, kernel (name in Linux or null), settings."""

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

@final
class Logs:
    """Where the packets of a run are logged: descriptors of files that are open for writing."""

    def __new__(
        cls,
        title: str,
        qlog: tuple[int, int] | None,
        pcap: int | None,
        snaplen: int,
        most: int,
        spool: int | None = None,
    ) -> Logs:
        """`qlog` are files for the current form and for the older one; no file gets over `most` packets.

        The kernel world needs `spool`, an empty file to write and read, for a qlog.
        """

    def full_at_s(self) -> float | None:
        """When the files had the most packets that they may, if they end there. After the run."""

    def missed(self) -> int:
        """How many packets are not in the files because the disk was too slow. After the run."""

def simulate(
    spec_json: str, seed: int, cancel: Cancel | None = None, logs: Logs | None = None
) -> tuple[str, bytes, bytes]:
    """Runs a spec in the simulator without the GIL: summary JSON, flow series and link series as Parquet.

    With `logs`, its packets are logged; a file that cannot be written is an `OSError`.
    """

# A flow's number, the controller's name, whether it is paced, the object, and its own methods by name.
_Brought: TypeAlias = tuple[int, str, bool, object, Mapping[str, Callable[..., object]]]

def simulate_with(
    spec_json: str,
    seed: int,
    controllers: Sequence[_Brought],
    cancel: Cancel | None = None,
    logs: Logs | None = None,
) -> tuple[str, bytes, bytes]:
    """The same for a spec whose flows have controllers of the user's own."""

def laws() -> list[str]:
    """The names of the laws of the crate fullpipe-conformance that `law` takes."""

def law(name: str, spec_json: str, brings: Callable[[], _Brought] | None = None) -> str | None:
    """How the controller of a spec's first flow breaks a law; None if it obeys.

    `brings` makes a controller in Python, once for each connection of the check.
    """

def kernel_run(spec_json: str, seed: int, logs: Logs | None = None) -> tuple[str, bytes, bytes]:
    """Runs a spec over Linux TCP. Only in a fresh single-threaded process: it enters namespaces."""

def qdisc_run(spec_json: str, seed: int, logs: Logs | None = None) -> tuple[str, bytes, bytes]:
    """The same with Linux's own queue in place of the path's first link."""

def qdisc_refuses(spec_json: str) -> str | None:
    """Why Linux's own queue cannot take the place of a spec's first link, whatever this machine has."""

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

    The JSON has `packets`, `segments`, `duration_ns`, `skipped` (pairs of a kind and its packets), `cut_off`
    and `notes`. Raises `RecordingError` for a file that is no capture or is damaged. The numbers of
    a transfer are its flow, start and pause in nanoseconds, and bytes; in this machine's byte order.
    """

def file_kind(path: str) -> tuple[str, str, str] | None:
    """The kind of a file by its content, what to call it, and which command takes it; None if unknown."""

def read_parquet(path: str) -> bytes:
    """Reads a Parquet file into an Arrow IPC stream. Raises `RecordingError` if it is damaged."""

def tables(run_json: bytes) -> tuple[bytes, bytes]:
    """Flow series and link series, as Parquet, of a run that another process told. Raises `ValueError`."""

def path_facts(spec_json: str) -> str:
    """What the path of a spec allows, as JSON: `PathFacts` in crates/scenario/src/facts.rs."""

def scenario_notes(document: str, specs_json: Sequence[str]) -> list[str]:
    """What was assumed, what the words of a document hide, and which of its settings have no effect.

    Takes the document in JSON, and the specs of its alternatives.
    """

def kernel_prove(spec_json: str, seed: int) -> str:
    """Runs a spec whose flows have one controller of ours over Linux TCP, and repeats each call: JSON.

    Only in a fresh single-threaded process, as root.
    """

def kernel_load(controller: str, name: str, as_default: bool) -> str:
    """Registers a controller of ours with this kernel, to stay: what it is, as JSON."""

def kernel_load_own(object: bytes, file_name: str, sha256: str, name: str, as_default: bool) -> str:
    """The same for a controller of the user's own: its object, that file's name and digest."""

def kernel_unload(name: str) -> str:
    """Removes what `kernel_load` registered: JSON with its connections and the default that was put back."""

def kernel_status(name: str | None = None) -> str:
    """JSON list of what is registered, or of one name: counters, and the model of each connection."""

def kernel_loadable() -> list[str]:
    """The controllers that can be registered with a kernel, as a scenario chooses them."""

def kernel_doctor() -> str:
    """JSON list of what the kernel world needs: name, ok, found, fix."""

def qdisc_doctor() -> str:
    """JSON list of what the world behind Linux's own queues needs besides: name, ok, found, fix."""

def shell(spec_json: str, command: list[str], server: list[str] | None) -> int:
    """Runs a command behind the spec's path; returns its exit code. Only in a process of its own."""
