"""The command line: what it prints where, and with which exit code it ends."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from conftest import PATH, command
from fullpipe.cli import app as cli
from fullpipe.measures.run import Run
from fullpipe.runs import machine
from fullpipe.runs.worlds import registry, sim
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.world import Stop
from fullpipe.text import minutes

TINY = (*PATH, "--duration", "1 s", "--seeds", "2")


def test_table_reports_seeds_and_report_path(in_empty_folder: Path) -> None:
    done = command("compare", "bbr1", "cubic", *TINY, "--out", "here")
    assert done.returncode == 0, done.stderr
    for message in (
        "bbr1",
        "cubic",
        "Goodput",
        "p95",
        "Queue mean",
        "Retransmits",
        "95 % confidence",
        "2 seeds",
    ):
        assert message in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "here/report.html" in done.stderr
    assert {path.name for path in Path("here").iterdir()} == {
        "scenario.json",
        "report.html",
        "figures",
        "runs",
    }
    figures = {path.name for path in Path("here/figures").iterdir()}
    assert {"throughput.svg", "rtt.svg", "inflight.svg", "summary.svg"} <= figures
    runs = {path.suffix for path in Path("here/runs").iterdir()}
    assert runs == {".json", ".parquet"}
    assert len(list(Path("here/runs").iterdir())) == 2 * 2 * 3


@pytest.mark.parametrize("verb", ["compare", "run"])
def test_progress_appears_only_on_terminal(verb: str, in_empty_folder: Path) -> None:
    Path("one.toml").write_text(
        'compare = ["bbr1"]\nduration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "40 ms"\n',
        encoding="utf-8",
    )
    arguments = {"compare": ("compare", "bbr1", *TINY, "--json"), "run": ("run", "one.toml", "--out", "here")}
    stdout, stderr = _at_a_terminal(*arguments[verb])
    assert "simulator" in stderr
    assert "runs" in stderr
    assert "\x1b[" in stderr
    assert "\x1b" not in stdout
    assert "bbr1" in stdout


def test_report_defaults_to_out_directory(in_empty_folder: Path) -> None:
    done = command("compare", "reno", *TINY)
    assert done.returncode == 0, done.stderr
    assert len(list(Path("out").glob("compare-reno-*/report.html"))) == 1


def test_json_output_is_exclusive_and_complete(in_empty_folder: Path) -> None:
    done = command("compare", "bbr1", "cubic", *TINY, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert set(printed) == {"scenario", "results"}
    assert [result["controller"] for result in printed["results"]] == ["bbr1", "cubic"]
    for result in printed["results"]:
        assert (result["world"], result["seeds"]) == ("sim", 2)
        low, high = result["goodput_bps"]["ci95"]
        assert low <= result["goodput_bps"]["mean"] <= high
        for measure in ("rtt_ms", "queue_delay_ms"):
            assert {"mean", "p50", "p95"} <= set(result[measure])
            assert all(isinstance(result[measure][part], float) for part in ("mean", "p50", "p95"))
        for measure in ("retransmits", "loss_ratio"):
            assert result[measure]["mean"] >= 0
    assert not list(in_empty_folder.iterdir()), "with --json nothing is written unless asked for"


def test_one_seed_reports_no_interval(in_empty_folder: Path) -> None:
    done = command("compare", "reno", *PATH, "--duration", "1 s", "--seeds", "1", "--out", "here")
    assert "no confidence interval" in done.stdout
    assert "±" not in done.stdout


def test_run_prints_flows_and_queues(in_empty_folder: Path) -> None:
    Path("two.toml").write_text(
        'duration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n'
        '[[flows]]\ncontroller = "bbr1"\n[[flows]]\ncontroller = "cubic"\n',
        encoding="utf-8",
    )
    done = command("run", "two.toml", "--seed", "3", "--out", "here")
    assert done.returncode == 0, done.stderr
    for message in ("bbr1", "cubic", "Share", "Queue", "bottleneck"):
        assert message in done.stdout
    assert Path("here/report.html").exists()


def test_run_shows_missed_frames_of_media(in_empty_folder: Path) -> None:
    media = '[[flows]]\nmedia = { frame = "12 kB", every = "33 ms" }\n'
    text = 'duration = "2 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n[[flows]]\ncontroller = "cubic"\n'
    Path("media.toml").write_text(text + media, encoding="utf-8")
    done = command("run", "media.toml", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert "Missed frames" in done.stdout and "Missed frames: frames of media" in done.stdout
    summary = json.loads(next(Path("here/runs").glob("*.json")).read_text(encoding="utf-8"))["flows"]
    assert "frames" not in summary[0] and "missed_frames" not in summary[0]
    frames = summary[1]["frames"]
    assert frames["sent"] >= 60 and frames["lost"] > 10, frames
    missed = frames["late"] + frames["lost"]
    assert summary[1]["missed_frames"] == pytest.approx(missed / (missed + frames["in_time"]))
    # Without media, nothing of it is shown; and what makes no sense is an error at its line.
    Path("plain.toml").write_text(text, encoding="utf-8")
    assert "frames" not in command("run", "plain.toml", "--out", "plain").stdout
    Path("both.toml").write_text(f'{text}{media}controller = "reno"\n', encoding="utf-8")
    both = command("run", "both.toml", "--out", "both")
    assert both.returncode == 2 and "both.toml:9: flows[1].controller" in both.stderr, both.stderr
    assert "is given together with media" in both.stderr
    elsewhere = command("run", "media.toml", "--world", "kernel", "--out", "kernel")
    assert elsewhere.returncode == 2 and "only the simulator runs" in elsewhere.stderr, elsewhere.stderr


def test_flows_of_both_directions_are_measured_apart(in_empty_folder: Path) -> None:
    text = (
        'duration = "3 s"\n[path]\nrate = "20 Mbit/s"\nrtt = "20 ms"\nreverse = { rate = "2 Mbit/s" }\n'
        '[[flows]]\ncontroller = "cubic"\n[[flows]]\ncontroller = "reno"\ndirection = "reverse"\n'
    )
    Path("two.toml").write_text(text, encoding="utf-8")
    done = command("run", "two.toml", "--json", "--out", "here")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    run = json.loads(next(Path("here/runs").glob("*.json")).read_text(encoding="utf-8"))
    forward, back = run["flows"]
    assert result["goodput_bps"]["mean"] == forward["goodput_bps"] != back["goodput_bps"]
    assert (forward.get("reverse"), back["reverse"]) == (None, True)
    assert [one["share"] for one in run["fairness"]["shares"]] == [1, 1]
    shown = command("run", "two.toml", "--out", "here")
    assert "Flows of both directions" in shown.stdout
    # The control: of one direction, both count.
    Path("one.toml").write_text(text.replace('direction = "reverse"', ""), encoding="utf-8")
    one = command("run", "one.toml", "--out", "here")
    assert "Flows of both directions" not in one.stdout
    kernel = command("run", "two.toml", "--world", "kernel", "--out", "here")
    assert kernel.returncode != 0 and "flows[1].direction" in kernel.stderr, kernel.stderr


def test_run_accepts_seeds_and_prints_json(in_empty_folder: Path) -> None:
    Path("s.toml").write_text(
        'duration = "1 s"\nseed = 5\ncompare = ["reno"]\n'
        '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\nloss = "1 %"\n',
        encoding="utf-8",
    )
    done = command("run", "s.toml", "--seeds", "3", "--json", "--out", "here")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["seeds"] == 3
    low, high = result["goodput_bps"]["ci95"]
    assert low < result["goodput_bps"]["mean"] < high
    names = {path.name for path in Path("here/runs").glob("*.json")}
    assert names == {f"sim-reno-seed{seed}.json" for seed in (5, 6, 7)}


@pytest.mark.parametrize("name", ["controllers", "schema", "doctor", "--version", "--help"])
def test_what_only_prints(name: str) -> None:
    done = command(name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("words", [["compare"], ["run"], ["agree"], ["study", "run"]], ids=" ".join)
def test_general_help_names_no_single_world(words: list[str]) -> None:
    printed = " ".join(CliRunner().invoke(cli.app, [*words, "--help"]).stdout.replace("│", " ").split())
    assert "How often at most a run in real time is tried until the emulator keeps up." in printed
    assert "kernel run" not in printed and "to simulate" not in printed


def test_controllers_and_doctor_as_json() -> None:
    runner = CliRunner()
    for name in ("controllers", "doctor"):
        assert json.loads(runner.invoke(cli.app, [name, "--json"]).stdout)
    assert json.loads(runner.invoke(cli.app, ["schema"]).stdout)["type"] == "object"


def test_interrupt_exits_130_without_traceback(in_empty_folder: Path) -> None:
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fullpipe",
            "compare",
            "bbr1",
            "--rate",
            "1 Gbit/s",
            "--rtt",
            "40 ms",
            "--duration",
            "600 s",
            "--seeds",
            "4",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _until(lambda: _threads(running.pid) > 1)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=600)
    assert (running.returncode, stdout, stderr) == (130, "", "fullpipe: interrupted\n")


# Where an interrupt once ended in a traceback, or by signal: in an import, and in code that a library runs by
# `exec`. Each is a program that is interrupted exactly there.
@pytest.mark.parametrize(
    "program",
    [
        "sys.modules['fullpipe.cli'] = Broken('cli')",
        "import fullpipe.api; fullpipe.api.controllers = lambda: exec('raise KeyboardInterrupt')",
    ],
    ids=["import", "exec"],
)
def test_an_interrupt_at_an_awkward_moment(program: str) -> None:
    before = (
        "import sys, types\nclass Broken(types.ModuleType):\n"
        " def __getattr__(self, name): raise KeyboardInterrupt\n"
    )
    after = "\nsys.argv = ['fullpipe', 'controllers']\nfrom fullpipe.__main__ import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", before + program + after], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fullpipe: interrupted\n")


# A program that is interrupted when the command line begins to be imported: by a signal, as from a keyboard.
_STARTING = """
import os, signal, sys, types
class Starting(types.ModuleType):
    def __getattr__(self, name):
        os.kill(os.getpid(), signal.SIGINT)
        raise ImportError("an import that turned the interrupt into another error")
sys.modules["fullpipe.cli"] = Starting("cli")
from fullpipe.__main__ import main
main()
"""

# The same when a library swallows the interrupt in a command, or the interpreter in a callback.
_SWALLOWED = """
import os, signal, sys
import fullpipe.api
def controllers():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        [None for _ in range(1000)]
    except KeyboardInterrupt:
        raise RuntimeError("turned into another error") from None
class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        [None for _ in range(1000)]
def dying():
    Dying()
    return []
fullpipe.api.controllers = dying if sys.argv[1] == "callback" else controllers
sys.argv = ["fullpipe", "controllers", "--json"]
from fullpipe.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "program",
    [(_STARTING,), (_SWALLOWED, "error"), (_SWALLOWED, "callback")],
    ids=["import", "error", "callback"],
)
def test_interrupt_lost_by_library_is_handled(program: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", *program], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fullpipe: interrupted\n")


def test_importing_the_package_imports_nothing_heavy() -> None:
    """Until `main` runs, an interrupt would be a traceback."""
    program = (
        "import sys, fullpipe.__main__\n"
        "print([name for name in sys.modules if '_native' in name or 'typer' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout == "[]\n"


_HEAVY = {"polars", "altair", "numpy", "vl_convert"}


@pytest.mark.parametrize(
    ("words", "spared"),
    [
        (["--version"], {"typer", "rich", *_HEAVY}),
        (["--help"], {"fullpipe.cli.options", "fullpipe_studies", "pydantic", *_HEAVY}),
        (["comapre"], {"fullpipe.cli.options", "fullpipe_studies", "rich", *_HEAVY}),
        (["compare", "--help"], {"fullpipe.cli.commands.run", "fullpipe_studies", *_HEAVY}),
        (["study", "--help"], {"fullpipe.cli.commands.run", "fullpipe_studies.claim", *_HEAVY}),
        # `fullpipe_studies.later` says how a claim is to name altair.
        (["study", "list"], {"altair", "sklearn", "vl_convert"}),
    ],
    # The order of a set differs from process to process.
    ids=["version", "help", "unknown", "compare", "study", "list"],
)
def test_what_answers_at_once_imports_little(words: list[str], spared: set[str]) -> None:
    """What a start costs is what it imports, however busy the machine is."""
    program = (
        f"import sys; sys.argv = ['fullpipe', *{words!r}]\n"
        "from fullpipe.__main__ import main\n"
        "try: main()\n"
        "finally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    imported = set(done.stdout.splitlines()[-1].split())
    assert "fullpipe.report.streams" in imported
    assert not spared & imported


def test_list_of_commands_has_the_first_paragraph_of_each_help() -> None:
    """It is printed without an import of the commands."""
    commands = typer.main.get_command(cli.app).commands
    lines = {name: cli.listed(name) for name in commands}
    assert {"compare", "kernel", "study", "evaluate"} <= lines.keys()
    for name, line in lines.items():
        assert line is not None and line.help == commands[name].help.partition("\n\n")[0], name


# Native calls that take hours, on the main thread: a capture with a hole of a terabyte, and a long run.
_CAPTURE = """
with open("here.pcap", "wb") as packets:
    packets.write(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    packets.truncate(1 << 40)
call = lambda: _native.read_capture("here.pcap")
"""
_RUN = """
path = {"rate": "1 Gbit/s", "rtt": "9 ms", "buffer": "1 MB"}
document = {"duration": "24 h", "path": path, "flows": [{"controller": "reno"}], "record": {"series": False}}
_, [(_, spec)] = _native.resolve(json.dumps(document), "json", None)
call = lambda: _native.simulate(spec, 1)
"""


@pytest.mark.parametrize("prepare", [_CAPTURE, _RUN], ids=["capture", "run"])
def test_a_native_call_heeds_an_interrupt(prepare: str, in_empty_folder: Path) -> None:
    program = (
        "import json, os, signal, threading\nfrom fullpipe import _native\n"
        + prepare
        + "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        + "try:\n    call()\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\nos._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout == "interrupted\n", done.stderr


# The thread that asked may end although the reading goes on: here for an hour, and heeding no signal.
_PARQUET = """
import hashlib, os, signal, threading
from fullpipe.scenario import parquet

class Slow:
    def read_parquet(self, path):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        hashlib.pbkdf2_hmac("sha512", b"never", b"ends", 2**31 - 1)

parquet._native = Slow()
try:
    parquet.read("here.parquet")
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""


def test_parquet_reading_is_interruptible() -> None:
    done = subprocess.run([sys.executable, "-c", _PARQUET], capture_output=True, text=True, timeout=600)
    assert done.stdout == "interrupted\n", done.stderr


def test_command_announces_expected_duration(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("one.toml").write_text(
        'duration = "1 s"\npath = { rate = "5 Mbit/s", rtt = "40 ms" }\nflows = [{ controller = "reno" }]\n',
        encoding="utf-8",
    )
    commands = {
        ("compare", "reno", "cubic", *PATH, "--duration", "1 s", "--seeds", "3", "--json"): "6 runs",
        ("run", "one.toml", "--json"): "1 run",
        # Each world is counted once.
        ("agree", "one.toml", "--worlds", "sim,twin", "--seeds", "2", "--json"): "4 runs",
    }
    monkeypatch.setattr(registry, "_registered", {"twin": Twin()})
    monkeypatch.setattr(machine, "cores", lambda: 1)
    for words, runs in commands.items():
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0 and "to do" not in done.stderr, "it is nothing to wait for"
        with monkeypatch.context() as patch:
            patch.setattr(sim.Simulator, "cost_s", lambda *_: 200.0)
            done = CliRunner().invoke(cli.app, words)
        about = minutes(200.0 * int(runs.split()[0]))
        assert f"fullpipe: {runs} to do, about {about}\n" in done.stderr


class Twin(sim.Simulator):
    """The simulator under another name."""

    name = "twin"

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        return replace(super().run(job, stop, progress), world=self.name)


# How long a run takes differs from machine to machine: here every run is worth a bar.
_IMPATIENT = (
    "from fullpipe import __main__; from fullpipe.cli import progress; "
    "progress.PATIENCE_S = 0.0; __main__.main()"
)


def _at_a_terminal(*arguments: str) -> tuple[str, str]:
    """Runs `fullpipe` with a terminal as its stderr; what went to stdout and to the terminal."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", _IMPATIENT, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    shown = bytearray()
    with contextlib.suppress(OSError):  # Linux ends a terminal whose other end is closed with EIO.
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    stdout, _ = running.communicate(timeout=600)
    assert running.returncode == 0
    return stdout, shown.decode()


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208


def _until(happened: "object", within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_internal_error_has_own_exit_code() -> None:
    """Python's own, 1, means that results differ."""
    script = (
        "import sys, types\n"
        "broken = types.ModuleType('fullpipe.cli.app')\n"
        "broken.app = lambda **_: 1 // 0\n"
        "sys.modules['fullpipe.cli.app'] = broken\n"
        "import fullpipe.cli; fullpipe.cli.app = broken\n"
        "from fullpipe.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 70 and "ZeroDivisionError" in done.stderr


def test_absurd_terminal_width_does_not_hang() -> None:
    done = command("--help", COLUMNS="99999999")
    assert done.returncode == 0 and "compare" in done.stdout


@pytest.mark.parametrize(
    "words", [["study"], ["study", "run", "queue16.fig4", "--quick"], ["evaluate", "bbr3"]], ids=" ".join
)
def test_missing_command_suggests_installation(words: list[str], tmp_path: Path) -> None:
    """As where only the core is: no installed package offers any command."""
    without = (
        "from importlib import metadata\n"
        "metadata.entry_points = lambda **_: ()\n"
        "from fullpipe.__main__ import main\n"
        "main()\n"
    )
    (tmp_path / "without.py").write_text(without, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "without.py", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"fullpipe: the command {words[0]} is not installed; install the package")
    assert len(done.stderr.splitlines()) == 1
