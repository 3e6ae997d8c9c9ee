"""Made-up cellular traces: their mean, their shape, that they repeat, and that the path takes them."""

import statistics
from pathlib import Path

import pytest

import fullpipe as fp
from conftest import SCENARIOS, command
from fullpipe._native import ScenarioError
from fullpipe.scenario import cellular
from fullpipe.scenario.scenario import from_document


def rates_mbps(trace: list[int], window_ms: int) -> list[float]:
    """The rate in each window."""
    counts = [0] * (trace[-1] // window_ms)
    for time in trace:
        counts[(time - 1) // window_ms] += 1
    return [count * cellular.OPPORTUNITY_BITS / window_ms / 1000 for count in counts]


@pytest.mark.parametrize(("mean", "mbps"), [("1 Mbit/s", 1), ("10mbit", 10), ("50 Mbit/s", 50)])
@pytest.mark.parametrize("seed", range(5))
def test_trace_has_requested_mean_and_order(mean: str, mbps: float, seed: int) -> None:
    trace = cellular.generate(mean=mean, duration="20 s", seed=seed)
    assert trace == sorted(trace)
    assert trace[0] >= 1
    assert trace[-1] == 20_000
    assert len(trace) * cellular.OPPORTUNITY_BITS / 20 / 1e6 == pytest.approx(mbps, rel=0.01)


def test_equal_seeds_repeat_others_differ() -> None:
    def one(seed: int) -> list[int]:
        return cellular.generate(mean="5 Mbit/s", duration="10 s", seed=seed)

    assert one(1) == one(1)
    assert one(1) != one(2)


def test_rates_vary_and_outages_persist() -> None:
    spreads, silent = [], 0
    for seed in range(20):
        trace = cellular.generate(mean="12 Mbit/s", duration="60 s", seed=seed)
        rates = rates_mbps(trace, 1000)
        assert max(rates) < 12 * 10
        spreads.append(statistics.stdev(rates) / statistics.mean(rates))
        silent += rates_mbps(trace, 100).count(0)
    # A log-normal rate whose logarithm deviates by 0.6 does so by 0.66 of its mean; less, where it is cut.
    assert 0.3 < statistics.mean(spreads) < 0.9
    # One second of 21 without anything, of 1200 seconds; outages are few, so with much spread.
    assert 200 < silent < 1200


def test_nearby_rates_correlate_distant_do_not() -> None:
    near, far = [], []
    for seed in range(20):
        rates = rates_mbps(cellular.generate(mean="50 Mbit/s", duration="60 s", seed=seed), 100)
        near.append(statistics.correlation(rates[:-1], rates[1:]))
        far.append(statistics.correlation(rates[:-300], rates[300:]))
    assert statistics.mean(near) > 0.7
    assert abs(statistics.mean(far)) < 0.3


def test_the_path_takes_what_is_written(in_empty_folder: Path) -> None:
    done = command(
        "deliveries", "--mean", "4mbit", "--duration", "3s", "--seed", "7", "--out", "here.deliveries"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "here.deliveries: 1000 opportunities in 3 s, 4 Mbit/s on average\n"
    path = {"deliveries": "here.deliveries", "rtt": "40 ms", "buffer": "100 packets"}
    document = {"duration": "3 s", "path": path, "compare": ["bbr1"]}
    spec = from_document(document, in_empty_folder).alternatives[0].spec
    expected = cellular.generate(mean="4 Mbit/s", duration="3 s", seed=7)
    assert spec["forward"][0]["opportunities_ms"] == expected
    assert fp.run(document).summary["goodput_bps"][0] > 1e6


@pytest.mark.parametrize(
    ("mean", "duration", "named"),
    [
        ("0 Mbit/s", "10 s", "mean"),
        ("fast", "10 s", "mean"),
        ("1 Tbit/s", "10 s", "mean"),
        ("1 kbit/s", "1 s", "mean"),
        ("10 Mbit/s", "0 s", "duration"),
        ("10 Mbit/s", "1.05 s", "duration"),
        ("10 Mbit/s", "soon", "duration"),
    ],
)
def test_a_mistake_names_its_field(mean: str, duration: str, named: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        cellular.generate(mean=mean, duration=duration)
    assert caught.value.field == named
    assert str(caught.value).startswith(f"{named}: ")


@pytest.mark.parametrize(
    ("mbit", "seconds"),
    [(2, 60), (6, 30), (12, 15)],
)
def test_shipped_traces_match_generator(mbit: int, seconds: int) -> None:
    shipped = (SCENARIOS / "deliveries" / f"lte-like-{mbit}mbit.deliveries").read_text(encoding="ascii")
    made = cellular.generate(mean=f"{mbit} Mbit/s", duration=f"{seconds} s", seed=1)
    assert shipped == cellular.text(made)
    assert len(shipped) < 100_000
