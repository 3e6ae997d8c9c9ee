"""Median RTT of video-like flows.

Question: how does a video stream affect the delay of an access link?
Method: a player alone on each of 40 access paths drawn once, log-uniformly: 1 to 50 Mbit/s, RTTs of 20 to
200 ms, buffers that take 50 ms to 2 s to drain. The video has a third of the link's rate, at most 8 Mbit/s.
The player requests chunks of 5 s one by one until 30 s are buffered, then at the rate of playback, for 4
minutes. The measure is each connection's median smoothed RTT while data is in flight. The deepest buffers
are those of a quarter of the paths.
Prediction: each chunk builds a queue with CUBIC and hardly any with BBR. Both are as fast as the video
needs.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, population, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Over, Row, Statement, Trial, geometric
from fullpipe_studies.later import alt


@dataclass(frozen=True)
class _Path:
    rate_mbps: float
    rtt_ms: float
    buffer_ms: float

    def document(self) -> dict[str, Any]:
        # At least one packet.
        buffer = max(self.rate_mbps * self.buffer_ms * 125, 1500)
        return {
            "rate": f"{self.rate_mbps:.3f} Mbit/s",
            "rtt": f"{self.rtt_ms:.3f} ms",
            "buffer": f"{buffer:.0f} B",
        }

    @property
    def video_mbps(self) -> float:
        return min(self.rate_mbps / 3, 8.0)


_PATHS = population.drawn("access", 40, 9, lambda draw: _Path(draw(1, 50), draw(20, 200), draw(50, 2000)))


def _document(controller: str, path: str, seconds: int) -> dict[str, Any]:
    video = {"rate": f"{_PATHS[path].video_mbps:.6f} Mbit/s", "chunk": "5 s", "buffer": "30 s"}
    return {
        "duration": f"{seconds} s",
        "path": _PATHS[path].document(),
        "flows": [{"controller": controller, "video": video}],
        "record": {"interval": "20 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.samples(trial.run).filter(pl.col("inflight_segments") > 0)
    return {
        "rtt_ms": take.median(frame, "srtt_ms"),
        "goodput_mbps": take.goodput_mbps(trial.run),
    }


def _reductions(data: Data) -> dict[str, float]:
    """The reduction of the median RTT with BBR relative to CUBIC by path; the deepest buffers first."""
    ratios = population.by_path(data, "rtt_ms", "bbr1", "cubic")
    deepest = sorted(ratios, key=lambda path: -_PATHS[path].buffer_ms)
    return {path: 1 - ratios[path] for path in deepest}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        rows = [
            {
                "path": path,
                "buffer_ms": _PATHS[path].buffer_ms,
                "rtt_ms": _PATHS[path].rtt_ms,
                "reduction": 100 * reduction,
            }
            for path, reduction in _reductions(part).items()
        ]
        paper = alt.Chart(
            alt.InlineData(values=[{"y": 53, "said": "globally"}, {"y": 80, "said": "developing world"}])
        ).encode(y="y:Q")
        facts = paper.mark_text(align="right", baseline="bottom", dy=-2, fontSize=11, color=theme.INK)
        dots = (
            alt.Chart(alt.InlineData(values=rows))
            .mark_point(filled=True, size=60, opacity=0.9)
            .encode(
                x=alt.X(
                    "buffer_ms:Q",
                    title="time that the buffer takes to drain, ms",
                    scale=alt.Scale(type="log"),
                ),
                y=alt.Y("reduction:Q", title="reduction of the median RTT, %"),
                color=alt.Color("rtt_ms:Q", title="RTT of the path, ms", legend=alt.Legend(orient="bottom")),
                tooltip=["path:N", "rtt_ms:Q", "buffer_ms:Q", "reduction:Q"],
            )
        )
        return alt.layer(
            paper.mark_rule(strokeDash=[4, 3], color=theme.QUIET),
            dots,
            facts.encode(text="said:N", x=alt.value("width")),
        ).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "Median RTT improvement of BBR over CUBIC",
        "a video on each of 40 access paths; dashed: the paper’s reductions",
    )


def judge(data: Data) -> list[Check]:
    reductions = list(_reductions(data).values())
    quarter = max(1, len(reductions) // 4)
    deepest = reductions[:quarter]
    globally = Statement("reduces median RTT by 53 percent on average globally")
    return [
        globally.within(
            "reduction of the median RTT, mean over the paths",
            reductions,
            over=Over.POPULATION,
            least=0.4,
            most=0.66,
        ),
        globally.shape(
            "reduction of the median RTT, mean over the paths (direction)",
            reductions,
            over=Over.POPULATION,
            least=0.1,
        ),
        Statement("more than 80 percent in the developing world").within(
            "reduction with the deepest buffers", deepest, over=Over.POPULATION, least=0.8
        ),
        Statement("80 percent against 53 on average").shape(
            "reduction with the deepest buffers minus that with the shallowest",
            population.each_seed(data, "rtt_ms", "bbr1", "cubic", _deeper),
            least=0.1,
        ),
        Statement("only slightly improves").shape(
            "BBR's throughput divided by CUBIC's, geometric mean over the paths",
            list(population.by_path(data, "goodput_mbps", "bbr1", "cubic").values()),
            over=Over.POPULATION,
            middle=geometric,
            least=0.97,
            most=1.1,
            unit="times",
        ),
        Statement("improvement on five continents").within(
            "BBR's median RTT divided by CUBIC's on the path with the smallest gain",
            population.each_seed(data, "rtt_ms", "bbr1", "cubic", lambda ratios: max(ratios.values())),
            most=1.1,
            unit="times",
        ),
    ]


def _deeper(ratios: dict[str, float]) -> float:
    """By how much the reduction with the deepest buffers exceeds that with the shallowest."""
    reductions = [1 - ratios[path] for path in sorted(ratios, key=lambda path: -_PATHS[path].buffer_ms)]
    quarter = max(1, len(reductions) // 4)
    return _mean(reductions[:quarter]) - _mean(reductions[-quarter:])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


CLAIM = Claim(
    source="figure 9 and YouTube Edge Deployment Experience",
    says="BBR only slightly improves connection throughput because YouTube already adapts the server's "
    "streaming rate to well below BtlBw. Even so, BBR reduces median RTT by 53 percent on average globally "
    "and by more than 80 percent in the developing world.",
    grid=Grid(
        factors={"controller": ("bbr1", "cubic"), "path": tuple(_PATHS), "seconds": (240,)},
        quick={"path": tuple(_PATHS)[:20], "seconds": (90,)},
        tiny={"path": tuple(_PATHS)[:2], "seconds": (20,)},
        document=_document,
    ),
    # Vegas is no control: the paper says that RTTs fall, and they fall with it, too.
    wrong=("cubic", "reno"),
    look_at="The reduction should rise to the right: the deeper the buffer, the larger the gain.",
    seeds=3,
)
