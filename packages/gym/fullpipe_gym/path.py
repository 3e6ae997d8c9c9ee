"""A path with one agent, as a Gymnasium environment."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fullpipe.scenario.path_fields import Amount
from fullpipe_gym.episode import Episode, number
from fullpipe_gym.outcome import Reward, reward
from fullpipe_gym.settings import PATH, Draw, Path, Settings, action_space, observation_space


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
        self._settings = Settings(
            path=path,
            others=tuple(others),
            traffic=dict(traffic or {}),
            action=action,
            step=step,
            duration=duration,
            reward=reward,
        )
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
        self._episode = Episode(self._settings, self.np_random, options)
        return self._episode.observation(0), {"path": dict(self._episode.path)}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Applies the action and runs a step: observation, reward, terminated, truncated, info."""
        (outcome,) = self.episode.step([number(action)])
        ended = self.episode.ended(0)
        return (
            self.episode.observation(0),
            self._settings.rewarded(outcome),
            ended,
            self.episode.over and not ended,
            outcome.to_dict(),
        )
