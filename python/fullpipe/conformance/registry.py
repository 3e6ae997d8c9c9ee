"""All cases: `CASES` of each module in `cases/`, in the order of their files' names; and those of the laws."""

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from fullpipe.conformance import cases
from fullpipe.conformance.case import Case
from fullpipe.errors import mistake

# Files whose cases come first, as the draft tells a flow's life; others follow by their names.
_ORDER = ("startup", "drain", "probe_up", "probe_down", "probe_rtt", "aggregation", "changes", "steady", "losses", "hosts")


@cache
def every() -> tuple[Case, ...]:
    """Every case, in the order of tables."""
    names = [found.name for found in pkgutil.iter_modules(cases.__path__)]
    names.sort(key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    found: list[Case] = []
    for name in names:
        found += importlib.import_module(f"{cases.__name__}.{name}").CASES
    twice = {one.name for one in found if sum(other.name == one.name for other in found) > 1}
    if twice:
        raise ValueError(f"two cases have the name {', '.join(sorted(twice))}")
    return tuple(found)


def chosen(names: Sequence[str] | None) -> tuple[Case, ...]:
    """The cases of these names, in the order of tables; all without any.

    Raises:
        ScenarioError: A name is not one of a case.
    """
    if names is None:
        return every()
    known = {case.name for case in every()}
    for name in names:
        if name not in known:
            raise mistake("case", name, "the name of a case", "`fullpipe conform --list` has them")
    return tuple(case for case in every() if case.name in names)
