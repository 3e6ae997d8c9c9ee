//! Datagrams over a path that marks, and what the far host's kernel counts of them.
//!
//! Half of the datagrams are ECN-capable. The queue marks while more than 5 packets wait. Prints what the path marked and let
//! through, and the counters of the far host: packets by codepoint, and those with wrong checksums. Exit code 3 says that no
//! path can be made here.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use fullpipe_emu::{EmuError, End, FAR, Path, sys};
use fullpipe_scenario::{Format, resolve};

const NOT_PERMITTED: u8 = 3;
const SCENARIO: &str = r#"
path = { rate = "8 Mbit/s", rtt = "4 ms", buffer = "1 MB", queue = "step:threshold=5" }
flows = [{ controller = "reno" }]
"#;
/// Of either kind.
const COUNT: u16 = 100;
const PORT: u16 = 4433;
const ECT0: i32 = 0b10;
/// The link takes a millisecond for each datagram of 1000 bytes.
const LONG_ENOUGH: fullpipe_units::Duration = fullpipe_units::Duration::from_millis(500);

fn main() -> ExitCode {
    fullpipe_emu::die_with_parent();
    let spec = resolve(SCENARIO, Format::Toml, None).expect("a valid scenario");
    let path = Path::of(&spec, 1);
    let carried = match path.carry(send, count) {
        Ok(carried) => carried,
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            let permitted = !matches!(error, EmuError::NotPermitted { .. } | EmuError::NoTun(_));
            return ExitCode::from(if permitted { 1 } else { NOT_PERMITTED });
        }
    };
    let [forward, _] = carried.ferried.counts;
    println!("marked {} left {} plain {COUNT}", carried.ferried.marked[0], forward.left.packets);
    println!("{}", carried.far);
    ExitCode::SUCCESS
}

/// The near host: sends everything at once.
fn send(end: End<'_>) -> Result<(), EmuError> {
    let failed = |error| EmuError::system("send datagrams", error);
    let socket = OwnedFd::from(UdpSocket::bind("0.0.0.0:0").map_err(failed)?);
    sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_TOS, &ECT0.to_ne_bytes()).map_err(failed)?;
    let capable = UdpSocket::from(socket);
    let plain = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    let started = end.start()?;
    for _ in 0..COUNT {
        for socket in [&capable, &plain] {
            socket.send_to(&[7; 972], (FAR, PORT)).map_err(failed)?;
        }
    }
    started.wait_until(started.clock.now() + LONG_ENOUGH);
    Ok(())
}

/// The far host: what its kernel counted when the near one is done.
fn count(end: End<'_>) -> Result<String, EmuError> {
    let failed = |error| EmuError::system("receive datagrams", error);
    let socket = UdpSocket::bind((FAR, PORT)).map_err(failed)?;
    let started = end.start()?;
    started.wait_until(fullpipe_units::Time::NEVER);
    drop(socket);
    let read = |table: &str| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        text.map_err(|error| EmuError::system("read counters", error))
    };
    let counters = [counters(&read("netstat")?, "IpExt:"), counters(&read("snmp")?, "Ip:")];
    Ok(counters.concat().join("\n"))
}

/// The counters of a group: a line of names, and a line of values.
fn counters(table: &str, group: &str) -> Vec<String> {
    let mut rows = table.lines().filter_map(|line| line.strip_prefix(group));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return Vec::new() };
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .map(|(name, value)| format!("{name} {value}"))
        .collect()
}
