"""Controllers of the user's own, written in Python."""

import ast
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import fullpipe as fp
from conftest import command
from fullpipe import _native
from fullpipe.errors import SweepError
from fullpipe.runs import sweep
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.memory import Memory
from fullpipe.runs.store import Store, Stored
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds.job import Job, jobs
from fullpipe.scenario import class_values, controllers
from fullpipe.scenario.controllers import Own
from fullpipe.scenario.scenario import from_document

PATH = {"rate": "10 Mbit/s", "rtt": "20 ms"}
SHORT = {"name": "short", "duration": "2 s", "path": PATH}

SOURCE = """
import fullpipe as fp
from gains import GAIN

class Mine(fp.Controller):
    ssthresh = 1e9

    def __init__(self, gain=GAIN):
        self.gain = gain

    def on_ack(self, ack):
        if ack.connection.state == "open":
            slow_start = self.cwnd < self.ssthresh
            self.cwnd += ack.newly_acked if slow_start else self.gain * ack.newly_acked / self.cwnd

    def on_state(self, change):
        if change.reduce:
            self.cwnd = self.ssthresh = max(2, self.cwnd / 2)
"""


class Aimd(fp.Controller):
    """Additive increase, halved by a loss."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def on_ack(self, ack: _native.Ack) -> None:
        if ack.connection.state == "open":
            self.cwnd += self.gain * ack.newly_acked / self.cwnd

    def on_state(self, change: _native.StateChange) -> None:
        if change.reduce:
            self.cwnd = max(2, self.cwnd / 2)


class Stays(fp.Controller):
    """A window that stays, like `fixed`."""

    cwnd = 20


class Fails(fp.Controller):
    """Divides by zero at its hundredth ACK."""

    acks = 0

    def on_ack(self, _ack: _native.Ack) -> None:
        self.acks += 1
        if self.acks == 100:
            print(1 // 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with mine.py and what it imports."""
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "gains.py").write_text("GAIN = 1.0\n")
    (tmp_path / "other.py").write_text("nobody = 'imports this'\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def alone(controller: object, **more: object) -> dict[str, object]:
    """A scenario of one flow."""
    return {**SHORT, "flows": [{"controller": controller}], **more}


def test_class_compares_like_builtin_controller() -> None:
    results = fp.compare(["reno", Aimd, Aimd.using(gain=4)], **PATH, duration="3 s", seeds=2)
    labels = ["reno", "test_controllers.py:Aimd", "test_controllers.py:Aimd:gain=4"]
    assert [run.label for run in results.runs[::2]] == labels
    assert results.runs[2].summary["flows"][0]["controller"] == labels[1]
    # A larger step finds the rate sooner.
    slow, fast = (run.summary["flows"][0]["goodput_bps"] for run in results.runs[2::2])
    assert 2e6 < slow < fast < 10e6


def test_constant_window_matches_fixed_controller() -> None:
    own, fixed = (fp.run(alone(one), seed=1).runs[0] for one in (Stays, "fixed:cwnd=20"))
    assert own.summary["flows"][0]["goodput_bps"] == fixed.summary["flows"][0]["goodput_bps"]
    assert own.flow_series()["cwnd_segments"].unique().to_list() == [20]


def test_controller_may_pace_and_name_phase() -> None:
    class Paced(fp.Controller):
        paced = True
        cwnd = 1e9
        pacing_rate_bps = 4e6
        phase = "fixed"
        bandwidth_bps = 5e6

    series = fp.run(alone(Paced), seed=1).runs[0].flow_series().filter(flow="test_controllers.py:Paced")
    assert series["phase"].unique().to_list() == ["fixed"]
    assert series["bandwidth_bps"].unique().to_list() == [5_000_000]
    late = series.filter(series["time_s"] > 1)
    assert late["goodput_bps"].mean() == pytest.approx(4e6, rel=0.02)
    assert late["srtt_ms"].max() < 25  # No queue.


def test_events_follow_rust_order() -> None:
    seen: list[tuple[str, float]] = []
    last: dict[str, object] = {}

    class Sees(fp.Controller):
        ssthresh = 60

        def start(self, config: _native.Config, connection: _native.Connection) -> None:
            assert (config.mss, config.initial_cwnd, config.paced) == (1448, 10, False)
            seen.append(("start", connection.now_s))

        def on_transmit_start(self, start: _native.TransmitStart) -> None:
            seen.append(("on_transmit_start", start.connection.now_s))

        def on_sent(self, sent: _native.Sent) -> None:
            last["on_sent"] = sent

        def on_rtt(self, sample: _native.RttSample) -> None:
            seen.append(("on_rtt", sample.now_s))

        def on_lost(self, lost: _native.Lost) -> None:
            seen.append(("on_lost", seen[-1][1]))
            last["on_lost"] = lost

        def on_state(self, change: _native.StateChange) -> None:
            seen.append(("on_state", change.connection.now_s))
            if change.reduce:
                self.cwnd /= 2

        def on_ack(self, ack: _native.Ack) -> None:
            seen.append(("on_ack", ack.now_s))
            last["on_ack"] = ack
            self.cwnd += ack.newly_acked / 4

    fp.run(alone(Sees, path={**PATH, "buffer": "20 packets"}))
    assert [name for name, _ in seen[:4]] == ["start", "on_transmit_start", "on_rtt", "on_ack"]
    order = ["on_rtt", "on_lost", "on_state", "on_ack"]
    times = [time for _, time in seen]
    assert times == sorted(times)
    assert {"on_lost", "on_state"} < {name for name, _ in seen}
    for (one, at), (other, then) in pairwise(seen[2:]):
        # Within an ACK, in this order; on_lost may come again.
        if at == then and one != "on_ack":
            assert order.index(one) <= order.index(other), (one, other, at)
    ack = last["on_ack"]
    assert isinstance(ack, _native.Ack)
    assert ack.rtt_s is None or 0.02 < ack.rtt_s < 0.1
    assert ack.connection.packets_out >= ack.newly_acked * 0 and ack.snd_nxt >= ack.snd_una
    assert repr(last["on_lost"]).startswith("Lost(segments=") and "state='" in repr(ack)


def test_app_limited_ack_check_is_optional() -> None:
    for asks in (False, True):
        limited: list[bool] = []

        class Asks(fp.Controller):
            check_app_limited = asks
            cwnd = 1000

            def on_ack(self, ack: _native.Ack, limited: list[bool] = limited) -> None:
                limited.append(ack.connection.app_limited)

        # Writes always find data waiting; only the end of it leaves the window unfilled.
        fp.run({**SHORT, "flows": [{"controller": Asks, "size": "2 MB"}]})
        assert limited[-1] == asks


def test_exception_reports_context_and_keeps_cause() -> None:
    document = {**SHORT, "flows": [{"controller": "reno"}, {"controller": Fails}]}
    with pytest.raises(fp.ControllerError) as raised:
        fp.run(document)
    error = raised.value
    assert (error.controller, error.event, error.flow) == ("test_controllers.py:Fails", "on_ack", 1)
    assert 0 < error.time_s < 2
    assert isinstance(error.__cause__, ZeroDivisionError)
    traceback = error.__cause__.__traceback__
    assert traceback is not None and traceback.tb_frame.f_code.co_name == "on_ack"
    start = "test_controllers.py:Fails: on_ack raised ZeroDivisionError: integer division or modulo by zero"
    assert str(error).startswith(start) and "(flows[1], " in str(error) and "simulated" in str(error)
    simulation = fp.Simulation(document)
    with pytest.raises(fp.ControllerError):
        simulation.advance()
    with pytest.raises(RuntimeError, match="has failed"):
        simulation.advance()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cwnd", -1, "cwnd is -1; expected a number of segments"),
        ("cwnd", float("nan"), "cwnd is nan"),
        ("cwnd", "ten", "cwnd is 'ten'"),
        ("pacing_rate_bps", -5, "pacing_rate_bps is -5; expected a rate"),
        ("ssthresh", [], "ssthresh is "),
        ("phase", "asleep", "phase is 'asleep'; expected None or one of slow_start"),
    ],
)
def test_invalid_limit_is_refused(name: str, value: object, message: str) -> None:
    class Wrong(fp.Controller):
        pass

    setattr(Wrong, name, value)
    with pytest.raises(fp.ControllerError, match=message):
        fp.run(alone(Wrong))


def test_construction_failure_names_flow() -> None:
    with pytest.raises(fp.ControllerError, match=r"Aimd:speed=2: __init__ raised TypeError.*flows\[0\]"):
        fp.run(alone(Aimd.using(speed=2)))


def test_missing_argument_is_named_with_class() -> None:
    class Needs(fp.Controller):
        def __init__(self, gain: float) -> None:
            self.gain = gain

    message = r"Needs: missing a required argument: 'gain'; Needs.using\(...\) gives it its arguments"
    with pytest.raises(fp.ControllerError, match=message) as raised:
        fp.run(alone(Needs))
    assert controllers.place_of(raised.value) == "", "the line that noticed is none of the user's"


def test_invalid_seed_or_time_is_refused() -> None:
    seed: Any = "1"
    with pytest.raises(fp.ScenarioError, match=r'^seed: "1" cannot be used'):
        fp.Simulation(alone(Stays), seed=seed)
    with pytest.raises(fp.ScenarioError, match=r"^time: .* cannot be used; expected seconds"):
        fp.Simulation(alone(Stays)).advance(10**400)


def test_failing_controller_keeps_other_runs() -> None:
    scenario = from_document({**SHORT, "flows": [{}], "compare": ["reno", Fails, Aimd]})
    tasks = [Task("sim", job) for job in jobs(scenario.alternatives, [1, 2])]
    outcome = sweep.carry_out(tasks, Memory(), Local())
    assert [stored.task.cell for stored in outcome.of(tasks)] == ["reno"] * 2 + [
        "test_controllers.py:Aimd"
    ] * 2
    assert len(outcome.failed) == 2
    assert all("on_ack raised ZeroDivisionError" in failed.reason for failed in outcome.failed)


def test_only_the_simulator_runs_it() -> None:
    with pytest.raises(fp.WorldError, match=r'Linux has no "test_controllers.py:Aimd".*simulator'):
        fp.compare([Aimd], **PATH, world="kernel")


def test_cluster_refuses_custom_controller_early() -> None:
    pytest.importorskip("ray")
    from fullpipe.runs.engines.ray import Ray

    scenario = from_document(alone(Aimd))
    tasks = [Task("sim", job) for job in jobs(scenario.alternatives, [1])]
    with pytest.raises(SweepError, match=r"a controller that is not built in.*--engine local"):
        list(Ray().run(tasks))


def test_file_resolves_from_cwd_and_scenario(folder: Path) -> None:
    results = fp.compare(["mine.py:Mine", "mine.py:Mine:gain=3"], **PATH, duration="1 s", seeds=1)
    assert [run.label for run in results.runs] == ["mine.py:Mine", "mine.py:Mine:gain=3"]
    nested = folder / "scenarios"
    nested.mkdir()
    file = nested / "one.toml"
    file.write_text(
        'name = "one"\nduration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
        'flows = [{ controller = "../mine.py:Mine" }, { controller = "bbr1" }]\n'
    )
    loaded = fp.load(file, code=True)
    assert fp.run(loaded).runs[0].summary["flows"][0]["controller"] == "../mine.py:Mine"


@pytest.mark.parametrize("verb", [["run"], ["agree"], ["agree", "--grid"]])
def test_foreign_file_needs_consent_to_run(
    verb: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "theirs.py").write_text("open('ran', 'w').close()\n" + (folder / "mine.py").read_text())
    scenario = (
        'duration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
        'flows = [{ controller = "theirs.py:Mine" }]\n'
    )
    grid = (
        '[[cells]]\nname = "c"\nduration = "1 s"\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
        'controller = "theirs.py:Mine"\n'
    )
    file = folder / "theirs.toml"
    file.write_text(grid if "--grid" in verb else scenario)
    done = command(*verb, "theirs.toml")
    assert done.returncode == 2, done.stdout
    assert '"theirs.py:Mine" is a Python program' in done.stderr
    assert not (folder / "ran").exists()
    if verb == ["run"]:
        assert command("run", "theirs.toml", "--code", "--json").returncode == 0
        assert (folder / "ran").exists()


def test_run_key_includes_code(folder: Path) -> None:
    def digest(text: str = "mine.py:Mine") -> str:
        return from_document(alone(text)).alternatives[0].digest

    first = digest()
    assert digest() == first and digest("mine.py:Mine:gain=2") != first
    (folder / "other.py").write_text("nobody = 'imports this still'\n")
    assert digest() == first
    # What it imports from its folder counts, and is loaded anew.
    (folder / "gains.py").write_text("GAIN = 2.0\n")
    second = digest()
    assert second != first
    assert Own.load("mine.py:Mine", folder).make().gain == 2.0  # type: ignore[attr-defined]
    (folder / "mine.py").write_text(SOURCE + "# a comment\n")
    assert digest() not in (first, second)


def test_fileless_class_is_keyed_by_code() -> None:
    def made(body: str) -> Own:
        names: dict[str, object] = {"fp": fp}
        exec(
            f"class Mine(fp.Controller):\n    cwnd = 10\n    def on_ack(self, ack):\n        {body}\n", names
        )
        made_by = names["Mine"]
        assert isinstance(made_by, type) and issubclass(made_by, fp.Controller)
        return Own.of(made_by)

    one, same, other = made("self.cwnd += 1"), made("self.cwnd += 1"), made("self.cwnd += 2")
    assert one.text == "own:Mine" and one.digest == same.digest != other.digest
    assert fp.run(alone(one)).runs[0].summary["flows"][0]["controller"] == "own:Mine"


def grows(by: float) -> Callable[[], float]:
    return lambda: by


@dataclass(frozen=True)
class Steps:
    up: float
    names: frozenset[str] = frozenset({"slow", "start"})


def in_a_closure(gain: float) -> type[fp.Controller]:
    class Made(fp.Controller):
        def on_ack(self, ack: object) -> None:
            self.cwnd += gain

    return Made


def in_a_default(gain: float) -> type[fp.Controller]:
    class Made(fp.Controller):
        def __init__(self, *, gain: float = gain) -> None:
            self.gain = gain

        def on_ack(self, ack: object) -> None:
            self.cwnd += self.gain

    return Made


def in_an_attribute(gain: float) -> type[fp.Controller]:
    class Made(fp.Controller):
        steps = {"up": [gain, 2.0], "down": (0.5,)}  # noqa: RUF012

        def on_ack(self, ack: object) -> None:
            self.cwnd += self.steps["up"][0]

    return Made


def in_a_property(gain: float) -> type[fp.Controller]:
    steps = Steps(gain)

    class Made(fp.Controller):
        @property
        def cwnd(self) -> float:  # type: ignore[override]
            return 10 * steps.up

    return Made


def in_a_function(gain: float) -> type[fp.Controller]:
    grown = functools.partial(max, 1.0)
    by = grows(gain)

    class Made(fp.Controller):
        def on_ack(self, ack: object) -> None:
            self.cwnd += grown(by())

    return Made


def in_what_it_extends(gain: float) -> type[fp.Controller]:
    class Made(in_a_closure(gain)):  # type: ignore[misc]
        def on_ack(self, ack: object) -> None:
            super().on_ack(ack)

    return Made


def in_what_it_mixes_in(gain: float) -> type[fp.Controller]:
    class Grows:
        by = gain

    class Made(Grows, fp.Controller):
        def on_ack(self, ack: object) -> None:
            self.cwnd += self.by

    return Made


FACTORIES = (
    in_what_it_mixes_in,
    in_a_closure,
    in_a_default,
    in_an_attribute,
    in_a_property,
    in_a_function,
    in_what_it_extends,
)


@pytest.mark.parametrize("factory", FACTORIES)
def test_factory_classes_are_distinguished_by_values(
    factory: Callable[[float], type[fp.Controller]], tmp_path: Path
) -> None:
    def stored(gain: float) -> Stored:
        task = Task("sim", Job(from_document(alone(factory(gain))).alternatives[0], 1))
        (kept,) = carry_out([task], Store(tmp_path), Local(cores=1)).stored.values()
        return kept

    slow, fast, again = stored(1.0), stored(3.0), stored(1.0)
    assert slow.task.key != fast.task.key, "the runs of one would be given to the other"
    assert slow.task.key == again.task.key and slow.place == again.place
    assert slow.summary["flows"] != fast.summary["flows"]


def test_factory_class_key_is_process_independent() -> None:
    text = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_controllers as here; "
        "print([here.Own.of(one(2.0)).digest for one in here.FACTORIES])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{[Own.of(one(2.0)).digest for one in FACTORIES]}\n"}


def test_top_level_class_has_file_key() -> None:
    assert Own.of(Aimd).digest == Own.of(Aimd).digest
    assert class_values.of_class(Aimd, fp.Controller, in_file=True) == ""


def test_unhashable_class_value_disables_caching(tmp_path: Path) -> None:
    class Table:
        gain = 2.0

    def made(table: object) -> type[fp.Controller]:
        class Made(fp.Controller):
            def on_ack(self, ack: object) -> None:
                self.cwnd += getattr(table, "gain", 1.0)

        return Made

    endless: list[object] = []
    endless.append(endless)
    for table, what in (
        (Table(), "table in Made.on_ack, which is a Table"),
        (endless, "table in Made.on_ack, which contains itself"),
        ([1.0, {"a": Table()}], "table in Made.on_ack, which is a Table"),
    ):
        (alternative,) = from_document(alone(made(table))).alternatives
        with pytest.raises(SweepError, match=rf"py:Made cannot be stored: it has {what}, and"):
            carry_out([Task("sim", Job(alternative, 1))], Store(tmp_path / "runs"), Local(cores=1))
        assert not (tmp_path / "runs").exists()
    given = Aimd.using(gain=[Table()])
    assert given.not_plain == "the parameter gain, which is a Table"
    assert given.digest == Aimd.using(gain=given.parameters["gain"]).digest, "it is the same, twice"
    # Without a folder it runs.
    one, other = made(Table()), made(Table())
    assert fp.run(alone(one)).runs[0].summary["flows"][0]["controller"] == "test_controllers.py:Made"
    assert Own.of(one).digest == Own.of(one).digest != Own.of(other).digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere.py:Mine", "a Python file that can be read"),
        ("mine.py:Yours", "there is Mine"),
        ("mine.py:fp", "a class in mine.py that extends fullpipe.Controller"),
        ("mine.py:Mine:gain", "give each parameter a value"),
        ("broken.py:Mine", "a Python file that can be read"),
        ("raises.py:Mine", "a Python file that can be imported"),
        ("own:Mine", "pass the class itself"),
        ("mine.py", "names no class"),
    ],
)
def test_missing_file_or_class_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "broken.py").write_text("class Mine(:\n")
    (folder / "raises.py").write_text("raise KeyError('no')\n")
    with pytest.raises(fp.ScenarioError, match=message):
        fp.compare([text], **PATH)


def test_explicit_class_is_not_resolved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Report(fp.Controller):
        def __init__(self, name: str) -> None:
            self.name = name

    (folder / Path(__file__).name).write_text(f"open('ran', 'w').close()\n{SOURCE.replace('Mine', 'Report')}")
    (own,) = from_document(alone(Report.using(name="x "))).alternatives[0].own
    assert own.made_by is Report and own.make().name == "x "  # type: ignore[attr-defined]
    # What the native half might change in another way.
    monkeypatch.setattr(controllers, "_plain", lambda text: text)
    with pytest.raises(fp.ScenarioError, match="the text of a class that was given"):
        from_document(alone(Report.using(name="x ")))
    assert not (folder / "ran").exists()


def test_name_beside_class_is_loaded_separately(folder: Path) -> None:
    document = {**SHORT, "flows": [{"controller": Stays}, {"controller": "mine.py:Mine"}]}
    assert [own.made_by.__name__ for own in from_document(document).alternatives[0].own] == ["Stays", "Mine"]
    (folder / Path(__file__).name).write_text(SOURCE.replace("Mine", "Stays"))
    text = Own.of(Stays).text
    with pytest.raises(fp.ScenarioError, match=f'"{text}" cannot be used; expected one controller'):
        from_document({**SHORT, "flows": [{"controller": Stays}, {"controller": text}]})


class Shown:
    """A value that looks like any other of its kind."""

    def __repr__(self) -> str:
        return "shown"


def test_classes_sharing_name_are_refused(folder: Path) -> None:
    for name in ("d1", "d2"):
        (folder / name).mkdir()
        (folder / name / "mine.py").write_text(SOURCE.replace("= 1e9", f"= 1e{name[1]}"))
        (folder / name / "gains.py").write_text("GAIN = 1.0\n")
    first, second = (Own.load("mine.py:Mine", folder / name) for name in ("d1", "d2"))

    def made(window: int) -> type[fp.Controller]:
        class Made(fp.Controller):
            cwnd = window

        return Made

    for pair in (
        (first, second),
        (made(1), made(2)),
        (Aimd.using(gain=2), Aimd.using(gain="2")),
        (Aimd.using(gain=Shown()), Aimd.using(gain=Shown())),
    ):
        text = pair[0].text if isinstance(pair[0], Own) else "test_controllers.py:Made"
        with pytest.raises(fp.ScenarioError, match=f'"{text}" cannot be used; expected one controller'):
            from_document({**SHORT, "flows": [{"controller": one} for one in pair]})
        with pytest.raises(fp.ScenarioError, match="expected one controller"):
            fp.compare(pair, **PATH)
    value = Shown()
    for same in ((Aimd, Aimd), (first, first), (Aimd.using(gain=value), Aimd.using(gain=value))):
        assert len(from_document({**SHORT, "flows": [{"controller": one} for one in same]}).alternatives) == 1


def test_the_command_line_takes_a_file(folder: Path) -> None:
    words = ["compare", "bbr1", "mine.py:Mine", "--rate", "10 Mbit/s", "--rtt", "20 ms"]
    words += ["--duration", "1 s", "--seeds", "1", "--json"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "mine.py:Mine" in done.stdout and json.loads(done.stdout)
    (folder / "mine.py").write_text(SOURCE.replace("if change.reduce", "if 1 // 0"))
    failed = command(*words)
    assert failed.returncode != 0 and "Traceback" not in failed.stderr
    place = f"{folder / 'mine.py'}:17: mine.py:Mine: on_state raised ZeroDivisionError"
    assert place in failed.stderr and len(failed.stderr.splitlines()) == 1


class Mute(BaseException):
    """It cannot say what is wrong."""

    def __str__(self) -> str:
        raise SystemExit(0)


class Leaves(fp.Controller):
    """Ends the process when it is made."""

    def __init__(self) -> None:
        raise SystemExit(0)


class Interrupts(fp.Controller):
    """Raises what Ctrl-C does."""

    def on_ack(self, _ack: _native.Ack) -> None:
        raise KeyboardInterrupt


class Dumb(fp.Controller):
    """Raises what cannot be described."""

    def __init__(self) -> None:
        raise Mute


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [(Leaves, "SystemExit: 0"), (Interrupts, "KeyboardInterrupt"), (Dumb, "__init__ raised Mute")],
)
def test_controller_fault_does_not_end_sweep(faulty: type[fp.Controller], reason: str) -> None:
    scenario = from_document({**SHORT, "flows": [{}], "compare": ["reno", faulty, Aimd]})
    tasks = [Task("sim", job) for job in jobs(scenario.alternatives, [1])]
    outcome = sweep.carry_out(tasks, Memory(), Local())
    assert [stored.task.cell for stored in outcome.of(tasks)] == ["reno", "test_controllers.py:Aimd"]
    (failed,) = outcome.failed
    assert reason in failed.reason


NO_STR = "class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\n"
IN_INIT = "import fullpipe as fp\nclass Mine(fp.Controller):\n    def __init__(self):\n        raise {}\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise SystemExit(0)\n", "a Python file that can be imported; SystemExit: 0"),
        (IN_INIT.format("SystemExit(0)"), "__init__ raised SystemExit: 0"),
        (f"{NO_STR}raise E\n", "a Python file that can be imported; E"),
        (f"{NO_STR}{IN_INIT.format('E')}", "__init__ raised E "),
        ("from " + "." * 40 + "a import x\n", "a Python file that can be imported; ImportError"),
        ("import " + "a" * 300 + "\n", "a Python file that can be imported; ModuleNotFoundError"),
        ("-" * 100_000 + "1\n", "a Python file that can be read"),
        ("#" * 10_000_001, "has more than 10000000 bytes"),
    ],
    ids=["exit", "exit in init", "no str", "no str in init", "above root", "long name", "deep", "long"],
)
def test_misbehaving_file_is_one_line_error(folder: Path, source: str, message: str) -> None:
    (folder / "fi.py").write_text(source)
    refused(message)


def test_non_regular_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "fi.py")
    refused("fi.py is no regular file")
    (folder / "fi.py").unlink()
    (folder / "fi.py").symlink_to("fi.py")
    refused("a Python file that can be read")


def refused(message: str) -> None:
    path = ["--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "1 s", "--seeds", "1"]
    done = command("compare", "fi.py:Mine", *path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_refused_code_error_suggests_fix(folder: Path) -> None:
    with pytest.raises(fp.ScenarioError, match="choose one that is built in, or read it and run it alone"):
        from_document(alone("mine.py:Mine"), code=False)
    file = folder / "one.toml"
    file.write_text(
        'name = "one"\nduration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
        'flows = [{ controller = "own:E" }]\n'
    )
    with pytest.raises(fp.ScenarioError, match="is a class that only the Python program that wrote it has"):
        fp.load(file)


def test_class_and_native_methods_match() -> None:
    public = {name for name, one in vars(fp.Controller).items() if callable(one) and not name.startswith("_")}
    assert public == set(controllers._METHODS)


@pytest.mark.parametrize("least", [0, -1, 1.5, 2**40])
def test_unusual_burst_does_not_hang(least: float) -> None:
    class Bursts(fp.Controller):
        min_burst = least

        def on_ack(self, ack: object) -> None:
            """The limits are read after it."""

    scenario = alone(Bursts)
    if least < 0:
        with pytest.raises(fp.ControllerError, match=r"min_burst.*a number of segments from 1"):
            fp.run(scenario)
    else:
        assert fp.run(scenario).runs[0].summary["flows"][0]["delivered_bytes"] > 100_000


def test_threads_parse_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two syntax trees at once are a SystemError in CPython 3.11, if the collector runs within.
    parse, met = ast.parse, []

    def meeting(*given: Any, **more: Any) -> ast.AST:
        try:
            both.wait(timeout=0.1)
        except threading.BrokenBarrierError:
            both.reset()
        else:
            met.append(given)
        return parse(*given, **more)

    def use(_number: int) -> None:
        Own.of(Stays).plug(0)

    both = threading.Barrier(2)
    monkeypatch.setattr(ast, "parse", meeting)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(use, range(2)))
    assert met == []


def test_readme_controller_fills_path_without_loss() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    block = next(one for one in readme.split("```python\n") if "class Mine" in one).partition("```")[0]
    names: dict[str, Any] = {}
    exec(block, names)
    results = names["results"]
    own = next(group for group in results.groups if group.label != "bbr1").runs[0].summary["flows"][0]
    # Of a packet of 1500 bytes, 1448 are payload.
    assert own["goodput_bps"] > 0.95 * 20e6 * 1448 / 1500
    assert own["loss_ratio"] < 0.01
