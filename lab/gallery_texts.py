"""What the lab's gallery shows of each claim, and says about it in three sentences.

`see` is what to see, `why` why it is so, `attempt` what to try. `holds` is what the simulated numbers must be
for `see` to be true.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Number:
    """A number of one run, over a part of it: `since` and `until` are fractions of its duration."""

    name: str
    run: str
    of: str
    unit: str
    flow: int = 0
    since: float = 0.0
    until: float = 1.0
    # What the paper gives: a value as both ends, or a range; None where it gives a direction only.
    paper: tuple[float, float] | None = None
    paper_says: str = ""
    # The check of results/claims.jsonl whose value in the kernel world this is, and what to make of it.
    check: str = ""
    check_to: Callable[[float], float] = lambda value: value


@dataclass(frozen=True)
class Entry:
    """A claim as it is shown: runs by name with the factors of the claim's grid, a chart, and numbers."""

    claim: str
    runs: Mapping[str, Mapping[str, Any]]
    draw: str  # The column that is drawn over time.
    numbers: tuple[Number, ...]
    see: str
    why: str
    attempt: str
    holds: Callable[[Numbers], bool]
    title: str = ""
    part: str = ""
    # What must be known to read the chart.
    note: str = ""
    # Runs that stock Linux can do, too.
    kernel: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """Its name in a link."""
        return f"{self.claim}{self.part}"


BBR, CUBIC = {"controller": "bbr1"}, {"controller": "cubic"}
BBR3 = {"controller": "bbr3"}


_UNITS = {
    "goodput_mbps": "Mbit/s",
    "share_pct": "%",
    "queue_ms": "ms",
    "rtt_ms": "ms",
    "rtt_max_ms": "ms",
    "loss_pct": "%",
    "resent": "packets",
    "probe_rtt_pct": "%",
}


def _number(name: str, run: str, of: str, paper: Any = None, says: str = "", **rest: Any) -> Number:
    ends = paper if isinstance(paper, tuple) or paper is None else (paper, paper)
    return Number(name, run, of, _UNITS[of], paper=ends, paper_says=says, **rest)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        claim="queue16.fig1",
        runs={f"{size:g} BDP": {"cap_bdp": size, "seconds": 10} for size in (0.6, 2.0, 4.0)},
        draw="rtt_ms",
        numbers=(
            _number("RTT, window 0.6 BDP", "0.6 BDP", "rtt_ms", 40, "the empty path's", since=0.5),
            _number("RTT, window 2 BDP", "2 BDP", "rtt_ms", 80, "window over rate", since=0.5),
            _number("Goodput, window 0.6 BDP", "0.6 BDP", "goodput_mbps", 57.9, "0.6 of the most", since=0.5),
            _number("Goodput, window 2 BDP", "2 BDP", "goodput_mbps", 96.5, "the link's", since=0.5),
            _number("Retransmissions, window 4 BDP", "4 BDP", "resent", None, "packets are dropped"),
        ),
        see="With a window below one bandwidth-delay product (BDP) the RTT is that of the empty path "
        "and the link is not full; above it the link is full and only the RTT grows.",
        why="What does not fit into the pipe waits in front of it, so a window of two BDP takes two "
        "round trips; beyond the buffer's 1.5 BDP packets are dropped.",
        attempt="Set `max_cwnd` to `1 bdp`: that gives nearly the whole rate without a queue, and is the "
        "point that BBR looks for.",
        holds=lambda n: (
            n["RTT, window 0.6 BDP"] < 42
            and 76 < n["RTT, window 2 BDP"] < 84
            and n["Goodput, window 0.6 BDP"] < 60
            and n["Goodput, window 2 BDP"] > 95
            and n["Retransmissions, window 4 BDP"] > 0
        ),
    ),
    Entry(
        claim="queue16.fig4",
        runs={"bbr1": BBR, "cubic": CUBIC},
        draw="inflight_kb",
        numbers=(
            _number("RTT at the end, bbr1", "bbr1", "rtt_ms", 40, "completely drains its queue", since=0.95),
            _number("RTT at the end, cubic", "cubic", "rtt_ms", None, "CUBIC can't", since=0.95),
        ),
        see="Both double what is in flight in each round trip, but then BBR falls back to about 50 "
        "KB, which just fills this path, while CUBIC goes on growing.",
        why="BBR stops when three rounds have not brought a higher delivery rate, and then sends more"
        " slowly until the queue is gone; CUBIC has lost nothing yet and so has no reason to "
        "stop.",
        attempt='Make the buffer `"1 bdp"`: CUBIC then has filled it after half a second with 100 KB in '
        "flight, loses packets, falls back to about 70 KB and climbs again slowly.",
        holds=lambda n: n["RTT at the end, bbr1"] < 0.55 * n["RTT at the end, cubic"],
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="queue16.fig5",
        runs={"bbr1": BBR, "cubic": CUBIC},
        draw="rtt_ms",
        numbers=(
            _number("Median RTT from 3 s on, bbr1", "bbr1", "rtt_ms", 40, "no queue", since=0.375),
            _number(
                "Median RTT from 3 s on, cubic",
                "cubic",
                "rtt_ms",
                (264, 360),
                "70 to 100 % of the buffer",
                since=0.375,
            ),
        ),
        see="BBR's RTT stays close to the path's 40 ms, with a small wave every third of a second; "
        "CUBIC's climbs to 360 ms, falls at a loss, and climbs again.",
        why="CUBIC grows until packets are lost, and they are lost when the buffer of eight BDP is "
        "full; BBR sends at the rate that it has measured, and probes with a quarter more for one"
        " round trip in eight.",
        attempt="Set the buffer to `\"16 bdp\"`: CUBIC's RTT then climbs further, and BBR's stays as it is.",
        holds=lambda n: n["Median RTT from 3 s on, bbr1"] < 50 and n["Median RTT from 3 s on, cubic"] > 264,
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="queue16.fig3",
        runs={"bbr1": {"seconds": 50.0}},
        draw="rtt_ms",
        numbers=(
            _number(
                "Goodput from 21 s to 40 s",
                "bbr1",
                "goodput_mbps",
                19.3,
                "the doubled rate",
                since=0.42,
                until=0.8,
            ),
            _number("Median RTT, last 7.5 s", "bbr1", "rtt_ms", 40, "drained within about 2 s", since=0.85),
        ),
        see="When the link's rate doubles at 20 s nothing queues, and BBR uses the new rate within a "
        "second; when it halves at 40 s the RTT jumps and comes down again over some seconds.",
        why="A probe of a quarter more finds the higher rate at once, but the old rate stays in BBR's"
        " maximum filter for ten round trips, and meanwhile it sends twice as much as the link "
        "carries.",
        attempt="Replace `bbr1` by `cubic`: it has filled the buffer of 20 BDP long before, so its RTT is"
        " far higher at all times.",
        holds=lambda n: n["Goodput from 21 s to 40 s"] > 18.5 and n["Median RTT, last 7.5 s"] < 60,
        kernel=("bbr1",),
    ),
    Entry(
        claim="queue16.fig6",
        runs={"five": {"seconds": 40}},
        draw="goodput_mbps",
        numbers=tuple(
            _number(
                f"Goodput in the last 10 s, flow {flow + 1}",
                "five",
                "goodput_mbps",
                19.3,
                "a fair share",
                flow=flow,
                since=0.75,
            )
            for flow in range(5)
        ),
        see="Five BBR flows start two seconds apart; each takes its part from the others, and in the "
        "end all have about a fifth of the link, with common dips.",
        why="A flow that probes takes bandwidth from those with more, and all enter ProbeRTT "
        "together, because the empty queue that one leaves shows the others a new least RTT at "
        "the same moment.",
        attempt='Set `controller = "cubic"`: those flows are less even after the same time, and keep a '
        "full buffer.",
        holds=lambda n: all(15 < one < 24 for one in n.values()),
        kernel=("five",),
    ),
    Entry(
        claim="queue16.fig8",
        runs={
            "bbr1": {**BBR, "loss_pct": 1, "seconds": 30},
            "cubic": {**CUBIC, "loss_pct": 1, "seconds": 30},
        },
        draw="goodput_mbps",
        numbers=(
            _number("Goodput, bbr1", "bbr1", "goodput_mbps", 95.6, "the link's rate times 0.99"),
            _number("Goodput, cubic", "cubic", "goodput_mbps", None, "stalls above 1 %"),
        ),
        see="With one packet in a hundred lost at random, BBR fills most of the 100 Mbit/s and CUBIC "
        "gets about 2.",
        why="CUBIC takes each loss for a full queue and cuts its window, here more than once a "
        "second; BBR goes by the delivery rate, which losses at random hardly change.",
        attempt='Set `loss` to `"0.01 %"`, where CUBIC is still usable, then to `"20 %"`, where BBR '
        "collapses, too.",
        holds=lambda n: n["Goodput, bbr1"] > 85 and n["Goodput, cubic"] < 3,
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="queue16.fig10",
        runs={"bbr1": {**BBR, "buffer_kb": 300}, "cubic": {**CUBIC, "buffer_kb": 300}},
        draw="rtt_ms",
        numbers=(
            _number("Median RTT, bbr1", "bbr1", "rtt_ms", None, "near its minimum", since=0.4, until=0.7),
            _number("Median RTT, cubic", "cubic", "rtt_ms", None, "the buffer is full", since=0.4, until=0.7),
        ),
        see="Eight flows share a link of 128 kbit/s for an hour: with CUBIC a packet takes 18 "
        "seconds, with BBR, once its start is over, about 4.",
        why="CUBIC keeps the 300 KB of the buffer full, which is 19 seconds at this rate; BBR's queue"
        " comes from the least window of four packets that each of its eight flows has.",
        attempt="Set `buffer` to `\"1000 KB\"`: CUBIC's delay triples, BBR's does not, once its start is "
        "over.",
        holds=lambda n: 17_000 < n["Median RTT, cubic"] < 19_500 and 3_000 < n["Median RTT, bbr1"] < 5_000,
    ),
    Entry(
        claim="queue16.policer",
        runs={
            "bbr1": {**BBR, "seconds": 30},
            "without its model": {"controller": "bbr1:lt_bw=0", "seconds": 30},
            "cubic": {**CUBIC, "seconds": 30},
        },
        draw="goodput_mbps",
        numbers=(
            _number("Retransmitted, bbr1", "bbr1", "loss_pct", None, "moderate"),
            _number("Retransmitted, without its model", "without its model", "loss_pct", None, "far more"),
            _number("Retransmitted, cubic", "cubic", "loss_pct"),
        ),
        see="A burst passes at 100 Mbit/s until the bucket of 500 KB is empty, then all get the token"
        " rate of 10 Mbit/s; BBR without its policer model loses most.",
        why="Each probe with a quarter more meets an empty bucket, and the surplus is dropped, not "
        "queued; the model recognises constant losses at a constant rate, and holds that rate for"
        " 48 rounds without probes.",
        attempt='Set `burst` to `"5 MB"`: the bucket then hides the token rate for longer, and more is '
        "lost when it is empty.",
        holds=lambda n: (
            n["Retransmitted, without its model"]
            > 1.2 * n["Retransmitted, bbr1"]
            > 1.2 * n["Retransmitted, cubic"]
        ),
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="queue16.acks",
        runs={
            f"cwnd_gain {gain}": {
                "controller": f"bbr1:cwnd_gain={gain},extra_acked_gain=0",
                "every_ms": 40,
                "seconds": 20,
            }
            for gain in (2, 1)
        },
        draw="goodput_mbps",
        numbers=(
            _number("Goodput, cwnd_gain 2", "cwnd_gain 2", "goodput_mbps", 96.5, "smoothly", since=0.2),
            _number("Goodput, cwnd_gain 1", "cwnd_gain 1", "goodput_mbps", None, "stalls", since=0.2),
        ),
        see="The path holds ACKs back and releases them every 40 ms: BBR with a window of two BDP "
        "fills the link, with one BDP it has almost nothing.",
        why="With one BDP the window is used up before the next ACKs come; the sender stalls, "
        "measures a lower rate, and makes its window smaller still.",
        attempt='Set `every` to `"5 ms"`: the smaller window then stalls less, but it still stalls.',
        holds=lambda n: n["Goodput, cwnd_gain 2"] > 90 and n["Goodput, cwnd_gain 1"] < 10,
    ),
    Entry(
        claim="queue16.probertt",
        runs={"bbr1": {"seconds": 60}},
        draw="inflight_kb",
        numbers=(
            _number("Time in ProbeRTT", "bbr1", "probe_rtt_pct", 2, "200 ms in 10 s", since=0.2),
            _number("Goodput", "bbr1", "goodput_mbps", 94.6, "98 % of the most", since=0.2),
        ),
        see="Every ten seconds what is in flight falls to four packets for a fifth of a second; apart"
        " from that it swings about one BDP.",
        why="BBR can measure the path's own RTT only when its own queue is gone, so it gives up 200 "
        "ms in ten seconds, which is 2 % of the rate.",
        attempt='Add a second `[[flows]]` with `controller = "bbr1"`: both flows then do it at the same '
        "time.",
        holds=lambda n: 1.5 < n["Time in ProbeRTT"] < 3 and n["Goodput"] > 93,
        kernel=("bbr1",),
    ),
    Entry(
        claim="queue16.coexist",
        runs={
            "1 BDP": {"buffer_bdp": 1, "seconds": 60},
            "16 BDP": {"buffer_bdp": 16, "seconds": 60},
        },
        draw="goodput_mbps",
        numbers=(
            _number(
                "BBR's share, 1 BDP",
                "1 BDP",
                "share_pct",
                50,
                "near fair",
                since=0.5,
                check="BBR's share at 1 BDP",
                check_to=lambda share: 100 * share,
            ),
            _number("BBR's share, 16 BDP", "16 BDP", "share_pct", None, "CUBIC takes more", since=0.5),
            _number("BBR's share in the last 10 s, 16 BDP", "16 BDP", "share_pct", since=0.833),
        ),
        see="One BBR and one CUBIC flow share a link: with a buffer of one BDP BBR has almost all of "
        "it, which is not what the paper says; with 16 BDP CUBIC has more on average over the "
        "minute, as it says, but the shares drift, and BBR has nearly a half in the end.",
        why="In a small buffer BBR's two BDP in flight keep it full and CUBIC loses; in a large one "
        "CUBIC's queue may grow far beyond the two BDP at which BBR's window ends.",
        attempt='Set the buffer to `"2 bdp"`, where BBR has more than a half of the second half of the '
        'minute, then to `"4 bdp"` and `"8 bdp"`: there its average is near two fifths or a half, '
        "but the shares drift all the time.",
        note="The first two numbers are averages over the second half of the minute.",
        holds=lambda n: (
            n["BBR's share, 1 BDP"] > 80
            and n["BBR's share, 16 BDP"] < 40 < n["BBR's share in the last 10 s, 16 BDP"] < 50
        ),
        kernel=("1 BDP", "16 BDP"),
    ),
    Entry(
        claim="imc19.fig5a",
        runs={
            name: {"controller": name, "rate_mbps": 500, "rtt_ms": 200, "seconds": 60}
            for name in ("bbr1", "cubic")
        },
        draw="goodput_mbps",
        numbers=(
            _number("Goodput, bbr1", "bbr1", "goodput_mbps", 386.0, "386.0"),
            _number("Goodput, cubic", "cubic", "goodput_mbps", 179.6, "179.6"),
        ),
        see=("On a long, fast path with a buffer of only 100 KB BBR has more than twice CUBIC's goodput."),
        why="The buffer is less than a hundredth of the BDP of 12.5 MB, so CUBIC loses packets as "
        "soon as it fills the link, cuts its window, and needs many seconds to come back; BBR "
        "bears the losses.",
        attempt='Set the buffer to `"12.5 MB"`, one BDP: CUBIC then keeps the link busy through its cuts.',
        holds=lambda n: n["Goodput, bbr1"] > 2 * n["Goodput, cubic"],
    ),
    Entry(
        claim="imc19.retx",
        runs={
            name: {"controller": name, "buffer_kb": 100, "setup": "Linux 4.15"} for name in ("bbr1", "cubic")
        },
        draw="retransmits",
        numbers=(
            _number("Retransmissions, bbr1", "bbr1", "resent", 235_798, "235798"),
            _number("Retransmissions, cubic", "cubic", "resent", 1_649, "1649"),
        ),
        see="In a buffer of 100 KB BBR retransmits a hundred times as many packets as CUBIC.",
        why="BBR keeps up to two BDP in flight, 3.1 MB here, which the path and this buffer do not "
        "hold, and does not take losses for a sign to slow down.",
        attempt='Set the buffer to `"10 MB"`: BBR\'s window ends before that is full, and it retransmits '
        "nothing.",
        holds=lambda n: n["Retransmissions, bbr1"] > 50 * n["Retransmissions, cubic"] > 0,
    ),
    Entry(
        claim="imc19.fig7a",
        runs={
            f"{loss} % loss": {**BBR, "loss_pct": loss, "seconds": 30, "setup": "Mininet"}
            for loss in (10, 19)
        },
        draw="goodput_mbps",
        numbers=(
            _number("Goodput at 10 % loss", "10 % loss", "goodput_mbps", 86.9, "before the cliff"),
            _number("Goodput at 19 % loss", "19 % loss", "goodput_mbps", None, "the cliff is at about 20 %"),
        ),
        see="BBR keeps most of the link at 10 % loss, and a tenth of it at 19 %: there is a cliff "
        "between them.",
        why="Its probe sends a quarter more; if more than a fifth of that is lost, no probe delivers "
        "more than before, so a rate that was once measured too low is never raised again.",
        attempt='Set the controller to `"bbr1:probe_gain=1.1"` and the loss to `"10 %"`: the cliff moves '
        "with the gain to about 9 %.",
        holds=lambda n: n["Goodput at 10 % loss"] > 70 and n["Goodput at 19 % loss"] < 20,
        kernel=("10 % loss", "19 % loss"),
    ),
    Entry(
        claim="imc19.fig8a",
        runs={
            "100 KB": {"buffer_bytes": 100_000, "seconds": 30, "setup": "Mininet"},
            "10 MB": {"buffer_bytes": 10_000_000, "seconds": 30, "setup": "Mininet"},
        },
        draw="goodput_mbps",
        numbers=(
            _number("BBR's share, 100 KB", "100 KB", "share_pct", None, "94 % at 10 KB"),
            _number(
                "BBR's share, 10 MB",
                "10 MB",
                "share_pct",
                25,
                "CUBIC three times",
                check="CUBIC's goodput divided by BBR's at 10 MB",
                check_to=lambda times: 100 / (1 + times),
            ),
        ),
        see="One BBR and one CUBIC flow share 1 Gbit/s: with 100 KB of buffer nearly all is BBR's, "
        "with 10 MB two thirds are CUBIC's.",
        why="The small buffer drops CUBIC's packets all the time, and each drop halts it; in the "
        "large one its queue takes the place that BBR, bound to two BDP, cannot take.",
        attempt='Set the buffer to `"10 KB"`: the router drops most bursts whole, and 90 % of the link '
        "is idle.",
        holds=lambda n: n["BBR's share, 100 KB"] > 85 and 25 < n["BBR's share, 10 MB"] < 40,
    ),
    Entry(
        claim="rebbr.fig4",
        runs={f"cubic, {loss} %": {**CUBIC, "loss_pct": loss, "seconds": 30} for loss in (0.001, 0.01, 0.1)}
        | {"bbr1, 15 %": {**BBR, "loss_pct": 15, "seconds": 30}},
        draw="goodput_mbps",
        numbers=(
            _number("CUBIC's goodput, 0.001 %", "cubic, 0.001 %", "goodput_mbps", None, "acceptable"),
            _number("CUBIC's goodput, 0.01 %", "cubic, 0.01 %", "goodput_mbps", None, "deteriorates"),
            _number("CUBIC's goodput, 0.1 %", "cubic, 0.1 %", "goodput_mbps", None, "poor"),
            _number("BBR's goodput, 15 %", "bbr1, 15 %", "goodput_mbps", None, "a large part"),
        ),
        see="CUBIC loses more than half of its goodput when the loss rises from 0.001 to 0.01 %, and "
        "again to 0.1 %, while BBR has most of the link at 15 %.",
        why="At 0.01 % there are 10 000 packets between two losses, at 0.1 % a thousand; after each "
        "loss CUBIC needs more than that to grow back to the 833 packets that fill this path.",
        attempt="Set the controller to `vegas` or `reno`, which give way to random loss in the same manner.",
        holds=lambda n: (
            n["CUBIC's goodput, 0.01 %"] < 0.5 * n["CUBIC's goodput, 0.001 %"]
            and n["CUBIC's goodput, 0.1 %"] < 0.5 * n["CUBIC's goodput, 0.01 %"]
            and n["BBR's goodput, 15 %"] > 50
        ),
        kernel=("cubic, 0.001 %", "cubic, 0.01 %", "cubic, 0.1 %", "bbr1, 15 %"),
    ),
    Entry(
        claim="ccwg25.queueN",
        runs={
            f"{count} flow{'s' if count > 1 else ''}": {
                **BBR3,
                "flows": count,
                "buffer_bdp": 8,
                "seconds": 30,
            }
            for count in (1, 2, 8)
        },
        draw="queue_ms",
        numbers=(
            _number("Median queue, 1 flow", "1 flow", "queue_ms", None, "small", since=0.4),
            _number("Median queue, 2 flows", "2 flows", "queue_ms", None, "about one RTT", since=0.4),
            _number("Median queue, 8 flows", "8 flows", "queue_ms", None, "about one RTT", since=0.4),
        ),
        see="One BBRv3 flow leaves the queue empty but for its probes; two flows keep a queue of more"
        " than a round trip, and eight about the same.",
        why="Flows that share a link measure too high a rate when another one is slow for a moment, "
        "and the sum of their estimates is above the link's rate; only the window, about two BDP,"
        " ends the queue.",
        attempt='Set the buffer to `"0.8 bdp"`: losses then keep the queue of several flows shorter.',
        holds=lambda n: (
            n["Median queue, 1 flow"] < 5
            and n["Median queue, 2 flows"] > 50
            and n["Median queue, 8 flows"] > 50
        ),
    ),
    Entry(
        claim="ccwg25.cause2",
        runs={
            "no jitter": {**BBR3, "jitter_us": 0, "seconds": 30},
            "2 ms": {**BBR3, "jitter_us": 2000, "seconds": 30},
        },
        draw="rtt_ms",
        numbers=(
            _number("Median queue, no jitter", "no jitter", "queue_ms", None, "none", since=0.3),
            _number("Median queue, jitter of 2 ms", "2 ms", "queue_ms", None, "a queue", since=0.3),
        ),
        see="Two milliseconds of jitter, a twenty-fifth of the RTT, give a single BBRv3 flow a "
        "standing queue of about 20 ms.",
        why="Jitter lets some samples of the delivery rate be too high, and the maximum filter keeps "
        "exactly those; a flow that paces by them sends more than the link carries.",
        attempt='Set the controller to `"bbr3:pacing_margin_percent=5"`, which paces further below the '
        "estimate: the queue is gone.",
        holds=lambda n: n["Median queue, no jitter"] < 2 and n["Median queue, jitter of 2 ms"] > 15,
    ),
    Entry(
        claim="ccwg25.cubic",
        runs={f"{size:g} BDP": {**BBR3, "buffer_bdp": size, "seconds": 60} for size in (0.8, 16)},
        draw="goodput_mbps",
        numbers=(
            _number("BBRv3's share, 0.8 BDP", "0.8 BDP", "share_pct", None, "more than CUBIC", since=0.3),
            _number("BBRv3's share, 16 BDP", "16 BDP", "share_pct", None, "less than CUBIC", since=0.3),
        ),
        see="Beside CUBIC, BBRv3 has about three quarters of the link with a small buffer, and a "
        "quarter with a large one.",
        why="CUBIC cuts its window at each loss, and a small buffer gives it many; in a large one it "
        "loses seldom and its queue grows beyond the window that BBRv3 allows itself.",
        attempt='Set the buffer to `"2 bdp"`, where both have about a half.',
        holds=lambda n: n["BBRv3's share, 0.8 BDP"] > 70 and n["BBRv3's share, 16 BDP"] < 30,
    ),
    Entry(
        claim="ware19.share",
        runs={
            f"{count} Reno": {"loss": "reno", "buffer_bdp": 32, "others": count, "seconds": 300}
            for count in (1, 16)
        },
        draw="goodput_mbps",
        numbers=(
            _number(
                "BBR's share beside 1 Reno flow", "1 Reno", "share_pct", None, "about the same", since=0.4
            ),
            _number(
                "BBR's share beside 16 Reno flows", "16 Reno", "share_pct", None, "about the same", since=0.4
            ),
        ),
        see="One BBR flow takes about two fifths of the link from one Reno flow, and nearly as much "
        "from sixteen.",
        why="BBR's part is its window, two BDP by its own measurement, over all that the buffer "
        "holds; how many flows make up the rest does not enter into it.",
        attempt='Set the buffer to `"8 bdp"`: BBR\'s window is then a larger part of it, and both shares '
        "rise to nearly a half.",
        holds=lambda n: (
            abs(n["BBR's share beside 1 Reno flow"] - n["BBR's share beside 16 Reno flows"]) < 12
            and n["BBR's share beside 16 Reno flows"] > 30
        ),
    ),
    Entry(
        claim="rfc7928.friendly",
        runs={name: {"discipline": name, "rtt_ms": 100, "seconds": 30} for name in ("fifo", "codel", "pie")},
        draw="queue_ms",
        numbers=(
            _number("Median queue, FIFO", "fifo", "queue_ms", since=0.3),
            _number("Median queue, CoDel", "codel", "queue_ms", since=0.3),
            _number("Median queue, PIE", "pie", "queue_ms", since=0.3),
            _number("Goodput, FIFO", "fifo", "goodput_mbps", since=0.3),
            _number("Goodput, CoDel", "codel", "goodput_mbps", since=0.3),
            _number("Goodput, PIE", "pie", "goodput_mbps", since=0.3),
        ),
        see="Behind a FIFO one Reno flow keeps a queue of more than half a round trip; CoDel and PIE "
        "keep it within a few milliseconds, and the flow loses a part of its goodput.",
        why="They drop a packet as soon as the queue has stood for some time, so the flow halves its "
        "window before the buffer is full, and half a window does not fill a path of 100 ms "
        "without a queue.",
        attempt='Set `rtt` to `"20 ms"`: CoDel then takes less of the goodput, because the queue that it '
        "allows is a larger part of the BDP.",
        holds=lambda n: (
            n["Median queue, FIFO"] > 50
            and n["Median queue, CoDel"] < 6
            and n["Median queue, PIE"] < 16
            and n["Goodput, CoDel"] < n["Goodput, PIE"] < n["Goodput, FIFO"]
        ),
    ),
    Entry(
        claim="rfc7928.unresponsive",
        runs={
            name: {"discipline": name, "scenario": "mixed", "seconds": 30}
            for name in ("fifo", "codel", "fq_codel")
        },
        draw="goodput_mbps",
        numbers=tuple(
            _number(f"Reno's goodput, {name}", name, "goodput_mbps", flow=1, since=0.3)
            for name in ("fifo", "codel", "fq_codel")
        ),
        see="Beside a flow that sends 7 of the link's 10 Mbit/s whatever happens, Reno gets what is "
        "left with a FIFO or CoDel, and over a quarter more with FQ-CoDel.",
        why="FIFO and CoDel drop whoever's packet is at hand, and only Reno gives way; FQ-CoDel has a"
        " queue for each flow and serves them in turn, so the deaf flow can use no more than Reno"
        " leaves.",
        note="Goodput counts bytes that arrive in order: while a lost packet is missing the line falls, "
        "and when it has arrived the line jumps, so single points, as the last one in the legend, "
        "are no rates.",
        attempt='Set the deaf flow to `"fixed:rate=12"`: with FIFO and CoDel Reno has next to nothing, '
        "with FQ-CoDel as much as before.",
        holds=lambda n: (
            n["Reno's goodput, fq_codel"] > 1.25 * max(n["Reno's goodput, fifo"], n["Reno's goodput, codel"])
        ),
    ),
    Entry(
        claim="icnp17.queue",
        runs={f"{count}": {"flows": count, "rate_mbps": 100, "seconds": 30} for count in (1, 2, 6)},
        draw="queue_ms",
        numbers=(
            _number("Median queue, 1 flow", "1", "queue_ms", None, "hardly any", since=0.34),
            _number("Median queue, 2 flows", "2", "queue_ms", (20, 30), "1 to 1.5 BDP", since=0.34),
            _number("Median queue, 6 flows", "6", "queue_ms", (20, 30), "1 to 1.5 BDP", since=0.34),
        ),
        see="One BBRv1 flow keeps its queue near zero; as soon as there are two, a queue of more than"
        " one round trip (20 ms) stands at all times.",
        why="Each flow takes the highest rate that it ever had within ten rounds for its own, so all "
        "together they send too much until their windows, two BDP in sum, stop them.",
        attempt='Set the controller to `"bbr1:cwnd_gain=1.5"`: the queue of two flows is then half as long.',
        holds=lambda n: (
            n["Median queue, 1 flow"] < 5
            and n["Median queue, 2 flows"] > 20
            and n["Median queue, 6 flows"] > 20
        ),
        kernel=("1", "2", "6"),
    ),
    Entry(
        claim="icnp17.loss",
        runs={
            name: {"controller": name, "flows": 6, "rate_mbps": 100, "seconds": 30}
            for name in ("bbr1", "cubic")
        },
        draw="retransmits",
        numbers=(
            _number("Retransmitted, bbr1", "bbr1", "loss_pct", None, "massive packet loss"),
            _number("Retransmitted, cubic", "cubic", "loss_pct"),
        ),
        see="In a buffer of 0.8 BDP six BBRv1 flows lose more than one packet in ten all the time; "
        "six CUBIC flows lose one in several hundred.",
        why="The queue that several BBRv1 flows keep is one to one and a half BDP, which is more than"
        " this buffer holds, and BBRv1 has no answer to losses.",
        attempt='Set the controller to `"bbr3"`, which limits its window after losses.',
        holds=lambda n: n["Retransmitted, bbr1"] > 8 and n["Retransmitted, cubic"] < 1,
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="icnp17.rttfair",
        runs={
            name: {"controller": name, "long_ms": 160, "rate_mbps": 100, "seconds": 30}
            for name in ("bbr1", "cubic")
        },
        draw="goodput_mbps",
        numbers=(
            _number(
                "Share of the long RTT, bbr1",
                "bbr1",
                "share_pct",
                None,
                "more than a half",
                flow=1,
                since=0.34,
            ),
            _number(
                "Share of the long RTT, cubic",
                "cubic",
                "share_pct",
                None,
                "less than a half",
                flow=1,
                since=0.34,
            ),
        ),
        see="Of two BBRv1 flows, the one with an RTT of 160 ms takes nearly everything from the one "
        "with 20 ms; with CUBIC it is the other way round.",
        why="Each BBRv1 flow may have two of its own BDP in flight, and with eight times the RTT that"
        " is eight times as much in the same queue.",
        attempt='Set the long `rtt` to `"40 ms"`: even twice the RTT gives BBRv1 more than four fifths.',
        holds=lambda n: n["Share of the long RTT, bbr1"] > 85 and n["Share of the long RTT, cubic"] < 45,
        kernel=("bbr1", "cubic"),
    ),
    Entry(
        claim="sigcomm22.bbr",
        runs={
            "bbr1": {**BBR, "jitter_ms": 4, "seconds": 60},
            "bbr3": {**BBR3, "jitter_ms": 4, "seconds": 60},
        },
        draw="goodput_mbps",
        numbers=(
            _number("Goodput of 40 ms, bbr1", "bbr1", "goodput_mbps", 8.3, "8.3"),
            _number("Goodput of 80 ms, bbr1", "bbr1", "goodput_mbps", 107, "107", flow=1),
            _number("Goodput of 40 ms, bbr3", "bbr3", "goodput_mbps"),
            _number("Goodput of 80 ms, bbr3", "bbr3", "goodput_mbps", flow=1),
        ),
        see="Two BBRv1 flows share 120 Mbit/s with jitter: the one with 40 ms starves beside the one "
        "with 80 ms; two BBRv3 flows are nearly even.",
        why="Jitter makes both overestimate the rate, so only their windows limit them, and a window "
        "of two BDP is larger for the longer RTT; here, the bias for the longer RTT alone has "
        "most of the effect.",
        attempt="Remove the line `jitter`: the starved flow gains little.",
        holds=lambda n: (
            n["Goodput of 40 ms, bbr1"] < 0.2 * n["Goodput of 80 ms, bbr1"]
            and 0.75 < n["Goodput of 40 ms, bbr3"] / n["Goodput of 80 ms, bbr3"] < 1.33
        ),
        kernel=("bbr1",),
    ),
    Entry(
        claim="anrw24.ecn",
        runs={
            name: {"case": case, "queue": "step", "rtt_ms": 40}
            for name, case in (("marked", "all, BBR ignores"), ("not marked", "none"))
        },
        draw="goodput_mbps",
        numbers=(
            _number("BBRv3's share, with ECN", "marked", "share_pct", 99, "above about 99 %", since=0.5),
            _number("BBRv3's share, without ECN", "not marked", "share_pct", since=0.5),
        ),
        see="Behind a queue that marks packets, one BBRv3 flow takes nearly the whole link from five "
        "CUBIC flows; where the queue has to drop them, it gets about a quarter.",
        why="Unless its route is marked `ecn_low`, Google's BBRv3 takes no notice of marks, while "
        "CUBIC slows down for each; drops are noticed by both.",
        attempt='Set `queue` to `"codel"`, another discipline that marks: the outcome is nearly the same.',
        holds=lambda n: n["BBRv3's share, with ECN"] > 95 and n["BBRv3's share, without ECN"] < 40,
    ),
    Entry(
        claim="pam24.rttfair",
        runs={
            f"{first} first": {**BBR3, "first": first, "buffer_bdp": 2, "seconds": 120}
            for first in ("short", "long")
        },
        draw="goodput_mbps",
        numbers=(
            _number(
                "Share of 100 ms, 20 ms first",
                "short first",
                "share_pct",
                None,
                "more than a half",
                flow=1,
                since=0.5,
            ),
            _number(
                "Share of 100 ms, 100 ms first",
                "long first",
                "share_pct",
                None,
                "more than a half",
                flow=1,
                since=0.5,
            ),
        ),
        see="Of two BBRv3 flows with 20 and 100 ms the slower path's has about nine tenths of the "
        "link, whichever starts first.",
        why="As with BBRv1, each may have about two of its own BDP in flight, and what counts in a "
        "common queue is how much of it is whose.",
        attempt='Set the second flow\'s `rtt` to `"40 ms"`: twice the RTT still gives more than three '
        "quarters.",
        holds=lambda n: all(one > 80 for one in n.values()),
    ),
)
