"""The model of BBRv1's share beside loss-based flows (Ware et al., IMC 2019), and its scenarios.

In flight are at most two estimated bandwidth-delay products. ProbeRTT measures an RTT that includes the
loss-based flows' part of the queue. Where BBR's part of queue and path reaches that cap, the loss-based
flows have the share p = 1/2 - 1/(2X) - 4N/q (equation 9), with a queue of q packets or X BDP and N BBR
flows. BBR sends nothing while ProbeRTT drains the full queue: q/c + 0.2 s + l in 10 s (equation 11). The
numbers of the equations are those of the later evaluation's code.
"""

import math
import statistics
from collections.abc import Mapping
from typing import Any

import polars as pl

from fullpipe_studies import sharing, take
from fullpipe_studies.claim import Row, Trial, number

BBR, LOSS = "bbr", "loss"
PACKET_BYTES = 1500
_FLIGHT_PACKETS = 4  # ProbeRTT's window.
_PROBE_RTT_S, _EVERY_S = 0.2, 10.0
_CYCLE_PHASES = 8
# A window limits if this part of it is in flight: nearer to all than to the half of a flow without a queue.
_FULL = 0.75
# The first flows of a run have filled the buffer long before.
WARM_S = 200


def share(rate_mbps: float, rtt_ms: float, buffer_bdp: float, bbrs: int) -> float:
    """The share of the link that BBRv1 flows have together, as the model says."""
    queue_packets = buffer_bdp * take.bdp_bytes(rate_mbps, rtt_ms) / PACKET_BYTES
    # Negative, if the cap exceeds queue and path: BBR has everything then.
    others = max(0.0, 0.5 - 0.5 / buffer_bdp - _FLIGHT_PACKETS * bbrs / queue_packets)
    return (1 - others) * (1 - silence(rtt_ms, buffer_bdp))


def document(
    *,
    controller: str = "bbr1",
    bbrs: int,
    loss: str,
    others: int,
    rate_mbps: float,
    rtt_ms: float,
    buffer_bdp: float,
    seconds: float,
) -> dict[str, Any]:
    """A scenario: that many flows of both kinds, which start together."""
    flows = [{"controller": controller, "label": BBR, "count": bbrs}]
    if others:
        flows.append({"controller": loss, "label": LOSS, "count": others})
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{rate_mbps} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": f"{buffer_bdp} bdp"},
        "flows": flows,
        "record": {"interval": "500 ms"},
    }


def begin(trial: Trial) -> float:
    """When measurements begin."""
    return min(WARM_S, float(trial.factors["seconds"]) / 3)


def measured(trial: Trial) -> Row:
    """The share of all BBR flows together."""
    return {"bbr_share": sharing.share(sharing.rates(trial.run, begin(trial)), BBR)}


def limits(trial: Trial) -> Row:
    """What limits one BBR flow: the part of time in ProbeRTT; flight, window and estimates in ProbeBW."""
    own = take.samples(trial.run, after_s=begin(trial)).filter(
        (pl.col("flow") == BBR) & pl.col("phase").is_not_null()
    )
    probing = own.filter(pl.col("phase").str.starts_with("probe_bw"))
    full = pl.col("inflight_segments") >= _FULL * pl.col("cwnd_segments")
    window = take.mean(probing, "cwnd_segments")
    bandwidth = take.ratio(
        take.mean(probing, "bandwidth_bps"), 8 * trial.spec["mtu_bytes"] * take.payload_share(trial)
    )
    return {
        "silent": (own["phase"] == "probe_rtt").mean() if own.height else None,
        "limited": probing.select(full.cast(pl.Float64).mean()).item() if probing.height else None,
        "flight_packets": take.mean(probing, "inflight_segments"),
        "window_packets": window,
        "rtt_ms": take.mean(probing, "srtt_ms"),
        # What BBR takes for the path's RTT follows from its window. Records have TCP's own minimum.
        "least_ms": take.ratio(window, 2 * bandwidth / 1e3 if bandwidth is not None else None),
    }


def silence(rtt_ms: float, buffer_bdp: float) -> float:
    """The part of time that ProbeRTT takes, as the model says."""
    return min(1.0, ((buffer_bdp + 1) * rtt_ms / 1e3 + _PROBE_RTT_S) / _EVERY_S)


def median_error(runs: pl.DataFrame) -> float:
    """The median of error_pct; NaN without one. A share of zero or less is none, and has no error."""
    errors = runs["error_pct"].drop_nulls().to_list()
    return float(statistics.median(errors)) if errors and min(errors) > 0 else math.nan


def reported(row: Mapping[str, float], rtt_ms: float, buffer_bdp: float) -> str:
    """The means of `limits` in sentences."""
    cycles = _EVERY_S * (1 - row["silent"]) / (_CYCLE_PHASES * row["least_ms"] / 1e3)
    modelled = 100 * silence(rtt_ms, buffer_bdp)
    longer = row["rtt_ms"] / row["least_ms"]
    flight, window = (number(row[f"{name}_packets"], 3) for name in ("flight", "window"))
    return (
        f"ProbeRTT takes {number(100 * row['silent'], 2)} % of the time (the model says "
        f"{number(modelled, 2)} %). Of a window of {window} packets, {flight} are in flight: the RTT is "
        f"{number(longer, 2)} times what BBR takes for the least, and a window of two estimated BDP limits "
        f"it from twice on. Between two ProbeRTT there is time for {number(cycles, 2)} gain cycles."
    )


def error_pct(ours: float | None, model: float) -> float | None:
    """How far the model is from a measurement, of the measurement."""
    return 100 * abs(model - ours) / ours if ours else None
