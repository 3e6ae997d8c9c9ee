"""BBR and CUBIC on a shared bottleneck.

Question: what share of a bottleneck does BBR get when it competes with CUBIC, and how does it depend on the
buffer?
Method: one flow of each for 120 s (kernel: 60 s) on 100 Mbit/s, 20 ms; buffers of 0.5 to 16 BDP. Shares are
measured in the second half.
Prediction: shares are near fair at moderate buffers. CUBIC takes more than its fair share where buffers
exceed several BDP.

"More than its fair share" means more than a half; our own threshold for the number is a tenth more. Each of
the moderate buffers is checked separately. This was changed after results were seen: their mean is fair
although BBR has far more than its share in one buffer and less in another.
"""

import math
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, number, within

# Our reading of the paper's words, in BDP: "moderate" is one to four, "exceeding several" is eight or more.
_MODERATE, _SEVERAL = (1, 2, 3, 4), (8, 16)
_LEAST_FAIR, _MOST_FAIR = 0.35, 0.65
_MORE_THAN_FAIR = 0.55
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


def _measure(trial: Trial) -> Row:
    late = take.samples(trial.run, after_s=trial.factors["seconds"] / 2)
    rates = {name: take.delivered_mbps(late.filter(pl.col("flow") == name)) for name in ("bbr1", "cubic")}
    known = [rate for rate in rates.values() if rate is not None]
    total = sum(known)
    share = rates["bbr1"] / total if rates["bbr1"] is not None and len(known) == 2 and total else None
    bbr, cubic = (late.filter(pl.col("flow") == name) for name in ("bbr1", "cubic"))
    bdp_packets = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / trial.spec["mtu_bytes"]
    queue = take.link(trial.run, after_s=trial.factors["seconds"] / 2)
    least_ms = take.least(queue, "queue_delay_ms")
    return {
        "bbr_mbps": rates["bbr1"],
        "cubic_mbps": rates["cubic"],
        "bbr_share": share,
        "bbr_inflight_bdp": take.ratio(take.mean(bbr, "inflight_segments"), bdp_packets),
        "bbr_window_bdp": take.ratio(take.mean(bbr, "cwnd_segments"), bdp_packets),
        "bbr_again": take.grown(bbr, "retransmits"),
        "cubic_again": take.grown(cubic, "retransmits"),
        "least_queue_rtts": None if least_ms is None else least_ms / _RTT_MS,
    }


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["buffer_bdp"], "bbr_share").with_columns(pl.lit("bbr1").alias("controller"))

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
        fair = (
            alt.Chart(alt.InlineData(values=[{"y": 0.5}]))
            .mark_rule(strokeDash=[4, 3], color="#79818d")
            .encode(y="y:Q")
        )
        lines = charts.points(ours, x, "share of BBR", charts.controllers(ours), domain=[0, 1])
        return alt.layer(fair, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "BBR's share when it competes with CUBIC", "100 Mbit/s, 20 ms; dashed: a fair share"
    )


def _judge(data: Data) -> list[Check]:
    buffers = sorted(data.runs["buffer_bdp"].unique().to_list())

    def bbr(buffer_bdp: float) -> list[float]:
        return data.values("bbr_share", buffer_bdp=buffer_bdp)

    several = {one: bbr(one) for one in buffers if one in _SEVERAL}
    cubics = {one: [1 - share for share in shares] for one, shares in several.items()}
    small, large = bbr(buffers[0]), bbr(buffers[-1])
    return [
        *(
            within(
                f"BBR's share at {one:g} BDP",
                bbr(one),
                paper="converges toward a fair share",
                least=_LEAST_FAIR,
                most=_MOST_FAIR,
                shape=True,
            )
            for one in buffers
            if one in _MODERATE
        ),
        *(
            more(
                f"CUBIC's share divided by BBR's at {one:g} BDP (direction)",
                cubics[one],
                several[one],
                paper="more than their fair share",
            )
            for one in several
        ),
        *(
            within(
                f"CUBIC's share at {one:g} BDP",
                cubics[one],
                paper="more than their fair share",
                least=_MORE_THAN_FAIR,
            )
            for one in several
        ),
        more(
            f"BBR's share at {buffers[0]:g} BDP divided by that at {buffers[-1]:g} BDP",
            small,
            large,
            paper="Unmanaged router buffers exceeding several BDPs",
            least=1.5,
        ),
    ]


def _explain(data: Data) -> list[str]:
    said = []
    for buffer in (*_MODERATE, *_SEVERAL):
        share, inflight, window, least = (
            data.mean(column, buffer_bdp=buffer)
            for column in ("bbr_share", "bbr_inflight_bdp", "bbr_window_bdp", "least_queue_rtts")
        )
        again = [data.mean(f"{name}_again", buffer_bdp=buffer) for name in ("bbr", "cubic")]
        if math.isnan(inflight) or math.isnan(least):
            continue
        if buffer in _MODERATE and share > _MOST_FAIR:
            said.append(
                f"With a buffer of {buffer} BDP, path and buffer hold {1 + buffer} BDP, and BBR keeps "
                f"{number(inflight)} BDP in flight: its window ({number(window)} BDP) is twice its "
                f"estimate, and losses do not reduce it. BBR retransmits {number(again[0])} segments and "
                f"keeps its window; CUBIC retransmits {number(again[1])} and reduces its window each time."
            )
        if buffer in _SEVERAL and 1 - share < _MORE_THAN_FAIR:
            said.append(
                f"With {buffer} BDP the queue is never below {number(least)} round trips, not even when BBR "
                "drains its own part to measure the RTT. BBR's estimate of the path's RTT therefore includes "
                f"CUBIC's part of the queue, and BBR's window grows with it, to {number(window)} BDP: a "
                "deeper buffer does not help CUBIC to displace BBR."
            )
    return said


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
    measure=_measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="Where does the line cross a fair share?",
)
