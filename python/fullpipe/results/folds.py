"""Repeated stratified cross-validation: an accuracy for each of many shuffles.

The folds of one shuffle depend on each other: their classifiers are trained on nearly the same examples, so
the spread is no uncertainty of the mean. What can be repeated is the shuffle. The spread over shuffles tells
how much an accuracy owes to one split of these examples; it tells nothing about other examples.

    def score(train, test): ...          # fits to the examples `train`, returns the accuracy on `test`
    accuracies = folds.repeated(winners, score)
    protocols = {"shuffled": accuracies, "in order": [folds.mean(folds.split(winners, 5), score)]}
"""

import math
import random
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from fullpipe.results.tree import SEED

# Positions of examples: those to train with, those to test with.
Score: TypeAlias = Callable[[Sequence[int], Sequence[int]], float]
TIMES = 100


def split(labels: Sequence[Hashable], count: int, seed: int | None = None) -> list[list[int]]:
    """The positions of each fold: each label is spread evenly over all. Without a seed in order."""
    if not 2 <= count <= len(labels):
        raise ValueError(f"{count} folds need at least two folds, and as many examples as folds")
    folds: list[list[int]] = [[] for _ in range(count)]
    chance = None if seed is None else random.Random(seed)
    dealt = 0
    for label in dict.fromkeys(labels):
        positions = [at for at, one in enumerate(labels) if one == label]
        if chance is not None:
            chance.shuffle(positions)
            for at in positions:
                folds[dealt % count].append(at)
                dealt += 1
        else:
            # Neighbours stay together, as in an unshuffled split.
            for number in range(count):
                begin, end = (len(positions) * one // count for one in (number, number + 1))
                folds[number] += positions[begin:end]
    return [sorted(fold) for fold in folds]


def mean(folds: Sequence[Sequence[int]], score: Score) -> float:
    """The mean accuracy over the folds, each tested with a classifier that never saw it."""
    every = sorted(at for fold in folds for at in fold)
    scores = []
    for fold in folds:
        held = set(fold)
        scores.append(score([at for at in every if at not in held], fold))
    return math.fsum(scores) / len(scores)


def repeated(
    labels: Sequence[Hashable], score: Score, *, count: int = 5, times: int = TIMES, seed: int = SEED
) -> list[float]:
    """The mean accuracy of each shuffle: `times` values, the same for the same seed."""
    return [mean(split(labels, count, seed + number), score) for number in range(times)]
