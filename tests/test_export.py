"""Logs of a run's packets: qlog and pcapng."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH
from fullpipe import cli
from fullpipe.results.runs import Run

ONE = {
    "name": "one",
    "duration": "2 s",
    "path": {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "0.5 bdp"},
    "flows": [{"controller": "cubic"}, {"controller": "bbr1", "start": "200 ms"}],
}


def sequence(path: Path) -> list[dict[str, Any]]:
    """The texts of a JSON text sequence (RFC 7464)."""
    before, *texts = path.read_text().split("\x1e")
    assert before == "" and all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts]


def named(events: list[dict[str, Any]], name: str, flow: str | None = None) -> list[dict[str, Any]]:
    """The events of a name, of one flow or of all."""
    return [one for one in events if one.get("name") == name and flow in (None, one.get("group_id"))]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run of the simulator with all logs, and their folder."""
    folder = tmp_path_factory.mktemp("logs")
    (run,) = fp.run(ONE, qlog=folder, pcap=folder).runs
    return run, folder


def test_each_run_has_files_of_its_own(tmp_path: Path) -> None:
    results = fp.compare(
        ["reno", "bbr1:probe_gain=1.5"],
        rate="5 Mbit/s",
        rtt="20 ms",
        duration="300 ms",
        seeds=2,
        qlog=tmp_path / "new" / "q",
        pcap=str(tmp_path / "p"),
    )
    stems = [f"sim-{label}-seed{seed}" for label in ("reno", "bbr1-probe_gain=1.5") for seed in (1, 2)]
    assert {one.name for one in (tmp_path / "new" / "q").iterdir()} == {
        f"{stem}{suffix}" for stem in stems for suffix in (".qlog", ".sqlog")
    }
    assert {one.name for one in (tmp_path / "p").iterdir()} == {f"{stem}.pcapng" for stem in stems}
    assert all(
        len(run.logs) == 3 and all(one.stat().st_size > 1000 for one in run.logs) for run in results.runs
    )


def test_a_log_changes_nothing(logged: tuple[Run, Path]) -> None:
    (plain,) = fp.run(ONE).runs
    assert plain.logs == ()
    assert (plain.summary, plain.flow_parquet) == (logged[0].summary, logged[0].flow_parquet)


def test_a_qlog_has_every_packet(logged: tuple[Run, Path]) -> None:
    run, folder = logged
    head, *events = sequence(folder / "sim-one-seed1.sqlog")
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    times = [one["time"] for one in events]
    assert times == sorted(times)
    for flow in run.summary["flows"]:
        sent = [
            one["data"]
            for one in named(events, "quic:packet_sent", flow["label"])
            if one["data"]["header"]["packet_type"] == "1RTT"
        ]
        assert [one["header"]["packet_number"] for one in sent] == list(range(flow["segments_sent"]))
        assert sum("trigger" in one for one in sent) == flow["retransmits"] > 0
        lost = {
            one["data"]["header"]["packet_number"] for one in named(events, "quic:packet_lost", flow["label"])
        }
        assert lost and lost < set(range(flow["segments_sent"]))
        acked = {
            number
            for one in named(events, "quic:packet_received", flow["label"])
            if one["data"]["header"]["packet_type"] == "1RTT"
            for frame in one["data"]["frames"]
            if frame["frame_type"] == "ack"
            for first, last in frame["acked_ranges"]
            for number in range(first, last + 1)
        }
        assert acked < set(range(flow["segments_sent"]))
        phases = [one["data"]["new"] for one in named(events, "quic:congestion_state_updated", flow["label"])]
        assert {"cubic": "slow_start", "bbr1": "startup"}[flow["label"]] == phases[0]


def test_the_older_form_has_the_same_packets(logged: tuple[Run, Path]) -> None:
    _, folder = logged
    _, *events = sequence(folder / "sim-one-seed1.sqlog")
    older = json.loads((folder / "sim-one-seed1.qlog").read_text())
    assert (older["qlog_version"], older["qlog_format"]) == ("0.3", "JSON")
    (trace,) = older["traces"]
    for now, before in (
        ("quic:packet_sent", "transport:packet_sent"),
        ("quic:packet_received", "transport:packet_received"),
        ("quic:packet_lost", "recovery:packet_lost"),
        ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
        ("quic:congestion_state_updated", "recovery:congestion_state_updated"),
    ):
        ours, theirs = named(events, now), named(trace["events"], before)
        assert [(one["time"], one["group_id"]) for one in ours] == [
            (one["time"], one["group_id"]) for one in theirs
        ]
        assert len(ours) > 10 or now.endswith("state_updated")


def test_the_command_names_its_logs(in_empty_folder: Path) -> None:
    asked = ["compare", "reno", *PATH, "--duration", "300 ms", "--seeds", "1", "--json"]
    done = CliRunner().invoke(cli.app, [*asked, "--qlog", "q", "--pcap", "p"])
    assert done.exit_code == 0, done.stderr
    logs = ["q/sim-reno-seed1.sqlog", "q/sim-reno-seed1.qlog", "p/sim-reno-seed1.pcapng"]
    assert [f"Log: {one}" for one in logs] == [
        line for line in done.stderr.splitlines() if line.startswith("Log: ")
    ]
    assert all((in_empty_folder / one).is_file() for one in logs)
