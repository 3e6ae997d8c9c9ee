"""BBR and CUBIC on a shared bottleneck.

Question: what share of a bottleneck does BBR get when it competes with CUBIC, and how does it depend on the
buffer?
Method: one flow of each for 120 s (kernel: 60 s) on 100 Mbit/s, 20 ms; buffers of 0.5 to 16 BDP. Shares are
measured in the second half, and over time in twelfths of the run.
Prediction: BBR converges toward a fair share unless buffers exceed several BDP; there CUBIC takes more than
its fair share.

The paper gives no number. "Toward a fair share" is read as nearer to a half than to all or nothing (0.25 to
0.75), "exceeding several" as eight BDP or more, and everything up to four as not exceeding them. What goes
beyond, that a share is near a half (0.35 to 0.65), and that "more" is a tenth more, are expectations of our
own. Each buffer is checked separately, because the mean over buffers is fair although BBR has far more than
its share in one buffer and less in another.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number, own
from fullpipe_studies.later import alt

# Our reading of the paper's words, in BDP: up to four do not exceed several, eight or more do.
_UP_TO, _SEVERAL = 4, (8, 16)
_TOWARD = (0.25, 0.75)
_NEAR = (0.35, 0.65)
_MORE_THAN_FAIR = 0.55
_PARTS = 12
_RATE_MBPS, _RTT_MS = 100, 20


def _document(buffer_bdp: float, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_RATE_MBPS} Mbit/s",
            "rtt": f"{_RTT_MS} ms",
            "buffer": f"{buffer_bdp} bdp",
        },
        "flows": [{"controller": "bbr1"}, {"controller": "cubic"}],
        "record": {"interval": "100 ms"},
    }


def _share(frame: pl.DataFrame) -> float | None:
    """BBR's share of what both deliver in these samples."""
    rates = [take.delivered_mbps(frame.filter(pl.col("flow") == name)) for name in ("bbr1", "cubic")]
    known = [rate for rate in rates if rate is not None]
    total = sum(known)
    return known[0] / total if len(known) == 2 and total else None


def measure(trial: Trial) -> Row:
    seconds = trial.factors["seconds"]
    late = take.samples(trial.run, after_s=seconds / 2)
    parts = [seconds * part / _PARTS for part in range(_PARTS + 1)]
    over_time = {
        f"share_{number}": _share(take.samples(trial.run, after_s=begin_s, before_s=end_s))
        for number, (begin_s, end_s) in enumerate(pairwise(parts), start=1)
    }
    bbr, cubic = (late.filter(pl.col("flow") == name) for name in ("bbr1", "cubic"))
    bdp_packets = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / trial.spec["mtu_bytes"]
    queue = take.link(trial.run, after_s=trial.factors["seconds"] / 2)
    least_ms = take.least(queue, "queue_delay_ms")
    return {
        "bbr_share": _share(late),
        **over_time,
        "bbr_inflight_bdp": take.ratio(take.mean(bbr, "inflight_segments"), bdp_packets),
        "bbr_window_bdp": take.ratio(take.mean(bbr, "cwnd_segments"), bdp_packets),
        "bbr_again": take.grown(bbr, "retransmits"),
        "cubic_again": take.grown(cubic, "retransmits"),
        "least_queue_rtts": None if least_ms is None else least_ms / _RTT_MS,
    }


def _over_time(runs: pl.DataFrame) -> pl.DataFrame:
    """Medians over runs of BBR's share in each part of the run: columns buffer_bdp, time_s, share."""
    names = [name for name in (f"share_{part}" for part in range(1, _PARTS + 1)) if name in runs.columns]
    middles = runs.group_by("buffer_bdp", "seconds", maintain_order=True).agg(pl.col(names).median())
    long = middles.unpivot(names, index=["buffer_bdp", "seconds"], variable_name="part", value_name="share")
    part = pl.col("part").str.strip_prefix("share_").cast(pl.Int64)
    return long.with_columns(((part - 0.5) * pl.col("seconds") / _PARTS).alias("time_s")).sort(
        "buffer_bdp", "time_s"
    )


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        runs = part.runs.with_columns(pl.lit("bbr1").alias("controller"))
        x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
        shares = charts.every_run(
            runs, x, "bbr_share", "share of BBR, second half", ["controller", "buffer_bdp"], domain=[0, 1]
        )
        lines = alt.Chart(charts.values(_over_time(runs).drop_nulls("share")))
        over_time = lines.mark_line(strokeWidth=1.6).encode(
            x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(zero=True, nice=False)),
            y=alt.Y("share:Q", title="share of BBR", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "buffer_bdp:O",
                scale=alt.Scale(scheme="viridis"),
                legend=alt.Legend(orient="bottom", title="buffer, BDP", **charts.STROKES),
            ),
        )
        return alt.vconcat(
            *(
                alt.layer(layers.level(0.5), one).properties(width=charts.WIDTH, height=height)
                for one, height in ((shares, charts.HEIGHT), (over_time, 180))
            ),
            spacing=20,
        ).resolve_scale(color="independent")

    return charts.worlds(
        data,
        panel,
        "BBR's share when it competes with CUBIC",
        [
            "100 Mbit/s, 20 ms; dashed: a fair share",
            "above: every run, and a line through medians; below: medians over time",
        ],
    )


def judge(data: Data) -> list[Check]:
    buffers = sorted(data.runs["buffer_bdp"].unique().to_list())

    def bbr(buffer_bdp: float) -> Sequence[float]:
        return data.values("bbr_share", buffer_bdp=buffer_bdp)

    def cubic(buffer_bdp: float) -> list[float]:
        return [1 - share for share in bbr(buffer_bdp)]

    shallow = [one for one in buffers if one <= _UP_TO]
    deep = [one for one in buffers if one in _SEVERAL]
    fair = Statement("converges toward a fair share")
    more_than = Statement("more than their fair share")
    return [
        *(
            fair.shape(f"BBR's share at {one:g} BDP", bbr(one), least=_TOWARD[0], most=_TOWARD[1])
            for one in shallow
        ),
        *(
            more_than.more(f"CUBIC's share divided by BBR's at {one:g} BDP (direction)", cubic(one), bbr(one))
            for one in deep
        ),
        *own(
            *(
                fair.within(
                    f"BBR's share at {one:g} BDP: near a half", bbr(one), least=_NEAR[0], most=_NEAR[1]
                )
                for one in shallow
            ),
            *(
                more_than.within(
                    f"CUBIC's share at {one:g} BDP: a tenth more than a half",
                    cubic(one),
                    least=_MORE_THAN_FAIR,
                )
                for one in deep
            ),
        ),
    ]


def explain(data: Data) -> list[str]:
    facts = []
    for buffer in sorted({*data.values("buffer_bdp")}):
        share, inflight, window, least = data.means(
            "bbr_share", "bbr_inflight_bdp", "bbr_window_bdp", "least_queue_rtts", buffer_bdp=buffer
        )
        again = [data.mean(f"{name}_again", buffer_bdp=buffer) for name in ("bbr", "cubic")]
        if math.isnan(inflight) or math.isnan(least):
            continue
        if buffer <= _UP_TO and share > _NEAR[1]:
            facts.append(
                f"With a buffer of {buffer:g} BDP, path and buffer hold {1 + buffer:g} BDP, and BBR keeps "
                f"{number(inflight)} BDP in flight: its window ({number(window)} BDP) is twice its "
                f"estimate, and losses do not reduce it. BBR retransmits {number(again[0])} segments and "
                f"keeps its window; CUBIC retransmits {number(again[1])} and reduces its window each time."
            )
        if buffer in _SEVERAL and 1 - share < _MORE_THAN_FAIR:
            facts.append(
                f"With {buffer:g} BDP the queue is never below {number(least)} round trips, not even when "
                "BBR drains its own part to measure the RTT. BBR's estimate of the path's RTT therefore "
                f"includes CUBIC's part of the queue, and BBR's window grows with it, to {number(window)} "
                "BDP: a deeper buffer does not help CUBIC to displace BBR."
            )
    return facts


CLAIM = Claim(
    source="Competition with Loss-Based Congestion Control",
    says="BBR converges toward a fair share of the bottleneck bandwidth whether competing with other BBR "
    "flows or with loss-based congestion control. Unmanaged router buffers exceeding several BDPs, "
    "however, cause long-lived loss-based competitors to bloat the queue and grab more than their fair "
    "share.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"buffer_bdp": (0.5, 1, 2, 3, 4, 6, 8, 16), "seconds": (120,)},
        quick={"buffer_bdp": (0.5, 1, 2, 4, 8, 16)},
        tiny={"buffer_bdp": (1, 8), "seconds": (4,)},
        # Half a minute is too short: with 8 BDP CUBIC's share then still depends on its start.
        in_wall_time={"buffer_bdp": (0.5, 1, 2, 3, 4, 8, 16), "seconds": (60,)},
        document=_document,
    ),
    wrong=("vegas", "cubic", "bbr1:cwnd_gain=3"),
    look_at="Where does the line cross a fair share, and do shares still move at the end?",
)
