"""Real QUIC stacks in virtual time over the simulator's path.

Handshake, ACK policy, loss detection and pacer are the stack's. Fullpipe's controllers run inside noq;
`noq:bbr3` and `quinn:cubic` are what a stack ships. The stacks are in a program that only `make quic` builds
(`quic_program.py`). Where it is, the world is one of `all`; elsewhere it says how to get it.
docs/explanation/quic.md describes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import fullpipe._native as _native
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import answer, quic_program, stacks
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.logs import MOST, opened
from fullpipe.runs.worlds.world import Stop, World, most_packets
from fullpipe.scenario.scenario import Alternative

NAME = "quic"
# For estimates: the time of a data packet, both endpoints and the path, and that of a run with its process.
_PACKET_S = 3e-6
_RUN_S = 20e-3


class Quic(World):
    """The world `quic`."""

    name = NAME
    title = "QUIC"
    short = "QUIC"
    place = "QUIC world"
    colour = "#b03060"
    opacity = 0.65
    real_hosts = True  # The stacks are real: models of hosts, which are about TCP, say nothing about them.
    writes_logs = True
    writes_pcap = False  # Captures are made of TCP headers.
    runs = 5

    def build(self) -> str:
        """The fingerprint of the program, its sources and stacks, and of adapters that are given."""
        given = (f"{stack.name}={stack.build}" for stack in stacks.given())
        return " ".join((quic_program.about().build, *given))

    def versions(self) -> str:
        """The stacks."""
        given = (f"{stack.about['name']} {stack.about['version']}" for stack in stacks.given())
        return ", ".join((quic_program.about().versions, *given))

    def refuses(self, alternative: Alternative) -> str | None:
        """Everything where there is no program, and scenarios that no QUIC stack can run."""
        if alternative.own:
            first = alternative.own[0].text
            return f"only the simulator runs {first}, a controller of your own; choose --world sim"
        try:
            return quic_program.refused(alternative.spec_json)
        except _native.WorldError as error:
            return str(error)

    def ready(self) -> None:
        """Whether there is a program that can be asked."""
        quic_program.about()

    def checks(self) -> Sequence[Mapping[str, Any]]:
        """Which stacks the program has."""
        try:
            about = quic_program.about()
        except _native.WorldError as error:
            found = str(error).removesuffix(f"; {error.fix}")
            return [{"name": "stacks", "ok": False, "found": found, "fix": error.fix}]
        return [{"name": "stacks", "ok": True, "found": f"{about.versions} ({about.path})", "fix": ""}]

    def controllers(self) -> Sequence[Mapping[str, Any]]:
        """Those inside the stacks."""
        return quic_program.controllers()

    def cost_s(self, job: Job, cores: int) -> float:
        """From the packets that the path can carry at most, or that the applications send at most."""
        del cores
        return _RUN_S + most_packets(job) * _PACKET_S

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        """Runs one job in a process of the program."""
        with opened(job.logs, NAME, job.seed, job.alternative.label) as files:
            qlog = None if files is None else files.qlog
            request = None if files is None or qlog is None else quic_program.Qlog(files.title, qlog, MOST)
            tick = stop.checked_by(progress)
            summary, flows, links, full_at_s = quic_program.run(
                job.alternative.spec_json, job.seed, tick, request
            )
            # The program may be a developer's own.
            run = answer.checked(NAME, job, Run.of(job.alternative, NAME, job.seed, summary, flows, links))
        return run if files is None else files.of(run, full_at_s)


WORLD = Quic()
