"""`path.router`: a real router in the kernel world and in `fullpipe shell`, and its model beside it."""

import subprocess
import sys
from typing import Any

import pytest

import fullpipe as fp
from conftest import SCENARIOS
from fullpipe.agreement.grid import document as grid
from fullpipe.runs.worlds import registry
from fullpipe.scenario import scenario


def document(
    controller: str = "cubic", gso_max_segs: int | None = None, seconds: int = 2, **path: Any
) -> dict[str, Any]:
    router = {"router": "tbf", "burst": "256 KB", "buffer": "100 KB"}
    return {
        "name": "router",
        "duration": f"{seconds} s",
        "path": {"rate": "50 Mbit/s", "rtt": "10 ms", **router, **path},
        "hosts": {} if gso_max_segs is None else {"gso_max_segs": gso_max_segs},
        "flows": [{"controller": controller}],
    }


def retransmits(world: str = "sim", **more: Any) -> int:
    (run,) = fp.run(document(**more), world=world).runs
    count: int = run.summary["flows"][0]["retransmits"]
    return count


def test_the_model_drops_bursts_whole() -> None:
    whole = retransmits(controller="bbr1", rate="200 Mbit/s", rtt="0.2 ms")
    apart = retransmits(controller="bbr1", rate="200 Mbit/s", rtt="0.2 ms", gso_max_segs=1)
    split = retransmits(controller="bbr1", rate="200 Mbit/s", rtt="0.2 ms", burst="16 KB")
    assert whole > 5 * max(apart, split) > 0, (whole, apart, split)


def test_frame_is_14_bytes_over_packet() -> None:
    (run,) = fp.run(document(seconds=10, burst="16 KB", buffer="1 MB")).runs
    goodput = run.summary["flows"][0]["goodput_bps"]
    assert goodput / 50e6 == pytest.approx(1448 / 1514, rel=0.01)
    assert goodput / 50e6 < 1448 / 1505


def test_elements_before_real_router_are_refused() -> None:
    before = document(before=[{"kind": "delay", "delay": "1 ms"}])
    reason = registry.named("qdisc").refuses(scenario.from_document(before).alternatives[0])
    assert reason is not None and reason.startswith("path.before")
    fine = scenario.from_document(document()).alternatives[0]
    assert registry.named("qdisc").refuses(fine) is None


def test_shipped_grid_covers_every_router_kind() -> None:
    cells = grid.load(str(SCENARIOS / "grids" / "router.toml")).cells
    first = [cell.alternative.spec["forward"][0] for cell in cells]
    assert len(cells) >= 40 and all(one["frame_bytes"] == 14 for one in first)
    # A burst of a host has up to 64 KB: buckets that split it and that do not; with bursts and without.
    assert {one["burst_bytes"] > 65536 for one in first} == {True, False}
    assert {one["queue"].get("unit", "segment") for one in first} == {"burst", "segment"}
    assert {cell.alternative.spec["hosts"].get("gso_max_segs") for cell in cells} == {None, 1}
    rates = [one["rate_bps"] for one in first]
    buffers = [one["queue"]["bytes"] for one in first]
    assert (min(rates), max(rates)) == (10_000_000, 500_000_000)
    assert (min(buffers), max(buffers)) == (10_000, 1_000_000)


@pytest.fixture
def tbf() -> None:
    """Skips the test where Linux has no tbf."""
    (found,) = [
        one for one in registry.named("qdisc").checks() if one["name"] == "queue disciplines of Linux"
    ]
    if not found["ok"]:
        pytest.skip(f"no tbf: {found['found']}")


@pytest.mark.usefixtures("kernel_world", "tbf")
def test_real_router_drops_in_bursts() -> None:
    (run,) = fp.run(document(seconds=3), world="kernel").runs
    (flow,), (link,) = run.summary["flows"], run.summary["links"]
    assert run.world == "kernel" and link["name"] == "bottleneck"
    assert 10e6 < flow["goodput_bps"] < 1.1 * 50e6 * 1448 / 1514
    # A burst counts as one drop. The window overflows 100 KB at least once.
    assert 0 < link["dropped_packets"] < flow["retransmits"]


@pytest.mark.usefixtures("kernel_world", "tbf")
@pytest.mark.parametrize("path", [{"burst": "2 KB"}, {"unit": "segment"}])
def test_split_segments_are_dropped_individually(path: dict[str, Any]) -> None:
    (run,) = fp.run(document(**path), world="kernel").runs
    (flow,), (link,) = run.summary["flows"], run.summary["links"]
    assert link["dropped_packets"] <= flow["retransmits"] <= link["dropped_packets"] + 20


@pytest.mark.usefixtures("kernel_world", "tbf")
def test_shell_router_reports_its_drops() -> None:
    path = ["--rate", "2mbit", "--rtt", "2ms", "--buffer", "20 KB", "--router", "tbf", "--burst", "16 KB"]
    program = "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n" + (
        "for _ in range(100): s.sendto(bytes(1400), (os.environ['FULLPIPE_SERVER'], 9))"
    )
    words = [sys.executable, "-m", "fullpipe", "shell", *path, "--", sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert "router with tbf of 2 Mbit/s, burst 16 KB, queue of 20 KB" in done.stderr
    (counted,) = [line for line in done.stderr.splitlines() if line.startswith("fullpipe: router: ")]
    # 1442 bytes each: 11 on the bucket, 13 in the queue, and those whose time has come, one in 6 ms.
    taken, drops = int(counted.split()[2]), int(counted.split()[5])
    assert taken >= 24 and drops > 0 and taken + drops == 100


def test_shell_names_wrong_router_option() -> None:
    words = [sys.executable, "-m", "fullpipe", "shell", "--rate", "20mbit", "--rtt", "2ms", "--router", "tbf"]
    done = subprocess.run([*words, "--", "true"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "--burst" in done.stderr, done.stderr
