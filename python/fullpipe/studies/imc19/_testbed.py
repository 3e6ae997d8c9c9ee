"""The paper's test bed, as far as the paper or the documentation of its tools describe it (section 3).

* Hosts: "the network interfaces of all hosts have a 1Gbps peak bandwidth", so the router sees no faster
  bursts, and at most 975 Mbit/s of IP: Ethernet adds 38 bytes to each packet (preamble, header, checksum and
  gap; IEEE 802.3). The interface is there at every rate. Where the router is set to 1 Gbit/s, it is thus the
  host that is the bottleneck. A host loses nothing there: TCP Small Queues (tcp_output.c, since 3.6) let a
  socket hold about a millisecond in the interface, and the socket waits. The interface is modelled as a link
  that drops nothing. What would wait in the socket waits in the link, which lengthens the RTT that the sender
  sees; goodput and losses are the same.
* Router: tc-tbf under OpenWRT. The paper does not give the depth of the bucket. The manual that it
  cites (tc-tbf(8), "burst") gives a minimum: the rate divided by the timer frequency. That is 100 Hz in
  OpenWRT's kernels for this router (ARM's default, which target/linux/mvebu keeps), so the bucket holds
  10 ms of the rate.
* Both senders of figure 8(b) reach the router's processor through one port of 1 Gbit/s: the four LAN sockets
  of this router are a switch with one port to the processor (OpenWRT, target/linux/mvebu/base-files/etc/
  board.d/02_network: "5@eth0" for LAN, "6@eth1" for WAN).
* Linux 4.15 with pacing inside TCP. Its BBR has no allowance for aggregated ACKs (added in 5.1) and no pacing
  margin (added in 4.20).

One effect is shown in imc19.retx and not checked. Linux computes the pacing rate for packets with headers
and spends it on payload (`bbr_rate_bytes_per_sec`, `tcp_internal_pacing`), which gives 3.6 % more than the
estimate. But the timer fires late, once per millisecond, which costs 1 % for each 10 us. The paper does not
say how late; it does find that equation (3), which has no such surplus, holds for a gain of 1.1.

Every known property of the test bed is included, whatever its effect. netem's default queue of 1000 packets
is not. It counts what GRO merged as one packet (sch_netem.c), so it holds between 1.5 MB and 64 MB, and the
paper does not say how much its router merged.
"""

from typing import Any

# Each set-up adds to the one before it. TESTBED is checked; the kernel world uses this machine's Linux.
LINK, BUCKET, INTERFACES, TESTBED = "plain link", "token bucket", "1 Gbit/s hosts", "Linux 4.15"
PUNCTUAL = "timer never late"
SETUPS = (LINK, BUCKET, INTERFACES, TESTBED, PUNCTUAL)

# 1 Gbit/s of Ethernet in IP packets of 1500 bytes, which occupy 1538 bytes of it.
INTERFACE_MBPS = 975.3
BUCKET_MS = 10
_BBR = {TESTBED: "extra_acked_gain=0,pacing_margin_percent=0"}
_BBR[PUNCTUAL] = f"{_BBR[TESTBED]},unpaced_header_bytes=52"


def interface(rate_mbps: float = INTERFACE_MBPS) -> dict[str, Any]:
    """The hosts' interface: a link that drops nothing, because sockets wait for it."""
    return {"kind": "link", "name": "interface", "rate": f"{rate_mbps:g} Mbit/s", "buffer": "2 GB"}


def path(setup: str, rate_mbps: int, interface_mbps: float = INTERFACE_MBPS) -> dict[str, Any]:
    """The elements that the set-up adds to a path of that rate."""
    added: dict[str, Any] = {}
    if setup != LINK:
        added["burst"] = f"{rate_mbps * 1000 // 8 * BUCKET_MS} B"
    if setup not in (LINK, BUCKET):
        added["before"] = [interface(interface_mbps)]
    return added


def controller(setup: str, name: str) -> str:
    """The controller as in the Linux of the set-up."""
    if setup not in _BBR or name.partition(":")[0] != "bbr1":
        return name
    return f"{name}{',' if ':' in name else ':'}{_BBR[setup]}"
