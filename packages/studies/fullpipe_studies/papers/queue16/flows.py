"""The queue and the number of flows.

Question: does BBR's queue depend on the number of flows?
Method: 1 to 16 flows of one controller on figure 10's link, 128 kbit/s and 40 ms, with a buffer of 300 KB,
for an hour; the median RTT from 40 % of the run on. The article says it of this figure, which shows eight
flows.
Prediction: BBR's RTT is the same with any number. CUBIC fills the buffer with any.

"Independent" means within a factor of 1.5, as for buffers in figure 10.
"""

from typing import Any

from fullpipe.text import counted
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_RTT_MS, _BUFFER_KB, _RATE_BPS = 40.0, 300, 128e3
_FULL_MS = _RTT_MS + _BUFFER_KB * 8e6 / _RATE_BPS
_STEADY = 0.4
# Linux's BBR sends at least four packets a round trip.
_LEAST_PACKETS, _PACKET_MS = 4, 1500 * 8e3 / _RATE_BPS


def _document(controller: str, flows: int, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": "128 kbit/s", "rtt": f"{_RTT_MS} ms", "buffer": f"{_BUFFER_KB} KB"},
        "flows": [{"controller": controller, "count": flows}],
        "record": {"interval": f"{max(0.05, seconds / 4000)} s"},
    }


def measure(trial: Trial) -> Row:
    return {
        "rtt_ms": take.median(take.samples(trial.run, after_s=_STEADY * trial.factors["seconds"]), "srtt_ms")
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "flows"], "rtt_ms")

    def panel(part: Data) -> Any:
        ours = frame.filter(frame["world"] == part.worlds[0])
        x = alt.X("flows:Q", title="flows", scale=alt.Scale(type="log", base=2))
        lines = charts.points(ours, x, "median RTT, ms", charts.controllers(ours), type="log")
        return lines.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "RTT against the number of flows", "128 kbit/s, 40 ms, 300 KB of buffer"
    )


def judge(data: Data) -> list[Check]:
    counts = sorted({round(count) for count in data.values("flows")})
    bbr = [data.values("rtt_ms", controller="bbr1", flows=count) for count in counts]
    return [
        Statement("independent of number of active flows").shape(
            "BBR's RTT with these numbers of flows: the longest divided by the shortest",
            [max(row) / min(row) for row in zip(*bbr, strict=False) if min(row) > 0],
            most=1.5,
            unit="times",
        ),
        *(
            Statement("BBR keeps the queue near its minimum").more(
                f"CUBIC's RTT with {counted(count, 'flow')} divided by BBR's",
                data.values("rtt_ms", controller="cubic", flows=count),
                data.values("rtt_ms", controller="bbr1", flows=count),
                least=2,
            )
            for count in counts
        ),
        # CUBIC's window is 0.7 of its largest after a loss: our limit.
        *(
            Statement("CUBIC flows always fill the buffer").shape(
                f"CUBIC's RTT with {counted(count, 'flow')} divided by that of a full buffer",
                [one / _FULL_MS for one in data.values("rtt_ms", controller="cubic", flows=count)],
                least=0.7,
                most=1.1,
            )
            for count in counts
        ),
    ]


def explain(data: Data) -> list[str]:
    facts = []
    for count in sorted({round(count) for count in data.values("flows")}):
        rtt = data.mean("rtt_ms", controller="bbr1", flows=count)
        least = _RTT_MS + count * _LEAST_PACKETS * _PACKET_MS
        facts.append(
            f"{counted(count, 'flow')} of BBR: an RTT of {number(rtt)} ms; least windows of four packets "
            f"alone make {number(least)} ms."
        )
    return facts


CLAIM = Claim(
    source="figure 10",
    says="BBR keeps the queue near its minimum, independent of both bottleneck buffer size and number of "
    "active flows. CUBIC flows always fill the buffer.",
    grid=Grid(
        factors={"controller": ("bbr1", "cubic"), "flows": (1, 2, 4, 8, 16), "seconds": (3600,)},
        quick={"flows": (1, 4, 16)},
        tiny={"flows": (1, 4), "seconds": (60,)},
        document=_document,
    ),
    wrong=("cubic", "reno"),
    look_at="BBR's line should be flat.",
)
