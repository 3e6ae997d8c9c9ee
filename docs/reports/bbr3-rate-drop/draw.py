"""Draws the figures of docs/reports/bbr3-rate-drop.md: `python docs/reports/bbr3-rate-drop/draw.py`.

They are runs of the scenarios beside this file, with seed 1.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

import fullpipe as fp
from fullpipe import files
from fullpipe.report.figures import svg
from fullpipe_studies import charts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "bench"))
drops = importlib.import_module("drops")
REPAIRED = "bbr3:cut_probe_advances=1,renewal_by_eighth=1"
FORMS = {one: drops.CONTROLLERS[one] for one in ("bbr3", "bbr3:profile=linux", REPAIRED, "bbr1")}
COLOURS = {"draft": "#d55e00", "Google": "#009e73", "repaired": "#0072b2", "BBRv1": "#888888"}
DROP_S, WIDTH, HEIGHT = 20, 560, 130


def drawn(frame: pl.DataFrame, y: str, title: str) -> Any:
    """Lines of the forms of BBR, in their colours and dashes."""
    names = frame["form"].unique(maintain_order=True).to_list()
    colours = alt.Scale(domain=names, range=[COLOURS[one] for one in names])
    dashes = alt.Scale(
        domain=names, range=[[[1, 0], [6, 2], [3, 2], [1, 2]][list(COLOURS).index(one)] for one in names]
    )
    return (
        alt.Chart(charts.values(frame))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title="seconds after the drop", scale=alt.Scale(nice=False)),
            y=alt.Y("y:Q", title=y),
            color=alt.Color("form:N", scale=colours, legend=charts.legend()),
            strokeDash=alt.StrokeDash("form:N", scale=dashes, legend=charts.legend()),
        )
        .properties(width=WIDTH, height=HEIGHT, title=alt.TitleParams(title, fontSize=12))
    )


def over_time(name: str, title: str) -> alt.TopLevelMixin:
    """Estimate and queue of each form, alone, in a scenario."""
    rates, queues = [], []
    for run in fp.run(HERE / f"{name}.toml", seeds=1).runs:
        form = FORMS[run.label]
        after = (pl.col("time_s") - DROP_S).alias("x")
        rates.append(
            run.flow_series()
            .filter((pl.col("time_s") >= DROP_S - 5) & pl.col("bandwidth_bps").is_not_null())
            .select(after, (pl.col("bandwidth_bps") / 1e6).alias("y"), pl.lit(form).alias("form"))
        )
        queues.append(
            run.link_series()
            .filter(pl.col("time_s") >= DROP_S - 5)
            .select(after, (pl.col("queue_bytes") * 8e3 / 5e6).alias("y"), pl.lit(form).alias("form"))
        )
    return alt.vconcat(
        drawn(pl.concat(rates), "Mbit/s", "the estimate, bw"),
        drawn(pl.concat(queues), "ms at 5 Mbit/s", "the bottleneck's queue"),
        title=title,
    )


DRAWINGS = {
    "deep": lambda: over_time("deep", "50 to 5 Mbit/s with a buffer of 4 BDP"),
    "standing": lambda: over_time("standing", "50 to 5 Mbit/s with a buffer of 1 BDP"),
}


def main() -> None:
    """Draws all, or those that are named."""
    for name in sys.argv[1:] or DRAWINGS:
        text = svg.picture(charts.spec(DRAWINGS[name]()))
        files.write_named(HERE / f"{name}.svg", text.encode())
        print(HERE / f"{name}.svg")


if __name__ == "__main__":
    main()
