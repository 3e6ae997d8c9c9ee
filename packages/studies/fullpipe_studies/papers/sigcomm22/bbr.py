"""BBR starves the flow with the shorter RTT.

Question: how unevenly do two BBR flows share a bottleneck that has jitter?
Method: two BBRv1 flows with RTTs of 40 and 80 ms for 60 s on 120 Mbit/s, with uniform jitter of 0 to 4 ms
and a buffer of 8 BDP (of 40 ms). Goodput of the whole run. BBRv3 and CUBIC for comparison.
Prediction: 8.3 against 107 Mbit/s with jitter, which keeps both flows limited by their windows.

The two goodputs are the paper's. RTTs, jitter, buffer and duration are ours, and so are the limits: the
slower flow has less than a fifth of the faster one's goodput (direction) and is within a factor of two of
8.3 Mbit/s, the faster one has at least 98.7 Mbit/s, and jitter makes the ratio larger.
"""

from typing import Any

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS = 120
_SHORT_MS, _LONG_MS = 40, 80
_BUFFER_BDP = 8
_JITTERS_MS = (0, 1, 2, 4)
_SLOW_MBPS, _FAST_MBPS = 8.3, 107
_SAID = Statement("8.3 against 107 Mbit/s")


def _document(controller: str, jitter_ms: float, seconds: int) -> dict[str, Any]:
    path: dict[str, Any] = {
        "rate": f"{_RATE_MBPS} Mbit/s",
        "rtt": f"{_SHORT_MS} ms",
        "buffer": f"{_BUFFER_BDP} bdp",
    }
    if jitter_ms:
        path["jitter"] = f"{jitter_ms} ms"
    return {
        "duration": f"{seconds} s",
        "path": path,
        "flows": [
            {"controller": controller, "label": "short"},
            {"controller": controller, "label": "long", "rtt": f"{_LONG_MS} ms"},
        ],
        "record": {"interval": "50 ms"},
    }


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, 0.0)
    if len(by_flow) < 2:
        return dict.fromkeys(("short_mbps", "long_mbps", "ratio"))
    short, long = by_flow["short"], by_flow["long"]
    # Not the smaller over the larger: which flow starves is part of the claim.
    return {"short_mbps": short, "long_mbps": long, "ratio": long / short if short > 0 else None}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "jitter_ms"], "ratio")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("jitter_ms:Q", title="jitter, ms")
        title = "goodput of 80 ms divided by that of 40 ms"
        points = charts.points(ours, x, title, charts.controllers(ours), type="log")
        reported = alt.layer(layers.level(1), layers.level(_FAST_MBPS / _SLOW_MBPS))
        return alt.layer(reported, points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "Two flows with RTTs of 40 and 80 ms",
        "120 Mbit/s; dashed: fair, and the paper's 107 to 8.3",
    )


def judge(data: Data) -> list[Check]:
    jitters = sorted(data.runs["jitter_ms"].unique().to_list())
    calm, noisy = jitters[0], jitters[-1]

    def taken(column: str, jitter_ms: float) -> list[float]:
        return data.values(column, controller="bbr1", jitter_ms=jitter_ms)

    return [
        _SAID.shape(
            f"Goodput of 80 ms divided by that of 40 ms, BBRv1, jitter of {noisy:g} ms (direction)",
            taken("ratio", noisy),
            least=5,
            unit="times",
        ),
        _SAID.within(
            f"Goodput of the slower flow, BBRv1, jitter of {noisy:g} ms",
            taken("short_mbps", noisy),
            least=_SLOW_MBPS / 2,
            most=_SLOW_MBPS * 2,
            unit="Mbit/s",
        ),
        _SAID.within(
            f"Goodput of the faster flow, BBRv1, jitter of {noisy:g} ms",
            taken("long_mbps", noisy),
            least=_FAST_MBPS - _SLOW_MBPS,
            unit="Mbit/s",
        ),
        Statement("Starvation may occur when ... delay variations ... exceed").more(
            f"Ratio with {noisy:g} ms of jitter divided by that with {calm:g}, BBRv1",
            taken("ratio", noisy),
            taken("ratio", calm),
            shape=False,
        ),
    ]


CLAIM = Claim(
    source="section on BBR",
    says="Starvation may occur when such a CCA runs on paths where non-congestive network delay variations "
    "due to real-world factors such as ACK aggregation and end-host scheduling exceed double the delay range "
    "that the CCA converges to in equilibrium. We provide experimental evidence for this result for BBR, PCC "
    "Vivace, and Copa with a link emulator.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"controller": ("bbr1", "bbr3", "cubic"), "jitter_ms": _JITTERS_MS, "seconds": (60,)},
        quick={"jitter_ms": (0, 4)},
        tiny={"controller": ("bbr1",), "seconds": (6,)},
        in_wall_time={"controller": ("bbr1", "cubic"), "jitter_ms": (0, 4)},
        document=_document,
    ),
    look_at="How far above a fair share is each controller, and does jitter lift it?",
    about="bbr1",
)
