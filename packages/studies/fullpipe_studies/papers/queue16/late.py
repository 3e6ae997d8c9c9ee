"""A late starter that meets a queue.

Question: does a flow that starts late take another one's queue for the path, and more than its share?
Method: two BBR flows on figure 6's path, 100 Mbit/s and 10 ms with 8 BDP of buffer, together or 3 s apart:
then the later one's Startup meets the packets that the first keeps in flight, and never sees an empty path.
Its least RTT is read before the first ProbeRTT; shares are those of the 5 s before it, and of 5 s half a
minute after the start.
Prediction: late, the RTT is too high and the later flow gets more, until a ProbeRTT. Together, neither.

The time, and that a tenth of the RTT is an overestimate, are ours.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, sharing, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 100, 10
_LATE, _TOGETHER = "late", "together"
_STARTS_S = {_LATE: 3.0, _TOGETHER: 0.0}
# BBR's first ProbeRTT comes 10 s after a flow's first RTT.
_BEFORE_S, _AFTER_S = (4.5, 9.5), (30.0, 35.0)


def _document(controller: str, start: str, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": "8 bdp"},
        "flows": [
            {"controller": controller, "label": "first"},
            {"controller": controller, "label": "late", "start": f"{_STARTS_S[start]} s"},
        ],
        "record": {"interval": "10 ms"},
    }


def measure(trial: Trial) -> Row:
    late = take.samples(trial.run, after_s=_BEFORE_S[0], before_s=_BEFORE_S[1]).filter(
        pl.col("flow") == "late"
    )
    return {
        "min_rtt": take.ratio(take.median(late, "min_rtt_ms"), _RTT_MS),
        "share_before": sharing.share(sharing.rates(trial.run, *_BEFORE_S), "late"),
        "share_after": sharing.share(sharing.rates(trial.run, *_AFTER_S), "late"),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    long = data.runs.unpivot(
        ["share_before", "share_after"], index=["world", "controller", "start", "seed"], variable_name="when"
    ).with_columns(pl.col("when").replace({"share_before": "before ProbeRTT", "share_after": "after"}))

    def panel(part: Data) -> Any:
        ours = long.filter(pl.col("world") == part.worlds[0])
        y = alt.Y("value:Q", title="share of the second flow", scale=alt.Scale(domain=[0, 1]))
        points = (
            alt.Chart(charts.values(ours))
            .mark_point()
            .encode(
                x=alt.X("start:N", title="when the second flow starts"), xOffset="when:N", y=y, color="when:N"
            )
        )
        return points.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "A late starter", "two BBR flows, 100 Mbit/s, 10 ms; every run")


def judge(data: Data) -> list[Check]:
    def at(column: str, start: str) -> Any:
        return data.values(column, start=start)

    return [
        Statement("late starters overestimate RTT").shape(
            "the late flow's least RTT, divided by the path's",
            at("min_rtt", _LATE),
            least=1.1,
            unit="times",
        ),
        Statement("as a result of starting when other flows have (temporarily) created a queue").more(
            "the late flow's least RTT, divided by that of one that starts together",
            at("min_rtt", _LATE),
            at("min_rtt", _TOGETHER),
            least=1.1,
        ),
        Statement("unfairness can persist").shape(
            "the late flow's share before the first ProbeRTT",
            at("share_before", _LATE),
            least=0.55,
        ),
        Statement("ProbeRTT ... the key to both fairness and stability").within(
            "the late flow's share half a minute after the start",
            at("share_after", _LATE),
            least=0.4,
            most=0.6,
        ),
    ]


CLAIM = Claim(
    source="Multiple BBR flows sharing a bottleneck",
    says="This happens fairly quickly (a few ProbeBW cycles), though unfairness can persist when late "
    "starters overestimate RTT as a result of starting when other flows have (temporarily) created a queue.",
    grid=Grid(
        factors={"controller": ("bbr1",), "start": tuple(_STARTS_S), "seconds": (40,)}, document=_document
    ),
    worlds=("sim", "kernel"),
    wrong=("cubic", "fixed:cwnd=100"),
    look_at="Is the late flow's share above one half before ProbeRTT, and near it after?",
)
