"""Estimates of a path, from stamps of synthetic paths whose truth is known. No network."""

import math
import random
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fullpipe._native import ScenarioError
from fullpipe.probe import page, path_file, validation
from fullpipe.probe.analysis import behaviour, kinds, rates
from fullpipe.probe.analysis.estimate import BELOW, BUCKET, FOLLOW, GENTLE, MILD, OVER, RAMP, TRAIN, estimate
from fullpipe.probe.analysis.quantity import Quantity
from fullpipe.probe.analysis.traces import Clocks, Trace
from fullpipe.probe.answer import Answer
from fullpipe.probe.control import Refused
from fullpipe.probe.flows import TcpFlow
from fullpipe.probe.stamps import LOST, Measured, Stream
from fullpipe.scenario import scenario

# The far clock: nanoseconds ahead, and how much faster.
AHEAD_NS, DRIFT = 7_000_000_000_123, 40e-6
BEGIN_NS = 1_700_000_000_000_000_000
MTU = 1500


@dataclass
class Pipe:
    """A path in one direction: a queue, and random loss behind it."""

    rate: float = 20e6
    delay_s: float = 0.020
    buffer: float = 100_000
    loss: float = 0.0
    # A thin flow does not wait.
    fair: bool = False
    # A policer in place of the queue: rate and bucket.
    policer: tuple[float, float] | None = None
    # The rate at a time.
    changing: Callable[[float], float] | None = None
    chance: random.Random = field(default_factory=lambda: random.Random(3))
    free_at: float = 0.0
    tokens: float = 0.0
    filled_at: float = 0.0

    def send(self, time: float, size: int, flow: int) -> float | None:
        """When a packet arrives; None if it is lost."""
        if self.policer is not None:
            rate, depth = self.policer
            self.tokens = min(depth, self.tokens + rate / 8 * (time - self.filled_at))
            self.filled_at = time
            if self.tokens < size:
                return None
            self.tokens -= size
        rate = self.rate if self.changing is None else self.changing(time)
        waits = max(0.0, self.free_at - time)
        if waits * rate / 8 + size > self.buffer:
            return None
        if self.fair and flow == 1:
            waits = 0.0
        else:
            self.free_at = max(self.free_at, time) + size * 8 / rate
        if self.chance.random() < self.loss:
            return None
        return time + waits + size * 8 / rate + self.delay_s


class World:
    """Stages over two pipes."""

    def __init__(self, forward: Pipe, back: Pipe | None = None) -> None:
        self.forward, self.back = forward, back or Pipe()
        self.now = 0.0
        self.found = Measured()
        for _ in range(80):
            self.echo()
        self.found.idle = 80

    def far(self, time: float) -> int:
        return BEGIN_NS + AHEAD_NS + int(time * (1 + DRIFT) * 1e9)

    def near(self, time: float) -> int:
        return BEGIN_NS + int(time * 1e9)

    def echo(self) -> None:
        there = self.now + self.forward.delay_s + 76 * 8 / self.forward.rate
        back = there + 0.0001 + self.back.delay_s + 76 * 8 / self.back.rate
        self.found.echoes.append(
            (self.near(self.now), self.far(there), self.far(there + 0.0001), self.near(back))
        )
        self.now += 0.01

    def stage(self, name: str, rate: float, seconds: float, size: int = MTU, *, thin: bool = False) -> None:
        packets = [(at * size * 8 / rate, size, 0) for at in range(max(2, int(rate * seconds / 8 / size)))]
        if thin:
            packets += [(at * 0.01 + 0.0003, 100, 1) for at in range(int(seconds / 0.01))]
        packets.sort()
        sent, arrived = array("q"), array("q")
        for at, bytes_, flow in packets:
            came = self.forward.send(self.now + at, bytes_, flow)
            sent.append(self.near(self.now + at))
            arrived.append(LOST if came is None else self.far(came))
        flows = array("B", [flow for _, _, flow in packets])
        ecn = array("B", [at % 2 * 2 if flow == 0 else at % 2 for at, (_, _, flow) in enumerate(packets)])
        sizes = array("H", [bytes_ for _, bytes_, _ in packets])
        marks = array("B", [0]) * len(packets)
        self.found.forward[name] = Stream(sent, sizes, flows, ecn, arrived, marks)
        self.now += seconds + 1.0
        for _ in range(8):
            self.echo()

    def all(self, rate: float, *, long: float = 3.0) -> Measured:
        self.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
        self.stage(RAMP, 2 * rate, 0.05)
        self.stage(GENTLE, 1.1 * rate, long, thin=True)
        self.stage(MILD, 1.015 * rate, long, thin=True)
        self.stage(BELOW, 0.55 * rate, 4.0, 200)
        self.now += 2
        self.stage(OVER, 2 * rate, 1.0)
        return self.found


def covers(quantity: Quantity, truth: float, within: float) -> bool:
    assert quantity.value is not None, quantity.why
    return quantity.covers(truth) and abs(quantity.value - truth) <= within


def test_a_tail_drop_queue_is_found_by_another_clock() -> None:
    found = estimate(World(Pipe(loss=0.005)).all(20e6))
    way = found.forward
    assert abs(found.drift_ppm - 40) < 1
    assert covers(found.rtt_ms, 40, 0.2)
    assert covers(way.rate_bps, 20e6, 0.2e6)
    assert covers(way.buffer_bytes, 100_000, 3000)
    assert covers(way.loss, 0.005, 0.0015)
    assert way.discipline == kinds.TAIL
    assert way.policer_bps.value is None and "binds" in way.policer_bps.why


def test_a_policer_is_named_with_rate_and_bucket() -> None:
    world = World(Pipe(rate=100e6, policer=(10e6, 80_000), tokens=80_000))
    world.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
    world.stage(RAMP, 50e6, 0.05)
    world.stage(GENTLE, 11e6, 3.0, thin=True)
    world.stage(BELOW, 5.5e6, 4.0, 200)
    world.stage(OVER, 100e6, 1.0)
    world.now += 2
    world.stage(BUCKET, 85e6, 1.0)
    way = estimate(world.found).forward
    assert way.discipline == kinds.POLICER
    assert covers(way.policer_bps, 10e6, 0.2e6)
    assert covers(way.bucket_bytes, 80_000, 8000)
    assert way.buffer_bytes.value is None
    assert any(one.name == "policer" for one in path_file.keys(estimate(world.found), "forward"))


def test_flows_with_queues_of_their_own_are_told_apart() -> None:
    way = estimate(World(Pipe(fair=True)).all(20e6)).forward
    assert way.discipline == kinds.FAIR
    assert way.buffer_bytes.value is None


def test_a_changing_rate_is_no_one_rate_but_pieces() -> None:
    def changing(time: float) -> float:
        return 20e6 if time % 1.0 < 0.5 else 8e6

    world = World(Pipe(changing=changing))
    world.all(15e6)
    world.stage(FOLLOW, 30e6, 3.0)
    way = estimate(world.found).forward
    assert way.rate_bps.value is None and way.buffer_bytes.value is None and way.discipline is None
    assert {round(bps / 1e6) for begin, end, bps in way.pieces if end - begin > 0.3} == {8, 20}
    trace = path_file.deliveries(way.pieces)
    times = [int(line) for line in trace.split()]
    assert times == sorted(times) and len(times) > 1000


def test_a_rate_that_rises_in_a_stage_is_no_policer_and_no_rate() -> None:
    """The queue is empty for more than half of a stage that drops in its first part."""
    world = World(Pipe(rate=10e6))
    rises = world.now + 4.5
    world.forward.changing = lambda time: 10e6 if time < rises else 20e6
    found = estimate(world.all(10e6)).forward
    assert found.discipline is None and found.rate_bps.value is None
    assert found.policer_bps.value is None


def test_a_path_that_carries_all_is_at_least_as_fast(tmp_path: Path) -> None:
    found = estimate(World(Pipe(rate=10e9, buffer=1e9)).all(20e6))
    assert found.forward.rate_bps.value is None and "at least 40" in found.forward.rate_bps.why
    text = path_file.toml(found, "there")
    assert "assumed: all that was sent arrived" in text


def test_a_flow_beside_its_simulation_names_what_misses(tmp_path: Path) -> None:
    found = estimate(World(Pipe()).all(20e6))
    path_file.write(found, "there", tmp_path)
    like = TcpFlow("cubic", "forward", 3.0, 18.5e6, 65.0, 20)
    (checked,), notes = validation.validate(found, [like], MTU, tmp_path)
    assert not notes and checked.rtt_ms.mean == pytest.approx(65, abs=15)
    slow = replace(like, goodput_bps=2e6, rtt_ms=checked.rtt_ms.mean, retransmissions=8)
    (checked,), _ = validation.validate(found, [slow], MTU, tmp_path)
    assert checked.goodput_mbps.off and "rate" in checked.misses
    late = replace(like, goodput_bps=checked.goodput_mbps.mean * 1e6, rtt_ms=200.0)
    (checked,), _ = validation.validate(found, [late], MTU, tmp_path)
    assert "queue" in checked.misses


def test_the_answer_says_what_was_not_measurable(tmp_path: Path) -> None:
    found = World(Pipe(loss=0.01)).all(20e6)
    answer = Answer.of("there", found, tmp_path)
    assert answer.sentence.startswith("To there: 2")
    assert any(line.startswith("policer, bucket:") for line in answer.not_measurable)
    assert any("back:" in line for line in answer.not_measurable)
    answer.write(tmp_path)
    text = page.write(answer, tmp_path).read_text()
    assert "Not measurable" in text and text.count("<figure") == 2


def test_codels_law_is_recognised_and_chance_is_not() -> None:
    # Gaps in milliseconds of Linux's CoDel at 100 Mbit/s.
    gaps = [100.0, 50.0, 56.3, 48.8, 44.1, 40.5, 37.5]
    times = [sum(gaps[:count]) / 1e3 for count in range(len(gaps) + 1)]
    law = kinds._follows(times, 0.001)
    assert law.fits and abs(law.interval_s - 0.1) < 0.005
    chance = random.Random(4)
    assert not any(
        kinds._follows(sorted(chance.uniform(0, 0.6) for _ in range(15)), 0.001).fits for _ in range(5)
    )


def trace(arrivals: list[float | None], gap: float = 0.001) -> Trace:
    count = len(arrivals)
    there = [math.nan if one is None else one for one in arrivals]
    return Trace(
        [gap * at for at in range(count)], there, [200] * count, [0] * count, [0] * count, [0] * count
    )


def test_reordering_and_clumps_are_counted() -> None:
    late = trace([0.02 + 0.001 * at + (0.005 if at % 100 == 50 else 0) for at in range(1000)])
    assert covers(behaviour.reordering(late), 0.01, 0.002)
    clumps = trace([0.02 + 0.006 * math.ceil(at / 6) for at in range(1000)])
    assert covers(behaviour.aggregation_ms(clumps), 6.0, 0.01)
    assert behaviour.aggregation_ms(late).value is None


def test_few_losses_say_that_they_are_few() -> None:
    found = behaviour.loss(trace([None if at % 200 == 7 else 0.02 + 0.001 * at for at in range(1000)]))
    assert found.value == 0.005 and "only 5" in found.why


def test_a_queue_that_never_overflows_has_no_size() -> None:
    world = World(Pipe(buffer=1e9))
    found = estimate(world.all(20e6)).forward
    assert found.buffer_bytes.value is None and "did not overflow" in found.buffer_bytes.why
    assert found.discipline is None


def test_others_standing_queue_hides_base_rtt_and_buffer() -> None:
    world = World(Pipe())
    world.all(20e6)
    # A queue that fills and empties slowly, as behind others' window.
    world.found.echoes = [
        (
            sent,
            came + int(15e6 * (1 + math.sin(at / 9))),
            answered + int(15e6 * (1 + math.sin(at / 9))),
            back + int(15e6 * (1 + math.sin(at / 9))),
        )
        for at, (sent, came, answered, back) in enumerate(world.found.echoes)
    ]
    found = estimate(world.found)
    assert found.rtt_ms.value is None and "others" in found.rtt_ms.why
    assert found.forward.buffer_bytes.value is None


def test_nothing_measured_is_not_measurable() -> None:
    found = estimate(Measured())
    assert found.rtt_ms.value is None and found.forward.rate_bps.value is None
    assert not path_file.usable(found)
    world = World(Pipe())
    assert estimate(world.found).forward.rate_bps.why


@pytest.mark.parametrize("seed", range(5))
def test_no_stamps_crash_the_analysis(seed: int) -> None:
    """A peer may lie about every stamp."""
    chance = random.Random(seed)
    found = World(Pipe()).all(20e6, long=0.5)
    for name, one in found.forward.items():
        lies = [chance.choice([LOST, one.sent_ns[0] + chance.randrange(10**10)]) for _ in one.sent_ns]
        found.forward[name] = Stream(one.sent_ns, one.sizes, one.flows, one.ecn, array("q", lies), one.marks)
    estimate(found).to_json()


def test_columns_that_cannot_be_are_refused() -> None:
    sent = array("q", [5, 6]).tobytes() + array("H", [100, 100]).tobytes() + bytes(4)
    good = array("q", [9]).tobytes() + array("I", [1]).tobytes() + b"\x03"
    assert list(Stream.of(sent, good).arrived_ns) == [LOST, 9]
    strange = array("q", [9]).tobytes() + array("I", [7]).tobytes() + b"\x03"
    assert list(Stream.of(sent, strange).arrived_ns) == [LOST, LOST]
    with pytest.raises(Refused, match="not of packets"):
        Stream.of(sent, good + b"x")
    far = array("q", [9, 1 << 62]).tobytes() + array("I", [0, 1]).tobytes() + bytes(2)
    with pytest.raises(Refused, match="cannot be"):
        Stream.of(sent, far)


def test_what_is_written_is_read_and_is_a_scenario(tmp_path: Path) -> None:
    found = World(Pipe(loss=0.01)).all(20e6)
    found.write(tmp_path)
    again = Measured.read(tmp_path)
    assert estimate(again).to_json() == estimate(found).to_json()
    written = path_file.write(estimate(found), "there", tmp_path)
    assert written is not None
    loaded = scenario.from_file(written)
    assert loaded.document["path"]["rtt"].startswith("40.")
    (tmp_path / "probe.json").write_text("{}")
    with pytest.raises(ScenarioError, match="measure again"):
        Measured.read(tmp_path)


def test_the_rate_of_a_train_is_that_of_the_link() -> None:
    world = World(Pipe())
    world.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
    clocks = Clocks(world.found.echoes)
    assert rates.train_rate(clocks.trace(world.found.forward[TRAIN])) == pytest.approx(20e6, rel=0.001)
