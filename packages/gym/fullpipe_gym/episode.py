"""One simulated run whose flows are driven by agents: they set rate or window, and get what came of it."""

import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fullpipe._native as _native
from fullpipe.errors import mistake
from fullpipe.scenario import path_facts
from fullpipe.scenario.controllers import Controller
from fullpipe.scenario.path_facts import Steps
from fullpipe.scenario.path_fields import Amount
from fullpipe.scenario.scenario import from_document
from fullpipe.simulation import Simulation
from fullpipe_gym.outcome import HISTORY, Outcome, between, nothing
from fullpipe_gym.settings import Settings

# RFC 6928; the first rate is this window over the RTT of the handshake.
INITIAL_CWND = 10
# An agent's rate is at most this many times the path's capacity, its window this many times the BDP, which
# bounds the work of a step.
MOST_TIMES = 8.0
LEAST_RATE_BPS = 64e3
LEAST_CWND = 2.0
# With the action "rate", the window holds what the rate sends in this many smoothed RTTs.
WINDOW_RTTS = 2.0
# The shortest step by default, for paths whose RTT is next to nothing.
_LEAST_STEP_S = 0.01
# Nobody waits longer for a handshake than this many steps: then the first step begins without an RTT.
_HANDSHAKE_STEPS = 100


class Driven(Controller):
    """The controller of an agent's flow. Its limits stay as they are between two steps."""

    paced = True

    def __init__(self, place: "list[Driven]") -> None:
        self.cwnd: float = INITIAL_CWND
        # Without a rate of its own it is paced by 1.2 windows a round trip, and not by 2 as in slow start.
        self.ssthresh: float | None = 0
        self.pacing_rate_bps: float | None = None
        self.mss = 1448
        place.append(self)

    def start(self, config: "_native.Config", connection: "_native.Connection") -> None:
        """Learns the segment size."""
        self.mss = config.mss

    def on_ack(self, ack: "_native.Ack") -> None:
        """Does nothing. After an event, the limits are read again, and the agent may have changed them."""


class Episode:
    """A run of `agents` driven flows, which come first, and of other flows beside them.

    `random` draws the path and then the run's seed; `options` are those of `reset`.
    """

    def __init__(
        self,
        settings: Settings,
        random: np.random.Generator,
        options: Mapping[str, Any] | None,
        *,
        agents: int = 1,
    ) -> None:
        path, traffic = settings.draw(random, options), settings.traffic
        if not isinstance(path, Mapping):
            raise mistake("path", path, "the path table of a scenario", 'e.g. {"rate": "10 Mbit/s", ...}')
        if taken := sorted({"controller", "count", "label"} & set(traffic)):
            raise mistake("traffic", taken[0], "what a flow sends, and when", "leave it out")
        place: list[Driven] = []
        driven = [
            {**traffic, "label": f"flow_{number}", "controller": Driven.using(place=place)}
            for number in range(agents)
        ]
        loaded = from_document(
            {
                "name": "environment",
                "duration": settings.duration,
                "path": dict(path),
                "flows": [*driven, *({"controller": other} for other in settings.others)],
            }
        )
        (alternative,) = loaded.alternatives
        facts = path_facts.of(alternative)
        self._capacity = facts.goodput_mbps()
        if self._capacity is None:
            raise mistake("path", sorted(path), "a path with a rate", 'e.g. {"rate": "10 Mbit/s", ...}')
        self._base_rtt = [facts.base_rtt_ms(f"flow_{number}") for number in range(agents)]
        self._bdp_bytes = max((value for _, value in facts.bdp_bytes() or [(0, 0.0)]), default=0.0)
        self._action = settings.action
        self._step_s = _step_s(settings.step, max(_most(one) for one in self._base_rtt) / 1e3)
        self.path = dict(path)
        self.simulation = Simulation(alternative, seed=int(random.integers(2**63)))
        self.driven = place
        self._history = [deque([nothing()] * HISTORY, maxlen=HISTORY) for _ in range(agents)]
        self._best_bps = [0.0] * agents
        self._begin()

    @property
    def over(self) -> bool:
        """Whether the run has reached its end."""
        return not self.simulation.running

    def ended(self, agent: int) -> bool:
        """Whether the flow of an agent has completed what it had to send."""
        return self.simulation.flows[agent].ended_s is not None

    def observation(self, agent: int) -> NDArray[np.float32]:
        """The last steps of an agent's flow, one after the other, the latest last."""
        return np.concatenate(list(self._history[agent]))

    def step(self, actions: Sequence[float | None]) -> list[Outcome]:
        """Applies an action for each agent (None keeps what it set before), and runs a step."""
        for agent, action in enumerate(actions):
            if action is not None:
                self._apply(agent, action)
        before = [self.simulation.flows[agent] for agent in range(len(self.driven))]
        began_s = self.simulation.now
        self.simulation.advance(self._step_s)
        now_s = self.simulation.now
        outcomes = []
        for agent, flow in enumerate(before):
            outcome = between(
                flow,
                self.simulation.flows[agent],
                duration_s=now_s - began_s,
                capacity_bps=1e6 * _mean(self._capacity or [], began_s, now_s),
                base_rtt_ms=_at(self._base_rtt[agent], now_s),
                best_bps=self._best_bps[agent],
                window_bytes=self._window_bytes(agent),
                mss=self.driven[agent].mss,
            )
            self._best_bps[agent] = outcome.best_bps
            self._history[agent].append(outcome.observed(self.driven[agent].mss))
            outcomes.append(outcome)
        return outcomes

    def _begin(self) -> None:
        """Runs until every agent's flow is connected, and sets the first rates."""
        for _ in range(_HANDSHAKE_STEPS):
            if self.over or all(self.simulation.flows[one].connected for one in range(len(self.driven))):
                break
            self.simulation.advance(self._step_s)
        if self._action == "rate":
            for agent, one in enumerate(self.driven):
                self._set_rate(agent, INITIAL_CWND * one.mss * 8 / self._rtt_s(agent))

    def _apply(self, agent: int, action: float) -> None:
        factor = 2.0 ** min(1.0, max(-1.0, action))
        one = self.driven[agent]
        if self._action == "rate":
            self._set_rate(agent, (one.pacing_rate_bps or LEAST_RATE_BPS) * factor)
        else:
            most = MOST_TIMES * max(INITIAL_CWND, self._bdp_bytes / one.mss)
            one.cwnd = min(most, max(LEAST_CWND, one.cwnd * factor))

    def _set_rate(self, agent: int, rate_bps: float) -> None:
        one = self.driven[agent]
        most = MOST_TIMES * 1e6 * _most(self._capacity)
        one.pacing_rate_bps = min(most, max(LEAST_RATE_BPS, rate_bps))
        one.cwnd = max(4.0, WINDOW_RTTS * one.pacing_rate_bps * self._rtt_s(agent) / 8 / one.mss)

    def _window_bytes(self, agent: int) -> float:
        one = self.driven[agent]
        if self._action == "rate":
            return (one.pacing_rate_bps or 0.0) / 8 * self._rtt_s(agent)
        return one.cwnd * one.mss

    def _rtt_s(self, agent: int) -> float:
        rtt_ms = self.simulation.flows[agent].rtt_ms
        return max(1e-6, (rtt_ms if rtt_ms is not None else _at(self._base_rtt[agent], 0.0)) / 1e3)


def number(action: Any) -> float:
    """The number of an action. Raises `ScenarioError` unless it is one finite number."""
    values = np.asarray(action, dtype=np.float64).reshape(-1)
    if values.size != 1 or not math.isfinite(values[0]):
        raise mistake("action", action, "one number from -1 to 1", "see the action space")
    return float(values[0])


def _step_s(step: Amount | None, base_rtt_s: float) -> float:
    if step is None:
        return max(_LEAST_STEP_S, base_rtt_s)
    # The scenario's own reader knows the units and their limits.
    document = {
        "duration": step,
        "path": {"rate": "1 Mbit/s", "rtt": "100 ms"},
        "flows": [{"controller": "reno"}],
    }
    return from_document(document, parameters={"duration": "step"}).alternatives[0].duration_s


def _at(steps: Steps | None, now_s: float) -> float:
    """The value at a time; zero without values."""
    return next((value for at_s, value in reversed(steps or []) if at_s <= now_s), 0.0)


def _most(steps: Steps | None) -> float:
    return max((value for _, value in steps or []), default=0.0)


def _mean(steps: Steps, from_s: float, to_s: float) -> float:
    """The mean over an interval of time."""
    if to_s <= from_s:
        return _at(steps, from_s)
    edges = [from_s, *(at_s for at_s, _ in steps if from_s < at_s < to_s), to_s]
    area = (_at(steps, start) * (end - start) for start, end in itertools.pairwise(edges))
    return math.fsum(area) / (to_s - from_s)
