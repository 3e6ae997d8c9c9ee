"""Flows that start late.

Question: how long does a flow that starts later wait for its fair share?
Method: two flows of one controller, the second 10 s after the first, for 60 s on 100 Mbit/s, 50 ms with
buffers of 0.8 to 8 BDP, and on 1 Gbit/s, 10 ms with 1 and 8 BDP; the same on 10 Gbit/s, 10 ms for 20 s, the
second after 7 s. Shares are
parts of the rate at which segments are acknowledged, averaged over 5 s. The flows have converged when both
stay within 10 % of a fair share (45 to 55 % each) until the end of the run. Flows that never do count with
the rest of the run, which is then the least that they need. On the first path with 1 and 8 BDP, two flows
that start together are drawn beside and not judged.
Prediction: convergence takes at least a hundred round trips, on every path and with every buffer, and until
the end of the run the later flow has less than a fair share (45 %), on average over buffers. Our own
threshold at 50 ms is 10 s.

Until its criterion was replaced, fair was a Jain's index of 0.95, which 61 and 39 % have. The replacement was
written before results with it were seen.
"""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe_studies import charts, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_LATER_S = 10.0
_BIN_S, _WINDOW_S = 1.0, 5.0
# Within a tenth of a fair share.
_FAIR = 0.1
_ROUNDS, _LONG_S = 100, 10
_FIRST, _LATE = "first", "late"
_OFTEN_BDP = (1, 8)
_FASTEST_S = 20
# Of a full packet.
_PAYLOAD = 1448 / 1500
_LATER, _TOGETHER = "late", "together"


def _lasts_s(rate_mbps: int, seconds: int) -> int:
    return _path.lasts_s(rate_mbps, seconds, _FASTEST_S)


def _later_s(start: str, seconds: float) -> float:
    """When the second flow starts."""
    return 0.0 if start == _TOGETHER else min(_LATER_S, seconds / 3)


def _document(controller: str, rate_mbps: int, buffer_bdp: float, start: str, seconds: int) -> dict[str, Any]:
    seconds = _lasts_s(rate_mbps, seconds)
    return _path.document(
        [
            {"controller": controller, "label": _FIRST},
            {"controller": controller, "label": _LATE, "start": f"{_later_s(start, seconds)} s"},
        ],
        rate_mbps=rate_mbps,
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=50,
    )


def _is_run(rate_mbps: int, buffer_bdp: float, start: str, **_others: Any) -> bool:
    often = buffer_bdp in _OFTEN_BDP
    return (rate_mbps == _path.SLOW and (often or start == _LATER)) or (often and start == _LATER)


def _late_shares(trial: Trial) -> list[tuple[float, float]]:
    """The later flow's share in each window: seconds from its start to the window's, and the share."""
    seconds = _lasts_s(trial.factors["rate_mbps"], trial.factors["seconds"])
    later_s = _later_s(trial.factors["start"], seconds)
    by_flow = sharing.acknowledged(trial.run, _BIN_S, seconds).pivot("flow", index="time_s", values="mbps")
    if not {_FIRST, _LATE} <= set(by_flow.columns):
        return []
    window = round(_WINDOW_S / _BIN_S)
    return (
        by_flow.sort("time_s")
        .select(
            (pl.col("time_s") - window * _BIN_S - later_s).alias("from_s"),
            *(pl.col(name).fill_null(0.0).rolling_mean(window) for name in (_FIRST, _LATE)),
        )
        .filter((pl.col("from_s") >= 0) & (pl.col(_FIRST) + pl.col(_LATE) > 0))
        .select("from_s", pl.col(_LATE) / (pl.col(_FIRST) + pl.col(_LATE)))
        .rows()
    )


def _converged_s(shares: Sequence[tuple[float, float]], rest_s: float) -> float | None:
    """From when on both shares stay near fair; `rest_s`, the rest of the run, if they never do."""
    # The index is 1 where the share is fair, and falls by its relative distance from it.
    found = sharing.converged_s(((at, 1 - abs(share / 0.5 - 1)) for at, share in shares), 1 - _FAIR)
    return None if found is None else min(found, rest_s)


def measure(trial: Trial) -> Row:
    seconds = _lasts_s(trial.factors["rate_mbps"], trial.factors["seconds"])
    rest_s = seconds - _later_s(trial.factors["start"], seconds)
    shares = _late_shares(trial)
    converged = _converged_s(shares, rest_s)
    return {
        "converge_s": converged,
        "late_share": math.fsum(share for _, share in shares) / len(shares) if shares else None,
        "never": None if converged is None else float(converged >= rest_s),
        "early_share": shares[0][1] if shares else None,
        "last_share": shares[-1][1] if shares else None,
    }


def series(trial: Trial) -> pl.DataFrame:
    seconds = _lasts_s(trial.factors["rate_mbps"], trial.factors["seconds"])
    return sharing.acknowledged(trial.run, _BIN_S, seconds)


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        late = part.runs.filter(pl.col("start") == _LATER)
        if "flow" in frame.columns:
            deepest = pl.col("buffer_bdp") == pl.col("buffer_bdp").max()
            frame = frame.filter((pl.col("rate_mbps") == _path.SLOW) & deepest & (pl.col("start") == _LATER))
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("mbps:Q", title="delivery rate, Mbit/s", scale=alt.Scale(domain=[0, _path.SLOW]))
        titles = {name: name for name in _path.CONTROLLERS}
        fair = _path.SLOW * _PAYLOAD / 2
        shown = _draw.panels(
            frame, "controller", titles, lambda one: _draw.lines(one, x, y, "flow", fair), columns=2
        )
        scale = alt.Scale(type="log", base=2, domain=[0.5, 8])
        rates = {
            f"{title}, second later": pl.col("rate_mbps") == rate for rate, title in _path.TITLES.items()
        }
        parts = [late.filter(of).with_columns(pl.lit(title).alias("panel")) for title, of in rates.items()]
        together = part.runs.filter(pl.col("start") == _TOGETHER)
        beside = f"{_path.TITLES[_path.SLOW]}, both at once"
        parts.append(together.with_columns(pl.lit(beside).alias("panel")))
        waits = _draw.means(
            Data(pl.concat(parts), part.series),
            alt.X("buffer_bdp:Q", title="buffer, BDP", scale=scale),
            "converge_s",
            "time until shares stay fair, s",
            ["controller", "panel", "buffer_bdp"],
            "panel",
            {title: title for title in (*rates, beside)},
            columns=2,
            domainMin=0,
        )
        return alt.vconcat(shown, waits, spacing=24).resolve_scale(
            color="independent", strokeDash="independent"
        )

    return charts.worlds(
        data,
        panel,
        "A flow that starts late",
        [
            "above: 100 Mbit/s, 50 ms, deepest buffer, one run; acknowledged in each second; dashed: fair",
            f"below: means; {charts.BARS}; those that never converge count whole",
        ],
    )


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.VARIANTS:
        for rate in _path.rates_of(data):
            late = data.values("late_share", controller=name, rate_mbps=rate, start=_LATER)
            checks.append(
                Statement("Latecomer disadvantage").shape(
                    f"{name}: the later flow's share, {_path.TITLES[rate]}, over all buffers",
                    late,
                    most=(1 - _FAIR) / 2,
                )
            )
            for buffer in sorted({*data.values("buffer_bdp", rate_mbps=rate)}):
                of = {"controller": name, "rate_mbps": rate, "buffer_bdp": buffer, "start": _LATER}
                waits = data.values("converge_s", **of)
                where = f"{_path.TITLES[rate]}, {buffer:g} BDP"
                checks.append(
                    Statement("long convergence time").shape(
                        f"{name}: time until shares stay fair, {where} (direction)",
                        waits,
                        least=_ROUNDS * _path.RTT_MS[rate] / 1e3,
                        unit="s",
                    )
                )
                if rate == _path.SLOW:
                    checks.append(
                        Statement("long convergence time").within(
                            f"{name}: time until shares stay fair, {where}", waits, least=_LONG_S, unit="s"
                        )
                    )
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.CONTROLLERS:
        for rate in _path.rates_of(data):
            for buffer in _OFTEN_BDP:
                where = {"controller": name, "rate_mbps": rate, "buffer_bdp": buffer, "start": _LATER}
                share, waits, last, never = data.means(
                    "early_share", "converge_s", "last_share", "never", **where
                )
                if not math.isnan(share):
                    facts.append(
                        f"{name} at {_path.TITLES[rate]}, {buffer} BDP: in its first {_WINDOW_S:g} s the "
                        f"later flow gets {number(100 * share)} %, in the last {number(100 * last)} %. "
                        f"Shares stay fair from {number(waits)} s after its start; {number(100 * never)} % "
                        "of the runs end before that."
                    )
    return facts


CLAIM = Claim(
    source="Latecomer Disadvantage",
    says="Latecomer disadvantage: long convergence time for flows that start later.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "buffer_bdp": _path.BUFFERS_BDP,
            "start": (_LATER, _TOGETHER),
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,)},
        tiny={"buffer_bdp": (1,), "start": (_LATER,), "seconds": (12,)},
        in_wall_time={**_path.IN_WALL_TIME, "start": (_LATER,)},
        document=_document,
        only=_is_run,
    ),
    # Two windows that are fair at once, one too small to fill the path. CUBIC is no control: the slides do
    # not compare it, and it needs as long.
    wrong=("vegas", "fixed:cwnd=100", "fixed:cwnd=300"),
    look_at="When do the two curves meet, and do they stay together? Where flows that start at once need as "
    "long, it is not the late start.",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
