//! A sender that is neither TCP nor ours: datagrams of the standard library over an emulated path, and their echoes.
//!
//! 300 datagrams leave at once; the link takes a millisecond for each and has room for 20. Prints what arrived, the first
//! round trip, and what the path recorded. Exit code 3 says that no path can be made here.

use std::net::UdpSocket;
use std::process::ExitCode;

use fullpipe_emu::{EmuError, End, FAR, OneWay, Path};
use fullpipe_path::config::{ElementConfig, QueueConfig, Schedule};
use fullpipe_units::{Bytes, Duration, Rate, Time};

const NOT_PERMITTED: u8 = 3;
const COUNT: u16 = 300;
/// With IP and UDP headers 1000 bytes.
const PAYLOAD_BYTES: usize = 972;
const PORT: u16 = 4433;
/// The last of 20 datagrams is back long before.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);
/// How often the far host looks whether it is to stop.
const LOOK_AROUND: std::time::Duration = std::time::Duration::from_millis(20);

/// What the near host saw.
struct Echoes {
    sent_first: Time,
    back_first: Option<Time>,
    count: u64,
}

fn main() -> ExitCode {
    fullpipe_emu::die_with_parent();
    let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(20)) };
    let link = ElementConfig::Link {
        name: "bottleneck".to_owned(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(8_000_000)),
        queue: QueueConfig::drop_tail(Bytes::new(20_000), None),
    };
    let path = Path::new(OneWay::new(vec![link, delay.clone()], 1), OneWay::new(vec![delay], 2));
    let carried = match path.carry(send, echo) {
        Ok(carried) => carried,
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            let permitted = !matches!(error, EmuError::NotPermitted { .. } | EmuError::NoTun(_));
            return ExitCode::from(if permitted { 1 } else { NOT_PERMITTED });
        }
    };
    let first =
        carried.near.back_first.map_or(0, |back| back.saturating_since(carried.near.sent_first).as_nanos());
    println!("sent {COUNT} echoed {} back {} first_rtt_ns {first}", carried.far, carried.near.count);
    for link in &carried.ferried.links {
        println!(
            "link {} arrived {} dropped {}",
            link.name, link.totals.arrived_packets, link.totals.dropped_packets
        );
    }
    println!("lateness_ns p50 {}", carried.ferried.lateness().p50_ns);
    for doubt in carried.doubts(&path) {
        println!("untrustworthy {doubt}");
    }
    ExitCode::SUCCESS
}

/// The near host: sends everything at once and counts the echoes.
fn send(end: End<'_>) -> Result<Echoes, EmuError> {
    let failed = |error| EmuError::system("send datagrams", error);
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    socket.connect((FAR, PORT)).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let clock = end.start()?.clock;
    let mut echoes = Echoes { sent_first: clock.now(), back_first: None, count: 0 };
    for _ in 0..COUNT {
        socket.send(&[7; PAYLOAD_BYTES]).map_err(failed)?;
    }
    while socket.recv(&mut [0; PAYLOAD_BYTES]).is_ok() {
        echoes.back_first.get_or_insert(clock.now());
        echoes.count += 1;
    }
    Ok(echoes)
}

/// The far host: sends back what arrives; returns how many.
fn echo(end: End<'_>) -> Result<u64, EmuError> {
    let failed = |error| EmuError::system("echo datagrams", error);
    let socket = UdpSocket::bind((FAR, PORT)).map_err(failed)?;
    socket.set_read_timeout(Some(LOOK_AROUND)).map_err(failed)?;
    let started = end.start()?;
    let (mut buffer, mut count) = ([0; PAYLOAD_BYTES], 0);
    while !started.is_over() {
        if let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..bytes], from).map_err(failed)?;
            count += 1;
        }
    }
    Ok(count)
}
