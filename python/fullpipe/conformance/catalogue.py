"""What both registries of cases do: find the cases of a package, and those of given names."""

import difflib
import importlib
import pkgutil
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

from fullpipe.conformance.case import Case
from fullpipe.errors import mistake
from fullpipe.text import joined

C = TypeVar("C", bound=Case)


def of_package(package: ModuleType, order: Sequence[str]) -> tuple[Any, ...]:
    """`CASES` of each module of a package, those of `order` first; others follow by their names."""
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    names.sort(key=lambda name: (order.index(name) if name in order else len(order), name))
    found: list[Any] = []
    for name in names:
        found += importlib.import_module(f"{package.__name__}.{name}").CASES
    return tuple(found)


def of_names(every: tuple[C, ...], names: Sequence[str] | None, where: str) -> tuple[C, ...]:
    """The cases of these names, in the order of `every`; all without any. `where` says what lists them.

    Raises:
        ScenarioError: A name is not one of a case.
    """
    if names is None:
        return every
    known = [case.name for case in every]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known)
            fix = f"use {joined(near, 'or')}; {where}" if near else where
            raise mistake("case", name, "the name of a case", fix)
    return tuple(case for case in every if case.name in names)
