"""The answer in a sentence for each world: who had more goodput, and who had less queue.

Contestants are the alternatives of a scenario; of a scenario without alternatives, the flows that share the
path.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from fullpipe.measures import BY_NAME, SHARE, Measure, flow_alone, known, shares
from fullpipe.stats import Estimate

if TYPE_CHECKING:
    from fullpipe.results import Group, Results

# Means closer than this are alike, even where one seed gives no interval.
ALIKE = 0.01

_Field: TypeAlias = Mapping[str, Estimate]


def answers(results: "Results") -> dict[str, str]:
    """One sentence a world."""
    return {
        world: _of_world([group for group in results.groups if group.world == world])
        for world in results.worlds
    }


def _of_world(groups: "list[Group]") -> str:
    if len(groups) > 1:
        said = [_compared(groups, "goodput_bps", "goodput", most=True)]
        said += [_compared(groups, "queue_delay_mean_ms", "queueing delay", most=False)]
        return f"{'; '.join(part for part in said if part)}."
    return f"{_shared(groups[0])}{_queue(groups[0])}."


def _compared(groups: "list[Group]", name: str, noun: str, *, most: bool) -> str:
    field = {group.label: value for group in groups if (value := group.measures[name]) is not None}
    return _ranked(field, BY_NAME[name], noun, most=most) if len(field) == len(groups) else ""


def _ranked(field: _Field, measure: Measure, noun: str, *, most: bool) -> str:
    """Who had the most (or the least), and how much everybody had."""
    order = sorted(field, key=lambda one: field[one].mean, reverse=most)
    leaders = [one for one in order if _alike(field[one], field[order[0]])]
    listed = ", ".join(f"{one} {measure.show(field[one].mean)}" for one in order)
    numbers = f"({listed} {measure.unit})"
    if len(leaders) == len(order):
        return f"{_together(leaders)} had about the same {noun} {numbers}"
    degree = ("more" if most else "less") if len(order) == 2 else ("the most" if most else "the least")
    return f"{_together(leaders)} had {degree} {noun} {numbers}"


def _alike(one: Estimate, other: Estimate) -> bool:
    """Whether the difference is too small to matter, or may be chance."""
    if abs(one.mean - other.mean) <= ALIKE * max(abs(one.mean), abs(other.mean)):
        return True
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _shared(group: "Group") -> str:
    """What each flow had of the path that they shared."""
    summaries = [run.summary for run in group.runs]
    measure = BY_NAME["goodput_bps"]
    labels = [flow["label"] for flow in summaries[0]["flows"]]
    if len({flow["controller"] for flow in summaries[0]["flows"]}) > 1:
        taken = {
            one: known([measure.take(flow_alone(summary, one)) for summary in summaries]) for one in labels
        }
        field = {one: value for one, value in taken.items() if value is not None}
        ranked = _ranked(field, measure, "goodput", most=True)
        share = known([shares(summary)[max(field, key=lambda one: field[one].mean)] for summary in summaries])
        return f"{ranked}: a share of {SHARE.show(share.mean)} % for the first" if share else ranked
    goodput = group.measures[measure.name]
    together = " together" if len(labels) > 1 else ""
    shown = measure.show(goodput.mean if goodput else None)
    return f"{_together(labels)} had {shown} {measure.unit} of goodput{together}"


def _queue(group: "Group") -> str:
    delay, measure = group.measures["queue_delay_mean_ms"], BY_NAME["queue_delay_mean_ms"]
    return f", with {measure.show(delay.mean)} {measure.unit} of queueing delay on average" if delay else ""


def _together(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
