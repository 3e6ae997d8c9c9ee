"""How far apart two worlds are on one scenario, and whether that is tolerable.

The second world is the reference. A measure agrees when the difference of the means is within its tolerance,
or the first world's mean lies within the range that the reference's own runs span. The shares of several
flows must agree, too. Untrustworthy runs are left out; an alternative without a trusted run in both worlds
cannot be judged. Nor can a measure whose repetitions differ by more than its tolerance: a busy machine makes
them differ, and a wide range would agree with anything. Repetitions of worlds whose seeds repeat a run do not
count as such. `differences` tells why a grid is judged by another rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fullpipe.agreement import differences
from fullpipe.measures.measures import BY_NAME, SHARE, Quantity, known, shares
from fullpipe.measures.statistics import Estimate
from fullpipe.runs.worlds import registry
from fullpipe.text import capitalised, joined

if TYPE_CHECKING:
    from fullpipe.measures.run import Group, Runs
    from fullpipe.runs.worlds.world import World

R = TypeVar("R", bound="Runs")

GOODPUT_TOLERANCE = 0.03
RTT_TOLERANCE = 0.05
RETRANSMITS_FACTOR = 1.5
# Up to this many retransmissions, a factor is meaningless.
RETRANSMITS_THAT_COUNT = 50
SHARE_TOLERANCE = 0.08

TOLERANCES = (
    f"goodput {GOODPUT_TOLERANCE:.0%}, mean RTT {RTT_TOLERANCE:.0%}, retransmissions a factor of "
    f"{RETRANSMITS_FACTOR:g} (not compared where both worlds have at most {RETRANSMITS_THAT_COUNT}), shares "
    f"of several flows {SHARE_TOLERANCE * 100:.0f} percentage points"
)


def range_counts(worlds: Sequence[str] = registry.PAIR) -> str:
    """The rule about the range of the reference's runs, as a sentence."""
    ours, theirs = map(registry.named, worlds)
    return (
        f"The {ours.short}'s mean within the range of the {theirs.short}'s own {theirs.noun}s counts as "
        f"agreement. Where {theirs.noun}s differ by more than the tolerance, there is no verdict, unless so "
        "many ran that the 95 % interval of their mean is within it."
    )


@dataclass(frozen=True)
class Check:
    """One measure of one alternative in both worlds."""

    alternative: str
    measure: str
    ours: str
    theirs: str  # The reference's, with its range.
    difference: str
    tolerance: str
    agrees: bool
    reason: str  # The reason, if the verdict does not follow from the tolerance; else empty.
    inconclusive: bool = False  # There is no verdict; `agrees` is False then.

    @property
    def differs(self) -> bool:
        """Whether there is a verdict, and it is a difference."""
        return not self.agrees and not self.inconclusive

    @property
    def verdict(self) -> str:
        """In words."""
        verdict = "inconclusive" if self.inconclusive else "agrees" if self.agrees else "differs"
        return f"{verdict}, {self.reason}" if self.reason else verdict


@dataclass(frozen=True)
class Agreement(Generic[R]):
    """The verdict: every check, and the runs of both worlds that were judged."""

    results: R
    worlds: tuple[str, str]  # The second is the reference.
    checks: tuple[Check, ...]
    # Why alternatives cannot be judged, by label.
    unjudged: dict[str, str]

    @staticmethod
    def of(results: R, worlds: Sequence[str] = registry.PAIR) -> "Agreement[R]":
        """Judges runs of two worlds, alternative by alternative."""
        pair = registry.pair(worlds)
        by_world = {(group.world, group.label): group for group in results.groups}
        checks: list[Check] = []
        unjudged: dict[str, str] = {}
        for label in results.labels:
            groups = [by_world.get((world.name, label)) for world in pair]
            missing = [world for world, group in zip(pair, groups, strict=True) if group is None]
            doubted = [
                world for world, group in zip(pair, groups, strict=True) if group and not group.trusted
            ]
            if missing:
                unjudged[label] = f"did not run in the {missing[0].place}"
            elif doubted:
                unjudged[label] = f"has no trusted run in the {doubted[0].place}"
            else:
                ours, theirs = groups
                assert ours is not None and theirs is not None
                checks += _checks(ours, theirs, pair)
        return Agreement(results, (pair[0].name, pair[1].name), tuple(checks), unjudged)

    @staticmethod
    def between(results: R) -> "Agreement[R] | None":
        """The same for the first two worlds that ran, or None unless two did."""
        return Agreement.of(results, results.worlds[:2]) if len(results.worlds) > 1 else None

    @property
    def conclusive(self) -> bool:
        """Whether there is a verdict: some check differs, or everything was judged."""
        return any(check.differs for check in self.checks) or bool(self.checks and not self._not_judged)

    @property
    def _not_judged(self) -> dict[str, str]:
        """Why alternatives, or some of their measures, have no verdict, by label."""
        found = dict(self.unjudged)
        for label in dict.fromkeys(check.alternative for check in self.checks if check.inconclusive):
            names = [
                check.measure.partition(",")[0]
                for check in self.checks
                if check.inconclusive and check.alternative == label
            ]
            found[label] = f"has no verdict on {joined(names)} ({_SPREAD})"
        return found

    @property
    def agrees(self) -> bool:
        """Whether every alternative was judged, and every check agrees."""
        return self.conclusive and all(check.agrees for check in self.checks)

    @property
    def verdict(self) -> str:
        """A sentence or two."""
        measures = ", ".join(dict.fromkeys(check.measure.partition(",")[0] for check in self.checks))
        agree = sum(check.agrees for check in self.checks)
        counted = f"{agree} of {len(self.checks)} comparisons agree ({measures})"
        why = "; ".join(f"{label} {reason}" for label, reason in self._not_judged.items())
        if not self.conclusive:
            rest = f" Of what could be judged, {counted}." if self.checks else ""
            return f"Inconclusive: {why or 'there is nothing to compare'}.{rest}"
        not_judged = f" Not judged: {why}." if why else ""
        word = "agree" if self.agrees else "do not agree"
        return f"{self._subject} {word}: {counted}.{self._rests_on}{not_judged}"

    @property
    def _rests_on(self) -> str:
        """How many runs a verdict rests on, where it is fewer than there were; else empty."""
        few = [
            f"{group.label} {group.count} in the {registry.named(group.world).place}"
            for group in self.results.groups
            if group.world in self.worlds and 0 < len(group.trusted) < len(group.runs)
        ]
        return f" Trusted runs: {', '.join(few)}." if few else ""

    @property
    def _subject(self) -> str:
        if set(self.results.worlds) <= set(self.worlds):
            return "The worlds"
        return capitalised(" and ".join(registry.named(name).place for name in self.worlds))

    @property
    def few(self) -> str:
        """What "few" means in the column of differences; empty if it is not there."""
        if not any(check.difference == differences.FEW for check in self.checks):
            return ""
        return f"Few: up to {RETRANSMITS_THAT_COUNT} in both worlds, of which a factor means nothing."

    def to_dict(self) -> dict[str, Any]:
        """The verdict and all checks in plain values; `agrees` is None when inconclusive."""
        return {
            "agrees": self.agrees if self.conclusive else None,
            "verdict": self.verdict,
            "worlds": list(self.worlds),
            "tolerances": TOLERANCES,
            "unjudged": self.unjudged,
            "checks": [self._check(check) for check in self.checks],
        }

    def _check(self, check: Check) -> dict[str, Any]:
        """A check in plain values; each world's value has the world's name."""
        ours, theirs = self.worlds
        return {
            "alternative": check.alternative,
            "measure": check.measure,
            ours: check.ours,
            theirs: check.theirs,
            "difference": check.difference,
            "tolerance": check.tolerance,
            "agrees": None if check.inconclusive else check.agrees,
            "reason": check.reason,
        }


_JUDGED = (
    ("goodput_bps", differences.relative(GOODPUT_TOLERANCE)),
    ("rtt_mean_ms", differences.relative(RTT_TOLERANCE)),
    ("retransmits", differences.factor(RETRANSMITS_FACTOR, few=RETRANSMITS_THAT_COUNT, directed=False)),
)
_POINTS = differences.points(SHARE_TOLERANCE)
_SPREAD = "repetitions differ by more than the tolerance"


def _checks(ours: "Group", theirs: "Group", worlds: "tuple[World, World]") -> Iterator[Check]:
    for name, compare in _JUDGED:
        pair = ours.measures[name], theirs.measures[name]
        yield from _check(ours.label, BY_NAME[name], *pair, compare, worlds)
    our_shares, their_shares = ([shares(run.summary) for run in group.trusted] for group in (ours, theirs))
    flows = list(our_shares[0])
    for flow in flows if len(flows) > 1 else []:
        share = replace(SHARE, title=f"{SHARE.title} of {flow}")
        mine, other = (known([run[flow] for run in runs]) for runs in (our_shares, their_shares))
        yield from _check(ours.label, share, mine, other, _POINTS, worlds)


def _is_spread(found: Estimate, compare: differences.Compare, world: "World") -> bool:
    """Whether the repetitions differ so much that they do not tell their mean within the tolerance."""
    if world.deterministic or compare(found.most, found.least).tolerable:
        return False
    half = found.half_width
    return half is None or not compare(found.mean + half, found.mean).tolerable


def _check(
    label: str,
    quantity: Quantity,
    ours: Estimate | None,
    theirs: Estimate | None,
    compare: differences.Compare,
    worlds: "tuple[World, World]",
) -> Iterator[Check]:
    """The check of one quantity; none if neither world has a value."""
    title = f"{quantity.title}, {quantity.unit}"
    if ours is not None and theirs is not None:
        difference = compare(ours.mean, theirs.mean)
        in_range = theirs.least <= ours.mean <= theirs.most
        spread = any(_is_spread(one, compare, of) for one, of in zip((ours, theirs), worlds, strict=True))
        agrees = not spread and (difference.tolerable or in_range)
        own_range = "" if difference.tolerable else f"within the {worlds[1].short}'s own range"
        mean, least, most = map(quantity.show, (theirs.mean, theirs.least, theirs.most))
        yield Check(
            alternative=label,
            measure=title,
            ours=quantity.show(ours.mean),
            theirs=f"{mean} ({least} to {most})" if theirs.count > 1 else mean,
            difference=difference.message,
            tolerance=difference.limit,
            agrees=agrees,
            reason=_SPREAD if spread else own_range if agrees else "",
            inconclusive=spread,
        )
    elif ours is not theirs:
        yield Check(
            alternative=label,
            measure=title,
            ours=quantity.show(ours.mean if ours else None),
            theirs=quantity.show(theirs.mean if theirs else None),
            difference="–",
            tolerance="–",
            agrees=False,
            reason="known in one world only",
        )
