"""How sure an answer is, in a word: sure, likely or open.

A word says how often such answers are right: on at least 95 % of random paths for "sure", and on at least
80 % for "likely", the advised controller scores within 2 % of the best one in the kernel. `fullpipe kernel
advice` measures both on paths that it draws from the version's number (docs/explanation/advisor-kernel.md).

The rule was written before the first such measurement:

* *open*: no candidate is clearly best.
* *sure*: the winner's lead over each other candidate is at least `LEAD` of its score, at the lower end of the
  95 % confidence interval, and the path is like those that are measured (`outside` is empty). In one of ten
  comparisons with Linux, the simulator's goodput is more than 6 % off (docs/explanation/fidelity.md), and a
  lead compares two such values: 10 %.
* *likely*: every other clear winner.
"""

import math
from dataclasses import dataclass
from typing import Literal

from fullpipe.advisor.question import Question, percent, shown
from fullpipe.advisor.ranking import Ranking
from fullpipe.scenario.path import OPTIONS
from fullpipe.text import joined

Word = Literal["sure", "likely", "open"]
WORDS: tuple[Word, ...] = ("sure", "likely", "open")
# The share of answers with a word that has to agree with the kernel.
TARGETS = {"sure": 0.95, "likely": 0.80}
# The lead of a sure winner, as a part of its score.
LEAD = 0.10
# The paths of `fullpipe kernel advice`, in the units of `Numbers`; buffers in bandwidth-delay products.
RATE_BPS, RTT_MS, BUFFER_BDP = (2e6, 100e6), (10.0, 150.0), (0.25, 4.0)
LOSS, MOST_COMPETITORS = (1e-4, 1e-2), 3
SIZE_KB = (50.0, 1000.0)
CONTROLLERS = ("reno", "cubic", "bbr1")
# A queue of fewer bytes is no router's, so that a short path may have more than `BUFFER_BDP`.
LEAST_BUFFER_BYTES = 15_000
# The keys of a path that these paths have, or whose value decides.
_MEASURED = ("rate", "rtt", "buffer", "loss", "queue")
# Rounded values are like the ends of these ranges.
_ROUNDED = 1.02


@dataclass(frozen=True)
class Confidence:
    """A word, and why it is no better one; the reason is empty for "sure"."""

    word: Word
    why: str = ""

    def __str__(self) -> str:
        return f"{self.word}: {self.why}" if self.why else self.word


def of(question: Question, found: Ranking) -> Confidence:
    """How sure the answer of one path is."""
    if found.winner is None:
        return Confidence("open", "no candidate is clearly best")
    lead = _lead(found)
    if lead < LEAD:
        least = percent(math.floor(1000 * lead) / 1000)
        return Confidence("likely", f"its lead is {least} or more, and below {percent(LEAD)}")
    other = outside(question)
    return (
        Confidence("likely", f"no path with {joined(list(other))} was measured")
        if other
        else Confidence("sure")
    )


def _lead(found: Ranking) -> float:
    """The lower end of the winner's smallest lead, as a part of its score."""
    lows = [one.behind.mean if one.behind.low is None else one.behind.low for one in found.places[1:]]
    return min(lows) / found.places[0].score.mean


def outside(question: Question) -> tuple[str, ...]:
    """What a path has that none of the measured paths has."""
    path = question.numbers()
    unlike = [
        f"{text} {shown(name, value)}"
        for name, text, value, (low, high) in (
            ("rate", "a rate of", path.rate_bps, RATE_BPS),
            ("rtt", "a round-trip time of", path.rtt_ms, RTT_MS),
            ("loss", "random loss of", path.loss, (0.0, LOSS[1])),
        )
        if not low / _ROUNDED <= value <= high * _ROUNDED
    ]
    bdps, (low, high) = path.buffer_bytes / path.bdp_bytes, BUFFER_BDP
    small = abs(path.buffer_bytes - LEAST_BUFFER_BYTES) < 1
    if not small and not low / _ROUNDED <= bdps <= high * _ROUNDED:
        unlike.append(f"a buffer of {bdps:.2g} BDP")
    queue = question.queue is not None and question.queue.partition(":")[0] != "fifo"
    others = {name for name in question.candidates if name not in CONTROLLERS}
    beside = {name for name, _ in question.competitors}
    crowd = len(beside) > 1 or sum(count for _, count in question.competitors) > MOST_COMPETITORS
    sized = question.flow_size is not None
    size_kb = question.flow_bytes / 1e3 if sized else 0.0
    has = (
        (queue, "a queue discipline"),
        (question.duration is not None, "a duration of its own"),
        (sized and not SIZE_KB[0] / _ROUNDED <= size_kb <= SIZE_KB[1] * _ROUNDED, "flows of such a size"),
        *(
            (getattr(question, one.name) not in (None, False), one.option)
            for one in OPTIONS
            if one.name not in _MEASURED
        ),
        (bool(others), joined(sorted(others))),
        (crowd or not beside <= {"cubic", "bbr1"}, "such competitors"),
        (not question.pacing, "hosts without pacing"),
        (question.ecn, "ECN"),
        (question.tcp_memory == "linux", "limited TCP memory"),
    )
    return (*unlike, *(name for there, name in has if there))
