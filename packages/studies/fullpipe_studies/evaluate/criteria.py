"""The criteria of RFC 9743, in its order: their words (`criteria.toml`), scenes and measures.

Levels are those of the working group's draft of October 2024 (see `UNCHECKED`). Every threshold is ours.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TypeAlias

from fullpipe_studies.evaluate import measures as take
from fullpipe_studies.evaluate import scenes as at
from fullpipe_studies.evaluate.scene import Scene
from fullpipe_studies.evaluate.verdicts import Measure, Verdict, above, above_or_times, below, standing

UNCHECKED = (
    "Levels (MUST, SHOULD, and in small letters the RFC’s plain wording) and section numbers are from the "
    "working group’s draft of October 2024 and from quotations of the published RFC. They were not compared "
    "with its text word by word; of 5.1.2 and 5.1.3 it is known that the published wording differs (“ought "
    "to try”, “needs to avoid”). Criteria are in our words."
)


@dataclass(frozen=True)
class Criterion:
    """A row of the report."""

    section: str
    level: str
    title: str
    asks: str
    lacks: str = ""  # What of it was not run, and why: a limit of ours.
    without: Verdict = Verdict.NOT_RUN  # The verdict of a row that has no scenes.
    scenes: Sequence[Scene] = ()
    measures: Sequence[Measure] = ()

    @property
    def id(self) -> str:
        """Its name as a part of a page or as a file."""
        return id_of(self.section)


def id_of(section: str) -> str:
    """A section as the name of a part of a page or of a file."""
    return section.replace(" ", "-")


Runs: TypeAlias = tuple[Sequence[Scene], Sequence[Measure]]

USE = Measure("goodput", "% of path", take.use(), more=True)
QUEUE = Measure("mean queue", "ms", take.queue(), more=False, least=5)
P95 = Measure("p95 queue", "ms", take.queue(0.95), more=False, least=5)
DROPS = Measure("drops", "%", take.drops, more=False, least=0.2)
RESENT = Measure("retransmitted", "%", take.resent, more=False, least=0.5)
STANDING = replace(
    QUEUE,
    flag=standing(80, 0.8),
    flagged="above 2 RTT (80 ms) and above 0.8 of CUBIC's: it follows the buffer",
)
LOSSY = replace(
    DROPS,
    flag=above_or_times(10, 5, 1, "drops after the start-up, %"),
    flagged="above 10 %, or above 1 % and five times the larger of CUBIC's and Reno's",
)
MARKS = replace(
    Measure("marked", "%", take.marks, more=False, least=1),
    flag=above_or_times(20, 5, 1, "marked packets, %"),
    flagged="above 20 %, or above 1 % and five times the larger of CUBIC's and Reno's",
)
BREAKER = replace(
    Measure("longest time above 10 % drops", "s", take.breaker, more=False, least=2),
    flag=above(5, "seconds in a row with more than 10 % of drops"),
    flagged="more than 5 s in a row",
)
LEAST_WINDOW = replace(
    Measure("least 5 s of any flow", "of fair share", take.least_window, more=True, least=0.05),
    flag=below(0.05, "least 5 s of any flow, of its fair share"),
    flagged="below 0.05",
)
LEAST = replace(
    Measure("least flow", "of mean", take.least, more=True, least=0.05),
    flag=below(0.1, "the least flow's part of the mean"),
    flagged="below 0.1",
)
JAIN = Measure("Jain's index", "", take.jain, more=True, least=0.02)
LATE = Measure(
    "the late flow", "of fair share", take.share("late", "after", "late"), True, 0.05, needs="late"
)
VICTIM = Measure("the other's goodput", "of fair share", take.share("v"), more=True, least=0.05)
# C4's class "really bad" is more than 80 % of the path, beside one flow.
PAIR = replace(
    VICTIM, flag=below(0.4, "the other's goodput, of its fair share"), flagged="below 0.4 with one flow each"
)
VICTIM_DELAY = Measure("the other's queueing delay", "ms", take.rtt("v"), more=False, least=5)
SHORT_P50 = Measure("short flows, median", "ms", take.completion(0.5), more=False, least=5)
SHORT_P95 = Measure("short flows, p95", "ms", take.completion(0.95), more=False, least=5)
SHORT = (SHORT_P50, SHORT_P95, Measure("the long flow's goodput", "% of path", take.use("long"), more=True))
AT_30 = replace(
    Measure("sent at 30 % loss", "% of clean", take.sent_share("at30", "end30"), more=False, least=10),
    flag=above(50, "segments sent at 30 % loss, % of the clean rate"),
    flagged="above 50 %",
)
AT_60 = Measure("sent at 60 % loss", "% of clean", take.sent_share("at60", "end60"), more=False, least=10)
SILENT = Measure("sent in silence", "times", take.silent_sent, more=False, least=3)
GROWTH = replace(
    Measure("growth of pauses", "x", take.silent_growth, more=True, least=0.5),
    flag=below(1.5, "the least ratio of successive pauses"),
    flagged="below 1.5: pauses do not double",
)
NEW_USE = Measure(
    "goodput, 30 s after", "% of new rate", take.use("", "begin", "stop", "new_rate"), more=True
)

_LONE: Sequence[Measure] = (USE, QUEUE, DROPS)
# The scenes and measures of the criteria that run, by section.
RUNS: Mapping[str, Runs] = {
    "5.1.1": ((Scene("20 Mbit/s, loss 30, 60, 90 %", at.loss_steps, quick=True),), (AT_30, AT_60)),
    "5.1.1 b": ((Scene("no ACK for a minute", at.silence, quick=True),), (SILENT, GROWTH)),
    "5.1.1 c": (
        (at.HUNDRED,),
        (USE, DROPS, Measure("flows that got nothing", "%", take.nothing, more=False, least=5)),
    ),
    "5.1.2": (at.STANDING, (STANDING, P95, USE)),
    "5.1.3": ([*at.SMALL, at.POLICER], (LOSSY,)),
    "5.1.4": (at.SHARED, (JAIN, LEAST, LATE)),
    "5.1.5": ((at.short("long and short of it", None, None, quick=True),), SHORT),
    "5.2": ([*at.PAIRS, *at.CROWDS], (LEAST_WINDOW,)),
    "5.2.1": (at.PAIRS, (PAIR, VICTIM_DELAY, DROPS)),
    "5.2.1 b": (at.CROWDS, (VICTIM, VICTIM_DELAY, DROPS)),
    "5.2.2": (
        (Scene("2.9 Mbit/s of frames, 4 BDP", at.media, True, "only the simulator runs media"),),
        (
            Measure("complete frames, p50", "ms", take.frames(0.5), more=False, least=5),
            Measure("complete frames, p95", "ms", take.frames(0.95), more=False, least=5),
            Measure("frames lost or above 100 ms", "%", take.missed_frames, more=False, least=2),
        ),
    ),
    "5.2.3": (
        (
            at.short("long it, short cubic", None, "cubic", quick=True),
            at.short("long cubic, short it", "cubic", None, quick=True),
        ),
        SHORT,
    ),
    "6": (at.GRID, _LONE),
    "6.1": (at.GRID, _LONE),
    "6.3": ((at.alone("50 Mbit/s, 40 ms, 1 BDP, one flow", quick=True),), _LONE),
    "6.4": (at.RADIO, (USE, P95)),
    "7.1": (at.AQM, (MARKS, QUEUE, USE, DROPS)),
    "7.1 b": ((at.IN_AQM,), (replace(PAIR, flagged="below 0.4"), MARKS)),
    "7.2": ([*at.SMALL, at.POLICER], (BREAKER,)),
    "7.3": (
        (Scene("40 to 120 to 40 ms", at.delay_change, quick=True),),
        (
            Measure("goodput, first 10 s", "% of path", take.use("", "begin", "later"), more=True),
            Measure("queue after the return", "ms", take.queue(None, "back"), more=False, least=5),
        ),
    ),
    "7.4": (at.SLOW, (USE, DROPS)),
    "7.5": (at.GEO, (replace(USE, needs="lasting"), replace(SHORT_P50, name="10 MB", needs="transfer"))),
    "7.6": (at.MISBEHAVING, (Measure("own goodput", "% of path", take.use("c"), more=True), RESENT)),
    "7.6 b": (
        (at.POLICER,),
        (Measure("goodput", "% of policed rate", take.use(of="policed"), more=True), RESENT),
    ),
    "7.6 c": (at.LYING, (VICTIM, DROPS)),
    "7.7": (at.REORDERED, (USE,)),
    "7.8": (
        at.OUTAGES,
        (Measure("goodput, 10 s after", "% of path", take.use("", "begin"), more=True),),
    ),
    "7.8 b": (
        (Scene("10 cubic join", at.onset, quick=True),),
        (
            Measure("p95 queue, first 5 s", "ms", take.queue(0.95, "begin", "stop"), more=False, least=5),
            Measure("goodput after they left", "% of path", take.use("c", "later"), more=True),
        ),
    ),
    "7.9": (
        at.FALLS,
        (
            Measure("mean queue, 30 s after", "ms", take.queue(None, "begin", "stop"), more=False, least=5),
            NEW_USE,
        ),
    ),
    "7.9 b": (at.RISES, (replace(NEW_USE, needs="new_rate"), replace(USE, needs="leo"))),
    "7.11": ((Scene("incast of 64", at.incast, only_sim=at.FAST),), (SHORT_P50, SHORT_P95, DROPS)),
    "beyond": (
        (Scene("20 and 100 ms, 4 BDP", at.unequal, quick=True),),
        (
            Measure("near flow", "of fair share", take.share("c"), more=True, least=0.05),
            Measure("far flow", "of fair share", take.share("v"), more=True, least=0.05),
        ),
    ),
    "beyond b": (
        (
            Scene(
                "20 Mbit/s, and 2 back with 1 cubic",
                at.two_way,
                quick=True,
                only_sim="only the simulator has flows in the other direction",
            ),
        ),
        (Measure("own goodput", "% of path", take.use("c"), more=True),),
    ),
}


@cache
def every() -> tuple[Criterion, ...]:
    """The criteria, in the RFC's order."""
    text = resources.files(__package__).joinpath("criteria.toml").read_text(encoding="utf-8")
    found = []
    for one in tomllib.loads(text)["criterion"]:
        scenes, measures = RUNS.get(one["section"], ((), ()))
        without = Verdict(one.pop("without", Verdict.NOT_RUN.value))
        found.append(Criterion(**one, without=without, scenes=scenes, measures=measures))
    return tuple(found)
