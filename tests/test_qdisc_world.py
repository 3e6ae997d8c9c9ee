"""The world `qdisc`: Linux's own queue in place of the emulator's."""

from typing import Any

import pytest

import fullpipe as fp
from fullpipe.runs import doctor
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.qdisc import WORLD
from fullpipe.scenario import scenario


def document(**path: Any) -> dict[str, Any]:
    return {
        "name": "qdisc",
        "duration": "2 s",
        "path": {"rate": "20 Mbit/s", "rtt": "20 ms", "buffer": "100 KB", **path},
        "flows": [{"controller": "cubic"}],
    }


def test_qdisc_is_selectable_but_not_default() -> None:
    assert registry.named("qdisc") is WORLD
    assert "qdisc" not in registry.names() and "qdisc" in registry.special()
    assert [world.name for world in registry.pair(["kernel", "qdisc"])] == ["kernel", "qdisc"]


def test_its_name_is_taken() -> None:
    class Other(fp.runs.worlds.World):
        name = "qdisc"

        def build(self) -> str:
            return "1"

        def run(self, *_: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(fp.ScenarioError, match="a name that no other world has"):
        registry.register(Other())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ({"queue": "step"}, "path.queue: is step, which Linux does not have"),
        ({"queue": "red:gentle=1"}, "path.queue: sets gentle"),
        ({"unit": "burst"}, "path.unit: is burst"),
    ],
)
def test_unsupported_by_linux_is_refused(path: dict[str, Any], words: str) -> None:
    reason = WORLD.refuses(scenario.from_document(document(**path)).alternatives[0])
    assert reason is not None and reason.startswith(words)


def test_disciplines_of_linux_are_not_refused() -> None:
    for queue in ("fifo", "codel", "fq_codel", "pie", "red", "dualpi2"):
        assert WORLD.refuses(scenario.from_document(document(queue=queue)).alternatives[0]) is None


@pytest.mark.usefixtures("kernel_world")
def test_doctor_lists_available_qdiscs() -> None:
    (found,) = [one for one in doctor.requirements() if one.name == "queue disciplines of Linux"]
    assert found.group == "Qdisc world"
    if found.ok:
        assert found.found.startswith("tbf, bfifo")


@pytest.mark.usefixtures("kernel_world")
def test_linux_qdisc_queues_like_emulator() -> None:
    results = fp.run(document(), world="qdisc")
    (run,) = results.runs
    assert run.world == "qdisc" and run.summary["provenance"]["world"] == "qdisc"
    (flow,), (link,) = run.summary["flows"], run.summary["links"]
    assert 10e6 < flow["goodput_bps"] < 1.02 * 20e6 * 1448 / 1500
    # The router sees every segment, and few other packets; with the ACKs among them, there would be many
    # more. It is read after the sender is, so that a busy machine has sent some more by then.
    assert flow["segments_sent"] <= link["arrived_packets"] < 1.15 * flow["segments_sent"]
    assert 0.5 < link["utilisation"] <= 1.01


@pytest.mark.usefixtures("kernel_world")
def test_missing_qdisc_is_named() -> None:
    available = next(one for one in WORLD.checks() if one["name"] == "queue disciplines of Linux")["found"]
    missing = [
        name for name in ("codel", "pie", "red") if name not in available.partition(";")[0].split(", ")
    ]
    if not missing:
        pytest.skip("this kernel has them all")
    with pytest.raises(fp.WorldError, match=f"Linux has no qdisc {missing[0]} here"):
        fp.run(document(queue=missing[0]), world="qdisc")
