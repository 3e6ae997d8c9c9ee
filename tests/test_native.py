"""The native module given anything: an exception with a sentence, and never a panic."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullpipe import _native
from fullpipe.scenario.scenario import from_document

SPEC = (
    from_document(
        {
            "name": "small",
            "duration": "1 s",
            "path": {
                "rate": "10 Mbit/s",
                "rtt": "40 ms",
                "loss": "1 %",
                "changes": [{"at": "0.5 s", "rate": "5 Mbit/s"}],
            },
            "flows": [{"controller": "bbr1"}, {"controller": "cubic", "size": "1 MB"}],
        }
    )
    .alternatives[0]
    .spec_json
)
NUMBERS = st.integers(-(2**70), 2**70) | st.sampled_from([2**31, 2**32, 2**40, 2**63, 2**64 - 1, 2**64])
VALUES = NUMBERS | st.none() | st.booleans() | st.text(max_size=3) | st.just([]) | st.just({}) | st.floats()
REFUSALS = (IndexError, OverflowError, OSError, RuntimeError, TypeError, ValueError)
Place = tuple[Any, Any]


def places(part: Any) -> list[Place]:
    """Each container of a document with a key or an index of it."""
    found: list[Place] = []
    pairs = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, one in list(pairs):
        found += [(part, key), *places(one)]
    return found


def refused_or_done(call: Callable[[], object]) -> None:
    """Calls; a panic is no `Exception`, and passes through."""
    try:
        call()
    except REFUSALS as error:
        assert str(error)


@pytest.mark.parametrize("index", [2, 3, 2**31, 2**32, 2**40, 2**63, 2**64 - 1])
def test_nonexistent_flow_is_index_error(index: int) -> None:
    simulation = _native.Simulation(SPEC, 1, [])
    with pytest.raises(IndexError, match=f"flow {index} does not exist; expected a number below 2"):
        simulation.flow(index)
    assert simulation.flow(1).controller == "cubic"


@given(NUMBERS, st.floats(), st.text(max_size=8))
@settings(max_examples=50, deadline=None)
def test_any_argument_is_refused_without_panic(number: int, real: float, text: str) -> None:
    simulation = _native.Simulation(SPEC, 1, [])
    for given_ in (number, real, text):
        value: Any = given_
        for call in (
            lambda value=value: simulation.flow(value),
            lambda value=value: simulation.change(str(value), str(value), None, None, None, None),
            lambda value=value: simulation.change(None, None, str(value), str(value), str(value), str(value)),
            lambda value=value: _native.Simulation(SPEC, value, []),
            lambda value=value: _native.Simulation(SPEC, 1, [(value, "x", True, object(), {})]),
            lambda value=value: _native.Logs("x", (value, value), value, 64, 1),
            lambda value=value: _native.Logs("x", None, None, value, value),
            lambda value=value: _native.resolve(str(value), "json"),
            lambda value=value: _native.law(str(value), SPEC),
            lambda value=value: _native.path_facts(str(value)),
            lambda value=value: _native.scenario_notes(str(value)),
        ):
            refused_or_done(call)
    if math.isfinite(real):
        refused_or_done(lambda: simulation.advance(f"{min(real, 1)} s", None))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_changed_spec_is_refused_without_panic(data: st.DataObject) -> None:
    document = json.loads(SPEC)
    container, key = data.draw(st.sampled_from(places(document)))
    container[key] = data.draw(VALUES)
    text = json.dumps(document)
    for call in (_native.path_facts, _native.scenario_notes, lambda text: _native.Simulation(text, 1, [])):
        refused_or_done(lambda call=call: call(text))  # type: ignore[misc]
