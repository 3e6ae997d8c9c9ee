"""The cost of ProbeRTT.

Question: how much time and throughput does a bulk flow spend on measuring the RTT?
Method: one BBR flow for two minutes on 100 Mbit/s, 40 ms with a buffer of 1 BDP.
Prediction: about 98 % of the time in ProbeBW and 2 % in ProbeRTT, 200 ms in every 10 s, with a window of
four packets.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_STARTED_S = 2.0


def _document(seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"},
        "flows": [{"controller": "bbr1"}],
        "record": {"interval": "10 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.over_time(trial.run).filter(pl.col("time_s") >= _STARTED_S)
    probing = frame.filter(pl.col("phase") == "probe_rtt")
    phases = take.stretches(frame) if frame.height else None
    begins = [] if phases is None else phases.filter(pl.col("phase") == "probe_rtt")["start_s"].to_list()
    in_bw = frame.filter(pl.col("phase").str.starts_with("probe_bw"))
    whole = take.delivered_mbps(frame)
    return {
        "probe_bw": in_bw.height / frame.height if frame.height else None,
        "probe_rtt": probing.height / frame.height if frame.height else None,
        "period_s": (begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None,
        "least_cwnd": take.least(probing, "cwnd_segments"),
        "goodput_part": None if whole is None else whole / (100 * take.payload_share(trial)),
    }


def series(trial: Trial) -> pl.DataFrame:
    frame = take.over_time(trial.run)
    shown = frame.filter(pl.col("time_s").is_between(9, 23))
    return shown.select("time_s", "inflight_kb", "rtt_ms").gather_every(2)


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("time_s:Q", title="time since the SYN, s", scale=alt.Scale(nice=False, zero=False))
        base = alt.Chart(charts.values(part.series)).encode(x=x)
        parts = (
            base.mark_line(strokeWidth=1, color=colour)
            .encode(y=alt.Y(f"{column}:Q", title=title))
            .properties(width=charts.WIDTH, height=120)
            for column, title, colour in (
                ("inflight_kb", "inflight, KB", "#009e73"),
                ("rtt_ms", "RTT, ms", "#0072b2"),
            )
        )
        return alt.vconcat(*parts, spacing=8)

    return charts.worlds(
        data,
        panel,
        "Two ProbeRTTs of a bulk flow",
        "100 Mbit/s, 40 ms; the paper’s ProbeRTT: four packets for 200 ms, every 10 s",
    )


def judge(data: Data) -> list[Check]:
    return [
        Statement("about 98 %").within("time in ProbeBW", data.values("probe_bw"), least=0.965, most=0.99),
        Statement("200 ms in 10 s").within(
            "time in ProbeRTT", data.values("probe_rtt"), least=0.015, most=0.035
        ),
        Statement("10 s").within(
            "time from one ProbeRTT to the next", data.values("period_s"), least=9.5, most=11, unit="s"
        ),
        Statement("four packets").within(
            "window in ProbeRTT", data.values("least_cwnd"), least=4, most=4, unit="packets"
        ),
        Statement("the vast majority of their time").shape(
            "time in ProbeBW (direction)", data.values("probe_bw"), least=0.9
        ),
        Statement("a penalty of roughly 2 %").within(
            "goodput divided by the link's payload rate, including ProbeRTT",
            data.values("goodput_part"),
            least=0.96,
            most=0.99,
        ),
    ]


CLAIM = Claim(
    source="appendix, Steady-state behavior",
    says="BBR was designed to spend the vast majority of its time (about 98 percent) in ProbeBW and the "
    "rest in ProbeRTT. ProbeRTT lasts long enough (at least 200 ms) to allow flows with different RTTs to "
    "have overlapping ProbeRTT states, while still being short enough to bound the performance penalty to "
    "roughly 2 percent (200 ms/10 seconds).",
    grid=Grid(factors={"seconds": (120,)}, tiny={"seconds": (23,)}, document=_document),
    worlds=("sim", "kernel"),
    # Only BBR has these phases: another controller would miss each check, whatever it asks.
    wrong=("bbr1:min_rtt_window_s=1", "bbr1:probe_rtt_ms=2000"),
    look_at="Inflight should show two gaps, 10 s apart and a fifth of a second wide.",
)
