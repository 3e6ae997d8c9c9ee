"""iperf3 as an instrument: its readings behind `fullpipe shell` against ours, on the same paths.

    python -m pytest tests/test_iperf3.py -s

prints the table. It takes half a minute, and is skipped where there is no iperf3 or no kernel world. Times of
iperf3 are wall time of a machine that others may use, so they are shown and not judged; what is judged is
which of its bytes had arrived when it stopped.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fullpipe

pytestmark = [
    pytest.mark.usefixtures("kernel_world"),
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]

BLOCK = 128 * 1024  # What iperf3 writes at once; -n is rounded up to it.
# Rate, round-trip time, buffer, and blocks to send.
PATHS = (
    ("20 Mbit/s", "40 ms", "100 KB", 40),
    ("50 Mbit/s", "20 ms", "100 KB", 80),
    ("20 Mbit/s", "100 ms", "250 KB", 40),
)


def behind(path: tuple[str, str, str], script: str, folder: Path) -> str:
    """What a script prints behind the path, where an iperf3 listens at the far end."""
    rate, rtt, buffer = path
    options = ["--rate", rate, "--rtt", rtt, "--buffer", buffer, "--server", "iperf3 -s"]
    done = subprocess.run(
        [sys.executable, "-m", "fullpipe", "shell", *options, "--", "sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def iperf3(path: tuple[str, str, str], options: str, folder: Path) -> dict[str, Any]:
    """The end of iperf3's report."""
    # The server may be there a moment after the path.
    behind(
        path,
        f"until iperf3 -c $FULLPIPE_SERVER -C cubic -J {options} > report.json; do sleep 0.2; done",
        folder,
    )
    end: dict[str, Any] = json.loads((folder / "report.json").read_text())["end"]
    return end


def ours(path: tuple[str, str, str], world: str, **flow: Any) -> dict[str, Any]:
    """The flow's summary."""
    rate, rtt, buffer = path
    document = {
        "duration": "6 s",
        "path": {"rate": rate, "rtt": rtt, "buffer": buffer, "reverse": {"rate": rate, "buffer": buffer}},
        "hosts": {"model": "linux", "tcp_memory": "linux"},
        "flows": [{"controller": "cubic", "start_jitter": "0", **flow}],
    }
    summary: dict[str, Any] = fullpipe.run(document, world=world).runs[0].summary["flows"][0]
    return summary


@pytest.mark.parametrize("case", PATHS, ids=lambda case: f"{case[0]}, {case[1]}".replace("/", " per "))
def test_transfer_ends_with_its_last_write(case: tuple[str, str, str, int], tmp_path: Path) -> None:
    *_, blocks = case
    way = case[:3]
    end = iperf3(way, f"-n {blocks * BLOCK}", tmp_path)
    # iperf3's clock begins when its connections stand.
    rtt_ms = float(way[1].removesuffix(" ms"))
    theirs_ms = 1e3 * end["sum_sent"]["seconds"]
    print(
        f"\n{way}: iperf3 -n {blocks * BLOCK}: {theirs_ms:.0f} ms, {end['sum_sent']['bytes']} written,",
        end=" ",
    )
    print(f"{end['sum_received']['bytes']} received")
    for world in ("kernel", "sim"):
        flow = ours(way, world, size=blocks * BLOCK)
        write_ms, whole_ms = flow["write_ms"] - rtt_ms, flow["completion_ms"] - rtt_ms
        print(f"  {world}: written in {write_ms:.0f} ms, delivered in {whole_ms:.0f} ms")
        assert write_ms < whole_ms, f"{world}: the last byte is written before it is delivered"
    assert end["sum_received"]["bytes"] < end["sum_sent"]["bytes"] == blocks * BLOCK


def test_iperf3_connection_saves_no_ssthresh(tmp_path: Path) -> None:
    """Its server closes while data is on the way: the connection is reset, and Linux saves nothing of it."""
    settings = "net.ipv4.tcp_no_metrics_save=0 net.ipv4.tcp_no_ssthresh_metrics_save=0"
    resets = "awk '/^Tcp:/ && $9 ~ /[0-9]/ {print $9}' /proc/net/snmp"  # EstabResets
    script = (
        f"sysctl -q -w {settings} || exit 0; ip tcp_metrics flush; {resets} > before;"
        " until iperf3 -c $FULLPIPE_SERVER -C cubic -t 3 > /dev/null; do sleep 0.2; done; sleep 1;"
        f" {resets} > after;"
        " ip tcp_metrics show > entry"
    )
    behind(("20 Mbit/s", "40 ms", "100 KB"), script, tmp_path)
    if not (tmp_path / "entry").exists():
        pytest.skip("the settings cannot be changed here")
    before, after = (int((tmp_path / name).read_text()) for name in ("before", "after"))
    entry = (tmp_path / "entry").read_text()
    print(f"\n{after - before} connections were reset; left: {entry.strip()}")
    assert after > before
    assert "rtt" in entry and "ssthresh" not in entry  # The control connection's.
