"""Papers that contradict each other: claims about one set-up whose checks no outcome can meet together.

A test looks for claims of different papers with a set-up in common (`same_setups`). Where both are about the
share of one flow beside another (`SHARES`), it tries all shares (`passing`), and fails if none passes both
and the two are not listed in `KNOWN`.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe import evidence
from fullpipe.scenario import path_facts
from fullpipe.scenario.scenario import from_document
from fullpipe.text import cell
from fullpipe_studies import document
from fullpipe_studies.catalogue import Built
from fullpipe_studies.checks import FEWEST, Outcome
from fullpipe_studies.claim import Cell, Check, Data, Size, number


@dataclass(frozen=True)
class Contradiction:
    """Two claims that cannot both be reproduced in a set-up, with what each paper says of it."""

    one: str
    other: str
    where: str
    says: tuple[str, str]
    measured: str  # The check of the first claim whose value says who is right here.


KNOWN = (
    Contradiction(
        "pam24.cubic",
        "ccwg25.cubic",
        "BBRv3 beside CUBIC, 100 Mbit/s, 50 ms, 8 BDP",
        ("BBRv3 leaves CUBIC little to no room", "CUBIC has more than BBRv3"),
        "bbr3:profile=linux's share divided by CUBIC's, 8 BDP (direction)",
    ),
)


# The claims that measure the share of one flow beside another, with what they call it and the other's.
SHARES: Mapping[str, tuple[str, str]] = {
    "pam24.cubic": ("bbr_share", "cubic_share"),
    "ccwg25.cubic": ("share", "cubic_share"),
}
_PARTS = tuple(step / 10 for step in range(11))


def setup(document: Mapping[str, Any]) -> str:
    """What scenarios of one set-up have in common: queues, rates, losses, and each flow with its RTT.

    Durations, starts, records, jitter and the hosts' pacing may differ.
    """
    alternative = from_document(dict(document)).alternatives[0]
    spec, facts = alternative.spec, path_facts.of(alternative)
    ways = [
        [one for one in spec[way] if one["kind"] not in ("delay", "jitter")] for way in ("forward", "reverse")
    ]
    flows = [
        [one["controller"], facts.base_rtt_ms(one["label"]), one["workload"], one["max_cwnd"]]
        for one in spec["flows"]
    ]
    return json.dumps([ways, sorted(flows, key=str)])


def same_setups(claims: Iterable[Built]) -> Iterable[tuple[Built, Built, list[tuple[Cell, Cell]]]]:
    """Pairs of claims of different papers with scenarios of the same set-up, and these.

    A claim may have several scenarios of one set-up, e.g. with each order of starts.
    """
    cells = [(one, _by_setup(one.claim.grid.cells(Size.FULL))) for one in claims]
    for (one, of_one), (other, of_other) in itertools.combinations(cells, 2):
        shared = [
            pair
            for key in of_one
            if key in of_other
            for pair in itertools.product(of_one[key], of_other[key])
        ]
        if shared and one.paper != other.paper:
            yield one, other, shared


def _by_setup(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for one in cells:
        found.setdefault(setup(one.document), []).append(one)
    return found


def passing(claim: Built, cell: Cell) -> set[float]:
    """The shares in this scenario with which every check about it can pass, if all others have the best one.

    Each check is tried alone: that all pass with the same share elsewhere is not asked. So if two claims have
    no such share in common, no outcome passes both.
    """
    judged = {
        (here, others): {check.what: check for check in _judge(claim, cell, here, others)}
        for here, others in itertools.product(_PARTS, repeat=2)
    }
    names = dict.fromkeys(what for checks in judged.values() for what in checks)
    about = [
        what
        for what in names
        if any(
            judged[here, others][what].ours != judged[_PARTS[0], others][what].ours for here, others in judged
        )
    ]
    return {
        here
        for here in _PARTS
        if all(
            any(judged[here, others][what].outcome is not Outcome.MISSED for others in _PARTS)
            for what in about
        )
    }


def _judge(claim: Built, cell: Cell, here: float, others: float) -> Sequence[Check]:
    """The checks of runs with one share in this scenario, and another one in all others."""
    share, rest = SHARES[claim.id]
    rows = [
        {"seed": seed, **one.factors, share: part, rest: 1 - part}
        for one in claim.claim.grid.cells(Size.FULL)
        for part in [here if one.factors == cell.factors else others]
        for seed in range(1, FEWEST + 1)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return claim.claim.judge(Data(frame, pl.DataFrame(), factors=tuple(claim.claim.grid.factors)))


def markdown(lines: Sequence[evidence.Line]) -> str:
    """The table of papers that contradict each other, with the values that say who is right."""
    found = {line["key"]["claim"]: line for line in lines if line["key"]["world"] == "sim"}
    text = [
        "## Papers that contradict each other",
        "",
        "No outcome fulfils both.",
        "",
        "| set-up | one paper | another | here |",
        "|---|---|---|---|",
    ]
    for one in KNOWN:
        value = document.value(found[one.one], one.measured) if one.one in found else None
        here = one.measured if value is None else f"{one.measured}: {number(value)}"
        says = [f"{claim}: {words}" for claim, words in zip((one.one, one.other), one.says, strict=True)]
        cells = (one.where, *says, here)
        text.append(f"| {' | '.join(map(cell, cells))} |")
    return "\n".join(text) + "\n"
