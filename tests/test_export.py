"""Logs of a run's packets: qlog and pcapng."""

import array
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH, command
from fullpipe import _native
from fullpipe.cli import app as cli
from fullpipe.cli import options as shared
from fullpipe.errors import OutputError
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import logs, registry

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


def test_each_run_has_its_own_files(tmp_path: Path) -> None:
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


def test_older_qlog_has_same_packets(logged: tuple[Run, Path]) -> None:
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
    assert json.loads(done.stdout)["logs"] == logs


def test_the_report_names_its_logs(tmp_path: Path) -> None:
    results = fp.run(ONE, qlog=tmp_path)
    assert f"<code>{tmp_path}/sim-one-seed1.sqlog</code>" in results.report(tmp_path / "one.html").read_text()


# Of each event in the current form: the fields that its type must have, and those that it may (quic-events-13
# and tests/export/tcp.cddl). tests/export/validate.py, run by hand, has the published schemas themselves.
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "quic:packet_sent": ({"header", "frames", "raw", "tcp"}, {"trigger"}),
    "quic:packet_received": ({"header", "frames", "raw", "tcp"}, set()),
    "quic:packet_lost": ({"header", "frames"}, {"trigger"}),
    "quic:recovery_parameters_set": ({"timer_granularity", "max_datagram_size"}, set()),
    "quic:recovery_metrics_updated": (
        set(),
        {"min_rtt", "smoothed_rtt", "latest_rtt", "congestion_window", "bytes_in_flight", "ssthresh"}
        | {"packets_in_flight", "pacing_rate"},
    ),
    "quic:congestion_state_updated": ({"new"}, {"old", "recovery_state"}),
    "path:packet_arrived": ({"header", "direction", "ecn"}, set()),
    "path:packet_dropped": ({"header", "direction", "cause"}, {"queue"}),
}
FRAMES = {"ack": {"acked_ranges"}, "stream": {"stream_id", "offset", "raw"}, "max_data": {"maximum"}}
TRIGGERS = {
    "quic:packet_sent": {"retransmit_reordered", "retransmit_timeout", "pto_probe"},
    "quic:packet_lost": {"time_threshold", "pto_expired"},
}


def assert_events(events: list[dict[str, Any]]) -> None:
    """Each event is as its type in the schema."""
    for event in events:
        assert set(event) == {"time", "name", "group_id", "data"}
        must, may = FIELDS[event["name"]]
        data = event["data"]
        assert must <= set(data) <= must | may and data, event
        if "header" in data:
            assert set(data["header"]) == {"packet_type", "packet_number"}
            assert data["header"]["packet_type"] in ("initial", "1RTT")
        for frame in data.get("frames", []):
            assert set(frame) == {"frame_type"} | FRAMES[frame["frame_type"]], event
            assert all(len(one) == 2 and one[0] <= one[1] for one in frame.get("acked_ranges", []))
        assert data.get("trigger") in {None} | TRIGGERS.get(event["name"], set())


def test_every_event_matches_its_schema_type(logged: tuple[Run, Path]) -> None:
    _, *events = sequence(logged[1] / "sim-one-seed1.sqlog")
    assert_events(events)
    assert {one["name"] for one in events} == set(FIELDS)


needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is missing (Debian: apt-get install tshark)"
)


def tshark(path: Path, *arguments: str) -> list[str]:
    """What tshark prints of a capture, line by line. It checks checksums."""
    checks = ("tcp.check_checksum", "ip.check_checksum")
    options = [part for check in checks for part in ("-o", f"{check}:TRUE")]
    done = subprocess.run(
        ["tshark", "-n", "-r", path, *options, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def count(path: Path, shown: str) -> int:
    """How many packets a display filter of Wireshark shows."""
    return len(tshark(path, "-Y", shown))


WRONG = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.expert.severity == error"


@needs_tshark
def test_wireshark_validates_packets_and_counts_match(tmp_path: Path) -> None:
    (run,) = fp.run(ONE, pcap=tmp_path, snaplen=65_535).runs
    path = tmp_path / "sim-one-seed1.pcapng"
    assert count(path, WRONG) == 0
    assert count(path, "tcp.checksum.status == 1") == count(path, "tcp") > 1000
    # Wireshark calls those out of order that follow the highest segment by less than the handshake's RTT.
    again = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    for number, flow in enumerate(run.summary["flows"]):
        of_flow = f"tcp.stream == {number} && tcp.len > 0"
        assert count(path, of_flow) == flow["segments_sent"]
        assert count(path, f"{of_flow} && ({again})") == flow["retransmits"] > 0
        assert count(path, f"{of_flow} && tcp.analysis.fast_retransmission") > 0
    numbers = ("-T", "fields", "-e", "frame.number")
    marked = tshark(path, "-Y", 'frame.comment contains "retransmission"', *numbers)
    assert marked == tshark(path, "-Y", again, *numbers)
    options = ("mss_val == 1460", "sack_perm", "wscale", "timestamp.tsval")
    has_all = " && ".join(f"tcp.options.{one}" for one in options)
    assert count(path, f"tcp.flags.syn == 1 && {has_all}") == 4
    assert count(path, "tcp.options.sack") > 100
    assert count(path, "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment") == 0
    # An ACK answers the packet that it echoes, an RTT ago.
    rtts = [float(one) for one in tshark(path, "-T", "fields", "-e", "tcp.analysis.ack_rtt") if one]
    assert 0.04 <= min(rtts) < 0.0405


@needs_tshark
def test_wireshark_sees_marks_and_their_echoes(tmp_path: Path) -> None:
    document = {**ONE, "path": {**ONE["path"], "queue": "codel"}, "hosts": {"ecn": True}}  # type: ignore[dict-item]
    fp.run(document, pcap=tmp_path, snaplen=200)
    path = tmp_path / "sim-one-seed1.pcapng"
    assert count(path, WRONG) == 0
    assert count(path, "tcp.flags.syn == 1 && tcp.flags.ece == 1") == 4
    # At the sender, nothing is marked yet.
    assert count(path, "ip.dsfield.ecn == 2") > 1000 and count(path, "ip.dsfield.ecn == 3") == 0
    assert count(path, "tcp.flags.syn == 0 && tcp.flags.ece == 1") > 10
    assert count(path, "tcp.flags.syn == 0 && tcp.flags.cwr == 1") > 2


def test_own_reader_finds_flows_in_capture(logged: tuple[Run, Path]) -> None:
    run, folder = logged
    message, columns = _native.read_capture(str(folder / "sim-one-seed1.pcapng"))
    numbers = array.array("Q", columns)
    sent = [0, 0]
    for place in range(0, len(numbers), 4):
        sent[numbers[place]] += numbers[place + 3]
    for flow, size in zip(run.summary["flows"], sent, strict=True):
        assert size == (flow["segments_sent"] - flow["retransmits"]) * 1448
    assert json.loads(message)["segments"] > sum(flow["segments_sent"] for flow in run.summary["flows"])


def test_request_is_one_byte_from_receiver(tmp_path: Path) -> None:
    document = {
        "name": "asks",
        "duration": "2 s",
        "path": {"rate": "10 Mbit/s", "rtt": "20 ms"},
        "flows": [{"controller": "reno", "requests": {"size": "20 KB", "pause": "100 ms"}}],
    }
    fp.run(document, pcap=tmp_path, qlog=tmp_path, snaplen=200)
    _, *events = sequence(tmp_path / "sim-asks-seed1.sqlog")
    assert_events(events)
    asked = [
        frame["offset"]
        for one in named(events, "quic:packet_received")
        for frame in one["data"]["frames"]
        if frame["frame_type"] == "stream"
    ]
    assert asked == list(range(len(asked))) and len(asked) > 10
    if shutil.which("tshark") is not None:
        assert count(tmp_path / "sim-asks-seed1.pcapng", WRONG) == 0
        wrong = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.retransmission"
        assert count(tmp_path / "sim-asks-seed1.pcapng", wrong) == 0


def test_a_thousand_flows_are_logged(tmp_path: Path) -> None:
    document = {
        "name": "many",
        "duration": "1 s",
        "path": {"rate": "100 Mbit/s", "rtt": "20 ms"},
        "flows": [{"controller": "cubic", "count": 1000}],
    }
    (run,) = fp.run(document, qlog=tmp_path, pcap=tmp_path).runs
    _, *events = sequence(tmp_path / "sim-many-seed1.sqlog")
    sent = Counter(one["group_id"] for one in named(events, "quic:packet_sent"))
    assert len(sent) == 1000
    assert sent.total() >= sum(flow["segments_sent"] for flow in run.summary["flows"]) > 1000
    json.loads((tmp_path / "sim-many-seed1.qlog").read_text())


def test_a_controller_in_python_is_logged(tmp_path: Path) -> None:
    class Still(fp.Controller):
        """A window that stays."""

        def __init__(self) -> None:
            self.cwnd = 20

    assert (
        fp.compare(
            [Still], rate="10 Mbit/s", rtt="20 ms", duration="1 s", seeds=1, qlog=tmp_path, pcap=tmp_path
        )
        .runs[0]
        .logs
    )
    (path,) = tmp_path.glob("*.sqlog")
    _, *events = sequence(path)
    assert_events(events)
    assert {one["data"].get("congestion_window", 28960) for one in events} == {28960}


def ready(name: str, duration: str | None = None) -> dict[str, Any]:
    """A ready scenario, also shortened."""
    document = dict(fp.load(Path(__file__).parent.parent / "scenarios" / f"{name}.toml").document)
    return document | ({} if duration is None else {"duration": duration})


@pytest.mark.parametrize(
    ("document", "snaplen"),
    [
        (ready("bbr-vs-cubic-1bdp", "2 s"), 128),
        (ready("policer", "3 s"), 128),
        (ready("random-loss-1", "2 s"), 65_535),
        (ready("requests", "4 s"), 128),
        (ready("bursts", "3 s"), 64),
        (ready("video", "3 s"), 1000),
    ],
    ids=["bulk", "policer", "loss", "requests", "bursts", "video"],
)
def test_log_size_estimate_within_factor_two(document: dict[str, Any], snaplen: int, tmp_path: Path) -> None:
    stated: list[float] = []
    fp.run(document, qlog=tmp_path / "q", pcap=tmp_path / "p", snaplen=snaplen, begin_logs=stated.append)
    for folder in ("q", "p"):
        fp.run(document, **{"qlog" if folder == "q" else "pcap": tmp_path / "one"}, begin_logs=stated.append)
    assert len(stated) == 3
    written = sum(one.stat().st_size for folder in ("q", "p") for one in (tmp_path / folder).iterdir())
    assert 0.5 < stated[0] / written < 2
    qlogs = sum(one.stat().st_size for one in (tmp_path / "q").iterdir())
    assert 0.5 < stated[1] / qlogs < 2


def test_large_logs_are_refused_by_default(in_empty_folder: Path) -> None:
    long = (
        "compare",
        "cubic",
        "--rate",
        "1gbit",
        "--rtt",
        "10ms",
        "--seeds",
        "1",
        "--qlog",
        "logs",
        "--json",
    )
    refused = command(*long, "--duration", "10 s")
    assert refused.returncode == 2 and not Path("logs").exists()
    assert '--log-limit "250 MB" is less than the logs will have, about 1.1 GB (estimated);' in refused.stderr
    assert 'write --log-limit "1.6 GB"' in refused.stderr
    short = command(*long, "--duration", "0.1 s", "--log-limit", "20MB")
    assert short.returncode == 0 and "the logs will have about" in short.stderr


def test_invalid_log_limit_is_refused(tmp_path: Path) -> None:
    for limit in ("much", "-1 MB", "", -1, True):
        with pytest.raises(fp.ScenarioError) as caught:
            fp.run(ONE, qlog=tmp_path, log_limit=limit)
        assert caught.value.field == "log_limit"
    with pytest.raises(fp.ScenarioError, match="1 KB is less than"):
        fp.run(ONE, qlog=tmp_path, log_limit=1000)


def test_full_log_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST", 1000)
    results = fp.run(ONE, qlog=tmp_path, pcap=tmp_path)
    (note,) = [one for one in results.notes if "its logs end at" in one]
    assert note.startswith("one, sim, seed 1: its logs end at 0.") and note.endswith("log a shorter run")
    *_, last = sequence(tmp_path / "sim-one-seed1.sqlog")
    assert last["name"] == "loglevel:warning"
    older = json.loads((tmp_path / "sim-one-seed1.qlog").read_text())
    assert older["traces"][0]["events"][-1]["name"] == "generic:warning"
    assert json.loads(_native.read_capture(str(tmp_path / "sim-one-seed1.pcapng"))[0])["packets"] == 1000


@pytest.mark.parametrize("option", ["--qlog", "--pcap"])
def test_unwritable_log_directory_is_an_error(option: str, in_empty_folder: Path) -> None:
    Path("file").write_text("mine")
    asked = ["compare", "reno", *PATH, "--duration", "300 ms", "--seeds", "1", "--json"]
    for given, why in (
        ("file", "file is a file, and a folder is needed"),
        ("file/new", "file is a file"),
        (" ", "no path"),
    ):
        done = CliRunner().invoke(cli.app, [*asked, option, given])
        assert done.exit_code == shared.MISTAKE, done.stdout + done.stderr
        assert why in " ".join(done.stderr.replace("│", " ").split()), done.stderr
        assert done.stdout == ""
    assert [one.name for one in in_empty_folder.iterdir()] == ["file"]


def test_snaplen_without_capture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fp.ScenarioError, match="snaplen: 200 cannot be used; expected a capture"):
        fp.run(ONE, qlog=tmp_path / "new", snaplen=200)


@pytest.mark.parametrize("snaplen", [0, 13, 262_145, True, "128"])
def test_invalid_snaplen_is_refused(snaplen: Any, tmp_path: Path) -> None:
    with pytest.raises(fp.ScenarioError, match=r"snaplen: .*from 14 to 262144"):
        fp.run(ONE, pcap=tmp_path / "new", snaplen=snaplen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full_disk
def test_a_full_disk_leaves_no_log(in_empty_folder: Path) -> None:
    for option in ("qlog", "pcap"):
        with pytest.raises(OutputError, match=rf"cannot write {option}/sim-one-seed1.*same command again"):
            fp.run(ONE, **{option: option})
        assert list((in_empty_folder / option).iterdir()) == []


def test_symlink_at_log_path_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "sim-one-seed1.pcapng").symlink_to(tmp_path / "theirs")
    fp.run(ONE, pcap=tmp_path)
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert not (tmp_path / "sim-one-seed1.pcapng").is_symlink()


def test_an_interrupt_leaves_no_log(in_empty_folder: Path) -> None:
    asked = [
        "compare",
        "cubic",
        "--rate",
        "1 Gbit/s",
        "--rtt",
        "40 ms",
        "--duration",
        "600 s",
        "--seeds",
        "1",
    ]
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fullpipe",
            *asked,
            "--json",
            "--qlog",
            "q",
            "--pcap",
            "p",
            "--log-limit",
            "1 TB",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        # Until packets are on the disk.
        while running.poll() is None and not _writes(running.pid, in_empty_folder):
            os.sched_yield()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=600)
        assert running.returncode == 130
    assert [one for one in in_empty_folder.rglob("*") if one.is_file()] == []


def _writes(pid: int, folder: Path) -> bool:
    """Whether a process has an open file below a folder that is not empty."""
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(one.readlink()).startswith(str(folder)) and one.stat().st_size > 1_000_000:
                return True
        except OSError:
            continue
    return False


def test_world_without_logs_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(registry.named("sim")), "writes_logs", False)
    with pytest.raises(
        fp.WorldError, match="the simulator writes no logs of packets; leave out qlog and pcap"
    ):
        fp.run(ONE, qlog=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


REAL = {**ONE, "flows": [{"controller": "cubic"}, {"controller": "reno"}]}


@pytest.mark.usefixtures("kernel_world")
def test_kernel_packets_are_logged_unchanged(tmp_path: Path) -> None:
    (run,) = fp.run(REAL, world="kernel", attempts=1, qlog=tmp_path, pcap=tmp_path, snaplen=65_535).runs
    path = tmp_path / "kernel-one-seed1.pcapng"
    assert [one.name for one in run.logs] == [
        f"kernel-one-seed1{suffix}" for suffix in (".sqlog", ".qlog", ".pcapng")
    ]
    head, *events = sequence(tmp_path / "kernel-one-seed1.sqlog")
    assert head["trace"]["common_fields"]["reference_time"]["clock_type"] == "monotonic"
    assert_events(events)
    times = [one["time"] for one in events]
    assert times == sorted(times) and times[-1] <= 2100
    for flow in run.summary["flows"]:
        sent = [
            one["data"]["header"]["packet_number"]
            for one in named(events, "quic:packet_sent", flow["label"])
            if one["data"]["header"]["packet_type"] == "1RTT"
        ]
        assert sent == list(range(len(sent)))
        # What Linux counts until the measures end, and a little later.
        assert flow["segments_sent"] * 0.98 <= len(sent) <= flow["segments_sent"] * 1.1 + 20
        lost = named(events, "quic:packet_lost", flow["label"])
        assert flow["retransmits"] * 0.9 <= len(lost) <= flow["retransmits"] * 1.2 + 20
        metrics = [one["data"] for one in named(events, "quic:recovery_metrics_updated", flow["label"])]
        assert any("congestion_window" in one for one in metrics) and any(
            "latest_rtt" in one for one in metrics
        )
    json.loads((tmp_path / "kernel-one-seed1.qlog").read_text())
    assert json.loads(_native.read_capture(str(path))[0])["segments"] > 1000
    if shutil.which("tshark") is not None:
        assert count(path, WRONG) == 0
        assert count(path, "tcp.flags.syn == 1") >= 4


@pytest.mark.usefixtures("kernel_world")
def test_packets_behind_linux_qdisc_are_logged(tmp_path: Path) -> None:
    if shutil.which("tc") is None:
        pytest.skip("tc is missing (Debian: apt-get install iproute2)")
    (run,) = fp.run(REAL, world="qdisc", attempts=1, qlog=tmp_path, pcap=tmp_path).runs
    _, *events = sequence(tmp_path / "qdisc-one-seed1.sqlog")
    assert_events(events)
    sent = [one for one in named(events, "quic:packet_sent") if one["data"]["frames"]]
    # What the queue dropped never came by.
    in_all = sum(flow["segments_sent"] for flow in run.summary["flows"])
    dropped = run.summary["links"][0]["dropped_packets"]
    assert dropped > 0 and in_all - 1.2 * dropped - 20 <= len(sent) <= in_all * 1.1 + 20
    capture = json.loads(_native.read_capture(str(tmp_path / "qdisc-one-seed1.pcapng"))[0])
    assert capture["segments"] > len(sent)


@pytest.mark.usefixtures("kernel_world")
def test_full_kernel_log_is_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST", 200)
    results = fp.run(REAL, world="kernel", attempts=1, qlog=tmp_path, pcap=tmp_path)
    assert any("kernel, seed 1: its logs end at " in one for one in results.notes)
    assert json.loads(_native.read_capture(str(tmp_path / "kernel-one-seed1.pcapng"))[0])["packets"] == 200
    _, *events = sequence(tmp_path / "kernel-one-seed1.sqlog")
    assert len(named(events, "quic:packet_sent")) <= 200
    (warning,) = named(events, "loglevel:warning")
    assert "the log ends here" in warning["data"]["message"]


@pytest.mark.full_disk
@pytest.mark.usefixtures("kernel_world")
def test_full_disk_leaves_no_kernel_log(in_empty_folder: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write p/kernel-one-seed1.pcapng.*same command again"):
        fp.run({**REAL, "duration": "500 ms"}, world="kernel", attempts=1, pcap="p")
    assert list((in_empty_folder / "p").iterdir()) == []


@pytest.mark.parametrize("option", ["qlog", "pcap"])
def test_file_as_directory_is_named_verbatim(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    path = ["--rate", "10 Mbit/s", "--rtt", "40 ms", "--duration", "300 ms"]
    done = CliRunner().invoke(cli.app, ["compare", "reno", *path, f"--{option}", "taken"])
    assert done.exit_code == 2
    assert done.stderr.startswith(f'fullpipe: --{option} "taken" cannot be used; expected a folder')
