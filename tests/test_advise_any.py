"""Damaged and mixed sources of paths give paths or a sentence.

`python tests/test_advise_any.py 600` damages sources for ten minutes, and prints how many and the slowest.
"""

import random
import sys
import time
from pathlib import Path

import pytest

from fullpipe import ScenarioError
from fullpipe.advisor import sources

CORPUS = {
    "table": "name,rate,rtt,loss,queue\nhome,50 Mbit/s,20..80 ms,0.1 %,fq_codel\noffice,5-8mbit,40ms,,fifo\n",
    "excel": "\ufeffrate_mbps;rtt [ms];Verlust (%)\n1.234,5;20;0,1\n50;40,5;\n",
    "ss": """State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0 0 192.0.2.1:443 198.51.100.7:51234 users:(("nginx",pid=7,fd=3))
\t cubic wscale:7,7 rto:204 rtt:40.2/0.3 ato:40 mss:1448 cwnd:10 ssthresh:66 bytes_acked:1000000 minrtt:39.9
\t delivery_rate 48.3Mbps delivered:700 busy:900ms send 2.9Mbps pacing_rate 96.7Mbps
ESTAB 0 0 [2001:db8::1]:22 [2001:db8::2]:50000
\t bbr wscale:7,7 bbr:(bw:9.5Mbps,mrtt:20.1,pacing_gain:1,cwnd_gain:2) cwnd:44 minrtt:20.1 delivered:900
""",
    "iperf3": """{"start": {"connected": [{"socket": 5, "remote_host": "192.0.2.9", "remote_port": 5201}],
"test_start": {"protocol": "TCP", "num_streams": 1, "duration": 10, "bytes": 0, "reverse": 0},
"version": "iperf 3.16", "tcp_mss_default": 1448, "target_bitrate": 0},
"intervals": [{"streams": [{"socket": 5, "rtt": 45000, "snd_cwnd": 90000, "bits_per_second": 9.4e6}]}],
"end": {"streams": [{"sender": {"socket": 5, "min_rtt": 40100, "mean_rtt": 46000, "retransmits": 4,
"bits_per_second": 9.5e6, "bytes": 11875000, "seconds": 10, "sender": true},
"receiver": {"bits_per_second": 9.4e6}}],
"sum_sent": {"bytes": 11875000, "seconds": 10, "bits_per_second": 9.5e6, "retransmits": 4},
"sum_received": {"bytes": 11750000, "seconds": 10, "bits_per_second": 9.4e6}}}
""",
    "prometheus": """# TYPE node_tcp_rtt_seconds gauge
node_tcp_rtt_seconds{instance="a:9100",peer="192.0.2.7"} 0.041 1700000000
tcp_connection_rtt_seconds{instance="a:9100",peer="192.0.2.7"} 0.041
""",
    "answer": """{"status": "success", "data": {"resultType": "vector", "result": [{"metric":
{"__name__": "tcp_rtt_seconds", "instance": "a:1"}, "value": [1700000000, "0.04"]}]}}
""",
    "browsers": "network,rtt,downlink,connectStart,connectEnd,responseStart,responseEnd,transferSize\n"
    "4g,50,9.5,10,60,100,900,1000000\nwifi,25,20,0,0,5,6,300\n",
    "browser": '[{"connection": {"rtt": 50, "downlink": 1.5}, "transferSize": 200000, "weight": 3}]\n',
}
HOSTILE = [
    "-1",
    "0",
    "1e400",
    "NaN",
    "9" * 400,
    "",
    "null",
    '"',
    "[" * 3_000,
    "{",
    "\x1b[31m",
    "\u202e",
    "\0",
    "..",
    "%",
]
MOST_SENTENCE = 1_000


def damaged(draw: random.Random) -> bytes:
    """One source of the corpus, or the halves of two, with up to six damages."""
    text = draw.choice(list(CORPUS.values()))
    if draw.random() < 0.2:
        other = draw.choice(list(CORPUS.values()))
        text = text[: draw.randrange(len(text))] + other[draw.randrange(len(other)) :]
    for _ in range(draw.randrange(7)):
        at, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + draw.choice([1, 5, 40, 400]))
        kind = draw.randrange(6)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:end] + text[at:end] * draw.randrange(4) + text[end:]
        elif kind == 2:
            text = text[:at] + draw.choice(HOSTILE) + text[end:]
        elif kind == 3:
            text = text[:at] + chr(draw.choice([draw.randrange(128), draw.randrange(0xD800)])) + text[at:]
        elif kind == 4:
            text = text[:at]
        else:
            old, new = draw.choice(
                [(",", ";"), (".", ","), ("\n", "\r\n"), (":", "="), ('"', "'"), ("1", "0")]
            )
            text = text.replace(old, new)
    encoding = draw.choice(["utf-8"] * 4 + ["utf-16", "utf-8-sig", "cp1252"])
    content = text.encode(encoding, "replace")
    return content if draw.random() < 0.95 else content[: draw.randrange(len(content) + 1)]


def check(content: bytes, file: Path) -> int:
    """Reads it as `--from` does. Returns how many paths it has."""
    file.write_bytes(content)
    try:
        found = sources.read(file)
    except ScenarioError as error:
        assert len(str(error)) <= MOST_SENTENCE, content
        return 0
    for path in found:
        try:
            path.question({"rate": "5mbit", "rtt": "20ms", "candidates": ["cubic"]})
        except ScenarioError as error:
            assert len(str(error)) <= MOST_SENTENCE, content
    return len(found)


@pytest.mark.parametrize("name", CORPUS)
def test_undamaged_source_gives_paths(name: str, tmp_path: Path) -> None:
    assert check(CORPUS[name].encode(), tmp_path / "source") > 0


@pytest.mark.parametrize("seed", range(4))
def test_damaged_source_yields_paths_or_error(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    counts = [check(damaged(draw), tmp_path / "source") for _ in range(250)]
    # Both happen, or the damage is not what it should be.
    assert 20 < sum(count > 0 for count in counts) < 230


def main(seconds: float) -> None:
    """Damages sources for so many seconds."""
    draw, file = random.Random(), Path("/dev/shm/fullpipe-any-source")
    ends_s = time.monotonic() + seconds
    tried, answered, slowest_s, slowest = 0, 0, 0.0, b""
    while (began_s := time.monotonic()) < ends_s:
        content = damaged(draw)
        answered += check(content, file) > 0
        tried += 1
        if (took_s := time.monotonic() - began_s) > slowest_s:
            slowest_s, slowest = took_s, content
    file.unlink()
    print(f"{tried} sources, {answered} with paths; slowest, in {1e3 * slowest_s:.0f} ms: {slowest[:200]!r}")


if __name__ == "__main__":
    main(float(sys.argv[1]))
