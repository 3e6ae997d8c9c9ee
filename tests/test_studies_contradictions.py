"""Rows about one set-up: some outcome passes both, or the papers are known to contradict each other."""

from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from fullpipe_studies import catalogue, contradictions
from fullpipe_studies.catalogue import Built
from fullpipe_studies.claim import Cell, Check, Data, Grid, within
from judging import built

# Grids of thousands of paths or of flows, which take minutes to resolve; no other paper has their set-up.
LARGE = ("imc19.", "ccwg25.short", "imc21.")
Pair: TypeAlias = tuple[Built, Built, list[tuple[Cell, Cell]]]
Names: TypeAlias = frozenset[str]
KNOWN = {frozenset((one.one, one.other)) for one in contradictions.KNOWN}
# Pairs that measure other things than shares, and what each is about.
OTHERS = {
    frozenset(("ccwg25.queueN", "pam24.late")): "the queue; the time to fair shares",
    # The later paper repeats the model's evaluation and has the same limits.
    **{
        frozenset((f"ware19.{one}", f"ifip25.{other}")): "the same model's error"
        for one in ("share", "model", "window")
        for other in ("v1", "v3")
    },
}


@pytest.fixture(scope="module")
def pairs() -> dict[Names, Pair]:
    claims = [one for one in catalogue.find(["all"]) if not one.id.startswith(LARGE)]
    return {frozenset((one[0].id, one[1].id)): one for one in contradictions.same_setups(claims)}


def agree(pair: Pair) -> bool:
    """Whether in each set-up that they share some outcome passes both."""
    one, other, shared = pair
    return all(
        contradictions.passing(one, first) & contradictions.passing(other, second) for first, second in shared
    )


def test_pairs_about_one_setup_agree_or_are_known_contradictions(pairs: dict[Names, Pair]) -> None:
    shares = {names: pair for names, pair in pairs.items() if names <= set(contradictions.SHARES)}
    assert set().union(*shares) == set(contradictions.SHARES), "an entry of SHARES is in no pair"
    assert set(pairs) - set(shares) == set(OTHERS), "look at the criteria of a new pair"
    assert {names for names, pair in shares.items() if not agree(pair)} == KNOWN


def test_every_scenario_of_one_setup_is_in_a_pair() -> None:
    def starting(paper: str, *orders: tuple[str, str]) -> Built:
        def document(order: tuple[str, str]) -> dict[str, Any]:
            flows = [{"controller": "bbr1", "start": order[0]}, {"controller": "cubic", "start": order[1]}]
            return {
                "duration": "9 s",
                "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp"},
                "flows": flows,
            }

        whole = built("pam24.cubic")
        grid = Grid(factors={"order": orders}, document=document)
        return replace(whole, paper=paper, claim=replace(whole.claim, grid=grid))

    orders = ("0 s", "1 s"), ("1 s", "0 s")
    one, other = starting("one", *orders), starting("other", *orders)
    ((_, _, shared),) = contradictions.same_setups([one, other])
    found = [(first.factors["order"], second.factors["order"]) for first, second in shared]
    assert found == [(first, second) for first in orders for second in orders]


def test_criteria_that_exclude_each_other_are_found(pairs: dict[Names, Pair]) -> None:
    # The same two rows agree if one of them asks for nothing that the other excludes.
    pam, (ccwg, other, shared) = built("pam24.cubic"), pairs[frozenset(("pam24.cubic", "ccwg25.cubic"))]
    deep = [
        one for one in shared if (one[0].factors["controller"], one[0].factors["buffer_bdp"]) == ("bbr3", 8)
    ]
    assert other.id == pam.id and len(deep) == 1

    def asks(least: float) -> Built:
        def judge(data: Data) -> list[Check]:
            share = data.values("bbr_share", controller="bbr3", buffer_bdp=8)
            return [within("share", share, paper="words", least=least)]

        return replace(pam, claim=replace(pam.claim, judge=judge))

    assert agree((ccwg, asks(0.3), deep)) and not agree((ccwg, asks(0.6), deep))
