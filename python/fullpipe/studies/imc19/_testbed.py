"""What the paper's test bed was made of, as far as it or its tools' own texts say (section 3).

* Hosts: "the network interfaces of all hosts have a 1Gbps peak bandwidth", so that the router sees no burst
  that is faster. The rate of a path is that of its router, whose buffer is what the paper varies: at 1 Gbit/s
  an interface of the same rate, with no buffer that drops, would take its place, and is left out.
* Router: tc-tbf under OpenWRT. The paper does not give the bucket's depth; the manual that it cites
  (tc-tbf(8), "burst") says what it has to be at least: the rate by the timer's frequency. That is 100 Hz in
  OpenWRT's kernels for this router (ARM's default, which target/linux/mvebu leaves), so 10 ms of the rate.
* Linux 4.15, pacing inside TCP. Its BBR adds nothing for aggregated ACKs (that came in 5.1) and stays by no
  margin below its estimate (4.20).

One thing is shown beside, in imc19.retx, and not judged. That Linux computes the rate of packets with headers
and spends it on payload (`bbr_rate_bytes_per_sec`, `tcp_internal_pacing`) is 3.6 % above the estimate; but
what its timer comes late, once a millisecond, is lost to it, a per cent for each 10 us. The paper does not
say how late; it does find equation (3), in which there is no such surplus, to hold for a gain of 1.1.

What is known of a set-up is in it whatever comes of it. netem's default queue of 1000 packets is not: over
200 ms that passes 60 Mbit/s, and the paper has 386.
"""

from typing import Any

# Each adds to the one before it. The test bed is what is judged; the kernel world has this machine's Linux.
LINK, BUCKET, INTERFACES, TESTBED = "plain link", "token bucket", "1 Gbit/s hosts", "Linux 4.15"
PUNCTUAL = "timer never late"
SETUPS = (LINK, BUCKET, INTERFACES, TESTBED, PUNCTUAL)

INTERFACE_MBPS = 1000
BUCKET_MS = 10
_BBR = {TESTBED: "extra_acked_gain=0,pacing_margin_percent=0"}
_BBR[PUNCTUAL] = f"{_BBR[TESTBED]},unpaced_header_bytes=52"


def path(setup: str, rate_mbps: int, interface_mbps: float = INTERFACE_MBPS) -> dict[str, Any]:
    """What the set-up adds to a path of that rate."""
    added: dict[str, Any] = {}
    if setup != LINK:
        added["burst"] = f"{rate_mbps * 1000 // 8 * BUCKET_MS} B"
    if setup not in (LINK, BUCKET) and rate_mbps < interface_mbps:
        # A socket waits for its own interface (TCP Small Queues): nothing is dropped there.
        interface = {
            "kind": "link",
            "name": "interface",
            "rate": f"{interface_mbps:g} Mbit/s",
            "buffer": "2 GB",
        }
        added["before"] = [interface]
    return added


def controller(setup: str, name: str) -> str:
    """A controller as the set-up's Linux has it."""
    if setup not in _BBR or name.partition(":")[0] != "bbr1":
        return name
    return f"{name}{',' if ':' in name else ':'}{_BBR[setup]}"
