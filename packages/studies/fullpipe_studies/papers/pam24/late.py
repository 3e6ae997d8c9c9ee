"""Flows that start late take much longer to converge.

Question: how long do four flows need until their shares are fair, if they start together, and if not?
Method: four flows of one controller on 100 Mbit/s, 50 ms with buffers of 1 to 8 BDP, all at once or one
every 20 s, for 60 s after the last has started. They have converged with the first 5 s from which on Jain's
index, over 5 s each, stays at or above 0.9; flows that never do count with the 60 s. Counted from the last
start to the end of these 5 s.
Prediction: together, BBRv3 converges sooner than BBRv1. One after the other, BBRv3 needs much longer than
together.

The abstract says "quicker than prior versions" and "deteriorates substantially". Ours: any difference
(direction), and twice as long. All of the set-up is ours. The same criteria apply to Google's BBRv3,
which the paper measured, and to the draft's.

Changed after results were seen: times count to the end of the first fair 5 s and not to their beginning,
because most runs with deep buffers were fair from the beginning, and zeros have no ratio. And BBRv1 is
compared by the difference, because a mean of ratios of such scattered times favours whatever is divided by.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import (
    Check,
    Claim,
    Data,
    Grid,
    Row,
    Statement,
    Trial,
    Values,
    number,
)
from fullpipe_studies.later import alt
from fullpipe_studies.papers.pam24 import _path

_FLOWS, _EVERY_S = 4, 20
_BIN_S, _WINDOW = 1.0, 5
_FAIR = 0.9
_CONTROLLERS = (*_path.VARIANTS, "bbr1", "cubic")
_TOGETHER, _LATE = "together", "late"
_QUICK_SAID = Statement("converge to their fair shares quicker than prior versions")
_LATE_SAID = Statement("its convergence time deteriorates substantially")


def _last_s(start: str, seconds: float) -> float:
    """When the last flow starts; in a short run, they follow each other more quickly."""
    return 0.0 if start == _TOGETHER else (_FLOWS - 1) * min(_EVERY_S, seconds / 3)


def _document(controller: str, start: str, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    last_s = _last_s(start, seconds)
    flows = {
        "controller": controller,
        "label": "flow",
        "count": _FLOWS,
        "stagger": f"{last_s / (_FLOWS - 1)} s",
    }
    return _path.document([flows], buffer_bdp, last_s + seconds)


def measure(trial: Trial) -> Row:
    seconds = float(trial.factors["seconds"])
    last_s = _last_s(trial.factors["start"], seconds)
    by_flow = sharing.binned(trial.run, _BIN_S, last_s + seconds).pivot("flow", index="time_s", values="mbps")
    names = [name for name in by_flow.columns if name != "time_s"]
    if len(names) < _FLOWS:
        return dict.fromkeys(("converge_s", "last_jain"))
    smooth = by_flow.sort("time_s").select(
        (pl.col("time_s") - _WINDOW * _BIN_S - last_s).alias("from_s"),
        *(pl.col(name).fill_null(0.0).rolling_mean(_WINDOW) for name in names),
    )
    rows = smooth.filter(pl.col("from_s") >= 0).drop_nulls().rows()
    indices = [(row[0], sharing.jain(row[1:]) or 0.0) for row in rows]
    found = sharing.converged_s(indices, _FAIR)
    return {
        "converge_s": None if found is None else min(found + _WINDOW * _BIN_S, seconds),
        "last_jain": indices[-1][1] if indices else None,
    }


def series(trial: Trial) -> pl.DataFrame:
    seconds = float(trial.factors["seconds"])
    return sharing.binned(trial.run, _BIN_S, _last_s(trial.factors["start"], seconds) + seconds)


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "start", "buffer_bdp"], "converge_s")

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _start: Any) -> Any:
            x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
            return charts.points(ours, x, "time until shares stay fair, s", charts.controllers(ours))

        titles = {_TOGETHER: "all start at once", _LATE: f"one starts every {_EVERY_S} s"}
        waits = layers.panels(layers.of(frame, part), "start", titles, draw)
        series = part.series
        if "flow" not in series.columns:
            return waits
        shown = series.filter(
            (pl.col("start") == _LATE) & (pl.col("buffer_bdp") == series["buffer_bdp"].min())
        )

        def flows(ours: pl.DataFrame, _controller: Any) -> Any:
            x = alt.X("time_s:Q", title="time, s")
            return layers.lines(ours, x, alt.Y("mbps:Q", title="goodput, Mbit/s"), "flow")

        names = {name: name for name in _CONTROLLERS if name.startswith("bbr")}
        below = layers.panels(shown, "controller", names, flows, columns=3)
        return alt.vconcat(waits, below).resolve_scale(color="independent", strokeDash="independent")

    return charts.worlds(
        data, panel, "Four flows converge", "100 Mbit/s, 50 ms; below: one every 20 s, least buffer"
    )


def _waits(data: Data, controller: str, start: str) -> Values:
    """The mean over buffers, one for each seed: a run that is fair at once has no ratio to another such."""
    return data.values("converge_s", controller=controller, start=start).by_seed()


def judge(data: Data) -> list[Check]:
    old = _waits(data, "bbr1", _TOGETHER)
    checks = []
    for name in _path.VARIANTS:
        new, late = (_waits(data, name, start) for start in (_TOGETHER, _LATE))
        late_named = f"Time to converge, {name}: one after the other divided by together"
        checks += [
            _QUICK_SAID.shape(
                f"Time to converge, together: BBRv1's above that of {name}", old.minus(new), least=0, unit="s"
            ),
            _LATE_SAID.more(f"{late_named} (direction)", late, new),
            _LATE_SAID.more(late_named, late, new, least=2, shape=False),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for controller in _CONTROLLERS:
        together, late = (
            data.mean("converge_s", controller=controller, start=start) for start in (_TOGETHER, _LATE)
        )
        index = data.mean("last_jain", controller=controller, start=_LATE)
        facts.append(
            f"{controller}: {number(together)} s together, {number(late)} s one after the other, then "
            f"with an index of {number(index)}."
        )
    return facts


CLAIM = Claim(
    source="abstract",
    says="BBRv3 enables competing flows to converge to their fair shares quicker than prior versions. If "
    "these flows, however, do not start (or arrive at the bottleneck) at the same time, we also observe that "
    "its convergence time deteriorates substantially.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _CONTROLLERS,
            "start": (_TOGETHER, _LATE),
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"buffer_bdp": (1, 8)},
        tiny={"controller": ("bbr3", "bbr1"), "buffer_bdp": (1,), "seconds": (8,)},
        in_wall_time={"controller": (*_path.VARIANTS, "bbr1"), "buffer_bdp": (1, 8)},
        document=_document,
    ),
    # A constant window is fair at once, whoever starts first.
    wrong=("vegas", "cubic", "fixed:cwnd=100"),
    look_at="Is BBRv3 below BBRv1 on the left, and far higher on the right?",
    about=_path.ABOUT,
    seeds=20,
)
