"""The answer in a sentence for each world: who had more goodput, and who had less queue.

Where flows complete transfers, their completion times come first.

It compares the alternatives of a scenario; without alternatives, the flows that share the path. Only trusted
runs count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fullpipe.measures.measures import (
    BY_NAME,
    SHARE,
    Measure,
    different_lifetimes,
    flow_alone,
    goodput_bps,
    known,
    shares,
)
from fullpipe.measures.statistics import Estimate, estimate
from fullpipe.text import joined

if TYPE_CHECKING:
    from fullpipe.measures.run import Group, Runs

# Goodputs that differ by less than this share of the larger count as equal, whatever their intervals. So do
# queueing delays that differ by less than this share of the round-trip time.
ALIKE = 0.01

_Field: TypeAlias = Mapping[str, Estimate]


def answers(results: "Runs") -> dict[str, str]:
    """One sentence for each world."""
    return {
        world: _of_world([group for group in results.groups if group.world == world])
        for world in results.worlds
    }


def _of_world(groups: "list[Group]") -> str:
    doubted = [group.label for group in groups if not group.trusted]
    groups = [group for group in groups if group.trusted]
    if not groups:
        return "No run can be trusted."
    message = _compared(groups) if len(groups) > 1 else [_alone(groups[0])]
    if doubted:
        message.append(f"{joined(doubted)} {'has' if len(doubted) == 1 else 'have'} no trusted run")
    return f"{'; '.join(message)}."


def _compared(groups: "list[Group]") -> list[str]:
    """What alternatives are compared by: completion times first where flows complete transfers."""
    message = []
    times = _known(groups, "fct_mean_ms")
    if len(times) == len(groups):
        message.append(_ranked(times, BY_NAME["fct_mean_ms"], "mean completion time", _SHORTER))
    message.append(_ranked(_known(groups, "goodput_bps"), BY_NAME["goodput_bps"], "goodput", _MORE))
    delays = _known(groups, "queue_delay_mean_ms")
    if len(delays) == len(groups):
        rtt_ms = max((rtt.mean for rtt in _known(groups, "rtt_mean_ms").values()), default=0.0)
        measure = BY_NAME["queue_delay_mean_ms"]
        message.append(_ranked(delays, measure, "queueing delay", _LESS, equal=ALIKE * rtt_ms))
    return message


def _alone(group: "Group") -> str:
    time, measure = group.measures["fct_mean_ms"], BY_NAME["fct_mean_ms"]
    took = f"transfers took {measure.show(time.mean)} {measure.unit} on average; " if time else ""
    return f"{took}{_shared(group)}{_queue(group)}"


def _known(groups: "list[Group]", name: str) -> dict[str, Estimate]:
    return {group.label: value for group in groups if (value := group.measures[name])}


@dataclass(frozen=True)
class _Words:
    """How the best of two, and of several, is said to differ."""

    of_two: str
    of_several: str
    largest: bool


_MORE = _Words("more", "the most", largest=True)
_LESS = _Words("less", "the least", largest=False)
_SHORTER = _Words("a shorter", "the shortest", largest=False)


# A sentence names no more than this many; of more, it names this many less two, and counts the others.
_MOST_NAMED = 10


def _few(words: list[str]) -> list[str]:
    """The words, or the first of them and how many more there are."""
    if len(words) <= _MOST_NAMED:
        return words
    named = words[: _MOST_NAMED - 2]
    return [*named, f"{len(words) - len(named)} others"]


def _ranked(field: _Field, measure: Measure, noun: str, words: _Words, *, equal: float | None = None) -> str:
    """Which is best, and all values. Means that differ by up to `alike` are equal."""
    if equal is None:
        equal = ALIKE * max(value.mean for value in field.values())
    order = sorted(field, key=lambda one: field[one].mean, reverse=words.largest)
    best = field[order[0]]
    leaders = [one for one in field if abs(field[one].mean - best.mean) <= equal]
    unsure = [one for one in order if one not in leaders and _overlap(field[one], best)]
    rest = [one for one in order if one not in leaders and one not in unsure]
    shown = {one: measure.show(value.mean) for one, value in field.items()}
    numbers = f"{joined(_few([shown[one] for one in leaders]))} {measure.unit}"
    if len(leaders) == len(order):
        return f"{joined(_few(leaders))} had about the same {noun} ({numbers})"
    if len(order) == 2:
        first, second = order
        if unsure:
            both = f"{shown[first]} and {shown[second]} {measure.unit}"
            return f"{first} and {second} cannot be told apart in {noun} with this many runs ({both})"
        against = f"{shown[first]} against {shown[second]} {measure.unit}"
        return f"{first} had {words.of_two} {noun} than {second} ({against})"
    others = f"; {', '.join(_few([f'{one} {shown[one]}' for one in rest]))}" if rest else ""
    message = f"{joined(_few(leaders))} had {words.of_several} {noun} ({numbers}{others})"
    if unsure:
        doubt = joined(_few([f"{one} ({shown[one]})" for one in unsure]))
        message += f", from which {doubt} cannot be told apart with this many runs"
    return message


def _overlap(one: Estimate, other: Estimate) -> bool:
    """Whether the difference may be chance."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _shared(group: "Group") -> str:
    """What each flow got of the shared path."""
    summaries = [run.summary for run in group.trusted]
    measure = BY_NAME["goodput_bps"]
    controllers = {flow["label"]: flow["controller"] for flow in summaries[0]["flows"]}
    labels = list(controllers)
    if len(set(controllers.values())) == 1:
        goodput = group.measures[measure.name]
        all_of_them = " together" if len(labels) > 1 else ""
        shown = measure.show(goodput.mean if goodput else None)
        return f"{joined(_few(labels))} had {shown} {measure.unit} of goodput{all_of_them}"
    field = {
        label: estimate([goodput_bps(flow_alone(summary, label)) for summary in summaries])
        for label in labels
    }
    first = max(field, key=lambda label: field[label].mean)
    share = known([shares(summary)[first] for summary in summaries])
    # Each goodput is over the flow's own lifetime.
    noun = "goodput while it ran" if any(map(different_lifetimes, summaries)) else "goodput"
    ranked = _ranked(field, measure, noun, _MORE)
    return f"{ranked}, {SHARE.show(share.mean)} % of all bytes for {first}" if share else ranked


def _queue(group: "Group") -> str:
    delay, measure = group.measures["queue_delay_mean_ms"], BY_NAME["queue_delay_mean_ms"]
    return f", with {measure.show(delay.mean)} {measure.unit} of queueing delay on average" if delay else ""
