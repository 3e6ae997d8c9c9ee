"""The environments for learning agents: the checks of their libraries, measures and rewards."""

import math
from collections.abc import Callable
from typing import Any

import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium")
pytest.importorskip("pettingzoo", reason="needs pettingzoo")

import numpy as np  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

import fullpipe as fp  # noqa: E402
from fullpipe_gym import HISTORY, MEASURES, Outcome, PathEnv, SharedPathEnv, reward  # noqa: E402

PATH = {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}


@pytest.mark.parametrize("action", ["rate", "window"])
def test_gymnasium_accepts_the_environment(action: str) -> None:
    env = gymnasium.make("fullpipe/Path-v0", path=PATH, action=action, duration="2 s")
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("others", [(), ("cubic",)])
def test_pettingzoo_accepts_the_environment(others: tuple[str, ...]) -> None:
    parallel_api_test(SharedPathEnv(PATH, flows=3, others=others, duration="1 s"), num_cycles=60)
    parallel_seed_test(lambda: SharedPathEnv({**PATH, "loss": "1 %"}, flows=2, duration="1 s"))


def episode(env: PathEnv, act: Callable[[PathEnv], float]) -> tuple[float, list[dict[str, Any]]]:
    """The mean reward of an episode, and its steps."""
    env.reset(seed=1)
    rewards, infos = [], []
    while True:
        _, gained, terminated, truncated, info = env.step(np.array([act(env)], dtype=np.float32))
        rewards.append(gained)
        infos.append(info)
        if terminated or truncated:
            return sum(rewards) / len(rewards), infos


def towards(rate_bps: float) -> Callable[[PathEnv], float]:
    """Acts so that the pacing rate becomes this."""

    def act(env: PathEnv) -> float:
        return float(np.log2(rate_bps / (env.episode.driven[0].pacing_rate_bps or 1.0)))

    return act


def test_full_path_empty_queue_maximizes_reward() -> None:
    env = PathEnv(PATH, duration="10 s")
    rewards = {rate: episode(env, towards(rate * 1e6))[0] for rate in (2, 5, 9, 12, 40)}
    assert max(rewards, key=lambda rate: rewards[rate]) == 9
    assert rewards[2] < rewards[5] < rewards[9]
    assert rewards[9] > 0.8
    assert rewards[40] < rewards[12] < 0.5


def test_step_info_matches_run_record() -> None:
    env = PathEnv(PATH, duration="5 s")
    _, infos = episode(env, towards(8e6))
    run = env.episode.simulation.finish()
    (flow,) = run.summary["flows"]
    # The handshake and the flight of the initial window come before the first step.
    assert sum(info["delivered_bytes"] for info in infos) == pytest.approx(flow["delivered_bytes"], rel=0.01)
    settled = infos[20:]
    assert np.mean([info["goodput_bps"] for info in settled]) == pytest.approx(8e6, rel=0.02)
    assert {info["base_rtt_ms"] for info in infos} == {40.0}
    assert settled[0]["capacity_bps"] == pytest.approx(10e6 * 1448 / 1500)


def test_window_bounds_data_in_flight() -> None:
    env = PathEnv(PATH, action="window", duration="5 s")
    # One halving, then nothing: five segments a round trip.
    first = iter([-1.0])
    _, infos = episode(env, lambda _env: next(first, 0.0))
    assert env.episode.driven[0].cwnd == 5
    # A window each round trip, which a delayed ACK (40 ms in Linux) may make longer.
    goodput = np.mean([info["goodput_bps"] for info in infos])
    assert 5 * 1448 * 8 / 0.080 <= goodput <= 5 * 1448 * 8 / 0.040


def test_path_change_updates_capacity() -> None:
    changes = [{"at": "1 s", "rate": "2 Mbit/s"}]
    env = PathEnv({**PATH, "changes": changes}, duration="3 s", step="500 ms")
    _, infos = episode(env, lambda _env: 0.0)
    shares = [info["capacity_bps"] * 1500 / 1448 / 1e6 for info in infos]
    assert shares[0] == pytest.approx(10) and shares[-1] == pytest.approx(2)


def test_observations_hide_path_and_stay_bounded() -> None:
    env = PathEnv(lambda random: {**PATH, "rate": f"{random.integers(1, 50)} Mbit/s"}, duration="1 s")
    seen = set()
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        seen.add(info["path"]["rate"])
        assert observation.shape == (HISTORY * len(MEASURES),)
        for action in (1.0, 1.0, -1.0):
            observation, _, _, _, _ = env.step(np.array([action], dtype=np.float32))
            assert env.observation_space.contains(observation)
    assert len(seen) > 5


def test_finished_flow_terminates_episode() -> None:
    env = PathEnv(PATH, traffic={"size": "100 KB"})
    env.reset(seed=1)
    for _ in range(200):
        _, _, terminated, truncated, _ = env.step(np.array([0.0], dtype=np.float32))
        if terminated or truncated:
            break
    assert terminated and not truncated
    assert env.episode.simulation.flows[0].completed


def test_agents_on_one_path_share_capacity() -> None:
    env = SharedPathEnv(PATH, flows=2, duration="5 s", reward=lambda outcome: outcome.goodput_bps)
    env.reset(seed=3)
    total, steps = dict.fromkeys(env.agents, 0.0), 0
    while env.agents:
        gains = env.step({name: np.array([0.05], dtype=np.float32) for name in env.agents})[1]
        total = {name: total[name] + gain for name, gain in gains.items()}
        steps += 1
    capacity = 10e6 * 1448 / 1500
    assert 0.5 * capacity < sum(total.values()) / steps <= 1.01 * capacity


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"action": "speed"}, "action"),
        ({"step": "0 s"}, "step"),
        ({"step": "5 parsecs"}, "step"),
        ({"path": {"rtt": "40 ms"}}, "path"),
        ({"duration": "long"}, "duration"),
        ({"path": "10 Mbit/s"}, "path"),
        ({"traffic": {"count": 2}}, "traffic"),
    ],
)
def test_mistakes_name_the_argument(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(fp.ScenarioError) as raised:
        PathEnv(**{"path": PATH, **arguments}).reset(seed=1)
    assert field in raised.value.field


def test_full_path_without_queue_rewards_one() -> None:
    best = Outcome(0.04, 9e6, 9e6, 40, 40, 40, 40, 31, 0, 9e6, 50_000, 45_000)
    assert reward(best) == 1
    assert best.observed(1448)[0] == 1


@pytest.mark.parametrize("action", [np.array([np.nan]), np.array([]), np.array([0.1, 0.2]), np.inf])
def test_an_action_is_one_finite_number(action: Any) -> None:
    env = PathEnv(PATH, duration="1 s")
    env.reset(seed=1)
    with pytest.raises(fp.ScenarioError, match="one number from -1 to 1"):
        env.step(action)
    shared = SharedPathEnv(PATH, duration="1 s")
    shared.reset(seed=1)
    with pytest.raises(fp.ScenarioError, match="one of flow_0, flow_1"):
        shared.step({"flow_9": np.array([0.0], dtype=np.float32)})


@pytest.mark.parametrize("flows", [0, -1, True, 2.5, 201, 100_000, 2**70])
def test_number_of_agents_is_bounded(flows: Any) -> None:
    with pytest.raises(fp.ScenarioError, match=r"flows: .* expected a whole number from 1 to 200"):
        SharedPathEnv(flows=flows)


@pytest.mark.parametrize("given", [math.nan, math.inf, -math.inf, None, "much", 1j, [1, 2]])
def test_non_finite_reward_is_refused(given: Any) -> None:
    for make in (PathEnv, SharedPathEnv):
        env: Any = make(reward=lambda _: given)
        env.reset(seed=1)
        action = np.zeros(1, dtype=np.float32)
        with pytest.raises(fp.ScenarioError, match=r"reward: .* expected a function whose result"):
            env.step(action if make is PathEnv else {"flow_0": action})


def test_every_observation_is_finite() -> None:
    env = PathEnv({"rate": "100 kbit/s", "rtt": "1 ms", "buffer": "3 KB", "loss": "20 %"}, duration="5 s")
    observation, _ = env.reset(seed=1)
    for _ in range(20):
        assert np.isfinite(observation).all()
        observation, reward, *_ = env.step(np.ones(1, dtype=np.float32))
        assert math.isfinite(reward)
