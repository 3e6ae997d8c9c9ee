"""Over which time an answer holds: how many cycles of its candidates it has seen, and how long start-up was.

A loss-based controller fills the queue, loses a packet and reduces its window, again and again; BBR empties
the queue for ProbeRTT. A run of few such cycles shows chance or the start. A cycle takes at most:

* Reno: from half of the largest window to all of it, a segment each round trip (RFC 5681, 3.1).
* CUBIC: K, the time until its window is as large as before the loss (RFC 9438, 4.2).
* BBR: ProbeRTT every 10 s in version 1 (Linux, `bbr_min_rtt_win_sec`), every 5 s in version 3
  (draft-ietf-ccwg-bbr, ProbeRTTInterval).

The largest window is the path with a full queue, divided among all flows; with random loss p, what p allows.
Start-up is the first cycle of the slowest candidate, but at most half of a run.
"""

import math
from dataclasses import dataclass

from fullpipe.advisor.question import Numbers, Question

# A horizon has this many cycles of every candidate, or the answer says that it has not.
ENOUGH = 5
_SEGMENT_BYTES = 1448
# RFC 9438, 4.1 and 4.6: C, and beta.
_C, _BETA = 0.4, 0.7
_PROBE_RTT_S = {"bbr1": 10.0, "bbr3": 5.0}
_RENO, _CUBIC = ("reno", "newreno"), ("cubic", "cubic9438")
_LONGEST_START = 0.5


@dataclass(frozen=True)
class Cycle:
    """What a candidate does again and again, and how long it takes at most."""

    candidate: str
    seconds: float
    what: str


@dataclass(frozen=True)
class Horizon:
    """How long the long flows of an answer ran, in the cycles of its slowest candidate."""

    seconds: float
    slowest: Cycle | None  # None if no candidate has a cycle with a closed form.

    @staticmethod
    def of(question: Question) -> "Horizon":
        """That of one path."""
        found = [one for name in question.candidates if (one := _cycle(question, name)) is not None]
        return Horizon(question.duration_s(), max(found, key=lambda one: one.seconds, default=None))

    @property
    def cycles(self) -> float | None:
        """How many of them it has."""
        return None if self.slowest is None else self.seconds / self.slowest.seconds

    @property
    def needed_s(self) -> float:
        """How long it has to be for enough of them."""
        return 0.0 if self.slowest is None else ENOUGH * self.slowest.seconds

    @property
    def enough(self) -> bool:
        """Whether it has enough of them."""
        return self.seconds >= self.needed_s

    @property
    def start_s(self) -> float:
        """How long start-up is."""
        longest_s = _LONGEST_START * self.seconds
        return longest_s if self.slowest is None else min(self.slowest.seconds, longest_s)

    def __str__(self) -> str:
        first = f"the first {plain(self.seconds)} s of long flows"
        if self.slowest is None or self.cycles is None:
            return first
        slowest = f"{self.slowest.candidate} ({self.slowest.what})"
        if self.enough:
            return f"{first}, {plain(self.cycles, 2)} cycles of the slowest, {slowest}"
        return (
            f"{first}, only {plain(self.cycles, 2)} cycles of {slowest}; "
            f"--duration {math.ceil(self.needed_s)}s has {ENOUGH}"
        )


def plain(value: float, digits: int = 3) -> str:
    """A number with that many digits, and without an exponent."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def _cycle(question: Question, candidate: str) -> Cycle | None:
    """The cycle of a candidate; None without a closed form."""
    name = candidate.partition(":")[0]
    if name in _PROBE_RTT_S:
        return Cycle(candidate, _PROBE_RTT_S[name], f"ProbeRTT every {_PROBE_RTT_S[name]:g} s")
    path, flows = question.numbers(), 1 + sum(count for _, count in question.competitors)
    full_s = (path.bdp_bytes + path.buffer_bytes) * 8 / path.rate_bps
    window = (path.bdp_bytes + path.buffer_bytes) / _SEGMENT_BYTES / flows
    if name in _RENO:
        largest = min(window, _reno_window(path))
        # Alone, a smaller window fills less of the queue.
        round_s = full_s if flows > 1 else max(path.rtt_ms / 1e3, full_s * largest / window)
        what = f"{largest / 2:.0f} round trips of at most {plain(1e3 * round_s)} ms"
        return Cycle(candidate, largest / 2 * round_s, what)
    if name in _CUBIC:
        largest = min(window, max(_reno_window(path), _cubic_window(path)))
        k_s = math.cbrt(largest * (1 - _BETA) / _C)
        return Cycle(candidate, k_s, f"K is {k_s:.2g} s")
    return None


def _reno_window(path: Numbers) -> float:
    """The window, in segments, at which Reno loses one of 1/p segments (Mathis et al., CCR 1997)."""
    return math.sqrt(8 / (3 * path.loss)) if path.loss > 0 else math.inf


def _cubic_window(path: Numbers) -> float:
    """The same of CUBIC: the mean window of RFC 9438, 5.1 over its part of the largest."""
    if path.loss == 0:
        return math.inf
    mean = math.pow(_C * (3 + _BETA) / (4 * (1 - _BETA)), 0.25) * math.pow(
        path.rtt_ms / 1e3 / path.loss, 0.75
    )
    return mean * 4 / (3 + _BETA)
