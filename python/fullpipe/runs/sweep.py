"""Runs the tasks that the store does not have through an engine, and stores their results."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fullpipe.runs.engines import Done, Ended, Engine, Failed
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store, Stored

# How often an untrustworthy run is tried in all: next to other runs, and the last time alone. The usual cause
# is a host that stalls for a moment. Running alone does not prevent that, and slow paths would have to wait.
ATTEMPTS = 3
# Bytes of time series in one write.
_MOST_TOGETHER = 1 << 24


@dataclass(frozen=True)
class Progress:
    """The progress of a sweep. Cost, in the engine's own unit, predicts the rest better than run counts."""

    runs: int
    runs_in_all: int
    cost: float
    cost_in_all: float
    cost_here: float  # Counts the runs of this call, without those that were found.
    failed: int
    again: int  # Runs whose last attempt was untrustworthy and that are tried again.


@dataclass
class Outcome:
    """The result of a sweep."""

    stored: dict[str, Stored]  # By address.
    found: int  # How many of them were already stored.
    failed: list[Failed] = field(default_factory=list)

    def of(self, tasks: Iterable[Task]) -> list[Stored]:
        """The stored runs of these tasks, with the names that the tasks give them."""
        return [replace(self.stored[task.key], task=task) for task in tasks if task.key in self.stored]


def carry_out(
    tasks: Sequence[Task],
    store: Store,
    engine: Engine,
    *,
    attempts: int = ATTEMPTS,
    watch: Callable[[Progress], None] = lambda _progress: None,
    begin: Callable[[Outcome, list[Task]], None] = lambda _outcome, _pending: None,
) -> Outcome:
    """Runs what the store does not have, and untrustworthy runs up to `attempts` times, the last time alone.

    `begin` is called before the first run, with the runs that were found and the tasks to do. However this
    call ends, the store has the runs that finished before.

    Raises:
        SweepError: Another sweep uses the folder.
        OutputError: A run cannot be stored, e.g. because the disk is full or the folder was removed.
        Exception: A run failed, if the engine raises the errors of runs (see `Engine`).
    """
    with store.held():
        return _carry_out(tasks, store, engine, attempts, watch, begin)


def _carry_out(
    tasks: Sequence[Task],
    store: Store,
    engine: Engine,
    attempts: int,
    watch: Callable[[Progress], None],
    begin: Callable[[Outcome, list[Task]], None],
) -> Outcome:
    unique = {task.key: task for task in tasks}
    stored = {key: found for key, task in unique.items() if (found := store.find(task)) is not None}
    outcome = Outcome(stored, len(stored))
    pending = [
        # Earlier attempts at an untrustworthy run count.
        _once_more(task, stored[task.key], attempts) if task.key in stored else task
        for task in unique.values()
        if task.key not in stored or _again(stored[task.key], attempts)
    ]
    begin(outcome, pending)
    meter = _Meter(engine, watch, [stored[key].task for key in stored], list(unique.values()))
    meter.rerun([task for task in pending if task.key in stored])
    meter.report()
    while pending:
        once_more: list[Task] = []
        left = len(pending)
        # If a run cannot be stored, this closes the engine, which ends the runs in progress.
        with contextlib.closing(engine.run(pending)) as ending:
            for together in _together(ending):
                done = [one for one in together if isinstance(one, Done)]
                numbered = [(one, 1 + _attempts(stored.get(one.task.key))) for one in done]
                for kept in store.keep(numbered, left=left) if numbered else ():
                    stored[kept.task.key] = kept
                    if _again(kept, attempts):
                        once_more.append(_once_more(kept.task, kept, attempts))
                for one in together:
                    if isinstance(one, Failed):
                        outcome.failed.append(one)
                        store.log("failed", one.task, reason=one.reason)
                        meter.failed += 1
                    meter.ended(one.task)
                left -= len(together)
                meter.report(len(once_more))
        pending = once_more
        meter.rerun(pending)
    return outcome


def _together(ending: Iterable[Ended]) -> Iterator[list[Ended]]:
    """The tasks that ended, as many at a time as ended together and fit into memory."""
    batch: list[Ended] = []
    size = 0
    for ended in ending:
        batch.append(ended)
        size += ended.run.size if isinstance(ended, Done) else 0
        if not ended.more or size >= _MOST_TOGETHER:
            yield batch
            batch, size = [], 0


def _attempts(stored: Stored | None) -> int:
    return stored.attempts if stored else 0


def _again(stored: Stored, attempts: int) -> bool:
    return bool(stored.untrustworthy) and stored.attempts < attempts


def _once_more(task: Task, stored: Stored, attempts: int) -> Task:
    return replace(task, alone=stored.attempts + 1 == attempts)


class _Meter:
    """Counts runs and their cost."""

    def __init__(
        self, engine: Engine, watch: Callable[[Progress], None], done: list[Task], tasks: list[Task]
    ) -> None:
        self._engine, self._watch = engine, watch
        self._seen = {task.key for task in done}
        self._in_all = len(tasks)
        self._cost = self._found = sum(map(engine.cost, done))
        self._cost_in_all = sum(map(engine.cost, tasks))
        self.failed = 0

    def ended(self, task: Task) -> None:
        """Counts a run that finished or failed."""
        self._seen.add(task.key)
        self._cost += self._engine.cost(task)

    def report(self, again: int = 0) -> None:
        """Reports the progress."""
        self._watch(
            Progress(
                runs=len(self._seen),
                runs_in_all=self._in_all,
                cost=self._cost,
                cost_in_all=self._cost_in_all,
                cost_here=self._cost - self._found,
                failed=self.failed,
                again=again,
            )
        )

    def rerun(self, tasks: list[Task]) -> None:
        """Adds the cost of runs that are repeated."""
        self._cost_in_all += sum(map(self._engine.cost, tasks))
