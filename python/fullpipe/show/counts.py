"""How often an alternative ran in a world, in words."""

from fullpipe.results.runs import Group
from fullpipe.system.words import counted
from fullpipe.worlds import registry


def times(group: Group) -> str:
    """How often it ran: "5 seeds", "3 repetitions, 2 of them trusted"."""
    ran = counted(len(group.runs), _noun(group))
    if len(group.trusted) == len(group.runs):
        return ran
    if not group.trusted:
        return f"{ran}, not trusted" if len(group.runs) == 1 else f"{ran}, none of them trusted"
    return f"{ran}, {len(group.trusted)} of them trusted"


def left_out(group: Group) -> str:
    """A sentence about the runs that are not trusted; empty when all are."""
    if len(group.trusted) == len(group.runs):
        return ""
    used = "the others are" if group.trusted else "they are"
    return (
        f"{group.label}, {group.world}: {len(group.trusted)} of {len(group.runs)} {_noun(group)}s are "
        f"trusted; {used} left out of means and verdicts."
    )


def _noun(group: Group) -> str:
    world = registry.find(group.world)
    return "run" if world is None else world.noun
