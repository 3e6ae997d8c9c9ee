"""Where the inputs of an answer come from: given by the user, measured by a file, assumed, or left out."""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fullpipe.advisor.question import BUFFERS_BDP, Question, shown
from fullpipe.scenario.path import NAMES
from fullpipe.text import joined

# What an answer assumes where nobody gave a value, for fields whose default is no text of its own.
_ASSUMED = {
    "buffer": f"{joined([f'{one:g}' for one in BUFFERS_BDP])} bdp side by side (at least 10 packets)",
    "loss": "none",
    "jitter": "none",
    "queue": "fifo",
    "policer": "none",
    "competitors": "none",
    "flow_size": "unlimited",
    "tcp_memory": "max",
    "duration": "300 round trips (20 to 60 s; less on fast paths)",
}
_TITLES = {"given": "Given", "measured": "Measured", "assumed": "Assumed"}
# How readers write measured quantities, and what a unit is of.
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?) (bit/s|us|B)")
_QUANTITY = {"bit/s": ("rate", 1.0), "us": ("rtt", 1e-3), "B": ("buffer", 1.0)}


@dataclass(frozen=True)
class Inputs:
    """Each field of a question by its name, with its value, in the group that it comes from."""

    given: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)
    # What a file has and the answer does not use, and why; what it cannot tell.
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        question: Question,
        *,
        given: Collection[str],
        measured: Collection[str] = (),
        left_out: Sequence[str] = (),
        goal: str = "",
    ) -> "Inputs":
        """The inputs of a question and its goal. Fields that were neither given nor measured are assumed."""
        groups: dict[str, dict[str, str]] = {"given": {}, "measured": {}, "assumed": {}}
        values = {one.name: getattr(question, one.name) for one in dataclasses.fields(question)}
        bdps = values.pop("assumed_bdps")
        for name, value in {**values, **({"goal": goal} if goal else {})}.items():
            group = "given" if name in given else "measured" if name in measured else "assumed"
            if group == "assumed" and name in NAMES and name not in _ASSUMED:
                continue
            text = _plain(value)
            if name == "buffer" and bdps is not None:
                groups[group][name] = f"{bdps:g} bdp (at least 10 packets)"
                continue
            groups[group][name] = _ASSUMED.get(name, text) if group == "assumed" else text
        return cls(**groups, left_out=tuple(left_out))

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the names that documents use."""
        return {
            "given": dict(self.given),
            "measured": dict(self.measured),
            "assumed": dict(self.assumed),
            "left_out": list(self.left_out),
        }

    def texts(self) -> dict[str, str]:
        """The four groups in words, under the same names."""
        found = {
            name: ", ".join(
                f"{one.replace('_', ' ')} {readable(value) if name == 'measured' else value}"
                for one, value in getattr(self, name).items()
            )
            for name in _TITLES
        }
        return {**found, "left_out": "; ".join(self.left_out)}

    def lines(self) -> list[str]:
        """The path that was simulated: a sentence for each group that is not empty."""
        texts = self.texts()
        return [f"{title}: {texts[name]}." for name, title in _TITLES.items() if texts[name]]

    @property
    def unused(self) -> list[str]:
        """What a file has and the answer does not use, in a sentence; none if there is nothing."""
        return [f"Left out: {'; '.join(self.left_out)}."] if self.left_out else []


def given_of(asked: Mapping[str, Any]) -> set[str]:
    """The fields of a question that are no defaults, from arguments that are None where nothing was given."""
    defaults = {one.name: one.default for one in dataclasses.fields(Question)}
    return {
        name
        for name, value in asked.items()
        # An option that is a switch, or a list, cannot be told from its default.
        if value is not None and not (isinstance(value, bool | tuple) and value == defaults.get(name))
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(one if isinstance(one, str) else f"{one[0]}:{one[1]}" for one in value)
    return "none" if value is None else str(value)


def readable(value: str) -> str:
    """A measured quantity in a usual unit."""
    found = _WRITTEN.fullmatch(value)
    if found is None:
        return value
    quantity, scale = _QUANTITY[found[2]]
    return shown(quantity, float(found[1]) * scale, 3)
