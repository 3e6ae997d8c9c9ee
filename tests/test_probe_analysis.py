"""Estimates of a path, from stamps of synthetic paths whose truth is known. No network."""

import math
import random
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fullpipe._native import ScenarioError
from fullpipe.probe import page, path_file, stages, validation
from fullpipe.probe.analysis import behaviour, kinds, rates, traces
from fullpipe.probe.analysis.estimate import (
    BELOW,
    FOLLOW,
    GENTLE,
    MILD,
    OVER,
    RAMP,
    TRAIN,
    Estimates,
    estimate,
)
from fullpipe.probe.analysis.quantity import Quantity
from fullpipe.probe.analysis.traces import Clocks, Trace
from fullpipe.probe.answer import Answer
from fullpipe.probe.client import Client, Piece, Rule
from fullpipe.probe.control import Limits, Refused
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
    # How many packets are lost at once, in the mean.
    burst: float = 1.0
    # What the link needs for each packet, beside its bits.
    frame_s: float = 0.0
    # A token bucket: a small packet passes at once.
    bucket: bool = False
    # The part of the rate that others send, in packets at even times.
    others: float = 0.0
    others_at: float = 0.0
    # A thin flow does not wait.
    fair: bool = False
    # A policer in place of the queue: rate and bucket.
    policer: tuple[float, float] | None = None
    # The rate at a time.
    changing: Callable[[float], float] | None = None
    chance: random.Random = field(default_factory=lambda: random.Random(3))
    losing: bool = False
    free_at: float = 0.0
    tokens: float = 0.0
    filled_at: float = 0.0

    def send(self, time: float, size: int, flow: int) -> float | None:
        """When a packet arrives; None if it is lost."""
        while self.others and self.others_at < time:
            waits = max(0.0, self.free_at - self.others_at)
            if waits * self.rate / 8 + 1500 <= self.buffer:
                self.free_at = max(self.free_at, self.others_at) + 12_000 / self.rate
            self.others_at += 12_000 / self.rate / self.others
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
            self.free_at = max(self.free_at, time) + size * 8 / rate + self.frame_s
        # Gilbert's two states: from the good one into the bad one as often as bursts begin, and back.
        begins = self.loss / (1 - self.loss) / self.burst if self.burst > 1 else self.loss
        self.losing = self.chance.random() < (
            1 - 1 / self.burst if self.losing and self.burst > 1 else begins
        )
        if self.losing:
            return None
        return time + waits + size * 8 / rate + self.frame_s + self.delay_s

    def echo_s(self, size: int) -> float:
        """How long an echo takes on an idle path."""
        return self.delay_s + (0.0 if self.bucket else size * 8 / self.rate)


@dataclass
class Watch:
    """When a stage ends, as `rule.rs` of the crate fullpipe-probe has it."""

    rule: Rule
    stops: bool = False
    seen: deque[tuple[float, int, int]] = field(default_factory=deque)
    fastest: float = math.inf
    since: float | None = None

    def see(self, at: float, count: int, sent: int, late_s: float) -> None:
        """Takes a report: how many had come of how many sent, and how late the last was."""
        while len(self.seen) > 2 and self.seen[1][0] < at - 0.15:
            self.seen.popleft()
        self.seen.append((at, count, sent))
        self.fastest = min(self.fastest, late_s)
        kind, limit, linger_s = self.rule
        match kind:
            case "full":
                _, before, of = self.seen[max(0, len(self.seen) - 3)]
                part = sent - of >= 10 and (sent - of - count + before) * 5 > sent - of
                self.stops |= late_s - self.fastest > limit or part
            case "overflow":
                _, before, of = self.seen[0]
                over = sent - of >= 10 and sent - of - count + before > limit * (sent - of)
                self.since = (at if self.since is None else self.since) if over else None
                self.stops |= self.since is not None and at - self.since > linger_s
            case "missing":
                self.stops |= sent - count > limit


class World:
    """Stages over two pipes."""

    def __init__(
        self,
        forward: Pipe,
        back: Pipe | None = None,
        warp: Callable[[float], float] = lambda _time: 0.0,
        echo_bytes: int = 76,
    ) -> None:
        """`warp`: by how many seconds the far clock is wrong besides, at a time."""
        self.forward, self.back, self.warp = forward, back or Pipe(), warp
        self.now = 0.0
        self.found = Measured(echo_bytes=echo_bytes)
        for _ in range(80):
            self.echo()
        self.found.idle = 80

    def far(self, time: float) -> int:
        return BEGIN_NS + AHEAD_NS + int((time * (1 + DRIFT) + self.warp(time)) * 1e9)

    def near(self, time: float) -> int:
        return BEGIN_NS + int(time * 1e9)

    def echo(self) -> None:
        there = self.now + self.forward.echo_s(self.found.echo_bytes)
        back = there + 0.0001 + self.back.echo_s(self.found.echo_bytes)
        self.found.echoes.append(
            (self.near(self.now), self.far(there), self.far(there + 0.0001), self.near(back))
        )
        self.now += 0.01

    def stage(self, name: str, rate: float, seconds: float, size: int = MTU, *, thin: bool = False) -> None:
        packets = [(at * size * 8 / rate, size, 0) for at in range(max(2, int(rate * seconds / 8 / size)))]
        if thin:
            packets += [(at * 0.01 + 0.0003, 100, 1) for at in range(int(seconds / 0.01))]
        self.send(name, sorted(packets))
        self.now += seconds + 1.0
        for _ in range(8):
            self.echo()

    def send(
        self, name: str, packets: list[tuple[float, int, int]], rule: Rule = ("whole", 0.0, 0.0)
    ) -> float:
        """Sends packets until about where a rule ends them; returns how long that was."""
        sent, arrived = array("q"), array("q")
        watch, reports, came_so_far, reported = (
            Watch(rule),
            deque[tuple[float, int, int, float]](),
            0,
            -math.inf,
        )
        for number, (at, bytes_, flow) in enumerate(packets):
            while reports and reports[0][0] <= at:
                watch.see(*reports.popleft())
            if watch.stops:
                packets = packets[:number]
                break
            came = self.forward.send(self.now + at, bytes_, flow)
            sent.append(self.near(self.now + at))
            arrived.append(LOST if came is None else self.far(came))
            if came is not None:
                came_so_far += 1
                if came - reported >= 0.01:
                    reported = came
                    late_s = came - self.now - at
                    reports.append((came - self.now + self.back.delay_s, came_so_far, number + 1, late_s))
        flows = array("B", [flow for _, _, flow in packets])
        ecn = array("B", [at % 2 * 2 if flow == 0 else at % 2 for at, (_, _, flow) in enumerate(packets)])
        sizes = array("H", [bytes_ for _, bytes_, _ in packets])
        marks = array("B", [0]) * len(packets)
        self.found.forward[name] = Stream(sent, sizes, flows, ecn, arrived, marks)
        return packets[-1][0]

    def all(self, rate: float, *, long: float = 3.0) -> Measured:
        self.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
        self.stage(RAMP, 2 * rate, 0.05)
        self.stage(GENTLE, 1.1 * rate, long, thin=True)
        self.stage(MILD, 1.015 * rate, long, thin=True)
        self.stage(BELOW, 0.55 * rate, 4.0, 200)
        self.now += 2
        self.stage(OVER, 2 * rate, 1.0)
        return self.found


class Synthetic(Client):
    """A client whose path is a world: no network, and no time but the world's."""

    def __init__(self, world: World, limits: Limits) -> None:
        self.world, self.found, self.limits, self.rtt_s = world, world.found, limits, 0.04
        self.fastest = {"forward": limits.rate_bps, "back": limits.rate_bps}
        self.sent_bytes = 0
        # At which stage the other end hangs up.
        self.refused = ""

    @property
    def seconds(self) -> float:
        return self.world.now

    @property
    def bytes(self) -> int:
        return self.sent_bytes

    def echo(self, count: int, gap_s: float) -> list[float]:
        for _ in range(count):
            self.world.echo()
        return []

    def find_mtu(self) -> None:
        pass

    def bytes_left(self, way: str) -> int:
        return self.limits.bytes - self.sent_bytes

    def drain(self) -> None:
        self.world.now += 0.5
        for _ in range(8):
            self.world.echo()

    def forward(
        self, name: str, pieces: Sequence[Piece], rule: Rule = ("whole", 0.0, 0.0), *, again: bool = True
    ) -> Stream:
        if name == self.refused:
            raise Refused("the other end has hung up")
        packets: list[tuple[float, int, int]] = []
        begun = 0.0
        for rate, count, size, _, thin_ns in pieces:
            packets += [(begun + at * size * 8 / rate, size, 0) for at in range(count)]
            seconds = count * size * 8 / rate
            if thin_ns:
                packets += [
                    (begun + at * thin_ns / 1e9, 100, 1) for at in range(int(seconds * 1e9 / thin_ns))
                ]
            begun += seconds
        self.world.now += self.world.send(name, sorted(packets), rule)
        self.drain()
        made = self.found.forward[name]
        self.sent_bytes += made.bytes
        return made


def measured(pipe: Pipe, limits: Limits, patch: pytest.MonkeyPatch) -> Measured:
    """All stages of the way there."""
    client = Synthetic(World(pipe), limits)

    def sleep(seconds: float) -> None:
        client.world.now += seconds

    patch.setattr(stages.time, "sleep", sleep)
    stages._Way(client, "forward", lambda _line: None).run(short=False)
    return client.found


@pytest.mark.parametrize(("bytes_", "times"), [(1_000_000, 2), (150_000, 1)])
def test_a_late_stage_is_repeated_only_with_bytes_to_spare(bytes_: int, times: int) -> None:
    """A stage of 100 KB; what follows needs some, too."""

    class Late(Synthetic):
        def bytes_left(self, way: str) -> int:
            return self.limits.bytes

        def _forward(self, pieces: Sequence[Piece], rule: Rule) -> Stream:
            made = Synthetic.forward(self, TRAIN, pieces, rule)
            made.late_s = 0.05
            return made

    client = Late(World(Pipe()), Limits(bytes_, 1e9, 60))
    client._stage("forward", TRAIN, [(10e6, 100, 1000, False, 0)], ("whole", 0.0, 0.0))
    assert client.sent_bytes == 100_000 * times
    assert len(client.found.notes) == times


@pytest.mark.parametrize("stage", [TRAIN, RAMP, MILD, BELOW, OVER])
def test_a_late_refusal_keeps_what_was_measured(
    stage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = Synthetic(World(Pipe(rate=5e6)), Limits(200_000_000, 1e9, 60))
    client.refused = stage
    monkeypatch.setattr(stages.time, "sleep", lambda _seconds: None)
    if stage in (TRAIN, RAMP):
        with pytest.raises(Refused):
            stages.measure(client, stages.Plan())
        return
    stages.measure(client, stages.Plan())
    assert client.found.notes == ["the measurement ended early: the other end has hung up"]
    way = Answer.of("there", client.found, tmp_path).estimates.forward
    assert covers(way.rate_bps, 5e6, 0.05e6)
    assert (tmp_path / path_file.PATH).exists()


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


class Halting(Pipe):
    """A path to a host that is kept from looking for packets for up to so long."""

    away_s, looks = 0.0, 0.0

    def send(self, time: float, size: int, flow: int) -> float | None:
        """When the host sees a packet."""
        came = super().send(time, size, flow)
        if came is None or not self.away_s:
            return came
        if came > self.looks:
            self.looks = came + self.chance.uniform(0.0, self.away_s)
        return self.looks


@pytest.mark.parametrize("away_s", [0.001, 0.002, 0.004, 0.006])
def test_a_busy_host_makes_no_queue_of_a_policer(away_s: float) -> None:
    pipe = Halting(rate=50e6, policer=(10e6, 60_000), tokens=60_000)
    world = World(pipe)
    world.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
    world.stage(BELOW, 5.5e6, 4.0, 200)
    # From here on, it is busy.
    pipe.away_s = away_s
    world.stage(GENTLE, 11e6, 3.0, thin=True)
    world.stage(MILD, 10.15e6, 3.0, thin=True)
    world.stage(OVER, 20e6, 1.0)
    way = estimate(world.found).forward
    assert way.buffer_bytes.value is None
    if way.discipline is None:
        assert "by a policer, or a queue" in way.why_no_discipline or "rate changes" in way.why_no_discipline
    else:
        assert way.discipline == kinds.POLICER


def test_a_policer_is_named_with_rate_and_bucket() -> None:
    world = World(Pipe(rate=100e6, policer=(10e6, 80_000), tokens=80_000))
    world.stage(TRAIN, 1e9, 64 * 12000 / 1e9)
    world.stage(RAMP, 50e6, 0.05)
    world.stage(GENTLE, 11e6, 3.0, thin=True)
    world.stage(BELOW, 5.5e6, 4.0, 200)
    world.now += 2
    world.stage(OVER, 85e6, 1.0)
    way = estimate(world.found).forward
    assert way.discipline == kinds.POLICER
    assert covers(way.policer_bps, 10e6, 0.2e6)
    assert covers(way.bucket_bytes, 80_000, 8000)
    assert way.buffer_bytes.value is None
    assert any(one.name == "policer" for one in path_file.keys(estimate(world.found), "forward"))


@pytest.mark.parametrize(
    ("link", "policer", "loss"),
    [
        # A full bucket lets the whole of the gentle stage pass, or fills the link's queue in the overload.
        (1.16e6, (447e3, 325e3), 0.0),
        (0.82e6, (409e3, 189e3), 0.001),
        # What comes into it between two stages is more than a gentle stage takes out.
        (2.6e6, (637e3, 56e3), 0.0),
        (5.93e6, (1.913e6, 131e3), 0.0),
        (1.57e6, (399e3, 47e3), 0.015),
        # The overload does not empty it: the gentle stage alone has shown it.
        (1.12e6, (509e3, 390e3), 0.005),
    ],
)
def test_a_slow_policer_is_found_in_half_a_minute(
    link: float, policer: tuple[float, float], loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate, bucket = policer
    pipe = Pipe(rate=link, policer=policer, tokens=bucket, buffer=8000, loss=loss)
    way = estimate(measured(pipe, Limits(200_000_000, 1e9, 30), monkeypatch)).forward
    assert way.discipline == kinds.POLICER
    assert covers(way.policer_bps, rate, (0.02 + loss) * rate)
    if "at least" in way.bucket_bytes.why:
        assert way.bucket_bytes.value is not None and way.bucket_bytes.value < bucket
    elif way.bucket_bytes.value is None:
        assert way.bucket_bytes.why == "no overload emptied a full bucket"
    else:
        assert covers(way.bucket_bytes, bucket, 0.1 * bucket)


def test_a_policer_is_named_without_an_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(rate=1.16e6, policer=(447e3, 325e3), tokens=325e3, buffer=8000)
    found = measured(pipe, Limits(200_000_000, 1e9, 30), monkeypatch)
    del found.forward[OVER]
    way = estimate(found).forward
    assert way.discipline == kinds.POLICER and covers(way.policer_bps, 447e3, 10e3)
    assert way.bucket_bytes.value is None


def test_an_overload_of_which_little_arrives_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(rate=2.6e6, policer=(637e3, 56e3), tokens=56e3, buffer=8000)
    found = measured(pipe, Limits(200_000_000, 1e9, 30), monkeypatch)
    one = found.forward[OVER]
    for at in range(len(one) // 8, len(one)):
        one.arrived_ns[at] = LOST
    assert estimate(found).forward.discipline == kinds.POLICER


def test_a_rate_that_changes_is_no_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    def rate(time: float) -> float:
        return 2e6 if time // 1.5 % 2 else 0.8e6

    found = measured(Pipe(buffer=60_000, changing=rate), Limits(200_000_000, 1e9, 60), monkeypatch)
    way = estimate(found).forward
    assert way.rate_bps.value is None and way.discipline is None
    # The delivery trace has both.
    assert FOLLOW in found.forward
    assert min(bps for _, _, bps in way.pieces) < 0.9e6 and max(bps for _, _, bps in way.pieces) > 1.8e6


def test_a_pause_of_the_sender_is_no_aqm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "kind", lambda *_: kinds.AQM)
    found = World(Pipe()).all(20e6)
    assert estimate(found).forward.discipline == kinds.AQM
    found.forward[GENTLE].late_s = 0.014
    way = estimate(found).forward
    assert way.discipline is None and way.buffer_bytes.value is None
    assert "the sender was kept waiting for 14 ms" in way.why_no_discipline


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


def test_the_least_rate_is_not_above_what_was_sent() -> None:
    """Whatever clumps arrivals, such as jitter, which ends earlier for the last packet than for the first."""
    world = World(Pipe(rate=10e9, buffer=1e9))
    world.all(20e6)
    arrived = world.found.forward[OVER].arrived_ns
    for at in range(len(arrived)):
        arrived[at] -= 300_000 * at // len(arrived)
    found = estimate(world.found).forward.at_least_bps
    assert found is not None and found == pytest.approx(40e6, rel=1e-4) and found < 40.002e6


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


@pytest.mark.parametrize("seed", range(20))
def test_no_streams_of_the_other_end_crash_the_analysis(seed: int, tmp_path: Path) -> None:
    """It also says when its packets left, how long they were, and to which flow each belonged."""
    chance = random.Random(seed)
    found = World(Pipe()).all(20e6, long=0.5)
    size = chance.choice([[0], [1500], [0, 1500, 65535], [100, 1500]])
    flow = chance.choice([[0], [1], [0, 1], [0, 1, 9]])
    spread = chance.choice([1, 10**6, 10**10, 10**11])
    for name in chance.sample(list(found.forward), chance.randint(1, len(found.forward))):
        one = found.forward[name]
        count = chance.choice([1, 2, 3, 11, len(one)])
        begun = found.echoes[0][1]
        found.back[name] = Stream(
            array("q", [begun + chance.randrange(spread) for _ in range(count)]),
            array("H", chance.choices(size, k=count)),
            array("B", chance.choices(flow, k=count)),
            array("B", chance.choices([0, 1, 2, 3], k=count)),
            array("q", [chance.choice([LOST, BEGIN_NS + chance.randrange(spread)]) for _ in range(count)]),
            array("B", chance.choices([0, 1, 2, 3], k=count)),
        )
    if chance.random() < 0.5:
        found.echoes = [
            (a, b + chance.randrange(10**6), c + chance.randrange(10**6, 10**7), d + 10**7)
            for a, b, c, d in found.echoes
        ]
    answer = Answer.of("there", found, tmp_path)
    answer.to_json()
    page.write(answer, tmp_path)
    for way in (answer.estimates.forward, answer.estimates.back):
        for one in vars(way).values():
            if isinstance(one, Quantity) and one.low is not None and one.high is not None:
                assert one.value is not None and 0 <= one.low <= one.high and one.value >= 0


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


PHY = Pipe(rate=30e6, frame_s=150e-6, buffer=150_000, loss=0.005)


def test_a_link_with_a_cost_per_frame_has_no_random_loss_by_its_queue() -> None:
    """Small packets at 0.55 of what full ones reach are more than it carries."""
    full = 12_000 / (12_000 / PHY.rate + PHY.frame_s)
    world = World(replace(PHY, loss=0.0))
    way = estimate(world.all(full)).forward
    assert way.loss.value is None and "fills a queue" in way.loss.why and not way.jitter_ms
    assert way.buffer_bytes.value is None or way.buffer_bytes.value > 0
    world = World(replace(PHY, chance=random.Random(5)))
    world.all(full)
    world.stage(BELOW, 0.5 * full, 8.0)
    way = estimate(world.found).forward
    assert way.loss.value is not None and way.loss.covers(0.005)


@pytest.mark.parametrize("jitter_ms", [0.0, 5.0])
def test_random_loss_beside_jitter_is_no_queue(jitter_ms: float) -> None:
    chance = random.Random(8)
    one = trace(
        [
            None if chance.random() < 0.02 else 0.02 + 0.001 * at + chance.uniform(0, jitter_ms) / 1e3
            for at in range(4000)
        ]
    )
    one.origin = 0.02
    assert not behaviour.fills_a_queue(one, 2 * jitter_ms / 1e3)


def test_below_is_sent_again_in_full_packets_if_small_ones_fill_a_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(200_000_000, 1e9, 60)
    found = measured(replace(PHY, chance=random.Random(6)), limits, monkeypatch)
    assert set(found.forward[BELOW].sizes) == {MTU} and any("repeated" in note for note in found.notes)
    loss = estimate(found).forward.loss
    assert loss.value is not None and loss.value < 0.02
    found = measured(Pipe(loss=0.005), limits, monkeypatch)
    assert set(found.forward[BELOW].sizes) == {200} and not found.notes


@pytest.mark.parametrize(
    ("value", "half"), [(-0.1, 1.0), (math.nan, 1.0), (math.inf, 1.0), (1.0, math.nan), (1.0, -1.0)]
)
def test_no_estimate_is_outside_of_its_interval(value: float, half: float) -> None:
    assert Quantity.around(value, half).value is None
    assert Quantity.around(1.0, 2.0) == Quantity(1.0, 0.0, 3.0)


@pytest.mark.parametrize(
    "warp",
    [
        lambda time: 0.020 * (time > 4),
        lambda time: -0.020 * (time > 14),
        lambda time: 0.2 * (time > 14),
        lambda time: 500e-6 * max(0.0, time - 6),
    ],
    ids=["step", "step back", "long step", "slew"],
)
def test_a_clock_that_is_set_makes_no_queue(warp: Callable[[float], float], tmp_path: Path) -> None:
    found = estimate(World(Pipe(buffer=99_600), warp=warp).all(20e6))
    way = found.forward
    assert any("a clock was set" in one for one in found.doubts)
    assert way.discipline is None and way.buffer_bytes.value is None and way.policer_bps.value is None
    assert not way.jitter_ms and "a clock was set" in way.why_no_discipline
    path_file.write(found, "there", tmp_path)
    scenario.from_file(tmp_path / path_file.PATH)


def test_a_route_that_becomes_longer_is_no_clock() -> None:
    world = World(Pipe(buffer=99_600))
    world.all(20e6)
    for at in range(len(world.found.echoes) - 60, len(world.found.echoes)):
        sent, came, answered, back = world.found.echoes[at]
        world.found.echoes[at] = (sent, came + 400_000, answered + 400_000, back + 400_000)
    found = estimate(world.found)
    assert not found.doubts and found.forward.discipline == kinds.TAIL


@pytest.mark.parametrize("seed", range(5))
def test_jitter_of_one_direction_is_no_clock(seed: int) -> None:
    world = World(Pipe())
    world.all(20e6)
    chance = random.Random(seed)
    late = [int(20e6 * chance.random()) for _ in world.found.echoes]
    world.found.echoes = [
        (sent, came + one, answered + one, back + one)
        for one, (sent, came, answered, back) in zip(late, world.found.echoes, strict=True)
    ]
    assert not any("clock" in one for one in estimate(world.found).doubts)


def test_many_echoes_make_no_more_points_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Pipe())
    for _ in range(20_000):
        world.echo()
    counts = []
    line = traces._line

    def counting(times: list[float], values: list[float]) -> tuple[float, float]:
        counts.append(len(times))
        return line(times, values)

    monkeypatch.setattr(traces, "_line", counting)
    assert abs(Clocks(world.found.echoes).slope - DRIFT) < 1e-7
    assert 100 < counts[0] < 1000


@pytest.mark.parametrize("bucket", [False, True])
@pytest.mark.parametrize("delay_s", [0.00002, 0.0002, 0.02])
@pytest.mark.parametrize("echo_bytes", [76, 96])
def test_the_base_rtt_is_above_zero_and_covered(
    bucket: bool, delay_s: float, echo_bytes: int, tmp_path: Path
) -> None:
    pipes = [Pipe(rate=2e6, delay_s=delay_s, bucket=bucket) for _ in range(2)]
    found = estimate(World(pipes[0], replace(pipes[1], rate=1e9), echo_bytes=echo_bytes).all(2e6))
    rtt = found.rtt_ms
    assert rtt.value is not None and rtt.low is not None and rtt.value > 0 and 0 <= rtt.low <= rtt.value
    assert rtt.covers(2e3 * delay_s)
    # The share of a link itself, unless that would be most of it.
    assert bucket or delay_s < 0.0001 or rtt.value == pytest.approx(2e3 * delay_s, abs=0.002)
    path_file.write(found, "there", tmp_path)
    scenario.from_file(tmp_path / path_file.PATH)


@pytest.mark.parametrize("others", [0.0, 0.08, 0.12])
def test_others_traffic_widens_the_rate(others: float) -> None:
    found = estimate(World(Pipe(others=others)).all(20e6))
    way = found.forward
    assert way.rate_bps.value is not None and way.rate_bps.covers(20e6)
    if others > 0.1:
        assert way.others_bps.covers(20e6 - way.rate_bps.value) and way.others_bps.value
        assert any("others seem to take" in one for one in found.doubts)
    elif not others:
        assert way.others_bps == Quantity(0.0, why="none is seen beside what the probe displaces")
        assert way.rate_bps.high is not None and way.rate_bps.high < 20.2e6 and not found.doubts


def test_a_burst_that_a_bucket_lets_through_is_not_others_traffic() -> None:
    world = World(Pipe())
    world.all(20e6)
    one = world.found.forward[TRAIN]
    # The first 20 packets as close as they were sent.
    for at in range(20):
        one.arrived_ns[at] = one.arrived_ns[20] - (20 - at) * 12_000
    way = estimate(world.found).forward
    assert way.others_bps.value == 0 and way.rate_bps.high is not None and way.rate_bps.high < 20.2e6


@pytest.mark.parametrize("megabytes", [200, 13])
def test_few_bytes_shorten_stages_and_leave_some_for_the_overload(
    megabytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13 MB at 20 Mbit/s are as much as 200 MB at 300 Mbit/s."""
    found = measured(Pipe(loss=0.005), Limits(megabytes * 1_000_000, 1e9, 60), monkeypatch)
    way = estimate(found).forward
    assert covers(way.rate_bps, 20e6, 0.3e6) and covers(way.buffer_bytes, 100_000, 4000)
    assert way.discipline == kinds.TAIL
    assert sum(one.bytes for one in found.forward.values()) <= megabytes * 1_000_000


def test_without_an_overload_rate_and_loss_remain(tmp_path: Path) -> None:
    world = World(Pipe(loss=0.005))
    world.all(20e6)
    del world.found.forward[OVER]
    answer = Answer.of("there", world.found, tmp_path)
    way = answer.estimates.forward
    assert way.rate_bps.covers(20e6) and covers(way.loss, 0.005, 0.0015) and way.jitter_ms
    assert way.discipline is None and way.buffer_bytes.value is None
    assert path_file.usable(answer.estimates)


def lines(found: Estimates, host: str = "there") -> dict[str, dict[str, str]]:
    """The lines of path.toml by table and key, comments in front of keys too."""
    tables: dict[str, dict[str, str]] = {"": {}}
    place = ""
    for line in path_file.toml(found, host).splitlines():
        if line.startswith("["):
            place = line.split("]")[0].strip("[")
            tables.setdefault(place, {})
        elif line:
            tables[place][line.removeprefix("# ").split(" =")[0].split(":")[0]] = line
    return tables


@pytest.mark.parametrize(
    "pipe",
    [
        Pipe(),
        Pipe(buffer=1e9),
        Pipe(fair=True),
        Pipe(rate=10e9, buffer=1e9),
        Pipe(rate=100e6, policer=(20e6, 80_000), tokens=80_000),
        Pipe(changing=lambda time: 20e6 if time % 1.0 < 0.5 else 8e6),
    ],
    ids=["tail", "deep", "fair", "fast", "policed", "changing"],
)
def test_each_line_of_the_path_is_measured_or_assumed(pipe: Pipe, tmp_path: Path) -> None:
    world = World(replace(pipe))
    world.all(20e6)
    found = estimate(world.found)
    tables = lines(found)
    for place in ("path", "path.reverse", "hosts"):
        for line in tables[place].values():
            said = line.split("#", 1)[1]
            assert any(word in said for word in ("measured: ", "assumed: ", "not measurable")), line
    assert {"buffer", "queue"} <= tables["path"].keys() and tables["path"].keys() & {"rate", "deliveries"}
    # Of the way back nothing was measured.
    assert "assumed: unlimited" in tables["path.reverse"]["rate"]
    assert tables["hosts"]["mtu"].startswith("mtu = 1500 #")
    assert path_file.write(found, "there", tmp_path) is not None
    scenario.from_file(tmp_path / path_file.PATH)


def test_a_queue_that_never_overflowed_holds_at_least_what_was_seen() -> None:
    found = estimate(World(Pipe(buffer=1e9)).all(20e6))
    held = found.forward.buffer_bytes.low
    assert held is not None and held > 1e6
    assert lines(found)["path"]["buffer"].startswith(
        f"buffer = {round(held)} # assumed: the least; the queue did"
    )


def test_the_way_back_has_its_least_rate_and_an_mtu_is_written() -> None:
    world = World(Pipe(rate=10e9, buffer=1e9))
    world.all(20e6)
    found = estimate(world.found)
    found.back, found.mtu = found.forward, 1420
    tables = lines(found)
    assert 'rate = "40.' in tables["path.reverse"]["rate"] or 'rate = "39.' in tables["path.reverse"]["rate"]
    assert "assumed: 1000 packets" in tables["path.reverse"]["buffer"]
    assert tables["hosts"]["mtu"].startswith("mtu = 1420 #")


def test_jitter_of_clumps_is_in_the_path_once() -> None:
    def keys(aggregation: Quantity) -> list[str]:
        found = estimate(World(Pipe()).all(20e6))
        found.forward.jitter_ms = {"p90": 5.5}
        found.forward.aggregation_ms = aggregation
        return [one.name for one in path_file.keys(found, "forward")]

    assert "jitter" not in keys(Quantity.around(6.0, 0.1))
    assert "jitter" in keys(Quantity.none("packets do not come in clumps"))
    assert "jitter" in keys(Quantity.around(3.0, 0.1))


@pytest.mark.parametrize("burst", [1.0, 3.0, 10.0])
def test_the_interval_of_loss_covers_losses_in_bursts(burst: float) -> None:
    """Of 100 paths; by Wilson's interval alone, of bursts of 3 about 62 and of 10 about 39."""
    covered = named = 0
    for seed in range(100):
        pipe = Pipe(loss=0.02, burst=burst, chance=random.Random(seed), rate=1e12)
        found = behaviour.loss(trace([pipe.send(0.001 * at, 200, 0) for at in range(6000)]))
        covered += found.covers(0.02)
        named += found.why == behaviour.IN_BURSTS
    assert covered >= 90
    assert named > 90 if burst == 10 else named < 10 if burst == 1 else True


def test_few_losses_are_named_in_the_answer_and_are_no_line_of_the_path(tmp_path: Path) -> None:
    found = World(Pipe(loss=0.0005)).all(20e6)
    answer = Answer.of("there", found, tmp_path)
    cell = next(row.forward for row in answer.rows if row.name == "Random loss")
    assert "; only " in cell and "packets were lost" in cell
    assert lines(answer.estimates)["path"]["loss"].startswith("# loss: assumed: none; 0.0")


def test_parallel_links_are_not_measured_as_fair_queueing(tmp_path: Path) -> None:
    found = World(Pipe(fair=True)).all(20e6)
    answer = Answer.of("there", found, tmp_path)
    assert "parallel links" in answer.sentence
    assert "assumed: fair queueing or parallel links" in lines(answer.estimates)["path"]["queue"]


def test_pauses_of_the_path_make_no_aqm_and_widen_the_rate() -> None:
    class Pausing(Pipe):
        """What would arrive in the first 6 ms of half a second arrives at their end."""

        def send(self, time: float, size: int, flow: int) -> float | None:
            came = super().send(time, size, flow)
            return came if came is None or came % 0.5 > 0.006 else came // 0.5 * 0.5 + 0.006

    # One that stands still as a whole: its queue, too.
    class Standing(Pipe):
        def send(self, time: float, size: int, flow: int) -> float | None:
            if time % 0.5 < 0.006:
                self.free_at = max(self.free_at, time // 0.5 * 0.5 + 0.006)
            return super().send(time, size, flow)

    for kind in (Pausing, Standing):
        way = estimate(World(kind(rate=20e6, buffer=20_000)).all(20e6)).forward
        assert way.discipline == kinds.TAIL
        assert way.rate_bps.covers(20e6), way.rate_bps


def test_a_queue_that_marks_is_no_tail_drop() -> None:
    marking = kinds.Pressure(
        thin=1.0,
        l4s=1.0,
        marked=0.13,
        early_dropped=0.03,
        early=False,
        law=kinds.Law(),
        top_s=0.066,
        late_s=0.06,
        balance=None,
    )
    assert kinds.kind(marking, None, 0.06, 0.006, 2e6) == kinds.AQM
    assert kinds.kind(replace(marking, marked=0.0), None, 0.06, 0.006, 2e6) == kinds.TAIL
