"""A radio link whose rate follows demand.

Question: can a sender's queue be too small for a cellular network that grants a higher rate to a subscriber
whose queue shows demand?
Method: one BBR flow with peak gains of 1.05 to 1.25, or one CUBIC flow, for 60 s at an RTT of 60 ms. The
first link is a radio that reviews its grant every second. It has five rates from 10 to 50 Mbit/s and goes
one step up if a packet has waited longer than 12 ms, and one step down if the link was idle for half of the
time. The second link follows a delivery trace between 1.2 and 14.4 Mbit/s, whatever the demand. The rule
and the numbers of the radio are our own, because the paper gives none. Goodput is measured in the last
third of the run, relative to what the link can carry in that third. A gain g builds a queue of g - 1 round
trips, so flows with gains below 1 + 12/60 should get stuck.
Prediction: flows with gains of 1.15 and less stay near the rate that Startup earned; those with 1.25 climb
to the highest rate. On the delivery trace the gain makes little difference, and BBR is as fast as CUBIC.
"""

from bisect import bisect_right
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, deliveries, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_GAINS = {
    1.05: "bbr1:probe_gain=1.05",
    1.1: "bbr1:probe_gain=1.1",
    1.15: "bbr1:probe_gain=1.15",
    1.25: "bbr1",
}
_CUBIC = "cubic"
_RATES_MBPS = (10, 15, 22, 33, 50)
_RTT_MS, _DEMAND_MS = 60, 12
_RADIO, _TRACE = "radio", "trace"
_QUEUE = {_RADIO: "cellular", _TRACE: "bottleneck"}


def _document(controller: str, link: str, seconds: int) -> dict[str, Any]:
    if link == _TRACE:
        path: dict[str, Any] = {"deliveries": deliveries.file(), "rtt": f"{_RTT_MS} ms", "buffer": "3 bdp"}
    else:
        radio = {
            "kind": "cellular",
            "rates": [f"{rate} Mbit/s" for rate in _RATES_MBPS],
            "review": "1 s",
            "demand": f"{_DEMAND_MS} ms",
            "buffer": "3 bdp",
        }
        # The link behind the radio is not the bottleneck.
        path = {"rate": "1 Gbit/s", "rtt": f"{_RTT_MS} ms", "before": [radio]}
    return {
        "duration": f"{seconds} s",
        "path": path,
        "flows": [{"controller": controller}],
        # Fine enough to see the queue of a peak gain, which lasts one round trip of eight.
        "record": {"interval": "10 ms"},
    }


def _carried_mbps(begin_s: float, end_s: float) -> float:
    """The mean rate of the delivery trace between two times; it repeats after its last opportunity."""
    times = deliveries.opportunities_ms()

    def passed(until_s: float) -> int:
        rounds, rest_ms = divmod(round(1e3 * until_s), times[-1])
        return rounds * len(times) + bisect_right(times, rest_ms)

    return (passed(end_s) - passed(begin_s)) * 1500 * 8e-6 / (end_s - begin_s)


def _measure(trial: Trial) -> Row:
    last_third = trial.factors["seconds"] * 2 / 3
    frame = take.samples(trial.run, after_s=last_third)
    queue = take.link(trial.run, _QUEUE[trial.factors["link"]], after_s=last_third)
    goodput = take.delivered_mbps(frame)
    most = float(_RATES_MBPS[-1])
    if trial.factors["link"] == _TRACE:
        most = _carried_mbps(last_third, trial.factors["seconds"])
    return {
        "goodput_mbps": goodput,
        "of_most": take.ratio(goodput, most * take.payload_share(trial)),
        "rtt_ms": take.median(frame, "srtt_ms"),
        "queue_ms": take.quantile(queue, "queue_delay_ms", 0.99),
    }


def _series(trial: Trial) -> pl.DataFrame:
    return take.thinned(take.samples(trial.run), ["delivered_bytes"], step_s=1.0).with_columns(
        (pl.col("delivered_bytes").diff() * 8e-6 / pl.col("time_s").diff()).alias("goodput_mbps")
    )


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        frame = part.series.filter(pl.col("goodput_mbps").is_not_null())
        lines = alt.Chart(charts.values(frame)).mark_line(strokeWidth=1.5)
        return lines.encode(
            x=alt.X("time_s:Q", title="time, s"),
            y=alt.Y("goodput_mbps:Q", title="goodput, Mbit/s"),
            color=charts.controllers(frame),
            strokeDash=charts.dashes(frame),
            column=alt.Column("link:N", title=None),
        ).properties(width=charts.WIDTH * 3 // 4, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "Goodput by peak gain", "a radio whose rate follows demand, and a delivery trace"
    )


def _judge(data: Data) -> list[Check]:
    def of(column: str, controller: str, link: str) -> list[float]:
        return data.values(column, controller=controller, link=link)

    stuck = [gain for gain in _GAINS if gain < 1 + _DEMAND_MS / _RTT_MS]
    highest = _GAINS[1.25]
    alike = "no degradation is apparent compared with CUBIC on any network"
    return [
        *(
            within(
                f"goodput with peak gain {gain:g} on the radio, relative to its highest rate",
                of("of_most", _GAINS[gain], _RADIO),
                paper="connections getting stuck at low rates",
                most=0.5,
                shape=True,
            )
            for gain in stuck
        ),
        within(
            "goodput with peak gain 1.25 on the radio, relative to its highest rate",
            of("of_most", highest, _RADIO),
            paper="no degradation",
            least=0.9,
        ),
        more(
            "goodput with peak gain 1.25 divided by that with 1.1, on the radio",
            of("goodput_mbps", highest, _RADIO),
            of("goodput_mbps", _GAINS[1.1], _RADIO),
            paper="resulted in fewer stuck connections",
            least=2,
        ),
        *(
            more(
                f"goodput with peak gain 1.25 divided by CUBIC's, on the {link}",
                of("goodput_mbps", highest, link),
                of("goodput_mbps", _CUBIC, link),
                paper=alike,
                least=0.9,
                shape=False,
            )
            for link in (_RADIO, _TRACE)
        ),
        within(
            "goodput with peak gain 1.25 on the delivery trace, relative to its mean rate",
            of("of_most", highest, _TRACE),
            paper="no degradation on any network",
            least=0.7,
            shape=True,
        ),
    ]


def _explain(data: Data) -> list[str]:
    near = [gain for gain in _GAINS if gain < 1.25]
    built = {gain: data.mean("queue_ms", controller=_GAINS[gain], link=_RADIO) for gain in near}
    said = ", ".join(f"{queue:.1f} ms with {gain:g}" for gain, queue in built.items())
    last = near[-1]
    return [
        f"A peak gain of {last:g} should build a queue of {(last - 1) * _RTT_MS:.0f} ms. Packets leave in "
        f"bursts, which add to the queue (99th percentile of the delay: {said}). With that gain the queue "
        f"almost reaches the {_DEMAND_MS} ms that the radio takes for demand, and chance decides when a "
        "packet waits longer and earns the next step. With lower gains the flow stays stuck."
    ]


CLAIM = Claim(
    source="Mobile Cellular Adaptive Bandwidth",
    says="Early versions of BBR were tuned to create very small queues, resulting in connections getting "
    "stuck at low rates. Raising the peak ProbeBW pacing_gain to create bigger queues resulted in fewer "
    "stuck connections. With the current 1.25 peak gain, no degradation is apparent compared with CUBIC on "
    "any network.",
    worlds=("sim",),
    grid=Grid(
        factors={"controller": (*_GAINS.values(), _CUBIC), "link": (_RADIO, _TRACE), "seconds": (60,)},
        tiny={"seconds": (3,)},
        document=_document,
    ),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="Which lines stay where Startup left them, and which one climbs?",
    seeds=5,
)
