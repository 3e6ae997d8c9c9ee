"""What a gate can measure, which way is better, and amounts with units: tolerances and bounds.

Values are in the measures' own units: bit/s, ms, shares from 0 to 1, and counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from fullpipe.errors import mistake
from fullpipe.measures.measures import BY_NAME, SHARE, Measure, Summary
from fullpipe.scenario import path_facts
from fullpipe.scenario.scenario import Alternative

# Which way is better. What is in neither list has no better way: marks, a flow's share.
_MORE_IS_BETTER = frozenset({"goodput_bps", "write_bps", "jain_index"})
_NEUTRAL = frozenset({"marked_packets", "early_packets", "share"})


def _share(summary: Summary) -> float | None:
    """The share of the first flow, the subject's, of all delivered bytes; None for one flow."""
    shares = summary["fairness"]["shares"]
    return shares[0]["share"] if len(shares) > 1 else None


def _jain(summary: Summary) -> float | None:
    """Jain's index of the flows' goodputs; None for one flow."""
    return summary["fairness"]["jain_index"] if len(summary["fairness"]["shares"]) > 1 else None


MEASURES: Mapping[str, Measure] = {
    **BY_NAME,
    "share": Measure(SHARE.title, SHARE.unit, SHARE.scale, SHARE.digits, "share", _share),
    "jain_index": Measure("Jain index", "", 1, 3, "jain_index", _jain),
}

# Families of units, each with the factor to the measure's own unit.
_TIMES = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_FAMILIES: Mapping[str, Mapping[str, float]] = {
    "ms": _TIMES,
    "Mbit/s": _RATES,
    "%": {"points": 0.01},
    "segments": {"": 1.0, "segments": 1.0},
    "packets": {"": 1.0, "packets": 1.0},
    "": {"": 1.0},
}
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([^\s\d,]\S*)?")
# Units of a bound that depend on the path, by the measure's unit.
_OF_PATH: Mapping[str, tuple[str, ...]] = {"Mbit/s": ("%",), "ms": ("bdp", "rtt")}
_EXAMPLES = {
    "ms": ("5 %, 2 ms", "1.5 bdp"),
    "Mbit/s": ("1 %", "90 %"),
    "%": ("10 %, 0.1 points", "1 %"),
    "segments": ("10 %, 5 segments", "40 segments"),
    "packets": ("10 %, 5 packets", "40 packets"),
    "": ("2 %", "0.8"),
}


def direction(name: str) -> int:
    """1 if more of a measure is better, -1 if less is, 0 if neither."""
    return 0 if name in _NEUTRAL else 1 if name in _MORE_IS_BETTER else -1


def named(field: str, name: str) -> Measure:
    """The measure of that name.

    Raises:
        ScenarioError: There is none; the error names the field and a similar name.
    """
    if name in MEASURES:
        return MEASURES[name]
    close = get_close_matches(name, MEASURES, 1)
    fix = f"did you mean {close[0]}?" if close else "write one of these"
    raise mistake(field, name, f"one of the measures {', '.join(MEASURES)}", fix)


@dataclass(frozen=True)
class Tolerance:
    """How far a measure may move: a share of its former value, or an amount, whichever is more."""

    text: str
    relative: float
    absolute: float

    def of(self, before: float) -> float:
        """The tolerated difference, in the measure's own unit."""
        return max(self.relative * abs(before), self.absolute)


@dataclass(frozen=True)
class Bound:
    """The least or the most that a measure may be."""

    text: str
    amount: float
    # "" for the measure's own unit; "%" of the link's rate; "bdp" or "rtt" for round trips of the path.
    of_path: str = ""

    def value(self, alternative: Alternative) -> float:
        """The bound in the measure's own unit, on the path of this alternative.

        Raises:
            ScenarioError: The path has no such rate or round trip, or it changes during the run.
        """
        if not self.of_path:
            return self.amount
        facts = path_facts.of(alternative)
        steps = facts.rate_mbps() if self.of_path == "%" else facts.base_rtt_ms()
        if steps is None or len({value for _, value in steps}) != 1:
            what = "rate" if self.of_path == "%" else "round-trip time"
            raise mistake("bound", self.text, f"a path whose {what} is known and constant", "write an amount")
        return self.amount * steps[0][1] * (1e6 if self.of_path == "%" else 1.0)


def tolerance(field: str, given: Any, measure: Measure) -> Tolerance:
    """Reads a tolerance such as "5 %" or "5 %, 2 ms".

    Raises:
        ScenarioError: It is none; the error names the field and the units that fit.
    """
    parts = [part.strip() for part in given.split(",")] if isinstance(given, str) else []
    relative = absolute = 0.0
    if not 1 <= len(parts) <= 2:
        raise _no_tolerance(field, given, measure)
    for part in parts:
        read = _AMOUNT.fullmatch(part)
        if read is None:
            raise _no_tolerance(field, given, measure)
        unit = str(read[2] or "")
        if unit == "%":
            relative = float(read[1]) / 100
        elif (factor := _FAMILIES[measure.unit].get(unit)) is not None:
            absolute = float(read[1]) * factor
        else:
            raise _no_tolerance(field, given, measure)
    return Tolerance(given, relative, absolute)


def _no_tolerance(field: str, given: Any, measure: Measure) -> Exception:
    units = ", ".join(filter(None, ("%", *_FAMILIES[measure.unit])))
    example, _ = _EXAMPLES[measure.unit]
    return mistake(field, given, f"a tolerance with a unit of {units}", f'e.g. "{example}"')


def bound(field: str, given: Any, measure: Measure) -> Bound:
    """Reads a bound such as "90 %" of the link's rate, "1.5 bdp" of queue, or "60 ms".

    Raises:
        ScenarioError: It is none; the error names the field and the units that fit.
    """
    units = {"%": 0.01} if measure.unit == "%" else dict(_FAMILIES[measure.unit])
    of_path = _OF_PATH.get(measure.unit, ())
    text = str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given
    read = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    unit = (read[2] or "") if read else None
    if read is not None and unit in of_path:
        return Bound(text, float(read[1]) * (0.01 if unit == "%" else 1.0), unit or "")
    if read is None or unit not in units:
        known = ", ".join(filter(None, (*units, *of_path)))
        expected = f"a number with a unit of {known}" if known else "a number"
        raise mistake(field, given, expected, f'e.g. "{_EXAMPLES[measure.unit][1]}"')
    return Bound(text, float(read[1]) * units[unit])


def values_of(summary: Summary) -> dict[str, float]:
    """Every measure of a run that has a value."""
    found = {name: value for name, one in MEASURES.items() if (value := one.take(summary)) is not None}
    if "write_ms" not in found:
        # A flow without end fills the send buffer at once, and its write rate means nothing.
        found.pop("write_bps", None)
    return found
