"""Papers that contradict each other: claims about one set-up whose checks no outcome can meet together.

`SHARED` says in which quantity claims measure the same, so that one outcome can be given to the judges of all
(`compatible`). A test looks for claims with equal set-ups, tries all outcomes, and fails if there are two
that exclude each other and are not listed in `KNOWN`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from fullpipe import evidence
from fullpipe.text import cell
from fullpipe_studies import document
from fullpipe_studies.catalogue import Built
from fullpipe_studies.checks import FEWEST, Outcome
from fullpipe_studies.claim import Cell, Data, Factors, Row, Size

# What tells whether two claims have a scenario in common: see `setup`.
Setup: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Contradiction:
    """Two claims that cannot both be reproduced in a set-up, with what each paper says of it."""

    one: str
    other: str
    where: str
    says: tuple[str, str]
    # The checks whose recorded values say who is right.
    measured: Sequence[tuple[str, str]]


KNOWN = (
    Contradiction(
        "pam24.cubic",
        "ccwg25.cubic",
        "BBRv3 beside CUBIC, 100 Mbit/s, 50 ms, 8 BDP",
        ("BBRv3 leaves CUBIC little to no room", "CUBIC has more than BBRv3"),
        (("pam24.cubic", "BBRv3's share divided by CUBIC's, 8 BDP (direction)"),),
    ),
)


def _share(row: str, rest: str) -> Callable[[float], Row]:
    return lambda share: {row: share, rest: 1 - share}


# By quantity: the claims that measure it, with the columns that follow from its value (0 to 1).
SHARED: Mapping[str, Mapping[str, Callable[[float], Row]]] = {
    "share of one BBR beside one loss-based flow": {
        "pam24.cubic": _share("bbr_share", "cubic_share"),
        "ccwg25.cubic": _share("share", "cubic_share"),
        "queue16.coexist": _share("bbr_share", "cubic_share"),
        "icnp17.cubic": _share("bbr_share", "cubic_share"),
        "ware19.model": _share("bbr_share", "cubic_share"),
        "ware19.share": _share("bbr_share", "cubic_share"),
        "ifip25.v1": _share("bbr_share", "cubic_share"),
        "ifip25.v3": _share("bbr_share", "cubic_share"),
    },
}
