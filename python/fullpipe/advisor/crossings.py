"""What would change the answer: where each quantity's value makes another candidate best.

Each quantity moves in both directions, to 16 times and a sixteenth of its value, on a grid of factors of the
square root of two; the nearest values first, for all quantities. A value changes the answer if it has another
clear winner, or none where there is one. Values between two with different answers narrow the place by
bisection. All other quantities stay as they are; a buffer in bandwidth-delay products moves with the path.

A change that begins and ends between two neighbouring values is not seen. So an answer states how far and how
finely it looked (`Looked`).
"""

import contextlib
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fullpipe._native import ScenarioError
from fullpipe.advisor.goals import Goal
from fullpipe.advisor.question import Question, percent, shown
from fullpipe.advisor.ranking import FIRST, Ranking, ranked
from fullpipe.advisor.trials import Bench
from fullpipe.text import joined

# Powers of two by which a value moves, look by look.
_LOOKS: tuple[tuple[float, ...], ...] = ((1.0,), (0.5,), (1.5, 2.0), (2.5, 3.0), (3.5, 4.0))
# So many looks reach four times a value, and a quarter.
NEAR_LOOKS = 3
# A path without loss begins to have some here, and so often it doubles: the looks.
_LEAST_LOSS = 1e-5
_LOSS_LOOKS: tuple[tuple[float, ...], ...] = (
    (4.0, 8.0, 12.0),
    (2.0, 6.0, 10.0, 14.0),
    (),
    (1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0),
    (),
)
# The first looks come before anything is narrowed, so that little time shows all quantities.
_FIRST_LOOKS = 2
# Paths that are this much more effort than the question, or the longest runs by default, are not tried.
_MOST_EFFORT = 4.0
# The place of a change is narrowed to this factor, and that of so many changes in each direction.
_NARROW, _MOST_NARROWED = 2 ** (1 / 8) + 1e-9, 4
# From this factor beyond the place of a change on, it is shown who is ahead.
_CLEAR = 2**0.25 - 1e-9
_MOST_LOSS = 0.2
_LEAST = {"rate": 1e5, "rtt": 0.1, "buffer": 3_000.0, "loss": 1e-6}
_MOST = {"rate": 4e10, "rtt": 2_000.0, "buffer": 1e9, "loss": _MOST_LOSS}
QUANTITIES = ("buffer", "rtt", "rate", "loss")
NAMES = {"rtt": "round-trip time", "loss": "random loss"}


@dataclass(frozen=True)
class Crossing:
    """From `value` on, away from the question's own value, `ahead` is better than `behind`.

    The change lies between `inner` and `value`.
    """

    quantity: str
    below: bool  # Whether it is below `value`, not above.
    value: float
    # The nearest value on the question's own side at which the answer was seen to be the same.
    inner: float
    # Where the answer is as before again; None if it was not, as far as anybody looked.
    until: float | None
    # None where nobody is clearly best.
    ahead: str | None
    behind: str
    # How much of the new leader's score the old one lacks, where it was seen.
    shortfall: float
    seen_at: float
    # Behind `until`, the nearest value at which the answer is another one again.
    outer: float | None = None
    # Without a clear winner: who shares the lead.
    leaders: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = NAMES.get(self.quantity, self.quantity)
        if self.until is not None:
            edges = [(self.inner, self.value), (self.until, self.outer or self.until)]
            low, high = sorted(edges, key=max)
            where = f"between {self._edge(*low)} and {self._edge(*high)}"
        else:
            where = f"{'below' if self.below else 'above'} {self._edge(self.inner, self.value)}"
        where = f"{where} of {name}"
        there = shown(self.quantity, self.seen_at)
        if self.ahead is None:
            rest = "" if self.behind in self.leaders else f"; {self.behind} scores {self._lacks} less"
            return f"{where}, no clear winner: {joined(list(self.leaders))} lead at {there}{rest}"
        return f"{where}, {self.ahead} is ahead: {self.behind} scores {self._lacks} less at {there}"

    @property
    def _lacks(self) -> str:
        return percent(self.shortfall)

    def _edge(self, one: float, other: float) -> str:
        """Between which two values it lies."""
        low, high = (shown(self.quantity, end) for end in sorted((one, other)))
        if low == high:
            return low
        same_unit = low.partition(" ")[2] == high.partition(" ")[2]
        return f"{low.partition(' ')[0] if same_unit else low}–{high}"


@dataclass(frozen=True)
class Looked:
    """How far and how finely a quantity was looked at; nowhere if `low` is `high`."""

    quantity: str
    low: float
    high: float
    step: float  # The largest factor between two neighbouring values.
    # Whether all values were tried. If not, some would have taken too long.
    complete: bool

    def __str__(self) -> str:
        low, high = (shown(self.quantity, end) for end in (self.low, self.high))
        return f"{NAMES.get(self.quantity, self.quantity)} from {low} to {high}"


def nearest(
    bench: Bench,
    question: Question,
    goal: Goal,
    now: Ranking,
    *,
    until_s: float = math.inf,
    seeds: int = FIRST,
    begin: Callable[[str, float], None] = lambda _quantity, _done: None,
    quantities: Sequence[str] = QUANTITIES,
    looks: int = len(_LOOKS),
) -> tuple[list[Crossing], list[Looked]]:
    """The changes in each quantity and direction, the nearest first; and where it looked for them.

    Every path on the way has `seeds` seeds. `begin` receives each quantity, and of the part that is done.
    `looks` limits how far it looks: `NEAR_LOOKS`, or all.
    """
    path = question.numbers()
    seek = _Seek(bench, question, goal, now, range(1, seeds + 1), until_s)
    ways = [
        _Way(quantity, below, path.of(quantity))
        for quantity in quantities
        for below in (True, False)
        if not (quantity == "loss" and path.loss == 0 and below)
        # A delivery trace is what it is.
        and not (quantity == "rate" and question.deliveries is not None)
    ]
    steps = [
        (way, step)
        for look in range(looks)
        for step in ((seek.look, look), *([(seek.narrow, look)] if look + 1 >= _FIRST_LOOKS else []))
        for way in ways
    ]
    for number, (way, (step, look)) in enumerate(steps):
        begin(way.quantity, number / len(steps))
        step(way, look)
    crossed = [one for way in ways for one in seek.crossings(way)]
    looked = [seek.looked([way for way in ways if way.quantity == name]) for name in _quantities(ways)]
    return crossed, looked if any(way.seen for way in ways) else []


class _TooLong(Exception):
    """A try would take too long."""


def _quantities(ways: Sequence["_Way"]) -> list[str]:
    return list(dict.fromkeys(way.quantity for way in ways))


@dataclass
class _Way:
    """A quantity in one direction from its value, and the rankings that were seen there."""

    quantity: str
    below: bool
    own: float
    seen: dict[float, Ranking] = field(default_factory=dict)
    # The nearest value that cannot be, or would take too long: nothing farther is tried.
    end: float | None = None
    complete: bool = True

    @property
    def start(self) -> float:
        """The question's own value; for no loss, one that is as good as none."""
        return self.own or _LEAST_LOSS / 2

    def values(self, look: int) -> list[float]:
        """The values of a look, the nearest first."""
        powers = (_LOSS_LOOKS if self.quantity == "loss" and self.own == 0 else _LOOKS)[look]
        moved = [self.start * 2 ** (-power if self.below else power) for power in powers]
        return [one for one in moved if _LEAST[self.quantity] <= one <= _MOST[self.quantity]]

    def beyond(self, value: float) -> bool:
        """Whether nothing is tried there."""
        return self.end is not None and (value <= self.end if self.below else value >= self.end)

    @property
    def ordered(self) -> list[tuple[float, Ranking]]:
        """What was seen, the nearest first."""
        return sorted(self.seen.items(), reverse=self.below)


@dataclass(frozen=True)
class _Seek:
    """A search for crossings around one answer."""

    bench: Bench
    question: Question
    goal: Goal
    now: Ranking
    seeds: Sequence[int]
    until_s: float

    def look(self, way: _Way, look: int) -> None:
        """Tries the values of a look."""
        for value in way.values(look):
            if way.beyond(value):
                return
            try:
                self._try(way, value)
            except _TooLong:
                way.complete = False

    def narrow(self, way: _Way, look: int) -> None:
        """Narrows the places where the answer changes, the nearest first."""
        del look
        for number in itertools.count():
            edges = [
                (one, other)
                for (one, label), (other, other_label) in itertools.pairwise(self._changes(way))
                if label != other_label
            ]
            wide = [pair for pair in edges[:_MOST_NARROWED] if _factor(*pair) > _NARROW]
            # Each try halves a place; the limit is for places that turn up on the way.
            if not wide or number >= 4 * _MOST_NARROWED:
                return
            with contextlib.suppress(_TooLong):
                if self._try(way, math.sqrt(wide[0][0] * wide[0][1])):
                    continue
            return

    def crossings(self, way: _Way) -> list[Crossing]:
        """The stretches in which the answer is another one."""
        found = []
        changes = self._changes(way)
        stretches = [list(group) for _, group in itertools.groupby(changes, key=lambda pair: pair[1])]
        for number, stretch in enumerate(stretches):
            label = stretch[0][1]
            if label is None:
                continue
            (value, _), (last, _), (inner, _) = stretch[0], stretch[-1], stretches[number - 1][-1]
            # Right at the edge, nobody is far ahead.
            seen_at = next((one for one, _ in stretch if _factor(one, value) >= _CLEAR), last)
            there = way.seen[seen_at]
            behind, shortfall = self._lacks(there)
            ends = number + 1 < len(stretches)
            found.append(
                Crossing(
                    quantity=way.quantity,
                    below=way.below,
                    value=value,
                    inner=inner,
                    until=last if ends else None,
                    ahead=label or None,
                    behind=behind,
                    shortfall=shortfall,
                    seen_at=seen_at,
                    outer=stretches[number + 1][0][0] if ends else None,
                    leaders=() if label else there.leaders,
                )
            )
        return found

    def looked(self, ways: Sequence[_Way]) -> Looked:
        """Where a quantity was looked at."""
        values = sorted([ways[0].own, *(value for way in ways for value in way.seen)])
        # From no loss to some is no factor.
        pairs = [pair for pair in itertools.pairwise(values) if pair[0] > 0]
        step = max((high / low for low, high in pairs), default=1.0)
        return Looked(ways[0].quantity, values[0], values[-1], step, all(way.complete for way in ways))

    def _changes(self, way: _Way) -> list[tuple[float, str | None]]:
        """From the question's own value on: None where the answer is the same, else what it is there."""
        return [(way.start, None), *((value, changed(self.now, there)) for value, there in way.ordered)]

    def _lacks(self, there: Ranking) -> tuple[str, float]:
        """Which former leader is behind, and what it lacks."""
        ahead = there.places[0]
        others = [name for name in self.now.leaders if name != ahead.candidate]
        old = there.place(others[0] if others else ahead.candidate)
        return old.candidate, old.behind.mean / ahead.score.mean if ahead.score.mean else 0.0

    def _try(self, way: _Way, value: float) -> bool:
        """Adds the ranking with another value; false if there cannot be such a path.

        Raises `_TooLong`. Nothing farther away is tried then.
        """
        moved = self.question.moved(way.quantity, value)
        try:
            long = moved.effort > _MOST_EFFORT * max(1.0, self.question.effort)
            if long or not self._in_time(moved):
                way.end = value
                raise _TooLong
            (trials,) = self.bench.run([moved], self.seeds, self.goal.needs)
        except ScenarioError:
            way.end = value
            return False
        way.seen[value] = ranked(self.goal, trials)
        return True

    def _in_time(self, moved: Question) -> bool:
        """Whether a path can be tried before the time is over."""
        if math.isinf(self.until_s):
            return True
        takes_s = self.bench.takes_s(moved, self.seeds, self.goal.needs)
        return time.monotonic() + takes_s <= self.until_s


def changed(now: Ranking, there: Ranking) -> str | None:
    """Whether another path has another answer: who wins there, "" if nobody does; None if it has the same."""
    if there.winner == now.winner:
        return None
    # Fewer seeds than the question's own answer had settle less.
    undecided = there.winner is None and not there.settled and now.seeds > there.seeds
    return None if undecided and now.winner in there.leaders else there.winner or ""


def _factor(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


@dataclass(frozen=True)
class Boundary:
    """Between two neighbouring paths of a range, the winner changes. None is no clear winner."""

    quantity: str
    unit: str  # That of `low` and `high`: "BDP", or that of `Numbers`.
    low: float
    high: float
    below: str | None
    above: str | None
    # On how many of how many paths each side has its winner.
    paths_below: tuple[int, int]
    paths_above: tuple[int, int]

    def __str__(self) -> str:
        low, high = (_end(self.quantity, self.unit, end) for end in (self.low, self.high))
        name = NAMES.get(self.quantity, self.quantity)
        sides = (
            f"{winner or 'no clear winner'} {side}"
            if right == paths
            else f"{winner or 'no clear winner'} on {right} of {paths} paths {side}"
            for winner, (right, paths), side in (
                (self.below, self.paths_below, "below"),
                (self.above, self.paths_above, "above"),
            )
        )
        return f"between {low} and {high} of {name}: {', '.join(sides)}"


@dataclass(frozen=True)
class Boundaries:
    """Where the winner changes over a range, and how finely it was looked at."""

    # Over one quantity, every change. Over several, the one value that tells the winners apart best.
    found: tuple[Boundary, ...]
    quantities: tuple[str, ...]
    paths: int
    step: float | None  # The largest factor between two neighbouring values; None with several quantities.

    def __str__(self) -> str:
        several = joined([NAMES.get(name, name) for name in self.quantities])
        values = f"{self.paths} values of {several}"
        if self.step is not None:
            steps = f", in steps of at most {self.step:.2f}x"
            if self.found:
                return f"Where the winner changes, at {values}{steps}:"
            return f"No change of the winner was seen at {values}{steps}."
        if self.found:
            return f"What tells the winners on {self.paths} paths apart best, of {several}:"
        return f"No value of {several} tells the winners on {self.paths} paths apart."


def _end(quantity: str, unit: str, value: float) -> str:
    return f"{value:.2g} BDP" if unit == "BDP" else shown(quantity, value, 3)


def boundaries(question: Question, paths: Sequence[Question], rankings: Sequence[Ranking]) -> Boundaries:
    """Where the winner changes over the paths of a range."""
    numbers = [path.numbers() for path in paths]
    winners = [ranking.winner for ranking in rankings]

    def along(quantity: str) -> tuple[str, list[tuple[float, str | None]]]:
        relative = quantity == "buffer" and "bdp" in str(question.buffer).lower()
        values = [one.buffer_bytes / one.bdp_bytes if relative else one.of(quantity) for one in numbers]
        pairs = sorted(zip(values, winners, strict=True), key=lambda pair: pair[0])
        return "BDP" if relative else quantity, pairs

    if len(question.ranges) == 1:
        (quantity,) = question.ranges
        unit, pairs = along(quantity)
        found = [
            Boundary(quantity, unit, low, high, below, above, (1, 1), (1, 1))
            for (low, below), (high, above) in itertools.pairwise(pairs)
            if below != above
        ]
        step = max((high / low for (low, _), (high, _) in itertools.pairwise(pairs)), default=1.0)
        return Boundaries(tuple(found), (quantity,), len(paths), step)
    splits = [_split(quantity, *along(quantity)) for quantity in question.ranges]
    known = [one for one in splits if one is not None]
    best = max(known, key=lambda one: one.paths_below[0] + one.paths_above[0], default=None)
    return Boundaries((best,) if best else (), question.ranges, len(paths), None)


def _split(quantity: str, unit: str, pairs: Sequence[tuple[float, str | None]]) -> Boundary | None:
    """The value that tells the winners below it from those above it best; None if none does."""
    best, right = None, 0
    for at in range(1, len(pairs)):
        sides = [Counter(winner for _, winner in side) for side in (pairs[:at], pairs[at:])]
        (below, few), (above, many) = (side.most_common(1)[0] for side in sides)
        if below != above and few + many > right:
            ends = pairs[at - 1][0], pairs[at][0]
            best = Boundary(quantity, unit, *ends, below, above, (few, at), (many, len(pairs) - at))
            right = few + many
    # It has to say more than the most frequent winner alone.
    often = Counter(winner for _, winner in pairs).most_common(1)[0][1]
    return best if right > often else None
