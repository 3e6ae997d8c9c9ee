"""The kernel world: its child process, and that nothing is left behind however it ends."""

import json
import math
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import fullpipe as fp
from conftest import PATH, command
from fullpipe.runs.worlds import _kernel_child, kernel
from fullpipe.runs.worlds.job import Job, ignore_progress
from fullpipe.runs.worlds.world import Stop
from fullpipe.scenario.scenario import Alternative, from_document

JOB = Job(Alternative("x", '{"duration_ns": 1000000000}'), 1)
TOKEN = "FULLPIPE_TEST_TOKEN"


def blob(data: bytes) -> bytes:
    return _kernel_child.LENGTH.pack(len(data)) + data


def test_whole_answers_become_a_run() -> None:
    answers = b"".join(map(blob, (b'{"ok": true}', b'{"flows": []}', b"flows", b"links")))
    run, header = kernel._result(JOB, answers, 0, "")
    assert (run.world, run.seed, run.flow_parquet, run.link_parquet) == ("kernel", 1, b"flows", b"links")
    assert header == {"ok": True}


def test_errors_keep_their_kind_and_mend() -> None:
    world_error = fp.WorldError("cannot open the device")
    world_error.fix = "run as root"
    header = blob(json.dumps(_kernel_child._described(world_error)).encode())
    with pytest.raises(fp.WorldError, match="cannot open the device") as caught:
        kernel._result(JOB, header, 0, "")
    assert caught.value.fix == "run as root"


@pytest.mark.parametrize("kept", range(0, 60, 7))
def test_truncated_answers_error_quotes_child(kept: int) -> None:
    answers = b"".join(map(blob, (b'{"ok": true}', b'{"flows": []}', b"flows", b"links")))
    with pytest.raises(fp.WorldError, match="last words"):
        kernel._result(JOB, answers[:kept], -9, "first words\nlast words\n")


@pytest.mark.parametrize(
    "answers",
    [
        blob(b"hello"),
        blob(b"\xff"),
        blob(b"[" * 100_000),
        blob(b'"ok"'),
        blob(b"{" + b" " * (1 << 20) + b"}"),
        b"".join(map(blob, (b'{"ok": true}', b"{}", b"flows", b"links", b"more"))),
        # A program that writes first, and begins a blob that swallows the answers behind it.
        b"".join(map(blob, (b'{"ok": true}', b"{}", b"flows", b"links"))) + b"\0\1",
        b"".join(map(blob, (b'{"ok": true}', b"{}", b"flows", b"links"))) + blob(bytes(100))[:50],
    ],
)
def test_invalid_answers_are_one_line_error(answers: bytes) -> None:
    with pytest.raises(fp.WorldError, match=r"process sent .*; nothing of it was used") as caught:
        kernel._result(JOB, answers, 0, "")
    assert "\n" not in str(caught.value)


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_MOST_BYTES", 10)
    with pytest.raises(fp.WorldError, match="process sent more than"):
        kernel._ask({"doctor": True}, 1.0, ignore_progress)


def test_child_past_its_deadline_is_killed() -> None:
    with pytest.raises(fp.WorldError, match="had not ended after 0 s, and was killed"):
        kernel._ask({"doctor": True}, 1.0, ignore_progress, most_s=0.0)


def test_only_programs_have_deadline() -> None:
    def patience_s(**flow: object) -> float:
        document = {"duration": "8 s", "path": {"rate": "10 Mbit/s", "rtt": "20 ms"}, "flows": [flow]}
        return kernel._patience_s(from_document(document).alternatives[0])

    assert patience_s(client="a {port}", server="b {port}", count=2) == 8 + 2 * 10 + 30
    assert patience_s(controller="reno") == math.inf


def test_orphaned_child_exits_without_running() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "fullpipe.runs.worlds._kernel_child"],
        stdin=subprocess.DEVNULL,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1


def test_broken_request_returns_error() -> None:
    with pytest.raises((fp.ScenarioError, fp.WorldError)):
        kernel.WORLD.run(Job(Alternative("broken", '{"duration_ns": 1000000000}'), 1), Stop())


@pytest.mark.usefixtures("many_files")
def test_many_open_files_allow_child_answers() -> None:
    with pytest.raises((fp.ScenarioError, fp.WorldError)):
        kernel.WORLD.run(Job(Alternative("broken", '{"duration_ns": 1000000000}'), 1), Stop())


@pytest.mark.usefixtures("kernel_world")
def test_kernel_run_reports_emulator_lateness() -> None:
    results = fp.compare(
        ["cubic"], rate="10 Mbit/s", rtt="20 ms", duration="2 s", world="all", seeds=1, repetitions=1
    )
    assert results.worlds == ["sim", "kernel"]
    summary = results.runs[1].summary
    assert summary["provenance"]["kernel"]
    assert summary["provenance"]["lateness"]["packets"] > 0
    processor = summary["provenance"]["processor"]
    assert processor["processors"] >= 1 and processor["stolen_ns"] >= 0
    if Path("/proc/self/schedstat").exists():
        assert all(ran > 0 for ran in processor["ran_ns"]) and len(processor["waited_ns"]) == 2
    assert "processor" not in results.runs[0].summary["provenance"]
    assert summary["provenance"]["sysctls"]
    assert 5e6 < summary["flows"][0]["goodput_bps"] < 10e6
    assert results.runs[1].flow_series().height > 0
    assert results.runs[0].flow_series().columns == results.runs[1].flow_series().columns


def disturbed(run: fp.Run) -> bool:
    """Whether the machine was too busy for a run of the kernel world, however often it was tried."""
    return bool(run.summary["provenance"]["untrustworthy"])


@pytest.mark.usefixtures("kernel_world")
def test_pausing_application_matches_across_worlds() -> None:
    document = {
        "name": "pauses",
        "duration": "3 s",
        "path": {"rate": "20 Mbit/s", "rtt": "20 ms"},
        "flows": [{"controller": "cubic", "bursts": {"size": "100 KB", "every": "500 ms"}}],
    }
    results = fp.run(document, world="all")
    # Six writes of 70 whole segments.
    assert [run.summary["flows"][0]["delivered_bytes"] for run in results.runs] == [6 * 70 * 1448] * 2
    for run in results.runs:
        took = run.summary["flows"][0]["transfers_ms"]
        assert len(took) == 6
        # 42 ms of sending at least, and half a round trip. A busy machine only takes longer.
        assert min(took) > 50 and (max(took) < 450 or disturbed(run)), took


@pytest.mark.usefixtures("kernel_world")
def test_dependent_transfers_match_across_worlds() -> None:
    script = [{"size": "1 B"}, {"size": "100001 B", "pause": "200 ms"}, {"size": "1449 B"}]
    document = {
        "name": "asking",
        "duration": "6 s",
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp"},
        "flows": [
            {"controller": "cubic", "label": "page", "requests": {"size": "20 KB", "pause": "100 ms"}},
            {"controller": "bbr1", "label": "script", "transfers": script},
            {
                "controller": "reno",
                "label": "video",
                "video": {"rate": "4 Mbit/s", "chunk": "500 ms", "buffer": "3 s"},
            },
        ],
    }
    results = fp.run(document, world="all")
    assert results.worlds == ["sim", "kernel"]
    for run in results.runs:
        page, script_flow, video = run.summary["flows"]
        # At least a round trip each after the first, and 8 ms on the link.
        assert min(page["transfers_ms"][1:]) > 48, run.world
        if disturbed(run):
            continue
        # Without the others an answer takes two round trips, and six seconds have room for 30 of them.
        assert 15 <= len(page["transfers_ms"]) <= 40, run.world
        assert script_flow["completed"], run.world
        assert script_flow["delivered_bytes"] == 1 + 100_001 + 1449
        assert len(script_flow["transfers_ms"]) == 3
        # What is not a transfer is the pause.
        assert script_flow["completion_ms"] - sum(script_flow["transfers_ms"]) == pytest.approx(200, abs=60)
        # Six chunks of 250 KB at once, then one every 500 ms: 16 or 17 after 6 s.
        assert 13 <= len(video["transfers_ms"]) <= 18, run.world
        assert video["delivered_bytes"] >= 250_000 * len(video["transfers_ms"])
        assert video["rebuffer_ms"] < 500, run.world


@pytest.mark.usefixtures("kernel_world")
def test_agree_runs_both_worlds(in_empty_folder: Path) -> None:
    Path("s.toml").write_text(
        'compare = ["cubic"]\nduration = "2 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n', encoding="utf-8"
    )
    done = command("agree", "s.toml", "--seeds", "2", "--repetitions", "1")
    assert done.returncode in (0, 1), done.stderr
    # On a busy machine the kernel run may be untrustworthy; there is no verdict then.
    judged = "Goodput" in done.stdout and "agree" in done.stdout
    assert judged or "Inconclusive" in done.stdout


@pytest.mark.usefixtures("kernel_world", "own_network")
@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5])
def test_sigkill_at_any_moment_leaves_nothing(after_s: float) -> None:
    end_abruptly(after_s, signal.SIGKILL)


@pytest.mark.usefixtures("kernel_world", "own_network")
@pytest.mark.parametrize("after_s", [0.5, 2.0])
def test_an_interrupt_leaves_nothing(after_s: float) -> None:
    end_abruptly(after_s, signal.SIGINT)


@pytest.mark.usefixtures("kernel_world", "own_network")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_ended_emulator_check_leaves_nothing_behind(how: signal.Signals) -> None:
    end_abruptly(2.5, how, "kernel", "check", "--quick")


COMPARISON = ("compare", "bbr1", "cubic", *PATH, "--duration", "20 s", "--world", "kernel", "--json")


def end_abruptly(after_s: float, how: signal.Signals, *arguments: str) -> None:
    """Starts a kernel comparison, or another command, ends it after a while, and looks for what it left.

    What others do on the machine does not matter: processes are found by a token, and devices are those of
    the test's own network namespace. Network namespaces end with their processes, unless they are mounted.
    Mounts are looked for while the processes run: later, the kernel gives the same numbers to others.
    """
    token = uuid.uuid4().hex
    devices = set(socket.if_nameindex())
    running = subprocess.Popen(
        [sys.executable, "-m", "fullpipe", *(arguments or COMPARISON)],
        env={**os.environ, TOKEN: token},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline:
        assert not mounted(namespaces_of(processes(token)) - namespaces_of([os.getpid()]))
        time.sleep(0.02)
    running.send_signal(how)
    running.wait(timeout=15)
    within(15, lambda: not processes(token), lambda: f"processes: {processes(token)}")
    assert set(socket.if_nameindex()) <= devices


def processes(token: str) -> list[int]:
    """Processes that carry the token in their environment, zombies excluded."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if f"{TOKEN}={token}".encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def namespaces_of(pids: list[int]) -> set[str]:
    """Network namespaces of the threads of these processes."""
    found = set()
    for pid in pids:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        for task in tasks:
            try:
                found.add(os.readlink(task / "ns/net"))  # noqa: PTH115
            except OSError:
                continue
    return found


def mounted(namespaces: set[str]) -> list[str]:
    """Mounts that keep one of these namespaces alive."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [mount for mount in mounts if " - nsfs " in mount and namespaces & set(mount.split())]


def within(seconds: float, holds: Callable[[], bool], complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.05)


SERVER = """
import socket
listening = socket.create_server(("", 5001))
peer, _ = listening.accept()
while echo := peer.recv(1):
    peer.sendall(echo)
"""
CLIENT = """
import os, socket, sys, time
until = time.monotonic() + 60
while True:
    try:
        peer = socket.create_connection((os.environ["FULLPIPE_SERVER"], 5001), timeout=5)
        break
    except OSError:
        if time.monotonic() > until:
            raise
rounds = []
for _ in range(3):
    start = time.monotonic()
    peer.sendall(b"x")
    peer.recv(1)
    rounds.append(time.monotonic() - start)
print(min(rounds))
sys.exit(7)
"""


@pytest.mark.usefixtures("kernel_world")
def test_shell_command_reaches_server_after_rtt() -> None:
    server = shlex.join([sys.executable, "-c", SERVER])
    done = command(
        "shell",
        "--rate",
        "10 Mbit/s",
        "--rtt",
        "80 ms",
        "--server",
        server,
        "--",
        sys.executable,
        "-c",
        CLIENT,
    )
    assert done.returncode == 7, done.stderr
    assert 0.08 <= float(done.stdout) < 0.5
    assert "Traceback" not in done.stderr


def test_doctor_examines_in_single_threaded_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has several, and an ordinary user could not enter a user namespace in it."""
    from fullpipe import _native
    from fullpipe.runs import doctor

    def refuse() -> str:
        raise AssertionError("the doctor examined the calling process")

    monkeypatch.setattr(_native, "kernel_doctor", refuse)
    found = {check.name: check for check in doctor.requirements()}
    assert found["rights"].found


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize(
    "arguments",
    [["doctor"], ["shell", "--rate", "10mbit", "--rtt", "10ms", "--", "true"]],
    ids=lambda one: one[0],
)
def test_working_directory_is_not_imported(arguments: list[str], in_empty_folder: Path) -> None:
    for name in ("json.py", "struct.py", "fullpipe.py"):
        Path(name).write_text("open('ran', 'w').close()\n", encoding="utf-8")
    # As the installed script: unlike -m, it does not put the working directory on the path.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fullpipe", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not Path("ran").exists()
