"""An answer in plain values: a ranking, what would change it, how far to trust it, and how to apply it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from fullpipe.advisor import candidates, confidence, ranking, regret
from fullpipe.advisor.confidence import Confidence
from fullpipe.advisor.crossings import Boundaries, Crossing, Looked
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.horizon import Horizon, plain
from fullpipe.advisor.inputs import Inputs
from fullpipe.advisor.question import Question, percent, shown
from fullpipe.advisor.ranking import ALIKE, Place, Ranking
from fullpipe.advisor.recipes import Line
from fullpipe.advisor.regret import Regret
from fullpipe.measures.statistics import Estimate
from fullpipe.scenario.path import NAMES
from fullpipe.text import joined

# How many paths of a range are asked about.
PATHS = 48
# From this share of a range's paths on, who is best on them is best on it.
MOSTLY = 0.9
# A winner that takes more of a neighbour's fair share is named with it.
_MOST_TAKEN = 0.5


@dataclass(frozen=True)
class Column:
    """What people see of a candidate, besides its score."""

    name: str
    title: str
    unit: str
    take: Callable[[Trial], float | None]
    digits: int


COLUMNS = (
    Column("goodput", "Goodput", "Mbit/s", lambda trial: trial.goodput_bps / 1e6, 2),
    Column("rtt_p95", "RTT p95", "ms", lambda trial: trial.rtt_p95_ms, 1),
    Column("retransmitted", "Retransmitted", "%", lambda trial: 100 * trial.loss_ratio, 2),
    Column("short_flows", "Short flows", "ms", lambda trial: trial.fct_ms, 1),
    Column("harm", "Harm", "%", lambda trial: None if trial.harm is None else 100 * trial.harm, 0),
)


@dataclass(frozen=True)
class Part:
    """A candidate's part of a range of paths."""

    candidate: str
    wins: float  # The share of the paths where it is the clear winner.
    leads: float  # The share where it is a leader: wins, or cannot be told from the winner.


@dataclass(frozen=True)
class Answer:
    """An answer. `answer` is its first sentence, and `to_dict` all of it in plain values."""

    question: Question
    goal: str
    world: str
    took_s: float
    # On one path: the ranking. Over a range: one at each path.
    rankings: tuple[Ranking, ...]
    paths: tuple[Question, ...]
    crossings: tuple[Crossing, ...] = ()
    # Where they were looked for; empty if nowhere.
    looked: tuple[Looked, ...] = ()
    # Whether the time was too short for short flows and a neighbour, which the goal does not need.
    brief: bool = False
    parts: tuple[Part, ...] = ()
    # Over a range: what each candidate costs against the best one.
    regrets: tuple[Regret, ...] = ()
    # Over a range: where the winner changes.
    boundaries: Boundaries | None = None
    trust: str = ""
    lines: tuple[Line, ...] = field(default=())
    # Why runs cannot be trusted, a reason for each such run; in the simulator there is none.
    doubts: tuple[str, ...] = ()
    # The same on this machine's hosts as they are, before the lines are applied, if their pacing differs.
    now: "Answer | None" = None
    # This machine's queue discipline, where it was read for that.
    qdisc: str = ""
    # Harm of the winner, where the ranking does not have it: over a range, the mean of its first paths.
    harm: float | None = None
    # Without a buffer: an answer for each of those that are assumed, whose rankings and paths these are.
    buffers: "tuple[Answer, ...]" = ()
    # Over a range: how many paths it was to have.
    wanted: int = PATHS
    # Where the fields of the question and the goal come from.
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def ranking(self) -> Ranking:
        """The ranking of the path, or of the first one: of a range, or of the smallest assumed buffer."""
        return self.rankings[0]

    @property
    def winner(self) -> str | None:
        """Who is clearly best; over a range, on at least 90 % of its paths. None if nobody is.

        Without a buffer: with each of those that are assumed.
        """
        if self.buffers:
            winners = {one.winner for one in self.buffers}
            return winners.pop() if len(winners) == 1 else None
        if not self.parts:
            return self.ranking.winner
        return next((part.candidate for part in self.parts if part.wins >= MOSTLY), None)

    @property
    def whole(self) -> bool:
        """Whether the time was enough for all paths of a range."""
        if self.buffers:
            return all(one.whole for one in self.buffers)
        return len(self.paths) == (self.wanted if self.parts else 1)

    @property
    def recommended(self) -> str | None:
        """Whose lines are printed: the winner, or over a range one that is nowhere clearly beaten."""
        if self.winner is not None or not self.parts or self.buffers:
            return self.winner
        return self.parts[0].candidate if self.parts[0].leads == 1 else None

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        if self.buffers:
            return _side_by_side(self.buffers)
        sentence = _over_a_range(self) if self.parts else _on_a_path(self.ranking)
        return f"{sentence.removesuffix('.')}{self._later}{self.warning()}."

    @cached_property
    def horizon(self) -> Horizon:
        """How long the long flows ran; over a range, or with several buffers, on the largest path."""
        if self.buffers:
            return self.buffers[-1].horizon
        places = [0.0 if name == "loss" else 1.0 for name in self.question.ranges]
        return Horizon.of(self.question.at(places))

    @cached_property
    def phases(self) -> tuple[Ranking, Ranking] | None:
        """The rankings in start-up and in steady state, after it; None where they are not known."""
        return None if self.parts or self.buffers else ranking.phases(self.ranking)

    @property
    def _later(self) -> str:
        """Who is best in steady state, if that is somebody else."""
        if self.phases is None or self.phases[1].winner == self.winner:
            return ""
        steady = self.phases[1].winner
        who = "there is no clear winner" if steady is None else f"{steady} is best"
        return f"; but after the first {plain(self.horizon.start_s)} s, in steady state, {who}"

    @property
    def over_time(self) -> str:
        """Start-up and steady state apart, and whether they disagree; empty where they are not known."""
        if self.phases is None:
            return ""
        start, steady = (
            ", ".join(f"{place.candidate} {place.score.mean:.3f}" for place in one.places)
            for one in self.phases
        )
        winners = [one.winner or "no clear winner" for one in self.phases]
        apart = f". They disagree: {winners[0]}, then {winners[1]}" if winners[0] != winners[1] else ""
        first = f"Scores in start-up (first {plain(self.horizon.start_s)} s): {start}"
        return f"{first}; in steady state: {steady}{apart}."

    @cached_property
    def confidence(self) -> Confidence | None:
        """How sure the answer of one path is; None over a range, and without a buffer."""
        return None if self.parts or self.buffers else confidence.of(self.question, self.ranking)

    def warning(self, who: str = "but it") -> str:
        """What the winner does to a neighbour, if it takes more than half of the neighbour's fair share."""
        if self.recommended is None:
            return ""
        place = None if self.parts else self.ranking.place(self.recommended).measure(lambda trial: trial.harm)
        harm = self.harm if place is None else place.mean
        if harm is None:
            return "; its harm to a neighbour was not measured" if self.brief else ""
        # Of what the neighbour has alone, half is its fair share beside one flow.
        taken = 2 * harm - 1
        if taken <= _MOST_TAKEN:
            return ""
        return f"; {who} takes {percent(taken)} of a {self.question.neighbour} neighbour's fair share"

    @property
    def buffer(self) -> str:
        """The assumed buffer of one of several answers."""
        sizes = [shown("buffer", path.numbers().buffer_bytes) for path in self.paths]
        return f"{self.question.assumed_bdps:g} BDP" + (f" ({sizes[0]})" if len(sizes) == 1 else "")

    @property
    def as_now(self) -> str:
        """What is different on this machine before the lines are applied; empty if nothing is."""
        if self.now is None:
            return ""
        paces = "paces" if self.now.question.pacing else "does not pace"
        where = f"On this machine as it is ({self.qdisc}, which {paces})"
        if self.now.winner != self.winner:
            some = f", on {len(self.now.rankings)} of the paths" if self.parts else ""
            return f"{where}{some}: {self.now.answer}"
        if self.parts:
            return ""
        other = [
            f"{place.candidate} {now.score.mean:.3f} instead of {place.score.mean:.3f} "
            f"({_mbps(now)} instead of {_mbps(place)} Mbit/s)"
            for place in self.ranking.places
            if abs((now := self.now.ranking.place(place.candidate)).score.mean - place.score.mean)
            > ALIKE * place.score.mean
        ]
        return f"{where}, the answer is the same, but scores differ: {joined(other)}." if other else ""

    @property
    def hosts(self) -> str:
        """On which hosts the candidates were judged, in a sentence."""
        asked = self.question
        below = ", as the lines below set it" if any(one.where == "pacing" for one in self.lines) else ""
        if not asked.pacing:
            paced = "without pacing, except for controllers that pace themselves"
        else:
            paced = f"with pacing by fq{below}{', of competitors too' if asked.competitors else ''}"
        memory = {"linux": "Linux's default socket buffers"}.get(asked.tcp_memory or "")
        more = [*(["ECN"] if asked.ecn else []), *([memory] if memory else [])]
        return f"Judged {paced}{f', and with {joined(more)}' if more else ''}."

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        reported: dict[str, Any] = {
            "path": path_of(self.question),
            **self.inputs.to_dict(),
            "answer": self.answer,
            "winner": self.winner,
            "goal": self.goal,
            "world": self.world,
            "notes": list(self.question.notes),
            "seconds": round(self.took_s, 3),
            "trust": self.trust,
            "untrustworthy": list(self.doubts),
            "hosts": self.hosts,
            "horizon": self._horizon(),
            "as_it_is": None if self.now is None else self._as_it_is(self.now),
            "apply": [
                {
                    "where": one.where,
                    "line": one.text,
                    "checked": one.checked,
                    "simulated": one.simulated,
                }
                for one in self.lines
            ],
        }
        if self.buffers:
            each = [one.to_dict() for one in self.buffers]
            for one in each:
                del one["seconds"]
            return reported | {"buffers": each}
        if self.parts:
            reported["paths"] = len(self.paths)
            reported["seeds"] = self.ranking.seeds
            reported["complete"] = self.whole
            reported["parts"] = [
                {"controller": one.candidate, "wins": one.wins, "leads": one.leads} for one in self.parts
            ]
            reported["regret"] = [
                {
                    "controller": one.candidate,
                    "mean": one.mean,
                    "worst": one.worst,
                    "unit": one.unit,
                    "worst_path": path_of(self.paths[one.worst_path]),
                }
                for one in self.regrets
            ]
            reported["boundaries"] = None if self.boundaries is None else asdict(self.boundaries)
            reported["winners"] = [
                {"path": path_of(path), "winner": ranking.winner, "leaders": list(ranking.leaders)}
                for path, ranking in zip(self.paths, self.rankings, strict=True)
            ]
            return reported
        reported["seeds"] = self.ranking.seeds
        reported["settled"] = self.ranking.settled
        reported["confidence"] = None if self.confidence is None else asdict(self.confidence)
        reported["ranking"] = [_place(place) for place in self.ranking.places]
        reported["crossings"] = [
            {
                "quantity": one.quantity,
                "side": "below" if one.below else "above",
                "value": one.value,
                "inner": one.inner,
                "until": one.until,
                "outer": one.outer,
                "ahead": one.ahead,
                "behind": one.behind,
                "leaders": list(one.leaders),
                "lacks": one.shortfall,
                "seen_at": one.seen_at,
            }
            for one in self.crossings
        ]
        reported["looked_at"] = [asdict(one) for one in self.looked]
        reported["crossings_complete"] = bool(self.looked) and all(one.complete for one in self.looked)
        return reported

    def _horizon(self) -> dict[str, Any]:
        horizon = self.horizon
        found: dict[str, Any] = {
            "seconds": horizon.seconds,
            "slowest": None if horizon.slowest is None else asdict(horizon.slowest),
            "cycles": horizon.cycles,
            "enough": horizon.enough,
            "needed_seconds": horizon.needed_s,
        }
        if self.phases is None:
            return found
        names = ("start_up", "steady_state")
        scores = [{one.candidate: _interval(one.score) for one in part.places} for part in self.phases]
        parts = {
            name: {"winner": part.winner, "scores": own}
            for name, part, own in zip(names, self.phases, scores, strict=True)
        }
        agree = self.phases[0].winner == self.phases[1].winner
        return found | {"start_up_seconds": horizon.start_s, **parts, "phases_agree": agree}

    def _as_it_is(self, now: "Answer") -> dict[str, Any]:
        found = {"qdisc": self.qdisc, "pacing": now.question.pacing, "answer": now.answer}
        found |= {"winner": now.winner, "differs": self.as_now}
        return found | ({} if now.parts else {"ranking": [_place(place) for place in now.ranking.places]})

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)


def _on_a_path(found: Ranking) -> str:
    first = found.places[0]
    others = [place for place in found.places if place.standing == "behind"]
    if first.score.mean <= 0:
        return f"No candidate: {joined([place.candidate for place in found.places])} all score zero here."
    if found.winner is not None:
        return f"Run {called(first.candidate)}: {_behind(others, first)}."
    undecided = [place.behind for place in found.places if place.standing == "undecided"]
    if any(behind.low is not None and behind.low > 0 for behind in undecided):
        why = f"after {found.seeds} seeds, it is not settled whether their scores differ by more than 1 %"
    elif undecided:
        why = f"after {found.seeds} seeds, their scores cannot be told apart"
    else:
        why = "their scores differ by less than 1 %"
    rest = f"; {_behind(others, first)}" if others else ""
    return f"No clear winner between {joined(list(found.leaders))}: {why}{rest}."


def _side_by_side(answers: "Sequence[Answer]") -> str:
    """Answers for several buffers, as one."""
    winners = {one.winner for one in answers}
    warned = [one for one in answers if one.warning()]
    among = f" with {joined([one.buffer for one in warned])}" if warned else ""
    if len(winners) == 1 and None not in winners:
        warning = f"{warned[0].warning()}{among}" if warned else ""
        with_all = joined([f"{one.question.assumed_bdps:g}" for one in answers])
        return f"Run {called(winners.pop() or '')}: clearly best with buffers of {with_all} BDP{warning}."
    found = [f"{_best(one)} with {one.buffer}" for one in answers]
    unknown = "It depends on the buffer, which is not known" if len(winners) > 1 else "No clear winner"
    warning = "".join(f"{one.warning(one.recommended or '')} with {one.buffer}" for one in warned)
    return f"{unknown}: {joined(found)}{warning}. Give --buffer."


def _best(answer: Answer) -> str:
    """Who is best, or who shares the lead."""
    if answer.winner is not None or answer.parts:
        return answer.winner or "no clear winner"
    return " or ".join(answer.ranking.leaders)


def called(candidate: str) -> str:
    """A candidate, with Linux's name for it where that is another one."""
    linux = candidates.linux_name(candidate)
    return candidate if linux in (None, candidate) else f"{candidate} (Linux's {linux})"


def _mbps(place: Place) -> str:
    goodput = place.measure(COLUMNS[0].take)
    return "–" if goodput is None else f"{goodput.mean:.1f}"


def _behind(others: Sequence[Place], first: Place) -> str:
    message = [f"{one.candidate} scores {percent(one.behind.mean / first.score.mean)} less" for one in others]
    return joined([message[0], *(one.replace(" scores", "") for one in message[1:])])


def _over_a_range(advice: Answer) -> str:
    best, paths = advice.parts[0], len(advice.rankings)
    unclear = sum(ranking.winner is None for ranking in advice.rankings)
    none = f"{unclear} have no clear winner"
    if advice.winner is not None:
        won = f"it is the clear winner on {best.wins * paths:.0f} of {paths} paths in the range"
        return f"Run {called(best.candidate)}: {won}{f'; {none}' if unclear else ''}."
    safe = [called(one.candidate) for one in advice.parts if one.leads == 1]
    rest = f". Best or as good on all of them: {joined(safe)}" if safe else ""
    rest += f". {regret.least(advice.regrets)}" if advice.regrets else ""
    message = [f"{one.candidate} on {one.wins * paths:.0f}" for one in advice.parts if one.wins > 0]
    if not message:
        return f"No clear winner over the range, nor on any of {paths} paths in it{rest}."
    won = f"of {paths} paths in it, {joined(message)}"
    return f"No clear winner over the range. Clearly best: {won}{f'; {none}' if unclear else ''}{rest}."


def path_of(question: Question) -> dict[str, Any]:
    """What was given of a path, in plain values."""
    given: dict[str, Any] = {
        name: value if isinstance(value, str | int | float) else str(value)
        for name in (*NAMES, "flow_size", "tcp_memory", "duration")
        if (value := question.buffer_text if name == "buffer" else getattr(question, name))
        not in (None, False)
    }
    if question.competitors:
        given["competitors"] = [f"{name}:{count}" for name, count in question.competitors]
    return given | ({"ecn": True} if question.ecn else {})


def _place(place: Place) -> dict[str, Any]:
    measures = {column.name: _interval(place.measure(column.take)) for column in COLUMNS}
    return {
        "controller": place.candidate,
        "standing": place.standing,
        "score": _interval(place.score),
        "behind": _interval(place.behind),
        "measures": {
            column.name: None
            if measures[column.name] is None
            else {**(measures[column.name] or {}), "unit": column.unit}
            for column in COLUMNS
        },
    }


def _interval(value: Estimate | None) -> dict[str, Any] | None:
    return None if value is None else {"mean": value.mean, "ci95": [value.low, value.high]}
