"""Runs the scenarios of a question, and takes the measures of each candidate from them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from fullpipe._native import WorldError
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.horizon import Horizon
from fullpipe.advisor.question import Question
from fullpipe.errors import SweepError, mistake
from fullpipe.measures.measures import Summary
from fullpipe.measures.run import Run
from fullpipe.runs import sweep
from fullpipe.runs.engines import pool
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.memory import Memory
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job, jobs
from fullpipe.runs.worlds.world import World, refusal
from fullpipe.scenario import path_facts
from fullpipe.scenario.scenario import Scenario

# Trials of each candidate, a seed after the other.
Trials = dict[str, list[Trial]]
Progress = Callable[[float], None]
# Where a run's summary is: its alternative's digest, and its seed.
Address = tuple[str, int]
Summaries = Mapping[Address, Summary]
# The scenarios that can be asked for besides the candidate alone; and what it did in start-up and after it.
EXTRAS = frozenset({"short", "duel"})
PHASES = "phases"
# A start has at least ten samples of 10 ms.
_SHORTEST_START_S = 0.1
_MOST_BESIDE = 4


@dataclass(frozen=True)
class Bench:
    """Where the scenarios run."""

    world: World
    # Told of the part of the runs that is done, for a progress bar.
    watch: Progress = lambda _done: None
    # Told why a run cannot be trusted. Such a run counts all the same: it was tried again before.
    doubt: Callable[[str], None] = lambda _reason: None

    @staticmethod
    def of(
        world: str, watch: Progress = lambda _done: None, doubt: Callable[[str], None] = lambda _reason: None
    ) -> "Bench":
        """The bench of a world by its name. Raises `ScenarioError` for an unknown one, and for several."""
        chosen = registry.chosen(world)
        if len(chosen) != 1:
            raise mistake("world", world, "one world", f"e.g. {registry.DEFAULT}")
        return Bench(chosen[0], watch, doubt)

    def run(
        self, questions: Sequence[Question], seeds: Sequence[int], extras: frozenset[str] = EXTRAS
    ) -> list[Trials]:
        """The trials of every candidate of every question, all of them at once."""
        plans = [Plan(question, extras) for question in questions]
        wanted = [job for plan in plans for job in plan.jobs(seeds)]
        ran = dict(zip(map(address, wanted), self._carry_out(wanted), strict=True))
        summaries = {at: run.summary for at, run in ran.items()}
        found = [plan.trials(seeds, summaries) for plan in plans]
        if PHASES in extras:
            found = [plan.phased(trials, seeds, ran) for plan, trials in zip(plans, found, strict=True)]
        return found

    def tasks(self, question: Question, seeds: Sequence[int], extras: frozenset[str] = EXTRAS) -> list[Task]:
        """What `run` would run for one question."""
        return self._tasks(Plan(question, extras).jobs(seeds))

    def takes_s(self, question: Question, seeds: Sequence[int], extras: frozenset[str] = EXTRAS) -> float:
        """How long `run` takes for one question, by the world's own estimate, in seconds."""
        return Local().takes_s(self.tasks(question, seeds, extras))

    def _tasks(self, wanted: Sequence[Job]) -> list[Task]:
        return [Task(self.world.name, job) for job in wanted]

    def _carry_out(self, wanted: list[Job]) -> list[Run]:
        for job in wanted:
            if (reason := refusal(self.world, job.alternative)) is not None:
                raise WorldError(reason)
        if not self.world.wall_time:
            in_all = len(wanted)
            ran = pool.run(self.world, wanted, lambda done: self.watch(done / in_all))
            return ran
        tasks = self._tasks(wanted)

        def report(progress: sweep.Progress) -> None:
            self.watch(progress.cost / progress.cost_in_all if progress.cost_in_all else 0.0)

        outcome = sweep.carry_out(tasks, Memory(), Local(), watch=report)
        if outcome.failed:
            raise SweepError(outcome.failed[0].reason)
        done = outcome.of(tasks)
        for stored in done:
            for reason in stored.untrustworthy[:1]:
                self.doubt(reason)
        return [stored.run() for stored in done]


class Plan:
    """The scenarios of one question."""

    def __init__(self, question: Question, extras: frozenset[str]) -> None:
        self._question = question
        # Series of many flows take much memory, and too short a start has no samples.
        beside = sum(count for _, count in question.competitors)
        self._phased = (
            PHASES in extras and beside <= _MOST_BESIDE and Horizon.of(question).start_s >= _SHORTEST_START_S
        )
        self._alone = question.alone(series=self._phased)
        self._short = question.short() if "short" in extras else None
        self._duel = (question.duel(), question.neighbour_alone()) if "duel" in extras else None
        path, facts = question.numbers(), path_facts.of(self._alone.alternatives[0])
        self._rtt_ms = path.rtt_ms
        payload = facts.goodput_mbps()
        self._capacity_bps = payload[0][1] * 1e6 if payload else path.rate_bps
        self._fair_bps = self._capacity_bps / (1 + sum(count for _, count in question.competitors))

    def jobs(self, seeds: Sequence[int]) -> list[Job]:
        """Every run, once."""
        scenarios = [self._alone, *(self._duel or ()), *([self._short] if self._short else [])]
        return [job for scenario in scenarios for job in jobs(scenario.alternatives, seeds)]

    def trials(self, seeds: Sequence[int], summaries: Summaries) -> Trials:
        """The measures of each candidate."""
        return {
            candidate: [self.trial(candidate, seed, summaries) for seed in seeds]
            for candidate in self._question.candidates
        }

    def needs(self, candidate: str, seed: int) -> list[Address]:
        """The runs that a trial is taken from."""
        wanted = [(self._alone, candidate)]
        if self._short is not None:
            wanted.append((self._short, candidate))
        if self._duel is not None:
            wanted += [(self._duel[0], candidate), (self._duel[1], self._question.neighbour)]
        return [_at(scenario, label, seed) for scenario, label in wanted]

    def trial(self, candidate: str, seed: int, summaries: Summaries) -> Trial:
        """The measures of one candidate with one seed."""
        alone = _flow(summaries[_at(self._alone, candidate, seed)], "you")
        rtt_p95_ms = alone["rtt_ms"]["p95"] if alone["rtt_ms"] else math.inf
        taken_ms, ideal_ms = self._fct_ms(candidate, seed, summaries)
        return Trial(
            goodput_bps=alone["goodput_bps"],
            rtt_p95_ms=rtt_p95_ms,
            loss_ratio=alone["loss_ratio"] or 0.0,
            fct_ms=taken_ms,
            harm=self._harm(candidate, seed, summaries),
            used=alone["goodput_bps"] / self._fair_bps,
            short=min(1.0, self._rtt_ms / rtt_p95_ms) if rtt_p95_ms else 1.0,
            ideal_fct_ms=ideal_ms,
        )

    def phased(self, trials: Trials, seeds: Sequence[int], ran: Mapping[Address, Run]) -> Trials:
        """The same trials, with what the flow itself did in start-up and after it."""
        if not self._phased:
            return trials
        start_s = Horizon.of(self._question).start_s
        found: Trials = {}
        for name, own in trials.items():
            runs = [ran[_at(self._alone, name, seed)] for seed in seeds]
            found[name] = [
                replace(trial, phases=self._phases(trial, run, start_s))
                for trial, run in zip(own, runs, strict=True)
            ]
        return found

    def _phases(self, trial: Trial, run: Run, start_s: float) -> tuple[Trial, Trial]:
        """A trial with the goodput and round-trip times of start-up, and with those after it."""
        series = run.flow_series().filter(pl.col("flow") == "you")
        parts = []
        for part in (series.filter(pl.col("time_s") <= start_s), series.filter(pl.col("time_s") >= start_s)):
            took_s, carried, rtt_p95_ms = part.select(
                pl.col("time_s").max() - pl.col("time_s").min(),
                pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min(),
                pl.col("srtt_ms").quantile(0.95, "linear"),
            ).row(0)
            goodput_bps = 8 * carried / took_s if took_s else 0.0
            parts.append(self._long(trial, goodput_bps, math.inf if rtt_p95_ms is None else rtt_p95_ms))
        return parts[0], parts[1]

    def _long(self, trial: Trial, goodput_bps: float, rtt_p95_ms: float) -> Trial:
        """A trial with another goodput and round-trip time of the flow."""
        return replace(
            trial,
            goodput_bps=goodput_bps,
            rtt_p95_ms=rtt_p95_ms,
            used=goodput_bps / self._fair_bps,
            short=min(1.0, self._rtt_ms / rtt_p95_ms) if rtt_p95_ms else 1.0,
        )

    def _fct_ms(self, candidate: str, seed: int, summaries: Summaries) -> tuple[float | None, float]:
        """The mean completion time of the short flows, None if one did not complete; and an ideal path's."""
        if self._short is None:
            return None, 0.0
        flows = summaries[_at(self._short, candidate, seed)]["flows"]
        taken = [one["completion_ms"] for one in flows if one["label"].startswith("short")]
        size_bytes = self._short.alternatives[0].spec["flows"][0]["workload"]["size_bytes"]
        ideal_ms = self._rtt_ms + size_bytes * 8e3 / self._capacity_bps
        return (None if None in taken else math.fsum(taken) / len(taken)), ideal_ms

    def _harm(self, candidate: str, seed: int, summaries: Summaries) -> float | None:
        if self._duel is None:
            return None
        beside = _flow(summaries[_at(self._duel[0], candidate, seed)], "neighbour")["goodput_bps"]
        alone = summaries[_at(self._duel[1], self._question.neighbour, seed)]["total_goodput_bps"]
        return max(0.0, 1 - beside / alone) if alone else 0.0


def _at(scenario: Scenario, label: str, seed: int) -> Address:
    return next(one.digest for one in scenario.alternatives if one.label == label), seed


def address(job: Job) -> Address:
    """Where a job's summary is."""
    return job.alternative.digest, job.seed


def _flow(summary: Summary, label: str) -> Summary:
    return next(flow for flow in summary["flows"] if flow["label"] == label)
