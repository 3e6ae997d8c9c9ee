"""The output of `ss -ti`: what Linux reports of each connection's path.

The forms of the options are read, too: `-n` or names instead of numbers, `-H` without a heading, `-O` on one
line, `-e`, `-m`, `-o`, `-p` with more columns, `-u` with a first column `Netid`, a state as a filter without
the column `State`; also several outputs one after the other.

The round-trip time is `minrtt`. The rate is the higher of `delivery_rate` and, under BBR, its estimate `bw`:
too low if the connection had little to send, so connections with few segments are left out. Connections to a
peer that send at the same time share the path, so their delivery rates are summed. Of several outputs, the
rate is the median, because acknowledgements that arrive together show too high a rate.
Retransmitted bytes are a note and not random loss, because a full queue causes them, too.
"""

import io
import ipaddress
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fullpipe.advisor.question import shown
from fullpipe.advisor.sources.source import Path, Paths
from fullpipe.errors import mistake
from fullpipe.text import joined

# Below this many delivered segments the rate is not that of the path.
_LEAST_DELIVERED = 100
# A connection without data in flight that sent so recently is still sending.
_JUST_MS = 10.0
# Of a connection whose segment size is not shown: that of Ethernet.
_MSS = 1460.0
# Longer lines are not of `ss`.
_LONGEST = 16_384
# They carry no data, or have none of the details.
_IDLE = frozenset({"LISTEN", "UNCONN", "TIME-WAIT"})
_BUSY = frozenset({"ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING"})
_STATES = _IDLE | _BUSY | {"SYN-SENT", "SYN-RECV"}
_OTHER_PROTOCOLS = frozenset(
    {"udp", "raw", "icmp6", "sctp", "dccp", "mptcp", "v_str", "v_dgr", "tipc", "xdp"}
)
# The columns of a line stand in its first part. A time stamp may precede them.
_COLUMNS_WITHIN = 1_024
_HEADING = re.compile(r"Recv-Q[ \t]+Send-Q[ \t]+Local Address:Port")
# Names of programs are anybody's, and may be any text.
_USERS = re.compile(r'users:\(\(".*?"[^()]*\)(?:,\(".*?"[^()]*\))*\)')
_NUMBER = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_FACT = re.compile(
    rf"(?<!\S)(minrtt|delivered|data_segs_out|segs_out|bytes_sent|bytes_acked|bytes_retrans|mss):{_NUMBER}(?!\S)"
)
_RATES = re.compile(rf"(?<!\S)(delivery_rate |bbr:\(bw:){_NUMBER}([KMGT]?)bps")
_FLIGHT = re.compile(rf"(?<!\S)(unacked|lastsnd):{_NUMBER}(?!\S)")
_BBR_RTT = re.compile(rf"(?<!\S)bbr:\([^)]*?\bmrtt:{_NUMBER}")
_APP_LIMITED = re.compile(r"(?<!\S)app_limited(?!\S)")
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_MOST_BPS, _MOST_RTT_MS = 1e15, 1e9
_FIX = "run `ss -tin` on the sending host while it sends"


class _Head(NamedTuple):
    """The columns of a line."""

    is_tcp: bool
    state: str
    local: str
    peer: str
    rest: str


@dataclass
class _Sample:
    """What one output of `ss` reports of how a connection sends."""

    delivery_bps: float = 0.0
    bbr_bps: float = 0.0
    app_limited: bool = False
    unacked: float = 0.0
    lastsnd_ms: float = 0.0  # `ss` omits it if it is zero.
    segments: float | None = None

    @property
    def rate_bps(self) -> float:
        """The rate of the path, if no other connection sends."""
        return max(self.delivery_bps, self.bbr_bps)

    @property
    def sending(self) -> bool:
        """Whether the connection takes its share of the path now; if not, its rate is an old one."""
        enough = self.segments is None or self.segments >= _LEAST_DELIVERED
        now = self.unacked > 0 or self.lastsnd_ms <= _JUST_MS
        return enough and now and self.rate_bps > 0 and not self.app_limited


@dataclass
class _Connection:
    """What `ss` reports of a connection, in one or more outputs."""

    peer: str
    here: bool  # Whether the peer is this host.
    facts: dict[str, float] = field(default_factory=dict)
    samples: dict[int, _Sample] = field(default_factory=dict)  # By the number of the output.
    detailed: bool = False

    def add(self, line: str, output: int) -> None:
        """Takes in a line with details."""
        self.detailed = True
        sample = self.samples.setdefault(output, _Sample())
        for name, text in _FACT.findall(line):
            value = float(text)
            # The least round trip is that of the emptiest queue; counters only grow.
            keep = min if name == "minrtt" else max
            self.facts[name] = keep(value, self.facts.get(name, value))
        if "minrtt" not in self.facts and (found := _BBR_RTT.search(line)):
            self.facts["minrtt"] = float(found[1])
        for name, number, scale in _RATES.findall(line):
            rate_bps = float(number) * _SCALES[scale]
            if not 0 < rate_bps < _MOST_BPS:
                continue
            if name.startswith("bbr"):
                sample.bbr_bps = rate_bps
            else:
                sample.delivery_bps = rate_bps
        for name, number in _FLIGHT.findall(line):
            if name == "unacked":
                sample.unacked = float(number)
            else:
                sample.lastsnd_ms = float(number)
        sample.app_limited |= bool(_APP_LIMITED.search(line))
        sample.segments = self.segments

    @property
    def best(self) -> _Sample:
        """The sample with the highest rate."""
        return max(self.samples.values(), key=lambda one: one.rate_bps)

    @property
    def segments(self) -> float | None:
        """How many segments with data it sent, as far as this version of `ss` shows it."""
        mss = self.facts.get("mss", _MSS)
        known = ("delivered", 1.0), ("data_segs_out", 1.0), ("bytes_acked", mss), ("bytes_sent", mss)
        counts = [self.facts[name] / size for name, size in (*known, ("segs_out", 1.0)) if name in self.facts]
        return counts[0] if counts else None

    @property
    def sent_bytes(self) -> float | None:
        """How many bytes it sent, as far as this version of `ss` shows it."""
        return self.facts.get("bytes_sent", self.facts.get("bytes_acked"))

    @property
    def unusable(self) -> str | None:
        """Why it does not show the path; None if it does."""
        if self.here:
            return "with this host itself"
        if not self.detailed:
            return "without details, which option -i adds"
        if self.segments is not None and self.segments < _LEAST_DELIVERED:
            return f"with fewer than {_LEAST_DELIVERED} segments sent"
        if not self.best.rate_bps:
            return "without a delivery rate"
        return None if 0 < self.facts.get("minrtt", 1.0) < _MOST_RTT_MS else "with an impossible minrtt"


def _path(peer: str, connections: Sequence[_Connection], weight: float) -> Path:
    """The path to a peer, from its connections that sent enough."""
    doubts: list[str] = []
    rates = _rates(connections)
    if rates:
        # The high median is one of the outputs.
        rate_bps, number = statistics.median_high(rates)
        if number > 1:
            doubts.append(f"the rate is the sum of {number} connections")
        if len(rates) > 1:
            low, high = (shown("rate", end(rates)[0], 3) for end in (min, max))
            doubts.append(f"the rate is the median of {len(rates)} outputs ({low} to {high})")
    else:
        best = max((one.best for one in connections), key=lambda one: one.rate_bps)
        rate_bps = best.rate_bps
        doubts.append(
            "the application limited it: the path may be faster"
            if best.app_limited
            else "it was not sending: the rate is an old one"
        )
    if any(one.segments is None for one in connections):
        doubts.append("ss does not show how much was sent: the rate may be that of a few segments")
    says, caveats, notes = {"rate": f"{rate_bps:.0f} bit/s"}, {}, []
    rtts_ms = [one.facts["minrtt"] for one in connections if "minrtt" in one.facts]
    if rtts_ms:
        says["rtt"] = f"{min(rtts_ms) * 1e3:.0f} us"
    else:
        caveats["rtt"] = "this version of ss shows no minrtt"
    sent = sum(one.sent_bytes or 0.0 for one in connections)
    again = sum(one.facts.get("bytes_retrans", 0.0) for one in connections)
    if sent and again:
        notes.append(f"{100 * again / sent:.2g} % of the bytes were sent again")
    return Path(peer, says, weight, tuple(notes), (), caveats, dict.fromkeys(doubts, ("rate",)))


def _rates(connections: Sequence[_Connection]) -> list[tuple[float, int]]:
    """Of each output in which some of them were sending: their rate together, and how many they are."""
    outputs: dict[int, list[_Sample]] = {}
    for connection in connections:
        for output, sample in connection.samples.items():
            if sample.sending:
                outputs.setdefault(output, []).append(sample)
    return [
        # BBR's estimate is the highest of some time, and those of several connections have no common time.
        (sum(one.delivery_bps or one.bbr_bps for one in together), len(together))
        if len(together) > 1
        else (together[0].rate_bps, 1)
        for together in outputs.values()
    ]


def is_one(text: str) -> bool:
    """Whether it has what `ss` prints."""
    if "cwnd:" in text and "rtt:" in text:
        return True
    lines = io.StringIO(text[:65_536])
    return any(_HEADING.search(line) or _head(line) for line in lines if len(line) <= _LONGEST)


def read(text: str, file: str) -> Paths:
    """A path for each peer to which a connection sent enough."""
    connections, unread = _connections(text)
    fit: dict[str, list[_Connection]] = {}
    weights: dict[str, float] = {}
    unusable: Counter[str] = Counter()
    for one in connections:
        weights[one.peer] = weights.get(one.peer, 0.0) + (one.sent_bytes or 0.0)
        if one.unusable is None:
            fit.setdefault(one.peer, []).append(one)
        else:
            unusable[one.unusable] += 1
    reasons = [f"{number} {reason}" for reason, number in unusable.items()]
    if unread:
        reasons.append(f"{unread} in lines of an unknown form")
    if not fit:
        why = f"its connections: {joined(reasons)}" if reasons else "it lists no connections"
        raise mistake("from", file, f"at least one path; {why}", _FIX)
    notes = [f"connections not used: {joined(reasons)}"] if reasons else []
    return Paths([_path(peer, own, weights[peer] or 1.0) for peer, own in fit.items()], notes)


def _connections(text: str) -> tuple[list[_Connection], int]:
    """The TCP connections of a text, and how many lines with details are of none of them."""
    found: dict[tuple[str, str], _Connection] = {}
    current: _Connection | None = None
    # An output begins with a heading or, without one, where a connection is listed again.
    output, listed = 0, set[tuple[str, str]]()
    # Whether the next line with details can be one of the last connection.
    open_, skipped, unread = False, False, 0
    for whole in io.StringIO(text, newline=None):
        if len(whole) > _LONGEST:
            continue
        line = _USERS.sub("", whole)
        head = _head(line)
        if (head is not None and (head.local, head.peer) in listed) or _HEADING.search(line):
            output, listed = output + 1, set()
        if head is not None:
            skipped = not head.is_tcp or head.state in _IDLE
            current, open_ = None, True
            if not skipped:
                key = head.local, head.peer
                listed.add(key)
                current = found.get(key) or found.setdefault(key, _connection(*key))
            line = head.rest
        if "cwnd:" not in line:
            # A terminal or `watch` may have wrapped the line.
            if current is not None and current.detailed and line[:1].strip():
                current.add(line, output)
            continue
        if current is not None and open_:
            current.add(line, output)
        elif not skipped:
            unread += 1
        open_ = skipped = False
    return list(found.values()), unread


def _head(line: str) -> _Head | None:
    """The columns `[Netid] [State] Recv-Q Send-Q Local:Port Peer:Port` of a line, if it has them."""
    words = line[:_COLUMNS_WITHIN].split()
    at = next((at for at, word in enumerate(words) if word in _STATES), -1)
    netid = words[at - 1] if at > 0 else ""
    if at < 0 and words and words[0] in _OTHER_PROTOCOLS | {"tcp"}:
        # A filter for one state omits its column.
        at, netid = 0, words[0]
    columns = words[at + 1 : at + 5]
    if len(columns) < 4 or not (columns[0].isdigit() and columns[1].isdigit()):
        return None
    local, peer = columns[2:]
    if ":" not in local or ":" not in peer:
        return None
    state = words[at] if at >= 0 and words[at] in _STATES else ""
    parts = line.split(maxsplit=at + 5)
    rest = parts[at + 5] if len(parts) > at + 5 else ""
    return _Head(netid not in _OTHER_PROTOCOLS, state, local, peer, rest)


def _connection(local: str, peer: str) -> _Connection:
    host = _host(peer)
    return _Connection(host, host == _host(local) or _is_loopback(host))


def _host(address: str) -> str:
    """The host of an address with a port: `192.0.2.7` of `[::ffff:192.0.2.7]:https`."""
    host = address.rpartition(":")[0].replace("[", "").replace("]", "")
    return host[7:] if host.lower().startswith("::ffff:") and "." in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith(("localhost.", "ip6-localhost"))
