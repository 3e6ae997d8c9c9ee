"""Whole runs of NewReno (RFC 9002), CUBIC (RFC 9438) and HyStart++ (RFC 9406), alone and beside Linux's."""

from itertools import pairwise
from statistics import mean
from typing import Any

import pytest

import fullpipe as fp
from fullpipe.results.runs import Run

PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}
LONG = {"rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "1 bdp"}
LOSSY = {**PATH, "loss": "0.1 %"}


def run(path: dict[str, Any], flows: list[dict[str, Any]], duration: str = "30 s", seed: int = 1) -> Run:
    return fp.run({"name": "rfcs", "duration": duration, "path": path, "flows": flows}, seed=seed).runs[0]


def alone(controller: str, path: dict[str, Any] = PATH, duration: str = "30 s", seed: int = 1) -> Run:
    return run(path, [{"controller": controller}], duration, seed)


def teeth(controller: str) -> list[tuple[float, int, int]]:
    """When the window fell by more than a tenth, from how many segments and to how many, after the start."""
    rows = alone(controller).flow_series()["time_s", "cwnd_segments"].rows()
    falls = [(at, one, other) for (_, one), (at, other) in pairwise(rows)]
    return [(at, one, other) for at, one, other in falls if at > 4 and other < 0.9 * one]


def test_newreno_s_sawtooth_is_that_of_the_pipe() -> None:
    found = teeth("newreno")
    # The pipe and the buffer hold 100,000 bytes each: 134 segments, from which a loss takes half.
    assert {(one, other) for _, one, other in found} == {(134, 67)}
    # A round trip for each segment more, as long as 20 Mbit/s need for the window; then one until the loss is
    # known, and one of recovery.
    rounds = [max(0.04, window * 1500 * 8 / 20e6) for window in (*range(67, 134), 134, 134)]
    periods = [later - earlier for (earlier, _, _), (later, _, _) in pairwise(found)]
    assert len(periods) >= 5 and all(period == pytest.approx(sum(rounds), rel=0.02) for period in periods)


def test_cubic_gives_up_three_tenths_and_returns_along_its_curve() -> None:
    found = teeth("cubic9438")
    assert all(one in (133, 134, 135) and other in (93, 94) for _, one, other in found)
    # K = cbrt(40 / 0.4) = 4.64 s to the old maximum. After a loss just below it, fast convergence aims at
    # 0.85 of it, which takes cbrt(20 / 0.4) = 3.68 s, and the curve rises on.
    periods = [later - earlier for (earlier, _, _), (later, _, _) in pairwise(found)]
    assert len(periods) >= 4 and all(3 < period < 6 for period in periods)


@pytest.mark.parametrize("path", [PATH, LONG, LOSSY], ids=["20 Mbit/s", "100 Mbit/s", "lossy"])
@pytest.mark.parametrize(("one", "other"), [("newreno", "reno"), ("cubic9438", "cubic")])
def test_alone_they_carry_as_much_as_linux_s(one: str, other: str, path: dict[str, Any]) -> None:
    def goodput(controller: str) -> float:
        seen = [alone(controller, path, seed=seed).summary["total_goodput_bps"] for seed in (1, 2, 3)]
        return float(mean(seen))

    # Random losses leave more to chance.
    tolerance = 0.12 if path is LOSSY else 0.01
    assert goodput(one) == pytest.approx(goodput(other), rel=tolerance)


@pytest.mark.parametrize(("one", "other"), [("newreno", "reno"), ("cubic9438", "cubic")])
@pytest.mark.parametrize("path", [PATH, LOSSY], ids=["20 Mbit/s", "lossy"])
def test_beside_linux_s_they_take_about_half(one: str, other: str, path: dict[str, Any]) -> None:
    shares = []
    for seed in range(1, 7):
        flows = [{"controller": one}, {"controller": other, "start": "1 s"}]
        both = run(path, flows, "60 s", seed).summary["flows"]
        shares.append(both[0]["goodput_bps"] / (both[0]["goodput_bps"] + both[1]["goodput_bps"]))
    assert 0.45 < mean(shares) < 0.57, shares


@pytest.mark.parametrize(
    ("without", "having"),
    [("newreno", "newreno:hystartpp=1"), ("cubic9438:hystartpp=0", "cubic9438")],
    ids=["newreno", "cubic9438"],
)
def test_hystart_spares_most_of_slow_start_s_losses_and_costs_nothing(without: str, having: str) -> None:
    for path in (PATH, LONG):
        plain, gentle = (alone(name, path, "5 s") for name in (without, having))
        lost = [one.summary["flows"][0]["retransmits"] for one in (plain, gentle)]
        assert lost[1] < 0.55 * lost[0], lost
        goodputs = [one.summary["total_goodput_bps"] for one in (plain, gentle)]
        assert goodputs[1] > 0.97 * goodputs[0], goodputs


def test_without_pacing_a_shallow_buffer_ends_slow_start_early() -> None:
    shallow = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "0.2 bdp"}
    paced, bursty = (alone(f"newreno:pace={pace}", shallow, "3 s") for pace in (1, 0))
    assert paced.summary["total_goodput_bps"] > 1.5 * bursty.summary["total_goodput_bps"]
