"""Shortest Remaining Processing Time: a link that always serves the transfer with the least left to send.

It knows all sizes and preempts at once, which minimises the mean response time on a single server (Schrage,
"A proof of the optimality of the shortest remaining processing time discipline", Operations Research 16,
1968). `ccwg25` takes it as near optimum. Here it is fluid: the link's rate is infinitely divisible, and
there are no losses and no windows. The caller adds the delay of the path, which no transport can avoid.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Transfer:
    """Data sent without a pause: how long the idle link needs for it, and the pause before it."""

    service_s: float
    pause_s: float = 0.0


@dataclass(frozen=True)
class Flow:
    """Its first transfer reaches the link at `start_s`, each other its pause after the previous one left."""

    start_s: float
    transfers: Sequence[Transfer]


def schedule(flows: Sequence[Flow]) -> list[list[float]]:
    """When each transfer of each flow has left the link. Of equals, the first to arrive is served first."""
    done: list[list[float]] = [[] for _ in flows]
    coming = [(flow.start_s + flow.transfers[0].pause_s, number) for number, flow in enumerate(flows)]
    heapq.heapify(coming)
    waiting: list[tuple[float, int, int]] = []  # (remaining service, order of arrival, flow)
    now, arrivals = 0.0, 0
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            _, number = heapq.heappop(coming)
            service_s = flows[number].transfers[len(done[number])].service_s
            heapq.heappush(waiting, (service_s, arrivals, number))
            arrivals += 1
        left_s, order, number = waiting[0]
        if coming and coming[0][0] < now + left_s:
            # Served until the next arrives, which may have less left.
            heapq.heapreplace(waiting, (left_s - (coming[0][0] - now), order, number))
            now = coming[0][0]
            continue
        heapq.heappop(waiting)
        now += left_s
        done[number].append(now)
        rest = flows[number].transfers[len(done[number]) :]
        if rest:
            heapq.heappush(coming, (now + rest[0].pause_s, number))
    return done
