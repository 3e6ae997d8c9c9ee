"""Draws the pictures of docs/explanation/bbr3.md: `python docs/explanation/bbr3/draw.py [FOLDER]`.

Each shows one thing that BBRv3 does, in a run of the simulator with seed 1. `DRAWINGS` names them.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

import fullpipe as fp
from fullpipe_studies import charts
from fullpipe_studies.charts import picture

RATE, RTT = "50 Mbit/s", "40 ms"
# The product of the two in packets of 1,500 bytes, and the rate of payload.
BDP, PAYLOAD_MBIT = 50e6 * 0.04 / 8 / 1500, 50 * 1448 / 1500
_WIDTH, _HEIGHT = 620, 130
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73")
# What a field's name cannot have.
_PLAIN = str.maketrans(".:[],;'", "       ")
_PHASES = {
    "startup": ("Startup", "#d0e4f5"),
    "drain": ("Drain", "#f6d5c3"),
    "probe_bw_down": ("Down", "#f9e3b4"),
    "probe_bw_cruise": ("Cruise", "#f2f2f2"),
    "probe_bw_refill": ("Refill", "#d3ecd3"),
    "probe_bw_up": ("Up", "#a9d8b8"),
    "probe_rtt": ("ProbeRTT", "#e3cfe8"),
}


def run(flows: Sequence[dict[str, Any]], seconds: float, interval: str = "10 ms", **path: Any) -> fp.Run:
    """A run over one bottleneck."""
    return fp.run(
        {
            "duration": f"{seconds} s",
            "path": {"rate": RATE, "rtt": RTT, "buffer": "1 bdp"} | path,
            "flows": list(flows),
            "record": {"interval": interval},
        }
    ).runs[0]


def lines(series: pl.DataFrame, columns: dict[str, pl.Expr], begin: float, end: float) -> pl.DataFrame:
    """Columns of a series between two times: x, y, line."""
    part = series.filter(pl.col("time_s").is_between(begin, end))
    frames = [
        part.select(
            pl.col("time_s").alias("x"), column.cast(pl.Float64).alias("y"), pl.lit(name).alias("line")
        )
        for name, column in columns.items()
    ]
    return pl.concat(frames).filter(pl.col("y").is_not_null() & pl.col("y").is_finite())


def phases(series: pl.DataFrame, begin: float, end: float) -> pl.DataFrame:
    """When each phase begins and ends: from, to, phase."""
    part = series.filter(pl.col("time_s").is_between(begin, end)).select("time_s", "phase")
    spans: list[dict[str, Any]] = []
    for at, phase in part.iter_rows():
        if not spans or spans[-1]["phase"] != phase:
            spans.append({"from": at, "to": at, "phase": phase})
        spans[-1]["to"] = at
        if len(spans) > 1:
            spans[-2]["to"] = spans[-1]["from"]
    return pl.DataFrame(spans)


def panel(frame: pl.DataFrame, title: str, y: str, shades: pl.DataFrame | None = None) -> Any:
    """Lines over time, on the phases that a flow went through."""
    # Panels whose fields have different names have legends of their own.
    line = f"in {title}".translate(_PLAIN)
    frame = frame.rename({"line": line})
    names = frame[line].unique(maintain_order=True).to_list()
    colours = alt.Scale(domain=names, range=list(_COLOURS[: len(names)]))
    x = alt.Scale(domain=[frame["x"].min(), frame["x"].max()], nice=False)
    drawn = (
        alt.Chart(alt.InlineData(values=frame.to_dicts()))
        .mark_line(strokeWidth=1.3)
        .encode(
            x=alt.X("x:Q", title="time, s", scale=x),
            y=alt.Y("y:Q", title=y),
            color=alt.Color(f"{line}:N", scale=colours, legend=charts.legend()),
        )
    )
    if shades is not None:
        present = [name for name in _PHASES if name in shades["phase"]]
        fill = alt.Scale(
            domain=[_PHASES[name][0] for name in present], range=[_PHASES[name][1] for name in present]
        )
        named = shades.with_columns(pl.col("phase").replace_strict({k: v[0] for k, v in _PHASES.items()}))
        back = (
            alt.Chart(alt.InlineData(values=named.to_dicts()))
            .mark_rect(opacity=1)
            .encode(x=alt.X("from:Q", scale=x), x2="to:Q", fill=alt.Fill("phase:N", scale=fill, title=None))
        )
        drawn = alt.layer(back, drawn).resolve_scale(color="independent", fill="independent")
    return drawn.properties(width=_WIDTH, height=_HEIGHT, title=alt.TitleParams(title, fontSize=12))


def stacked(title: str, *panels: Any) -> alt.TopLevelMixin:
    """A picture of several panels, one below the other, each with legends of its own."""
    whole: alt.TopLevelMixin = (
        alt.vconcat(*panels, spacing=12)
        .resolve_scale(color="independent", fill="independent", x="independent")
        .properties(title=title)
    )
    return whole


def behaviour(one: fp.Run, title: str, begin: float, end: float) -> alt.TopLevelMixin:
    """Rates, volumes and the queue of the first flow, on its phases."""
    series = one.flow_series().filter(pl.col("flow") == one.flow_series()["flow"][0])
    shades = phases(series, begin, end)
    rates = {
        "pacing rate": pl.col("pacing_bps") / 1e6,
        "estimate (bw)": pl.col("bandwidth_bps") / 1e6,
        "delivery rate": pl.col("delivery_bps") / 1e6,
    }
    volumes = {"window": pl.col("cwnd_segments"), "in flight": pl.col("inflight_segments")}
    queue = lines(one.link_series(), {"queueing delay": pl.col("queue_delay_ms")}, begin, end)
    return stacked(
        title,
        panel(lines(series, rates, begin, end), "rates", "Mbit/s", shades),
        panel(lines(series, volumes, begin, end), f"volumes; one BDP is {BDP:.0f}", "packets", shades),
        panel(queue, "the bottleneck's queue", "ms", shades),
    )


def goodputs(one: fp.Run, bin_s: float) -> pl.DataFrame:
    """The goodput of each flow over bins: x, y, line."""
    at = (pl.col("time_s") / bin_s).floor() * bin_s
    last = one.flow_series()["time_s"].max()
    ends = (
        one.flow_series()
        .group_by(pl.col("flow").alias("line"), at.alias("x"), maintain_order=True)
        .agg(pl.col("delivered_bytes").last())
        .filter(pl.col("x") + bin_s <= last)
    )
    grown = pl.col("delivered_bytes") - pl.col("delivered_bytes").shift(1).fill_null(0).over("line")
    return ends.select("x", (grown * 8e-6 / bin_s).alias("y"), "line")


def startup() -> alt.TopLevelMixin:
    """Startup fills the pipe and a queue, and Drain empties the queue."""
    return behaviour(run([{"controller": "bbr3"}], 1.2), "Startup and Drain", 0.04, 1.0)


def cycle() -> alt.TopLevelMixin:
    """A probe for bandwidth, before there is a bound."""
    one = run([{"controller": "bbr3"}], 5)
    return behaviour(one, "ProbeBW: Cruise, Refill, Up, Down", 1.8, 4.2)


def probe_rtt() -> alt.TopLevelMixin:
    """Every five seconds half the flight for 200 ms and a round."""
    return behaviour(run([{"controller": "bbr3"}], 6.5), "ProbeRTT", 4.6, 6.2)


def bound() -> alt.TopLevelMixin:
    """Probes that lose set the long-term bound, which caps the window."""
    one = run([{"controller": "bbr3"}], 11, buffer="0.3 bdp")
    series = one.flow_series()
    shades = phases(series, 0.04, 10.5)
    volumes = {"window": pl.col("cwnd_segments"), "in flight": pl.col("inflight_segments")}
    lost = {"retransmitted so far": pl.col("retransmits")}
    return stacked(
        "A buffer of 0.3 BDP: probes lose, and the bound of the last one caps the window",
        panel(lines(series, volumes, 0.04, 10.5), f"volumes; one BDP is {BDP:.0f}", "packets", shades),
        panel(lines(series, lost, 0.04, 10.5), "losses", "packets", shades),
    )


def two() -> alt.TopLevelMixin:
    """Two flows; the second one starts later."""
    flows = [
        {"controller": "bbr3", "label": "first"},
        {"controller": "bbr3", "label": "second", "start": "10 s"},
    ]
    one = run(flows, 60, "50 ms", buffer="2 bdp")
    queue = lines(one.link_series(), {"queueing delay": pl.col("queue_delay_ms")}, 0, 60)
    return stacked(
        "Two flows, a buffer of 2 BDP",
        panel(goodputs(one, 1.0), "goodput", "Mbit/s"),
        panel(queue, "the bottleneck's queue", "ms"),
    )


def cubic() -> alt.TopLevelMixin:
    """Beside CUBIC."""
    flows = [{"controller": "bbr3", "label": "bbr3"}, {"controller": "cubic", "label": "cubic"}]
    panels = [
        panel(
            goodputs(run(flows, 60, "50 ms", buffer=buffer), 1.0), f"a buffer of {message}", "goodput, Mbit/s"
        )
        for buffer, message in (("1 bdp", "1 BDP"), ("4 bdp", "4 BDP"))
    ]
    return stacked("Beside CUBIC", *panels)


def shallow() -> alt.TopLevelMixin:
    """A buffer of a tenth of the product, beside BBRv1 alone on it."""
    names = ("bbr1", "bbr3", "cubic")
    runs = {name: run([{"controller": name, "label": name}], 20, "50 ms", buffer="0.1 bdp") for name in names}
    rates = pl.concat([goodputs(one, 1.0) for one in runs.values()])
    lost = pl.concat(
        [lines(one.flow_series(), {name: pl.col("retransmits")}, 0, 20) for name, one in runs.items()]
    )
    return stacked(
        "A buffer of 0.1 BDP, each flow alone",
        panel(rates, "goodput", "Mbit/s"),
        panel(lost, "retransmitted so far", "packets"),
    )


DRAWINGS: dict[str, Callable[[], alt.TopLevelMixin]] = {
    "startup": startup,
    "cycle": cycle,
    "probe_rtt": probe_rtt,
    "bound": bound,
    "two": two,
    "cubic": cubic,
    "shallow": shallow,
}


def main() -> None:
    """Draws all pictures into a folder, by default the one that this file is in."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.png").write_bytes(picture(draw()))


if __name__ == "__main__":
    main()
