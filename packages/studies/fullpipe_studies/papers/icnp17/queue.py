"""Several BBR flows keep a standing queue.

Question: what queue do 1 to 8 BBRv1 flows keep in a deep buffer?
Method: they start together and run for 60 s on 1 Gbit/s (kernel: 100 Mbit/s), 20 ms with a buffer of 8
BDP. The queueing delay after 20 s, in round-trip times of the empty path, which is the queue in BDP.
Prediction: hardly any with one flow, 1 to 1.5 BDP with several.

"Several" is 2 to 8 here, and every number of them is judged by the median of its queue; the mean over all
numbers must lie within the paper's limits. In shape, half of the lower limit to a third above the upper
one, and four times the queue of one flow. These limits are ours.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.icnp17 import _path

_FLOWS = (1, 2, 4, 6, 8)
_LEAST, _MOST = 1.0, 1.5
_SAID = Statement("1 to 1.5 BDP with several flows")


def _document(flows: int, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": "bbr1", "count": flows}],
        rate_mbps=rate_mbps,
        buffer_bdp=_path.DEEP_BDP,
        seconds=seconds,
    )


def measure(trial: Trial) -> Row:
    after_s = _path.after(trial.factors["seconds"])
    queue = take.link(trial.run, after_s=after_s).with_columns(pl.col("queue_delay_ms") / _path.RTT_MS)
    flows = take.samples(trial.run, after_s=after_s)
    bdp_packets = take.bdp_bytes(trial.factors["rate_mbps"], _path.RTT_MS) / trial.spec["mtu_bytes"]
    flying = flows.group_by("time_s").agg(pl.col("inflight_segments", "cwnd_segments").sum())
    estimates = flows.group_by("time_s").agg(pl.col("bandwidth_bps").sum())
    return {
        "queue_bdp": take.median(queue, "queue_delay_ms"),
        "p95_bdp": take.quantile(queue, "queue_delay_ms", 0.95),
        "inflight_bdp": take.ratio(take.median(flying, "inflight_segments"), bdp_packets),
        "window_bdp": take.ratio(take.median(flying, "cwnd_segments"), bdp_packets),
        "estimates": take.ratio(
            take.median(estimates, "bandwidth_bps"),
            trial.factors["rate_mbps"] * 1e6 * take.payload_share(trial),
        ),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["flows"], "queue_bdp").with_columns(pl.lit("bbr1").alias("controller"))

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("flows:Q", title="flows")
        points = charts.points(ours, x, "median queue, BDP", charts.controllers(ours))
        limits = alt.layer(layers.level(_LEAST), layers.level(_MOST))
        return alt.layer(limits, points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "The queue that BBRv1 flows keep", "20 ms, buffer of 8 BDP; dashed: 1 and 1.5 BDP"
    )


def judge(data: Data) -> list[Check]:
    counts = sorted(data.runs["flows"].unique().to_list())
    several = [count for count in counts if count > 1]
    alone = data.values("queue_bdp", flows=1)
    queues = [data.values("queue_bdp", flows=count) for count in several]
    together = data.values("queue_bdp", flows=tuple(several))
    checks = [
        Statement("the intended behavior").within(
            "Queue of a single flow", alone, least=0, most=0.25, unit="BDP"
        )
    ]
    for count, queue in zip(several, queues, strict=True):
        checks += [
            _SAID.shape(
                f"Queue of {count} flows (direction)", queue, least=_LEAST / 2, most=_MOST * 4 / 3, unit="BDP"
            ),
            _SAID.more(f"Queue of {count} flows divided by that of one", queue, alone, least=4),
        ]
    checks.append(
        _SAID.within("Queue of several flows, on average", together, least=_LEAST, most=_MOST, unit="BDP")
    )
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for count in sorted(data.runs["flows"].unique().to_list()):
        queue, window, estimates = data.means("queue_bdp", "window_bdp", "estimates", flows=count)
        facts.append(
            f"{count} flows: {number(queue, 2)} BDP wait. Their estimates add up to {number(estimates, 3)} "
            f"times the link's rate, their windows to {number(window, 2)} BDP."
        )
    return facts


CLAIM = Claim(
    source="multiple flows, large buffer",
    says=_path.SAID,
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"flows": _FLOWS, "rate_mbps": (_path.RATE_MBPS,), "seconds": (60,)},
        quick={"flows": (1, 2, 6), "rate_mbps": (100,)},
        tiny={"flows": (1, 2), "seconds": (6,)},
        in_wall_time={"flows": (1, 2, 6), "rate_mbps": (_path.SLOW_MBPS,)},
        document=_document,
    ),
    look_at="Are the points of two and more flows between the dashed lines?",
)
