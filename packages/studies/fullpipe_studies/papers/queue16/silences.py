"""Silences in place of ProbeRTT.

Question: does a flow with natural silences need ProbeRTT?
Method: one BBR flow for a minute on 20 Mbit/s, 40 ms: bulk, or bursts of 500 KB every 3 s, whose first
packets find an empty path. With and without jitter of up to 0.2 ms, because the estimate is refreshed by an
RTT that is lower.
Prediction: bulk enters ProbeRTT every ten seconds, bursts do not.

Size and interval of the bursts are ours; the article names web pages, procedure calls and video chunks.
Bursts every 2 s are drawn beside and not judged: five of them last exactly as long as the estimate, which
then expires within a burst instead of a silence. They came first; the other interval was chosen after that
had been seen.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_BULK, _BURSTS, _IN_STEP = "bulk", "bursts every 3 s", "bursts every 2 s"
_TRAFFIC: dict[str, dict[str, Any]] = {
    _BULK: {},
    _BURSTS: {"bursts": {"size": "500 KB", "every": "3 s"}},
    _IN_STEP: {"bursts": {"size": "500 KB", "every": "2 s"}},
}


def _document(controller: str, traffic: str, jitter_us: int, seconds: int) -> dict[str, Any]:
    held = [{"kind": "jitter", "amplitude": f"{jitter_us} us"}] if jitter_us else []
    return {
        "duration": f"{seconds} s",
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "8 bdp", "after": held},
        "flows": [{"controller": controller, **_TRAFFIC[traffic]}],
        "record": {"interval": "10 ms"},
    }


def measure(trial: Trial) -> Row:
    phases = take.stretches(take.samples(trial.run))
    return {"probes": phases.filter(pl.col("phase") == "probe_rtt").height * 60 / trial.factors["seconds"]}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "traffic", "jitter_us"], "probes")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("jitter_us:Q", title="jitter, µs")
        lines = charts.points(ours, x, "ProbeRTTs a minute", charts.controllers(ours, "traffic"))
        return lines.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Silences in place of ProbeRTT", "one BBR flow, 20 Mbit/s, 40 ms")


def judge(data: Data) -> list[Check]:
    jitters = sorted({round(one) for one in data.values("jitter_us")})
    checks = []
    for jitter in jitters:
        with_ = f"jitter of {jitter} us" if jitter else "no jitter"

        def at(column: str, traffic: str, jitter: int = jitter) -> Any:
            return data.values(column, traffic=traffic, jitter_us=jitter)

        checks += [
            Statement("flows need to pay only if there are multiple bulk flows busy over the window").shape(
                f"ProbeRTTs a minute, bulk, {with_}", at("probes", _BULK), least=4, most=7
            ),
            *Statement("RTProp refreshes without requiring ProbeRTT").both(
                f"ProbeRTTs a minute, bursts, {with_}", at("probes", _BURSTS), direction=3, most=1
            ),
        ]
    return checks


CLAIM = Claim(
    source="appendix, Steady-state behavior",
    says="Interactive applications often have natural silences or low-rate periods within the window where "
    "the flow's rate is low enough or long enough to drain its queue in the bottleneck. Then the RTprop "
    "filter opportunistically picks up these RTprop measurements, and RTProp refreshes without requiring "
    "ProbeRTT.",
    grid=Grid(
        factors={
            "controller": ("bbr1",),
            "traffic": tuple(_TRAFFIC),
            "jitter_us": (0, 200),
            "seconds": (60,),
        },
        tiny={"seconds": (12,)},
        document=_document,
    ),
    # Only BBR has ProbeRTT: another controller would have none, whatever is asked.
    wrong=("bbr1:min_rtt_window_s=1", "bbr3"),
    look_at="The points of bursts should lie at zero.",
)
