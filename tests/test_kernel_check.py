"""Whether the emulator is accurate: the verdict on measures, what is kept of it, and the command itself."""

import io
import json
from array import array
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from conftest import command
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.report import tables
from fullpipe.report.figures import emulator
from fullpipe.runs import doctor
from fullpipe.runs.worlds import kernel, kernel_check, kernel_trust
from fullpipe.runs.worlds.kernel_check import Measured, Probe, RateVerdict

LIGHT = Probe(100_000_000, "light", 1500, 5.0)
HEAVY = replace(LIGHT, load="heavy")
Measures = dict[str, Any]


def light() -> Measures:
    """What a good emulator gives: 8333 packets, 91 of them lost, as they should be."""
    return {
        "sent": 8333,
        "sent_bps": 20e6,
        "received": 8242,
        "reordered": 0,
        "duplicated": 0,
        "damaged": 0,
        "late": {"min_ns": 20_000, "p50_ns": 80_000, "p99_ns": 300_000, "max_ns": 2_000_000},
        "stamp_error_ns": 100,
        "decisions": {
            "dropped": 91,
            "expected": 91,
            "differently": 0,
            "first": None,
            "furthest_apart": 0,
        },
        "lost": {"packets": 91, "of": 8333, "low": 0.008, "high": 0.0154},
        "received_bps": 19.8e6,
        "expected_bps": 19.8e6,
        "received_over_time": [[100_000_000, 20e6]],
        "full": None,
        "outside": dict.fromkeys(("refused", "before", "after", "receiver", "unstamped"), 0),
        "lateness_limit_ns": 1_000_000,
        "own_p99_ns": 200_000,
        "own_max_ns": 1_900_000,
        "own_doubts": [],
    }


def heavy() -> Measures:
    """The same, full: 62 500 packets, of which the queue dropped a third once it was full."""
    return {
        **light(),
        "sent": 62_500,
        "sent_bps": 150e6,
        "received": 42_083,
        "decisions": {
            "dropped": 20_417,
            "expected": 20_416,
            "differently": 901,
            "first": 1252,
            "furthest_apart": 1,
        },
        "lost": None,
        "received_bps": 100.01e6,
        "expected_bps": 99.99e6,
        "full": {
            "first": 1250,
            "sent_bps": 150e6,
            "dropped": 20_417,
            "expected": 20_416,
            "sent": 61_250,
            "queueing": {"min_ns": 0, "p50_ns": 49_950_000, "p99_ns": 50_000_000, "max_ns": 52_000_000},
            "expected_queueing": dict.fromkeys(("min_ns", "p50_ns", "p99_ns", "max_ns"), 49_900_000),
        },
    }


def verdict(of_light: Measures | None = None, of_heavy: Measures | None = None) -> RateVerdict:
    trips = array("q", [0, 20_120_000, 20_120_000, 1, 600_000, -1, -1, 0]).tobytes()
    return RateVerdict.of(
        Measured(LIGHT, of_light or light(), trips), Measured(HEAVY, of_heavy or heavy(), trips)
    )


def test_exact_emulator_is_accurate() -> None:
    assert verdict().accurate, verdict().wrong
    assert verdict().wrong == []


# What is spoiled in which of the two, how, the finding that must tell, and a word of its sentence.
SPOILED: list[tuple[str, Callable[[Measures], object], str, str]] = [
    ("heavy", lambda m: m.update(received_bps=99.4e6), "rate", "99.4 Mbit/s"),
    ("heavy", lambda m: m.update(received_bps=100.6e6), "rate", "100.6 Mbit/s"),
    ("heavy", lambda m: m.update(received_bps=None), "rate", "0 Mbit/s"),
    ("light", lambda m: m["decisions"].update(differently=1, first=17, dropped=92), "losses", "packet 17"),
    ("light", lambda m: m["lost"].update(low=0.0101), "losses", "1%"),
    ("light", lambda m: m["late"].update(p50_ns=201_000), "delay", "0.201 ms"),
    ("light", lambda m: m["late"].update(p99_ns=1_000_001), "delay", "1.000 ms"),
    ("heavy", lambda m: m["late"].update(p99_ns=9_000_000), "delay", "under full load"),
    ("light", lambda m: m["late"].update(min_ns=-6_000), "early", "0.006 ms early"),
    ("light", lambda m: m.update(late=None), "delay", "nothing arrived"),
    ("heavy", lambda m: m["full"]["queueing"].update(p50_ns=49_000_000), "queue", "49.000 ms"),
    ("heavy", lambda m: m["full"]["queueing"].update(p50_ns=50_400_000), "queue", "50.400 ms"),
    ("heavy", lambda m: m["full"]["queueing"].update(p50_ns=49_550_000), "queue", "49.550 ms"),
    ("heavy", lambda m: m["full"]["queueing"].update(p99_ns=51_200_000), "queue delay", "up to 51.200 ms"),
    ("heavy", lambda m: m.update(full=None), "queue", "never filled"),
    ("heavy", lambda m: m["full"].update(dropped=20_000), "drops", "32.65%"),
    # The model wrong in the same way.
    ("heavy", lambda m: m["full"].update(dropped=20_000, expected=20_000), "drops", "expected 33.33%"),
    ("heavy", lambda m: m["decisions"].update(dropped=20_600), "drops", "20600 packets"),
    ("heavy", lambda m: m.update(reordered=1), "order", "1 packets are reordered"),
    ("light", lambda m: m.update(duplicated=1), "order", "duplicated"),
    ("light", lambda m: m.update(damaged=1), "order", "damaged"),
    ("heavy", lambda m: m.update(sent_bps=104e6), "offered", "104 Mbit/s of 150"),
    ("heavy", lambda m: m.update(expected_bps=99.4e6), "offered", "paused so long"),
    ("heavy", lambda m: m["outside"].update(before=3), "carried", "3 packets were dropped before"),
]


@pytest.mark.parametrize(("where", "spoil", "name", "word"), SPOILED)
def test_inexact_emulator_is_detected(
    where: str, spoil: Callable[[Measures], object], name: str, word: str
) -> None:
    both = {"light": light(), "heavy": heavy()}
    spoil(both[where])
    found = verdict(both["light"], both["heavy"])
    assert not found.accurate
    assert name in [one.name for one in found.findings if not one.ok]
    assert word in "; ".join(found.wrong)


@pytest.mark.parametrize("where", ["receiver", "before"])
def test_outside_loss_is_not_emulator_error(where: str) -> None:
    lossy = heavy()
    lossy["outside"][where] = 3000
    lossy["received_bps"] = 92e6
    lossy["decisions"].update(dropped=17_416)
    lossy["full"].update(dropped=17_416, queueing={**lossy["full"]["queueing"], "p50_ns": 40_000_000})
    assert verdict(None, lossy).word == "out of reach"
    assert "3000 packets" in "; ".join(verdict(None, lossy).wrong)


def test_only_inexcusable_errors_blame_emulator() -> None:
    slow, wrong, lossy = light(), light(), light()
    slow["late"]["p99_ns"] = 5_000_000
    wrong["decisions"]["differently"] = 1
    lossy["decisions"]["differently"] = 1
    lossy["outside"]["before"] = 1
    words = [verdict(measures).word for measures in (slow, wrong, lossy)]
    assert words == ["late", "INACCURATE", "out of reach"]


def test_inaccuracy_unnoticed_by_emulator_is_reported() -> None:
    slow = light()
    slow["late"]["p99_ns"] = 5_000_000
    assert "would not mark" in " ".join(tables.emulator_notes([verdict(slow)]))
    slow["own_doubts"] = ["1 % of packets left more than 5 ms late"]
    assert "would not mark" not in " ".join(tables.emulator_notes([verdict(slow)]))


def test_emulator_columns_have_unique_names() -> None:
    for lines in (tables.emulator_markdown([verdict()]).splitlines()[0].split("|")[1:-1],):
        assert len(set(lines)) == len(lines)
    headings = [column.heading.replace("\n", " ") for column in tables.emulator([verdict()]).columns]
    assert {"Drops that differ packets", "Losses that differ packets"} <= set(headings)


def test_plan_covers_rates_within_time_budget() -> None:
    full, quick = kernel_check.plan(quick=False), kernel_check.plan(quick=True)
    assert [probe.rate_bps // 1_000_000 for probe in full[::2]] == [1, 10, 100, 500, 1000, 2000]
    assert kernel_check.seconds(quick=False) < 120
    assert kernel_check.seconds(quick=True) < 30
    for probe in full + quick:
        spec = probe.job().alternative.spec
        link = spec["forward"][0]
        assert (link["rate_bps"]["initial"], link["queue"]["bytes"]) == (probe.rate_bps, probe.buffer_bytes)
        assert spec["forward"][-1] == {"kind": "delay", "delay_ns": {"initial": 20_000_000}}
        assert len(spec["forward"]) == (3 if probe.load == "light" else 2)


def found(*true_bps: int, **more: Any) -> kernel_trust.Trust:
    checked = (1_000_000, 10_000_000, 100_000_000)
    message = {
        "machine": kernel_trust.Machine.here(),
        "when": "2026-01-02 03:04",
        "quick": False,
        "took_s": 70.0,
        "load": 0.3,
        "stolen": 0.0,
        "checked_bps": checked,
        "true_bps": true_bps,
        "version": "0.1.0",
    }
    return kernel_trust.Trust(**{**message, **more})


def test_trust_statement_names_accurate_rate_ranges() -> None:
    kilo = 1_000_000

    def message(*true_mbit: int) -> str:
        return found(*(one * kilo for one in true_mbit)).statement.removeprefix(
            "On this machine the kernel world "
        )

    assert message(1, 10, 100) == "can be trusted from 1 to 100 Mbit/s, the highest rate that was checked."
    assert message(1, 10) == "can be trusted from 1 to 10 Mbit/s, but not at 100 Mbit/s."
    # One late lowest rate says nothing of those above it.
    assert message(10, 100) == "can be trusted from 10 to 100 Mbit/s, but not at 1 Mbit/s."
    assert message(1, 100) == "can be trusted at 1 and at 100 Mbit/s, but not at 10 Mbit/s."
    assert message(10) == "can be trusted at 10 Mbit/s, but not at 1 and 100 Mbit/s."
    assert message() == "cannot be trusted at any rate that was checked."
    assert found(kilo, 100 * kilo).ranges_bps == [(kilo, kilo), (100 * kilo, 100 * kilo)]


def measured_here(monkeypatch: pytest.MonkeyPatch, *verdicts: RateVerdict) -> int:
    """The exit code of a check that measures this."""
    monkeypatch.setattr(kernel_check, "run", lambda _plan, _watch: list(verdicts))
    with pytest.raises(SystemExit) as left:
        cli.app(["kernel", "check"])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.mark.usefixtures("cache")
def test_inaccurate_rate_exits_1_late_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = light()
    slow["late"]["p99_ns"] = 5_000_000
    halved = {**heavy(), "received_bps": 50e6}
    assert measured_here(monkeypatch, verdict(), verdict()) == 0
    assert measured_here(monkeypatch, verdict(), verdict(None, halved)) == options.DISAGREE
    trusted = replace(HEAVY, rate_bps=10_000_000)
    ten = RateVerdict(Measured(trusted, light()), Measured(trusted, heavy()), ())
    assert measured_here(monkeypatch, verdict(slow), ten) == 0
    assert measured_here(monkeypatch, verdict(slow)) == options.DISAGREE


def test_json_and_markdown_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.app(["kernel", "check", "--json", "--markdown"])
    assert left.value.code == options.MISTAKE
    message = "fullpipe: --json cannot be used with --markdown; leave out one of the two\n"
    assert capsys.readouterr().err == message


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fullpipe" / "kernel-check.json"


def doctor_output() -> doctor.Requirement:
    (one,) = [check for check in doctor.requirements() if check.name == "emulator"]
    return one


def test_doctor_reports_last_check_and_date(cache: Path) -> None:
    assert "not measured: run `fullpipe kernel check`" in doctor_output().found
    found(1_000_000).keep()
    assert kernel_trust.kept() == found(1_000_000)
    assert "trusted at 1 Mbit/s, but not at" in doctor_output().found
    assert "2026-01-02" in doctor_output().found
    found().keep()
    assert not doctor_output().ok
    assert [path.name for path in cache.parent.glob("*check*")] == [cache.name]


@pytest.mark.usefixtures("cache")
def test_quick_check_never_replaces_full() -> None:
    full, quick = found(1_000_000), found(quick=True)
    assert full.keep() is None
    assert quick.keep() == full
    assert kernel_trust.kept() == full
    for other in (
        replace(kernel_trust.Machine.here(), kernel="2.4.0"),
        replace(kernel_trust.Machine.here(), hz=7),
    ):
        found(1_000_000, machine=other).keep()
        quick.keep()
        assert kernel_trust.kept() == quick
    found(1_000_000, version="0.0.1").keep()
    quick.keep()
    assert kernel_trust.kept() == quick
    full.keep()
    assert kernel_trust.kept() == full


def test_check_of_another_machine_is_ignored(cache: Path) -> None:
    found(1_000_000, machine=replace(kernel_trust.Machine.here(), kernel="2.4.0")).keep()
    assert "not measured since the machine changed (Linux 2.4.0" in doctor_output().found
    found(1_000_000, machine=replace(kernel_trust.Machine.here(), cores=77)).keep()
    assert "77 cores, HZ" in doctor_output().found


WHOLE = json.dumps(asdict(found(1_000_000)))
DAMAGED = [
    "",
    "null",
    "[]",
    "{}",
    WHOLE[:100],
    "[" * 100_000,
    "\x00\x01",
    WHOLE.replace('"cores": ', '"cores": "many", "was": '),
    WHOLE.replace('"machine": {', '"machine": 7, "was": {'),
    WHOLE.replace('"true_bps": [', '"true_bps": 5, "was": ['),
    WHOLE.replace('"true_bps": [', '"true_bps": [Infinity, '),
    WHOLE.replace('"load": 0.3', '"load": null'),
]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_counts_as_none(cache: Path, text: str) -> None:
    cache.parent.mkdir()
    cache.write_text(text)
    assert kernel_trust.kept() is None
    assert "not measured" in doctor_output().found


def test_unusable_cache_is_harmless(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    found(1_000_000).keep()
    assert kernel_trust.kept() is None
    cache.rmdir()
    cache.write_bytes(b"\xff\xfe\x00")
    assert kernel_trust.kept() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    found(1_000_000).keep()
    assert kernel_trust.kept() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.delenv("HOME")
    found(1_000_000).keep()
    assert kernel_trust.kept() is None


def test_check_writes_picture_measures_and_packets(tmp_path: Path) -> None:
    emulator.write([verdict()], found(1_000_000), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "check.json",
        "emulator.svg",
        "emulator.png",
        "packets.parquet",
    }
    packets = pl.read_parquet(tmp_path / "packets.parquet")
    assert packets["received_ns"].to_list() == [20_120_000, None] * 2
    assert packets["expected"].to_list() == [True, False] * 2
    assert packets["load"].to_list() == ["light", "light", "heavy", "heavy"]
    assert "Is the emulator accurate?" in (tmp_path / "emulator.svg").read_text()


def test_measures_without_packets_can_be_shown() -> None:
    none = {**heavy(), "late": None, "full": None, "received_bps": None, "received_over_time": []}
    shown = verdict({**light(), "late": None, "lost": None}, none)
    assert not shown.accurate
    assert "–" in tables.emulator_markdown([shown])
    emulator.figure([shown], found()).to_dict()


@pytest.mark.usefixtures("kernel_world")
def test_a_quick_check_measures_this_machine(tmp_path: Path) -> None:
    done = command(
        "kernel", "check", "--quick", "--json", "--out", str(tmp_path / "out"), XDG_CACHE_HOME=str(tmp_path)
    )
    # 1 says that this machine, busy as it may be, can be trusted at no rate.
    assert done.returncode in (0, 1), done.stderr
    printed = json.loads(done.stdout)
    assert [one["rate_bps"] for one in printed["rates"]] == [1e6, 1e7, 1e8, 5e8]
    for one in printed["rates"]:
        slow, full = one["light"], one["heavy"]
        assert 0 < slow["received"] <= slow["sent"]
        # What no machine excuses: nothing is early, twice or out of order.
        for probe in (slow, full):
            assert (probe["reordered"], probe["duplicated"], probe["damaged"]) == (0, 0, 0)
            assert probe["late"]["min_ns"] >= -(probe["stamp_error_ns"] + kernel_check.EARLY_TOLERANCE_NS)
        if not any(slow["outside"].values()):
            assert slow["decisions"]["differently"] == 0
        assert 0 < full["received_bps"] < 1.05 * one["rate_bps"]
    assert (tmp_path / "out" / "emulator.png").stat().st_size > 10_000
    packets = pl.read_parquet(tmp_path / "out" / "packets.parquet")
    assert packets.height == sum(one[load]["sent"] for one in printed["rates"] for load in ("light", "heavy"))
    reported = command("doctor", XDG_CACHE_HOME=str(tmp_path))
    # A long statement goes on in the next line of its column, whose other columns are empty there.
    assert printed["statement"] in " ".join(reported.stdout.split())


@pytest.mark.usefixtures("kernel_world")
def test_inexact_real_path_is_detected() -> None:
    """The path has 9.8 Mbit/s where 10 were asked for."""
    probes = [Probe(10_000_000, load, 500, 1.0) for load in ("light", "heavy")]
    broken = [replace(probe, rate_bps=9_800_000) for probe in probes]
    for _ in range(8):
        measured = []
        for asked, other in zip(probes, broken, strict=True):
            measures, trips = kernel.probe(other.job(), asked.request())
            measured.append(Measured(asked, json.loads(measures), trips))
        verdict = RateVerdict.of(*measured)
        assert not verdict.accurate
        wrong = [one.name for one in verdict.findings if not one.ok]
        # If the machine stalls, the sender cannot fill the link, and the rate is not judged.
        if "offered" not in wrong:
            assert "rate" in wrong, verdict.wrong
            return
    pytest.skip("the machine stalled during each of eight attempts")


def test_unsendable_probe_is_refused() -> None:
    job = LIGHT.job()
    with pytest.raises(Exception, match=r"probe.datagram_bytes: 9000 bytes"):
        kernel.probe(job, {**LIGHT.request(), "datagram_bytes": 9000})
    with pytest.raises(Exception, match="probe: missing field"):
        kernel.probe(job, {})


@pytest.mark.parametrize("width", [80, 160])
def test_emulator_table_fits_every_terminal(width: int) -> None:
    table = tables.emulator([verdict()])
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for cell in table.rows[0]:
        assert all(word in text.split() for word in cell.plain.split())
