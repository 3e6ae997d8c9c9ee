//! A router between the near host and the emulated path, whose queue is Linux's own.
//!
//! A queue on the sending host itself would report its drops to TCP, which no network does. So the host is one namespace and
//! the router another, and a pair of `veth` devices connects them. Where the queue is on a TUN device, the path begins there. Where
//! it is on an Ethernet interface, which counts the header of each frame, a second pair leads to a gate, a namespace that only
//! hands on to the path what comes. Bursts of the host (GSO) stay whole all the way to the ferry, unless the queue splits them
//! or [they are to come split](LinuxQueue::comes_split).

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use fullpipe_record::QueueSample;

use crate::EmuError;
use crate::namespace::{current_network, enter_network, enter_new_network};
use crate::qdisc::{self, LinuxQueue, Refused};
use crate::settings::set_sysctl;
use crate::sys;
use crate::tun::{Address, Tun, disable_tso, limit_gso_segments, transmit_drops};

/// The address of the router's end of the path; nobody talks to it. From a block for tests of networks (RFC 2544), so that it is
/// nobody else's.
const ROUTER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The ends of the pair between the host and the router.
const HOST_DEVICE: &str = "fpnear";
const ROUTER_DEVICE: &str = "fprouter";
/// The ends of the pair between the router and the gate.
const OUT_DEVICE: &str = "fpout";
const GATE_DEVICE: &str = "fpgate";
/// Both ends of a pair have this address, so that neither asks for the other's (no ARP).
const MAC: &str = "02:00:00:00:00:01";

/// The router, and where it is.
pub(crate) struct Router {
    queue: LinuxQueue,
    tun: Arc<Tun>,
    /// The namespace of the queue, and its device.
    inside: OwnedFd,
    device: String,
    /// The namespace of the TUN device.
    gate: OwnedFd,
    host: OwnedFd,
}

/// What a router stands between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    /// The host.
    pub(crate) near: Ipv4Addr,
    /// The prefix of what is at the host's side, the host included, in bits.
    pub(crate) prefix: u8,
    /// The end of the path, if it is within that prefix.
    pub(crate) far: Ipv4Addr,
    /// The largest IP packet.
    pub(crate) mtu: u32,
    /// The most segments of a burst of the host.
    pub(crate) gso_max_segs: u16,
}

impl Between {
    /// The routes of a namespace between the two, in which the one device leads to the host and the other away from it.
    fn route(&self, inwards: &str, outwards: &str) -> Result<(), EmuError> {
        let Between { near, prefix, far, .. } = self;
        let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
        let inside = Ipv4Addr::from(u32::from(*near) & mask);
        ip(&format!("route add {inside}/{prefix} dev {inwards}"))?;
        ip(&format!("route add default dev {outwards}"))?;
        ip(&format!("route add {far}/32 dev {outwards}"))
    }
}

impl Router {
    /// Makes the router and the namespace of the host, and leaves the calling thread in it.
    pub(crate) fn create(queue: &LinuxQueue, between: Between) -> Result<Router, EmuError> {
        let Between { near, mtu, gso_max_segs, .. } = between;
        enter_new_network()?;
        let host = current_network()?;
        enter_new_network()?;
        let gate = current_network()?;
        let tun = Tun::create(Address { own: ROUTER, prefix: 32, mtu })?;
        set_sysctl("net.ipv4.ip_forward", "1")?;
        let (inside, device) = if queue.is_on_ethernet() {
            enter_new_network()?;
            let inside = current_network()?;
            set_sysctl("net.ipv4.ip_forward", "1")?;
            connect(&Pair { here: OUT_DEVICE, there: GATE_DEVICE, other: &gate }, mtu)?;
            enter_network(&gate)?;
            ip(&format!("link set {GATE_DEVICE} address {MAC} arp off up"))?;
            between.route(GATE_DEVICE, tun.name())?;
            enter_network(&inside)?;
            (inside, OUT_DEVICE.to_owned())
        } else {
            (current_network()?, tun.name().to_owned())
        };
        queue.install(&device)?;
        connect(&Pair { here: ROUTER_DEVICE, there: HOST_DEVICE, other: &host }, mtu)?;
        between.route(ROUTER_DEVICE, &device)?;
        enter_network(&host)?;
        if queue.comes_split() {
            disable_tso(HOST_DEVICE)?;
        }
        limit_gso_segments(HOST_DEVICE, gso_max_segs)?;
        ip(&format!("link set {HOST_DEVICE} address {MAC} arp off up"))?;
        ip(&format!("address add {near}/32 dev {HOST_DEVICE}"))?;
        ip(&format!("route add default dev {HOST_DEVICE} src {near}"))?;
        Ok(Router { queue: queue.clone(), tun: Arc::new(tun), inside, device, gate, host })
    }

    /// Where the path begins.
    pub(crate) fn tun(&self) -> Arc<Tun> {
        Arc::clone(&self.tun)
    }

    /// What its queue has counted, and the frames that were dropped by nobody's decision: on the way to the ferry, and between
    /// the ferry and the host on the way back (Linux: `veth_xmit`, where the backlog of the other end is full).
    pub(crate) fn finish(&self) -> Result<(QueueSample, u64), EmuError> {
        let at_host = transmit_drops(HOST_DEVICE);
        enter_network(&self.gate)?;
        let at_gate = transmit_drops(self.tun.name()) + transmit_drops(GATE_DEVICE);
        enter_network(&self.inside)?;
        let end = self.queue.sample(&self.device);
        // What the queue itself drops is not among the drops of its device.
        let inside = transmit_drops(OUT_DEVICE) + transmit_drops(ROUTER_DEVICE);
        enter_network(&self.host)?;
        Ok((end?, at_host + at_gate + inside))
    }
}

/// Two devices that are connected: one in the calling thread's namespace, and one in another.
struct Pair<'a> {
    here: &'a str,
    there: &'a str,
    other: &'a OwnedFd,
}

/// Makes a pair. The device here is up, the other one is in its namespace and down.
fn connect(pair: &Pair<'_>, mtu: u32) -> Result<(), EmuError> {
    let Pair { here, there, other } = pair;
    ip(&format!("link add {there} mtu {mtu} type veth peer name {here}"))?;
    ip(&format!("link set {here} mtu {mtu} address {MAC} arp off up"))?;
    let name = std::ffi::CString::new(*there).expect("device names have no NUL");
    let moved = sys::interface_index(&name)
        .and_then(|index| sys::set_link_u32(index, libc::IFLA_NET_NS_FD, other.as_raw_fd() as u32));
    moved.map_err(|error| EmuError::system("connect a host to its router", error))
}

fn ip(words: &str) -> Result<(), EmuError> {
    qdisc::run("ip", words).map(drop).map_err(|error| match error {
        Refused::NoTool(error) => EmuError::system("run ip of iproute2", error),
        Refused::QuantityText(message) => {
            EmuError::system(format!("run `ip {words}`"), std::io::Error::other(message))
        }
    })
}
