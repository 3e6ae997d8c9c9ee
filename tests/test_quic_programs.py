"""A program with a real QUIC stack as a flow: the example of `quic/noq`, in the kernel world.

`make test-quic` runs it. Its rate is held against that of the same file in the world `quic`.
"""

import os
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import fullpipe as fp

ROOT = Path(__file__).parent.parent
PATH: dict[str, Any] = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}
RATE_BPS = 20e6
RTT_MS = 40.0
# quic/noq/examples/download.rs: SIZE.
FILE_BYTES = 16 << 20
# Above any UDP payload on this path: 1500 bytes less 28 of headers.
MOST_BYTES = 1472


@pytest.fixture(scope="module")
def program() -> Path:
    """The example, compiled beside what `make test-quic` compiled, in the profile of its tests."""
    if not os.environ.get("FULLPIPE_REQUIRE_QUIC"):
        pytest.skip("compiles for minutes: `make test-quic` runs it")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute() / "quic"
    done = subprocess.run(
        # The same packages as the tests of the crates: others would compile with other features, once more.
        ["cargo", "build", "--workspace", "--exclude", "fullpipe-quic", "--example", "download", "--locked"],
        cwd=ROOT / "quic",
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target / "debug" / "examples" / "download"


def download(program: Path, repetitions: int) -> list[fp.Run]:
    """Runs in which a client downloads the file; those that the emulator does not trust are repeated."""
    # No other program takes the processor from it: on a busy machine it would send late, which nothing shows.
    first = "chrt -f 1 " if os.geteuid() == 0 else ""
    document = {
        "name": "download",
        "duration": "60 s",
        "path": PATH,
        "flows": [
            {
                "client": f"{first}{program} fetch {{server}}:{{port}}",
                "server": f"{first}{program} serve 0.0.0.0:{{port}}",
                "sender": "server",
                "start_jitter": 0,
            }
        ],
    }
    return list(fp.run(document, world="kernel", repetitions=repetitions).runs)


@pytest.fixture(scope="module")
def downloads(program: Path, kernel_world: None) -> list[fp.Run]:
    del kernel_world
    return download(program, 3)


def test_its_packets_are_measured_as_quic(downloads: list[fp.Run]) -> None:
    for one in downloads:
        (flow,) = one.summary["flows"]
        (queue,) = one.summary["links"]
        seen = flow["seen"]
        assert flow["completed"] and seen["payload"] == "quic_udp" and seen["connections"] == 1
        assert RATE_BPS / 2 < flow["goodput_bps"] < RATE_BPS
        # The file, with what QUIC adds and sends again; and the ACKs.
        assert FILE_BYTES < flow["delivered_bytes"] < 1.1 * FILE_BYTES < seen["sent_bytes"] + 0.1 * FILE_BYTES
        assert 0 < seen["returned_bytes"] < 0.1 * FILE_BYTES
        # Half of the RTT each way. The queue alone drops packets.
        for way in (seen["delay"], seen["returned_delay"]):
            assert RTT_MS / 2 <= way["min_ns"] / 1e6 <= way["p50_ns"] / 1e6
        assert seen["packets"] > flow["delivered_bytes"] / MOST_BYTES
        assert seen["packets"] == queue["arrived_packets"]
        assert seen["lost_packets"] == queue["dropped_packets"] < seen["packets"] / 20
        assert flow["retransmits"] is None and flow["timeouts"] is None


def test_throughput_series_matches_transfer(downloads: list[fp.Run]) -> None:
    for one in downloads:
        series = one.flow_series()
        delivered = series["delivered_bytes"]
        assert delivered.is_sorted() and delivered[0] == 0
        assert delivered[-1] == one.summary["flows"][0]["delivered_bytes"]
        # By no time was more delivered than the path carries until then.
        for time, bytes_then in zip(series["time_s"], delivered, strict=True):
            assert bytes_then <= RATE_BPS / 8 * time + MOST_BYTES
        # It takes hundreds of samples.
        assert delivered.n_unique() > 100


def test_rtt_is_measured_by_spin_bit(program: Path, downloads: list[fp.Run]) -> None:
    # noq lets the bit spin in seven of eight connections, drawn at each end (RFC 9000 section 17.4; its
    # `spin_enabled`), so in (7/8)^2 of the runs. In 5 of 10 million cases, none of ten spins.
    runs = list(downloads)
    while not (spun := [one for one in runs if one.summary["flows"][0]["seen"]["rtt_source"] == "spin_bit"]):
        assert len(runs) < 10, "the bit spins in no run"
        runs += download(program, 1)
    for one in runs:
        (flow,) = one.summary["flows"]
        if one in spun:
            # One for each round trip, of a flow that lasts for more than 150.
            assert flow["seen"]["rtt_samples"] > 50
            assert RTT_MS <= flow["rtt_ms"]["min"] <= flow["rtt_ms"]["mean"]
        else:
            assert flow["seen"]["rtt_source"] == "none" and flow["rtt_ms"] is None


@pytest.mark.usefixtures("quic_stacks")
def test_duration_matches_virtual_time(downloads: list[fp.Run]) -> None:
    document = {
        "name": "virtual",
        "duration": "60 s",
        "path": PATH,
        "flows": [{"controller": "bbr3", "size": f"{FILE_BYTES} B"}],
    }
    (virtual,) = fp.run(document, world="quic", seeds=1).runs
    took = [one.summary["flows"][0]["completion_ms"] for one in (virtual, *downloads)]
    assert virtual.summary["flows"][0]["delivered_bytes"] == FILE_BYTES
    # Rates of one file compare as its times do.
    assert median(took[1:]) == pytest.approx(took[0], rel=0.05)
