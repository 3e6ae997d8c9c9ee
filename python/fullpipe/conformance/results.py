"""What cases came to: verdicts with measured values, in plain values and as JSON."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullpipe.conformance.case import Case, Criterion
from fullpipe.measures.run import Runs
from fullpipe.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

# The suites of cases for controllers.
BBR3, LOSS = "bbr3", "loss"
SUITES = (BBR3, LOSS)
PASS, FAIL, NOT_APPLICABLE = "pass", "fail", "not applicable"
# The runs of a case that is judged from outside do not show what it measures, or a case took too long.
NOT_JUDGED = "not judged"


# The same algorithms by another specification: what is said of one holds for the other.
_LIKE = {
    "newreno": "reno",
    "cubic9438": "cubic",
    "noq:newreno": "reno",
    "noq:cubic": "cubic",
    "quinn:newreno": "reno",
    "quinn:cubic": "cubic",
    # Not quinn:bbr, although it is a BBRv1 by its source: its pacer does not follow its rate, and it loses
    # more than ten times as much.
}


@dataclass(frozen=True)
class Check:
    """A criterion, and the worst value over the seeds; of a program, the middle one of its repetitions."""

    criterion: Criterion
    value: float | None
    seed: int
    # Those of all repetitions, from best to worst, where the value is their middle one.
    values: tuple[float | None, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the value is in the range."""
        return self.criterion.met(self.value)

    @property
    def measured(self) -> str:
        """The value with its unit, and the range of the repetitions."""
        text = self.criterion.show(self.value)
        reached = sorted(one for one in self.values if one is not None)
        if len(self.values) < 2 or self.value is None or len(reached) < 2:
            return text
        ends = [self.criterion.show(one).removesuffix(f" {self.criterion.unit}") for one in reached]
        return f"{text} ({ends[0]} to {ends[-1]})" if len(set(ends)) > 1 else text


@dataclass(frozen=True)
class Played:
    """A stage of a case: its name, its record, and the moments that the play named."""

    name: str
    runs: Runs
    marks: tuple[tuple[float, str], ...]
    # Whether its spec says all that was changed: a buffer's size has no schedule.
    repeatable: bool
    # What was changed of the path, and when in seconds.
    changes: tuple[tuple[float, dict[str, str]], ...] = ()


@dataclass(frozen=True)
class Result:
    """A case and its verdict."""

    case: Case
    verdict: str
    # Why it is not applicable, what was not reached, or what explains a failure.
    reason: str = ""
    checks: tuple[Check, ...] = ()
    # Of the seed that failed, or of the first.
    played: tuple[Played, ...] = ()
    # The seed of the run that gave the reason; None if it is not of one run.
    reason_seed: int | None = None

    @property
    def unsupported(self) -> list[str]:
        """What was not supported of what the case asks for, in sentences; empty if all was."""
        message = (one for played in self.played for run in played.runs.runs for one in run.unsupported)
        return list(dict.fromkeys(message))

    @property
    def decisive(self) -> Check | None:
        """The check that a line of a table shows: the first that is not met, or the case's main one."""
        unmet = [check for check in self.checks if not check.met]
        main = [check for check in self.checks if check.criterion.key == self.case.main]
        return next(iter([*unmet, *main, *self.checks]), None)


@dataclass(frozen=True)
class CaseResults:
    """How a controller fares in the cases, in plain values."""

    controller: str
    world: str
    results: tuple[Result, ...]
    # What was judged from outside: its commands, and how often they ran. None for a controller.
    program: Mapping[str, Any] | None = None
    # What played besides Fullpipe, e.g. QUIC stacks with their versions.
    versions: str = ""
    suite: str = BBR3

    @property
    def text(self) -> str:
        """The texts that the cases follow."""
        from fullpipe.conformance import registry
        from fullpipe.conformance.loss import registry as loss

        return loss.TEXT if self.suite == LOSS else registry.TEXT

    @property
    def by_text(self) -> str:
        """What the reason of a failure by design begins with."""
        return "" if self.suite == LOSS else "draft "

    @property
    def option(self) -> str:
        """What the command needs for this suite."""
        return "" if self.suite == BBR3 else f" --suite {self.suite}"

    def _of(self, verdict: str) -> list[Result]:
        return [one for one in self.results if one.verdict == verdict]

    @property
    def passed(self) -> bool:
        """Whether every applicable case passes; one that could not be judged does not."""
        return not self._of(FAIL) and not self._of(NOT_JUDGED)

    @property
    def unsupported(self) -> list[str]:
        """What was not supported in some case, in sentences; empty if all was."""
        return list(dict.fromkeys(sentence for one in self.results for sentence in one.unsupported))

    @property
    def failures(self) -> list[str]:
        """The names of the cases that fail."""
        return [one.case.name for one in self._of(FAIL)]

    def expected(self, result: Result) -> str | None:
        """Why a controller fails a case by design, with the draft's section; None if nobody says so.

        With other parameters it is another controller, whose failures are its own.
        """
        if result.verdict != FAIL:
            return None
        # The suite of loss-based control tells the RFC's algorithms from Linux's.
        name = self.controller if self.suite == LOSS else _LIKE.get(self.controller, self.controller)
        return result.case.failed_by.get(name)

    @property
    def summary(self) -> str:
        """A sentence for all results."""
        passes, fails, without = (len(self._of(one)) for one in (PASS, FAIL, NOT_APPLICABLE))
        unknown = len(self._of(NOT_JUDGED))
        applicable = passes + fails + unknown
        message = f"{self.controller} passes {passes} of {counted(applicable, 'applicable case')}"
        by_design = sum(self.expected(one) is not None for one in self.results)
        message += f", and fails {by_design} by design" if by_design else ""
        for count, verdict in ((unknown, NOT_JUDGED), (without, NOT_APPLICABLE)):
            message += f"; {count} {'is' if count == 1 else 'are'} {verdict}" if count else ""
        return f"{message}."

    @property
    def hint(self) -> str:
        """What to try if most cases are about BBR's phases, which the controller lacks; empty otherwise."""
        of_phases = [one for one in self.results if one.case.phases]
        without = self._of(NOT_APPLICABLE)
        if self.suite != BBR3 or self.program is not None or len(without) * 2 <= len(self.results):
            return ""
        if any(one.verdict != NOT_APPLICABLE for one in of_phases):
            return ""
        from fullpipe.conformance.loss.case import traits

        if traits(self.controller, "any", own=False):
            return f"Most of these cases are about BBR. Cases for {self.controller}: --suite {LOSS}"
        return (
            f"Most of these cases are about BBR. If {self.controller} is loss-based: --suite {LOSS} "
            "--like cubic (or reno)"
        )

    def folded(self) -> "Iterator[tuple[str, str, str, str]]":
        """`rows`, with one row for all cases that are not applicable: how many for each reason."""
        without = self._of(NOT_APPLICABLE)
        if len(without) < 2:
            yield from self.rows()
            return
        yield from (row for row in self.rows() if row[1] != NOT_APPLICABLE)
        reasons = Counter(one.reason for one in without)
        several = len(reasons) > 1
        why = "; ".join(f"{reason} ({count})" if several else reason for reason, count in reasons.items())
        yield f"{len(without)} cases", NOT_APPLICABLE, "", why

    def rows(self) -> "Iterator[tuple[str, str, str, str]]":
        """Case, verdict, measured value and criterion, for tables."""
        for one in self.results:
            check = one.decisive
            measured, wanted = "", one.reason
            if check is not None:
                measured = check.measured
                wanted = f"{check.criterion.quantity}: {check.criterion.bounds}"
                if not check.met and one.reason:
                    wanted = f"{wanted}; {one.reason}"
            if (why := self.expected(one)) is not None:
                wanted = f"{wanted} (by design: {self.by_text}{why})"
            yield one.case.name, one.verdict, measured, wanted

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "controller": self.controller,
            "world": self.world,
            **({"program": dict(self.program)} if self.program is not None else {}),
            "versions": self.versions,
            "text": self.text,
            "passed": self.passed,
            "unsupported": self.unsupported,
            "cases": [self._plain(one) for one in self.results],
        }

    def _plain(self, one: Result) -> dict[str, Any]:
        return {
            "name": one.case.name,
            "title": one.case.title,
            "source": one.case.source,
            "verdict": one.verdict,
            "reason": one.reason,
            "by_design": self.expected(one),
            "unsupported": one.unsupported,
            "seeds": list(one.case.seeds) if self.program is None else _repetitions(one),
            "criteria": [
                {
                    "says": check.criterion.quantity,
                    "measured": _finite(check.value),
                    "low": check.criterion.low,
                    "high": check.criterion.high,
                    "unit": check.criterion.unit,
                    "source": check.criterion.source,
                    "met": check.met,
                    "seed": check.seed,
                    **({"values": [*map(_finite, check.values)]} if check.values else {}),
                }
                for check in one.checks
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as text: what `fullpipe conform` prints with `--json`."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def _finite(value: float | None) -> float | None:
    """JSON has no other numbers."""
    return value if value is not None and math.isfinite(value) else None


def _repetitions(one: Result) -> list[int]:
    """The repetitions that a verdict is by."""
    return [run.seed for played in one.played for run in played.runs.runs] if one.checks else []
