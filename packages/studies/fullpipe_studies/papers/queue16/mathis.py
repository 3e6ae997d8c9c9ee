"""The loss that full bandwidth allows.

Question: how rare must losses be for loss-based control to use the whole link?
Method: one flow of Reno, CUBIC or BBR for 300 s on three paths whose BDP is 33, 167 and 833 packets, with 0.1
to 10 random losses per BDP squared and a buffer of 1 BDP. With 833 packets, 0.1 losses are fewer than one in
a run.
Prediction: Reno and CUBIC fill the link with a tenth of that rate, and not with ten times. BBR does with
both.

The article cites Mathis et al., whose law is Reno's: a window of 1.22 / sqrt(p). "Existing loss-based
congestion controls" are CUBIC, too, so both are judged.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

# Rate in Mbit/s and RTT in ms by the BDP in packets.
_PATHS = {33: (10, 40), 167: (50, 40), 833: (100, 100)}
_RARE, _OFTEN = 0.1, 10
_LOSS_BASED = {"reno": "Reno", "cubic": "CUBIC"}
_SAID = Statement("require the loss rate to be less than the inverse square of the BDP")


def _document(controller: str, bdp: int, times: float, seconds: int) -> dict[str, Any]:
    rate_mbps, rtt_ms = _PATHS[bdp]
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{rate_mbps} Mbit/s",
            "rtt": f"{rtt_ms} ms",
            "buffer": "1 bdp",
            "loss": f"{100 * times / bdp**2:.8f} %",
        },
        "flows": [{"controller": controller}],
        "record": {"series": False},
    }


def measure(trial: Trial) -> Row:
    carried = _PATHS[trial.factors["bdp"]][0] * take.payload_share(trial)
    return {"of_link": take.goodput_mbps(trial.run) / carried}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "bdp", "times"], "of_link")

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _bdp: Any) -> Any:
            x = alt.X("times:Q", title="losses per BDP squared", scale=alt.Scale(type="log"))
            return charts.points(ours, x, "goodput / link", charts.controllers(ours), domain=[0, 1])

        titles = {bdp: f"BDP of {bdp} packets" for bdp in _PATHS}
        return layers.panels(layers.of(frame, part), "bdp", titles, draw)

    return charts.worlds(data, panel, "Goodput against losses per BDP squared", "buffer of 1 BDP")


def judge(data: Data) -> list[Check]:
    checks = []
    for bdp in _PATHS:

        def at(controller: str, times: float, bdp: int = bdp) -> Any:
            return data.values("of_link", controller=controller, bdp=bdp, times=times)

        for controller, name in _LOSS_BASED.items():
            checks += [
                _SAID.shape(
                    f"{name}'s goodput with {_RARE:g} losses per BDP squared, BDP of {bdp}, of the link",
                    at(controller, _RARE),
                    least=0.9,
                ),
                _SAID.shape(
                    f"{name}'s goodput with {_OFTEN} losses per BDP squared, BDP of {bdp}, of the link",
                    at(controller, _OFTEN),
                    most=0.9,
                ),
            ]
        checks.append(
            Statement("BBR not using loss as a congestion indicator").within(
                f"BBR's goodput with {_OFTEN} losses per BDP squared, BDP of {bdp}, of the link",
                at("bbr1", _OFTEN),
                least=0.9,
            )
        )
    return checks


CLAIM = Claim(
    source="Google B4 WAN deployment experience",
    says="To achieve full bandwidth, existing loss-based congestion controls require the loss rate to be "
    "less than the inverse square of the BDP (e.g., < one loss per 30 million packets for a 1-Gbps/100-ms "
    "path).",
    grid=Grid(
        factors={
            "controller": ("bbr1", "cubic", "reno"),
            "bdp": tuple(_PATHS),
            "times": (_RARE, 0.3, 1, 3, _OFTEN),
            "seconds": (300,),
        },
        quick={"times": (_RARE, _OFTEN), "seconds": (100,)},
        tiny={"bdp": (33,), "times": (_RARE, _OFTEN), "seconds": (5,)},
        document=_document,
    ),
    subject=tuple(_LOSS_BASED),
    # Vegas is no control: it answers losses as Reno does.
    wrong=("bbr1", "copa"),
    look_at="Where do the lines of Reno and CUBIC leave the top?",
)
