"""One BBRv3 flow beside five CUBIC flows, with ECN.

Question: how much of a bottleneck that marks does one BBRv3 flow take from five CUBIC flows?
Method: all start together and run for 60 s on 100 Mbit/s with RTTs of 4 and 40 ms behind CoDel, PIE or a
step, with 1000 packets of buffer; shares in the second half. Google's BBRv3 in four cases: all connections
negotiate ECN, and it answers marks or it does not; it alone negotiates ECN, and answers; nobody does.
Prediction: over 99 % where its packets are marked instead of dropped and it takes no notice, or little.

The abstract says that one flow "can" acquire more than about 99 % "when ECN is enabled". So what is judged
is the largest mean share over disciplines, RTTs and the three cases with ECN: over a half, three times a
fair share, and over that without ECN (direction, ours), and 99 %. In the kernel, BBRv3 answers marks only
if the route says so (`ecn_low`) and its least RTT is at most 5 ms. Whether the paper's hosts said so was
not to be found, hence the cases. RTTs, disciplines and buffer are ours.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_RATE_MBPS = 100
_CUBICS = 5
_BUFFER = "1000 packets"
_QUEUES = ("codel", "pie", "step")
_RTTS_MS = (4, 40)
_PLAIN, _ANSWERS = "bbr3:profile=linux", "bbr3:profile=linux,ecn=1"
# BBRv3, and whether every connection negotiates ECN.
_CASES = {
    "all, BBR ignores": (_PLAIN, True),
    "all, BBR answers": (_ANSWERS, True),
    "BBR only": (_ANSWERS, False),
    "none": (_PLAIN, False),
}
_WITHOUT = "none"
_SAID = Statement("more than ~99% of the bandwidth even when competing with five Cubic flows")


def _document(case: str, queue: str, rtt_ms: int, seconds: int) -> dict[str, Any]:
    controller, ecn = _CASES[case]
    # A step that marks nobody's packets has to drop.
    queue = "step:drop=on" if queue == "step" and case == _WITHOUT else queue
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": _BUFFER, "queue": queue},
        "hosts": {"ecn": ecn},
        "flows": [
            {"controller": controller, "label": "bbr"},
            {"controller": "cubic", "label": "cubic", "count": _CUBICS},
        ],
        "record": {"interval": "50 ms"},
    }


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, trial.factors["seconds"] / 2)
    return {"bbr_share": sharing.share(by_flow, "bbr")}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["case", "queue", "rtt_ms"], "bbr_share")

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _rtt: Any) -> Any:
            x = alt.X("queue:N", title="queue discipline")
            base = alt.Chart(charts.values(ours)).encode(x=x, xOffset="case:N", color=_coloured(ours))
            bars = base.mark_bar().encode(
                y=alt.Y("mean:Q", title="share of BBRv3", scale=alt.Scale(domain=[0, 1]))
            )
            return alt.layer(bars, layers.level(0.99), layers.level(1 / (1 + _CUBICS)))

        titles = {rtt: f"{rtt} ms" for rtt in _RTTS_MS}
        return layers.panels(layers.of(frame, part), "rtt_ms", titles, draw)

    return charts.worlds(
        data,
        panel,
        "One BBRv3 flow beside five CUBIC flows, by who negotiates ECN",
        "100 Mbit/s; dashed: the paper's 99 %, and a fair share",
    )


def _coloured(frame: pl.DataFrame) -> "alt.Color":
    """Each case in its own colour, with squares in the legend as of bars."""
    return charts.controllers(frame, "case").legend(
        alt.Legend(orient="bottom", title=None, symbolType="square")
    )


def _most(data: Data, cases: list[str]) -> tuple[list[float], dict[str, Any]]:
    """The shares in the cell with the largest mean share over these cases, and its factors."""
    best: tuple[float, dict[str, Any]] = (-math.inf, {})
    cells = (
        data.runs.filter(pl.col("case").is_in(cases))
        .select("case", "queue", "rtt_ms")
        .unique(maintain_order=True)
    )
    for where in cells.iter_rows(named=True):
        mean = data.mean("bbr_share", **where)
        if mean > best[0]:
            best = mean, where
    return (data.values("bbr_share", **best[1]) if best[1] else []), best[1]


def judge(data: Data) -> list[Check]:
    with_ecn, _ = _most(data, [case for case in _CASES if case != _WITHOUT])
    without, _ = _most(data, [_WITHOUT])
    return [
        _SAID.shape("Largest share of BBRv3 with ECN (direction)", with_ecn, least=0.5),
        Statement("when ECN is enabled").more(
            "Largest share of BBRv3 with ECN divided by the largest without", with_ecn, without
        ),
        _SAID.within("Largest share of BBRv3 with ECN", with_ecn, least=0.99),
    ]


def explain(data: Data) -> list[str]:
    facts = []
    for case in _CASES:
        shares, where = _most(data, [case])
        if shares:
            facts.append(
                f"ECN: {case}: the largest share is {number(sum(shares) / len(shares))}, with "
                f"{where['queue']} and {where['rtt_ms']} ms."
            )
    return facts


CLAIM = Claim(
    source="abstract",
    says="Our evaluations reveal that, when ECN is enabled, a single BBRv3 flow can acquire more than ~99% "
    "of the bandwidth even when competing with five Cubic flows.",
    grid=Grid(
        factors={"case": tuple(_CASES), "queue": _QUEUES, "rtt_ms": _RTTS_MS, "seconds": (60,)},
        quick={"seconds": (30,)},
        tiny={"queue": ("codel",), "rtt_ms": (40,), "seconds": (4,)},
        document=_document,
    ),
    subject=("bbr3",),
    look_at="Which bars reach the upper dashed line?",
)
