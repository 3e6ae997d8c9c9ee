//! Tencent's tquic in virtual time. It reads the clock by `clock_gettime`: that of the process is the run's.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_long;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use fullpipe_stack::{About, App, NEVER, Sent, Setup, Stack, State, fill_random, serve};
use tquic::{
    Config, Connection, Endpoint, PacketInfo, PacketSendHandler, Shutdown, TlsConfig, TransportHandler,
};

fullpipe_stack::virtual_clock!();

/// Most of what BoringSSL draws (`build.rs`).
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_RAND_bytes(out: *mut u8, length: usize) -> i32 {
    // SAFETY: as of `RAND_bytes`, `out` may be written.
    fill_random(unsafe { std::slice::from_raw_parts_mut(out, length) });
    1
}

unsafe extern "C" {
    fn __real_syscall(number: c_long, ...) -> c_long;
}

/// What tquic draws: the crates `rand` and `ring` ask the kernel by its number. A C function of six words is called as a variadic one.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if number != libc::SYS_getrandom {
        // SAFETY: the words of the caller.
        return unsafe { __real_syscall(number, a, b, c, d, e, f) };
    }
    if b > 0 {
        // SAFETY: as of `getrandom`, `b` bytes at `a` may be written.
        fill_random(unsafe { std::slice::from_raw_parts_mut(a as *mut u8, b) });
    }
    b as c_long
}

/// What an endpoint tells.
#[derive(Default)]
struct Seen {
    leaves: VecDeque<Vec<u8>>,
    delivered: u64,
    is_closed: bool,
}

#[derive(Clone, Default)]
struct Ears(Rc<RefCell<Seen>>);

impl PacketSendHandler for Ears {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        self.0.borrow_mut().leaves.extend(packets.iter().map(|(datagram, _)| datagram.clone()));
        Ok(packets.len())
    }
}

impl TransportHandler for Ears {
    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut piece = [0; 1 << 14];
        while let Ok((bytes, _)) = connection.stream_read(stream, &mut piece) {
            self.0.borrow_mut().delivered += bytes as u64;
        }
    }
    fn on_conn_closed(&mut self, _: &mut Connection) {
        self.0.borrow_mut().is_closed = true;
    }
    fn on_conn_created(&mut self, _: &mut Connection) {}
    fn on_conn_established(&mut self, _: &mut Connection) {}
    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}
    fn on_stream_writable(&mut self, _: &mut Connection, _: u64) {}
    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

struct Tquic {
    ends: [Endpoint; 2],
    seen: [Ears; 2],
    /// When an endpoint wants to be called, as it said when it was called last.
    due: [u64; 2],
    connection: Option<u64>,
    stream: Option<u64>,
    written: u64,
}

#[expect(clippy::disallowed_methods, reason = "this program's clock is the run's")]
fn run_time() -> Instant {
    Instant::now()
}

fn addresses(end: usize) -> (SocketAddr, SocketAddr) {
    let of = |host| SocketAddr::from(([10, 0, 0, host as u8 + 1], 1000));
    (of(end), of(1 - end))
}

fn config(setup: &Setup, tls: TlsConfig) -> tquic::Result<Config> {
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    config.set_recv_udp_payload_size(setup.mtu as u16);
    config.set_send_udp_payload_size(setup.mtu);
    let window = setup.receive_window;
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_uni(window);
    config.set_congestion_control_algorithm(setup.controller.parse()?);
    Ok(config)
}

/// tquic takes files.
fn server_tls() -> Result<TlsConfig, String> {
    let folder = std::env::temp_dir().join(format!("stack-tquic-{}", std::process::id()));
    let write = || {
        std::fs::create_dir(&folder)?;
        std::fs::write(folder.join("cert.pem"), include_str!("../../keys/cert.pem"))?;
        std::fs::write(folder.join("key.pem"), include_str!("../../keys/key.pem"))
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))?;
    let file = |name| folder.join(name).to_string_lossy().into_owned();
    let tls =
        TlsConfig::new_server_config(&file("cert.pem"), &file("key.pem"), vec![b"transfer".to_vec()], false);
    let _ = std::fs::remove_dir_all(&folder);
    tls.map_err(in_words)
}

fn in_words(error: tquic::Error) -> String {
    format!("tquic cannot be set up: {error}")
}

impl Tquic {
    fn new(setup: &Setup) -> Result<Tquic, String> {
        let mut client = TlsConfig::new_client_config(vec![b"transfer".to_vec()], false).map_err(in_words)?;
        client.set_verify(false);
        let configs =
            [config(setup, client).map_err(in_words)?, config(setup, server_tls()?).map_err(in_words)?];
        let seen = [Ears::default(), Ears::default()];
        let mut is_server = false;
        let ends = configs.map(|config| {
            let ears = &seen[usize::from(is_server)];
            let end =
                Endpoint::new(Box::new(config), is_server, Box::new(ears.clone()), Rc::new(ears.clone()));
            is_server = true;
            end
        });
        Ok(Tquic { ends, seen, due: [NEVER; 2], connection: None, stream: None, written: 0 })
    }

    fn client(&mut self) -> Option<&mut Connection> {
        self.ends[0].conn_get_mut(self.connection?)
    }

    fn write(&mut self, app: &App) -> tquic::Result<()> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        if app.total > 0 && self.connection.is_none() {
            let (local, remote) = addresses(0);
            self.connection =
                Some(self.ends[0].connect(local, remote, Some("localhost"), None, None, None)?);
        }
        let (stream, mut written) = (self.stream, self.written);
        let Some(connection) = self.client().filter(|connection| connection.is_established()) else {
            return Ok(());
        };
        let stream = match stream {
            Some(stream) => stream,
            None => connection.stream_uni_new(0, false)?,
        };
        if app.stopped {
            let _ = connection.stream_shutdown(stream, Shutdown::Write, 0);
        }
        while !app.stopped && written < app.total {
            let piece = usize::try_from(app.total - written).unwrap_or(usize::MAX).min(ZEROS.len());
            let is_last = app.total != NEVER && written + piece as u64 == app.total;
            match connection.stream_write(stream, Bytes::from_static(&ZEROS[..piece]), is_last) {
                Ok(taken) if taken > 0 => written += taken as u64,
                _ => break,
            }
        }
        (self.stream, self.written) = (Some(stream), written);
        Ok(())
    }
}

impl Stack for Tquic {
    fn receive(&mut self, end: usize, _: u64, _: u8, datagram: &mut [u8]) {
        let (dst, src) = addresses(end);
        if let Err(error) = self.ends[end].recv(datagram, &PacketInfo { src, dst, time: run_time() }) {
            eprintln!("end {end}: {error}");
        }
    }

    fn timeout(&mut self, end: usize) -> u64 {
        self.due[end]
    }

    fn on_timeout(&mut self, end: usize, _: u64) {
        self.ends[end].on_timeout(run_time());
    }

    fn application(&mut self, end: usize, now: u64, app: &App) {
        let written = if end == 0 { self.write(app) } else { Ok(()) };
        if let Err(error) = written.and_then(|()| self.ends[end].process_connections()) {
            eprintln!("end {end}: {error}");
        }
        // Its pacer rounds a wait down, and what a shorter one gives to nothing: called in time, it would wait forever.
        self.due[end] = self.ends[end].timeout().map_or(NEVER, |wait| now + wait.as_nanos() as u64 + 1);
    }

    fn transmit(&mut self, end: usize, now: u64, out: &mut Vec<u8>) -> Option<Sent> {
        *out = self.seen[end].0.borrow_mut().leaves.pop_front()?;
        Some(Sent { at: now, ecn: 0, bytes: out.len(), each: out.len() })
    }

    fn delivered(&self) -> u64 {
        self.seen[1].0.borrow().delivered
    }

    fn state(&mut self) -> State {
        let failed = self.seen.iter().any(|ears| ears.0.borrow().is_closed);
        let (local, remote) = addresses(0);
        let Some(connection) = self.client() else { return State { failed, ..State::default() } };
        let connected = connection.is_established();
        let Ok(stats) = connection.get_path_stats(local, remote) else { return State::default() };
        let nanos = |micros: u64| if connected { micros * 1000 } else { NEVER };
        State {
            connected,
            failed,
            window: stats.final_cwnd,
            srtt_ns: nanos(stats.srtt),
            min_rtt_ns: nanos(stats.min_rtt),
            pacing_bps: stats.pacing_rate * 8,
            lost: stats.lost_count,
            acked: stats.acked_count,
            ..State::default()
        }
    }
}

fn main() -> std::io::Result<()> {
    let about = About {
        name: "tquic",
        version: "1.6.0",
        licence: "Apache-2.0",
        controllers: &["bbr", "bbr3", "copa", "cubic"],
        tells: &["window", "srtt", "min_rtt", "pacing_rate", "lost", "acked"],
        policy: "its pacer is kept to: what process_connections() sends, then a nanosecond after its next timer; it finds the packet size by probes",
        ..About::default()
    };
    serve(&about, Tquic::new)
}
