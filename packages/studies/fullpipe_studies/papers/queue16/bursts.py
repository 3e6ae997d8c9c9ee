"""Bursts of half a BDP.

Question: what queue do bursts make where the pipe is just full?
Method: a flow whose packets leave in bursts of half a BDP, or smaller ones, on 10 Mbit/s, 40 ms: they are
held before the link, and released together every 20, 10 or 5 ms. Its window is one BDP of the longer round
trip, so that the pipe is full and nothing stands in the queue when a burst comes.
Prediction: the link is used fully, and the mean queue is half a burst: a quarter BDP with bursts of half a
BDP.
"""

from typing import Any

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 10, 40
_PARTS = {20: 0.5, 10: 0.25, 5: 0.125}
_JUDGED_MS = 20
_AFTER_S = 2.0


def _document(controller: str, every_ms: int, seconds: int) -> dict[str, Any]:
    window = round(_RATE_MBPS * 1e6 * (_RTT_MS + every_ms) / 1e3 / 12_000)
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_RATE_MBPS} Mbit/s",
            "rtt": f"{_RTT_MS} ms",
            "buffer": "4 bdp",
            "before": [{"kind": "aggregate", "every": f"{every_ms} ms"}],
        },
        "flows": [{"controller": f"fixed:cwnd={window}" if controller == "fixed" else controller}],
        "record": {"interval": "1 ms"},
    }


def measure(trial: Trial) -> Row:
    queue = take.link(trial.run, after_s=_AFTER_S)
    return {
        "queue_bdp": take.ratio(take.mean(queue, "queue_bytes"), take.bdp_bytes(_RATE_MBPS, _RTT_MS)),
        "used": take.ratio(
            take.delivered_mbps(take.samples(trial.run, after_s=_AFTER_S)),
            _RATE_MBPS * take.payload_share(trial),
        ),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "every_ms"], "queue_bdp")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("every_ms:Q", title="time between bursts, ms")
        lines = charts.points(ours, x, "mean queue, BDP", charts.controllers(ours))
        paper = layers.paper([(ms, size / 2) for ms, size in _PARTS.items()], "every_ms")
        return alt.layer(paper, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "The queue that bursts make", "10 Mbit/s, 40 ms; grey, dashed: half a burst"
    )


def judge(data: Data) -> list[Check]:
    return [
        Statement("full bottleneck utilization").shape(
            "use of the link", data.values("used", every_ms=_JUDGED_MS), least=0.95
        ),
        *Statement("an average queue of BDP/4").both(
            "mean queue",
            data.values("queue_bdp", every_ms=_JUDGED_MS),
            direction=(0.15, 0.35),
            least=0.22,
            most=0.28,
            unit="BDP",
        ),
    ]


CLAIM = Claim(
    source="Characterizing the bottleneck",
    says="The full pipe condition does not guarantee there is no queue (e.g., a connection sending a BDP in "
    "BDP/2 bursts gets full bottleneck utilization, but with an average queue of BDP/4).",
    grid=Grid(
        factors={"controller": ("fixed",), "every_ms": tuple(_PARTS), "seconds": (20,)},
        tiny={"seconds": (4,)},
        document=_document,
    ),
    subject=("fixed",),
    wrong=("cubic", "reno"),
    look_at="Do the points lie on the grey line?",
)
