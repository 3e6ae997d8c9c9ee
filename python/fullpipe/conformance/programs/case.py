"""A case that is judged from outside: a path, and what a record of it must show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from fullpipe.conformance.case import Case
from fullpipe.conformance.programs import competitor

# What a program's congestion control is like: the cases of its kind are judged besides those for any.
Like: TypeAlias = Literal["bbr3", "cubic", "reno", "any"]
LIKES: tuple[str, ...] = get_args(Like)
# What each is in words.
OF_LIKE: Mapping[str, str] = {
    "bbr3": "BBRv3",
    "cubic": "CUBIC (RFC 9438)",
    "reno": "Reno (RFC 5681)",
    "any": "any congestion control",
}
# The data has to flow by then: connections are set up before, and no case but that of the start measures
# earlier.
BEGINS_BY_S = 3.0


@dataclass(frozen=True)
class Course:
    """A path, and what changes on it. Cases on equal courses are judged by the same runs."""

    name: str
    mbps: float
    ms: float
    bdps: float
    lasts_s: float
    # More of the scenario's table `path`.
    path: Mapping[str, Any] = field(default_factory=dict)
    # Whether a flow of Linux's CUBIC is beside the one that is judged.
    beside_cubic: bool = False
    # Whether a second one of the same kind is beside it.
    twins: bool = False
    # Moments that a page names.
    marks: tuple[tuple[float, str], ...] = ()

    @property
    def is_alone(self) -> bool:
        """Whether the flow that is judged has the path to itself."""
        return not self.beside_cubic and not self.twins

    def document(self, flow: Mapping[str, Any]) -> dict[str, Any]:
        """The scenario with the flow that is judged."""
        bdp_bytes = self.mbps * 1e6 * self.ms / 1e3 / 8
        return {
            "name": self.name,
            "duration": f"{self.lasts_s:g} s",
            "path": {
                "rate": f"{self.mbps:g} Mbit/s",
                "rtt": f"{self.ms:g} ms",
                "buffer": f"{round(self.bdps * bdp_bytes)} B",
                **self.path,
            },
            "flows": self._flows(flow),
        }

    def _flows(self, flow: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self.twins:
            return [{**flow, "label": "the first"}, {**flow, "label": "the second"}]
        if self.beside_cubic:
            label = "cubic beside it"
            # Programs share a path with programs only.
            cubic = competitor.flow(label) if "client" in flow else {"controller": "cubic", "label": label}
            return [dict(flow), cubic]
        return [dict(flow)]


@dataclass(frozen=True)
class OutsideCase(Case):
    """One case. `play` measures on a `Seen`: the record of a run of the course."""

    prefix: ClassVar[str] = "outside."

    course: Course | None = None
    # Whose congestion control it is about.
    like: Like = "any"

    def __post_init__(self) -> None:
        """Refuses a case that nothing could fail, or that has no path."""
        super().__post_init__()
        if self.course is None:
            raise ValueError(f"{self.name}: needs a course")

    @property
    def on(self) -> Course:
        """Its course."""
        assert self.course is not None
        return self.course

    def speaks_of(self, like: str) -> bool:
        """Whether it is judged for a program of this kind."""
        return self.like in ("any", like)


def name_of(client: str) -> str:
    """The first word of a command line, without its folder and the variables before it."""
    words = client.split()
    word = next((one for one in words if "=" not in one), words[0] if words else "program")
    return word.rstrip("/").rpartition("/")[2] or word
