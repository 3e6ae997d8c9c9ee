"""The suites of cases for controllers, by name, for what plays or lists any of them."""

from collections.abc import Callable, Mapping, Sequence

from fullpipe.conformance import registry
from fullpipe.conformance.case import Case
from fullpipe.conformance.loss import registry as loss
from fullpipe.conformance.loss.case import traits
from fullpipe.conformance.results import BBR3, LOSS
from fullpipe.errors import mistake

# The cases of these names; all without any.
CHOSEN: Mapping[str, Callable[[Sequence[str] | None], Sequence[Case]]] = {
    BBR3: registry.chosen,
    LOSS: loss.chosen,
}


def check_like(suite: str, like: object) -> None:
    """Refuses what a controller cannot be said to be like.

    Raises:
        ScenarioError: `like` has a word that is no trait, or the suite has none.
    """
    if suite == BBR3 and like != "any":
        raise mistake("like", like, '"any" for a controller, whose inside is seen', "leave it out")
    if not isinstance(like, str):
        raise mistake("like", like, "a text", 'e.g. "cubic,hystartpp"')
    traits("", like, own=True)


def options(suite: str, like: str) -> str:
    """The options of `fullpipe conform` for a suite and a kind, with a space before them."""
    return (f" --suite {suite}" if suite != BBR3 else "") + (f" --like {like}" if like != "any" else "")
