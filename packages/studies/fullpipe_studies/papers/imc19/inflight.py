"""Two BDPs in flight.

Question: does a BBR flow keep two BDPs in flight, and do losses in a small buffer come from that?
Method: BBR alone for 60 s on the LAN's test bed at 100 Mbit/s, 50 ms (a BDP of 625 KB), with windows of 2,
1.5 and 1 BDP, and buffers of 100 KB and 10 MB. Data in flight and retransmissions are measured from 5 s on.
Prediction: two BDPs in flight, one of them queued in the deep buffer. In the shallow one the smaller window
loses less.

The paper states the first as how BBR works, and the second as why it loses ("largely because BBR sets
cwnd_gain to 2"). Rate and RTT are ours, of its grid. That half the window halves the losses is our
expectation.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Setups, Statement, Trial, number, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _testbed

_RATE_MBPS, _RTT_MS, _AFTER_S = 100, 50, 5.0
_GAINS = {"bbr1": 2.0, "bbr1:cwnd_gain=1.5": 1.5, "bbr1:cwnd_gain=1": 1.0}
_TWO, _ONE = "bbr1", "bbr1:cwnd_gain=1"
_SHALLOW, _DEEP = _grid.SHALLOW_KB, _grid.DEEP_KB


def _document(controller: str, buffer_kb: int, seconds: int, setup: str) -> dict[str, Any]:
    document = _grid.document(controller, _RATE_MBPS, _RTT_MS, buffer_kb, _grid.MAX, seconds, setup)
    return {**document, "record": {"interval": "20 ms"}}


def measure(trial: Trial) -> Row:
    frame = take.samples(trial.run, after_s=min(_AFTER_S, trial.factors["seconds"] / 2))
    bdp = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / trial.spec["mtu_bytes"]
    return {
        "in_flight_bdp": take.ratio(take.mean(frame, "inflight_segments"), bdp),
        "retransmits": take.grown(frame, "retransmits"),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    gain = pl.col("controller").replace_strict(_GAINS, default=None).alias("gain")
    frame = charts.means(data, ["controller", "buffer_kb"], "in_flight_bdp").with_columns(gain)

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _buffer: Any) -> Any:
            x = alt.X("gain:Q", title="cwnd_gain", scale=alt.Scale(domain=[0.8, 2.2]))
            paper = layers.paper([(gain, gain) for gain in sorted(_GAINS.values())], "gain")
            points = charts.points(ours, x, "in flight, BDP", charts.controllers(ours), domain=[0, 2.5])
            return alt.layer(paper, points)

        titles = {_SHALLOW: "100 KB", _DEEP: "10 MB"}
        return layers.panels(layers.of(frame, part), "buffer_kb", titles, draw)

    return charts.worlds(
        data, panel, "Data in flight against the window's gain", "100 Mbit/s, 50 ms; grey, dashed: the gain"
    )


def judge(data: Data) -> list[Check]:
    def lost(controller: str) -> Any:
        return data.values("retransmits", controller=controller, buffer_kb=_SHALLOW)

    return [
        *Statement("BBR maintains 2×BDP number of packets in flight").both(
            "data in flight, 10 MB of buffer",
            data.values("in_flight_bdp", controller=_TWO, buffer_kb=_DEEP),
            direction=1.5,
            least=1.8,
            unit="BDP",
        ),
        Statement("largely because BBR sets cwnd_gain to 2").more(
            "retransmissions with a window of 2 BDP divided by those with 1, 100 KB of buffer",
            lost(_TWO),
            lost(_ONE),
        ),
        *own(
            Statement("largely because BBR sets cwnd_gain to 2").more(
                "retransmissions with a window of 2 BDP divided by those with 1, 100 KB of buffer (number)",
                lost(_TWO),
                lost(_ONE),
                least=2,
                shape=False,
            )
        ),
    ]


def explain(data: Data) -> list[str]:
    plain = data.setups.get(_testbed.LINK)
    if plain is None:
        return []
    held = plain.mean("in_flight_bdp", controller=_TWO, buffer_kb=_DEEP)
    return [
        f"On a plain link a flow keeps {number(held)} BDP in flight: bursts of the router's bucket raise its "
        "estimate."
    ]


CLAIM = Claim(
    source="sections 4.1.1 and 4.1.2",
    says="BBR maintains 2×BDP number of packets in flight, and so the BDP number of packets are queued in "
    "the buffer. This is largely because BBR sets cwnd_gain to 2 most of the time, thus requiring a buffer "
    "size of at least BDP; when the buffer size is smaller than BDP, BBR will continually have losses.",
    grid=Grid(
        factors={
            "controller": tuple(_GAINS),
            "buffer_kb": (_SHALLOW, _DEEP),
            "seconds": (60,),
            "setup": (_testbed.TESTBED, _testbed.LINK),
        },
        tiny={"seconds": (4,)},
        document=_document,
    ),
    # The paper names its router: a plain link only shows what it does.
    setups=Setups("setup", _testbed.TESTBED, seeds=5),
    wrong=("vegas", "cubic"),
    look_at="Do the points follow the grey line?",
    seeds=5,
)
