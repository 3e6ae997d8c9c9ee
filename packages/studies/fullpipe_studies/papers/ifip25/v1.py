"""The steady-state model and BBRv1.

Question: does the model tell the share of a BBRv1 flow, and does it matter how many flows it competes with?
Method: one BBRv1 flow beside 1 or 16 CUBIC or Reno flows for 600 s on 10 Mbit/s, 40 ms with buffers of 1 to
64 BDP; shares after 200 s. The error is the model's, relative to the share; its median is over buffers.
Prediction: it does, best beside a single loss-based flow.

"Accurately" is judged by the errors that the model's own paper states (5 % beside CUBIC, 8 % beside Reno);
in shape by three times these. Both are our reading, and so is 16 for many flows.
"""

import polars as pl

from fullpipe_studies.claim import Check, Claim, Data, Grid, Statement
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ifip25 import _steady

_MANY = 16
_SAID = Statement("accurately captures BBRv1 behavior, especially against single loss-based flows")


def figure(data: Data) -> "alt.TopLevelMixin":
    return _steady.figure(data, "others", "BBRv1 beside one and beside many loss-based flows")


def judge(data: Data) -> list[Check]:
    checks = []
    for loss in _steady.LOSSES:
        single, crowd = (_steady.errors(data, loss=loss, others=others) for others in (1, _MANY))
        least = _steady.PAPER_PCT[loss]
        beside = _steady.TITLES[loss]
        checks += [
            *_SAID.both(
                f"Median error of the model {beside}, a single flow",
                single,
                direction=_steady.SHAPE_TIMES * least,
                most=least,
                unit="%",
            ),
            _SAID.more(f"Median error {beside}: {_MANY} flows divided by a single one", crowd, single),
        ]
    return checks


def explain(data: Data) -> list[str]:
    return _steady.reported(Data(data.runs.filter(pl.col("others") == 1), data.series), "bbr1")


CLAIM = Claim(
    source="abstract",
    says="Our findings confirm that the steady-state model accurately captures BBRv1 behavior, especially "
    "against single loss-based flows.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": ("bbr1",),
            "loss": _steady.LOSSES,
            "buffer_bdp": _steady.BUFFERS_BDP,
            "bbrs": (1,),
            "others": (1, _MANY),
            "seconds": (600,),
        },
        quick={"buffer_bdp": (1, 8, 32), "seconds": (300,)},
        tiny={"buffer_bdp": (4,), "seconds": (9,)},
        in_wall_time={"buffer_bdp": (1, 8, 64), "seconds": (120,)},
        document=_steady.document,
    ),
    measure=_steady.measure,
    look_at="Is the line of a single flow on the grey one?",
    about="bbr1",
    seeds=5,
)
