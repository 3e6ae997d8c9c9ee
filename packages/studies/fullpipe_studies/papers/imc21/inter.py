"""Fairness between controllers at the core.

Question: what do thousands of flows of two controllers leave to each other?
Method: 1000 or 5000 flows for 600 s on 10 Gbit/s, 20 ms with 375 MB of buffer: half CUBIC and half Reno, half
BBRv1 and half CUBIC or Reno, and a single BBRv1 flow beside CUBIC or Reno only. Shares after 200 s.
Prediction: CUBIC has 70 to 80 % beside Reno. BBR has more than its share beside either.

The shares of CUBIC are the paper's. "Highly unfair" has no number in what was at hand. Ours: BBR has over
two thirds where half of the flows are its own (direction: over a half), and a single flow over ten times its
fair share (direction: over twice).

Changed after a first short form was seen, and before any full one: 60 s became 600, for the reason given in
imc21.intra, and the short form's 9 s became 60.
"""

from typing import Any

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc21 import _scale

# The first has the share that is measured, of so many flows or of half of them.
_MIXES = {
    "CUBIC, Reno": ("cubic", "reno", None),
    "BBR, CUBIC": ("bbr1", "cubic", None),
    "BBR, Reno": ("bbr1", "reno", None),
    "one BBR, CUBIC": ("bbr1", "cubic", 1),
    "one BBR, Reno": ("bbr1", "reno", 1),
}
_FIRST = "first"
_RTT_MS = 20
_CUBIC_SAID = Statement("Cubic achieves 70 to 80% of total throughput")
_BBR_SAID = Statement("BBR is highly unfair to loss-based CCA")


def _firsts(mix: str, flows: int) -> int:
    return _MIXES[mix][2] or _scale.count(_scale.CORE, flows) // 2


def _document(mix: str, flows: int, seconds: int) -> dict[str, Any]:
    first, second, _ = _MIXES[mix]
    own = _firsts(mix, flows)
    return _scale.document(
        _scale.CORE,
        [
            {"controller": first, "label": _FIRST, "count": own},
            {"controller": second, "label": "second", "count": _scale.count(_scale.CORE, flows) - own},
        ],
        _RTT_MS,
        seconds,
    )


def measure(trial: Trial) -> Row:
    share = sharing.share(sharing.rates(trial.run, _scale.begin(trial.factors["seconds"])), _FIRST)
    mix, flows = trial.factors["mix"], trial.factors["flows"]
    fair = _firsts(mix, flows) / _scale.count(_scale.CORE, flows)
    return {"share": share, "times_fair": None if share is None else share / fair}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["mix", "flows"], "times_fair")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("flows:O", title="hundreds of flows")
        title = "share of the first, divided by a fair one"
        points = charts.points(ours, x, title, charts.controllers(ours, "mix"), type="log")
        return alt.layer(layers.level(1), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Two controllers at the core", "10 Gbit/s, 20 ms; dashed: a fair share")


def judge(data: Data) -> list[Check]:
    def taken(column: str, mix: str) -> list[float]:
        return data.values(column, mix=mix)

    cubic = taken("share", "CUBIC, Reno")
    checks = [
        *_CUBIC_SAID.both("CUBIC's share beside Reno", cubic, direction=0.5, least=0.7, most=0.8),
    ]
    for other in ("CUBIC", "Reno"):
        half, single = taken("share", f"BBR, {other}"), taken("times_fair", f"one BBR, {other}")
        checks += [
            *_BBR_SAID.both(f"BBR's share beside {other}", half, direction=0.5, least=2 / 3),
            *_BBR_SAID.both(
                f"Share of one BBR flow beside {other}, divided by a fair one",
                single,
                direction=2,
                least=10,
                unit="times",
            ),
        ]
    return checks


CLAIM = Claim(
    source="finding on inter-CCA fairness",
    says="Cubic achieves 70 to 80% of total throughput when competing with an equal number of NewReno flows "
    "at CoreScale, while BBR is highly unfair to loss-based CCA, i.e., NewReno and Cubic.",
    grid=Grid(
        factors={"mix": tuple(_MIXES), "flows": (10, 50), "seconds": (600,)},
        quick={"flows": (10,), "seconds": (60,)},
        tiny={"flows": (10,), "seconds": (2,)},
        document=_document,
    ),
    look_at="Which points are above the dashed line?",
    seeds=3,
)
