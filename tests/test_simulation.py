"""A run as an object: `fullpipe.Simulation`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fullpipe as fp
from fullpipe.conformance.stage import Seen
from fullpipe.measures.run import Run

DOCUMENT = {
    "name": "small",
    "duration": "3 s",
    "path": {"rate": "10 Mbit/s", "rtt": "40 ms", "loss": "0 %"},
    "flows": [{"controller": "bbr1"}, {"controller": "cubic"}],
}


def same(one: Run, other: Run) -> bool:
    """Whether two runs have the same record."""
    return (one.summary, one.flow_parquet, one.link_parquet) == (
        other.summary,
        other.flow_parquet,
        other.link_parquet,
    )


def test_stepped_run_equals_single_run() -> None:
    with fp.Simulation(DOCUMENT, seed=3) as simulation:
        assert (simulation.now, simulation.end, simulation.running) == (0, 3, True)
        assert simulation.advance("250 ms")
        assert simulation.advance(0.5)
        assert simulation.now == 0.75
        assert simulation.advance(until="2 s") and simulation.advance(until=1.0)
        assert simulation.now == 2
        assert not simulation.advance()
        assert (simulation.now, simulation.running) == (3, False)
        run = simulation.finish()
        assert simulation.finish() is run
    assert same(run, fp.run(DOCUMENT, seed=3).runs[0])


def test_live_values_match_record() -> None:
    simulation = fp.Simulation(DOCUMENT)
    assert len(simulation.flows) == 2 and not simulation.flows[0].connected
    assert simulation.flows[0].cwnd is None and simulation.flows[-1].label == "cubic"
    # What happens at that instant is part of the step, and the sample there is one of the record.
    simulation.advance("2 s")
    flow, queue = simulation.flows[1], simulation.queues["bottleneck"]
    assert [one.label for one in simulation.flows[:]] == ["bbr1", "cubic"]
    run = simulation.finish()
    row = run.flow_series().filter(flow="cubic").sort("time_s").tail(1).to_dicts()[0]
    assert (row["time_s"], row["cwnd_segments"], row["phase"]) == (2.0, flow.cwnd, flow.phase)
    assert row["delivered_bytes"] == flow.delivered_bytes and row["srtt_ms"] == pytest.approx(flow.rtt_ms)
    link = run.link_series().sort("time_s").tail(1).to_dicts()[0]
    assert (link["queue_bytes"], link["dropped_packets"]) == (queue.backlog_bytes, queue.dropped_packets)
    assert run.summary["flows"][1]["end_ns"] == 2_000_000_000


def test_rate_change_equals_scheduled_change() -> None:
    simulation = fp.Simulation(DOCUMENT, seed=1)
    simulation.advance("1 s")
    simulation.path.change(rate="5 Mbit/s")
    simulation.advance()
    path = {**DOCUMENT["path"], "changes": [{"at": "1 s", "rate": "5 Mbit/s"}]}  # type: ignore[dict-item]
    scheduled = fp.run({**DOCUMENT, "path": path}, seed=1).runs[0]
    run = simulation.finish()
    assert run.summary["flows"] == scheduled.summary["flows"]
    assert run.flow_parquet == scheduled.flow_parquet
    assert run.alternative.spec == scheduled.alternative.spec


def test_each_path_part_can_change() -> None:
    simulation = fp.Simulation(DOCUMENT)
    simulation.advance("1 s")
    assert (simulation.flows[0].rtt_ms or 0) < 110
    simulation.path.change(rtt="200 ms", rate="20 Mbit/s")
    simulation.advance("1 s")
    assert (simulation.flows[0].rtt_ms or 0) >= 200
    lost = simulation.flows[1].lost
    simulation.path.change(loss="30 %", buffer="1 bdp", element=None)
    simulation.path.change(element="bottleneck", buffer="2 packets")
    simulation.path.change(element="forward[2]", delay="1 ms")
    simulation.advance("1 s")
    assert simulation.flows[1].lost > lost
    assert simulation.queues[0].backlog_bytes <= 3000


def test_changes_of_one_call_are_atomic() -> None:
    simulation = fp.Simulation({**DOCUMENT, "path": {"rate": "10 Mbit/s", "rtt": "40 ms"}})
    simulation.advance("1 s")
    with pytest.raises(fp.ScenarioError, match="loss: the path has no loss that could change") as raised:
        simulation.path.change(rate="1 Mbit/s", loss="1 %")
    assert raised.value.field == "loss"
    simulation.advance()
    assert same(
        simulation.finish(),
        fp.run({**DOCUMENT, "path": {"rate": "10 Mbit/s", "rtt": "40 ms"}}, seed=1).runs[0],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": "fast"}, 'rate: "fast"'),
        ({"rtt": "40 parsecs"}, 'rtt: "40 parsecs"'),
        ({"buffer": "1 B"}, 'buffer: "1 B" is below one packet'),
        (
            {"element": "wifi", "rate": "1 Mbit/s"},
            "element: wifi is not on the path; expected one of bottleneck",
        ),
        (
            {"element": "forward[0]", "delay": "1 ms"},
            r"delay: \"1 ms\" is not for element 0 \(link\); expected a delay element",
        ),
        ({"element": "bottleneck", "rtt": "1 ms"}, "rtt: .*because an element has no round trip"),
    ],
)
def test_invalid_change_names_its_argument(change: dict[str, str], message: str) -> None:
    simulation = fp.Simulation(DOCUMENT)
    with pytest.raises(fp.ScenarioError, match=message):
        simulation.path.change(**change)  # type: ignore[arg-type]


def test_wrong_use_is_refused_in_words() -> None:
    with pytest.raises(fp.ScenarioError, match="one alternative"):
        fp.Simulation({**DOCUMENT, "flows": [{}], "compare": ["bbr1", "cubic"]})
    with pytest.raises(fp.ScenarioError, match="seed"):
        fp.Simulation(DOCUMENT, seed=-1)
    simulation = fp.Simulation(DOCUMENT)
    with pytest.raises(fp.ScenarioError, match="duration"):
        simulation.advance("2 furlongs")
    with pytest.raises(fp.ScenarioError, match="not both"):
        simulation.advance("1 s", until="2 s")
    with pytest.raises(fp.ScenarioError, match="one of bottleneck"):
        simulation.queues["wifi"]
    with pytest.raises(IndexError):
        simulation.flows[2]
    simulation.finish()
    with pytest.raises(RuntimeError, match="is finished"):
        simulation.advance("1 s")
    assert not simulation.running and "finished" in repr(simulation)


def test_alternative_or_file_is_accepted(tmp_path: Path) -> None:
    scenario = fp.load({**DOCUMENT, "flows": [{}], "compare": ["bbr1", "cubic"]})
    assert fp.Simulation(scenario.alternatives[1]).flows[0].controller == "cubic"
    file = tmp_path / "one.toml"
    file.write_text(
        'name = "one"\nduration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "10 ms" }\n'
        'flows = [{ controller = "reno" }]\n'
    )
    simulation = fp.Simulation(file)
    assert "reno: not connected" in repr(simulation)
    simulation.advance("500 ms")
    assert "reno: " in repr(simulation) and "bottleneck" in repr(simulation)
    assert "backlog_bytes" in dir(simulation.queues[0])


@pytest.mark.parametrize("own", [False, True])
def test_looks_equal_single_steps(own: bool) -> None:
    class Steady(fp.Controller):
        """Twenty segments."""

    flows = [{"controller": Steady if own else "bbr1"}, {"controller": "cubic"}]
    by_looks, by_steps = (fp.Simulation(DOCUMENT | {"flows": flows}, seed=2) for _ in range(2))
    looks, goes_on = by_looks.looks(0.01, 500)
    assert (len(looks), goes_on, by_looks.now) == (300, False, 3)
    for look in map(Seen._make, looks):
        by_steps.advance("10 ms")
        flow = by_steps.flows[0]
        assert look[:-1] == tuple(getattr(flow, name) for name in Seen._fields[:-1])
        assert look.queued_bytes == by_steps.queues[0].backlog_bytes
    assert same(by_looks.finish(), by_steps.finish())


def test_looks_end_at_a_phase() -> None:
    simulation = fp.Simulation(DOCUMENT)
    looks, _ = simulation.looks(0.01, 500, "startup", is_in=False)
    assert [look[2] for look in looks] == [None]
    looks, goes_on = simulation.looks(0.01, 500, "drain")
    assert (looks[-1][2], {look[2] for look in looks[:-1]}, goes_on) == ("drain", {None, "startup"}, True)
    assert simulation.looks(0.01, 0) == ([], True)
    for step_s, most, name in (
        (0.0, 1, "step_s"),
        (float("nan"), 1, "step_s"),
        (1e12, 1, "step_s"),
        (1, -1, "most"),
    ):
        with pytest.raises(fp.ScenarioError, match=name):
            simulation.looks(step_s, most)


# Simulates hours, prints when it begins, and resumes after Ctrl-C.
INTERRUPTED = """
import fullpipe as fp
path = {"rate": "1 Gbit/s", "rtt": "10 ms"}
flows = [{"controller": "cubic"}]
record = {"series": False}
simulation = fp.Simulation({"duration": "86400 s", "path": path, "flows": flows, "record": record})
simulation.advance("1 s")
try:
    print("begins", flush=True)
    simulation.STEP
except KeyboardInterrupt:
    before = simulation.now
    simulation.advance("10 ms")
    print("goes on", before >= 1, round(simulation.now - before, 6), flush=True)
"""


@pytest.mark.parametrize("step", ["advance()", "looks(10, 10000)"])
def test_interrupted_step_can_be_continued(step: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.replace("STEP", step)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "goes on True 0.01\n"
    assert child.returncode == 0


@pytest.mark.parametrize("queue", ["fifo", "codel", "fq_codel"])
def test_a_buffer_given_in_packets_grows(queue: str) -> None:
    path = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "33 packets", "queue": queue}
    with fp.Simulation({"path": path, "flows": [{"controller": "fixed:cwnd=1000"}]}) as s:
        s.path.change(buffer="667 packets")
        backlog = [s.queues[0].backlog_bytes for _ in range(100) if s.advance("10 ms")]
    assert max(backlog) > 60 * 1500


@pytest.mark.parametrize("at_once", [True, False])
def test_bdp_buffer_uses_changed_path(at_once: bool) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "1 bdp"}
    with fp.Simulation({"path": path, "flows": [{"controller": "fixed:cwnd=1000"}]}) as s:
        if at_once:
            s.path.change(rate="80 Mbit/s", rtt="50 ms", buffer="1 bdp")
        else:
            s.advance("100 ms")
            s.path.change(rate="80 Mbit/s", rtt="50 ms")
            s.path.change(buffer="1 bdp")
        s.advance("8 s")
        filled = max(sample["queue_bytes"] for sample in s.finish().link_series().to_dicts())
    # 500 000 bytes; one BDP of the path before would have been 25 000.
    assert 400_000 < filled <= 500_000
