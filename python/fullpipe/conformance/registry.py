"""All cases: `CASES` of each module in `cases/`, those of packages, and those that a script registers."""

import difflib
import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from fullpipe.conformance import cases
from fullpipe.conformance.case import Case
from fullpipe.errors import mistake
from fullpipe.system import plugs
from fullpipe.system.words import joined

# The text that the cases follow.
TEXT = "draft-ietf-ccwg-bbr-06, repository ietf-wg-ccwg/draft-ietf-ccwg-bbr at 4ce5e87d (2026-08-03)"
# The entry points of packages that have cases: each names one, or a sequence of them.
GROUP = "fullpipe.conformance"
# Files whose cases come first, as the draft tells a flow's life; others follow by their names.
_ORDER = (
    "startup",
    "drain",
    "probe_up",
    "probe_down",
    "probe_rtt",
    "aggregation",
    "changes",
    "steady",
    "losses",
    "hosts",
)

_registered: dict[str, Case] = {}


def register(*more: Case) -> None:
    """Adds cases, which `fullpipe.conform` then plays, too. One of the same name replaces the earlier."""
    for case in more:
        if not isinstance(case, Case):
            raise TypeError(f"{case!r} is no Case")
        if any(case.name == own.name for own in _own()):
            raise ValueError(f"{case.name} is the name of one of Fullpipe's own cases; choose another")
        _registered[case.name] = case


def every() -> tuple[Case, ...]:
    """Every case, in the order of tables."""
    _load_packages()
    return (*_own(), *_registered.values())


def chosen(names: Sequence[str] | None) -> tuple[Case, ...]:
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
            fix = "`fullpipe conform --list` has them"
            raise mistake(
                "case", name, "the name of a case", f"use {joined(near, 'or')}; {fix}" if near else fix
            )
    return tuple(case for case in every() if case.name in names)


@cache
def _own() -> tuple[Case, ...]:
    names = [found.name for found in pkgutil.iter_modules(cases.__path__)]
    names.sort(key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    found: list[Case] = []
    for name in names:
        found += importlib.import_module(f"{cases.__name__}.{name}").CASES
    return tuple(found)


@cache
def _load_packages() -> None:
    def add(offered: Case | Sequence[Case]) -> None:
        register(*([offered] if isinstance(offered, Case) else offered))

    for why in plugs.load(GROUP, add).values():
        raise mistake("case", GROUP, "packages whose cases can be loaded", why)
