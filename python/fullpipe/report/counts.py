"""How often alternatives ran in a world, in words; and the numbers of runs that are not trusted."""

from collections.abc import Iterable, Sequence

from fullpipe.measures.measures import Quantity
from fullpipe.measures.run import Group, Runs
from fullpipe.runs.worlds import registry
from fullpipe.text import counted


def often(results: Runs) -> dict[str, str]:
    """How often each alternative ran, by world: "5 seeds", "3 repetitions, 1 to 3 of them trusted"."""
    return {
        world: _times([group for group in results.groups if group.world == world]) for world in results.worlds
    }


def _times(groups: Sequence[Group]) -> str:
    """The same for groups of one world. Numbers in which they differ are ranges."""
    ran = [len(group.runs) for group in groups]
    trusted = [len(group.trusted) for group in groups]
    noun = _noun(groups[0])
    times = counted(ran[0], noun) if len(set(ran)) == 1 else f"{_range(ran)} {noun}s"
    if trusted == ran:
        return times
    if not any(trusted):
        return f"{times}, not trusted" if max(ran) == 1 else f"{times}, none of them trusted"
    return f"{times}, {_range(trusted)} of them trusted"


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def single(results: Runs) -> list[str]:
    """The worlds in which an alternative has one trusted run only, and thus no confidence interval."""
    return list(dict.fromkeys(group.world for group in results.groups if len(group.trusted) == 1))


def left_out(group: Group) -> str:
    """A sentence about the runs that are not trusted; empty when all are."""
    if len(group.trusted) == len(group.runs):
        return ""
    name, ran = f"{group.label}, {group.world}", counted(len(group.runs), _noun(group))
    if group.trusted:
        some = f"{len(group.trusted)} of {ran} are trusted"
        return f"{name}: {some}; the others are left out of means and verdicts."
    none = f"the only {_noun(group)} is not" if len(group.runs) == 1 else f"none of {ran} is"
    return f"{name}: {none} trusted; the numbers are shown and marked, but left out of means and verdicts."


def spread(quantity: Quantity, values: Iterable[float | None]) -> str:
    """Values of runs that are not trusted, which get no mean: "73.1", or least and most, "73.1 to 94.2"."""
    present = [value for value in values if value is not None]
    if not present:
        return quantity.show(None)
    least, most = quantity.show(min(present)), quantity.show(max(present))
    return least if least == most else f"{least} to {most}"


def _noun(group: Group) -> str:
    world = registry.find(group.world)
    return "run" if world is None else world.noun
