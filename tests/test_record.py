"""Recording what the kernel's congestion control decides, and replaying it.

Recording needs root, clang and libbpf beside the kernel world. Where one of them is missing, tests that
record are skipped with the recorder's own sentence, also where FULLPIPE_REQUIRE_KERNEL is set.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH, command
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.conformance import recording_tables, recordings
from test_bad_input import expect_one_sentence, powerless

# Where one of these is said, the machine is not made for it. Anything else that is said is a fault of ours.
MISSING = ("is not installed", "is not permitted", "is too old", "is missing", "does not offer")
# Codes in the column `hook`.
INIT, CONG_CONTROL, SSTHRESH, CONG_AVOID, PKTS_ACKED = 0, 1, 4, 6, 7
SLOW = ("--rate", "20 Mbit/s", "--rtt", "20 ms", "--buffer", "1 bdp")


@pytest.fixture(scope="module")
def alone() -> Iterator[None]:
    """No other test on this machine records: the names of congestion controls are the machine's."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            folder = os.open("/sys/fs/bpf", os.O_RDONLY)
            held.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def recorded(kernel_world: None, alone: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of one BBR flow."""
    return record(tmp_path_factory.mktemp("recorded"), "bbr", *SLOW, "--duration", "2 s")


def record(folder: Path, algorithm: str, *arguments: str) -> Path:
    recording = folder / f"{algorithm}.recording"
    done = command("kernel", "record", "--cc", algorithm, *arguments, "--out", str(recording))
    if "cannot record the kernel's decisions" in done.stderr and any(map(done.stderr.__contains__, MISSING)):
        pytest.skip(f"no recorder here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "0 lost" in done.stdout
    assert list(folder.iterdir()) == [recording]
    return recording


def test_each_call_continues_previous_state(recorded: Path) -> None:
    calls = fp.read_recording(recorded)
    assert calls.height > 500
    assert calls["flow"].unique().to_list() == [0]
    assert calls["state_continues"].all()
    assert calls["ktime_ns"].is_sorted()


def test_recording_covers_bbr_flow_from_start(recorded: Path) -> None:
    calls = fp.read_recording(recorded)
    hooks = calls["hook"].to_list()
    assert hooks.count(INIT) == 1
    assert hooks.count(CONG_CONTROL) > 500
    delivered = calls["delivered"].to_list()
    assert delivered == sorted(delivered)
    megabits = delivered[-1] * 1448 * 8 / 1e6
    assert 20 < megabits < 2 * 20


def test_nothing_is_left_behind(recorded: Path) -> None:
    expect_nothing_left()


@pytest.mark.parametrize("after_s", [0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_behind_by_force(
    after_s: float, how: signal.Signals, recorded: Path, in_empty_folder: Path
) -> None:
    recording = subprocess.Popen(
        [
            *(sys.executable, "-m", "fullpipe", "kernel", "record", "--cc", "bbr", *SLOW),
            *("--duration", "20 s", "--out", "never.recording"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after_s)
    recording.send_signal(how)
    assert recording.wait(timeout=20) in (-how, 130)
    expect_nothing_left()
    assert list(in_empty_folder.iterdir()) == []


def expect_nothing_left() -> None:
    """The kernel frees what nobody holds in its own time: when each task has left the processor once (RCU).

    That is soon, but a task that is preempted on a busy machine holds it up.
    """
    deadline = time.monotonic() + 180
    while left_behind() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_behind() == []


def left_behind() -> list[str]:
    """Congestion controls, programs and pins that a recording may have left."""
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii")
    left = [name for name in known.split() if name.startswith("fp_")]
    with Path("/proc/kallsyms").open(encoding="ascii") as symbols:
        # Every loaded program has a symbol, which root can see.
        left += [line.strip() for line in symbols if "_fp_bbr_" in line or "_fp_cubic_" in line]
    pins = Path("/sys/fs/bpf")
    return left + [str(pin) for pin in pins.glob("*fp_*")]


def test_only_flows_of_algorithm_are_recorded(recorded: Path, in_empty_folder: Path) -> None:
    Path("mixed.toml").write_text(
        'name = "mixed"\nduration = "2 s"\n[path]\nrate = "20 Mbit/s"\nrtt = "20 ms"\n'
        '[[flows]]\ncontroller = "bbr1"\n[[flows]]\ncontroller = "cubic"\ncount = 2\n'
        '[[flows]]\ncontroller = "reno"\n',
        encoding="utf-8",
    )
    done = command("kernel", "record", "--cc", "cubic", "mixed.toml", "--out", "cubic.recording", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [flow["controller"] for flow in data["flows"]] == ["cubic", "cubic"]
    assert (data["lost"], data["missed_calls"], data["warnings"]) == (0, 0, [])
    assert data["bytes"] == Path("cubic.recording").stat().st_size
    calls = fp.read_recording("cubic.recording")
    assert sum(flow["calls"] for flow in data["flows"]) == data["calls"] == calls.height
    assert calls["flow"].n_unique() == 2
    assert {INIT, CONG_AVOID, PKTS_ACKED, SSTHRESH} <= set(calls["hook"])
    assert CONG_CONTROL not in set(calls["hook"])


def test_replay_matches_kernel_decisions(recorded: Path, in_empty_folder: Path) -> None:
    shutil.copy(recorded, "bbr.recording")
    done = command("replay", "bbr.recording", "--coverage")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal" in done.stdout
    assert "startup" in done.stdout.lower()
    (report,) = json.loads(command("replay", "bbr.recording", "--json").stdout)
    assert report["agrees"] is True
    assert report["replayed"] == report["calls"] == fp.read_recording("bbr.recording").height


DIFFERENT = {
    **{"recording": "x.recording", "cc": "cubic", "kernel": "6.18", "flows": 1, "calls": 9},
    **{"replayed": 3, "late": 0},
    **{"whole": True, "lost": 0, "missed_calls": 0, "agrees": False},
    "difference": {
        "sentence": "call 2 (cong_avoid, flow 0): after it cnt is 7 here and 8 in the kernel",
        "state": [
            {"field": "cnt", "ours": 7, "kernel": 8},
            {"field": "snd_cwnd", "ours": 10, "kernel": 10},
        ],
    },
    "filter": {"steps": 0, "differences": 0, "first": None},
    "sampler": {"steps": 0, "differences": 0, "first": None},
    "coverage": [{"branch": "init", "summary": "init", "calls": 1}],
}


@pytest.mark.parametrize("as_json", [False, True])
def test_difference_is_shown_with_both_states(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "replay", lambda path: DIFFERENT)
    arguments = ["replay", "x.recording", *(["--json"] if as_json else [])]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == options.DISAGREE
    if as_json:
        assert json.loads(done.stdout) == [DIFFERENT]
        return
    assert "call 2 (cong_avoid, flow 0)" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["cnt", "7", "8", "differs"] in rows
    assert ["snd_cwnd", "10", "10"] in rows


def incomplete(folder: Path, *, missed: int) -> Path:
    """A trace of the corpus whose metadata counts missed calls. The footer keeps its length."""
    whole = (Path(__file__).parent / "recordings" / "cubic-trickle.recording").read_bytes()
    entry = f'"missed_calls":{missed},'.encode()
    assert whole.count(b'"path":"') == whole.count(b'"flows":') == 1
    before, after = whole.split(b'"path":"')
    made = before + b'"path":"' + after[len(entry) :].replace(b'"flows":', entry + b'"flows":')
    assert len(made) == len(whole)
    path = folder / "incomplete.recording"
    path.write_bytes(made)
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_recording_with_missed_calls_is_incomplete(as_json: bool, tmp_path: Path) -> None:
    trace = incomplete(tmp_path, missed=7)
    done = CliRunner().invoke(cli.app, ["replay", str(trace), *(["--json"] if as_json else [])])
    assert done.exit_code == options.DISAGREE
    if as_json:
        (report,) = json.loads(done.stdout)
        assert (report["missed_calls"], report["whole"], report["agrees"]) == (7, False, False)
        assert report["difference"] is None
        return
    assert "incomplete" in done.stdout
    assert "DIFFERS" not in done.stdout
    assert "skipped at least 7 calls" in " ".join((done.stdout + done.stderr).split())


def test_recording_without_missed_calls_is_complete(tmp_path: Path) -> None:
    assert recordings.replay(incomplete(tmp_path, missed=0))["agrees"]


@pytest.mark.parametrize("missed", [0, 1234])
def test_recording_warns_of_missed_calls(missed: int) -> None:
    summary = {"calls": 5000, "lost": 0, "missed_calls": missed}
    text = recording_tables.recording_total(recordings.Recording(summary, b"1234"), Path("x.recording"))
    assert text.splitlines()[0] == f"x.recording: 5,000 calls, 0 lost, {missed} missed, 4 bytes"
    assert ("warning: the kernel skipped at least 1,234 calls" in text) is (missed > 0)


@pytest.fixture
def without_compiler(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which nothing is installed and nothing was compiled before."""
    empty = tmp_path / "nothing"
    empty.mkdir()
    yield {"PATH": str(empty), "XDG_CACHE_HOME": str(empty)}


@pytest.mark.usefixtures("recorded")
def test_without_a_compiler_it_says_so(without_compiler: dict[str, str]) -> None:
    out = Path(without_compiler["PATH"]) / "x.recording"
    done = command("kernel", "record", "--cc", "bbr", *PATH, "--out", str(out), **without_compiler)
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "clang", "apt install clang")
    assert not out.exists()


def test_doctor_reports_whether_it_can_record(without_compiler: dict[str, str]) -> None:
    checks = json.loads(command("doctor", "--json", **without_compiler).stdout)
    (check,) = [one for one in checks if one["name"].startswith("recorder")]
    assert not check["ok"]
    assert "clang" in check["found"]
    assert "apt install" in check["fix"]


def test_without_permission_it_says_so(in_empty_folder: Path) -> None:
    done = powerless("kernel", "record", "--cc", "bbr", *PATH, "--out", "x.recording")
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "permit", "root")


SCENARIO = '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
BAD = {
    "an algorithm that cannot be recorded": (["--cc", "reno", *PATH], "--cc", "reno"),
    "no path": (["--cc", "bbr"], "--rtt", "is missing"),
    "no rate": (["--cc", "bbr", "--rtt", "20 ms"], "--rate", "is missing"),
    "no flows": (["--cc", "bbr", *PATH, "--flows", "0"], "flows", "0"),
    "a path beside a scenario": (["--cc", "bbr", "one.toml", "--rate", "1 Mbit/s"], "rate", "1 Mbit/s"),
    "a scenario without such flows": (["--cc", "bbr", "one.toml"], "scenario", "none"),
    "a scenario with several": (["--cc", "bbr", "several.toml"], "scenario", "bbr1"),
    "no such scenario": (["--cc", "bbr", "nowhere.toml"], "scenario", "nowhere.toml"),
    "an output without a folder": (["--cc", "bbr", *PATH, "--out", "no/where"], "out", "no/where"),
    "a folder as output": (["--cc", "bbr", *PATH, "--out", "."], "out", "folder"),
}


@pytest.mark.parametrize(("arguments", "field", "given"), BAD.values(), ids=BAD)
def test_a_mistake_is_one_sentence(
    arguments: list[str], field: str, given: str, in_empty_folder: Path
) -> None:
    Path("one.toml").write_text('compare = ["cubic"]\n' + SCENARIO, encoding="utf-8")
    Path("several.toml").write_text('compare = ["cubic", "bbr1"]\n' + SCENARIO, encoding="utf-8")
    Path("several.toml").write_text(
        'compare = ["bbr1", "cubic"]\n' + SCENARIO + '[[flows]]\n[[flows]]\ncontroller = "bbr1"\n',
        encoding="utf-8",
    )
    out = [] if "--out" in arguments else ["--out", "x.recording"]
    done = CliRunner().invoke(cli.app, ["kernel", "record", *arguments, *out])
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, field, given)


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "other Parquet"])
def test_invalid_recording_is_an_error(kind: str, in_empty_folder: Path) -> None:
    import polars as pl

    path = Path("some.recording")
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("PAR1 it is not\n", encoding="utf-8")
    elif kind == "other Parquet":
        pl.DataFrame({"flow": [1]}).write_parquet(path)
    done = CliRunner().invoke(cli.app, ["replay", str(path)])
    assert done.exit_code == options.MISTAKE
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("fullpipe: ")
    assert "some.recording" in done.stderr
