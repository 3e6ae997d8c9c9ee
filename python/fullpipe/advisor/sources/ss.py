"""The output of `ss -tin`: what Linux knows of each connection's path.

The round-trip time is `minrtt`. The rate is the highest of `delivery_rate` and, under BBR, of its estimate
`bw`: a connection that had little to send saw less of the path than there is, and is left out. Losses are
retransmitted over sent bytes; those that a full queue caused are among them, so they are noted and not
taken for random loss.
"""

import io
import re

from fullpipe.advisor.sources import Path

# Below this many delivered segments the rate says little.
_LEAST_DELIVERED = 100
_RATE = re.compile(r"\bdelivery_rate (\d+)bps")
_BBR = re.compile(r"\bbbr:\(bw:(\d+)bps")
_MIN_RTT = re.compile(r"\bminrtt:(\d+(?:\.\d+)?)\b")
_DELIVERED = re.compile(r"\bdelivered:(\d+)\b")
_SENT = re.compile(r"\bbytes_sent:(\d+)\b")
_RESENT = re.compile(r"\bbytes_retrans:(\d+)\b")
_SCALED = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([KMG]?)bps")
_ADDRESS = re.compile(r":\d+$")
# Longer lines are not of `ss`.
_LONGEST = 16_384
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}


def is_one(text: str) -> bool:
    """Whether it has what `ss -ti` prints."""
    return "minrtt:" in text and "cwnd:" in text


def read(text: str, file: str) -> list[Path]:
    """The paths of connections that sent enough: for each peer the one that saw the highest rate."""
    del file
    best: dict[str, tuple[float, Path]] = {}
    peer = ""
    for line in io.StringIO(text):
        if len(line) > _LONGEST:
            continue
        if line[:1].strip():
            # With -e, `uid:1000` and the like stand behind the two addresses.
            addresses = [part for part in line.split() if _ADDRESS.search(part)][:2]
            peer = addresses[-1] if addresses else ""
            continue
        found = _path(line, peer)
        if found is not None and found[0] > best.get(found[1].name, (0.0,))[0]:
            best[found[1].name] = found
    return [path for _, path in best.values()]


def _path(line: str, peer: str) -> tuple[float, Path] | None:
    line = _SCALED.sub(lambda match: f"{float(match[1]) * _SCALES[match[2]]:.0f}bps", line)
    rtt = _MIN_RTT.search(line)
    delivered = _DELIVERED.search(line)
    rates = [float(match[1]) for match in (_RATE.search(line), _BBR.search(line)) if match]
    if rtt is None or not rates or delivered is None or int(delivered[1][:18]) < _LEAST_DELIVERED:
        return None
    rate, rtt_ms = max(rates), float(rtt[1])
    if not (0 < rate < 1e15 and 0 < rtt_ms < 1e9):
        return None
    sent, resent = _SENT.search(line), _RESENT.search(line)
    notes = []
    if sent and resent and int(sent[1][:18]):
        notes.append(f"{100 * int(resent[1][:18]) / int(sent[1][:18]):.2g} % of the bytes were sent again")
    if "app_limited" in line:
        notes.append("the application limited it: the path may be faster")
    name = peer.rpartition(":")[0].strip("[]") or "a connection"
    says = {"rate": f"{rate:.0f} bit/s", "rtt": f"{rtt_ms * 1e3:.0f} us"}
    return rate, Path(name, says, float(sent[1][:18]) if sent else 1.0, tuple(notes))
