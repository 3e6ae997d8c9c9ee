"""What a world is: anything that turns a scenario's alternative and a seed into a run's record."""

import contextlib
import math
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import fullpipe._native as _native
from fullpipe import plugins
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.scenario import controllers, programs
from fullpipe.scenario.scenario import Alternative

if TYPE_CHECKING:
    from fullpipe.measures.run import Run

# Wall time of a simulated second, about. Only estimates use it.
_VIRTUAL_COST = 0.002
_PACKET_BYTES = 1500
# What a path without a rate limit is assumed to carry, bit/s.
_UNLIMITED_BPS = 1e8
# Where the modules of built-in worlds are.
_BUILT_IN = "fullpipe.runs.worlds."


class Stop:
    """Ends the runs that were given it, from any thread."""

    def __init__(self) -> None:
        # For runs in the native half, which looks at it by itself.
        self.native = _native.Cancel()
        self.is_set = False
        self._parts: list[Stop] = []

    def set(self) -> None:
        """Ends them soon."""
        self.is_set = True
        self.native.set()
        for part in list(self._parts):
            part.set()

    @contextlib.contextmanager
    def within(self, limit_s: float) -> "Iterator[Stop]":
        """A stop for one run, which is also set after so many seconds of real time."""
        part = Stop()
        self._parts.append(part)
        timer = threading.Timer(limit_s, part.set) if math.isfinite(limit_s) else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        # This one may have been set before it knew the part.
        if self.is_set:
            part.set()
        try:
            yield part
        finally:
            if timer is not None:
                timer.cancel()
            self._parts.remove(part)

    def check(self) -> None:
        """Raises `Cancelled` after `set`. A run in Python calls it now and then."""
        if self.is_set:
            raise _native.Cancelled

    def checked_by(self, progress: Progress) -> Progress:
        """The same progress, which also raises `Cancelled` after `set`."""

        def tick(done: float) -> None:
            self.check()
            progress(done)

        return tick


class World(Protocol):
    """A world. A subclass defines `name`, `build` and `run`; the rest has defaults for virtual time.

    A world computes no measure: it fills the record that every world fills (see `results.runs.Run`).
    """

    # Its name in options, addresses, columns and file names: letters, digits, "-" and "_".
    name: str

    # What people read.

    @property
    def title(self) -> str:
        """Its name in figures and reports, within a sentence: "Linux kernel"."""
        return self.name

    @property
    def short(self) -> str:
        """Its name before a noun and above a column: "kernel", as in "3 kernel runs"."""
        return self.name

    @property
    def place(self) -> str:
        """Its name after "in the": "kernel world"."""
        return f"{self.name} world"

    @property
    def noun(self) -> str:
        """What its runs of the same alternative are called."""
        return "seed" if self.deterministic else "repetition"

    # Of lines that are worlds, "#rrggbb"; by default a spare one that follows from the name.
    colour: str = ""
    # Of bars that have a controller's colour.
    opacity: float = 0.7

    # How it runs.

    # Whether a run takes as long as the scenario says. Then nothing of another world runs at the same time,
    # and claims may have smaller grids for it.
    wall_time: bool = False
    # Whether its hosts are real: `hosts.model` says nothing about them, and none begins with what it is told.
    real_hosts: bool = False
    # Whether a seed always gives the same record. If not, its runs are counted by `--repetitions` instead of
    # `--seeds`, and a run that says that it is untrustworthy is tried again.
    deterministic: bool = True
    # Whether other machines with the same build may run it.
    on_clusters: bool = False
    # Whether it runs flows that are programs (`ask.programs`).
    runs_programs: bool = False
    # Whether it writes the logs that a job asks for (`Job.logs`).
    writes_logs: bool = False
    # Whether these may be captures (`Logs.pcap`), and not only qlogs.
    writes_pcap: bool = True
    # How many seeds or repetitions a comparison has by default.
    runs: int = 1

    @abstractmethod
    def build(self) -> str:
        """A fingerprint of the code that decides its runs. A stored run is reused only if it is the same."""
        ...

    def surroundings(self) -> Mapping[str, str]:
        """What decides its runs besides the scenario, the seed and the build, e.g. the kernel's release."""
        return {}

    def versions(self) -> str:
        """What runs its jobs besides Fullpipe, with versions, e.g. "noq-proto 1.4.0"; empty if nothing does.

        Raises `WorldError` if that cannot be told here.
        """
        return ""

    def refuses(self, alternative: Alternative) -> str | None:
        """Why it cannot run an alternative, as far as that is known without a run: a sentence with a fix.

        By default, that a controller is one that only QUIC stacks have.
        """
        texts = controllers.of_stacks(alternative.spec_json)
        return f"only the world quic runs {texts[0]}; choose --world quic" if texts else None

    def ready(self) -> None:
        """Raises `WorldError` if it cannot run on this machine. Called before the runs of a sweep."""
        return None

    def checks(self) -> Sequence[Mapping[str, Any]]:
        """For `fullpipe doctor`: what it needs of this machine, each with name, ok, found and fix."""
        return ()

    def controllers(self) -> Sequence[Mapping[str, Any]]:
        """Controllers that only it has, each with the keys of `fullpipe controllers --json`."""
        return ()

    def cost_s(self, job: Job, cores: int) -> float:
        """How long a run occupies a core, or in wall time the machine, in seconds.

        Orders the runs of a sweep, sizes a cluster's batches, and is what people are told beforehand. Called
        for every run: must take microseconds, and be right to a factor.
        """
        del cores
        return job.alternative.duration_s * _VIRTUAL_COST

    def fits(self, job: Job, running: Sequence[Job], cores: int) -> bool:
        """In wall time: whether a run may start next to those of this world that are running.

        In virtual time, every core runs one.
        """
        del job
        return len(running) < cores

    @abstractmethod
    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> "Run":
        """Runs one job on the calling thread.

        The answer lists the flows in the scenario's order. May report the part that is done. Raises
        `Cancelled` soon after `stop` is set, `WorldError` if it cannot run the job here, and `ScenarioError`
        if nobody could.
        """
        ...


def refusal(world: World, alternative: Alternative) -> str | None:
    """Why a world cannot run an alternative, as far as that is known without a run: a sentence with a fix."""
    if not getattr(world, "runs_programs", False):
        reason = programs.refused(alternative.spec_json, world.place)
        if reason is not None:
            return reason
    return world.refuses(alternative)


def run_one(world: World, job: Job, stop: Stop, progress: Progress = ignore_progress) -> "Run":
    """Runs one job in a world, or raises the `WorldError` that says why the world refuses it.

    The answer of a world that is not built in is checked. What is no error, e.g. `SystemExit`, becomes one.
    """
    try:
        if (reason := refusal(world, job.alternative)) is not None:
            raise _native.WorldError(reason)
        if job.logs is not None and not world.writes_logs:
            raise _native.WorldError(f"the {world.place} writes no logs of packets; leave out qlog and pcap")
        if job.logs is not None and job.logs.pcap is not None and not getattr(world, "writes_pcap", True):
            raise _native.WorldError(f"the {world.place} writes no captures; leave out pcap, and choose qlog")
        run = world.run(job, stop, progress)
        if type(world).__module__.startswith(_BUILT_IN):
            return run
        from fullpipe.runs.worlds import answer

        return answer.checked(world.name, job, run)
    except BaseException as error:
        # A broken invariant of the native half says so itself.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise
        if plugins.is_interrupt(error):
            raise
        raise _native.WorldError(f"{world.name}: the run raised {plugins.described(error)}") from error


def most_packets(job: Job) -> float:
    """The packets that the path of a job can carry at most, or that its applications send at most."""
    seconds = job.alternative.duration_s
    carried = (job.rate_bps if math.isfinite(job.rate_bps) else _UNLIMITED_BPS) * seconds / 8
    return min(carried, _offered(job.alternative)) / _PACKET_BYTES


@lru_cache(maxsize=16)
def _offered(alternative: Alternative) -> float:
    """The most bytes that its applications send. It may have many flows: all its seeds share the sum."""
    flows = alternative.spec["flows"]
    return math.fsum(_offered_bytes(flow["workload"], alternative.duration_s) for flow in flows)


def _offered_bytes(workload: dict[str, Any], seconds: float) -> float:
    """The most bytes that an application sends; infinite if only the path limits it."""
    match workload["kind"]:
        case "finite":
            return float(workload["size_bytes"])
        case "script":
            return math.fsum(one["size_bytes"] for one in workload["transfers"])
        case "bursts":
            return float(workload["size_bytes"] * (1 + seconds * 1e9 // workload["every_ns"]))
        case "media":
            return float(workload["frame_bytes"] * (1 + seconds * 1e9 // workload["every_ns"]))
        case "video":
            played = (seconds * 1e9 + workload["buffer_ns"]) / workload["chunk_ns"]
            return float(workload["chunk_bytes"] * (1 + played))
    return math.inf
