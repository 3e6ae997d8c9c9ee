"""Decision trees as data: nodes with a condition or a decision, and their rules as text.

What fits them is scikit-learn, which is in the extra `map`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

INSTALL = "pip install 'scikit-learn>=1.5'"
# The seed for ties between equally good conditions, and for splits of the data.
SEED = 1


@dataclass(frozen=True)
class Node:
    """A node: a condition with its two children, or a leaf. A path goes left where the condition is true."""

    number: int
    depth: int
    condition: str | None
    left: int | None
    right: int | None
    paths: int  # Training paths that reach it.
    counts: Mapping[str, int]  # For how many of them each class is right.

    @property
    def decision(self) -> str:
        """The class that is right for most of its paths; of equals the first."""
        return max(self.counts, key=lambda name: self.counts[name])

    @property
    def gini(self) -> float:
        """The Gini impurity: 0 if one class is right everywhere, and no other."""
        whole = sum(self.counts.values())
        return 1.0 - sum((count / whole) ** 2 for count in self.counts.values()) if whole else 0.0

    @property
    def purity(self) -> float:
        """From 0, where all classes are equal, to 1."""
        return 1.0 - self.gini / (1.0 - 1.0 / len(self.counts)) if len(self.counts) > 1 else 1.0


def rules(nodes: Sequence[Node], decided: Callable[[Node], str]) -> str:
    """A tree as indented rules; `decided` words a leaf."""
    return "\n".join(_lines(nodes, nodes[0], decided, 0)) + "\n"


def _lines(nodes: Sequence[Node], node: Node, decided: Callable[[Node], str], indent: int) -> Iterator[str]:
    pad = "    " * indent
    if node.condition is None or node.left is None or node.right is None:
        yield f"{pad}{decided(node)}"
        return
    yield f"{pad}if {node.condition}:"
    yield from _lines(nodes, nodes[node.left], decided, indent + 1)
    yield f"{pad}else:"
    yield from _lines(nodes, nodes[node.right], decided, indent + 1)
