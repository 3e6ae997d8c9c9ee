"""Whole runs of NewReno (RFC 9002), CUBIC (RFC 9438) and HyStart++ (RFC 9406), alone and beside Linux's."""

import random
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest

import fullpipe as fp
from fullpipe.measures.run import Run

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


def test_newreno_sawtooth_matches_pipe() -> None:
    found = teeth("newreno")
    # The pipe and the buffer hold 100,000 bytes each: 134 segments, from which a loss takes half. The window
    # grows once more if a round ends before the loss is known.
    assert {(one, other) for _, one, other in found} <= {(134, 67), (135, 67)}
    # A round trip for each segment more, as long as 20 Mbit/s need for the window; then one until the loss is
    # known, and one of recovery.
    rounds = [max(0.04, window * 1500 * 8 / 20e6) for window in (*range(67, 134), 134, 134)]
    periods = [later - earlier for (earlier, _, _), (later, _, _) in pairwise(found)]
    assert len(periods) >= 5 and all(period == pytest.approx(sum(rounds), rel=0.02) for period in periods)


def test_cubic_cuts_30_percent_then_recovers() -> None:
    found = teeth("cubic9438")
    assert all(one in (133, 134, 135) and other in (93, 94) for _, one, other in found)
    # K = cbrt(40 / 0.4) = 4.64 s to the old maximum. After a loss just below it, fast convergence aims at
    # 0.85 of it, which takes cbrt(20 / 0.4) = 3.68 s, and the curve rises on.
    periods = [later - earlier for (earlier, _, _), (later, _, _) in pairwise(found)]
    assert len(periods) >= 4 and all(3 < period < 6 for period in periods)


BYTEWISE = ["newreno", "newreno:pace=0", "cubic9438", "cubic9438:pace=0"]


def limited(controller: str, flow: dict[str, Any], **path: Any) -> tuple[list[int], list[int], list[float]]:
    """Window and flight in segments, and the times in seconds, of a flow that its application limits."""
    series = run({**PATH, **path}, [{"controller": controller, **flow}]).flow_series()
    return (
        series["cwnd_segments"].to_list(),
        series["inflight_segments"].to_list(),
        series["time_s"].to_list(),
    )


@pytest.mark.parametrize("controller", BYTEWISE)
@pytest.mark.parametrize("packets", [3, 28])
def test_slow_start_stops_at_twice_flight(controller: str, packets: int) -> None:
    windows, _, _ = limited(controller, {"bursts": {"size": f"{packets * 1448} B", "every": "500 ms"}})
    # draft-ietf-ccwg-ratelimited-increase 3, and the initial window.
    assert windows[-1] <= max(2 * packets, 10)


@pytest.mark.parametrize("controller", BYTEWISE)
def test_app_limited_avoidance_keeps_its_window(controller: str) -> None:
    filling = [{"size": f"{100 * 1448} B"}] * 2
    sparing = [{"size": f"{20 * 1448} B", "pause": "40 ms"}] * 350
    drop = [{"at": "200 ms", "loss": "100 %"}, {"at": "201 ms", "loss": "0 %"}]
    windows, flights, times = limited(controller, {"transfers": filling + sparing}, changes=drop)
    later = next(index for index, at in enumerate(times) if at > 2)
    assert max(flights[later:]) <= 20 and windows[later] > 40
    assert set(windows[later:]) == {windows[later]}


def ratio(one: str, other: str, path: dict[str, Any], seeds: int) -> float:
    """The goodput of one by that of the other, where equal seeds lose the same packets."""
    pairs = [[alone(name, path, seed=seed) for name in (one, other)] for seed in range(1, seeds + 1)]
    return mean(a.summary["total_goodput_bps"] / b.summary["total_goodput_bps"] for a, b in pairs)


@pytest.mark.parametrize("path", [PATH, LONG], ids=["20 Mbit/s", "100 Mbit/s"])
@pytest.mark.parametrize(("one", "other"), [("newreno", "reno"), ("cubic9438", "cubic")])
def test_alone_they_match_linux_goodput(one: str, other: str, path: dict[str, Any]) -> None:
    assert ratio(one, other, path, 3) == pytest.approx(1, rel=0.01)


def mean_window(catches_up: bool, packets: int = 1_000_000, loss: float = 0.001) -> float:
    """Segments in flight of an AIMD with random losses: CUBIC's Reno-friendly region (RFC 9438 section 4.3).

    It grows by 0.53 segments a round trip. If it `catches_up`, it grows by a whole one from
    the window on that it had before the last loss.
    """
    draw = random.Random(1)
    window = prior = 40.0
    time = recovered_at = 0.0
    for _ in range(packets):
        time += 1 / window
        if time < recovered_at:
            continue
        if draw.random() < loss:
            prior, window = window, max(2, 0.7 * window)
            recovered_at = time + 1
        else:
            window += (1 if catches_up and window >= prior else 3 * 0.3 / 1.7) / window
    return packets / time


def test_rfc9438_cubic_beats_linux_at_loss() -> None:
    # From the window before the last loss on, RFC 9438 (section 4.3) grows as Reno does. Linux's
    # `bictcp_update` never does.
    expected = mean_window(catches_up=True) / mean_window(catches_up=False)
    assert expected == pytest.approx(1.11, abs=0.01)
    assert ratio("cubic9438", "cubic", LOSSY, 12) == pytest.approx(expected, rel=0.04)


def test_newreno_matches_linux_reno_at_loss() -> None:
    assert ratio("newreno", "reno", LOSSY, 12) == pytest.approx(1, rel=0.04)


@pytest.mark.parametrize(("one", "other"), [("newreno", "reno"), ("cubic9438", "cubic")])
@pytest.mark.parametrize("path", [PATH, LOSSY], ids=["20 Mbit/s", "lossy"])
def test_beside_linux_shares_are_about_half(one: str, other: str, path: dict[str, Any]) -> None:
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
def test_hystart_avoids_losses_without_goodput_cost(without: str, having: str) -> None:
    for path in (PATH, LONG):
        plain, gentle = (alone(name, path, "5 s") for name in (without, having))
        lost = [one.summary["flows"][0]["retransmits"] for one in (plain, gentle)]
        assert lost[1] < 0.55 * lost[0], lost
        goodputs = [one.summary["total_goodput_bps"] for one in (plain, gentle)]
        assert goodputs[1] > 0.97 * goodputs[0], goodputs


def test_shallow_unpaced_slow_start_ends_early() -> None:
    shallow = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "0.2 bdp"}
    paced, bursty = (alone(f"newreno:pace={pace}", shallow, "3 s") for pace in (1, 0))
    assert paced.summary["total_goodput_bps"] > 1.5 * bursty.summary["total_goodput_bps"]
