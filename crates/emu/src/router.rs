//! A router between the near host and the emulated path, whose queue is Linux's own.
//!
//! A queue on the sending host itself would report its drops to TCP, which no network does. So the host is one namespace and
//! the router another, and a pair of `veth` devices connects them. The host's device has no TSO: frames are split before they
//! reach the router, so that its queue takes single packets, as the emulator's does. The path begins at the router's TUN device.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use fullpipe_record::QueueSample;

use crate::EmuError;
use crate::namespace::{enter_new_network, set_sysctl};
use crate::path::{FAR, NEAR};
use crate::qdisc::{self, LinuxQueue, Refused};
use crate::sys;
use crate::tun::{Address, Tun, disable_tso, transmit_drops};

/// The router's own address; nobody talks to it.
const ROUTER: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 5);
/// The ends of the pair.
const HOST_DEVICE: &str = "fpnear";
const ROUTER_DEVICE: &str = "fprouter";
/// Both ends have this address, so that neither asks for the other's (no ARP).
const MAC: &str = "02:00:00:00:00:01";

/// The router, and where it is.
pub(crate) struct Router {
    queue: LinuxQueue,
    tun: Arc<Tun>,
    inside: OwnedFd,
    host: OwnedFd,
}

impl Router {
    /// Makes the router and the host's namespace, in which it leaves the calling thread.
    pub(crate) fn create(queue: &LinuxQueue, mtu: u32) -> Result<Router, EmuError> {
        enter_new_network()?;
        let host = current_network()?;
        enter_new_network()?;
        let inside = current_network()?;
        let tun = Tun::create(Address { own: ROUTER, prefix: 30, mtu })?;
        set_sysctl("net.ipv4.ip_forward", "1")?;
        queue.install(tun.name())?;
        ip(&format!("link add {HOST_DEVICE} mtu {mtu} type veth peer name {ROUTER_DEVICE}"))?;
        ip(&format!("link set {ROUTER_DEVICE} mtu {mtu} address {MAC} arp off up"))?;
        let moved = sys::interface_index(c"fpnear")
            .and_then(|index| sys::set_link_u32(index, libc::IFLA_NET_NS_FD, host.as_raw_fd() as u32));
        moved.map_err(|error| EmuError::system("connect a host to its router", error))?;
        ip(&format!("route add {NEAR}/32 dev {ROUTER_DEVICE}"))?;
        ip(&format!("route add {FAR}/32 dev {}", tun.name()))?;
        enter(&host)?;
        disable_tso(HOST_DEVICE)?;
        ip(&format!("link set {HOST_DEVICE} address {MAC} arp off up"))?;
        ip(&format!("address add {NEAR}/32 dev {HOST_DEVICE}"))?;
        ip(&format!("route add {FAR}/32 dev {HOST_DEVICE} src {NEAR}"))?;
        Ok(Router { queue: queue.clone(), tun: Arc::new(tun), inside, host })
    }

    /// Where the path begins.
    pub(crate) fn tun(&self) -> Arc<Tun> {
        Arc::clone(&self.tun)
    }

    /// What its queue has counted, and the frames that were dropped on the way to the ferry by nobody's decision.
    pub(crate) fn finish(&self) -> Result<(QueueSample, u64), EmuError> {
        let at_host = transmit_drops(HOST_DEVICE);
        enter(&self.inside)?;
        let end = self.queue.sample(self.tun.name());
        let dropped = transmit_drops(self.tun.name());
        enter(&self.host)?;
        Ok((end?, at_host + dropped))
    }
}

fn current_network() -> Result<OwnedFd, EmuError> {
    let file = File::open("/proc/thread-self/ns/net");
    file.map(OwnedFd::from).map_err(|error| EmuError::system("open the network namespace", error))
}

fn enter(namespace: &OwnedFd) -> Result<(), EmuError> {
    sys::process::enter_network(namespace)
        .map_err(|error| EmuError::system("enter a network namespace", error))
}

fn ip(words: &str) -> Result<(), EmuError> {
    qdisc::run("ip", words).map(drop).map_err(|error| match error {
        Refused::NoTool(error) => EmuError::system("run ip of iproute2", error),
        Refused::Said(said) => EmuError::system(format!("run `ip {words}`"), std::io::Error::other(said)),
    })
}
