"""The model of BBRv1's share beside loss-based flows (Ware et al., IMC 2019), and its scenarios.

In flight are at most two estimated bandwidth-delay products. ProbeRTT measures an RTT that includes the
loss-based flows' part of the queue. Where BBR's part of queue and path reaches that cap, the loss-based
flows have the share p = 1/2 - 1/(2X) - 4N/q (equation 9), with a queue of q packets or X BDP and N BBR
flows. BBR sends nothing while ProbeRTT drains the full queue: q/c + 0.2 s + l in 10 s (equation 11). The
numbers of the equations are those of the later evaluation's code.
"""

from typing import Any

from fullpipe.studies import sharing, take
from fullpipe.studies.claim import Row, Trial

BBR, LOSS = "bbr", "loss"
PACKET_BYTES = 1500
_FLIGHT_PACKETS = 4  # ProbeRTT's window.
_PROBE_RTT_S, _EVERY_S = 0.2, 10.0
# The first flows of a run have filled the buffer long before.
WARM_S = 200


def share(rate_mbps: float, rtt_ms: float, buffer_bdp: float, bbrs: int) -> float:
    """The share of the link that BBRv1 flows have together, as the model says."""
    queue_packets = buffer_bdp * take.bdp_bytes(rate_mbps, rtt_ms) / PACKET_BYTES
    # Negative, if the cap exceeds queue and path: BBR has everything then.
    others = max(0.0, 0.5 - 0.5 / buffer_bdp - _FLIGHT_PACKETS * bbrs / queue_packets)
    silent_s = (buffer_bdp + 1) * rtt_ms / 1e3 + _PROBE_RTT_S
    return (1 - others) * max(0.0, 1 - silent_s / _EVERY_S)


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


def error_pct(ours: float | None, model: float) -> float | None:
    """How far the model is from a measurement, of the measurement."""
    return 100 * abs(model - ours) / ours if ours else None
