"""Cases that are judged from outside: by records that pass and records that fail, and with real programs."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import answer_for_the_kernel, command
from fullpipe import _native
from fullpipe.cli import app as cli
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.programs import registry
from fullpipe.conformance.programs.case import LIKES, Course, OutsideCase, name_of
from fullpipe.conformance.programs.packets import NotJudgedError, Seen
from fullpipe.conformance.programs.phases import CHANGE_S, CLEAN, DEEP, OUTAGE_S
from fullpipe.conformance.programs.run import Subject, conform_program, judge
from fullpipe.conformance.results import (
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASS,
)
from fullpipe.measures.run import Run
from fullpipe.runs import machine
from fullpipe.runs.worlds import kernel
from fullpipe.scenario.scenario import from_document

STEP_S = 0.01
WIRE_BYTES, PAYLOAD_BYTES = 1500, 1448
BDP = 100_000.0  # Of 20 Mbit/s and 40 ms.

OverTime = Callable[[float], float]


@dataclass(frozen=True)
class Shape:
    """What a path sees over time; without anything, a sender that does all well."""

    # Goodput of each flow, of 20 Mbit/s.
    shares: tuple[OverTime, ...] = (lambda _t: 0.95,)
    queue: OverTime = lambda _t: 0.1 * BDP
    # Packets dropped so far.
    dropped: OverTime = lambda _t: 0.0
    ends_s: float | None = None


def record(course: Course, shape: Shape, seed: int = 1) -> Run:
    """A run of a course in which a path saw this shape."""
    (alternative,) = from_document(course.document({"controller": "reno"})).alternatives
    labels = [one["label"] for one in alternative.spec["flows"]]
    assert len(labels) == len(shape.shares)
    ends_s = course.lasts_s if shape.ends_s is None else shape.ends_s
    times = [round(step * STEP_S, 9) for step in range(round(course.lasts_s / STEP_S) + 1)]
    flows, totals = [], []
    for label, share in zip(labels, shape.shares, strict=True):
        delivered = 0.0
        for time in times:
            if 0.1 <= time <= ends_s:
                delivered += share(time) * 20e6 / 8 * STEP_S
            flows.append({"time_s": time, "flow": label, "delivered_bytes": round(delivered)})
        totals.append({"label": label, "delivered_bytes": round(delivered), "end_ns": round(ends_s * 1e9)})
    links = [
        {
            "time_s": time,
            "link": "bottleneck",
            "queue_bytes": round(shape.queue(time)),
            "dropped_packets": round(shape.dropped(time)),
        }
        for time in times
    ]
    through = sum(one["delivered_bytes"] for one in totals) // PAYLOAD_BYTES
    dropped = links[-1]["dropped_packets"]
    link = {
        "arrived_packets": through + dropped,
        "dropped_packets": dropped,
        "accepted_bytes": through * WIRE_BYTES,
    }
    summary = {"provenance": {"untrustworthy": []}, "flows": totals, "links": [link]}
    return Run.of_frames(alternative, "kernel", seed, summary, flows, links)


def dipping(every_s: float, to: float = 0.5) -> OverTime:
    return lambda t: 0.95 * to if t > 3 and (t - 3) % every_s < 0.25 else 0.95


def losing(share: float, since_s: float = 0.0) -> OverTime:
    """Drops of this part of what arrives at full speed."""
    a_second = 0.95 * 20e6 / 8 / PAYLOAD_BYTES * share / (1 - share)
    return lambda t: max(0.0, t - since_s) * a_second


def sawtooth(left: float, every_s: float = 4.0) -> OverTime:
    """A queue that fills to 2 BDP, from where it falls until this part of what was in flight is left."""
    low = 3 * left - 1

    def queue(t: float) -> float:
        since = t % every_s
        # It has fallen 120 ms after the overflow, and stays there.
        return 2 * BDP if since < 0.12 or since > every_s - 0.2 else low * BDP

    return queue


def once(first_s: float, every_s: float) -> OverTime:
    return lambda t: max(0.0, (t - first_s) // every_s + 1)


def two(first: float, second: float) -> Shape:
    return Shape((lambda _t: first, lambda _t: second))


def constant(share: float) -> Shape:
    return Shape((lambda _t: share,))


def steps(*levels: tuple[float, float]) -> OverTime:
    """Each level from its time on."""
    return lambda t: next(level for since, level in reversed(levels) if t >= since)


HALF = CHANGE_S, 0.47
# For each case a shape that passes, and some that fail, each with the criterion that it fails.
SHAPES: Mapping[str, tuple[Shape, Mapping[str, Shape]]] = {
    "outside.clean-goodput": (Shape(), {"goodput": constant(0.8)}),
    "outside.start": (
        Shape(),
        {
            "rounds": Shape((lambda t: min(0.95, 0.3 * t),)),
            "overshoot": Shape(dropped=lambda t: 170.0 if t > 1 else 0.0),
        },
    ),
    "outside.ack-loss": (Shape(), {"goodput": constant(0.7)}),
    "outside.deep-buffer-queue": (
        Shape(queue=lambda _t: 1.2 * BDP),
        {"queue": Shape(queue=lambda _t: 1.6 * BDP), "goodput": constant(0.8)},
    ),
    "outside.probe-rtt-dips": (
        Shape((dipping(5.2),)),
        {"gap": Shape((dipping(10.2),)), "count": Shape((dipping(3.0),))},
    ),
    "outside.shallow-buffer": (
        Shape(dropped=losing(0.08)),
        {"dropped": Shape(dropped=losing(0.12)), "goodput": constant(0.6)},
    ),
    "outside.shallow-buffer-loss": (Shape(dropped=losing(0.01)), {"dropped": Shape(dropped=losing(0.03))}),
    "outside.cubic-decrease": (
        Shape(queue=sawtooth(0.75), dropped=once(4.0, 4.0)),
        {"left": Shape(queue=sawtooth(0.52), dropped=once(4.0, 4.0))},
    ),
    "outside.reno-decrease": (
        Shape(queue=sawtooth(0.52), dropped=once(4.0, 4.0)),
        {"left": Shape(queue=sawtooth(0.75), dropped=once(4.0, 4.0))},
    ),
    "outside.rate-doubles": (
        Shape((steps((0, 0.47), (CHANGE_S + 6, 0.95)),)),
        {"time": Shape((steps((0, 0.47), (CHANGE_S + 11, 0.95)),))},
    ),
    "outside.rate-doubles-soon": (
        Shape((steps((0, 0.47), (CHANGE_S + 3, 0.95)),)),
        {"time": Shape((steps((0, 0.47), (CHANGE_S + 6, 0.95)),))},
    ),
    "outside.rate-halves": (
        Shape((steps((0, 0.95), HALF),), dropped=losing(0.04, CHANGE_S)),
        {
            "dropped": Shape((steps((0, 0.95), HALF),), dropped=losing(0.2, CHANGE_S)),
            "goodput": Shape((steps((0, 0.95), (CHANGE_S, 0.3)),)),
        },
    ),
    "outside.rate-halves-drains": (
        Shape((steps((0, 0.95), HALF),), queue=steps((0, 0.0), (CHANGE_S, 3e5), (CHANGE_S + 7, 5e4))),
        {
            "time": Shape(
                (steps((0, 0.95), HALF),), queue=steps((0, 0.0), (CHANGE_S, 3e5), (CHANGE_S + 9, 5e4))
            )
        },
    ),
    "outside.random-loss": (constant(0.1), {"goodput": constant(0.06)}),
    "outside.outage": (
        Shape((steps((0, 0.95), (OUTAGE_S[0], 0), (OUTAGE_S[1] + 2, 0.95)),)),
        {
            "resumes": Shape((steps((0, 0.95), (OUTAGE_S[0], 0), (OUTAGE_S[1] + 6, 0.95)),)),
            "half": Shape((steps((0, 0.95), (OUTAGE_S[0], 0), (OUTAGE_S[1] + 1, 0.3)),)),
        },
    ),
    "outside.beside-cubic": (two(0.45, 0.5), {"cubic": two(0.7, 0.25), "own": two(0.05, 0.9)}),
    "outside.two-of-a-kind": (two(0.4, 0.55), {"jain": two(0.2, 0.75)}),
}


def seen(case: OutsideCase, shape: Shape) -> Seen:
    return Seen(record(case.on, shape), mbps=case.on.mbps, ms=case.on.ms)


def unmet(case: OutsideCase, shape: Shape) -> set[str]:
    measured = case.play(seen(case, shape))
    assert set(measured) == {one.key for one in case.criteria}
    return {one.key for one in case.criteria if not one.met(measured[one.key])}


def test_every_criterion_has_failing_shape() -> None:
    wanted = {case.name: {one.key for one in case.criteria} for case in registry.every()}
    assert {name: set(fails) for name, (_, fails) in SHAPES.items()} == wanted


@pytest.mark.parametrize("case", registry.every(), ids=lambda case: case.name)
def test_good_record_passes_bad_fails(case: OutsideCase) -> None:
    passes, fails = SHAPES[case.name]
    assert unmet(case, passes) == set()
    for key, shape in fails.items():
        assert key in unmet(case, shape), key


def test_unmeasurable_case_has_no_verdict() -> None:
    (decrease,) = registry.chosen(["outside.cubic-decrease"])
    with pytest.raises(NotJudgedError, match="did not overflow"):
        decrease.play(seen(decrease, Shape()))
    # A drop at the start is slow start's.
    with pytest.raises(NotJudgedError, match="did not overflow"):
        decrease.play(seen(decrease, Shape(dropped=lambda t: 9.0 if t > 1 else 0.0)))


def test_absent_dips_or_recovery_are_never() -> None:
    (dips,) = registry.chosen(["outside.probe-rtt-dips"])
    assert dips.play(seen(dips, Shape())) == {"gap": None, "count": 0.0}
    (outage,) = registry.chosen(["outside.outage"])
    gone = Shape((steps((0, 0.95), (OUTAGE_S[0], 0)),))
    assert outage.play(seen(outage, gone)) == {"resumes": None, "half": None}


def of(course: Course, shape: Shape) -> Seen:
    return Seen(record(course, shape), mbps=course.mbps, ms=course.ms)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (constant(0.0), "0 bytes of payload were delivered .* say so with --sender"),
        (Shape(ends_s=9.0), "the flow ended after 9.0 s; the case needs 15 s"),
        (Shape((lambda t: 0.95 if t > 4 else 0.0,)), "the data began to arrive after 4.0 s"),
    ],
)
def test_incomplete_record_is_not_judged(shape: Shape, why: str) -> None:
    with pytest.raises(NotJudgedError, match=why):
        of(CLEAN, shape).check(until_s=CLEAN.lasts_s, begins_by_s=3.0)


def test_measures_of_a_record() -> None:
    shape = Shape((steps((0, 0.95), (5, 0.5)),), queue=steps((0, 1e3), (10, 5e3)), dropped=losing(0.02))
    one = of(DEEP, shape)
    one.check(until_s=DEEP.lasts_s, begins_by_s=3.0)
    assert one.bdp == BDP
    assert one.share(1, 4) == pytest.approx(95, abs=0.1)
    assert one.goodput(6, 7) == pytest.approx(10e6, rel=1e-3)
    # Between samples it is a straight line.
    assert one.goodput(2.003, 2.007) == pytest.approx(19e6, rel=1e-3)
    assert one.begins_s == pytest.approx(0.1, abs=0.02)
    assert one.reaches(18e6, 0.0, 3.0) == pytest.approx(0.28, abs=0.03)
    assert one.reaches(18e6, 6.0, 9.0) is None
    assert one.dropped_share(1, 4) == pytest.approx(2, abs=0.1)
    assert set(one.queue(10.1, 11)) == {5e3}
    assert one.queue_falls(2e3, 2, 9, 1) == pytest.approx(1)
    assert one.queue_falls(2e3, 10, 20, 1) is None
    with pytest.raises(NotJudgedError, match="no sample of the queue"):
        one.queue(99, 100)


# ---- the whole judgement, with the simulator for the kernel ----


def judged(controller: str, **more: object) -> ConformanceReport:
    message = {"client": controller, "server": controller}
    return judge({"controller": controller}, Subject(controller, message), world="kernel", **more)  # type: ignore[arg-type]


def verdicts(found: ConformanceReport) -> dict[str, str]:
    return {one.case.name: one.verdict for one in found.results}


@pytest.mark.usefixtures("no_kernel")
@pytest.mark.parametrize(
    ("controller", "like", "fails"),
    [
        ("bbr3", "bbr3", []),
        ("cubic", "cubic", []),
        ("newreno", "cubic", ["outside.cubic-decrease"]),
        ("newreno", "reno", []),
        ("cubic", "reno", ["outside.reno-decrease"]),
        ("bbr1", "bbr3", ["outside.probe-rtt-dips"]),
        ("cubic", "bbr3", ["outside.deep-buffer-queue", "outside.probe-rtt-dips"]),
        ("fixed:cwnd=400", "any", ["outside.shallow-buffer", "outside.rate-halves", "outside.beside-cubic"]),
    ],
)
def test_controllers_whose_kind_is_known(controller: str, like: str, fails: list[str]) -> None:
    found = judged(controller, like=like)
    assert set(fails) <= set(found.failures), found.failures
    if not fails:
        assert found.failures == [] and found.passed
    for one in found.results:
        assert isinstance(one.case, OutsideCase)
        assert (one.verdict == NOT_APPLICABLE) == (one.case.like not in ("any", like))


@pytest.mark.usefixtures("no_kernel")
def test_median_repetition_counts_with_range(tmp_path: Path) -> None:
    found = judged("bbr3", like="bbr3", cases=["outside.random-loss", "outside.outage"])
    goodput = found.results[0].checks[0]
    low, middle, high = sorted(one for one in goodput.values if one is not None)
    assert goodput.value == middle and low < middle < high
    assert f"({low:.4g} to {high:.4g})" in goodput.measured
    assert found.summary == "bbr3 passes 2 of 2 applicable cases."
    reported = json.loads(found.to_json())
    load = reported["program"].pop("load_a_core")
    assert load >= 0
    assert reported["program"] == {"client": "bbr3", "server": "bbr3", "repetitions": 3, "at_once": 1}
    assert (
        reported["cases"][0]["seeds"] == [1, 2, 3] and len(reported["cases"][0]["criteria"][0]["values"]) == 3
    )
    written = found.write(tmp_path)
    page = (written / "cases" / "outside.outage.html").read_text(encoding="utf-8")
    assert "<svg" in page and "every packet is lost" in page and "Repetition" in page
    assert "judged from outside" in (written / "index.html").read_text(encoding="utf-8")


PAIRS = ["outside.beside-cubic", "outside.two-of-a-kind"]


@pytest.mark.usefixtures("no_kernel")
def test_two_programs_need_a_port_each() -> None:
    subject = Subject("one", {}, sociable=False)
    found = judge({"controller": "cubic"}, subject, world="kernel", cases=PAIRS)
    assert [one.verdict for one in found.results] == [NOT_JUDGED, NOT_JUDGED]
    assert all("{port}" in one.reason for one in found.results)
    assert not found.passed and found.failures == []
    assert found.summary == "one passes 0 of 2 applicable cases; 2 are not judged."


def test_untrusted_runs_give_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(run: Run) -> Run:
        if run.seed > 1 and run.alternative.spec["name"] == "clean":
            return run
        provenance = {**run.summary["provenance"], "untrustworthy": ["packets were 9 ms late"]}
        return replace(run, summary={**run.summary, "provenance": provenance})

    answer_for_the_kernel(monkeypatch, late)
    found = judged("cubic", cases=["outside.clean-goodput", "outside.outage"], attempts=1)
    clean, outage = found.results
    assert clean.verdict == PASS and len(clean.checks[0].values) == 2
    assert clean.reason == "2 of 3 repetitions count: the emulator was late: packets were 9 ms late"
    assert (outage.verdict, outage.checks) == (NOT_JUDGED, ())
    assert outage.reason == "the emulator was late: packets were 9 ms late"
    assert not found.passed


def failing(monkeypatch: pytest.MonkeyPatch, where: Callable[[str, int], bool]) -> None:
    """The kernel world, in which a program fails in some courses and repetitions."""
    answer_for_the_kernel(monkeypatch)
    plain = kernel.Kernel.run

    def run(self: kernel.Kernel, job: object, stop: object, progress: object = None) -> Run:
        if where(job.alternative.spec["name"], job.seed):  # type: ignore[attr-defined]
            raise _native.WorldError("the client ended with code 3: no route")
        return plain(self, job, stop, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(kernel.Kernel, "run", run)


def test_initial_program_failure_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, lambda _name, _seed: True)
    with pytest.raises(fp.WorldError, match="ended with code 3: no route"):
        judged("cubic")


def test_later_program_failure_skips_that_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing(monkeypatch, lambda name, seed: name == "random-loss" or (name == "clean" and seed == 2))
    found = judged("cubic", cases=["outside.clean-goodput", "outside.outage", "outside.random-loss"])
    assert verdicts(found) == {
        "outside.clean-goodput": PASS,
        "outside.random-loss": NOT_JUDGED,
        "outside.outage": PASS,
    }
    reasons = {one.case.name: one.reason for one in found.results}
    assert reasons["outside.random-loss"] == "the client ended with code 3: no route"
    assert reasons["outside.clean-goodput"].startswith("2 of 3 repetitions count: the client ended")


def test_early_program_end_suggests_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(run: Run) -> Run:
        flows = [{**one, "end_ns": 10_000_000_000} for one in run.summary["flows"]]
        return replace(run, summary={**run.summary, "flows": flows})

    answer_for_the_kernel(monkeypatch, ended)
    with pytest.raises(
        fp.WorldError, match=r"ended after 10\.0 s; the case needs 25 s: let it send longer \(the longest"
    ):
        judged("cubic", like="bbr3")


@pytest.mark.usefixtures("no_kernel")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"like": "bbr9"}, "like"),
        ({"repetitions": 0}, "repetitions"),
        ({"at_once": 0}, "at_once"),
        ({"cases": ["outside.clean"]}, "case"),
    ],
)
def test_invalid_argument_is_named(given: dict[str, object], field: str) -> None:
    with pytest.raises(fp.ScenarioError) as raised:
        judged("cubic", **given)
    assert raised.value.field == field


def test_sender_must_be_client_or_server() -> None:
    with pytest.raises(fp.ScenarioError, match="client or server"):
        conform_program("a", "b", sender="both")


def test_conform_takes_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its two commands run where the kernel world is; here they only arrive there."""

    def refuse(_self: kernel.Kernel, job: object, _stop: object, _progress: object = None) -> Run:
        (flow,) = job.alternative.spec["flows"]  # type: ignore[attr-defined]
        raise _native.WorldError(f"{flow['program']['client']}, {flow['program']['sender']}")

    monkeypatch.setattr(kernel.Kernel, "run", refuse)
    with pytest.raises(fp.WorldError, match=r"^a \{server\}, server$"):
        fp.conform(fp.Program("a {server}", "b", "server"), ["outside.outage"])
    with pytest.raises(fp.ScenarioError, match="which alone runs programs"):
        fp.conform(fp.Program("a", "b"), world="sim")
    with pytest.raises(fp.ScenarioError, match="for a controller"):
        fp.conform("bbr3", like="bbr3")


def test_program_name_comes_from_command() -> None:
    assert name_of("/usr/bin/iperf3 -c {server}") == "iperf3"
    assert name_of("A=b ./run -x") == "run"
    assert name_of("A=b") == "A=b"
    assert name_of("") == "program"


def test_program_competes_with_cubic_program() -> None:
    (beside,) = registry.chosen(["outside.beside-cubic"])
    document = beside.on.document({"client": "a {server} {port}", "server": "b {port}", "sender": "server"})
    own, cubic = document["flows"]
    assert own["sender"] == "server" and cubic["sender"] == "client"
    assert "{server} {port}" in cubic["client"] and "{port}" in cubic["server"]
    (alternative,) = from_document(document).alternatives
    assert [flow["label"] for flow in alternative.spec["flows"]] == ["a", "cubic beside it"]


def test_a_case_needs_a_course() -> None:
    one = registry.every()[0]
    with pytest.raises(ValueError, match="needs a course"):
        replace(one, course=None)


# ---- the command ----


def invoke(*words: str) -> "tuple[int, str, str]":
    done = CliRunner().invoke(cli.app, ["conform", *words])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--program", "x"), "--server is given 0 times, --program 1 time"),
        (("--server", "x"), "--server is given 1 time, --program 0 times"),
        (("--sender", "client"), "--sender needs --program"),
        (("bbr3", "--like", "bbr3"), "--like needs --program"),
        (("bbr3", "--program", "x", "--server", "y"), "cannot be given with a controller"),
        (("--program", "x", "--server", "y", "--qlog", "q"), "--qlog has no logs of a program"),
        (("--program", "x", "--server", "y", "--sender", "both"), '--sender is "both"'),
        (("--program", "x", "--server", "y", "--like", "bbr9"), '--like "bbr9" cannot be used'),
        (("--program", "x", "--server", "y", "--at-once", "0"), "--at-once 0 cannot be used"),
        (("--program", "x", "--server", "y", "--repetitions", "0"), "--repetitions 0 cannot be used"),
        (("--program", "x", "--server", "y", "--case", "outside.outages"), "use outside.outage"),
        (("--program", " ", "--server", "y"), "--program is empty"),
        (("--list", "--like", "no"), '--like "no" cannot be used'),
    ],
)
def test_command_line_errors_are_one_sentence(
    words: tuple[str, ...], message: str, in_empty_folder: Path
) -> None:
    code, out, err = invoke(*words)
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1, err
    assert not list(in_empty_folder.iterdir())


@pytest.mark.parametrize("like", LIKES)
def test_list_filters_cases_by_kind(like: str) -> None:
    code, out, _ = invoke("--list", "--like", like)
    assert code == 0
    wanted = [case.name for case in registry.every() if case.like in ("any", like)]
    assert [line.split()[0] for line in out.splitlines()] == wanted


@pytest.mark.parametrize(("load", "warned"), [(0.4, False), (0.6, True)])
def test_a_busy_machine_is_told_of(
    load: float, warned: bool, monkeypatch: pytest.MonkeyPatch, in_empty_folder: Path
) -> None:
    cores = machine.cores()
    monkeypatch.setattr(os, "getloadavg", lambda: (load * cores, 0.0, 0.0))

    def run(self: kernel.Kernel, job: object, stop: object, progress: object = None) -> Run:
        del self, stop, progress
        return record(CLEAN, Shape(), job.seed)  # type: ignore[attr-defined]

    monkeypatch.setattr(kernel.Kernel, "run", run)
    words = ("--program", "a", "--server", "b", "--case", "outside.clean-goodput", "--json")
    code, out, err = invoke(*words)
    assert code == 0 and json.loads(out)["program"]["load_a_core"] == load
    assert ("the machine was busy" in err) is warned, err


SENDER = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as link:
    while True:
        link.sendall(bytes(65536))
"""
RECEIVER = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as door:
    link, _ = door.accept()
    while link.recv(65536):
        pass
"""


@pytest.mark.usefixtures("kernel_world")
def test_a_program_of_anybodys(in_empty_folder: Path) -> None:
    """Linux's own CUBIC or Reno, by a sender of five lines: a clean path is used, whichever it is."""
    (in_empty_folder / "send.py").write_text(SENDER)
    (in_empty_folder / "receive.py").write_text(RECEIVER)
    python, here = sys.executable, os.fspath(in_empty_folder)
    done = command(
        "conform",
        *("--program", f"{python} {here}/send.py {{server}} {{port}}"),
        *("--server", f"{python} {here}/receive.py {{port}}"),
        *("--case", "outside.clean-goodput", "--repetitions", "1", "--out", "kept"),
    )
    if "not judged" in done.stdout:
        # A busy machine gives no verdict, but its reason.
        # The reasons of `trust.rs`: the emulator or a host was late, or the machine below.
        busy = r"waited for a processor|more than \S+ m?s late|fell .+ behind|host stalled|processors' time"
        assert done.returncode == 1 and re.search(busy, " ".join(done.stdout.split())), done.stdout
        pytest.skip("the machine was too busy for a verdict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outside.clean-goodput" in done.stdout and "passes 1 of 1 applicable case" in done.stdout
    reported = json.loads((in_empty_folder / "kept" / "conformance.json").read_text(encoding="utf-8"))
    (case,) = reported["cases"]
    assert case["verdict"] == PASS and case["criteria"][0]["measured"] > 85
    assert (in_empty_folder / "kept" / "cases" / "outside.clean-goodput.html").is_file()


@pytest.mark.usefixtures("kernel_world")
def test_failing_program_error_shows_last_output(in_empty_folder: Path) -> None:
    done = command(
        "conform",
        *("--program", "echo no such plan >&2; exit 3", "--server", "sleep 60"),
        *("--case", "outside.clean-goodput", "--repetitions", "1"),
    )
    assert done.returncode != 0
    assert "no such plan" in done.stderr and "Traceback" not in done.stderr
    assert not list(in_empty_folder.iterdir())
