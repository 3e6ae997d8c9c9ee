//! smoltcp, a TCP in user space, in virtual time. Its datagrams are IP packets.

use std::collections::VecDeque;

use fullpipe_stack::{About, App, NEVER, Sent, Setup, Stack, State, serve};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// smoltcp's side of the path.
struct Wire {
    came: VecDeque<Vec<u8>>,
    leaves: VecDeque<Vec<u8>>,
    mtu: usize,
}

struct Came(Vec<u8>);
struct Leaves<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Came {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Leaves<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut packet = vec![0; length];
        let result = fill(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Came;
    type TxToken<'a> = Leaves<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Came, Leaves<'_>)> {
        Some((Came(self.came.pop_front()?), Leaves(&mut self.leaves)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaves<'_>> {
        Some(Leaves(&mut self.leaves))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut has = DeviceCapabilities::default();
        (has.medium, has.max_transmission_unit) = (Medium::Ip, self.mtu);
        has
    }
}

struct End {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl End {
    fn new(index: u8, setup: &Setup) -> Result<End, String> {
        let mut wire = Wire { came: VecDeque::new(), leaves: VecDeque::new(), mtu: setup.mtu };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = setup.seed.wrapping_add(u64::from(index));
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|all| {
            let _ = all.push(IpCidr::new(IpAddress::v4(10, 0, 0, index + 1), 24));
        });
        // Without a controller, all of it leaves at once, and an answer has at most 64 MiB. Memory is touched as it is used.
        let buffer = |bytes: u64| SocketBuffer::new(vec![0; bytes.clamp(1 << 16, 16 << 20) as usize]);
        let mut socket = Socket::new(buffer(setup.receive_window), buffer(setup.send_window));
        socket.set_congestion_control(match setup.controller.as_str() {
            "reno" => CongestionControl::Reno,
            "cubic" => CongestionControl::Cubic,
            "none" => CongestionControl::None,
            other => return Err(format!("smoltcp has no controller {other}")),
        });
        socket.set_nagle_enabled(false);
        if index == 1 {
            socket.listen(2000).map_err(|error| error.to_string())?;
        } else {
            let server = (IpAddress::v4(10, 0, 0, 2), 2000);
            socket.connect(interface.context(), server, 1000).map_err(|error| error.to_string())?;
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Ok(End { wire, interface, sockets, socket })
    }
}

struct Smoltcp {
    ends: [End; 2],
    now: u64,
    written: u64,
    delivered: u64,
    begun: bool,
}

/// smoltcp counts microseconds.
fn instant(now: u64) -> Instant {
    Instant::from_micros((now / 1000) as i64)
}

impl Stack for Smoltcp {
    fn receive(&mut self, end: usize, _: u64, _: u8, packet: &mut [u8]) {
        self.ends[end].wire.came.push_back(packet.to_vec());
    }

    fn timeout(&mut self, end: usize) -> u64 {
        if !self.begun {
            return NEVER;
        }
        let end = &mut self.ends[end];
        let at = end.interface.poll_at(instant(self.now), &end.sockets);
        at.map_or(NEVER, |at| at.total_micros() as u64 * 1000)
    }

    fn on_timeout(&mut self, _: usize, _: u64) {}

    fn application(&mut self, which: usize, now: u64, app: &App) {
        self.now = now;
        self.begun |= app.total > 0;
        if !self.begun {
            return;
        }
        let end = &mut self.ends[which];
        loop {
            let socket = end.sockets.get_mut::<Socket>(end.socket);
            let before = (self.delivered, self.written);
            if which == 0 {
                if app.stopped {
                    socket.abort();
                }
                while socket.can_send() && self.written < app.total {
                    let left = usize::try_from(app.total - self.written).unwrap_or(usize::MAX);
                    let write = |room: &mut [u8]| (room.len().min(left), room.len().min(left));
                    match socket.send(write) {
                        Ok(taken) if taken > 0 => self.written += taken as u64,
                        _ => break,
                    }
                }
            } else {
                while socket.can_recv() {
                    match socket.recv(|data| (data.len(), data.len())) {
                        Ok(taken) if taken > 0 => self.delivered += taken as u64,
                        _ => break,
                    }
                }
            }
            let polled = end.interface.poll(instant(now), &mut end.wire, &mut end.sockets);
            if (self.delivered, self.written) == before && polled == PollResult::None {
                break;
            }
        }
    }

    fn transmit(&mut self, end: usize, now: u64, out: &mut Vec<u8>) -> Option<Sent> {
        *out = self.ends[end].wire.leaves.pop_front()?;
        Some(Sent { at: now, ecn: 0, bytes: out.len(), each: out.len() })
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn state(&mut self) -> State {
        let socket = self.ends[0].sockets.get::<Socket>(self.ends[0].socket);
        State { connected: socket.may_send(), ..State::default() }
    }
}

fn main() -> std::io::Result<()> {
    let about = About {
        name: "smoltcp",
        version: "0.14.0",
        licence: "0BSD",
        controllers: &["cubic", "reno", "none"],
        is_ip: true,
        tells: &[],
        policy: "polled at each arrival and timer; writes fill the send buffer; no pacing, no Nagle, ACKs as by default",
        ..About::default()
    };
    serve(&about, |setup| {
        let ends = [End::new(0, setup)?, End::new(1, setup)?];
        Ok(Smoltcp { ends, now: 0, written: 0, delivered: 0, begun: false })
    })
}
