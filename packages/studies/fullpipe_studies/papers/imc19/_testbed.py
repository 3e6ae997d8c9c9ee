"""The paper's test beds, as far as the paper or the documentation of its tools describe them (section 3).

The LAN, with which most claims are about:

* Hosts: "the network interfaces of all hosts have a 1Gbps peak bandwidth", so the router sees no faster
  bursts, and at most 975 Mbit/s of IP: Ethernet adds 38 bytes to each packet (preamble, header, checksum and
  gap; IEEE 802.3). The interface is there at every rate. Where the router is set to 1 Gbit/s, it is thus the
  host that is the bottleneck. A host loses nothing there: TCP Small Queues (tcp_output.c, since 3.6) let a
  socket hold about a millisecond in the interface, and the socket waits. The interface is modelled as a link
  that drops nothing. What would wait in the socket waits in the link, which lengthens the RTT that the sender
  sees; goodput and losses are the same.
* Router: tc-tbf under OpenWRT (`router = "tbf"`, docs/explanation/router.md): a burst that the router
  received as one is taken or dropped whole. The interface splits a host's burst, and the router's GRO merges
  what one interrupt delivers. The driver of this router's ports has one interrupt per 100 us or 32 packets
  (mvneta.c, MVNETA_RX_COAL_USEC and MVNETA_RX_COAL_PKTS), so a burst at 1 Gbit/s reaches tc-tbf in pieces of
  about eight packets.
* Bucket: the paper does not give its depth. The manual that it cites (tc-tbf(8), "burst") gives a minimum:
  the rate divided by the timer frequency. That is 100 Hz in OpenWRT's kernels for this router (ARM's default,
  which target/linux/mvebu keeps), so the bucket holds 10 ms of the rate.
* Linux 4.15 with pacing inside TCP. Its BBR has no allowance for aggregated ACKs (added in 5.1) and no pacing
  margin (added in 4.20). It keeps slow-start thresholds from one connection to the next, but those of iperf3
  leave none (`_metrics`).

The WAN of figure 8(b) is the same router. Both senders reach its processor through one port of 1 Gbit/s: the
four LAN sockets of this router are a switch with one port to the processor (OpenWRT, target/linux/mvebu/
base-files/etc/board.d/02_network: "5@eth0" for LAN, "6@eth1" for WAN).

Mininet, of figures 7 and 8(a), is one machine with virtual interfaces (veth), which have no rate and hand
over a host's bursts of up to 64 KB whole. So tc-tbf takes and drops them whole, and splits those above its
bucket; netem loses them whole, too (sch_netem.c, netem_enqueue). Ubuntu's kernels have a timer of 250 Hz, so
the manual's minimum is 4 ms of the rate.

One effect is shown in imc19.retx and not checked. Linux computes the pacing rate for packets with headers
and spends it on payload (`bbr_rate_bytes_per_sec`, `tcp_internal_pacing`), which gives 3.6 % more than the
estimate. But the timer fires late, once per millisecond, which costs 1 % for each 10 us. The paper does not
say how late; it does find that equation (3), which has no such surplus, holds for a gain of 1.1.

Every known property of the test bed is included, whatever its effect. netem's default queue of 1000 packets
is not. It counts what GRO merged as one packet (sch_netem.c), so it holds between 1.5 MB and 64 MB. At eight
packets each it would hold 12 MB, which the paths with the largest BDPs exceed; but the paper gives neither
the limit nor on which interface netem was, and our path has no such element.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fullpipe_studies.claim import Setups
from fullpipe_studies.papers.imc19 import _metrics


@dataclass(frozen=True)
class Setup:
    """What a set-up has of the LAN."""

    tbf: bool = True  # Otherwise a link.
    bucket_ms: float = 10.0  # Of the rate.
    interface: bool = True  # Otherwise hosts are infinitely fast, and hand over their bursts whole.
    gro_us: float = 100.0  # The time between two interrupts of the router; without GRO 0.
    old_linux: bool = True  # BBR as in 4.15, otherwise as now.
    # In which the runs were made, and thus what CUBIC begins with (`_metrics`).
    order: str = _metrics.NONE
    # Whether a run is read as iperf3's sender reads it: what it wrote into its send buffer, which grows as
    # Linux's does (hosts.model), and when it wrote the last byte. Otherwise as its receiver does.
    sender: bool = False
    late_timer: bool = True


# Each of these adds to the one before it, but for bursts, which the hosts' interface splits again. TESTBED is
# checked; the kernel world uses this machine's Linux.
LINK, VIRTUAL, INTERFACES, GRO = "plain link", "tc-tbf", "1 Gbit/s hosts", "GRO in the router"
TESTBED, PUNCTUAL, SENDER = "Linux 4.15", "timer never late", "iperf3's sender"
DEEP_AND_WHOLE = "bucket of 100 ms, GRO of 32 packets"
STEPS = (LINK, VIRTUAL, INTERFACES, GRO, TESTBED, PUNCTUAL)
# And what the paper does not tell, for the tables of the reports: one thing at a time, and together the two
# that decide losses.
_JUDGED = Setup()
_NOW = replace(_JUDGED, old_linux=False)
_OTHERS = {
    "bucket of 1 ms": replace(_JUDGED, bucket_ms=1.0),
    "bucket of 100 ms": replace(_JUDGED, bucket_ms=100.0),
    "no GRO": replace(_JUDGED, gro_us=0),
    "GRO of 32 packets": replace(_JUDGED, gro_us=400),
    DEEP_AND_WHOLE: replace(_JUDGED, bucket_ms=100.0, gro_us=400),
    "hosts without interface": replace(_JUDGED, interface=False),
    "BBR of today": replace(_JUDGED, old_linux=False),
    SENDER: replace(_JUDGED, sender=True),
    **{order: replace(_JUDGED, order=order) for order in _metrics.ORDERS},
}
SETUPS: Mapping[str, Setup] = {
    LINK: replace(_NOW, tbf=False, interface=False, gro_us=0),
    VIRTUAL: replace(_NOW, interface=False, gro_us=0),
    INTERFACES: replace(_NOW, gro_us=0),
    GRO: _NOW,
    TESTBED: _JUDGED,
    PUNCTUAL: replace(_JUDGED, late_timer=False),
    **_OTHERS,
}
# The set-ups of a claim about the LAN: the first is judged.
LAN = (TESTBED, *_OTHERS, PUNCTUAL)
# Those of Mininet. "Single packets": the hosts' bursts are split before they reach the router. "Default TCP
# memory": the paper says for the LAN only that it set the maximum.
MININET, _SMALL_MEMORY = "Mininet", "default TCP memory"
# One bucket is as small as those of examples for tc-tbf ("burst 5kb" in tc-tbf(8)), whatever the rate.
_BUCKETS_MS = {"bucket of 1 ms": 1.0, "bucket of 100 ms": 100.0}
_SMALL, _SMALL_BYTES = "bucket of 5,120 B", 5120
MININETS = (MININET, "single packets", _SMALL, *_BUCKETS_MS, "BBR of today", _SMALL_MEMORY)

# 1 Gbit/s of Ethernet in IP packets of 1500 bytes, which occupy 1538 bytes of it.
INTERFACE_MBPS = 975.3
# The bucket with Ubuntu's timer.
_MININET_MS = 4.0
# What tc-tbf needs to pass a packet at all, with its header of Ethernet; the manual's own example has it.
_LEAST_BUCKET = 1540
# Which Linux a run has, where that differs between worlds.
PAPERS, HERE = "4.15", "this machine's"


def setups(judged: str = TESTBED, seeds: int = 1) -> Setups:
    """For claims whose factor `setup` has these; with three seeds, they can decide the verdict.

    The paper names its interfaces and its kernel: set-ups without them only show what these do.
    """
    named = ("hosts without interface", "BBR of today")
    others = (*_OTHERS, PUNCTUAL) if judged == TESTBED else MININETS[1:]
    return Setups("setup", judged, seeds, tuple(name for name in others if name not in named))


def path(setup: str, rate_mbps: int) -> dict[str, Any]:
    """What the set-up adds to a path of that rate."""
    is_there = SETUPS[setup]
    added: dict[str, Any] = {}
    if is_there.tbf:
        added |= _router(rate_mbps, is_there.bucket_ms)
    if is_there.interface:
        added["before"] = before(is_there.gro_us)
    return added


def before(gro_us: float = _JUDGED.gro_us) -> list[dict[str, Any]]:
    """The hosts' interface, a link that drops nothing because sockets wait for it; and the router's GRO."""
    interface = {"kind": "link", "name": "interface", "rate": f"{INTERFACE_MBPS:g} Mbit/s", "buffer": "2 GB"}
    merged = {"kind": "aggregate", "every": f"{gro_us:g} us", "merge": True}
    return [interface, merged] if gro_us else [interface]


def mininet(setup: str, rate_mbps: int) -> dict[str, Any]:
    """What Mininet adds to a path of that rate."""
    assert setup in MININETS, f"no set-up of Mininet: {setup}"
    if setup == _SMALL:
        return {"router": "tbf", "burst": f"{_SMALL_BYTES} B"}
    split = {"unit": "segment"} if setup == "single packets" else {}
    return {**_router(rate_mbps, _BUCKETS_MS.get(setup, _MININET_MS)), **split}


def memory(setup: str) -> dict[str, Any]:
    """The hosts of Mininet: their TCP memory."""
    return {"tcp_memory": "ubuntu-18.10" if setup == _SMALL_MEMORY else "max"}


def _router(rate_mbps: int, bucket_ms: float) -> dict[str, Any]:
    return {"router": "tbf", "burst": f"{max(_LEAST_BUCKET, round(rate_mbps * bucket_ms * 125))} B"}


def controller(setup: str, name: str, linux: str = PAPERS) -> str:
    """The controller as in the Linux of the set-up."""
    # Mininet's other set-ups have the same Linux.
    is_there = SETUPS.get(setup, _JUDGED)
    if linux != PAPERS or not is_there.old_linux or name.partition(":")[0] != "bbr1":
        return name
    older = "extra_acked_gain=0,pacing_margin_percent=0"
    if not is_there.late_timer:
        older += ",unpaced_header_bytes=52"
    return f"{name}{',' if ':' in name else ':'}{older}"
