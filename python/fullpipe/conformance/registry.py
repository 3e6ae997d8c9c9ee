"""All cases: `CASES` of each module in `cases/`, those of packages, and those that a script registers."""

from collections.abc import Sequence
from functools import cache

from fullpipe import plugins
from fullpipe.conformance import cases, catalogue
from fullpipe.conformance.case import Case
from fullpipe.errors import mistake

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
    return catalogue.of_names(every(), names, "`fullpipe conform --list` has them")


@cache
def _own() -> tuple[Case, ...]:
    own: tuple[Case, ...] = catalogue.of_package(cases, _ORDER)
    return own


@cache
def _load_packages() -> None:
    def add(offered: Case | Sequence[Case]) -> None:
        register(*([offered] if isinstance(offered, Case) else offered))

    for why in plugins.load(GROUP, add).values():
        raise mistake("case", GROUP, "packages whose cases can be loaded", why)
