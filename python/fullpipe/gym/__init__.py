"""Environments for learning agents: one flow (Gymnasium), or several on one path (PettingZoo).

    import gymnasium, fullpipe.gym

    env = gymnasium.make("fullpipe/Path-v0", path={"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"})
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

`docs/environments.md` describes action, observation and reward. Needs the extra `gym`:
`pip install 'gymnasium>=1.2' 'pettingzoo>=1.25'`.
"""

import gymnasium

from fullpipe.gym.outcome import HISTORY, MEASURES, Outcome, Reward, reward
from fullpipe.gym.path import PathEnv
from fullpipe.gym.shared import SharedPathEnv

__all__ = ["HISTORY", "MEASURES", "Outcome", "PathEnv", "Reward", "SharedPathEnv", "reward"]

ID = "fullpipe/Path-v0"

if ID not in gymnasium.registry:
    gymnasium.register(id=ID, entry_point="fullpipe.gym.path:PathEnv")
