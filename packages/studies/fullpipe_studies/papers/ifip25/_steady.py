"""The grid of both claims: BBR flows beside loss-based flows, and the steady-state model's error."""

from typing import Any

import polars as pl

from fullpipe_studies import capmodel, charts, layers
from fullpipe_studies.claim import Data, Row, Trial, Values, number
from fullpipe_studies.later import alt

RATE_MBPS, RTT_MS = 10, 40
BUFFERS_BDP = (1, 2, 4, 8, 16, 32, 64)
LOSSES = ("cubic", "reno")
TITLES = {"cubic": "beside CUBIC", "reno": "beside Reno"}
# The errors that the model's paper states; in shape, an error three times as large is allowed. Ours.
PAPER_PCT = {"cubic": 5, "reno": 8}
SHAPE_TIMES = 3


def document(
    controller: str, loss: str, buffer_bdp: int, bbrs: int, others: int, seconds: int
) -> dict[str, Any]:
    """A scenario of the grid."""
    return capmodel.document(
        controller=controller,
        bbrs=bbrs,
        loss=loss,
        others=others,
        rate_mbps=RATE_MBPS,
        rtt_ms=RTT_MS,
        buffer_bdp=buffer_bdp,
        seconds=seconds,
    )


def measure(trial: Trial) -> Row:
    """The share of all BBR flows, the model's, and its error."""
    row = capmodel.measured(trial)
    model = capmodel.share(RATE_MBPS, RTT_MS, trial.factors["buffer_bdp"], trial.factors["bbrs"])
    return {**row, "model_share": model, "error_pct": capmodel.error_pct(row["bbr_share"], model)}


def errors(data: Data, **where: Any) -> Values:
    """The median error of the model over these scenarios, one for each seed."""
    return data.each_seed(capmodel.median_error, **where)


def figure(data: Data, by: str, title: str) -> "alt.TopLevelMixin":
    """Shares against the buffer for each value of a factor, with the model of one BBR flow."""
    frame = charts.means(data, ["loss", "buffer_bdp", by], "bbr_share").with_columns(
        pl.col(by).cast(pl.String).alias("line")
    )

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _loss: Any) -> Any:
            x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
            points = charts.points(ours, x, "share of BBR", charts.controllers(ours, "line"), domain=[0, 1])
            model = [(size, capmodel.share(RATE_MBPS, RTT_MS, size, 1)) for size in BUFFERS_BDP]
            return alt.layer(layers.paper(model, "buffer_bdp"), points)

        return layers.panels(layers.of(frame, part), "loss", TITLES, draw)

    return charts.worlds(data, panel, title, "10 Mbit/s, 40 ms; grey: the steady-state model of BBRv1")


def reported(data: Data, controller: str) -> list[str]:
    """Where the model is farthest off for one BBR flow of that controller, in a sentence each."""
    facts = []
    for loss in LOSSES:
        cells = (
            data.runs.filter(
                pl.col("error_pct").is_not_null(),
                pl.col("loss") == loss,
                pl.col("controller") == controller,
                pl.col("bbrs") == 1,
            )
            .group_by("buffer_bdp", "others")
            .agg(pl.col("bbr_share", "model_share", "error_pct").mean())
            .sort("error_pct")
        )
        if cells.height:
            worst = cells.row(-1, named=True)
            facts.append(
                f"{controller} {TITLES[loss]}: the model is farthest off beside {worst['others']} with "
                f"{worst['buffer_bdp']} BDP: {number(worst['model_share'], 2)} where the flow has "
                f"{number(worst['bbr_share'], 2)}."
            )
    return facts
