"""Does `fullpipe advise` miss what would change its answer? Held against a scan of random paths.

    .venv/bin/python bench/advice_changes.py --paths 200

Each path is scanned with one quantity from a quarter of its value to four times that, in steps of 4 %.
A stretch of the scan with another answer that is wider than the resolution that the answer states has to be
among its changes.
Exits with 1 if one is missed.
"""

import argparse
import itertools
import math
import random
import sys
from dataclasses import dataclass

from fullpipe.advisor import Question, crossings, goals, ranking
from fullpipe.advisor.crossings import Crossing, Looked
from fullpipe.advisor.trials import Bench

CANDIDATES = ("reno", "cubic", "bbr1")
# Fine beside the answer's grid of 41 %.
STEP = 2 ** (1 / 16)
SEEDS = 4


@dataclass(frozen=True)
class Stretch:
    """Neighbouring values of a scan with the same other answer: who wins, "" if nobody does."""

    low: float
    high: float
    label: str


@dataclass(frozen=True)
class Case:
    """A path, and the quantity that is scanned."""

    question: Question
    goal: goals.Goal
    quantity: str

    def __str__(self) -> str:
        asked = self.question
        return f"{asked.rate}, {asked.rtt}, {asked.buffer}, for {self.goal.name}: {self.quantity}"


def draw(paths: int, seed: int = 1) -> list[Case]:
    """Random paths, logarithmically uniform: 0.5 to 10 Mbit/s, 10 to 80 ms, 0.25 to 4 BDP."""
    chance = random.Random(seed)

    def between(low: float, high: float) -> float:
        return low * math.exp(math.log(high / low) * chance.random())

    cases = []
    for number in range(paths):
        rate_mbps, rtt_ms, bdps = between(0.5, 10), between(10, 80), between(0.25, 4)
        question = Question(
            rate=f"{rate_mbps:.2f} Mbit/s",
            rtt=f"{rtt_ms:.1f} ms",
            buffer=f"{max(15.0, bdps * rate_mbps * rtt_ms / 8):.0f} KB",
            candidates=CANDIDATES,
        )
        goal = goals.GOALS[("throughput", "balance", "delay")[chance.randrange(3)]]
        cases.append(Case(question, goal, ("buffer", "rtt", "rate")[number % 3]))
    return cases


def scan(bench: Bench, case: Case, now: ranking.Ranking, low: float, high: float) -> list[Stretch]:
    """The stretches from `low` to `high` in which the answer is another one."""
    count = math.floor(math.log(high / low) / math.log(STEP) + 1e-9)
    values = [low * STEP**number for number in range(count + 1)]
    moved = [case.question.moved(case.quantity, value) for value in values]
    found = [ranking.ranked(case.goal, one) for one in bench.run(moved, range(1, SEEDS + 1), case.goal.needs)]
    labels = [crossings.changed(now, there) for there in found]
    stretches = []
    for label, group in itertools.groupby(zip(values, labels, strict=True), key=lambda pair: pair[1]):
        if label is not None:
            inside = [value for value, _ in group]
            stretches.append(Stretch(inside[0], inside[-1], label))
    return stretches


def missed(stretches: list[Stretch], found: list[Crossing], looked: Looked) -> list[Stretch]:
    """The stretches that are wider than the stated resolution, and in no change of the answer."""

    def seen(one: Stretch) -> bool:
        for change in found:
            edge = change.until if change.until is not None else looked.low if change.below else looked.high
            low, high = sorted((change.value, edge))
            if (change.ahead or "") == one.label and low <= one.high and one.low <= high:
                return True
        return False

    return [one for one in stretches if one.high / one.low > looked.step and not seen(one)]


def check(case: Case) -> tuple[int, list[Stretch]]:
    """How many stretches a path's scan has, and which of them its answer misses."""
    bench = Bench.of("sim")
    now = ranking.rank(bench, case.question, case.goal, most=SEEDS, extras=frozenset())
    found, (looked,) = crossings.nearest(
        bench,
        case.question,
        case.goal,
        now,
        seeds=SEEDS,
        quantities=[case.quantity],
        looks=crossings.NEAR_LOOKS,
    )
    stretches = scan(bench, case, now, looked.low, looked.high)
    return len(stretches), missed(stretches, found, looked)


def main() -> int:
    """Prints what each path's answer misses."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--paths", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    scanned = bad = 0
    for case in draw(given.paths, given.seed):
        stretches, lost = check(case)
        scanned, bad = scanned + stretches, bad + len(lost)
        for one in lost:
            print(f"{case}: missed {one.label or 'no clear winner'} from {one.low:g} to {one.high:g}")
    print(f"{given.paths} paths: {scanned} stretches with another answer, {bad} missed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
