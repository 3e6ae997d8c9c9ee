"""The answer in a sentence for each world: who had more goodput, and who had less queue.

Contestants are the alternatives of a scenario; of a scenario without alternatives, the flows that share the
path.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from fullpipe.measures import BY_NAME, SHARE, Measure, flow_alone, goodput_bps, known, shares
from fullpipe.stats import Estimate, estimate

if TYPE_CHECKING:
    from fullpipe.results import Group, Results

# Goodputs closer than this part of the larger are alike, whatever their intervals; so are queueing delays
# closer than this part of the round-trip time, in which nobody would notice them.
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
        goodputs = {group.label: value for group in groups if (value := group.measures["goodput_bps"])}
        said = [_ranked(goodputs, BY_NAME["goodput_bps"], "goodput", most=True)]
        delays = {group.label: value for group in groups if (value := group.measures["queue_delay_mean_ms"])}
        if len(delays) == len(groups):
            rtt_ms = max(
                (rtt.mean for group in groups if (rtt := group.measures["rtt_mean_ms"])), default=0.0
            )
            measure = BY_NAME["queue_delay_mean_ms"]
            said.append(_ranked(delays, measure, "queueing delay", most=False, alike=ALIKE * rtt_ms))
        return f"{'; '.join(said)}."
    return f"{_shared(groups[0])}{_queue(groups[0])}."


def _ranked(field: _Field, measure: Measure, noun: str, *, most: bool, alike: float | None = None) -> str:
    """Who had the most (or the least), and how much everybody had. Means within `alike` are alike."""
    if alike is None:
        alike = ALIKE * max(value.mean for value in field.values())
    order = sorted(field, key=lambda one: field[one].mean, reverse=most)
    leaders = [one for one in field if _alike(field[one], field[order[0]], alike)]
    rest = [one for one in order if one not in leaders]
    shown = {one: measure.show(value.mean) for one, value in field.items()}
    numbers = f"{together([shown[one] for one in leaders])} {measure.unit}"
    if not rest:
        return f"{together(leaders)} had about the same {noun} ({numbers})"
    if len(order) == 2:
        return f"{leaders[0]} had {'more' if most else 'less'} {noun} ({numbers} against {shown[rest[0]]})"
    others = ", ".join(f"{one} {shown[one]}" for one in rest)
    return f"{together(leaders)} had the {'most' if most else 'least'} {noun} ({numbers}; {others})"


def _alike(one: Estimate, other: Estimate, alike: float) -> bool:
    """Whether the difference is too small to matter, or may be chance."""
    if abs(one.mean - other.mean) <= alike:
        return True
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _shared(group: "Group") -> str:
    """What each flow had of the path that they shared."""
    summaries = [run.summary for run in group.runs]
    measure = BY_NAME["goodput_bps"]
    controllers = {flow["label"]: flow["controller"] for flow in summaries[0]["flows"]}
    labels = list(controllers)
    if len(set(controllers.values())) == 1:
        goodput = group.measures[measure.name]
        all_of_them = " together" if len(labels) > 1 else ""
        shown = measure.show(goodput.mean if goodput else None)
        return f"{together(labels)} had {shown} {measure.unit} of goodput{all_of_them}"
    field = {
        label: estimate([goodput_bps(flow_alone(summary, label)) for summary in summaries])
        for label in labels
    }
    first = max(field, key=lambda label: field[label].mean)
    share = known([shares(summary)[first] for summary in summaries])
    ranked = _ranked(field, measure, "goodput", most=True)
    return f"{ranked}, a share of {SHARE.show(share.mean)} % for {first}" if share else ranked


def _queue(group: "Group") -> str:
    delay, measure = group.measures["queue_delay_mean_ms"], BY_NAME["queue_delay_mean_ms"]
    return f", with {measure.show(delay.mean)} {measure.unit} of queueing delay on average" if delay else ""


def together(names: Sequence[str]) -> str:
    """Names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
