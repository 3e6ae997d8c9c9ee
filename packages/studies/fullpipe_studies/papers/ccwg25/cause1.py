"""ProbeBW_UP prolongs its own rounds.

Question: how long is the queue that a bandwidth probe builds, and how long does the probe take?
Method: one flow for 60 s on 100 Mbit/s, 50 ms and on 1 Gbit/s, 10 ms (20 s on 10 Gbit/s, 10 ms) with a
buffer of 8 BDP and without jitter. Every phase in which the flow sends at 1.25 times its estimate is
measured, from 5 s on.
Prediction: BBRv1 probes for one RTTmin and builds a queue of a quarter RTTmin. BBRv3 probes for three
rounds, which the queue prolongs, and its peaks are higher. CUBIC, which has no such phase, is drawn beside.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_UP = "probe_bw_up"
# What a round at 1.25 times the bandwidth leaves in the queue.
_OF_A_ROUND = 0.25


def _document(controller: str, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller}],
        rate_mbps=rate_mbps,
        buffer="8 bdp",
        seconds=_path.lasts_s(rate_mbps, seconds),
        # At most 20 000 samples a run.
        interval_ms=5 if rate_mbps == _path.SLOW else 3,
    )


def _probes(trial: Trial) -> list[tuple[float, float]]:
    """The length and the peak queue of each complete probe, both in RTTmin."""
    rtt_ms = _path.RTT_MS[trial.factors["rate_mbps"]]
    frame = take.over_time(trial.run).filter(
        pl.col("time_s") >= min(_path.STEADY_S, trial.factors["seconds"] / 3)
    )
    phases = take.stretches(frame)
    # The first and the last may be incomplete.
    ups = phases.filter(pl.col("phase") == _UP).select("start_s", "end_s").rows()[1:-1]
    found = []
    for start_s, end_s in ups:
        # The last packets of the phase are in the queue half a round trip later.
        probe = frame.filter(pl.col("time_s").is_between(start_s, end_s + rtt_ms / 1e3))
        peak = take.most(probe, "rtt_ms")
        if peak is not None:
            found.append(((end_s - start_s) * 1e3 / rtt_ms, peak / rtt_ms - 1))
    return found


def measure(trial: Trial) -> Row:
    probes = pl.DataFrame(_probes(trial), schema={"rtts": pl.Float64, "peak": pl.Float64}, orient="row")
    return {
        "up_rtts": take.median(probes, "rtts"),
        "peak_rtts": take.median(probes, "peak"),
        "probes": probes.height,
    }


series = _path.drawn


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        if "rate_mbps" in frame.columns:
            frame = frame.filter(pl.col("rate_mbps") == _path.SLOW)
        return _draw.queues(frame, "controller", {name: name for name in _path.CONTROLLERS}, _OF_A_ROUND)

    return charts.worlds(
        data,
        panel,
        "The queue that bandwidth probes build",
        "100 Mbit/s, 50 ms, 8 BDP, no jitter; dashed: a round at 1.25",
    )


def judge(data: Data) -> list[Check]:
    def at(column: str, controller: str, rate: int = _path.SLOW) -> list[float]:
        return data.values(column, controller=controller, rate_mbps=rate)

    checks = [
        Statement("estimated bandwidth · 1.25").shape(
            "BBRv1: peak queue of a probe (direction)",
            at("peak_rtts", "bbr1"),
            least=0.1,
            most=0.6,
            unit="RTTmin",
        ),
        Statement("BBRv3 creates higher peaks not present to that extent with BBRv1").within(
            "BBRv1: peak queue of a probe", at("peak_rtts", "bbr1"), least=0.15, most=0.35, unit="RTTmin"
        ),
        Statement("queue16: each phase normally lasts for the estimated RTprop").within(
            "BBRv1: length of a probe", at("up_rtts", "bbr1"), least=0.8, most=1.6, unit="RTTmin"
        ),
    ]
    for name in _path.VARIANTS:
        checks += [
            *Statement("3 RTTs, prolonged by the queue").both(
                f"{name}: length of a probe", at("up_rtts", name), direction=2, least=3, most=6, unit="RTTmin"
            ),
            *(
                Statement("BBRv3 creates higher peaks not present to that extent with BBRv1").more(
                    f"Peak queue of a probe at {_path.TITLES[rate]}: that of {name} divided by BBRv1's",
                    at("peak_rtts", name, rate),
                    at("peak_rtts", "bbr1", rate),
                    least=1.25,
                )
                for rate in _path.rates_of(data)
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for rate in _path.rates_of(data):
            length, peak, count = data.means(
                "up_rtts", "peak_rtts", "probes", controller=name, rate_mbps=rate
            )
            facts.append(
                f"{name} at {_path.TITLES[rate]}: {number(count)} probes a run, of {number(length)} RTTmin "
                f"with peaks of {number(peak)} RTTmin (medians)."
            )
    return facts


CLAIM = Claim(
    source="1st Cause: ProbeBW_UP Phase",
    says="1st Cause: ProbeBW_UP Phase: estimated bandwidth times 1.25, for 3 RTTs. Self-induced queuing "
    "delay prolongs round-trips. BBRv3 creates higher peaks not present to that extent with BBRv1.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"controller": _path.CONTROLLERS, "rate_mbps": tuple(_path.RTT_MS), "seconds": (60,)},
        quick={"rate_mbps": (_path.SLOW, _path.FAST), "seconds": (30,)},
        tiny={"rate_mbps": (_path.SLOW,), "seconds": (12,)},
        in_wall_time={**_path.IN_WALL_TIME, "controller": _path.BBRS},
        document=_document,
    ),
    wrong=("bbr1", "bbr1:probe_gain=1.1"),
    look_at="How high are the peaks compared with the dashed line?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
