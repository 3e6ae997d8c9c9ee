"""The bottleneck of these claims, its queue disciplines, measures of a run, and figures they share.

Delays are what a round trip takes above the empty path's (section 2.7): the sender's smoothed RTT,
averaged over samples of equal distance. Goodput is what receivers got in the same period. Both begin
after the start-up.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Data, Row, Statement, Trial, Values
from fullpipe_studies.later import alt

FIFO = "fifo"
# The disciplines with their defaults, as a scenario has them. Without ECN a step marks nothing, so it drops.
QUEUES = {
    FIFO: FIFO,
    "codel": "codel",
    "fq_codel": "fq_codel",
    "pie": "pie",
    "red": "red",
    "step": "step:drop=on",
    "dualpi2": "dualpi2",
}
DISCIPLINES = tuple(QUEUES)
MANAGED = tuple(name for name in DISCIPLINES if name != FIFO)
# Controls: no management, and a delay that no queue here reaches. Where many flows differ by chance, the
# second has the FIFO's delay on average, which leaves checks of "less" undecided.
UNMANAGED = (FIFO, "codel:target=2s")

RATE_MBPS, RTT_MS = 10, 100
SEEDS, QUICK_SEEDS = 30, 4
# The start-up is over.
AFTER_S = 10.0
# What "loses little goodput" means: at least this share of the FIFO's.
LITTLE_PCT = 90.0
BETTER = Statement("better than drop-tail (i.e., without AQM and with a BDP-sized buffer)")

COLOUR = {
    FIFO: theme.QUIET,
    "codel": "#0072b2",
    "fq_codel": "#d55e00",
    "pie": "#009e73",
    "red": "#aa4499",
    "step": "#b8860b",
    "dualpi2": "#332288",
}
_WIDTH, _HEIGHT = 300, 200
_CDF = [step / 50 for step in range(51)]


def document(
    flows: Sequence[Mapping[str, Any]],
    discipline: str,
    seconds: float,
    *,
    rate_mbps: float = RATE_MBPS,
    rtt_ms: float = RTT_MS,
    buffer: str = "1 bdp",
    ecn: bool = False,
    changes: Sequence[Mapping[str, Any]] = (),
    interval_ms: float = 20,
) -> dict[str, Any]:
    """A scenario: these flows over the bottleneck with that discipline."""
    queue = "step" if ecn and discipline == "step" else QUEUES[discipline]
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{rate_mbps} Mbit/s",
            "rtt": f"{rtt_ms} ms",
            "buffer": buffer,
            "queue": queue,
            "changes": [dict(one) for one in changes],
        },
        "hosts": {"ecn": ecn},
        "flows": [dict(one) for one in flows],
        "record": {"interval": f"{interval_ms} ms"},
    }


def steady(trial: Trial) -> float:
    """When measurements begin: after the start-up, or at half of a short run."""
    return min(AFTER_S, float(trial.factors["seconds"]) / 2)


def of(series: pl.DataFrame, name: str) -> pl.DataFrame:
    """The samples of the flows with that label, numbered or not."""
    return series.filter(pl.col("flow").str.contains(f"^{name}(-[0-9]+)?$"))


def point(
    trial: Trial,
    name: str,
    *,
    rtt_ms: float = RTT_MS,
    after_s: float | None = None,
    before_s: float = math.inf,
) -> Row:
    """The flows with that label, together: goodput_mbps and delay_ms."""
    begin = steady(trial) if after_s is None else after_s
    series = of(take.samples(trial.run, after_s=begin, before_s=before_s), name)
    rates = [take.delivered_mbps(part) for _, part in series.group_by("flow")]
    there = [rate for rate in rates if rate is not None]
    smoothed = series["srtt_ms"].drop_nulls().drop_nans()
    return {
        "goodput_mbps": math.fsum(there) if there else None,
        "delay_ms": float(smoothed.mean()) - rtt_ms if len(smoothed) else None,  # type: ignore[arg-type]
    }


def waits(trial: Trial) -> Row:
    """The bottleneck's queue: the mean, the 95th percentile of what an arrival waits, and its drops."""
    frame = take.link(trial.run, after_s=steady(trial))
    return {
        "queue_ms": take.mean(frame, "queue_delay_ms"),
        "p95_ms": take.quantile(frame, "queue_delay_ms", 0.95),
        "dropped": take.grown(frame, "dropped_packets"),
    }


def cdf(trial: Trial) -> pl.DataFrame:
    """The distribution of the queue's delay: columns queue_ms, share."""
    frame = take.link(trial.run, after_s=steady(trial))
    rows = [{"queue_ms": take.quantile(frame, "queue_delay_ms", part), "share": part} for part in _CDF]
    return pl.DataFrame(rows, schema={"queue_ms": pl.Float64, "share": pl.Float64})


# Judging.


def shares(data: Data, column: str, name: str, **where: Any) -> Values:
    """A column with that discipline in percent of the FIFO's, seed by seed."""
    ours, plain = (data.values(column, discipline=one, **where) for one in (name, FIFO))
    return ours.over(plain, 100)


def less(
    data: Data,
    what: str,
    column: str,
    name: str,
    where: str = "",
    *,
    statement: Statement = BETTER,
    least: float = 1.0,
    shape: bool = True,
    **factors: Any,
) -> Check:
    """A check that a discipline has less of something than the FIFO; `where` is the end of its words."""
    plain, ours = (data.values(column, discipline=one, **factors) for one in (FIFO, name))
    words = f"FIFO's {what} divided by that of {name}{where}"
    return statement.more(words, plain, ours, least=least, shape=shape)


def kept(
    data: Data, name: str, where: str, *, what: str = "goodput", statement: Statement = BETTER, **factors: Any
) -> Check:
    """A check that a discipline has nearly the FIFO's goodput."""
    shown = shares(data, "goodput_mbps", name, **factors)
    return statement.within(f"{name}: {what}{where}", shown, least=LITTLE_PCT, unit="% of FIFO's")


def better(
    data: Data, facts: str, *, times: float = 1.0, delay: str = "delay_ms", **where: Any
) -> list[Check]:
    """Checks that each discipline has less delay than the FIFO, and little less goodput."""
    checks = []
    for name in MANAGED:
        checks.append(less(data, "delay", delay, name, f", {facts}", least=times, **where))
        checks.append(kept(data, name, f", {facts}", **where))
    return checks


# Figures.


def colour(names: Sequence[str] = DISCIPLINES) -> "alt.Color":
    """Each discipline in its own colour."""
    scale = alt.Scale(domain=list(names), range=[COLOUR[name] for name in names])
    return alt.Color("discipline:N", scale=scale, legend=charts.legend())


def ellipse(points: Sequence[tuple[float, float]], corners: int = 48) -> list[tuple[float, float]]:
    """The 1-sigma contour of the 2D Gaussian that explains the points with the most likelihood (section 2.7).

    Its directions and half-axes are those of the covariance. Empty with fewer than three points.
    """
    if len(points) < 3:
        return []
    count = len(points)
    mean_x, mean_y = (math.fsum(one[axis] for one in points) / count for axis in (0, 1))
    # The maximum-likelihood estimate divides by the count.
    xx = math.fsum((x - mean_x) ** 2 for x, _ in points) / count
    yy = math.fsum((y - mean_y) ** 2 for _, y in points) / count
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / count
    # The covariance's Cholesky factor maps the unit circle onto the contour.
    low = math.sqrt(xx)
    cross = xy / low if low > 0 else 0.0
    rest = math.sqrt(max(0.0, yy - cross * cross))
    turns = [2 * math.pi * step / corners for step in range(corners + 1)]
    return [
        (mean_x + low * math.cos(turn), mean_y + cross * math.cos(turn) + rest * math.sin(turn))
        for turn in turns
    ]


def ellipses(frame: pl.DataFrame, title: str, *, x: str = "delay_ms", y: str = "goodput_mbps") -> Any:
    """Goodput against delay: one point a run, a circle at the median, an ellipse for each discipline."""
    there = frame.filter(pl.col(x).is_not_null() & pl.col(y).is_not_null())
    contours, medians = [], []
    for (name,), part in there.group_by("discipline", maintain_order=True):
        points = list(zip(part[x].to_list(), part[y].to_list(), strict=True))
        contours += [
            {"discipline": name, "order": order, "x": at_x, "y": at_y}
            for order, (at_x, at_y) in enumerate(ellipse(points))
        ]
        medians.append({"discipline": name, "x": part[x].median(), "y": part[y].median()})
    upright = alt.Y("y:Q", title="goodput, Mbit/s", scale=alt.Scale(zero=False))
    across = alt.X("x:Q", title="queueing delay, ms", scale=alt.Scale(zero=True))
    dots = there.select("discipline", pl.col(x).alias("x"), pl.col(y).alias("y"))

    def drawn(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.InlineData(values=rows)).encode(x=across, y=upright, color=colour())

    layers = [
        drawn(dots.to_dicts()).mark_point(filled=True, size=8, opacity=0.35),
        drawn(contours).mark_line(strokeWidth=1.4).encode(order="order:O", detail="discipline:N"),
        drawn(medians)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(tooltip=["discipline:N", "x:Q", "y:Q"]),
    ]
    return titled(alt.layer(*layers), title)


def lines(frame: pl.DataFrame, x: "alt.X", y: "alt.Y", title: str) -> Any:
    """A curve for each discipline."""
    chart = alt.Chart(charts.values(frame)).mark_line(strokeWidth=1.4, clip=True)
    return titled(chart.encode(x=x, y=y, color=colour()), title)


def distribution(frame: pl.DataFrame, title: str) -> Any:
    """The CDF of the queue's delay, a curve for each discipline."""
    x = alt.X("queue_ms:Q", title="delay of the queue, ms")
    return lines(frame, x, alt.Y("share:Q", title="share of the time"), title)


def averages(frame: pl.DataFrame, factor: str, column: str, x: "alt.X", y: "alt.Y", title: str) -> Any:
    """Means over seeds against a factor."""
    found = (
        frame.filter(pl.col(column).is_not_null())
        .group_by("discipline", factor, maintain_order=True)
        .agg(pl.col(column).mean())
    )
    base = alt.Chart(charts.values(found)).encode(x=x, y=y, color=colour())
    return titled(base.mark_line(strokeWidth=1.4) + base.mark_point(filled=True, size=32, opacity=1), title)


def boxes(frame: pl.DataFrame, column: str, y: str, title: str, scale: Any = None) -> Any:
    """The runs of each discipline as a box."""
    there = alt.Chart(charts.values(frame)).mark_boxplot(size=14)
    return titled(
        there.encode(
            x=alt.X("discipline:N", sort=list(DISCIPLINES), title=None),
            y=alt.Y(f"{column}:Q", title=y, scale=alt.Undefined if scale is None else scale),
            color=colour(),
        ),
        title,
    )


def titled(chart: Any, title: str) -> Any:
    """A panel of the usual size."""
    return chart.properties(width=_WIDTH, height=_HEIGHT, title=alt.TitleParams(title, fontSize=12))


def panels(*made: Any, columns: int = 2) -> Any:
    """Panels in rows."""
    return alt.concat(*made, columns=columns, spacing=24)
