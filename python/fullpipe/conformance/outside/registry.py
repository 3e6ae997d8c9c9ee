"""All cases that are judged from outside: `CASES` of each module in `cases/`."""

import difflib
import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from fullpipe.conformance.outside import cases
from fullpipe.conformance.outside.case import OutsideCase
from fullpipe.errors import mistake
from fullpipe.system.words import joined

# Files in the order of tables; others follow by their names.
_ORDER = ("goodput", "queue", "changes", "losses", "sharing")


@cache
def every() -> tuple[OutsideCase, ...]:
    """Every case, in the order of tables."""
    names = [found.name for found in pkgutil.iter_modules(cases.__path__)]
    names.sort(key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    found: list[OutsideCase] = []
    for name in names:
        found += importlib.import_module(f"{cases.__name__}.{name}").CASES
    return tuple(found)


def chosen(names: Sequence[str] | None) -> tuple[OutsideCase, ...]:
    """The cases of these names, in the order of tables; all without any.

    Raises:
        ScenarioError: A name is not one of a case.
    """
    if names is None:
        return every()
    known = [case.name for case in every()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known)
            fix = "`fullpipe conform --list --like any` has those that are judged from outside"
            raise mistake(
                "case", name, "the name of a case", f"use {joined(near, 'or')}; {fix}" if near else fix
            )
    return tuple(case for case in every() if case.name in names)
