"""Reads how a change of a case is judged: `exact`, `within`, promises, `not_worse_than`, `must_pass`."""

from collections.abc import Mapping
from typing import Any

from fullpipe.errors import mistake
from fullpipe.gate import quantities
from fullpipe.gate.cases import CONFORM, RUN, Judgement, Reference
from fullpipe.gate.quantities import Bound, Tolerance

KEYS = ("exact", "within", "at_least", "at_most", "not_worse_than", "must_pass")
# What "not worse" is about where only a controller is named.
_NOT_WORSE: Mapping[str, str] = {"goodput_bps": "1 %"}
_NUMBERS = ("within", "at_least", "at_most", "not_worse_than")


def read(where: str, keys: Mapping[str, Any], deterministic: bool) -> Judgement:
    """The judgement of a case. Without a word about it, it is `exact`.

    Raises:
        ScenarioError: A key or a value does not fit, or they contradict each other.
    """
    kind = keys["kind"]
    _check_kind(where, keys)
    exact = _flag(where, keys, "exact", "within" not in keys and deterministic)
    if exact and not deterministic:
        fix = 'write within = { goodput_bps = "5 %" }, or a promise'
        raise mistake(f"{where}.exact", True, "false: runs in this world are never equal", fix)
    if exact and "within" in keys:
        raise mistake(f"{where}.exact", True, "false beside within", "leave one of the two out")
    judged = Judgement(
        exact=exact,
        within=_tolerances(f"{where}.within", keys.get("within", {})),
        at_least=_bounds(f"{where}.at_least", keys.get("at_least", {})),
        at_most=_bounds(f"{where}.at_most", keys.get("at_most", {})),
        not_worse_than=_reference(f"{where}.not_worse_than", keys.get("not_worse_than")),
        must_pass=_flag(where, keys, "must_pass", False),
    )
    if judged == Judgement(exact=False):
        others = "or must_pass = true" if kind == CONFORM else "within, or a promise such as at_least"
        fix = f"write exact = true, {others}"
        raise mistake(f"{where}.exact", exact, "something that judges the case", fix)
    return judged


def _check_kind(where: str, keys: Mapping[str, Any]) -> None:
    kind = keys["kind"]
    if kind == CONFORM:
        if key := next((one for one in _NUMBERS if one in keys), None):
            raise mistake(
                f"{where}.{key}", keys[key], "none: a conformance case has its own criteria", "remove it"
            )
        if "seeds" in keys:
            raise mistake(
                f"{where}.seeds", keys["seeds"], "none: a conformance case has its own", "remove it"
            )
    elif "must_pass" in keys:
        raise mistake(f"{where}.must_pass", keys["must_pass"], "a case of kind conform", "remove it")
    if kind == RUN and "not_worse_than" in keys:
        fix = 'write kind = "compare" and a flow without a controller'
        raise mistake(f"{where}.not_worse_than", keys["not_worse_than"], "a case of kind compare", fix)


def _flag(where: str, keys: Mapping[str, Any], key: str, default: bool) -> bool:
    given = keys.get(key, default)
    if not isinstance(given, bool):
        raise mistake(f"{where}.{key}", given, "true or false", f"write {key} = true")
    return given


def _table(field: str, given: Any, example: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise mistake(field, given, "a table of measures", f'e.g. {{ goodput_bps = "{example}" }}')
    return given


def _tolerances(field: str, given: Any) -> dict[str, Tolerance]:
    table = _table(field, given, "1 %")
    return {
        name: quantities.tolerance(f"{field}.{name}", value, quantities.named(f"{field}.{name}", name))
        for name, value in table.items()
    }


def _bounds(field: str, given: Any) -> dict[str, Bound]:
    table = _table(field, given, "90 %")
    return {
        name: quantities.bound(f"{field}.{name}", value, quantities.named(f"{field}.{name}", name))
        for name, value in table.items()
    }


def _reference(field: str, given: Any) -> Reference | None:
    if given is None:
        return None
    table = {"controller": given, "within": _NOT_WORSE} if isinstance(given, str) else given
    fits = isinstance(table, Mapping) and set(table) == {"controller", "within"} and table["within"]
    if not fits or not isinstance(table["controller"], str):
        expected = "a controller, or a table with controller and within"
        fix = 'e.g. "cubic", or { controller = "cubic", within = { goodput_bps = "1 %" } }'
        raise mistake(field, given, expected, fix)
    within = _tolerances(f"{field}.within", table["within"])
    if (name := next((one for one in within if not quantities.direction(one)), None)) is not None:
        raise mistake(
            f"{field}.within.{name}", name, "a measure of which more or less is better", "remove it"
        )
    return Reference(table["controller"], within)
