"""The simulator: virtual time, our TCP model and our controllers, deterministic."""

import fullpipe._native as _native
from fullpipe.measures.run import Run
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.logs import opened
from fullpipe.runs.worlds.world import Stop, World, most_packets
from fullpipe.scenario.controllers import Brought
from fullpipe.scenario.scenario import Alternative

NAME = "sim"
# For estimates: the time of a packet, with its samples and losses (bench/README.md), and that of each run,
# with storing it (docs/how-to/scale.md).
_PACKET_S = 120e-9
_RUN_S = 1e-3


class Simulator(World):
    """The world `sim`."""

    name = NAME
    title = "simulation"
    short = place = "simulator"
    colour = "#2f3640"
    opacity = 1.0
    on_clusters = True
    writes_logs = True
    runs = 5

    def build(self) -> str:
        """The fingerprint of its sources."""
        return _native.build(NAME)

    def cost_s(self, job: Job, cores: int) -> float:
        """From the packets that the path can carry at most, or that the applications send at most."""
        del cores
        return _RUN_S + most_packets(job) * _PACKET_S

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        """Runs one job; the native half releases the GIL meanwhile."""
        del progress
        spec, own = job.alternative.spec_json, brought(job.alternative)
        with opened(job.logs, NAME, job.seed, job.alternative.label) as files:
            logs = None if files is None else files.native()
            if own:
                answer = _native.simulate_with(spec, job.seed, own, stop.native, logs)
            else:
                answer = _native.simulate(spec, job.seed, stop.native, logs)
        run = Run.of(job.alternative, NAME, job.seed, *answer)
        return run if files is None or logs is None else files.of(run, logs.full_at_s())


def brought(alternative: Alternative) -> list[Brought]:
    """A new controller for each flow whose controller is not built in."""
    own = {one.text: one for one in alternative.own}
    if not own:
        return []
    texts = [flow["controller"] for flow in alternative.spec["flows"]]
    return [own[text].plug(flow) for flow, text in enumerate(texts) if text in own]


WORLD = Simulator()
