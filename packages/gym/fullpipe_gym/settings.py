"""What both environments are made with, and the spaces of an agent."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from fullpipe.errors import mistake
from fullpipe.scenario.path_fields import Amount
from fullpipe.text import joined
from fullpipe_gym.outcome import HISTORY, MEASURES, MOST, Outcome, Reward

Path: TypeAlias = Mapping[str, Any]
# Draws the path of an episode.
Draw: TypeAlias = Callable[[np.random.Generator], Path]

PATH: Path = {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}
_ACTIONS = ("rate", "window")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of both environments, which `PathEnv` describes."""

    path: Path | Draw
    others: tuple[Any, ...]
    traffic: dict[str, Any]
    action: str
    step: Amount | None
    duration: Amount
    reward: Reward

    def __post_init__(self) -> None:
        if self.action not in _ACTIONS:
            raise mistake("action", self.action, joined(_ACTIONS, "or"), "name one of the two")

    def draw(self, random: np.random.Generator, options: Mapping[str, Any] | None) -> Path:
        """The path of the next episode: that in the options of `reset`, else the environment's."""
        chosen: Path | Draw = (options or {}).get("path", self.path)
        return chosen(random) if callable(chosen) else chosen

    def rewarded(self, outcome: Outcome) -> float:
        """The reward of a step. Raises `ScenarioError` unless it is one finite number."""
        given = self.reward(outcome)
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            raise mistake("reward", repr(given), "a function whose result is a finite number", "correct it")
        return value


def observation_space() -> gymnasium.Space[Any]:
    """The space of an agent's observations: `HISTORY` steps of `MEASURES`."""
    return gymnasium.spaces.Box(0.0, MOST, (HISTORY * len(MEASURES),), np.float32)


def action_space() -> gymnasium.Space[Any]:
    """The space of an agent's actions: the logarithm to base 2 of the factor on its rate or window."""
    return gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
