"""A less-than-best-effort sender.

Question: does a sender that gives way to standard TCP still do so under each discipline?
Method: a NewReno flow and a Vegas flow for 60 s on 10 Mbit/s, 100 ms, with a buffer of 1 BDP. The RFC has
LEDBAT and allows the protocols that RFC 6297 surveys, of which Vegas is one.
Prediction: with a FIFO, Vegas gets less than a quarter of the goodput. Every discipline gives it more
than the FIFO does, as a short queue says little about who fills it.
"""

from typing import Any

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_QUARTER = 0.25


def _document(discipline: str, seconds: int) -> dict[str, Any]:
    flows = [{"controller": "reno", "label": "reno"}, {"controller": "vegas", "label": "vegas"}]
    return _bench.document(flows, discipline, seconds)


def measure(trial: Trial) -> Row:
    reno, vegas = (_bench.point(trial, name) for name in ("reno", "vegas"))
    own, other = vegas["goodput_mbps"], reno["goodput_mbps"]
    both = own + other if own is not None and other is not None else 0
    return {
        **reno,
        "vegas_mbps": own,
        "vegas_ms": vegas["delay_ms"],
        "share": own / both if both > 0 else None,
        **_bench.waits(trial),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        return _bench.panels(
            _bench.ellipses(part.runs, "NewReno"),
            _bench.ellipses(part.runs, "Vegas", x="vegas_ms", y="vegas_mbps"),
        )

    subtitle = "10 Mbit/s, 100 ms, a buffer of 1 BDP; 1-sigma ellipses over runs"
    return charts.worlds(data, panel, "NewReno beside Vegas", subtitle)


def judge(data: Data) -> list[Check]:
    plain = data.values("share", discipline=_bench.FIFO)
    found = [
        Statement(
            "results in smaller bandwidth and/or delay impact on standard TCP than standard TCP itself"
        ).shape("Vegas's share with a FIFO", [one for one in plain if one > 0], most=_QUARTER)
    ]
    found += [
        Statement("potential fateful interactions when AQM and LBE techniques are combined").more(
            f"Vegas's share with {name} divided by that with a FIFO",
            data.values("share", discipline=name),
            plain,
        )
        for name in _bench.MANAGED
    ]
    return own(*found)


CLAIM = Claim(
    source="section 5.4",
    says="There are potential fateful interactions when AQM and LBE techniques are combined.",
    grid=Grid(
        factors={"discipline": _bench.DISCIPLINES, "seconds": (60,)},
        tiny={"seconds": (6,)},
        document=_document,
    ),
    look_at="With which disciplines does Vegas get about as much as NewReno?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
