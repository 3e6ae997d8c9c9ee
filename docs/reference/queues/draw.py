"""Draws the pictures of queues.md, and Copa's: `python docs/reference/queues/draw.py [FOLDER]`.

Each shows what its subject is known for, in runs of the simulator with seed 1. `DRAWINGS` names them.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

import fullpipe as fp
from fullpipe.report.figures import theme
from fullpipe_studies import charts
from fullpipe_studies.charts import picture

RATE, RTT = "10 Mbit/s", "100 ms"
# Few flows, then many for a third of the time, then few again.
FEW, MANY = 3, 30
_COLOURS = (theme.QUIET, "#0072b2", "#d55e00", "#009e73")
_WIDTH, _HEIGHT = 270, 150
# What a field's name cannot have.
_PLAIN = str.maketrans(".:[],;", "      ")


def run(queue: str, flows: Sequence[dict[str, Any]], seconds: float, **path: Any) -> fp.Run:
    """A run over one bottleneck with this discipline. `ecn` is the hosts'; the rest is the path's."""
    ecn = path.pop("ecn", False)
    return fp.run(
        {
            "duration": f"{seconds} s",
            "path": {"rate": RATE, "rtt": RTT, "buffer": "1 bdp", "queue": queue} | path,
            "hosts": {"ecn": ecn},
            "flows": list(flows),
            "record": {"interval": "10 ms" if seconds <= 30 else "20 ms"},
        }
    ).runs[0]


def waiting(one: fp.Run, label: str, bin_s: float) -> pl.DataFrame:
    """The queue's delay, averaged over bins: columns x, y, line."""
    return _binned(one.link_series().with_columns(pl.lit(label).alias("line")), "queue_delay_ms", bin_s)


def round_trips(one: fp.Run, names: dict[str, str], bin_s: float) -> pl.DataFrame:
    """The smoothed RTT of flows, by their labels, averaged over bins."""
    series = one.flow_series().filter(pl.col("flow").is_in(list(names)))
    return _binned(series.with_columns(pl.col("flow").replace_strict(names).alias("line")), "srtt_ms", bin_s)


def goodputs(one: fp.Run, names: dict[str, str], bin_s: float) -> pl.DataFrame:
    """The goodput of flows, by their labels, over bins."""
    at = (pl.col("time_s") / bin_s).floor() * bin_s
    ends = (
        one.flow_series()
        .filter(pl.col("flow").is_in(list(names)))
        .group_by(pl.col("flow").replace_strict(names).alias("line"), at.alias("x"), maintain_order=True)
        .agg(pl.col("delivered_bytes").last())
    )
    # The last bin may be incomplete.
    ends = ends.filter(pl.col("x") + bin_s < one.flow_series()["time_s"].max())
    grown = pl.col("delivered_bytes") - pl.col("delivered_bytes").shift(1).fill_null(0).over("line")
    return ends.select("x", (grown * 8e-6 / bin_s).alias("y"), "line")


def _binned(frame: pl.DataFrame, column: str, bin_s: float) -> pl.DataFrame:
    at = ((pl.col("time_s") / bin_s).floor() * bin_s).alias("x")
    there = frame.filter(pl.col(column).is_not_null() & pl.col(column).is_not_nan())
    return there.group_by(at, "line", maintain_order=True).agg(pl.col(column).mean().alias("y"))


def panel(
    frames: Sequence[pl.DataFrame], title: str, y: str, level: float | None = None, log: bool = False
) -> Any:
    """Lines over time, with a dashed level."""
    # Panels whose fields have different names have legends of their own.
    line = f"in {title}".translate(_PLAIN)
    frame = pl.concat([one.select("x", "y", pl.col("line").alias(line)) for one in frames])
    names = frame[line].unique(maintain_order=True).to_list()
    colours = alt.Scale(domain=names, range=list(_COLOURS[: len(names)]))
    upright = alt.Y("y:Q", title=y, scale=alt.Scale(type="log") if log else alt.Undefined)
    lines = (
        alt.Chart(alt.InlineData(values=frame.to_dicts()))
        .mark_line(strokeWidth=1.3)
        .encode(
            x=alt.X("x:Q", title="time, s"),
            y=upright,
            color=alt.Color(f"{line}:N", scale=colours, legend=charts.legend()),
        )
    )
    rule = alt.Chart(alt.InlineData(values=[{"y": level}])).mark_rule(strokeDash=[4, 3], color=theme.INK)
    made = lines if level is None else alt.layer(rule.encode(y="y:Q"), lines)
    return made.properties(width=_WIDTH, height=_HEIGHT, title=alt.TitleParams(title, fontSize=12))


def side_by_side(title: str, *panels: Any) -> alt.TopLevelMixin:
    """A picture of several panels, each with a legend of its own."""
    whole: alt.TopLevelMixin = (
        alt.hconcat(*panels, spacing=30).resolve_scale(color="independent").properties(title=title)
    )
    return whole


def crowd(seconds: float) -> list[dict[str, Any]]:
    """Few flows, and many from a third of the time to two thirds."""
    begin, end = f"{seconds / 3} s", f"{2 * seconds / 3} s"
    more = {"controller": "reno", "label": "more", "count": MANY - FEW, "start": begin, "stop": end}
    return [{"controller": "reno", "label": "few", "count": FEW}, more]


def under_load(queue: str, level: float, title: str, seconds: float) -> alt.TopLevelMixin:
    """The delay of a discipline while the load grows and falls, beside a FIFO, and its first seconds."""
    both = [run(one, crowd(seconds), seconds) for one in ("fifo", queue)]
    name = queue.partition(":")[0]
    over_time = [waiting(one, label, 0.25) for one, label in zip(both, ("fifo", name), strict=True)]
    first = [
        waiting(one, label, 0.02).filter(pl.col("x") < 3)
        for one, label in zip(both, ("fifo", name), strict=True)
    ]
    return side_by_side(
        title,
        panel(over_time, f"{FEW}, {MANY} and {FEW} NewReno flows", "queueing delay, ms", level),
        panel(first, "the first three seconds", "queueing delay, ms", level),
    )


def fifo(seconds: float) -> alt.TopLevelMixin:
    """One flow fills any buffer."""
    names = {"1 bdp": "1 BDP", "4 bdp": "4 BDP"}
    frames = {
        controller: [
            waiting(run("fifo", [{"controller": controller}], seconds, buffer=buffer), message, 0.1)
            for buffer, message in names.items()
        ]
        for controller in ("reno", "cubic")
    }
    return side_by_side(
        "fifo: one flow fills whatever buffer there is",
        *(panel(made, f"one {name} flow", "queueing delay, ms") for name, made in frames.items()),
    )


def codel(seconds: float) -> alt.TopLevelMixin:
    """CoDel returns to its target, slowly when many flows come at once."""
    return under_load("codel", 5, "codel: back to 5 ms, but slowly after many flows have come", seconds)


def pie(seconds: float) -> alt.TopLevelMixin:
    """PIE returns to its target."""
    return under_load("pie", 15, "pie: back to 15 ms, whatever the load", seconds)


def red(seconds: float) -> alt.TopLevelMixin:
    """RED's delay grows with the load; adaptive RED's does not."""
    plain, adaptive = "red:min=15 KB,max=45 KB", "red:min=15 KB,max=45 KB,adaptive=on"
    frames = [
        waiting(run(queue, crowd(seconds), seconds), message, 0.25)
        for queue, message in (("fifo", "fifo"), (plain, "red"), (adaptive, "adaptive"))
    ]
    sizes = [
        waiting(run("red", crowd(seconds), seconds, buffer=buffer), f"limit {buffer}", 0.25)
        for buffer in ("1 bdp", "4 bdp")
    ]
    return side_by_side(
        "red: the delay follows the load and the thresholds",
        panel(frames, "thresholds of 15 and 45 KB (12 and 36 ms)", "queueing delay, ms"),
        panel(sizes, "thresholds that follow from the limit", "queueing delay, ms"),
    )


def fq_codel(seconds: float) -> alt.TopLevelMixin:
    """A sparse flow does not wait behind bulk, and flows with different RTTs share alike."""
    # Two packets at a time: the receiver acknowledges a single one late.
    frames = {"size": "2896 B", "every": "40 ms"}
    call = {"controller": "fixed:cwnd=1000", "label": "call", "bursts": frames}
    bulk = [
        {"controller": "cubic", "label": "near", "rtt": "20 ms"},
        {"controller": "cubic", "label": "far", "rtt": "80 ms"},
    ]
    runs = {
        name: run(name, [call, *bulk], seconds, rtt="20 ms", buffer="100 KB")
        for name in ("fifo", "codel", "fq_codel")
    }
    delays = [round_trips(one, {"call": name}, 0.25) for name, one in runs.items()]
    shares = goodputs(runs["fq_codel"], {"near": "20 ms", "far": "80 ms"}, 1.0)
    return side_by_side(
        "fq_codel: sparse flows do not wait, and flows share alike",
        panel(delays, "RTT of a call beside two CUBIC flows", "RTT, ms", log=True),
        panel([shares], "fq_codel: goodput of the two", "goodput, Mbit/s"),
    )


def step(seconds: float) -> alt.TopLevelMixin:
    """DCTCP holds the queue at the threshold; a classic flow beside it gets little."""
    path = {"rate": "100 Mbit/s", "rtt": "5 ms", "buffer": "250 KB"}
    two = [{"controller": "dctcp", "label": "a", "count": 2}]
    frames = [
        waiting(run("fifo", [{"controller": "cubic", "count": 2}], seconds, **path), "cubic, fifo", 0.05)
    ]
    frames.append(waiting(run("step:threshold=20", two, seconds, **path), "dctcp, step", 0.05))
    mixed = [{"controller": "dctcp", "label": "dctcp"}, {"controller": "cubic", "label": "cubic"}]
    one = run("step:threshold=20", mixed, seconds, ecn=True, **path)
    shares = goodputs(one, {"dctcp": "dctcp", "cubic": "cubic"}, 0.5)
    return side_by_side(
        "step: a short queue for DCTCP, and little for what is not DCTCP",
        panel(frames, "two flows; dashed: 20 packets", "queueing delay, ms", 2.4),
        panel([shares], "DCTCP beside CUBIC with ECN", "goodput, Mbit/s"),
    )


def dualpi2(seconds: float) -> alt.TopLevelMixin:
    """DCTCP and CUBIC share alike; only CUBIC waits."""
    both = [{"controller": "dctcp:ect1=1", "label": "dctcp"}, {"controller": "cubic", "label": "cubic"}]
    one = run("dualpi2", both, seconds, rate="40 Mbit/s", rtt="20 ms", buffer="250 KB", ecn=True)
    names = {"dctcp": "dctcp (L)", "cubic": "cubic (C)"}
    return side_by_side(
        "dualpi2: L waits a millisecond, C waits for both",
        panel([round_trips(one, names, 0.25)], "RTT on a path of 20 ms", "RTT, ms"),
        panel([goodputs(one, names, 1.0)], "goodput of the two", "goodput, Mbit/s"),
    )


def unit(seconds: float) -> alt.TopLevelMixin:
    """What a queue that takes bursts whole does to a paced and an unpaced sender."""
    made = []
    for name in ("cubic", "bbr1"):
        flows = [{"controller": name, "label": name}]
        frames = [
            goodputs(
                run("fifo", flows, seconds, rate="100 Mbit/s", rtt="20 ms", buffer="10 KB", unit=one),
                {name: one},
                0.5,
            )
            for one in ("segment", "burst")
        ]
        made.append(panel(frames, f"{name}, 100 Mbit/s, 20 ms, 10 KB of buffer", "goodput, Mbit/s"))
    return side_by_side("unit: segments or bursts", *made)


def copa(seconds: float) -> alt.TopLevelMixin:
    """Copa's queue is short; jitter takes its goodput."""
    path = {"rate": "20 Mbit/s", "rtt": "40 ms"}
    alone = [
        waiting(run("fifo", [{"controller": name}], seconds, **path), name, 0.05)
        for name in ("cubic", "copa")
    ]
    flow = {"controller": "copa:mode_switching=0", "label": "copa"}
    jittery = [
        goodputs(run("fifo", [flow], seconds, jitter=jitter, **path), {"copa": f"jitter of {jitter}"}, 0.5)
        for jitter in ("0 ms", "10 ms")
    ]
    return side_by_side(
        "copa: a short queue, and little goodput where delay is no queue",
        panel(alone, "one flow, 20 Mbit/s, 40 ms", "queueing delay, ms"),
        panel(jittery, "copa without mode switching", "goodput, Mbit/s"),
    )


# The pictures, each with the length of its runs in seconds.
DRAWINGS: dict[str, tuple[Callable[[float], alt.TopLevelMixin], float]] = {
    "fifo": (fifo, 30),
    "codel": (codel, 60),
    "fq_codel": (fq_codel, 30),
    "pie": (pie, 60),
    "red": (red, 60),
    "step": (step, 10),
    "dualpi2": (dualpi2, 30),
    "unit": (unit, 15),
    "copa": (copa, 20),
}


def main() -> None:
    """Draws all pictures into a folder, by default the one that this file is in."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    for name, (draw, seconds) in DRAWINGS.items():
        (folder / f"{name}.png").write_bytes(picture(draw(seconds)))


if __name__ == "__main__":
    main()
