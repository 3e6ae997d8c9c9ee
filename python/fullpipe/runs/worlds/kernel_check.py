"""Is the emulator accurate? Delay, rate, losses and drops, measured from both ends against the request.

At every rate two probes cross a path of 40 ms: a light one, a fifth of the rate, with 1 % random loss; and a
heavy one, one and a half times the rate, into a buffer of 50 ms. Rust sends, receives and computes the
expected result (`crates/emu/src/probe.rs`); this module defines the tolerances.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fullpipe.runs.worlds import kernel
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario.path import Path
from fullpipe.scenario.scenario import from_document

# For medians of delays and of the time in a full queue, one way. A scheduler's wake-up takes half of it.
MEDIAN_TOLERANCE_NS = 200_000
# For a rate, and for a share of packets.
RATE_TOLERANCE = 0.005
# A sender that reaches less than this share of the rate does not fill the link, so the check says nothing.
LEAST_OFFER = 1.05
# A queue that never falls below this share of its limit drops everything above its rate.
ALWAYS_FULL = 0.95
# Drops of a queue depend on when packets reach it, which is later by less than this many packets.
DROPS_THAT_COUNT = 3
# Reading a clock takes time, so a packet that seems early by this much need not be early.
EARLY_TOLERANCE_NS = 5_000

LIGHT_LOAD, HEAVY_LOAD = 0.2, 1.5
RTT_MS = 40
LOSS = 0.01
_BUFFER_S = 0.05
# For packets that are on the path when the sender stops, and for a sender that is late.
_REST_S = 0.5
# To start a process and create its namespaces.
_START_S = 0.4

# Mbit/s, bytes of each packet: those of a full segment, except where that would give too few packets.
RATES = ((1, 100), (10, 500), (100, 1500), (500, 1500), (1000, 1500), (2000, 1500))
QUICK_RATES = RATES[:4]
_SENDING_S = 5.0
_QUICK_SENDING_S = 1.2

TOLERANCES = {
    "median_ns": MEDIAN_TOLERANCE_NS,
    "rate": RATE_TOLERANCE,
    "drop_share": RATE_TOLERANCE,
    "least_offer": LEAST_OFFER,
    "drops": DROPS_THAT_COUNT,
    "early_ns": EARLY_TOLERANCE_NS,
    "random_losses": 0,
    "order": 0,
}

# Called with probes done and probes in all.
Watch = Callable[[float, int], None]


@dataclass(frozen=True)
class Probe:
    """Packets of one size at a fixed rate over a path."""

    rate_bps: int
    load: str  # light or heavy
    packet_bytes: int
    sending_s: float

    @property
    def offered_bps(self) -> int:
        """What is sent."""
        return int(self.rate_bps * (LIGHT_LOAD if self.load == "light" else HEAVY_LOAD))

    @property
    def buffer_bytes(self) -> int:
        """Room in the queue.

        A sixth of a packet more than a whole number. At one and a half times the rate, each packet then
        misses the limit by a sixth of a packet; otherwise it would hit the limit, and one nanosecond would
        decide.
        """
        packets = round(self.rate_bps * _BUFFER_S / (8 * self.packet_bytes))
        return packets * self.packet_bytes + self.packet_bytes // 6

    @property
    def packet_ns(self) -> float:
        """How long a packet takes."""
        return self.packet_bytes * 8e9 / self.rate_bps

    @property
    def buffer_ns(self) -> float:
        """How long a full queue takes."""
        return self.buffer_bytes * 8e9 / self.rate_bps

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.sending_s + _REST_S

    def job(self) -> Job:
        """The scenario, resolved like a user's."""
        path = Path(
            rate=f"{self.rate_bps} bit/s",
            rtt=f"{RTT_MS} ms",
            buffer=f"{self.buffer_bytes} B",
            loss=LOSS if self.load == "light" else None,
        )
        scenario = from_document(
            {
                "name": "check",
                "path": path.document(),
                "duration": f"{self.seconds} s",
                # A scenario needs a flow; this one never runs; probes use its port and class.
                "flows": [{"controller": "reno"}],
                "record": {"series": False},
            }
        )
        return Job(scenario.alternatives[0], seed=self.rate_bps // 1_000_000)

    def request(self) -> dict[str, int]:
        """What to send, and the requested path, in the native half's names."""
        return {
            "datagram_bytes": self.packet_bytes,
            "offered_bps": self.offered_bps,
            "sending_ns": int(self.sending_s * 1e9),
            "rate_bps": self.rate_bps,
            "delay_ns": RTT_MS * 1_000_000 // 2,
        }


@dataclass(frozen=True)
class Measured:
    """What a probe measured: see `Measured` in the native half."""

    probe: Probe
    measures: dict[str, Any]
    trips: bytes = field(repr=False, default=b"")


ACCURATE = "accurate"
# The emulator did something other than requested, which a slow machine does not excuse.
INACCURATE = "INACCURATE"
# Packets are only late.
LATE = "late"
# The machine could not send or carry enough packets to judge the emulator at this rate.
OUT_OF_REACH = "out of reach"


@dataclass(frozen=True)
class Finding:
    """One property of the emulator, compared with the requested path."""

    name: str
    ok: bool
    message: str  # What is wrong; empty if nothing is.
    # The verdict if nothing worse is found: `LATE` or `OUT_OF_REACH`.
    verdict: str = INACCURATE


@dataclass(frozen=True)
class RateVerdict:
    """Both probes at one rate, and the verdict on them."""

    light: Measured
    heavy: Measured
    findings: tuple[Finding, ...]

    @staticmethod
    def of(light: Measured, heavy: Measured) -> "RateVerdict":
        """Judges them."""
        return RateVerdict(light, heavy, tuple(_findings(light, heavy)))

    @property
    def rate_bps(self) -> int:
        """The requested rate."""
        return self.light.probe.rate_bps

    @property
    def accurate(self) -> bool:
        """Whether the emulator was as accurate as the tolerances require."""
        return all(one.ok for one in self.findings)

    @property
    def word(self) -> str:
        """The verdict."""
        found = {one.verdict for one in self.findings if not one.ok}
        return next((word for word in (INACCURATE, LATE, OUT_OF_REACH) if word in found), ACCURATE)

    @property
    def wrong(self) -> list[str]:
        """A sentence about each property that is wrong."""
        return [one.message for one in self.findings if not one.ok]

    @property
    def unnoticed(self) -> bool:
        """Whether the emulator's own record would not mark such a run."""
        doubts = [*self.light.measures["own_doubts"], *self.heavy.measures["own_doubts"]]
        return self.word in (INACCURATE, LATE) and not doubts

    def to_json(self) -> dict[str, Any]:
        """Everything but the packets."""
        return {
            "rate_bps": self.rate_bps,
            "verdict": self.word.lower(),
            "wrong": self.wrong,
            **{
                one.probe.load: {
                    "packet_bytes": one.probe.packet_bytes,
                    "offered_bps": one.probe.offered_bps,
                    "buffer_bytes": one.probe.buffer_bytes,
                    "sending_s": one.probe.sending_s,
                    **one.measures,
                }
                for one in (self.light, self.heavy)
            },
        }


def plan(quick: bool) -> list[Probe]:
    """The probes in order: a light and a heavy one at each rate."""
    rates, sending_s = (QUICK_RATES, _QUICK_SENDING_S) if quick else (RATES, _SENDING_S)
    return [
        Probe(mbit * 1_000_000, load, packet_bytes, sending_s)
        for mbit, packet_bytes in rates
        for load in ("light", "heavy")
    ]


def seconds(quick: bool) -> int:
    """About how long a check takes."""
    return round(sum(probe.seconds + _START_S for probe in plan(quick)))


def run(probes: Sequence[Probe], watch: Watch) -> list[RateVerdict]:
    """Runs the probes one after the other, each in a process of its own, and judges each rate."""
    done = []
    for number, probe in enumerate(probes):
        job = probe.job()
        measures, trips = kernel.probe(
            job,
            probe.request(),
            lambda part, number=number: watch(number + part, len(probes)),  # type: ignore[misc]
        )
        done.append(Measured(probe, json.loads(measures), trips))
    watch(len(probes), len(probes))
    return [RateVerdict.of(light, heavy) for light, heavy in zip(done[::2], done[1::2], strict=True)]


def _findings(light: Measured, heavy: Measured) -> Iterator[Finding]:
    both = (light, heavy)
    yield _all("carried", map(_carried, both), verdict=OUT_OF_REACH)
    yield _all("offered", [_offered(heavy)], verdict=OUT_OF_REACH)
    yield _all("early", map(_early, both))
    yield _all("delay", [_late(light), *map(_tail, both)], verdict=LATE)
    # If packets were lost outside of the path, the path's own decisions cannot be seen.
    if not _offered(heavy) and not _carried(heavy):
        yield _all("rate", [_rate(heavy)])
        yield _all("queue", [_queue(heavy)])
        yield _all("queue delay", [_queue_tail(heavy)], verdict=LATE)
        yield _all("drops", [_drop_share(heavy), _drop_count(heavy)])
    if not _carried(light):
        yield _all("losses", [_losses(light), _loss_ratio(light)])
    yield _all("order", map(_order, both))


def _all(name: str, message: Iterable[str], *, verdict: str = INACCURATE) -> Finding:
    wrong = [one for one in message if one]
    return Finding(name, not wrong, "; ".join(wrong), verdict)


def _carried(of: Measured) -> str:
    words = {
        "refused": "were refused by the sending kernel",
        "before": "were dropped before the emulator read them",
        "after": "were refused by the receiving kernel",
        "receiver": "were dropped because the receiver's socket was full",
        "unstamped": "had no time stamp",
    }
    outside = of.measures["outside"]
    return ", ".join(f"{outside[name]} packets {what}" for name, what in words.items() if outside[name])


def _offered(of: Measured) -> str:
    sent, expected = of.measures["sent_bps"] or 0.0, of.measures["expected_bps"] or 0.0
    if sent < LEAST_OFFER * of.probe.rate_bps:
        return f"the sender reached {mbit(sent)} of {mbit(of.probe.offered_bps)}, too little to fill the link"
    if expected < (1 - RATE_TOLERANCE) * of.probe.rate_bps:
        return f"the sender paused so long that a perfect link would have delivered {mbit(expected)}"
    return ""


def _early(of: Measured) -> str:
    late = of.measures["late"]
    if late is None or late["min_ns"] >= -(of.measures["stamp_error_ns"] + EARLY_TOLERANCE_NS):
        return ""
    return f"a packet arrived {ms(-late['min_ns'])} ms early"


def _late(of: Measured) -> str:
    late = of.measures["late"]
    if late is None:
        return "nothing arrived"
    if late["p50_ns"] <= MEDIAN_TOLERANCE_NS:
        return ""
    return f"half of the packets are {ms(late['p50_ns'])} ms late or more"


def _tail(of: Measured) -> str:
    late, limit = of.measures["late"], of.measures["lateness_limit_ns"]
    if late is None or late["p99_ns"] <= limit:
        return ""
    return f"1 % of the packets are {ms(late['p99_ns'])} ms late or more{_under(of)}"


def _under(of: Measured) -> str:
    return " under full load" if of.probe.load == "heavy" else ""


def _rate(of: Measured) -> str:
    came = of.measures["received_bps"] or 0.0
    # The first is below the second because of the sender's pauses, which are tolerable (see `_offered`).
    for asked in (of.measures["expected_bps"], of.probe.rate_bps):
        if abs(came / asked - 1) > RATE_TOLERANCE:
            return f"the link delivers {mbit(came)} (expected {mbit(asked)})"
    return ""


def _queue(of: Measured) -> str:
    full, probe = of.measures["full"], of.probe
    if full is None or full["queueing"] is None:
        return "the buffer never filled"
    most = probe.buffer_ns
    found, expected = full["queueing"]["p50_ns"], (full["expected_queueing"] or {}).get("p50_ns", most)
    # Which packets get in depends on when they reach the queue: it may be shorter or longer by one.
    if abs(found - expected) > MEDIAN_TOLERANCE_NS + probe.packet_ns:
        return f"the full queue delays packets by {ms(found)} ms (expected {ms(expected)})"
    return ""


def _queue_tail(of: Measured) -> str:
    full, most = of.measures["full"], of.probe.buffer_ns
    if full is None or full["queueing"] is None:
        return ""
    if full["queueing"]["p99_ns"] <= most + of.measures["lateness_limit_ns"]:
        return ""
    return f"the full queue delays packets by up to {ms(full['queueing']['p99_ns'])} ms (expected {ms(most)})"


def drop_shares(of: Measured) -> tuple[float, float] | None:
    """The share of packets that a full queue dropped, and the share that the model drops."""
    full = of.measures["full"]
    return None if full is None else (full["dropped"] / full["sent"], full["expected"] / full["sent"])


def _drop_share(of: Measured) -> str:
    full, shares = of.measures["full"], drop_shares(of)
    if full is None or shares is None:
        return "nothing was dropped"
    found, *expected = shares
    waiting = full["expected_queueing"]
    if full["sent_bps"] and waiting and waiting["min_ns"] >= ALWAYS_FULL * of.probe.buffer_ns:
        # Everything above the rate, which checks the model as well.
        expected.append(1 - of.probe.rate_bps / full["sent_bps"])
    wrong = [one for one in expected if abs(found - one) > RATE_TOLERANCE]
    return f"the full queue drops {found:.2%} (expected {wrong[0]:.2%})" if wrong else ""


def _drop_count(of: Measured) -> str:
    dropped, expected = of.measures["decisions"]["dropped"], of.measures["decisions"]["expected"]
    if abs(dropped - expected) <= max(DROPS_THAT_COUNT, RATE_TOLERANCE * expected):
        return ""
    return f"{dropped} packets are dropped (expected {expected})"


def _losses(of: Measured) -> str:
    decisions = of.measures["decisions"]
    if decisions["differently"] == 0:
        return ""
    return (
        f"{decisions['differently']} random losses differ from the model, first at packet "
        f"{decisions['first']}"
    )


def _loss_ratio(of: Measured) -> str:
    lost = of.measures["lost"]
    if lost is None or lost["low"] <= LOSS <= lost["high"]:
        return ""
    return f"{lost['packets']} of {lost['of']} packets are lost (expected {LOSS:.0%})"


def _order(of: Measured) -> str:
    counts = {name: of.measures[name] for name in ("reordered", "duplicated", "damaged")}
    return ", ".join(f"{count} packets are {name}" for name, count in counts.items() if count)


def mbit(bps: float) -> str:
    """A rate for readers."""
    return f"{bps / 1e6:,.4g} Mbit/s"


def ms(ns: float) -> str:
    """Nanoseconds as milliseconds, without the unit."""
    return f"{ns / 1e6:.3f}"
