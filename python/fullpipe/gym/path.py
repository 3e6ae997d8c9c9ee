"""A path with one agent, as a Gymnasium environment."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fullpipe.ask.scenario import Amount
from fullpipe.errors import mistake
from fullpipe.gym.episode import ACTIONS, Action, Episode, number
from fullpipe.gym.outcome import HISTORY, MEASURES, MOST, Reward, reward

Path = Mapping[str, Any]
# Draws the path of an episode.
Draw = Callable[[np.random.Generator], Path]

PATH: Path = {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}


def observation_space() -> gymnasium.Space[Any]:
    """The space of an agent's observations: `HISTORY` steps of `MEASURES`."""
    return gymnasium.spaces.Box(0.0, MOST, (HISTORY * len(MEASURES),), np.float32)


def action_space() -> gymnasium.Space[Any]:
    """The space of an agent's actions: the logarithm to base 2 of the factor on its rate or window."""
    return gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)


def checked(action: str) -> Action:
    """The kind of action. Raises `ScenarioError` for an unknown one."""
    for known in ACTIONS:
        if action == known:
            return known
    raise mistake("action", action, " or ".join(ACTIONS), "name one of the two")


class PathEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One agent sets the rate or the window of a flow on a path; `others` are controllers beside it.

    `path` is a scenario's `path` table. Instead, a function draws one for each episode. A step takes `step`,
    by default the base RTT. The flow sends as much as it can, or has `traffic`: fields of a scenario's flow,
    such as `{"size": "1 MB"}`. An episode is terminated when it has sent all, and truncated after `duration`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as in gymnasium.Env)

    def __init__(
        self,
        path: Path | Draw = PATH,
        *,
        others: Sequence[Any] = (),
        traffic: Mapping[str, Any] | None = None,
        action: str = "rate",
        step: Amount | None = None,
        duration: Amount = "30 s",
        reward: Reward = reward,
        render_mode: None = None,
    ) -> None:
        self.render_mode = render_mode
        self.observation_space = observation_space()
        self.action_space = action_space()
        self._path, self._others, self._action = path, tuple(others), checked(action)
        self._traffic = dict(traffic or {})
        self._step, self._duration, self._reward = step, duration, reward
        self._episode: Episode | None = None

    @property
    def episode(self) -> Episode:
        """The running episode, with its `simulation`. Raises `RuntimeError` before the first reset."""
        if self._episode is None:
            raise RuntimeError("there is no episode yet; call reset() first")
        return self._episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode. `options={"path": {...}}` gives its path."""
        super().reset(seed=seed)
        chosen = (options or {}).get("path", self._path)
        path = chosen(self.np_random) if callable(chosen) else chosen
        self._episode = Episode(
            path,
            agents=1,
            others=self._others,
            traffic=self._traffic,
            action=self._action,
            duration=self._duration,
            step=self._step,
            seed=int(self.np_random.integers(2**63)),
        )
        return self._episode.observation(0), {"path": dict(path)}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Applies the action and runs a step: observation, reward, terminated, truncated, info."""
        (outcome,) = self.episode.step([number(action)])
        ended = self.episode.ended(0)
        return (
            self.episode.observation(0),
            float(self._reward(outcome)),
            ended,
            self.episode.over and not ended,
            outcome.to_dict(),
        )
