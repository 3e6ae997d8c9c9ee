"""A case of the suite `loss`, and which controllers it is for."""

from dataclasses import dataclass

from fullpipe.conformance.case import Case
from fullpipe.errors import mistake, stated
from fullpipe.scenario.controllers import is_of_stack
from fullpipe.text import joined

# Traits that a case may need. The text says why the case does not apply to a controller without it.
TRAITS = {
    "loss": "is not loss-based",
    "cubic": "is not CUBIC",
    "reno": "is not Reno",
    "hystartpp": "has no HyStart++",
    "prr": "has no Proportional Rate Reduction",
}
# The controllers that are loss-based. Those in Linux recover by PRR, the others by QUIC's rules.
_KNOWN = {
    "cubic9438": ("cubic", "hystartpp"),
    "cubic": ("cubic", "prr"),
    "newreno": ("reno",),
    "reno": ("reno", "prr"),
}
# Those inside a stack, linked in or behind an adapter, by the names that stacks give them.
_IN_STACKS = {"cubic": ("cubic",), "newreno": ("reno",), "reno": ("reno",)}


@dataclass(frozen=True)
class LossCase(Case):
    """A case of loss-based congestion control, by an RFC."""

    phases: bool = False
    # It is for controllers with all of these traits; the names are those of `TRAITS`.
    needs: tuple[str, ...] = ("loss",)
    # The public reports of bugs that it would have caught, as owner/repository#number.
    bugs: str = ""

    def __post_init__(self) -> None:
        """Refuses traits that are not known."""
        super().__post_init__()
        if unknown := [one for one in self.needs if one not in TRAITS]:
            raise ValueError(f"{self.name}: {unknown[0]} is no trait; choose of {joined(list(TRAITS))}")

    def unusable(self, name: str, traits: frozenset[str]) -> str | None:
        """Why it says nothing about a controller with these traits; None if it does."""
        lacking = next((one for one in ("loss", *self.needs) if one not in traits), None)
        return None if lacking is None else f"{name} {TRAITS[lacking]}"


def check_kind(name: str, like: str) -> None:
    """Refuses a controller inside a stack whose name does not show what kind it is, without `like`.

    Raises:
        ScenarioError: Nobody says whether it is loss-based.
    """
    inside = name.strip().partition(":")[2]
    if like == "any" and is_of_stack(name.strip()) and inside not in _IN_STACKS and inside[:3] != "bbr":
        expected = "cubic, reno or `cubic,hystartpp`; or loss, if it is loss-based and none of them"
        what = f"Fullpipe does not know what kind of controller {name} is"
        raise stated("like", like, f"{what}: add --like {expected}", expected, "add --like")


def traits(name: str, like: str, *, own: bool) -> frozenset[str]:
    """What a controller is: as `like` says, or by its name; a user's `own` is at least loss-based.

    Raises:
        ScenarioError: `like` has a word that is no trait.
    """
    if like != "any":
        words = [one.strip() for one in like.split(",")]
        if unknown := [one for one in words if one not in TRAITS]:
            raise mistake(
                "like", unknown[0], f"one of {joined(list(TRAITS), 'or')}", 'e.g. "cubic,hystartpp"'
            )
        return frozenset(("loss", *words))
    algorithm, _, parameters = name.strip().partition(":")
    known = _IN_STACKS.get(parameters) if is_of_stack(name.strip()) else _KNOWN.get(algorithm)
    if known is None:
        return frozenset(("loss",)) if own else frozenset()
    found = {"loss", *known}
    given = [one.strip() for one in parameters.split(",")]
    if "hystartpp=1" in given:
        found.add("hystartpp")
    if "hystartpp=0" in given:
        found.discard("hystartpp")
    return frozenset(found)
