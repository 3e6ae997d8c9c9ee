"""The testbed of the slides as a path, and the controllers that use it.

The slides show 100 Mbit/s, 50 ms and, in the backup, 1 Gbit/s, 10 ms; claims whose path they do not show
run on both. The testbed reaches 10 Gbit/s, which is added with 10 ms; there, 20 s have as many packets as
half an hour at 100 Mbit/s, and runs are shorter.

The slides name natural jitter as the cause of noise in delivery-rate samples and give no number. Here it
models interrupt moderation and scheduling in the hosts: each packet is delayed, in either direction,
independently and without reordering, by up to the longest time for which Intel's 10 Gbit/s adapters defer
an interrupt (Linux `ixgbe`, IXGBE_ITR_ADAPTIVE_MAX_USECS: 126 us). Interrupts at fixed intervals would add
no noise: samples would begin and end at these times and have the correct length. Where many packets arrive
within 125 us, as at 10 Gbit/s, each waits for a slow one before it: then the delay is longer and varies less.

The slides are about BBRv3, which they call BBR in places, and ran Google's kernel: `bbr3:profile=linux`
follows that, `bbr3` the draft. Both are judged by the same criteria, and BBRv1 where the slides say something
of it.

The kernel world's emulator carries the first path, not 1 Gbit/s, and there a run takes its wall time: it has
only the controllers that a claim judges, at 100 Mbit/s. Linux's BBRv3 is Fullpipe's, loaded as BPF. This
machine's kernel adds jitter of its own.

On two cores that do nothing else the full form of all claims takes about half an hour, the quick form one
minute. At 10 Gbit/s a simulated second takes 0.05 s.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe_studies import take
from fullpipe_studies.claim import Data, Trial

# The variants of BBRv3. Each is run and judged by itself.
VARIANTS = ("bbr3", "bbr3:profile=linux")
ABOUT = VARIANTS[0]
# The controllers of every comparison, and those of them that estimate bandwidth.
BBRS = ("bbr1", *VARIANTS)
CONTROLLERS = (*BBRS, "cubic")

BUFFERS_BDP = (0.8, 1, 2, 8)
SEEDS, QUICK_SEEDS = 30, 3
NATURAL_US = 125
SLOW, FAST, FASTEST = 100, 1000, 10_000
# The part of each grid that worlds in wall time run.
IN_WALL_TIME: dict[str, tuple[Any, ...]] = {"rate_mbps": (SLOW,), "controller": VARIANTS}
# RTT in ms for each rate in Mbit/s: the two paths of the slides, and the fastest of the testbed.
RTT_MS = {SLOW: 50, FAST: 10, FASTEST: 10}
TITLES = {
    SLOW: "100 Mbit/s, 50 ms",
    FAST: "1 Gbit/s, 10 ms",
    FASTEST: "10 Gbit/s, 10 ms",
}
# Runs at 10 Gbit/s last at most this long, unless a claim needs more.
FASTEST_S = 20
# Measurements of the steady state begin here.
STEADY_S = 5.0
_DRAWN_S = 10.0


def lasts_s(rate_mbps: int, seconds: int, fastest_s: int = FASTEST_S) -> int:
    """How long a run at that rate lasts."""
    return min(seconds, fastest_s) if rate_mbps == FASTEST else seconds


def rates_of(data: Data) -> list[int]:
    """The rates that occur in the runs."""
    there = {round(rate) for rate in data.values("rate_mbps")}
    return [rate for rate in RTT_MS if rate in there]


def document(
    flows: Sequence[dict[str, Any]],
    *,
    rate_mbps: float,
    rtt_ms: float | None = None,
    buffer: str,
    seconds: float,
    jitter_us: int = 0,
    interval_ms: float = 10,
    flow_series: bool = True,
) -> dict[str, Any]:
    """A scenario: these flows, each paced, over a bottleneck between hosts with this much jitter.

    Without an RTT, it is that of the path with this rate.
    """
    held = [{"kind": "jitter", "amplitude": f"{jitter_us} us"}] if jitter_us else []
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{rate_mbps} Mbit/s",
            "rtt": f"{RTT_MS[round(rate_mbps)] if rtt_ms is None else rtt_ms} ms",
            "buffer": buffer,
            "after": held,
            "reverse": {"after": held},
        },
        "hosts": {"pacing": True},
        "flows": list(flows),
        "record": {"interval": f"{interval_ms} ms", "flows": flow_series},
    }


def queue(trial: Trial, rtt_ms: float, after_s: float = STEADY_S) -> pl.DataFrame:
    """The bottleneck's samples from a time on; `rtts` is the queueing delay in RTTmin."""
    frame = take.link(trial.run, after_s=after_s)
    return frame.with_columns((pl.col("queue_delay_ms") / rtt_ms).alias("rtts"))


def drawn(trial: Trial) -> pl.DataFrame:
    """The queue in the last ten seconds of a run, for figures: columns time_s, rtts."""
    frame = queue(trial, RTT_MS[trial.factors["rate_mbps"]], 0.0).select("time_s", "rtts")
    return frame.filter(pl.col("time_s") >= pl.col("time_s").max() - _DRAWN_S)


def named(data: Data) -> Data:
    """The data with a factor `path`: rate and buffer, as "100 0.8"."""
    buffer = pl.col("buffer_bdp").map_elements("{:g}".format, pl.String)
    return Data(data.runs.with_columns(pl.format("{} {}", "rate_mbps", buffer).alias("path")), data.series)


def part(frame: pl.DataFrame, of: pl.Expr) -> float | None:
    """The share of samples that meet a condition; None where there are no samples."""
    return frame.select(of.cast(pl.Float64).mean()).item() if frame.height else None
