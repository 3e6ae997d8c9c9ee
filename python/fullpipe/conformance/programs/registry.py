"""All cases that are judged from outside: `CASES` of each module in `cases/`."""

from collections.abc import Sequence
from functools import cache

from fullpipe.conformance import catalogue
from fullpipe.conformance.programs import cases
from fullpipe.conformance.programs.case import OutsideCase

# Files in the order of tables; others follow by their names.
_ORDER = ("goodput", "queue", "changes", "losses", "sharing")


@cache
def every() -> tuple[OutsideCase, ...]:
    """Every case, in the order of tables."""
    found: tuple[OutsideCase, ...] = catalogue.of_package(cases, _ORDER)
    return found


def chosen(names: Sequence[str] | None) -> tuple[OutsideCase, ...]:
    """The cases of these names, in the order of tables; all without any.

    Raises:
        ScenarioError: A name is not one of a case.
    """
    where = "`fullpipe conform --list --like any` has those that are judged from outside"
    return catalogue.of_names(every(), names, where)
