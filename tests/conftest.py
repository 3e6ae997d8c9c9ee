"""Shared by all tests: a small comparison in the simulator, and whether the kernel world is possible here."""

import ctypes
import fcntl
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

import fullpipe as fp
import starting
from fullpipe import shipped
from fullpipe.measures.run import Run
from fullpipe.report.results import Results
from fullpipe.runs.worlds import kernel, quic_program, sim
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import Stop

# The program with the QUIC stacks, for the tests that are about it. For all others there is none, so that
# they find the same worlds wherever they run. Processes that share the tests inherit this one's environment.
_FOUND = os.environ.setdefault("FULLPIPE_TESTED_QUIC", str(shipped.quic() or ""))
QUIC = Path(_FOUND) if _FOUND else None
os.environ[shipped.QUIC_VARIABLE] = ""

SCENARIOS = Path(__file__).parent.parent / "scenarios"
# Those without programs, which the simulator does not run.
SIMULATED = [path for path in sorted(SCENARIOS.glob("*.toml")) if not path.stem.startswith("program-")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by what they need."""
    for item in items:
        needs = set(getattr(item, "fixturenames", ()))
        if needs & {"kernel_world", "own_network"}:
            item.add_marker("kernel")
        if "quic_stacks" in needs:
            item.add_marker("quic")
        # Those that compile a copy of the sources or an example.
        if hasattr(getattr(item, "module", None), "cargo"):
            item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked `full_disk` run while no file may grow beyond 100 bytes, which fails as a full disk does.

    The limit is the test's alone: pytest's own output may be a file, too.
    """
    if item.get_closest_marker("full_disk") is None:
        return (yield)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(autouse=True)
def signals_arrive() -> Generator[None]:
    """No test may leave a signal blocked: the processes that later tests start and interrupt inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.fixture
def many_files() -> Generator[None]:
    """So many files are open that the next has a number above 1024; skips where that is not allowed."""
    wanted = 1200
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < wanted:
        pytest.skip(f"needs a limit of {wanted} open files (ulimit -Hn)")
    if before[0] != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], wanted), before[1]))
    held: list[int] = []
    try:
        while not held or held[-1] <= 1024:
            held.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def quic_stacks(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program with the QUIC stacks is there, or the test is skipped."""
    if QUIC is None:
        if os.environ.get("FULLPIPE_REQUIRE_QUIC"):
            pytest.fail("there is no program fullpipe-quic, and FULLPIPE_REQUIRE_QUIC is set")
        pytest.skip("needs the program fullpipe-quic: `make quic` builds it")
    monkeypatch.setenv(quic_program.VARIABLE, str(QUIC))
    return QUIC


def filled_once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], object]) -> Path:
    """A folder of that name, which one of pytest-xdist's workers fills while the others wait for it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, filled = base / name, base / f"{name}.filled"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not filled.exists():
            folder.mkdir(exist_ok=True)
            fill(folder)
            filled.touch()
    return folder


@pytest.fixture(scope="session")
def small() -> Results:
    """Two controllers, three seeds, three simulated seconds."""
    return fp.compare(
        ["bbr1", "cubic"], rate="10 Mbit/s", rtt="20 ms", buffer="2 bdp", duration="3 s", seeds=[1, 2, 3]
    )


@pytest.fixture
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs the test where nothing is, so that what it writes is found and goes away."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own_network() -> Generator[None]:
    """The test and what it starts have a network namespace of their own, without the devices of others.

    Where that is not allowed, they stay in the machine's: without rights, a shell makes no device there.
    """
    linux = ctypes.CDLL(None, use_errno=True)
    clone_newnet = 0x40000000  # linux/sched.h
    with Path("/proc/thread-self/ns/net").open("rb") as machine:
        inside = linux.unshare(clone_newnet) == 0
        yield
        if inside and linux.setns(machine.fileno(), clone_newnet) != 0:
            pytest.exit(f"cannot leave the test's network namespace: {os.strerror(ctypes.get_errno())}")


@pytest.fixture(scope="session")
def kernel_world() -> None:
    """Skips, with the reason, where the kernel world cannot run."""
    tried = command(
        "compare", "reno", *PATH, "--duration", "300 ms", "--world", "kernel", "--repetitions", "1", "--json"
    )
    if tried.returncode != 0:
        # Where the kernel world must run, as on a machine that tests it, its absence is a failure.
        assert "FULLPIPE_REQUIRE_KERNEL" not in os.environ, tried.stderr
        pytest.skip(f"no kernel world here: {tried.stderr.strip()}")


def answer_for_the_kernel(
    monkeypatch: pytest.MonkeyPatch, changed: Callable[[Run], Run] = lambda run: run
) -> None:
    """Lets the kernel world answer with what the simulator says, or with what `changed` makes of that."""

    def run(_self: kernel.Kernel, job: Job, stop: Stop, _progress: object = None) -> Run:
        return changed(replace(sim.WORLD.run(job, stop), world="kernel"))

    monkeypatch.setattr(kernel.Kernel, "run", run)


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel world answers with what the simulator says."""
    answer_for_the_kernel(monkeypatch)


PATH = ("--rate", "10 Mbit/s", "--rtt", "20 ms")


def command(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Runs `fullpipe` as a user does."""
    return starting.run(*arguments, env={**os.environ, **more}, limit_s=600)
