"""Answers a question: runs until a ranking is settled, then looks for what would change it."""

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fullpipe._native import ScenarioError
from fullpipe.advisor import candidates, crossings, goals, nearest_cells, ranking, recipes, regret
from fullpipe.advisor.answer import MOSTLY, PATHS, Answer, Part
from fullpipe.advisor.crossings import Crossing, Looked
from fullpipe.advisor.inputs import Inputs, given_of
from fullpipe.advisor.question import BUFFERS_BDP, Question
from fullpipe.advisor.ranking import Ranking
from fullpipe.advisor.trials import EXTRAS, PHASES, Bench
from fullpipe.errors import mistake, stated
from fullpipe.runs.engines.local import Local
from fullpipe.runs.worlds import registry
from fullpipe.scenario.path import OPTIONS
from fullpipe.text import joined, minutes

if TYPE_CHECKING:
    import altair as alt

    from fullpipe.advisor.plan.design import NoPlan, Plan

# Seconds that an answer may take: about as long as people wait.
BUDGET_S = 5.0
# The part of it for the ranking; the rest looks for what would change it.
_FOR_RANKING = 0.5
# Until this part of it, the hosts of this machine as they are have more seeds.
_AS_IT_IS = 0.7
# Called with what is being done, and the part of the whole that is done.
Watcher: TypeAlias = Callable[[str, float], None]
# Called before the first run, with the runs of the first round and how many seconds they take, about.
Beginner: TypeAlias = Callable[[int, float], None]
MOST_BUDGET_S = 86_400.0
_MOST_SEEDS = 10_000
# What the shortest answer of a path may take whatever the budget.
_ALWAYS_S = 1.0
_SHORTEST_S = 1e-3
# A first round that takes so many times its budget, unlike its estimate, ends without an answer.
_PATIENCE = 2.0
# What is advised as a budget, as a multiple of what the runs take.
_ROOM = 1.2
# Shown as done until it is.
_NEARLY = 0.99
# Seeds on each path of a range.
_PATHS_SEEDS = 3
# So many run together, and fewer than these say nothing of a range.
_TOGETHER, _LEAST_PATHS = 8, 4
# On so many of them this machine's hosts as they are run, too.
_OTHER_PATHS = 16
# On so many of them, the harm of the winner is measured.
_HARM_PATHS, _DUEL = 8, frozenset({"duel"})
_PRIMES = (2, 3, 5, 7, 11)


@dataclass(frozen=True)
class Advice(Answer):
    """An answer.

    `answer` is its first sentence, `str()` all of it as `fullpipe advise` prints it, and `to_dict` all of it
    in plain values.
    """

    def __str__(self) -> str:
        from fullpipe.advisor import terminal

        return terminal.text(self)

    def _repr_html_(self) -> str:
        from fullpipe.advisor import chart

        return chart.notebook(self)

    def plot(self) -> "alt.TopLevelMixin":
        """The candidates' scores with their 95 % confidence intervals; over a range, where each is best."""
        from fullpipe.advisor import chart

        return chart.chart(self)

    def plan(self) -> "Plan | NoPlan":
        """The experiment that would confirm the answer on real connections, or why there is none."""
        from fullpipe.advisor.plan import design

        return design.of(self)

    def report(self, path: str | Path) -> Path:
        """Writes one HTML file that needs no network, and returns its path."""
        from fullpipe.advisor import chart

        return chart.report(self, Path(path))


def advise(
    question: Question,
    *,
    goal: str | None = None,
    world: str = registry.DEFAULT,
    budget_s: float | None = None,
    seeds: int | None = None,
    given: Collection[str] | None = None,
    measured: Collection[str] = (),
    left_out: Sequence[str] = (),
    watch: Watcher = lambda _doing, _done: None,
    begin: Beginner = lambda _runs, _seconds: None,
) -> Advice:
    """Answers a question. Candidates that it does not name are those of this machine's kernel.

    `given` names the fields that the user gave, by default those that differ from their defaults, and
    `measured` those of a file; all others are assumed. `left_out` is what that file has besides them.

    The answer takes about `budget_s` seconds: 5, or as long as it takes if the most `seeds` are given. With
    `seeds` alone it is the same on any machine, however busy. A budget that is given is kept: what does not
    fit is left out, and a path whose shortest answer does not fit is a `ScenarioError`. Without one, the
    first round of runs may take longer.
    """
    began_s = time.monotonic()
    kept = budget_s is not None
    if budget_s is None:
        budget_s = BUDGET_S if seeds is None else math.inf
    elif not 0 < budget_s <= MOST_BUDGET_S:
        raise mistake("budget", budget_s, "seconds above zero, up to a day", "e.g. 5")
    if seeds is not None and not 2 <= seeds <= _MOST_SEEDS:
        raise mistake("seeds", seeds, f"a whole number from 2 to {_MOST_SEEDS}", "e.g. 8")
    given = given_of(vars(question)) if given is None else given
    question = with_candidates(question)
    chosen = goals.named(goal, sized=question.flow_size is not None)
    given = (*given, *(() if goal is None else ("goal",)))
    inputs = Inputs.of(
        question,
        given=given,
        measured=measured,
        left_out=left_out,
        goal=chosen.name,
    )
    meter = _Meter(watch, began_s, budget_s, kept=kept)
    doubts: list[str] = []
    bench = Bench.of(world, meter.ran, doubts.append)
    asking = _Asking(bench, chosen, seeds, begin)
    assumed = _buffers(question)
    if len(assumed) == 1:
        found = _answer(asking, assumed[0], meter)
    else:
        found = _answer_buffers(asking, question, assumed, meter, given, measured)
    return replace(found, doubts=tuple(doubts), inputs=inputs, took_s=meter.took_s)


@dataclass(frozen=True)
class _Asking:
    """How questions are answered."""

    bench: Bench
    goal: goals.Goal
    # The most seeds of a path; None for what the time allows.
    seeds: int | None
    begin: Beginner
    # Whether it is one of several answers, each of which looks around less far and has fewer paths.
    one_of: int = 1


def _buffers(question: Question) -> list[Question]:
    """The question with each buffer that is assumed if none is given; those that are equal, once."""
    if question.buffer is not None:
        return [question]
    assumed = [replace(question, assumed_bdps=bdps) for bdps in BUFFERS_BDP]
    ends = [[1.0] * len(question.ranges), [0.0] * len(question.ranges)]
    sizes = [tuple(one.at(end).numbers().buffer_bytes for end in ends) for one in assumed]
    return list(dict(zip(reversed(sizes), reversed(assumed), strict=True)).values())[::-1]


def _answer_buffers(
    asking: _Asking,
    question: Question,
    assumed: Sequence[Question],
    meter: "_Meter",
    given: Collection[str],
    measured: Collection[str],
) -> Advice:
    """Answers for several buffers side by side."""
    bench, goal, most = asking.bench, asking.goal, asking.seeds
    few = min(ranking.FIRST, most or ranking.FIRST)
    if meter.kept:
        # What runs in any case.
        paths = math.ceil(_LEAST_PATHS / len(assumed)) if question.ranges else 1
        each = (most or _PATHS_SEEDS) if question.ranges else min(2, few)
        middles = [one.at([0.5] * len(question.ranges)) for one in assumed]
        least_s = paths * sum(bench.takes_s(one, range(1, each + 1), goal.needs) for one in middles)
        if least_s > max(meter.left_s, _ALWAYS_S):
            raise too_short(meter.budget_s, least_s)
    if not question.ranges:
        first = [task for one in assumed for task in bench.tasks(one, range(1, few + 1))]
        asking.begin(len(first), Local().takes_s(first))
    quiet = replace(asking, begin=lambda _runs, _seconds: None, one_of=len(assumed))
    found = []
    for number, one in enumerate(assumed):
        own = meter.part(number, len(assumed), f"buffer {one.assumed_bdps:g} bdp")
        answer = _answer(replace(quiet, bench=replace(bench, watch=own.ran)), one, own)
        inputs = Inputs.of(one, given=given, measured=measured, goal=goal.name)
        found.append(replace(answer, inputs=inputs))
    rankings = tuple(one for answer in found for one in answer.rankings)
    combined = Advice(
        question=question,
        goal=goal.name,
        world=bench.world.name,
        took_s=meter.took_s,
        rankings=rankings,
        paths=tuple(path for answer in found for path in answer.paths),
        parts=_parts(question, rankings) if question.ranges else (),
        brief=any(answer.brief for answer in found),
        buffers=tuple(found),
    )
    return replace(combined, lines=found[-1].lines if combined.winner else ())


def _answer(asking: _Asking, question: Question, meter: "_Meter") -> Advice:
    """Answers for one path, or one range of them, whose buffer is known or assumed."""
    bench, chosen, seeds = asking.bench, asking.goal, asking.seeds
    began_s, budget_s, kept = meter.began_s, meter.budget_s, meter.kept
    if question.ranges:
        paths = PATHS // asking.one_of
        return _answer_range(bench, question, chosen, meter, seeds or _PATHS_SEEDS, paths)
    path = question.numbers()
    most, few, extras = seeds or ranking.MOST, min(ranking.FIRST, seeds or ranking.FIRST), EXTRAS
    if kept:
        few, extras = _first_round(bench, question, chosen, few, budget_s, several=asking.one_of > 1)
    first = bench.tasks(question, range(1, few + 1), extras)
    asking.begin(len(first), Local().takes_s(first))
    # A world in wall time has no time to look around.
    for_ranking = 1.0 if bench.world.wall_time else _FOR_RANKING
    found = ranking.rank(
        bench,
        question,
        chosen,
        until_s=began_s + for_ranking * budget_s,
        first=few,
        most=most,
        # What other flows do is not known for each of them.
        extras=extras if chosen.needs else extras | {PHASES},
        begin=lambda done, wanted: meter.at(
            "ranking", for_ranking * done / most, for_ranking * (wanted - done) / most
        ),
    )
    meter.at("this machine as it is", for_ranking)
    now, qdisc = _as_it_is(bench, question, chosen, found, until_s=began_s + _AS_IT_IS * budget_s)
    crossed: list[Crossing] = []
    looked: list[Looked] = []
    if not bench.world.wall_time:
        crossed, looked = crossings.nearest(
            bench,
            question,
            chosen,
            found,
            until_s=began_s + budget_s,
            seeds=few,
            begin=lambda quantity, done: meter.at(
                f"what would change it: {quantity}", for_ranking + (1 - for_ranking) * done
            ),
            **_around(asking, question),
        )
    return Advice(
        question=question,
        goal=chosen.name,
        world=bench.world.name,
        took_s=meter.took_s,
        rankings=(found,),
        paths=(question,),
        crossings=tuple(crossed),
        looked=tuple(looked),
        brief=extras != EXTRAS,
        # A comparison is as good as the simulator is for both sides of it.
        trust=""
        if bench.world.wall_time
        else nearest_cells.sentence(path, _compared(found), _beyond(question)),
        lines=tuple(recipes.of(found.places[0].candidate, hosts_of(question))) if found.winner else (),
        now=now,
        qdisc=qdisc,
    )


def _around(asking: _Asking, question: Question) -> dict[str, Any]:
    """Where to look for what would change an answer: all over, or less far for one of several buffers."""
    if asking.one_of == 1:
        return {}
    # Between the assumed buffers, once.
    middle = question.assumed_bdps == BUFFERS_BDP[-2]
    quantities = [name for name in crossings.QUANTITIES if name != "buffer" or middle]
    return {"quantities": quantities, "looks": crossings.NEAR_LOOKS}


def _other_hosts(bench: Bench, question: Question) -> tuple[Question | None, str]:
    """The question on this machine's hosts as they are, if their pacing differs; and their discipline."""
    qdisc = candidates.qdisc()
    if qdisc is None or bench.world.wall_time or (qdisc == candidates.PACES) == question.pacing:
        return None, ""
    return replace(question, pacing=not question.pacing), qdisc


def _as_it_is(
    bench: Bench, question: Question, goal: goals.Goal, found: Ranking, *, until_s: float
) -> tuple[Advice | None, str]:
    """The answer on this machine's hosts as they are, if they differ and the time is enough."""
    other, qdisc = _other_hosts(bench, question)
    seeds = min(found.seeds, ranking.FIRST)
    if other is None:
        return None, ""
    if math.isfinite(until_s):
        takes_s = bench.takes_s(other, range(1, seeds + 1), goal.needs)
        if time.monotonic() + takes_s > until_s:
            return None, ""
    now = ranking.rank(bench, other, goal, until_s=until_s, first=seeds, most=found.seeds, extras=goal.needs)
    harm = None
    if now.winner not in (None, found.winner) and "duel" not in goal.needs:
        harm = _harm(bench, [other], now.winner or "", seeds)
    return Advice(other, goal.name, bench.world.name, 0.0, (now,), (other,), harm=harm), qdisc


def _harm(bench: Bench, paths: Sequence[Question], winner: str, seeds: int) -> float | None:
    """The mean harm of a winner over some paths."""
    alone = [replace(path, candidates=(winner,)) for path in paths]
    found = bench.run(alone, range(1, seeds + 1), _DUEL)
    harms = [trial.harm for trials in found for trial in trials[winner] if trial.harm is not None]
    return math.fsum(harms) / len(harms) if harms else None


def _first_round(
    bench: Bench,
    question: Question,
    goal: goals.Goal,
    few: int,
    budget_s: float,
    *,
    several: bool = False,
) -> tuple[int, frozenset[str]]:
    """How many seeds the first round has, and which scenarios: as many as the budget allows.

    The fewest run in any case if they take a second or less, or for one of `several` answers, whose fewest
    runs fit together. Raises `ScenarioError` if they take longer.
    """
    needed_s = 0.0
    for seeds, extras in ((few, EXTRAS), (few, goal.needs), (min(2, few), goal.needs)):
        needed_s = bench.takes_s(question, range(1, seeds + 1), extras)
        if needed_s <= budget_s:
            return seeds, extras
    if needed_s <= _ALWAYS_S or several:
        return min(2, few), goal.needs
    raise too_short(budget_s, needed_s)


def too_short(budget_s: float, needed_s: float) -> ScenarioError:
    """The error about a budget in which a path has no answer; `needed_s` is what the shortest one takes."""
    enough = math.ceil(_ROOM * needed_s * 10) / 10 if needed_s < 5 else math.ceil(_ROOM * needed_s)
    about = f"{needed_s:.1g} s" if needed_s < 5 else minutes(needed_s)
    needs = f"the fewest runs that answer this path take about {about} on this machine"
    return short_budget(budget_s, needs, f"give {enough:g}, or a shorter duration")


def short_budget(budget_s: float, needs: str, fix: str) -> ScenarioError:
    """The error for a budget that is too short. It names the whole budget, not the time that remains."""
    return stated("budget", budget_s, f"budget: {budget_s:.3g} s is too short: {needs}; {fix}", needs, fix)


class _Meter:
    """Tells how far an answer is: by the time that it may take, or else by its parts."""

    def __init__(self, watch: Watcher, began_s: float, budget_s: float, *, kept: bool) -> None:
        self._watch, self.began_s, self.budget_s = watch, began_s, budget_s
        self.kept = kept
        # Of how many answers it is one.
        self.shares = 1
        self._doing, self._done, self._span = "", 0.0, 0.0

    def part(self, number: int, of: int, name: str) -> "_Meter":
        """That of one of several answers, which shares the time that is left with those after it."""

        def watch(doing: str, done: float) -> None:
            self._watch(f"{name}: {doing}", (number + done) / of)

        # A short time that is over is short all the same: the fewest runs take place.
        left_s = max(self.left_s / (of - number), _SHORTEST_S)
        own = _Meter(watch, time.monotonic(), left_s, kept=self.kept)
        own.shares = of
        return own

    @property
    def took_s(self) -> float:
        """How long it took so far."""
        return time.monotonic() - self.began_s

    @property
    def left_s(self) -> float:
        """How much of the time is left."""
        return max(0.0, self.budget_s - self.took_s)

    def over(self, part: float = 1.0) -> bool:
        """Whether this part of the time is over."""
        return self.took_s > part * self.budget_s

    def at(self, doing: str, done: float, span: float = 0.0) -> None:
        """What begins now, which part of the whole is done, and which part it is itself."""
        self._doing, self._done, self._span = doing, done, span
        self.ran(0.0)

    def ran(self, part: float) -> None:
        """Which part of what began has run."""
        done = self._done + part * self._span
        if math.isfinite(self.budget_s):
            spent = self.took_s / self.budget_s
            # What runs in any case, the first round, may take longer than all of the time.
            done = min(spent, part if self._done == 0 else _NEARLY)
            # Estimates are right to a factor.
            if (
                self.kept
                and self._done == 0
                and 0 < part < 1
                and self.took_s > _PATIENCE * max(self.budget_s, _ALWAYS_S)
            ):
                raise too_short(self.shares * self.budget_s, self.shares * self.took_s / part)
        self._watch(self._doing, done)


def with_candidates(question: Question) -> Question:
    """The question with candidates: those that it names, else those of this machine's kernel."""
    chosen = question.candidates or candidates.names()
    if len(set(chosen)) < 2:
        # A name that does not exist is the mistake, not how many there are.
        Question(rate="1 Mbit/s", rtt="10 ms", candidates=chosen).alone()
        raise mistake(
            "candidates", joined(list(chosen)), "two or more different controllers", "name another one"
        )
    return replace(question, candidates=tuple(dict.fromkeys(chosen)))


def _answer_range(
    bench: Bench, question: Question, goal: goals.Goal, meter: _Meter, seeds: int, wanted: int = PATHS
) -> Advice:
    places = [_spread(number, len(question.ranges)) for number in range(1, wanted + 1)]
    paths: list[Question] = []
    rankings: list[Ranking] = []
    other, qdisc = _other_hosts(bench, question)
    now: list[Ranking] = []
    while len(paths) < len(places):
        # Few paths at a time, so that the time is kept.
        some = places[len(paths) : len(paths) + _TOGETHER]
        if rankings and meter.over(len(paths) / (len(paths) + len(some))):
            break
        if meter.kept:
            one_s = bench.takes_s(question.at(some[0]), range(1, seeds + 1), goal.needs)
            if not rankings and meter.left_s < 2 * _LEAST_PATHS * one_s:
                other = None
            least = math.ceil(_LEAST_PATHS / meter.shares)
            fit = math.floor(
                meter.left_s / (one_s if other is None or len(now) >= _OTHER_PATHS else 2 * one_s)
            )
            if not rankings and fit < least and meter.shares > 1:
                fit = least
            elif not rankings and fit < least:
                raise too_short(meter.budget_s, _LEAST_PATHS * one_s)
            if fit < 1:
                break
            some = some[:fit]
        twice = other is not None and len(now) < _OTHER_PATHS
        span = len(some) / len(places) / (2 if twice else 1)
        begun = len(paths) / len(places)
        meter.at("paths of the range", begun, span)
        asked = [question.at(place) for place in some]
        for path, trials in zip(asked, bench.run(asked, range(1, seeds + 1), goal.needs), strict=True):
            paths.append(path)
            rankings.append(ranking.ranked(goal, trials))
        if other is not None and twice:
            meter.at("paths of the range, this machine as it is", begun + span, span)
            there = bench.run([other.at(place) for place in some], range(1, seeds + 1), goal.needs)
            now += [ranking.ranked(goal, trials) for trials in there]
    parts = _parts(question, rankings)
    best = parts[0].candidate
    harm = None
    meter.at("harm of the winner", 1.0)
    # Where somebody is a leader on all paths, nobody else is clearly best on one: the first part leads.
    recommended = best if parts[0].wins >= MOSTLY or parts[0].leads == 1 else None
    if recommended is not None and not meter.over():
        first = paths[:_HARM_PATHS]
        if not (meter.kept and bench.takes_s(paths[0], [1], _DUEL) * len(first) > meter.left_s):
            harm = _harm(bench, first, best, 1)
    return Advice(
        question=question,
        goal=goal.name,
        world=bench.world.name,
        took_s=meter.took_s,
        rankings=tuple(rankings),
        paths=tuple(paths),
        parts=parts,
        regrets=regret.of(goal, rankings),
        harm=harm,
        brief=recommended is not None and harm is None,
        wanted=wanted,
        now=None
        if other is None
        else Advice(
            other,
            goal.name,
            bench.world.name,
            0.0,
            tuple(now),
            tuple(paths[: len(now)]),
            parts=_parts(question, now),
        ),
        qdisc=qdisc,
        boundaries=crossings.boundaries(question, paths, rankings),
        trust=nearest_cells.sentence(
            question.at([0.5] * len(question.ranges)).numbers(), question.candidates, _beyond(question)
        ),
        lines=() if recommended is None else tuple(recipes.of(best, hosts_of(question))),
    )


def _parts(question: Question, rankings: Sequence[Ranking]) -> tuple[Part, ...]:
    """Each candidate's part of the paths of a range, the best first."""
    parts = []
    for name in question.candidates:
        wins = sum(one.winner == name for one in rankings) / len(rankings)
        leads = sum(name in one.leaders for one in rankings) / len(rankings)
        parts.append(Part(name, wins, leads))
    return tuple(sorted(parts, key=lambda part: (-part.wins, -part.leads)))


def _spread(number: int, dimensions: int) -> list[float]:
    """The number-th point of Halton's sequence, which fills the unit cube evenly."""
    return [_radical_inverse(number, base) for base in _PRIMES[:dimensions]]


def _radical_inverse(number: int, base: int) -> float:
    value, part = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        value += digit * part
        part /= base
    return value


def _compared(found: Ranking) -> tuple[str, ...]:
    """Those whose scores decided: the leaders, and the best of the others."""
    behind = [place.candidate for place in found.places if place.standing == "behind"]
    return (*found.leaders, *behind[:1])


# Up to this size of path and queue, flows do not fill the 4 MiB that Linux has for sending by default.
_SMALL_BYTES = 1 << 20


def hosts_of(question: Question) -> recipes.Hosts:
    """The hosts that a question is simulated on, over a range those of its largest path."""
    largest = question.at([1.0] * len(question.ranges)).numbers()
    large = largest.bdp_bytes + largest.buffer_bytes > _SMALL_BYTES
    unlimited = question.tcp_memory in (None, "max")
    return recipes.Hosts(question.pacing, question.ecn, large and unlimited)


# Keys of a path that none of those paths has.
_FURTHER = {
    **{one.name: one.option for one in OPTIONS if one.element and one.name != "policer"},
    "deliveries": "a delivery trace",
}


def _beyond(question: Question) -> tuple[str, ...]:
    """What the path has, and the paths that were compared with Linux do not."""
    queue = question.queue is not None and question.queue.partition(":")[0] != "fifo"
    has = (
        (queue, "a queue discipline"),
        (question.policer is not None, "a policer"),
        *((getattr(question, name) not in (None, False), one) for name, one in _FURTHER.items()),
        (question.tcp_memory == "linux", "limited TCP memory"),
        # Controllers with a model pace themselves anyway.
        (question.pacing and {"reno", "cubic"} & set(question.candidates), "paced Reno or CUBIC flows"),
    )
    return tuple(name for there, name in has if there)
