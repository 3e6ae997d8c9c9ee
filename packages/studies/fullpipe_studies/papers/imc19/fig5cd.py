"""Retransmissions over the grid.

Question: how many retransmissions does BBR's goodput in shallow buffers cost?
Method: each controller alone for 60 s on 64 paths with 100 KB and with 10 MB; retransmitted segments, as
counts and in per cent of those sent, averaged over the paths.
Prediction: at 100 KB BBR loses 10.1 %, often ten times CUBIC's 0.9 %; at 10 MB 0.8 %, and CUBIC 1.3 %.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _heat, _testbed

# Average loss in per cent, by controller and buffer (section 4.1.2).
_PAPER = {
    ("bbr1", _grid.SHALLOW_KB): 10.1,
    ("cubic", _grid.SHALLOW_KB): 0.9,
    ("bbr1", _grid.DEEP_KB): 0.8,
    ("cubic", _grid.DEEP_KB): 1.3,
}
_NAMES = {"bbr1": "BBR", "cubic": "CUBIC"}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = _grid.pairs(part.runs, "retransmits")
        rows = []
        for buffer in frame["buffer_kb"].unique().sort().to_list():
            cells = frame.filter(pl.col("buffer_kb") == buffer)
            maps = []
            for name in _grid.CONTROLLERS:
                lost = take.mean(_grid.only(part, controller=name, buffer_kb=buffer), "loss_pct") or 0.0
                theirs = f"; paper {_PAPER[name, buffer]} %" if (name, buffer) in _PAPER else ""
                title = f"{_NAMES[name]}, {buffer:,} KB: {number(lost, 2)} % lost{theirs}"
                maps.append(_heat.count(cells, name, title))
            rows.append(alt.hconcat(*maps))
        return alt.vconcat(*rows)

    return charts.worlds(
        data, panel, "Retransmissions", f"in {data.most('seconds'):g} s; logarithmic colour scale", rigid=True
    )


def judge(data: Data) -> list[Check]:
    def loss(controller: str, buffer: int) -> list[float]:
        """The mean over paths, for each seed."""
        part = _grid.only(data, controller=controller, buffer_kb=buffer)
        return _grid.each_seed(part, lambda runs: float(runs["loss_pct"].mean() or 0.0))  # type: ignore[arg-type]

    def tenfold(runs: pl.DataFrame) -> float:
        frame = _grid.pairs(runs, "retransmits").filter(pl.col("buffer_bdp") < 1)
        # Zero is not ten times zero.
        return _grid.share(frame, (pl.col("bbr1") >= 10 * pl.col("cubic")) & (pl.col("bbr1") > 0))

    losses = {(name, buffer): loss(name, buffer) for name, buffer in _PAPER}
    return [
        Statement("often 10 times").more(
            "BBR's loss divided by CUBIC's at 100 KB",
            losses["bbr1", _grid.SHALLOW_KB],
            losses["cubic", _grid.SHALLOW_KB],
            least=3,
        ),
        Statement("often").shape(
            "Paths with a BDP above 100 KB on which BBR retransmits at least ten times as much",
            _grid.each_seed(_grid.only(data, buffer_kb=_grid.SHALLOW_KB), tenfold),
            least=0.5,
            unit="of paths",
        ),
        Statement("10.1 % to 0.8 %").more(
            "BBR's loss at 100 KB divided by that at 10 MB",
            losses["bbr1", _grid.SHALLOW_KB],
            losses["bbr1", _grid.DEEP_KB],
            least=3,
        ),
        Statement("1.3 % to 0.8 %").more(
            "CUBIC's loss divided by BBR's at 10 MB",
            losses["cubic", _grid.DEEP_KB],
            losses["bbr1", _grid.DEEP_KB],
        ),
        *(
            Statement(f"{value} %").within(
                f"Average loss of {_NAMES[name]} at {buffer:,} KB",
                losses[name, buffer],
                least=0.5 * value,
                most=1.5 * value,
                unit="%",
            )
            for (name, buffer), value in _PAPER.items()
        ),
    ]


def explain(data: Data) -> list[str]:
    part = _grid.only(data, buffer_kb=_grid.SHALLOW_KB)
    frame = _grid.pairs(part, "loss_pct").filter(pl.col("buffer_bdp") < 1)
    mean, most, cubic = take.mean(frame, "bbr1"), take.most(frame, "bbr1"), take.mean(frame, "cubic")
    if mean is None or most is None or cubic is None:
        return []
    return [
        f"At 100 KB BBR loses {number(mean)} % on average where the BDP exceeds the buffer, and "
        f"at most {number(most)} %. A gain of 1.25 in one of eight phases sends 3.1 % more than the link "
        "carries; imc19.retx shows the effect of the pacing of Linux 4.15.",
        f"CUBIC loses {number(cubic)} %: a few segments each time it fills the buffer. For the paper's 0.9 % "
        "many segments must be lost at a time.",
    ]


CLAIM = Claim(
    source="figures 5(c) and 5(d)",
    says="BBR often incurs 10x more retransmissions than Cubic. For 100KB buffer size, the average loss "
    "percentage for BBR and Cubic is 10.1% and 0.9%. For 10MB buffer size, it is 0.8% and 1.3%.",
    grid=_grid.grid((_grid.SHALLOW_KB, _grid.DEEP_KB)),
    measure=_grid.measure,
    look_at="With the shallow buffer BBR's counts should have one or two more digits than CUBIC's.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
    setups=_testbed.setups(),
)
