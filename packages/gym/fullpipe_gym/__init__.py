"""Environments for learning agents: one flow (Gymnasium), or several on one path (PettingZoo).

    import gymnasium, fullpipe_gym

    env = gymnasium.make("fullpipe/Path-v0", path={"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"})
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

`docs/how-to/environments.md` describes action, observation and reward.
"""

import gymnasium

from fullpipe_gym.outcome import HISTORY, MEASURES, Outcome, Reward, reward
from fullpipe_gym.path import PathEnv
from fullpipe_gym.shared import SharedPathEnv

__all__ = ["HISTORY", "MEASURES", "Outcome", "PathEnv", "Reward", "SharedPathEnv", "reward"]

ID = "fullpipe/Path-v0"

if ID not in gymnasium.registry:
    gymnasium.register(id=ID, entry_point="fullpipe_gym.path:PathEnv")
