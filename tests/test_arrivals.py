"""Flows as they arrive: made-up lists, captures written here, the three replays, and the SRPT scheduler."""

import json
import math
import random
import struct
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fullpipe as fp
from conftest import command
from fullpipe._native import RecordingError, ScenarioError
from fullpipe.advisor import sources
from fullpipe.scenario.flow_lists import flow_list, models, srpt, synthetic

LIST = synthetic.draw(flows=20_000, seconds=20)
SIZES = models.apply(LIST, models.COLLAPSED)["bytes"]


# Made up.


def test_distribution_matches_published_numbers_and_load() -> None:
    sizes = synthetic.fit()
    assert sizes.quantile(0.9) == pytest.approx(18_200)
    assert sizes.byte_part_above(6.4e6) == pytest.approx(0.9, rel=1e-6)
    assert sizes.mean * 890_000 * 8 / 900 == pytest.approx(2e9, rel=1e-6)
    assert (sizes.quantile(0), sizes.quantile(1)) == (100, pytest.approx(sizes.largest))
    # The contributions to the mean are the quantiles' integral.
    steps = 200_000
    summed = math.fsum(sizes.quantile((step + 0.5) / steps) for step in range(steps)) / steps
    assert summed == pytest.approx(sizes.mean, rel=0.02)


def test_short_lists_match_distribution_too() -> None:
    assert len(SIZES) == 20_000
    assert (SIZES < 18_200).mean() == pytest.approx(0.9, abs=1e-3)
    assert SIZES.filter(SIZES > 6_400_000).sum() / SIZES.sum() == pytest.approx(0.9, abs=2e-3)
    for flows in (500, 20_000):
        drawn = synthetic.draw(flows=flows, seconds=synthetic.seconds(flows))
        mean_bps = drawn["bytes"].sum() * 8 / synthetic.seconds(flows)
        assert mean_bps == pytest.approx(2e9, rel=1e-3)


def test_arrivals_are_poisson() -> None:
    starts = models.apply(LIST, models.COLLAPSED)["start_ns"]
    gaps = starts.diff().drop_nulls()
    assert starts.is_sorted() and starts[0] >= 0 and starts[-1] < 20e9
    # Exponential: deviation and mean are the same; 1/e of the gaps are longer than that.
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)
    assert (gaps > gaps.mean()).mean() == pytest.approx(math.exp(-1), abs=0.01)


def test_pauses_are_bounded_and_follow_transfers() -> None:
    pauses = LIST.filter(pl.col("pause_ns") > 0)["pause_ns"]
    assert pauses.min() >= 0.1e9 and pauses.max() <= 10e9
    assert pauses.log10().mean() == pytest.approx(9, abs=0.02)
    first = LIST.group_by("flow", maintain_order=True).first()
    assert first["pause_ns"].max() == 0
    assert LIST["bytes"].min() >= 1


def test_equal_seeds_repeat_others_differ() -> None:
    one, again, other = (synthetic.draw(flows=100, seconds=1, seed=seed) for seed in (1, 1, 2))
    assert one.equals(again) and not one.equals(other)


# The three models.


def test_collapsed_flows_keep_bytes_without_pauses() -> None:
    assert models.apply(LIST, models.PAUSED).equals(LIST)
    collapsed = models.apply(LIST, models.COLLAPSED)
    assert collapsed["pause_ns"].max() == 0
    assert collapsed["bytes"].sum() == LIST["bytes"].sum()
    assert collapsed["flow"].n_unique() == collapsed.height == LIST["flow"].n_unique()


def test_synthetic_draws_gaps_and_volumes_independently() -> None:
    # Volumes that grow with the gap before them.
    gaps = [(number * 7919 % 1000 + 1) * 1000 for number in range(5000)]
    starts = pl.Series(gaps).cum_sum()
    rows = {"flow": range(5000), "start_ns": starts, "pause_ns": [0] * 5000, "bytes": gaps}
    bound = pl.DataFrame(rows, schema=flow_list.SCHEMA)

    def correlation(frame: pl.DataFrame) -> float:
        gap = pl.col("start_ns").diff().fill_null(pl.col("start_ns"))
        return float(frame.select(pl.corr(gap, "bytes")).item())

    drawn = models.apply(bound, models.SYNTHETIC)
    assert correlation(bound) > 0.99
    assert abs(correlation(drawn)) < 0.05
    assert drawn["bytes"].sort().equals(bound["bytes"].sort())
    assert drawn["start_ns"].max() == starts.max()
    assert drawn["start_ns"].is_sorted()


def test_scenarios_run_flows_of_every_model() -> None:
    few = synthetic.draw(flows=60, seconds=0.5)
    for model in models.MODELS:
        flows = models.flows(models.apply(few, model), before_s=0.4, controller="cubic")
        path = {"rate": "1 Gbit/s", "rtt": "10 ms", "buffer": "1 bdp"}
        run = fp.run({"duration": "30 s", "path": path, "flows": flows, "record": {"flows": False}}).runs[0]
        ended = [flow for flow in run.summary["flows"] if flow["completed"]]
        assert 30 < len(flows) < 60
        assert len(ended) == len(flows)
        assert run.flow_series().height == 0 and run.link_series().height > 0
    assert any("transfers" in flow for flow in models.flows(few, before_s=0.4))


# Lists in files.


def test_flow_list_round_trips(tmp_path: Path) -> None:
    flow_list.write(LIST, tmp_path / "list.parquet")
    assert flow_list.read(tmp_path / "list.parquet").equals(LIST)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: None,
        lambda path: path.write_bytes(b"no Parquet"),
        lambda path: LIST.drop("bytes").write_parquet(path),
        lambda path: LIST.clear().write_parquet(path),
        lambda path: LIST.with_columns(pl.lit(None, pl.Int64).alias("bytes")).write_parquet(path),
        lambda path: LIST.with_columns(-pl.col("start_ns") - 1).write_parquet(path),
        lambda path: LIST.with_columns(pl.lit(0, pl.Int64).alias("bytes")).write_parquet(path),
        lambda path: LIST.with_columns(pl.lit(4_300_000_000 * 10**9).alias("start_ns")).write_parquet(path),
        lambda path: LIST.with_columns(pl.lit(2**62).alias("pause_ns")).write_parquet(path),
        lambda path: LIST.with_columns(pl.lit(2**62).alias("bytes")).write_parquet(path),
        lambda path: LIST.with_columns(pl.col("start_ns").reverse()).write_parquet(path),
    ],
)
def test_invalid_flow_list_is_an_error(spoil: object, tmp_path: Path) -> None:
    path = tmp_path / "list.parquet"
    assert callable(spoil)
    spoil(path)
    with pytest.raises(ScenarioError) as caught:
        flow_list.read(path)
    assert caught.value.field == "flows"


# Captures.

ETHERNET = b"\1" * 6 + b"\2" * 6


def packet(port: int, sequence: int, payload: int, *, vlan: bool = False, version: int = 4) -> bytes:
    """The first 96 bytes of a TCP segment on Ethernet."""
    tcp = struct.pack("!HHIIBBHHH", port, 443, sequence, 0, 8 << 4, 0x10, 65535, 0, 0) + b"\1" * 12
    length = len(tcp) + payload
    if version == 4:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0, 64, 6, 0, b"\n\0\0\1", b"\n\0\0\2")
    else:
        ip = struct.pack("!IHBB16s16s", 6 << 28, length, 6, 64, b"\1" * 16, b"\2" * 16)
    kind = struct.pack("!H", 0x0800 if version == 4 else 0x86DD)
    tag = struct.pack("!HH", 0x8100, 7) if vlan else b""
    return (ETHERNET + tag + kind + ip + tcp + b"\0" * payload)[:96]


# (time in ms, packet): a flow that pauses, repeats a segment and has one missed; another on IPv6 in a VLAN.
TRAFFIC = [
    (0, packet(1000, 0, 1448)),
    (10, packet(1000, 1448, 1448)),
    (15, packet(2000, 500, 700, vlan=True, version=6)),
    (20, packet(1000, 0, 1448)),
    (30, packet(1000, 4344, 1448)),
    (500, packet(1000, 5792, 100)),
    (510, packet(3000, 0, 0)),
]
# flow, start_ns, pause_ns, bytes
EXPECTED = [(0, 0, 0, 5792), (1, 15_000_000, 0, 700), (0, 500_000_000, 470_000_000, 100)]


def classic(traffic: list[tuple[int, bytes]], epoch_s: int = 7) -> bytes:
    records = b"".join(
        struct.pack("<IIII", epoch_s + ms // 1000, ms % 1000 * 1000, len(kept), 1500) + kept
        for ms, kept in traffic
    )
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1) + records


def next_generation(
    traffic: list[tuple[int, bytes]], links: tuple[int, ...] = (1,), interface: int = 0
) -> bytes:
    """A section with these interfaces, and packets of one of them; without interfaces, the packets alone."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    def enhanced(ms: int, kept: bytes) -> bytes:
        high, low = divmod(ms * 1000, 2**32)
        return block(6, struct.pack("<IIIII", interface, high, low, len(kept), 1500) + kept)

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) if links else b""
    described = b"".join(block(1, struct.pack("<HHI", link, 0, 96)) for link in links)
    return section + described + b"".join(enhanced(*one) for one in traffic)


@pytest.mark.parametrize("write", [classic, next_generation])
def test_a_capture_becomes_a_list(write: object, in_empty_folder: Path) -> None:
    assert callable(write)
    Path("here.pcap").write_bytes(write(TRAFFIC))
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("flows.parquet: 2 flows in 3 transfers over 0.51 s, 0.0001")
    assert flow_list.read(Path("flows.parquet")).rows() == EXPECTED


def test_one_packet_has_no_rate(in_empty_folder: Path) -> None:
    Path("here.pcap").write_bytes(classic(TRAFFIC[:1]))
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert done.returncode == 0, done.stderr
    assert "1 transfers over 0 s;" in done.stdout and "bit/s" not in done.stdout


def test_rate_covers_full_capture(in_empty_folder: Path) -> None:
    Path("here.pcap").write_bytes(classic([*TRAFFIC[:1], (1448, packet(3000, 0, 0))]))
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert "over 1.45 s, 8e-06 Gbit/s" in done.stdout


@pytest.mark.parametrize("first", [False, True])
def test_distant_timestamp_is_refused(first: bool, in_empty_folder: Path) -> None:
    begin, rest = classic(TRAFFIC[:1], 7 if first else 1_600_000_000), classic(TRAFFIC[1:], 1_600_000_000)
    beyond = classic(TRAFFIC[2:3], 4_200_000_000)
    Path("here.pcap").write_bytes(begin + rest[24:] + beyond[24:])
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "here.pcap" in done.stderr and "expected at most a year" in done.stderr
    assert not Path("flows.parquet").exists()


def test_backward_clock_is_reported(in_empty_folder: Path) -> None:
    back = [TRAFFIC[0], (600, packet(3000, 0, 10)), *TRAFFIC[1:3]]
    Path("here.pcap").write_bytes(classic(back))
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert done.returncode == 0
    assert "clock went back: 1 of 3 transfers" in done.stderr and "by up to 585 ms" in done.stderr
    Path("here.pcap").write_bytes(classic(TRAFFIC))
    assert command("flows", "here.pcap", "--out", "flows.parquet").stderr == ""


def test_flows_can_be_made_up(in_empty_folder: Path) -> None:
    done = command("flows", "--synthetic", "--flows", "300", "--seed", "4", "--out", "flows.parquet")
    assert done.returncode == 0, done.stderr
    expected = synthetic.draw(flows=300, seconds=synthetic.seconds(300), seed=4)
    assert flow_list.read(Path("flows.parquet")).equals(expected)


# What is skipped, and what is missing.

FOREIGN = b"".join(
    [
        next_generation([], links=(1, 127)),
        next_generation(TRAFFIC, links=()),
        next_generation([(40, b"\0" * 40)] * 3, links=(), interface=1),
    ]
)


def metadata(path: Path) -> dict[str, str]:
    return dict(pl.read_parquet_metadata(path))


def test_unread_interface_packets_are_skipped(in_empty_folder: Path) -> None:
    Path("here.pcapng").write_bytes(FOREIGN)
    done = command("flows", "here.pcapng", "--out", "flows.parquet")
    assert done.returncode == 0, done.stderr
    assert flow_list.read(Path("flows.parquet")).rows() == EXPECTED
    skipped = "3 packets were skipped: 3 of interface 1 (IEEE 802.11 with a radiotap header, link type 127)"
    assert f"here.pcapng: {skipped}\n" in done.stderr
    assert "capture without monitor mode" in done.stderr
    assert skipped in json.loads(metadata(Path("flows.parquet"))["fullpipe.notes"])


def test_advice_matches_capture_flows_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "here.pcapng"
    path.write_bytes(FOREIGN[:-1])
    (one,) = sources.read(path)
    captured = flow_list.of_capture(path)
    assert one.says == {"flow_size": "5892 B"} and captured.flows["bytes"].sum() == 5892 + 700
    assert one.notes[1:] == captured.notes and len(captured.notes) == 3
    assert captured.notes[0].startswith("the file ends within a record")


def test_truncated_capture_is_read_to_end(in_empty_folder: Path) -> None:
    Path("here.pcap").write_bytes(classic(TRAFFIC) + classic(TRAFFIC)[24:60])
    done = command("flows", "here.pcap", "--out", "flows.parquet")
    assert done.returncode == 0, done.stderr
    assert flow_list.read(Path("flows.parquet")).rows() == EXPECTED
    assert "here.pcap: the file ends within a record" in done.stderr and "7 packets are read" in done.stderr


def test_capture_without_tcp_lists_contents(tmp_path: Path) -> None:
    arp = ETHERNET + b"\x08\x06" + b"\0" * 46
    (tmp_path / "arp.pcap").write_bytes(classic([(0, arp)] * 42))
    with pytest.raises(RecordingError, match="no TCP payload") as caught:
        flow_list.of_capture(tmp_path / "arp.pcap")
    assert "42 packets were skipped: 42 ARP" in str(caught.value)
    (tmp_path / "acks.pcap").write_bytes(classic([(0, packet(1, 0, 0))]))
    with pytest.raises(RecordingError, match="1 of them TCP without payload"):
        flow_list.of_capture(tmp_path / "acks.pcap")


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        (b"\x1f\x8b\x08\0\0\0\0\0", "gunzip"),
        (b"\x28\xb5\x2f\xfd\0\0", "unzstd"),
        (b"snoop\0\0\0\0\0\0\2", "editcap -F pcap"),
        (b"GMBU\0\2", "editcap -F pcap"),
        (b"\0" * 72 + b"\2\0\2\xc0", "pktmon etl2pcap"),
        (b"    1 0.000000 10.0.0.1 -> 10.0.0.2 TCP 74\n", "tshark -w FILE.pcapng"),
        (b'[{"_index": "packets-2024-01-01", "_source": {}}]', "tshark -w FILE.pcapng"),
    ],
)
def test_other_format_is_named_with_fix(content: bytes, fix: str, in_empty_folder: Path) -> None:
    Path("here").write_bytes(content)
    for done in (
        command("flows", "here", "--out", "flows.parquet"),
        command("advise", "--from", "here", "--rate", "10mbit", "--rtt", "10ms"),
    ):
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert "here" in done.stderr and fix in done.stderr


WHOLE = classic(TRAFFIC)
HOSTILE = {
    "nothing": b"",
    "another format": b"%PDF-1.7 and so on",
    "packed": b"\x1f\x8b\x08\0\0\0\0\0",
    "cut off in the first packet": WHOLE[:45],
    "times decades apart": classic(TRAFFIC[:1]) + classic(TRAFFIC, 4_200_000_000)[24:],
    "times decades apart in pcapng": next_generation([*TRAFFIC, (3 * 10**12, packet(1, 0, 9))]),
    "a packet longer than its block": next_generation(TRAFFIC)[:-128] + b"\xff\0\0\0" * 32,
    "header only": WHOLE[:24],
    "half a header": WHOLE[:11],
    "an absurd length": WHOLE[:32] + struct.pack("<I", 0xFFFFFFF0) + WHOLE[36:],
    "random bytes": WHOLE[:24] + random.Random(1).randbytes(100_000),
    "another link type": WHOLE[:20] + struct.pack("<I", 147) + WHOLE[24:],
    "an undescribed interface": next_generation(TRAFFIC)[:28] + next_generation(TRAFFIC)[48:],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_gives_one_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pcap"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(RecordingError) as caught:
        flow_list.of_capture(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("there-is.none",), "cannot be read"),
        ((), "a capture or --synthetic"),
        (("some.pcap", "--synthetic"), "a capture or --synthetic"),
        (("some.pcap", "--flows", "3"), "--flows needs --synthetic"),
    ],
)
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...], message: str, in_empty_folder: Path) -> None:
    done = command("flows", *arguments, "--out", "flows.parquet")
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not Path("flows.parquet").exists()


# SRPT.


def flow(start_s: float, *transfers: float | tuple[float, float]) -> srpt.Flow:
    made = [srpt.Transfer(*one) if isinstance(one, tuple) else srpt.Transfer(one) for one in transfers]
    return srpt.Flow(start_s, made)


def test_the_shortest_goes_first_and_preempts() -> None:
    # A alone until 2, B until C comes at 3, C until 4, B's other 2 until 6, A's other 8 until 14.
    assert srpt.schedule([flow(0, 10), flow(2, 3), flow(3, 1)]) == [[14], [6], [4]]


def test_ties_go_to_first_arrival() -> None:
    assert srpt.schedule([flow(0, 5), flow(1, 4)]) == [[5], [9]]


def test_pause_starts_after_previous_transfer() -> None:
    # While the first pauses from 1 to 3, the second has the link; at 3 it has 1 left and the first wants 2.
    assert srpt.schedule([flow(0, 1, (2, 2)), flow(0.5, 3)]) == [[1, 6], [4]]


def test_an_idle_link_waits() -> None:
    assert srpt.schedule([flow(3, 1), flow(10, 2)]) == [[4], [12]]
    assert srpt.schedule([]) == []


def fifo(flows: list[srpt.Flow]) -> list[float]:
    now, done = 0.0, [0.0] * len(flows)
    for index in sorted(range(len(flows)), key=lambda index: flows[index].start_s):
        now = max(now, flows[index].start_s) + flows[index].transfers[0].service_s
        done[index] = now
    return done


def sharing(flows: list[srpt.Flow]) -> list[float]:
    """Processor sharing: all that are there get equal parts."""
    left = [one.transfers[0].service_s for one in flows]
    done = [math.inf] * len(flows)
    now = 0.0
    while math.inf in done:
        there = [index for index, one in enumerate(flows) if one.start_s <= now and done[index] == math.inf]
        coming = min((one.start_s for one in flows if one.start_s > now), default=math.inf)
        ends = now + min((left[index] for index in there), default=math.inf) * len(there)
        until = min(coming, ends)
        for index in there:
            left[index] -= (until - now) / len(there)
            if left[index] < 1e-9:
                done[index] = until
        now = until
    return done


works = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(works)
def test_srpt_conserves_work_with_minimal_mean(work: list[tuple[int, int]]) -> None:
    flows = [flow(float(start), float(service)) for start, service in work]
    done = [times[0] for times in srpt.schedule(flows)]
    # Whoever is served, the link is busy at the same times.
    assert max(done) == pytest.approx(max(fifo(flows)))
    assert all(left >= start + service for left, (start, service) in zip(done, work, strict=True))
    assert sum(done) <= sum(fifo(flows)) + 1e-6
    assert sum(done) <= sum(sharing(flows)) + 1e-6
