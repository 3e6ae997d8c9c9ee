"""As the kernel world, but the queue of the bottleneck is Linux's own.

The sender's packets pass a router first: a token bucket at the link's rate (`tbf`), and within it the
discipline that the scenario names. The emulator carries the rest of the path. Comparing this world with
`kernel` compares our disciplines with Linux's. It needs `tc` and `ip` of iproute2, and runs only where it is
named: `all` leaves it out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import fullpipe._native as _native
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import kernel
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.world import Stop
from fullpipe.scenario.scenario import Alternative

NAME = "qdisc"


class Qdisc(kernel.Kernel):
    """The world `qdisc`."""

    name = NAME
    title = "Linux kernel and qdisc"
    short = "qdisc"
    place = "qdisc world"
    colour = "#882255"
    runs_programs = False

    def refuses(self, alternative: Alternative) -> str | None:
        """Paths without a link that a qdisc could be. A qdisc that is missing here is found by a run."""
        return super().refuses(alternative) or _native.qdisc_refuses(alternative.spec_json)

    def checks(self) -> Sequence[Mapping[str, Any]]:
        """Which qdiscs this machine has; the rest is as in the kernel world."""
        return kernel.qdisc_doctor()

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        """Runs one job in a child process. Linux may lack its qdisc or its controllers: then `WorldError`."""
        return self._carry(job, stop, progress, {"qdisc": True})


WORLD = Qdisc()
