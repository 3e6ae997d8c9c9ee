//! TUN devices with virtio headers and offloads: whole GSO frames, no Ethernet, no checksums to compute.
//!
//! A device belongs to the network namespace of the thread that opens it and vanishes with its descriptor.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use fullpipe_scenario::spec::HostSpec;

use crate::EmuError;
use crate::frame::VNET_BYTES;
use crate::settings::set_sysctl;
use crate::sys;
use crate::sysctl::sysctl;

/// Devices are called this and a number.
pub(crate) const DEVICE_PREFIX: &str = "fullpipe";
/// Length of the device's queue towards the ferry, in frames. The kernel drops silently when it is full, so it is
/// large, and the end of a run checks for drops.
const QUEUE_FRAMES: u32 = 20_000;

/// One end of the emulated path.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
}

/// Address and size of a device.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The device's own address.
    pub own: Ipv4Addr,
    /// Bits of the network prefix.
    pub prefix: u8,
    /// The largest IP packet.
    pub mtu: u32,
}

impl Tun {
    /// Creates a device in the calling thread's network namespace, gives it an address and brings it up.
    ///
    /// # Errors
    /// When there is no `/dev/net/tun`, or the thread may not configure its namespace.
    pub fn create(address: Address) -> Result<Tun, EmuError> {
        let fd = sys::open_nonblocking(c"/dev/net/tun").map_err(EmuError::NoTun)?;
        let mut request = Request::new(&format!("{DEVICE_PREFIX}%d"));
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.0.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF takes an ifreq.
        unsafe { sys::ioctl(&fd, libc::TUNSETIFF, &mut request.0) }
            .map_err(|error| EmuError::system("create a TUN device", error))?;
        let tun = Tun { fd, name: request.name() };
        let mut header_bytes = VNET_BYTES as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ takes an int.
        unsafe { sys::ioctl(&tun.fd, libc::TUNSETVNETHDRSZ, &mut header_bytes) }
            .map_err(|error| EmuError::system("set the size of the TUN header", error))?;
        // IPv6 is not split by the ferry, so the kernel is not offered TSO6.
        // Frames with CWR, which a TCP sets that was notified of marks, are whole as well.
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO_ECN;
        sys::ioctl_number(&tun.fd, libc::TUNSETOFFLOAD, offloads.into())
            .map_err(|error| EmuError::system("enable offloads of the TUN device", error))?;
        tun.configure(address)?;
        Ok(tun)
    }

    fn configure(&self, address: Address) -> Result<(), EmuError> {
        let control = control_socket()?;
        let set = |what: &str, request: libc::Ioctl, fill: &dyn Fn(&mut libc::ifreq)| {
            let mut value = Request::new(&self.name);
            fill(&mut value.0);
            // SAFETY: every SIOCSIF* request takes an ifreq.
            unsafe { sys::ioctl(&control, request, &mut value.0) }
                .map_err(|error| EmuError::system(format!("set the {what} of {}", self.name), error))
        };
        let mask = Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(address.prefix)).unwrap_or(0));
        self.set_queue_length()?;
        // Neighbour discovery and multicast reports would be foreign traffic on the path. [`Tun::add_ipv6`] does without them.
        let _ = set_sysctl(&format!("net.ipv6.conf.{}.disable_ipv6", self.name), "1");
        set("MTU", libc::SIOCSIFMTU as libc::Ioctl, &|r| r.ifr_ifru.ifru_mtu = address.mtu as i32)?;
        set("address", libc::SIOCSIFADDR as libc::Ioctl, &|r| r.ifr_ifru.ifru_addr = generic(address.own))?;
        set("network mask", libc::SIOCSIFNETMASK as libc::Ioctl, &|r| {
            r.ifr_ifru.ifru_netmask = generic(mask)
        })?;
        bring_up(&self.name)
    }

    /// By rtnetlink, because the ioctl needs rights that a user namespace cannot give.
    fn set_queue_length(&self) -> Result<(), EmuError> {
        let name = CString::new(&*self.name).expect("device names have no NUL");
        let set = sys::interface_index(&name)
            .and_then(|index| sys::set_link_u32(index, libc::IFLA_TXQLEN, QUEUE_FRAMES));
        set.map_err(|error| EmuError::system(format!("set the queue length of {}", self.name), error))
    }

    /// Sends everything that has no other route through this device.
    ///
    /// # Errors
    /// When the kernel refuses it: `gateway` is not on this device's network.
    pub fn add_default_route(&self, gateway: Ipv4Addr) -> Result<(), EmuError> {
        let control = control_socket()?;
        // SAFETY: all-zero is a valid rtentry.
        let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
        route.rt_dst = generic(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = generic(Ipv4Addr::UNSPECIFIED);
        route.rt_gateway = generic(gateway);
        route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
        // SAFETY: SIOCADDRT takes an rtentry.
        unsafe { sys::ioctl(&control, libc::SIOCADDRT as libc::Ioctl, &mut route) }
            .map_err(|error| EmuError::system("add a default route", error))
    }

    /// Gives the device an IPv6 address, too. It has no link-local address, so that it never sends by itself: no neighbour or router
    /// discovery, no multicast reports. Returns false where IPv6 is not possible: the kernel has none, or the MTU is below what it
    /// needs (RFC 8200 section 5).
    pub(crate) fn add_ipv6(&self, address: Ipv6Addr, prefix: u8, mtu: u32) -> Result<bool, EmuError> {
        const LEAST_MTU: u32 = 1280;
        let setting = |name: &str| format!("net.ipv6.conf.{}.{name}", self.name);
        if mtu < LEAST_MTU || sysctl(&setting("disable_ipv6")).is_none() {
            return Ok(false);
        }
        // 1: no link-local address (Linux: IN6_ADDR_GEN_MODE_NONE).
        set_sysctl(&setting("addr_gen_mode"), "1")?;
        set_sysctl(&setting("accept_ra"), "0")?;
        set_device_flags(&self.name, libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_NOARP)?;
        set_sysctl(&setting("disable_ipv6"), "0")?;
        sys::add_ipv6_address(self.index()?, address, prefix)
            .map_err(|error| EmuError::system(format!("add an IPv6 address to {}", self.name), error))?;
        Ok(true)
    }

    /// Sends everything of IPv6 that has no other route through this device.
    pub(crate) fn add_default_route6(&self) -> Result<(), EmuError> {
        sys::add_ipv6_default_route(self.index()?)
            .map_err(|error| EmuError::system("add a default route for IPv6", error))
    }

    fn index(&self) -> Result<u32, EmuError> {
        let name = CString::new(&*self.name).expect("device names have no NUL");
        sys::interface_index(&name)
            .map_err(|error| EmuError::system(format!("find the device {}", self.name), error))
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads one frame with its virtio header; `None` when none waits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match sys::read(&self.fd, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes one frame with its virtio header.
    pub(crate) fn write(&self, slices: &[io::IoSlice<'_>]) -> io::Result<()> {
        sys::writev(&self.fd, slices).map(drop)
    }

    /// For `poll`.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Brings a device of the calling thread's namespace up.
pub(crate) fn bring_up(name: &str) -> Result<(), EmuError> {
    set_device_flags(name, libc::IFF_UP | libc::IFF_RUNNING)
}

fn set_device_flags(name: &str, flags: libc::c_int) -> Result<(), EmuError> {
    let control = control_socket()?;
    let mut request = Request::new(name);
    request.0.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: SIOCSIFFLAGS takes an ifreq.
    unsafe { sys::ioctl(&control, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request.0) }
        .map_err(|error| EmuError::system(format!("bring {name} up"), error))
}

/// Has the kernel split TCP's frames before they leave through a device of the calling thread's namespace (ethtool(8): `tso off`).
pub(crate) fn disable_tso(name: &str) -> Result<(), EmuError> {
    /// ETHTOOL_STSO of linux/ethtool.h; SIOCETHTOOL of linux/sockios.h.
    const SET_TSO: u32 = 0x1f;
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let control = control_socket()?;
    // struct ethtool_value: the command, and off.
    let mut value = [SET_TSO, 0];
    let mut request = Request::new(name);
    request.0.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL takes an ifreq whose data is, for this command, an ethtool_value, which outlives the call.
    unsafe { sys::ioctl(&control, SIOCETHTOOL, &mut request.0) }
        .map_err(|error| EmuError::system(format!("have frames split before {name}"), error))
}

/// Has TCP hand at most so many segments as one to a device of the calling thread's namespace (ip-link(8): `gso_max_segs`).
pub(crate) fn limit_gso_segments(name: &str, most: u16) -> Result<(), EmuError> {
    if most == HostSpec::GSO_MAX_SEGS {
        return Ok(());
    }
    let device = CString::new(name).expect("device names have no NUL");
    let set = sys::interface_index(&device)
        .and_then(|index| sys::set_link_u32(index, libc::IFLA_GSO_MAX_SEGS, most.into()));
    set.map_err(|error| EmuError::system(format!("limit the segments of a burst through {name}"), error))
}

/// Frames that the kernel dropped on their way out of `device`, because the ferry did not read them in time.
/// Looks in the calling thread's namespace.
pub(crate) fn transmit_drops(device: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    parse_transmit_drops(&table, device).unwrap_or(0)
}

fn parse_transmit_drops(table: &str, device: &str) -> Option<u64> {
    /// Column of `drop` under `Transmit`: eight columns of `Receive`, then bytes, packets, errs, drop.
    const DROP: usize = 11;
    let row = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    row.split_whitespace().nth(DROP)?.parse().ok()
}

fn control_socket() -> Result<OwnedFd, EmuError> {
    sys::socket(libc::SOCK_DGRAM).map_err(|error| EmuError::system("open a control socket", error))
}

fn generic(address: Ipv4Addr) -> libc::sockaddr {
    let address = sys::sockaddr(std::net::SocketAddrV4::new(address, 0));
    // SAFETY: sockaddr_in and sockaddr have the same size and any bytes are valid in either.
    unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) }
}

/// An `ifreq` with a name in it.
struct Request(libc::ifreq);

impl Request {
    fn new(name: &str) -> Request {
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        assert!(name.len() < request.ifr_name.len(), "device name {name:?} is too long");
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        Request(request)
    }

    fn name(&self) -> String {
        let bytes = self.0.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_come_from_right_column() {
        let table = "Inter-|   Receive                            |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo\n    \
            lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            fullpipe0: 1 2 3 4 5 6 7 8 9 10 11 77 13 14 15 16\n";
        assert_eq!(parse_transmit_drops(table, "fullpipe0"), Some(77));
        assert_eq!(parse_transmit_drops(table, "fullpipe1"), None);
    }
}
