"""Application-limited samples.

Question: does an application that sends less than the path carries lower BBR's estimate of the bandwidth?
Method: one BBR flow on 20 Mbit/s, 40 ms, which writes 500 KB every 2 s, a tenth of what the link carries, or
20 KB every 100 ms, which never fill the pipe. After 30 s the link's rate doubles. The least estimate of the
second half before that is read, and the mean of the second half after.
Prediction: between large bursts the estimate stays that of the link, and then of the doubled link. Small ones
never show it: "an application ... might never send enough data to fill the pipe and observe BtlBw".

Sizes and times are ours.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _DOUBLED_S, _LASTS_S = 20, 30, 60
_SMALL, _LARGE = "20 KB", "500 KB"
_EVERY = {_SMALL: "100 ms", _LARGE: "2 s"}
_DISCARDED = Statement("Otherwise, application-limited samples are discarded")


def _document(controller: str, burst: str) -> dict[str, Any]:
    return {
        "duration": f"{_LASTS_S} s",
        "path": {
            "rate": f"{_RATE_MBPS} Mbit/s",
            "rtt": "40 ms",
            "buffer": "500 KB",
            "changes": [{"at": f"{_DOUBLED_S} s", "rate": f"{2 * _RATE_MBPS} Mbit/s"}],
        },
        "flows": [{"controller": controller, "bursts": {"size": burst, "every": _EVERY[burst]}}],
        "record": {"interval": "20 ms"},
    }


def _carried(trial: Trial) -> float:
    return _RATE_MBPS * take.payload_share(trial)


def measure(trial: Trial) -> Row:
    before = take.samples(trial.run, after_s=_DOUBLED_S / 2, before_s=_DOUBLED_S)
    after = take.samples(trial.run, after_s=(_DOUBLED_S + _LASTS_S) / 2)
    carried = _carried(trial)
    return {
        "sent": take.ratio(take.delivered_mbps(before), carried),
        "before": take.ratio(take.least(before, "bandwidth_bps"), carried * 1e6),
        "after": take.ratio(take.mean(after, "bandwidth_bps"), carried * 1e6),
    }


def series(trial: Trial) -> pl.DataFrame:
    of_link = (pl.col("bandwidth_bps") / (_carried(trial) * 1e6)).alias("of_link")
    return take.samples(trial.run).select("time_s", of_link).drop_nulls()


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("of_link:Q", title="estimate / the first link’s rate")
        lines = alt.Chart(charts.values(part.series)).mark_line(strokeWidth=1.2)
        shown = lines.encode(x=x, y=y, color=alt.Color("burst:N", legend=charts.legend()))
        return shown.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "The estimate of a flow that its application limits", "20 Mbit/s, from 30 s on 40; 40 ms"
    )


def judge(data: Data) -> list[Check]:
    def of(column: str, burst: str) -> Any:
        return data.values(column, burst=burst)

    return [
        Statement("the application runs out of data").shape(
            "goodput of large bursts, of what the link carries", of("sent", _LARGE), most=0.2
        ),
        _DISCARDED.shape(
            "least estimate with large bursts, of what the link carries", of("before", _LARGE), least=0.9
        ),
        *Statement(
            "a measured delivery rate larger than the current estimate must mean the estimate is too low"
        ).both(
            "estimate with large bursts once the rate has doubled, of what the link carried before",
            of("after", _LARGE),
            direction=(1.5, 2.5),
            least=1.8,
            most=2.2,
        ),
        Statement("might never send enough data to fill the pipe and observe BtlBw").shape(
            "estimate with small bursts, of what the link carries", of("before", _SMALL), most=0.9
        ),
    ]


CLAIM = Claim(
    source="When an ack is received",
    says="Senders can be application limited. BtlBw is a hard upper bound on the delivery rate so a measured "
    "delivery rate larger than the current BtlBw estimate must mean the estimate is too low, whether or not "
    "the sample was app-limited. Otherwise, application-limited samples are discarded.",
    grid=Grid(factors={"controller": ("bbr1",), "burst": (_LARGE, _SMALL)}, document=_document),
    worlds=("sim", "kernel"),
    wrong=("bbr1:probe_gain=1.0",),
    uncontrolled="only BBR has an estimate, and no parameter makes it count application-limited samples",
    look_at="Does the line of large bursts stay level, and double?",
)
