"""A search that goes on.

Question: do losses, delay that rises, or a small receive window end the search for the bandwidth too early?
Method: one flow on 100 Mbit/s, 100 ms with 2 BDP of buffer: with 1 % of random loss, with a path whose RTT
grows by 30 ms after 250 ms, or with a receiver whose window begins at 16 KB and grows by Linux's autotuning.
What BBR knows when its Startup ends is read, and CUBIC's window when its slow start does, as a part of what
the path holds.
Prediction: BBR finds the rate in each case. CUBIC's search ends early at losses and at delay (HyStart).

Rate, RTT, loss, delay and the first window are ours. The window was 64 KB until a control, BBR that waits one
round instead of three, was seen to pass; the checks were met with both.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 100, 100
_LOSS, _DELAY, _WINDOW = "1 % of loss", "delay rises", "small receive window"
_CASES = (_LOSS, _DELAY, _WINDOW)
_SEARCHES = ("startup", "slow_start")


def _document(controller: str, case: str, seconds: int) -> dict[str, Any]:
    path: dict[str, Any] = {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": "2 bdp"}
    if case == _LOSS:
        path["loss"] = "1 %"
    if case == _DELAY:
        path["changes"] = [{"at": "250 ms", "rtt": f"{_RTT_MS + 30} ms"}]
    hosts = {"tcp_rmem": ["4096", "32768", "33554432"]} if case == _WINDOW else {}
    return {
        "duration": f"{seconds} s",
        "path": path,
        "hosts": hosts,
        "flows": [{"controller": controller, "start_jitter": "0 s"}],
        "record": {"interval": "5 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.samples(trial.run).filter(pl.col("phase").is_not_null())
    later = frame.filter(~pl.col("phase").is_in(_SEARCHES))
    payload = take.payload_share(trial)
    carried_bps = _RATE_MBPS * 1e6 * payload
    segments = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / trial.spec["mtu_bytes"]
    return {
        "found": take.ratio(take.least(later.head(1), "bandwidth_bps"), carried_bps),
        "window": take.ratio(
            take.most(frame.filter(pl.col("phase").is_in(_SEARCHES)), "cwnd_segments"), segments
        ),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["case", "controller"], "window")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        bars = (
            alt.Chart(charts.values(ours))
            .mark_bar()
            .encode(
                x=alt.X("case:N", title=None),
                xOffset="controller:N",
                y=alt.Y("mean:Q", title="window at the search’s end, BDP"),
                color=charts.controllers(ours),
            )
        )
        return bars.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Where the search for the bandwidth ends", "100 Mbit/s, 100 ms, 2 BDP")


def judge(data: Data) -> list[Check]:
    said = {
        _LOSS: "does not exit the search upon packet loss",
        _DELAY: "or (as in CUBIC's Hystart) delay increases",
        _WINDOW: "a delivery-rate plateau that was temporarily imposed by the receive window",
    }
    return [
        *(
            Statement(said[case]).shape(
                f"BBR's estimate when Startup ends, {case}, of the link's rate",
                data.values("found", controller="bbr1", case=case),
                least=0.9,
            )
            for case in _CASES
        ),
        *(
            Statement(said[case]).shape(
                f"CUBIC's window when slow start ends, {case}",
                data.values("window", controller="cubic", case=case),
                most=0.9,
                unit="BDP",
            )
            for case in (_LOSS, _DELAY)
        ),
    ]


CLAIM = Claim(
    source="appendix, Startup behavior",
    says="BBR waits three rounds in order to have solid evidence that the sender is not detecting a "
    "delivery-rate plateau that was temporarily imposed by the receive window. BBR is more robust in "
    "discovering available bandwidth, since it does not exit the search upon packet loss or (as in CUBIC's "
    "Hystart) delay increases.",
    grid=Grid(factors={"controller": ("bbr1", "cubic"), "case": _CASES, "seconds": (5,)}, document=_document),
    worlds=("sim", "kernel"),
    # Others have no estimate of the rate.
    wrong=("bbr1:high_gain=1.25", "bbr1:full_bw_cnt=1"),
    look_at="BBR's bars should reach two BDP and more in each case.",
)
