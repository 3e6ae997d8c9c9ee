//! Cloudflare's quiche in virtual time. It reads the clock by `clock_gettime`: that of the process is the run's.

use std::net::SocketAddr;
use std::time::Instant;

use fullpipe_stack::{About, App, NEVER, Sent, Setup, Stack, State, fill_random, serve};
use quiche::{Config, Connection, ConnectionId, Error, RecvInfo};

fullpipe_stack::virtual_clock!();

/// What quiche draws, and most of what BoringSSL does (`build.rs`). Without it, two runs differ in the packet numbers that they skip.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_RAND_bytes(out: *mut u8, length: usize) -> i32 {
    // SAFETY: as of `RAND_bytes`, `out` may be written.
    fill_random(unsafe { std::slice::from_raw_parts_mut(out, length) });
    1
}

struct Quiche {
    ends: [Connection; 2],
    addresses: [SocketAddr; 2],
    origin: Instant,
    written: u64,
    delivered: u64,
    zeros: Vec<u8>,
    mtu: usize,
    /// When the next datagram may leave, of a controller that wants its caller to wait.
    release: [u64; 2],
    waits: bool,
    begun: bool,
}

/// A folder with the certificate and its key: quiche takes files.
fn keys() -> Result<std::path::PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("stack-quiche-{}", std::process::id()));
    let write = || {
        std::fs::create_dir(&folder)?;
        std::fs::write(folder.join("cert.pem"), include_str!("../../keys/cert.pem"))?;
        std::fs::write(folder.join("key.pem"), include_str!("../../keys/key.pem"))
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn config(setup: &Setup, keys: Option<&std::path::Path>) -> quiche::Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    if let Some(keys) = keys {
        config.load_cert_chain_from_pem_file(&keys.join("cert.pem").to_string_lossy())?;
        config.load_priv_key_from_pem_file(&keys.join("key.pem").to_string_lossy())?;
    }
    config.verify_peer(false);
    config.set_application_protos(&[b"transfer"])?;
    config.set_max_recv_udp_payload_size(setup.mtu);
    config.set_max_send_udp_payload_size(setup.mtu);
    let window = setup.receive_window;
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_bidi(4);
    config.set_disable_active_migration(true);
    config.set_cc_algorithm_name(&setup.controller)?;
    config.enable_pacing(true);
    Ok(config)
}

impl Quiche {
    fn new(setup: &Setup) -> Result<Quiche, String> {
        let addresses = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 1000)));
        let mut id = [[0; 16]; 2];
        id.iter_mut().for_each(|one| fill_random(one));
        let ids = id.each_ref().map(|one| ConnectionId::from_ref(one));
        let keys = keys()?;
        let in_words = |error: Error| format!("quiche cannot be set up: {error}");
        let mut of_client = config(setup, None).map_err(in_words)?;
        let of_server = config(setup, Some(&keys));
        let _ = std::fs::remove_dir_all(&keys);
        let mut of_server = of_server.map_err(in_words)?;
        let client = quiche::connect(Some("localhost"), &ids[0], addresses[0], addresses[1], &mut of_client);
        let server = quiche::accept(&ids[1], None, addresses[1], addresses[0], &mut of_server);
        Ok(Quiche {
            ends: [client.map_err(in_words)?, server.map_err(in_words)?],
            addresses,
            origin: Instant::now(),
            written: 0,
            delivered: 0,
            zeros: vec![0; 1 << 16],
            mtu: setup.mtu,
            release: [NEVER; 2],
            waits: setup.controller.starts_with("bbr"),
            begun: false,
        })
    }

    fn at(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.origin).as_nanos() as u64
    }
}

impl Stack for Quiche {
    fn receive(&mut self, end: usize, _: u64, _: u8, datagram: &mut [u8]) {
        let info = RecvInfo { from: self.addresses[1 - end], to: self.addresses[end] };
        if let Err(error) = self.ends[end].recv(datagram, info)
            && error != Error::Done
        {
            eprintln!("end {end}: {error}");
        }
    }

    fn timeout(&mut self, end: usize) -> u64 {
        let timer = self.ends[end].timeout_instant().map_or(NEVER, |at| self.at(at));
        timer.min(self.release[end])
    }

    fn on_timeout(&mut self, end: usize, _: u64) {
        self.release[end] = NEVER;
        if self.ends[end].timeout_instant().is_some_and(|at| at <= Instant::now()) {
            self.ends[end].on_timeout();
        }
    }

    fn application(&mut self, end: usize, _: u64, app: &App) {
        self.begun |= app.total > 0;
        let connection = &mut self.ends[end];
        if end == 0 {
            if app.stopped {
                let _ = connection.stream_shutdown(0, quiche::Shutdown::Write, 0);
                return;
            }
            while connection.is_established() && self.written < app.total {
                let piece =
                    usize::try_from(app.total - self.written).unwrap_or(usize::MAX).min(self.zeros.len());
                let is_last = app.total != NEVER && self.written + piece as u64 == app.total;
                match connection.stream_send(0, &self.zeros[..piece], is_last) {
                    Ok(taken) => self.written += taken as u64,
                    Err(_) => break,
                }
            }
        } else {
            while let Some(stream) = connection.stream_readable_next() {
                while let Ok((bytes, _)) = connection.stream_recv(stream, &mut self.zeros) {
                    self.delivered += bytes as u64;
                }
            }
        }
    }

    fn transmit(&mut self, end: usize, _: u64, out: &mut Vec<u8>) -> Option<Sent> {
        if !self.begun {
            return None;
        }
        // BBR wants its caller to wait; the others give each datagram the time at which it should leave.
        if self.waits
            && let Some(at) =
                self.ends[end].get_next_release_time().and_then(|release| release.time(Instant::now()))
        {
            self.release[end] = self.at(at);
            return None;
        }
        out.resize(self.mtu, 0);
        let (bytes, info) = self.ends[end].send(out).ok()?;
        Some(Sent { at: self.at(info.at), ecn: 0, bytes, each: bytes })
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn state(&mut self) -> State {
        let Some(stats) = self.ends[0].path_stats().next() else { return State::default() };
        State {
            connected: self.ends[0].is_established(),
            failed: self.ends[0].is_closed(),
            window: stats.cwnd as u64,
            srtt_ns: stats.rtt.as_nanos() as u64,
            min_rtt_ns: stats.min_rtt.map_or(NEVER, |rtt| rtt.as_nanos() as u64),
            lost: stats.lost as u64,
            ..State::default()
        }
    }
}

fn main() -> std::io::Result<()> {
    let about = About {
        name: "quiche",
        version: "0.30.0",
        licence: "BSD-2-Clause",
        controllers: &["cubic", "reno", "bbr2_gcongestion"],
        tells: &["window", "srtt", "min_rtt", "lost"],
        policy: "release times are kept: datagrams leave when send() says, and bbr2 is not asked before its next release",
        ..About::default()
    };
    serve(&about, Quiche::new)
}
