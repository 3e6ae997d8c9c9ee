"""The paper's test bed, as far as the paper or the documentation of its tools describe it (section 3).

* Hosts: "the network interfaces of all hosts have a 1Gbps peak bandwidth", so the router sees no faster
  bursts. The rate of a path is that of its router, and the paper varies the router's buffer. At 1 Gbit/s the
  interface is left out: with the same rate and a buffer that never drops it would be the bottleneck instead.
* Router: tc-tbf under OpenWRT. The paper does not give the depth of the bucket. The manual that it
  cites (tc-tbf(8), "burst") gives a minimum: the rate divided by the timer frequency. That is 100 Hz in
  OpenWRT's kernels for this router (ARM's default, which target/linux/mvebu keeps), so the bucket holds
  10 ms of the rate.
* Linux 4.15 with pacing inside TCP. Its BBR has no allowance for aggregated ACKs (added in 5.1) and no pacing
  margin (added in 4.20).

One effect is shown in imc19.retx and not checked. Linux computes the pacing rate for packets with headers
and spends it on payload (`bbr_rate_bytes_per_sec`, `tcp_internal_pacing`), which gives 3.6 % more than the
estimate. But the timer fires late, once per millisecond, which costs 1 % for each 10 us. The paper does not
say how late; it does find that equation (3), which has no such surplus, holds for a gain of 1.1.

Every known property of the test bed is included, whatever its effect. netem's default queue of 1000 packets
is not: with 200 ms it would limit goodput to 60 Mbit/s, and the paper reports 386.
"""

from typing import Any

# Each set-up adds to the one before it. TESTBED is checked; the kernel world uses this machine's Linux.
LINK, BUCKET, INTERFACES, TESTBED = "plain link", "token bucket", "1 Gbit/s hosts", "Linux 4.15"
PUNCTUAL = "timer never late"
SETUPS = (LINK, BUCKET, INTERFACES, TESTBED, PUNCTUAL)

INTERFACE_MBPS = 1000
BUCKET_MS = 10
_BBR = {TESTBED: "extra_acked_gain=0,pacing_margin_percent=0"}
_BBR[PUNCTUAL] = f"{_BBR[TESTBED]},unpaced_header_bytes=52"


def path(setup: str, rate_mbps: int, interface_mbps: float = INTERFACE_MBPS) -> dict[str, Any]:
    """The elements that the set-up adds to a path of that rate."""
    added: dict[str, Any] = {}
    if setup != LINK:
        added["burst"] = f"{rate_mbps * 1000 // 8 * BUCKET_MS} B"
    if setup not in (LINK, BUCKET) and rate_mbps < interface_mbps:
        # A socket waits for its own interface (TCP Small Queues), so nothing is dropped here.
        interface = {
            "kind": "link",
            "name": "interface",
            "rate": f"{interface_mbps:g} Mbit/s",
            "buffer": "2 GB",
        }
        added["before"] = [interface]
    return added


def controller(setup: str, name: str) -> str:
    """The controller as in the Linux of the set-up."""
    if setup not in _BBR or name.partition(":")[0] != "bbr1":
        return name
    return f"{name}{',' if ':' in name else ':'}{_BBR[setup]}"
