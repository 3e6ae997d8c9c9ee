"""A path with several agents, as a PettingZoo parallel environment."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from fullpipe.errors import mistake
from fullpipe.scenario.path_fields import Amount
from fullpipe_gym.episode import Episode, number
from fullpipe_gym.outcome import Reward, reward
from fullpipe_gym.settings import PATH, Draw, Path, Settings, action_space, observation_space

# A step of so many agents still takes less than a second, and an episode begins within a few.
MOST_FLOWS = 200

_Array = NDArray[np.float32]


class SharedPathEnv(ParallelEnv[str, _Array, _Array]):  # type: ignore[misc] # It has no types.
    """Agents `flow_0`, `flow_1`, ... share a path, each with a flow; `others` are controllers beside them.

    The arguments are those of `PathEnv`. Each agent is rewarded for its own flow. The rewards of `flows`
    agents that share a path fairly add up to about 1 for each step.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "fullpipe/SharedPath-v0"}  # noqa: RUF012

    def __init__(
        self,
        path: Path | Draw = PATH,
        *,
        flows: int = 2,
        others: Sequence[Any] = (),
        traffic: Mapping[str, Any] | None = None,
        action: str = "rate",
        step: Amount | None = None,
        duration: Amount = "30 s",
        reward: Reward = reward,
        render_mode: None = None,
    ) -> None:
        if type(flows) is not int or not 1 <= flows <= MOST_FLOWS:
            raise mistake("flows", flows, f"a whole number from 1 to {MOST_FLOWS}", "e.g. 2")
        self.render_mode = render_mode
        self.possible_agents = [f"flow_{number}" for number in range(flows)]
        self._numbers = {name: number for number, name in enumerate(self.possible_agents)}
        self.agents: list[str] = []
        self._spaces = {name: (observation_space(), action_space()) for name in self.possible_agents}
        self._settings = Settings(
            path=path,
            others=tuple(others),
            traffic=dict(traffic or {}),
            action=action,
            step=step,
            duration=duration,
            reward=reward,
        )
        self._random = np.random.default_rng()
        self._episode: Episode | None = None

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """The same space for every agent."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The same space for every agent."""
        return self._spaces[agent][1]

    @property
    def episode(self) -> Episode:
        """The running episode, with its `simulation`. Raises `RuntimeError` before the first reset."""
        if self._episode is None:
            raise RuntimeError("there is no episode yet; call reset() first")
        return self._episode

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, _Array], dict[str, dict[str, Any]]]:
        """Begins an episode. `options={"path": {...}}` gives its path."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._episode = Episode(self._settings, self._random, options, agents=len(self.possible_agents))
        self.agents = list(self.possible_agents)
        return self._observations(self.agents), {
            name: {"path": dict(self.episode.path)} for name in self.agents
        }

    def step(
        self, actions: dict[str, _Array]
    ) -> tuple[
        dict[str, _Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Applies the agents' actions and runs a step; an agent without one keeps its rate or window."""
        if unknown := sorted(set(actions) - set(self.possible_agents)):
            raise mistake(
                "agent", unknown[0], f"one of {', '.join(self.possible_agents)}", "name one of these"
            )
        given = [number(actions[name]) if name in actions else None for name in self.possible_agents]
        outcomes = self.episode.step(given)
        acted, numbers = self.agents, {name: self._numbers[name] for name in self.agents}
        ended = {name: self.episode.ended(numbers[name]) for name in acted}
        over = {name: self.episode.over and not ended[name] for name in acted}
        self.agents = [name for name in acted if not (ended[name] or over[name])]
        return (
            self._observations(acted),
            {name: self._settings.rewarded(outcomes[numbers[name]]) for name in acted},
            ended,
            over,
            {name: outcomes[numbers[name]].to_dict() for name in acted},
        )

    def _observations(self, agents: Sequence[str]) -> dict[str, _Array]:
        return {name: self.episode.observation(self._numbers[name]) for name in agents}
