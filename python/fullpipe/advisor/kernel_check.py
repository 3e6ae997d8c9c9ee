"""Are the advisor's words about its answers right? Its answers on random paths, compared with the kernel.

Paths and goals are drawn from the distribution of `draw`, with a seed made from Fullpipe's version, so that
nothing was tuned to them. The advisor answers each by simulation, with up to `ADVISOR_SEEDS` seeds and
without a limit of time. Then every candidate runs in the kernel world, in the very same scenarios: its score
there is the mean over the repetitions.

The criterion, written before the first result:

* The candidates are what Linux has nearly everywhere: reno, cubic and bbr1 (Linux's `bbr`).
* The **advised** controller is the first of the advisor's ranking, also where it says "no clear winner":
  an operator has to run something. Whether the last of those that it calls equal would do is shown beside it
  and does not count.
* A path **agrees** if the advised controller's mean score in the kernel is at most 2 % below the highest mean
  of any candidate. Means decide, and nothing is forgiven because of noise.
* Each answer has a word (`confidence`). Of the judged answers with "sure", 95 % must agree; of those with
  "likely", 80 %. Those with "open" are shown and have no target.
* Noise is answered by repetitions. Each candidate runs twice. As long as the 95 % confidence interval (Welch)
  of what the advised one lacks against some candidate has 2 % inside it, the path is repeated: up to three
  times, then up to five. That does not depend on the direction in which the result points.
* Kernel runs that the emulator calls untrustworthy are tried again, up to six times in all, and left out if
  they still are. A path on which a candidate has less than two trusted repetitions is not judged; at least
  100 paths must be judged.

The time of a measurement may be limited. When it is over, the trusted repetitions that there are count.
"""

import abc
import contextlib
import csv
import hashlib
import io
import json
import math
import random
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fullpipe import files
from fullpipe.advisor import confidence, goals, ranking
from fullpipe.advisor.answer import path_of
from fullpipe.advisor.confidence import WORDS, Word
from fullpipe.advisor.goals import Goal
from fullpipe.advisor.question import Question
from fullpipe.advisor.ranking import Ranking
from fullpipe.advisor.trials import Bench, Plan, Summaries, address
from fullpipe.measures.statistics import t_quantile
from fullpipe.runs import sweep
from fullpipe.runs.engines import Ended, Engine
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task, check_ready
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import registry
from fullpipe.text import counted, joined, minutes

CANDIDATES = confidence.CONTROLLERS
ADVISOR_SEEDS = 16
# The part of the best score that the advised controller may lack.
WITHIN = 0.02
LEAST_JUDGED = 100
# How often each candidate runs: at first, and where it is not settled.
REPETITIONS = (2, 3, 5)
# How often a run is tried that cannot be trusted.
ATTEMPTS = 6
# Fewer trusted repetitions give no interval.
_LEAST_TRUSTED = 2
PATHS = 120

# The distribution; its ranges are those in which `confidence` says "sure".
_RATE_MBPS = tuple(rate_bps / 1e6 for rate_bps in confidence.RATE_BPS)
_LOSSY, _LOSS_PERCENT = 0.5, tuple(100 * loss for loss in confidence.LOSS)
_SHARED, _NEIGHBOURS = 0.3, ("cubic", "bbr1")
_GOALS = {"throughput": 3, "balance": 3, "delay": 2, "neighbours": 2, "short flows": 2}


@dataclass(frozen=True)
class Case:
    """A path and what it is for."""

    number: int
    question: Question
    goal: Goal

    @property
    def plan(self) -> Plan:
        """The runs that give its scores."""
        return Plan(self.question, self.goal.needs)

    @property
    def name(self) -> str:
        """Its path and goal for people."""
        asked = self.question
        message = [str(asked.rate), str(asked.rtt), asked.buffer_text]
        message += [f"loss {asked.loss}"] if asked.loss else []
        message += [f"beside {count} {name}" for name, count in asked.competitors]
        message += [f"flows of {asked.flow_size}"] if asked.flow_size else []
        return ", ".join(message)


def seed_of(version: str) -> int:
    """The seed of a version's paths."""
    return int.from_bytes(hashlib.sha256(version.encode()).digest()[:4])


def draw(paths: int, seed: int) -> list[Case]:
    """Random paths; the first ones are the same however many are drawn.

    Logarithmically uniform: rate 2 to 100 Mbit/s, round-trip time 10 to 150 ms, buffer 0.25 to 4 BDP but at
    least 15 KB. Half of them have random loss, 0.01 to 1 %; three of ten have one to three competitors, all
    CUBIC or all BBRv1. Of twelve goals three are throughput, three balance, two delay, two neighbours, and
    two the completion of flows of 50 KB to 1 MB.
    """
    chance = random.Random(seed)
    return [_case(number, chance) for number in range(1, paths + 1)]


def _case(number: int, chance: random.Random) -> Case:
    def between(ends: Sequence[float]) -> float:
        low, high = ends
        return low * math.exp(math.log(high / low) * chance.random())

    # Everything is drawn for every path, so that a path does not depend on what others needed.
    rate_mbps, rtt_ms = round(between(_RATE_MBPS), 1), round(between(confidence.RTT_MS), 1)
    bdps = between(confidence.BUFFER_BDP)
    loss = f"{between(_LOSS_PERCENT):.2g} %" if chance.random() < _LOSSY else None
    shared, neighbour = chance.random() < _SHARED, chance.choice(_NEIGHBOURS)
    neighbours = chance.randint(1, confidence.MOST_COMPETITORS)
    (goal,) = chance.choices(list(_GOALS), list(_GOALS.values()))
    size = f"{between(confidence.SIZE_KB):.0f} KB" if goal == "short flows" else None
    buffer_bytes = max(confidence.LEAST_BUFFER_BYTES, bdps * rate_mbps * rtt_ms * 125)
    question = Question(
        rate=f"{rate_mbps} Mbit/s",
        rtt=f"{rtt_ms} ms",
        buffer=f"{buffer_bytes / 1e3:.0f} KB",
        loss=loss,
        competitors=((neighbour, neighbours),) if shared else (),
        flow_size=size,
        candidates=CANDIDATES,
    )
    return Case(number, question, goals.named("throughput" if size else goal, sized=size is not None))


@dataclass(frozen=True)
class Lack:
    """What the advised controller lacks against another one in the kernel, as a part of the other's score."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(own: Sequence[float], other: Sequence[float]) -> "Lack":
        """With the 95 % confidence interval by Welch's method, for runs that have nothing in common."""
        best = math.fsum(other) / len(other)
        mine = math.fsum(own) / len(own)
        parts = [_variance(values) / len(values) for values in (own, other)]
        width = 0.0
        if (total := math.fsum(parts)) > 0:
            freedom = total**2 / math.fsum(
                part**2 / (len(values) - 1) for part, values in zip(parts, (own, other), strict=True)
            )
            width = t_quantile(max(1, int(freedom))) * math.sqrt(total)
        scale = best or 1.0
        return Lack((best - mine) / scale, (best - mine - width) / scale, (best - mine + width) / scale)

    @property
    def settled(self) -> bool:
        """Whether the tolerance is outside of the interval."""
        return self.high <= WITHIN or self.low > WITHIN


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


class Judged(abc.ABC):
    """A path, who is advised, and the candidates' mean scores in the kernel."""

    number: int
    name: str
    word: Word  # How sure the answer is.
    purpose: str  # The name of the goal.
    leaders: tuple[str, ...]  # The first of the advisor's ranking, and those that are called equal.
    counts: dict[str, int]  # The trusted repetitions of each candidate.

    @abc.abstractmethod
    def mean(self, candidate: str) -> float:
        """A candidate's score in the kernel."""

    @abc.abstractmethod
    def lack(self, candidate: str, other: str | None = None) -> Lack:
        """What a candidate lacks against the best one, or another."""

    @property
    def advised(self) -> str:
        """The first of the advisor's ranking."""
        return self.leaders[0]

    @property
    def judged(self) -> bool:
        """Whether there are enough trusted runs."""
        return all(count >= _LEAST_TRUSTED for count in self.counts.values())

    @property
    def best(self) -> str:
        """Who has the highest score in the kernel; the advised one if it is as high."""
        return max(self.counts, key=lambda name: (self.mean(name), name == self.advised))

    def within(self, candidate: str) -> bool:
        """Whether a candidate's mean is within the tolerance of the best."""
        return self.mean(candidate) >= (1 - WITHIN) * self.mean(self.best)

    @property
    def agrees(self) -> bool:
        """Whether the advised one is."""
        return self.judged and self.within(self.advised)

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if not self.judged:
            return "not judged"
        return "agrees" if self.agrees else "disagrees"


@dataclass(frozen=True)
class Held(Judged):
    """A case, the advisor's answer, and the candidates' scores in the kernel.

    A candidate has a score for each repetition that can be trusted.
    """

    case: Case
    answer: Ranking
    scores: dict[str, list[float]]
    left_out: int = 0  # Repetitions of candidates that cannot be trusted, or failed.

    @property
    def number(self) -> int:  # type: ignore[override]
        """That of the case."""
        return self.case.number

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its path for people."""
        return self.case.name

    @property
    def word(self) -> Word:  # type: ignore[override]
        """That of the answer."""
        return confidence.of(self.case.question, self.answer).word

    @property
    def purpose(self) -> str:  # type: ignore[override]
        """The name of its goal."""
        return self.case.goal.name

    @property
    def leaders(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the answer."""
        return self.answer.leaders

    @property
    def counts(self) -> dict[str, int]:  # type: ignore[override]
        """How many scores each candidate has."""
        return {name: len(values) for name, values in self.scores.items()}

    def mean(self, candidate: str) -> float:
        """A candidate's score in the kernel."""
        return math.fsum(self.scores[candidate]) / len(self.scores[candidate])

    def lack(self, candidate: str, other: str | None = None) -> Lack:
        """What a candidate lacks against the best one, or another."""
        return Lack.of(self.scores[candidate], self.scores[other or self.best])

    @property
    def settled(self) -> bool:
        """Whether more repetitions would say nothing new."""
        if not self.judged or any(len(values) < REPETITIONS[0] for values in self.scores.values()):
            return False
        shortfall = [self.lack(self.advised, name) for name in self.scores if name != self.advised]
        return any(one.low > WITHIN for one in shortfall) or all(one.settled for one in shortfall)


@dataclass(frozen=True)
class Shown:
    """All paths, as tables show them."""

    held: tuple[Judged, ...]
    world: str
    build: str  # Version and kernel.
    failed: tuple[str, ...] = field(default=())
    older: str = ""  # Which paths are older than the code of today.

    @property
    def judged(self) -> list[Judged]:
        """Those with enough trusted runs."""
        return [one for one in self.held if one.judged]

    def agreeing(self, word: Word) -> tuple[int, int]:
        """Of how many judged answers with a word how many agree: first these, then all."""
        found = [one.agrees for one in self.judged if one.word == word]
        return sum(found), len(found)

    @property
    def passed(self) -> bool:
        """Whether enough was judged, and enough of it agrees."""
        shares = [(*self.agreeing(word), confidence.TARGETS[word]) for word in WORDS[:2]]
        return len(self.judged) >= LEAST_JUDGED and all(
            of and agree >= part * of for agree, of, part in shares
        )

    def __str__(self) -> str:
        message = [
            f'{agree} of {of} answers with "{word}" ({_share(agree, of)}; target '
            f"{100 * confidence.TARGETS[word]:.0f} %)"
            for word in WORDS[:2]
            for agree, of in [self.agreeing(word)]
        ]
        return (
            f"{len(self.judged)} of {len(self.held)} paths are judged (at least {LEAST_JUDGED} are needed). "
            f"With the kernel agree {joined(message)}: {'met' if self.passed else 'not met'}."
        )

    @property
    def summary(self) -> list[tuple[str, int, int]]:
        """What is within the tolerance on how many paths, of how many: the advice, and simpler rules."""
        judged = self.judged
        unclear = [one for one in judged if one.word == "open"]
        rows = [
            *((f'advised with "{word}"', *self.agreeing(word)) for word in WORDS),
            ("advised, with any word", sum(one.agrees for one in judged), len(judged)),
            (
                '"open": all controllers that are called equal',
                sum(all(map(one.within, one.leaders)) for one in unclear),
                len(unclear),
            ),
            *(
                (f"always {name}", sum(one.within(name) for one in judged), len(judged))
                for name in CANDIDATES
            ),
        ]
        return rows

    def to_markdown(self, others: str | None = None) -> str:
        """The tables of docs/explanation/advisor-kernel.md.

        With `others`, where all paths are, the table has those that disagree.
        """
        lines = [f"Made by `fullpipe kernel advice`: {self.build}. {self}", ""]
        lines += [self.older, ""] if self.older else []
        lines += [f"| within {100 * WITHIN:.0f} % of the best in the kernel | paths | |", "|---|---|---|"]
        lines += [
            f"| {name} | {agree} of {paths} | {_share(agree, paths)} |" for name, agree, paths in self.summary
        ]
        heads = ["", "path", "for", "advised", "", "best", *CANDIDATES, "lacks", ""]
        lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        rows = [_row(one) for one in self.held]
        lines += [f"| {' | '.join(one)} |" for one in rows if others is None or one[-1] == "disagrees"]
        lines += ["", f"The other paths agree, or are not judged: {others}."] if others is not None else []
        if self.failed:
            lines += ["", *(f"Failed: {one}" for one in self.failed)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Table(Shown):
    """All cases, with their runs' scores."""

    held: tuple[Held, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "answer": str(self),
            "passed": self.passed,
            "world": self.world,
            "build": self.build,
            "failed": list(self.failed),
            "cases": [_case_dict(one) for one in self.held],
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)

    def to_csv(self) -> str:
        """One row for each case."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        scores = [f"{name}_{what}" for name in CANDIDATES for what in ("score", "repetitions")]
        out.writerow(
            [
                "number",
                "path",
                "goal",
                "advised",
                "word",
                "leaders",
                "best",
                "lacks",
                "low",
                "high",
                "verdict",
                *scores,
            ]
        )
        for one in self.held:
            lack = one.lack(one.advised) if one.judged else None
            numbers = [f"{lack.mean:.5f}", f"{lack.low:.5f}", f"{lack.high:.5f}"] if lack else ["", "", ""]
            cells = [
                cell
                for name in CANDIDATES
                for cell in (f"{one.mean(name):.5f}" if one.scores[name] else "", len(one.scores[name]))
            ]
            out.writerow(
                [
                    one.case.number,
                    one.case.name,
                    one.case.goal.name,
                    one.advised,
                    one.word,
                    " ".join(one.answer.leaders),
                    one.best if one.judged else "",
                    *numbers,
                    one.verdict,
                    *cells,
                ]
            )
        return text.getvalue()


def _share(part: int, of: int) -> str:
    return f"{100 * part / of:.0f} %" if of else "–"


def _row(one: Judged) -> list[str]:
    """A case's line in the page."""
    scores = [f"{one.mean(name):.3f} ({count})" if count else "–" for name, count in one.counts.items()]
    shortfall = "–"
    if one.judged and one.best != one.advised:
        lack = one.lack(one.advised)
        shortfall = f"{100 * lack.mean:.1f} % ({100 * lack.low:.1f}..{100 * lack.high:.1f})"
    elif one.judged:
        shortfall = "0"
    best = one.best if one.judged else "–"
    advised = " = ".join(one.leaders)
    return [str(one.number), one.name, one.purpose, advised, one.word, best, *scores, shortfall, one.verdict]


def write(table: Table, folder: Path) -> None:
    """Writes advice.json, advice.csv and table.md."""
    files.write(folder, "advice.json", (table.to_json() + "\n").encode())
    files.write(folder, "advice.csv", table.to_csv().encode())
    files.write(folder, "table.md", table.to_markdown().encode())


def _case_dict(one: Held) -> dict[str, Any]:
    lack = one.lack(one.advised) if one.judged else None
    return {
        "number": one.case.number,
        "path": path_of(one.case.question),
        "goal": one.case.goal.name,
        "advised": one.advised,
        "confidence": one.word,
        "leaders": list(one.answer.leaders),
        "simulated": {place.candidate: place.score.mean for place in one.answer.places},
        "seeds": one.answer.seeds,
        "kernel": one.scores,
        "left_out": one.left_out,
        "best": one.best if one.judged else None,
        "lacks": None if lack is None else {"mean": lack.mean, "ci95": [lack.low, lack.high]},
        "verdict": one.verdict,
    }


def hold(
    cases: Sequence[Case],
    store: Store,
    *,
    world: str = "kernel",
    engine: Engine | None = None,
    repetitions: Sequence[int] = REPETITIONS,
    until_s: float = math.inf,
    say: Callable[[str], None] = lambda _line: None,
    watch: Callable[[sweep.Progress], None] = lambda _progress: None,
) -> Table:
    """Asks the advisor, and runs in the other world what the store does not have.

    After `until_s`, a time of `time.monotonic`, no more runs are begun.
    """
    (reference,) = registry.chosen(world)
    bench = Bench.of(registry.DEFAULT)
    held = [
        Held(
            case,
            ranking.rank(bench, case.question, case.goal, most=ADVISOR_SEEDS, extras=frozenset()),
            {name: [] for name in case.question.candidates},
        )
        for case in cases
    ]
    engine = _Until(engine or Local(), until_s)
    failed: dict[str, str] = {}
    about: dict[str, Any] = {}
    for count in repetitions:
        plans = {one.case.number: one.case.plan for one in held if not one.settled}
        tasks = [
            Task(reference.name, job) for plan in plans.values() for job in plan.jobs(range(1, count + 1))
        ]
        if not tasks:
            break

        def begin(_found: object, pending: list[Task], number: int = len(plans), count: int = count) -> None:
            check_ready(pending)
            if pending:
                to_do = f"{counted(len(pending), 'run')} to do, about {minutes(Local().takes_s(pending))}"
                say(f"{counted(number, 'path')} with {count} repetitions: {to_do}")

        outcome = sweep.carry_out(tasks, store, engine, attempts=ATTEMPTS, watch=watch, begin=begin)
        failed |= {one.task.name: one.reason for one in outcome.failed}
        trusted = {address(one.task.job): one.summary for one in outcome.of(tasks) if not one.untrustworthy}
        about = next((summary["provenance"] for summary in trusted.values()), about)
        held = [
            _scored(one, plans[one.case.number], count, trusted) if one.case.number in plans else one
            for one in held
        ]
    build = f"Fullpipe {about.get('version', '')}, Linux {about.get('kernel', '')}"
    return Table(tuple(held), reference.name, build, tuple(f"{name}: {why}" for name, why in failed.items()))


@dataclass(frozen=True)
class _Until:
    """An engine that ends at a time, whatever is left."""

    engine: Engine
    until_s: float

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """The tasks that end in time; what runs then is stopped."""
        with contextlib.closing(self.engine.run(tasks)) as ending:
            while time.monotonic() < self.until_s and (ended := next(ending, None)) is not None:
                yield ended

    def cost(self, task: Task) -> float:
        """That of the engine."""
        return self.engine.cost(task)


def _scored(one: Held, plan: Plan, count: int, trusted: Summaries) -> Held:
    """The scores of the repetitions all of whose runs are trusted."""
    scores = {
        name: [
            one.case.goal.score(plan.trial(name, number, trusted))
            for number in range(1, count + 1)
            if all(needed in trusted for needed in plan.needs(name, number))
        ]
        for name in one.scores
    }
    left_out = count * len(scores) - sum(map(len, scores.values()))
    return Held(one.case, one.answer, scores, left_out)
