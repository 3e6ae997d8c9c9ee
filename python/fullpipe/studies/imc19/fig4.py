"""A decision tree that chooses the controller.

Question: can a few conditions on RTT, rate and buffer predict which controller gives more goodput?
Method: each controller alone for 60 s on 320 paths, with maximum TCP memory and with the defaults of Ubuntu
18.10. The winner has the higher mean goodput over seeds. A decision tree of scikit-learn is fitted to three
quarters of the paths, and five-fold cross-validation uses all of them. The quick form has 80 paths and runs
of 30 s; the kernel world has 27 paths.
Prediction: CUBIC wins where the BDP is small and the buffer large, BBR in the opposite case. The tree is
right on 81 % of the paths, and on 90 % with default memory, where the window limits both.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import altair as alt
import polars as pl

from fullpipe.results.tree import INSTALL
from fullpipe.studies import charts
from fullpipe.studies.claim import Check, Claim, Data, more, number, within
from fullpipe.studies.imc19 import _draw, _grid, _tree
from fullpipe.system.words import counted

# Mean and median accuracy over the folds, per cent.
_PAPER = {_grid.MAX: (81.3, 81.9), _grid.DEFAULT: (90.0, 90.2)}
_MEMORY = {_grid.MAX: "maximum TCP memory", _grid.DEFAULT: "default TCP memory"}
# An accuracy counts as the paper's within this many percentage points.
_NEAR_PCT = 5.0
# Relative standard deviations of goodput. The paper explains its accuracies by "variation in bandwidth" and
# "outliers" and gives no numbers.
_SPREADS = (0.01, 0.02, 0.05)
_DRAWS = 5
# A tree over fewer paths would be meaningless; the kernel world runs only this many.
_ENOUGH = 60


def _paths(runs: pl.DataFrame, memory: str) -> pl.DataFrame:
    """The paths, their features and the winners."""
    part = runs.filter(pl.col("memory") == memory)
    return _grid.gains(part).with_columns((pl.col("gain_pct") > 0).alias("bbr_wins"))


def _memories(data: Data) -> list[str]:
    return [memory for memory in _PAPER if memory in data.runs["memory"].unique().to_list()]


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        trees = []
        for memory in _memories(part):
            paths = _paths(part.runs, memory)
            tree = _tree.fit(paths)
            said = f"{_MEMORY[memory]}, {counted(paths.height, 'path')}"
            if tree is not None:
                said += f"; five-fold accuracy {tree.mean:.1%} (median {tree.median:.1%})"
            trees.append(_draw.draw(tree, said))
        return alt.vconcat(*trees, spacing=30)

    return charts.worlds(
        data,
        panel,
        "BBR or CUBIC: which gives more goodput?",
        "condition (left: true), paths, [won by BBR, by CUBIC], decision; blue: BBR, orange: CUBIC",
        rigid=True,
    )


def _texts(data: Data) -> dict[str, str]:
    """The trees as JSON and as rules."""
    about, rules = {}, []
    for world in data.worlds:
        for memory in _memories(data.of(world)):
            tree = _tree.fit(_paths(data.of(world).runs, memory))
            if tree is None:
                continue
            about[f"{world} {memory}"] = tree.about()
            rules.append(
                f"# {world}, {_MEMORY[memory]}; right on {tree.mean:.1%} of unseen paths "
                f"(mean of {len(tree.folds)} folds)\n{tree.rules()}"
            )
    return {"trees.json": json.dumps(about, indent=1), "rules.txt": "\n".join(rules)} if rules else {}


def _judge(data: Data) -> list[Check]:
    def winner(runs: pl.DataFrame, *, deep: bool) -> float:
        """The share of paths with a buffer above (below) the BDP that CUBIC (BBR) wins."""
        frame = _paths(runs, _grid.MAX).filter((pl.col("buffer_bdp") >= 1) == deep)
        return _grid.share(frame, pl.col("bbr_wins") != deep)

    checks = [
        within(
            "Paths with a BDP above the buffer on which BBR is ahead",
            _grid.each_seed(data.runs, lambda runs: winner(runs, deep=False)),
            paper="large BDP, small buffer: BBR",
            least=0.6,
            unit="of paths",
            shape=True,
        ),
        within(
            "Paths with a buffer above the BDP on which CUBIC is ahead",
            _grid.each_seed(data.runs, lambda runs: winner(runs, deep=True)),
            paper="small BDP, large buffer: CUBIC",
            least=0.6,
            unit="of paths",
            shape=True,
        ),
    ]
    trees: dict[str, _tree.Tree | None] = {}
    for memory in _memories(data):
        paths = _paths(data.runs, memory)
        if paths.height < _ENOUGH:
            continue
        trees[memory] = _tree.fit(paths)
        checks += _of_tree(memory, trees[memory], paths)
    if len(trees) == len(_PAPER):
        low, high = (_folds(trees[memory]) for memory in _PAPER)
        checks.append(
            more(
                "Accuracy with default memory divided by that with maximum memory",
                [sum(high) / len(high)] if high else [],
                [sum(low) / len(low)] if low else [],
                paper="90.0 % over 81.3 %",
            )
        )
    return checks


def _of_tree(memory: str, tree: _tree.Tree | None, paths: pl.DataFrame) -> list[Check]:
    mean, median = _PAPER[memory]
    folds = _folds(tree)
    checks = [
        within(
            f"Mean accuracy over five folds, {_MEMORY[memory]}",
            folds,
            paper=f"{mean} %",
            least=mean - _NEAR_PCT,
            most=mean + _NEAR_PCT,
            unit="%",
        ),
        within(
            f"Median accuracy over five folds, {_MEMORY[memory]}",
            tree.median * 100 if tree else float("nan"),
            paper=f"{median} %",
            least=median - _NEAR_PCT,
            most=median + _NEAR_PCT,
            unit="%",
        ),
    ]
    if memory == _grid.MAX:
        ratios: dict[str, float] = {}
        if tree is not None:
            told = paths.with_columns(pl.Series("decision", tree.decisions))
            ratios = {
                str(name): float(part["buffer_bdp"].median() or 0.0)  # type: ignore[arg-type]
                for (name,), part in told.group_by("decision")
            }
        checks += [
            within(
                "Accuracy minus that of always choosing the more frequent winner",
                (tree.mean - tree.majority) * 100 if tree else float("nan"),
                paper="conditions decide",
                least=5.0,
                unit="points",
                shape=True,
            ),
            more(
                "Median buffer, in BDP, of paths that the tree assigns to CUBIC, divided by that of BBR's",
                [ratios.get("CUBIC", 0.0)],
                [ratios.get("BBR", float("nan"))],
                paper="small BDP and large buffer to CUBIC",
                least=4,
            ),
        ]
    return checks


def _explain(data: Data) -> list[str]:
    """How certain the winners are: a tree can only learn winners on which the runs of a path agree."""
    runs = data.runs
    said = _where_bbr_is_not(_paths(runs, _grid.MAX)) if runs.height else []
    for memory in _memories(data) if runs.height else ():
        paths = _paths(runs, memory)
        wins = [_paths(part, memory) for _, part in runs.group_by("seed", maintain_order=True)]
        title = f"{_MEMORY[memory][0].upper()}{_MEMORY[memory][1:]}"
        within_1, within_3 = (
            _grid.percent(_grid.share(paths, pl.col("gain_pct").abs() < points)) for points in (1, 3)
        )
        said.append(
            f"{title}: the winner is ahead by less than 1 % on {within_1} and by less than 3 % on {within_3} "
            "of the paths. Such winners are certain in simulation and chance in a test bed."
        )
        if len(wins) > 1:
            said.append(
                f"The {len(wins)} runs of a path agree on the winner on {_agreement(wins)} of the paths."
            )
        if paths.height >= _ENOUGH:
            noisy = ", ".join(
                f"{number(_noisy_accuracy(paths, spread))} % at {number(100 * spread)} %"
                for spread in _SPREADS
            )
            said.append(
                f"Mean accuracy with random variation of each goodput, by standard deviation: {noisy}."
            )
    return said


def _where_bbr_is_not(paths: pl.DataFrame) -> list[str]:
    """For paths with a BDP above the buffer: where BBR is ahead, and where it is not."""
    shallow = paths.filter(pl.col("buffer_bdp") < 1)
    far = pl.col("buffer_bdp") < 0.25
    kinds = {
        "where the BDP is more than four times the buffer": shallow.filter(far),
        "where it is one to four times": shallow.filter(~far),
    }
    shares = [
        f"{_grid.percent(_grid.share(part, pl.col('bbr_wins')))} of {counted(part.height, 'path')} {kind}"
        for kind, part in kinds.items()
        if part.height
    ]
    return [f"With a BDP above the buffer BBR is ahead on {'; '.join(shares)}."] if shares else []


def _agreement(wins: Sequence[pl.DataFrame]) -> str:
    """The share of paths on which all runs have the same winner, in words."""
    frame = pl.concat(one.select(*_grid.PATH, "bbr_wins") for one in wins)
    same = frame.group_by(*_grid.PATH).agg(pl.col("bbr_wins").n_unique() == 1)
    return _grid.percent(_grid.share(same, pl.col("bbr_wins")))


def _noisy_accuracy(paths: pl.DataFrame, spread: float) -> float:
    """Mean accuracy over five folds, per cent, with this variation of goodput; NaN without a tree."""
    accuracies = []
    for seed in range(_DRAWS):
        random = Random(seed)
        leads = [
            bbr * random.gauss(1, spread) > cubic * random.gauss(1, spread)
            for bbr, cubic in paths.select("bbr1", "cubic").rows()
        ]
        tree = _tree.fit(paths.with_columns(pl.Series("bbr_wins", leads)))
        accuracies.append(100 * tree.mean if tree else float("nan"))
    return sum(accuracies) / len(accuracies)


def _folds(tree: _tree.Tree | None) -> list[float]:
    return [one * 100 for one in tree.folds] if tree else []


CLAIM = Claim(
    source="figure 4",
    modules={"sklearn": INSTALL},
    says="The median and mean classification accuracy for the decision tree is 81.9% and 81.3% under 5-fold "
    "cross validation. Under the OS's default TCP memory sizes, they increase to 90.2% and 90.0%. The "
    "left branch indicates the region where BDP is small and buffer is large, under which Cubic results "
    "in higher goodput. The right branch indicates the region where BDP is large and buffer size is "
    "small.",
    worlds=("sim", "kernel"),
    grid=_grid.grid(
        _grid.BUFFERS_KB,
        memories=(_grid.MAX, _grid.DEFAULT),
        tiny={"buffer_kb": (100, 1000), "memory": (_grid.MAX,)},
        # The rates that the emulator carries on time.
        in_wall_time={
            "rate_mbps": (10, 50, 100),
            "rtt_ms": (25, 100, 200),
            "buffer_kb": (100, 1000, 10_000),
            "memory": (_grid.MAX,),
            "seconds": (20,),
        },
    ),
    measure=_grid.measure,
    figure=_figure,
    judge=_judge,
    texts=_texts,
    explain=_explain,
    look_at="Start at the top and go left if the condition is true. Darker leaves are more certain.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
)
