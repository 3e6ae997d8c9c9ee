"""The world `quic` with the real stacks: needs the program fullpipe-quic, which `make quic` builds."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fullpipe as fp
import quic_tables
from conftest import command
from fullpipe import api, evidence, shipped
from fullpipe.cli import app as cli
from fullpipe.conformance.results import NOT_APPLICABLE, PASS
from fullpipe.errors import OutputError
from fullpipe.measures.run import Run
from fullpipe.report.figures import theme
from fullpipe.runs.worlds import quic, quic_program, registry
from test_bad_input import powerless

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.usefixtures("quic_stacks")

PATH: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms", "duration": "3 s"}
STACKS = ["noq:bbr3", "noq:cubic", "noq:newreno", "quinn:bbr", "quinn:cubic", "quinn:newreno"]


def test_program_has_every_stack_controller() -> None:
    listed = {one["name"]: one for one in api.controllers()}
    assert set(STACKS) <= set(listed)
    assert listed["noq:bbr3"]["source"].startswith("noq-proto 1.")
    (needs,) = quic.WORLD.checks()
    assert needs["ok"], needs


def test_stack_controllers_use_most_of_path() -> None:
    found = fp.compare(STACKS, world="quic", seeds=1, **PATH)
    assert found.notes == []
    for label, goodput in zip(found.summary["controller"], found.summary["goodput_bps"], strict=True):
        assert 7e6 < goodput < 9.6e6, label


def test_results_say_what_was_unsupported() -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms"}
    labels = ["bbr3", "noq:bbr3", "quinn:bbr", "quinn:cubic"]
    document = {"name": "one", "duration": "0.5 s", "path": path, "flows": [{}], "compare": labels}
    plain, paced = (
        {group.label: group.unsupported for group in fp.run({**document, **more}, world="quic").groups}
        for more in ({}, {"hosts": {"pacing": True}})
    )
    assert plain["bbr3"] and all(one.startswith("noq") for one in plain["bbr3"])
    (pacer,) = plain["quinn:bbr"]
    assert pacer.startswith("quinn's pacer takes no rate")
    assert plain["noq:bbr3"] == plain["quinn:cubic"] == []
    ignored = "hosts.pacing is ignored: the stack paces every flow."
    assert paced == {label: [*sentences, ignored] for label, sentences in plain.items()}
    found = fp.conform("quinn:bbr", ["deep-buffer"])
    assert found.to_dict()["unsupported"] == [pacer]


def test_own_controller_over_quic_matches_sim() -> None:
    agreed = fp.agree(
        {
            "name": "bbr3",
            "duration": "5 s",
            "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp"},
            "flows": [{"controller": "bbr3"}],
        },
        worlds=("sim", "quic"),
        seeds=1,
    )
    simulated, real = (run.summary["total_goodput_bps"] for run in agreed.results.runs)
    assert real == pytest.approx(simulated, rel=0.05)


def test_equal_seeds_give_equal_records() -> None:
    lossy = {**PATH, "loss": "0.5 %"}
    first, again = (fp.compare(["noq:bbr3", "bbr3"], world="quic", seeds=[1, 2], **lossy) for _ in range(2))
    for one, other in zip(first.runs, again.runs, strict=True):
        assert one.summary == other.summary
        assert one.flow_parquet == other.flow_parquet and one.link_parquet == other.link_parquet
    assert first.runs[0].summary["flows"] != first.runs[1].summary["flows"]


def test_unknown_and_python_controllers_are_refused() -> None:
    with pytest.raises(fp.WorldError, match="noq has no controller elephant; choose noq:bbr3"):
        fp.compare(["noq:elephant"], world="quic", **PATH)
    with pytest.raises(fp.WorldError, match="noq has no controller elephant; choose noq:bbr3"):
        fp.conform("noq:elephant", ["policer"])


def test_cases_are_played_over_the_stacks() -> None:
    found = fp.conform("bbr3", ["startup-plateau", "deep-buffer"], world="quic")
    assert [one.verdict for one in found.results] == [PASS, PASS], list(found.rows())
    assert "noq-proto 1." in found.versions
    stack = fp.conform("noq:cubic", ["startup-plateau", "clean-path"])
    assert [one.verdict for one in stack.results] == [NOT_APPLICABLE, PASS], list(stack.rows())


def test_spurious_recovery_passes_timeout_not_applicable() -> None:
    found = fp.conform("bbr3", ["spurious-recovery", "spurious-timeout"], world="quic").results
    assert {one.case.name: (one.verdict, "probe timeout" in one.reason) for one in found} == {
        "spurious-recovery": (PASS, False),
        "spurious-timeout": (NOT_APPLICABLE, True),
    }


def test_claim_has_world_column(in_empty_folder: Path) -> None:
    del in_empty_folder
    arguments = [
        "study",
        "run",
        "queue16.fig4",
        "--quick",
        "--world",
        "quic",
        "--seeds",
        "1",
        "--out",
        "here",
    ]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    (reported,) = json.loads(Path("here/claims.json").read_text(encoding="utf-8"))["claims"]
    assert [one["world"] for one in reported["findings"]] == ["quic"]
    assert "QUIC" in Path("here/report.html").read_text(encoding="utf-8")


def test_claims_page_compares_worlds(no_kernel: None, in_empty_folder: Path) -> None:
    del no_kernel, in_empty_folder
    asked = [
        "study",
        "run",
        "queue16.fig4",
        "--quick",
        "--world",
        "all",
        "--seeds",
        "1",
        "--repetitions",
        "1",
    ]
    done = CliRunner().invoke(cli.app, [*asked, "--out", "here"])
    assert done.exit_code == 0, done.output
    (reported,) = json.loads(Path("here/claims.json").read_text(encoding="utf-8"))["claims"]
    worlds = ["sim", "kernel", "quic"]
    assert [one["world"] for one in reported["findings"]] == worlds
    titles = [theme.world_heading(world) for world in worlds]
    assert len(set(titles)) == 3
    page = Path("here/report.html").read_text(encoding="utf-8")
    # The verdicts at the claim, in this order, and a column for each world in both tables.
    assert re.findall(r'<p class="verdict"><b>([^:<]+):', page) == titles
    for table in re.findall(r"<thead>.*?</thead>", page, re.DOTALL)[:2]:
        assert [place for title in titles if (place := table.find(f">{title}<")) < 0] == [], table
    # A check that has a value in one world has one in each.
    data = [{check["what"]: check["said"] for check in one["checks"]} for one in reported["findings"]]
    assert data[0] and data[0].keys() == data[1].keys() == data[2].keys()


def test_bbr3_queue_claim_runs_over_quic(in_empty_folder: Path) -> None:
    """Flows of 100 Mbit/s and of 1 Gbit/s, with and without natural jitter of the hosts: about a minute."""
    del in_empty_folder
    asked = ["study", "run", "ccwg25.queue1", "--quick", "--world", "quic", "--seeds", "1", "--out", "here"]
    done = CliRunner().invoke(cli.app, asked)
    assert done.exit_code == 0, done.output
    (reported,) = json.loads(Path("here/claims.json").read_text(encoding="utf-8"))["claims"]
    (finding,) = reported["findings"]
    assert finding["world"] == "quic"
    # One seed decides nothing, but each check has its value.
    assert finding["verdict"] == "inconclusive" and "1 seed" in finding["reason"]
    checks = {check["what"]: check for check in finding["checks"]}
    assert all(check["ours"] is not None for check in checks.values())
    noticeable = checks["bbr3: 99th percentile of its queue (noticeable)"]
    assert 0.1 < noticeable["ours"] < 2
    assert checks["CUBIC's median queue divided by that of bbr3"]["ours"] > 2


def test_grid_matches_its_page() -> None:
    """All cells with one seed, against the ranges in docs/explanation/quic.md: about twenty seconds."""
    page = (ROOT / "docs" / "explanation" / "quic.md").read_text(encoding="utf-8")
    written = {
        line["key"]["cell"]: line["measures"]
        for line in evidence.read(ROOT / "results" / "agreement.jsonl")
        if line["key"]["grid"] == "quic" and line["key"]["cell"] is not None
    }
    grid = ROOT / "scenarios" / "grids" / "quic.toml"
    done = command("agree", "--grid", str(grid), "--worlds", "sim,quic", "--seeds", "1", "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["met"] and reported["failed"] == [] and reported["compared_cells"] == 36
    median, tail = (one["measured"] for one in reported["targets"])
    assert f"goodput is {median:.1%} apart in the median and {tail:.1%} in".replace("%", " %") in page
    cells = {one["cell"]: one["measures"] for one in reported["cells"]}
    assert cells.keys() == written.keys()
    assert {name.split(",")[0] for name in cells} == {"newreno", "cubic", "bbr1", "bbr3"}
    # The lines are from a table: half of its last digit.
    for measure, rounding in (("goodput_bps", 5e3), ("rtt_mean_ms", 0.05), ("retransmits", 0.5)):
        for name, measures in cells.items():
            there = written[name][measure]["theirs"]
            ours = measures[measure]["quic"]["mean"]
            assert there["least"] - rounding <= ours <= there["most"] + rounding, (name, measure)


@pytest.mark.parametrize(("rate", "rtt"), [("20 Mbit/s", "40 ms"), ("50 Mbit/s", "20 ms")])
def test_varying_delay_overflows_queue_at_probe(rate: str, rtt: str) -> None:
    """Why real sockets drop more packets than virtual time does (docs/how-to/quic-stacks.md)."""

    def dropped_after_startup(**path: Any) -> list[int]:
        document = {
            "name": "download",
            "duration": "30 s",
            "path": {"rate": rate, "rtt": rtt, "buffer": "1 bdp", **path},
            "flows": [{"controller": "bbr3", "size": "16.777216 MB"}],
        }
        queues = [run.link_series() for run in fp.run(document, world="quic", seeds=3).runs]
        counts = [
            (one.filter(one["time_s"] < 1)["dropped_packets"], one["dropped_packets"]) for one in queues
        ]
        assert all(early[-1] > 0 for early, _ in counts)
        return [total[-1] - early[-1] for early, total in counts]

    assert dropped_after_startup() == [0, 0, 0]
    assert all(dropped > 0 for dropped in dropped_after_startup(jitter="1 ms"))


def test_the_world_needs_no_rights() -> None:
    asked = ("noq:cubic", "--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "1 s")
    done = powerless("compare", *asked, "--world", "quic", "--seeds", "1", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["world"], result["controller"]) == ("quic", "noq:cubic")
    assert result["goodput_bps"]["mean"] > 7e6


def test_dead_parent_leaves_no_process(quic_stacks: Path) -> None:
    """The program ends when its input does."""
    process = subprocess.Popen([quic_stacks, "play"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\0" * 7 + b"\x02{}", b"\0" * 7 + b"\x03abc"])
@pytest.mark.parametrize("command", ["run", "play", "refuses"])
def test_hostile_input_is_refused_without_panic(command: str, data: bytes, quic_stacks: Path) -> None:
    done = subprocess.run([quic_stacks, command], input=data, capture_output=True, timeout=60, check=False)
    assert b"panicked" not in done.stderr, done.stderr
    assert b'"ok":true' not in done.stdout


def test_copied_program_is_same_build(
    quic_stacks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copy(quic_stacks, copy)
    before = registry.named("quic").build()
    monkeypatch.setenv("FULLPIPE_QUIC", str(copy))
    assert registry.named("quic").build() == before


@pytest.mark.parametrize("controller", ["noq:cubic", "quinn:cubic", "bbr3"])
def test_receive_window_limits_like_tcp(controller: str) -> None:
    """The premise of the case is that it does: 80 KB of 128 KB of memory, on a path of 100 KB."""
    (found,) = fp.conform(controller, ["receive-window"], world="quic").results
    (limited,) = [check.value for check in found.checks if check.criterion.key == "limited"]
    # 7/8 of the window, because a stack tells of credit by the eighth, to all of it.
    assert found.verdict == PASS and limited is not None and 0.65 < limited < 0.85, limited


LOGGED: dict[str, Any] = {**PATH, "buffer": "0.5 bdp", "loss": "0.5 %"}


def events_of(path: Path) -> list[dict[str, Any]]:
    """The texts of a JSON text sequence (RFC 7464)."""
    before, *texts = path.read_text().split("\x1e")
    assert before == "" and all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts]


def test_qlog_has_events_of_each_packet(tmp_path: Path) -> None:
    found = fp.compare(["noq:bbr3", "quinn:bbr", "bbr3"], world="quic", seeds=1, qlog=tmp_path, **LOGGED)
    plain = fp.compare(["noq:bbr3", "quinn:bbr", "bbr3"], world="quic", seeds=1, **LOGGED)
    for run, without in zip(found.runs, plain.runs, strict=True):
        assert (run.summary, run.flow_parquet) == (without.summary, without.flow_parquet), run.label
        sequence, contained = run.logs
        head, *events = events_of(sequence)
        assert "x-fullpipe:qlog:events:quic#tcp" not in head["trace"]["event_schemas"]
        assert f"world quic, seed 1; {run.label}: {run.label}" in head["trace"]["description"]
        of = {
            name: [one["data"] for one in events if one["name"] == name]
            for name in {one["name"] for one in events}
        }
        (flow,) = run.summary["flows"]
        assert len(of["quic:packet_lost"]) == flow["retransmits"] > 5, run.label
        assert 0 <= len(of["quic:packet_sent"]) - flow["segments_sent"] < 8, run.label
        offered = sum(
            frame["raw"]["payload_length"]
            for one in of["quic:packet_sent"]
            for frame in one["frames"]
            if frame["frame_type"] == "stream"
        )
        assert offered >= flow["delivered_bytes"] > 0
        acknowledged = [
            frame["acked_ranges"]
            for one in of["quic:packet_received"]
            for frame in one["frames"]
            if frame["frame_type"] == "ack"
        ]
        assert len(acknowledged) > 100
        metrics = {name for one in of["quic:recovery_metrics_updated"] for name in one}
        assert metrics >= {
            "congestion_window",
            "bytes_in_flight",
            "smoothed_rtt",
            "min_rtt",
            "latest_rtt",
            "pacing_rate",
        }
        phases = [one["new"] for one in of["quic:congestion_state_updated"]]
        assert phases[0] == "startup" and len(phases) > 1, run.label
        assert [one["time"] for one in events] == sorted(one["time"] for one in events)
        older = json.loads(contained.read_text())["traces"][0]
        assert older["common_fields"]["protocol_type"] == ["QUIC"]
        lost = [one for one in older["events"] if one["name"] == "recovery:packet_lost"]
        assert len(lost) == flow["retransmits"]


def test_equal_seeds_give_equal_qlogs(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "other"):
        found = fp.compare(
            ["noq:bbr3", "quinn:bbr"], world="quic", seeds=[1, 2], qlog=tmp_path / name, **LOGGED
        )
        texts.append([path.read_bytes() for run in found.runs for path in run.logs])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == len(texts[0]) == 8


def test_full_qlog_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "MOST", 100)
    (run,) = fp.compare(["noq:cubic"], world="quic", seeds=1, qlog=tmp_path, **PATH).runs
    (note,) = run.log_notes
    assert "its logs end at 0." in note
    *events, last = events_of(run.logs[0])
    assert last["name"] == "loglevel:warning"
    assert sum(one.get("name") in ("quic:packet_sent", "quic:packet_received") for one in events) == 100


def test_unwritable_qlog_ends_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No file may be larger than 1 MB: what is written beyond fails as on a full disk.
    limited = tmp_path / "limited"
    limited.write_text(f"""#!/bin/sh\ntrap '' XFSZ\nulimit -f 2048\nexec '{shipped.quic()}' "$@"\n""")
    limited.chmod(0o755)
    monkeypatch.setenv(quic_program.VARIABLE, str(limited))
    with pytest.raises(OutputError, match="File too large"):
        fp.compare(["noq:cubic"], world="quic", seeds=1, qlog=tmp_path / "logs", **PATH)
    assert list((tmp_path / "logs").iterdir()) == []


def test_stack_failures_have_qlog(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "bench" / "quic_conform.py"
    asked = ["noq:bbr3", "--case", "clean-path", "--failures", str(tmp_path), "--qlog", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, script, *asked], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    names = {one.name for one in tmp_path.iterdir()}
    assert "noq-bbr3-clean-path.toml" in names
    (logged,) = [name for name in names if name.endswith(".sqlog")]
    assert logged.startswith("quic-noq-bbr3-clean-path") and logged.replace(".sqlog", ".qlog") in names
    assert any(one.get("name") == "quic:packet_lost" for one in events_of(tmp_path / logged))
    done = subprocess.run(
        [sys.executable, script, "--qlog", "/dev/null/x"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0 and 'qlog: "/dev/null/x" cannot be used' in done.stderr


@pytest.mark.parametrize("controller", ["noq:bbr3", "quinn:bbr"])
def test_page_column_matches_measured_cases(controller: str) -> None:
    """Every case is played again. Equal seeds give equal runs, so that each digit is the same."""
    script = quic_tables.bench()
    found = fp.conform(controller)
    measured = script.lines([found], "", quic_tables.ROOT / quic_tables.SCENARIOS)
    recorded = [line for line in quic_tables.lines() if line["key"]["subject"] == controller]
    (mine, there) = ([one | {"made": recorded[0]["made"]} for one in of] for of in (measured, recorded))
    assert script.tables(mine) == script.tables(there)
    files = {
        path: text
        for result in found.results
        for path, text in script.scenarios(found, result, quic_tables.SCENARIOS).items()
    }
    assert files == {path: (quic_tables.ROOT / path).read_text(encoding="utf-8") for path in files}


def share_used(run: Run, rate_bps: float) -> float:
    """Of a path's rate, from 10 to 60 s. Of 1500 bytes, 1438 are payload."""
    delivered = run.flow_series().filter(pl.col("time_s").is_between(10, 60))["delivered_bytes"]
    return float(delivered.max() - delivered.min()) * 8 / 50 / (rate_bps * 1438 / 1500)


def queue_in_round_trips(run: Run, rtt_ms: float) -> float:
    """The mean from 10 to 30 s."""
    rtt = run.flow_series().filter(pl.col("time_s").is_between(10, 30))["srtt_ms"].mean()
    return float(rtt) / rtt_ms - 1


def lost_percent(run: Run) -> float:
    """Of the packets from 10 to 60 s; a packet that is not lost delivers 1438 bytes."""
    within = run.flow_series().filter(pl.col("time_s").is_between(10, 60))
    lost, delivered = (within[name].max() - within[name].min() for name in ("retransmits", "delivered_bytes"))
    return float(lost / (lost + delivered / 1438)) * 100


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("noq-bbr3-clean-path", lambda run: share_used(run, 50e6)),
        ("quinn-bbr-deep-buffer", lambda run: queue_in_round_trips(run, 40)),
        ("quinn-bbr-shallow-buffer", lost_percent),
    ],
)
def test_failure_scenario_reproduces_failure(name: str, seen: Callable[[Run], float]) -> None:
    file = quic_tables.ROOT / quic_tables.SCENARIOS / f"{name}.toml"
    text = file.read_text(encoding="utf-8")
    (bound, limit) = re.findall(r"^# Expected: .+: at (least|most) ([\d.]*\d)", text, re.MULTILINE)[0]
    (measured, seed) = re.findall(r"^# Measured: ([\d.]+).*, seed (\d+)", text, re.MULTILINE)[0]
    (run,) = fp.run(str(file), world="quic", seeds=[int(seed)]).runs
    value = seen(run)
    # Samples are 10 ms apart, and a case looks at other moments.
    assert value == pytest.approx(float(measured), rel=0.01)
    assert value < float(limit) if bound == "least" else value > float(limit)
