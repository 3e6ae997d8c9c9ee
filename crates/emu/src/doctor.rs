//! What this machine can do for an emulated path, and how to fix what is missing.

use std::thread;

use fullpipe_units::{Duration, Time};

use crate::clock::Clock;
use crate::histogram::Histogram;
use crate::namespace::{Privilege, become_capable, effective_capabilities, enter_new_network};
use crate::sys;
use crate::tun::{Address, Tun};
use crate::{EmuError, path, qdisc};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether a world can work with it.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What to do if it is not ok; empty if it is.
    pub fix: String,
}

const NETWORK: &str = "network namespace";
/// Wakes of the lateness measurement, and the time between two.
const WAKES: u64 = 400;
const WAKE_INTERVAL: Duration = Duration::from_micros(500);
/// Lateness that a run at 100 Mbit/s does not notice.
const GOOD_LATENESS: Duration = Duration::from_millis(1);
/// Timers coarser than this cannot place packets.
const GOOD_RESOLUTION_NS: u64 = 1_000;

/// Looks at everything that an emulated path needs. Call it in a process of its own that has only one thread: without
/// root it enters a user namespace.
pub fn doctor() -> Vec<Check> {
    let rights = rights();
    let network = if rights.ok {
        network()
    } else {
        Check::ill(NETWORK, "not tried: rights are missing", &*rights.fix)
    };
    vec![kernel(), cores(), tun_device(), rights, network, realtime_and_lateness(), clock_resolution()]
}

impl Check {
    /// What works as it is.
    pub fn well(name: &str, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), ok: true, found: found.into(), fix: String::new() }
    }

    /// What does not.
    pub fn ill(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name: name.to_owned(), ok: false, found: found.into(), fix: fix.into() }
    }

    /// What works if nothing failed.
    pub fn of(name: &str, result: Result<String, EmuError>) -> Check {
        match result {
            Ok(found) => Check::well(name, found),
            // Their own fix is to call the doctor.
            Err(error @ (EmuError::System { .. } | EmuError::Stopped { .. })) => Check::ill(
                name,
                error.to_string(),
                "the kernel refused something that it should allow; report this as a bug",
            ),
            Err(error) => Check::ill(name, error.to_string(), error.fix()),
        }
    }
}

fn kernel() -> Check {
    Check::well("kernel", sys::host_and_kernel().1)
}

fn cores() -> Check {
    const WANTED: usize = 2;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if cores >= WANTED {
        return Check::well("cores", cores.to_string());
    }
    Check::ill(
        "cores",
        cores.to_string(),
        "give the machine two cores: one for the path, one for the end hosts",
    )
}

fn tun_device() -> Check {
    let opened = sys::open_nonblocking(c"/dev/net/tun").map_err(EmuError::NoTun);
    Check::of("/dev/net/tun", opened.map(|_| "can be opened".to_owned()))
}

fn rights() -> Check {
    let before = effective_capabilities();
    let privilege = become_capable().map(|privilege| match privilege {
        Privilege::Root => "root".to_owned(),
        Privilege::UserNamespace => {
            format!("ordinary user in a user namespace (own capabilities {before:#x})")
        }
    });
    Check::of("rights", privilege)
}

/// Makes what a run makes, on a thread of its own so that it is gone afterwards.
fn network() -> Check {
    let attempt = || {
        enter_new_network()?;
        let device = Tun::create(Address { own: path::NEAR, prefix: 30, mtu: 1500 })?;
        Ok(format!("a namespace with the device {}", device.name()))
    };
    let result =
        thread::spawn(attempt).join().unwrap_or_else(|panic| Err(EmuError::panicked("trial")(panic)));
    Check::of(NETWORK, result)
}

/// Which queue disciplines Linux has here, for runs whose bottleneck is Linux's. Call it in a process of its own that has only
/// one thread.
pub fn linux_queues() -> Check {
    const NAME: &str = "queue disciplines of Linux";
    let attempt = || {
        become_capable()?;
        enter_new_network()?;
        let device = Tun::create(Address { own: path::NEAR, prefix: 30, mtu: 1500 })?;
        qdisc::available(device.name())
    };
    let found = match attempt() {
        Ok(found) => found,
        Err(error) => return Check::of(NAME, Err(error)),
    };
    let missing: Vec<&str> = qdisc::KINDS.into_iter().filter(|kind| !found.contains(kind)).collect();
    let message = if missing.is_empty() {
        found.join(", ")
    } else {
        format!("{}; not {}", found.join(", "), missing.join(", "))
    };
    if ["tbf", "bfifo"].iter().all(|kind| found.contains(kind)) {
        return Check::well(NAME, message);
    }
    Check::ill(
        NAME,
        message,
        "as root: `modprobe sch_tbf`; the world qdisc needs it, and the kernel world for path.router",
    )
}

/// Tries for real-time priority, and measures how late a thread wakes with what it got.
fn realtime_and_lateness() -> Check {
    let measure = || {
        let realtime = sys::become_realtime(sys::Realtime::Ferry);
        let clock = Clock::start();
        let mut histogram = Histogram::default();
        let mut due = Time::ZERO;
        for _ in 0..WAKES {
            due += WAKE_INTERVAL;
            clock.sleep_until(due);
            histogram.record(clock.now().saturating_since(due));
        }
        (realtime.err(), histogram.lateness())
    };
    let name = "real-time priority and lateness";
    let Ok((refused, lateness)) = thread::spawn(measure).join() else {
        return Check::ill(name, "the measurement failed", "report this as a bug");
    };
    let late = format!(
        "wakes {} late (median), {} (99 %)",
        Duration::from_micros(lateness.p50_ns / 1_000),
        Duration::from_micros(lateness.p99_ns / 1_000)
    );
    match refused {
        Some(error) => Check::ill(
            name,
            format!("SCHED_FIFO refused ({error}); {late}"),
            "run as root, or allow it: as root, write `USER - rtprio 10` to /etc/security/limits.d/fullpipe.conf and log \
             in again, or set `LimitRTPRIO=10` in a systemd unit; without it kernel runs work, but each is marked \
             untrustworthy and left out of means and verdicts",
        ),
        None if lateness.p99_ns > GOOD_LATENESS.as_nanos() => Check::ill(
            name,
            format!("SCHED_FIFO; {late}"),
            "stop other real-time work, or use a machine whose processors are not shared",
        ),
        None => Check::well(name, format!("SCHED_FIFO; {late}")),
    }
}

fn clock_resolution() -> Check {
    let name = "monotonic clock";
    let resolution_ns = sys::monotonic_resolution_ns();
    let found = format!("resolution {resolution_ns} ns");
    if resolution_ns <= GOOD_RESOLUTION_NS {
        return Check::well(name, found);
    }
    Check::ill(name, found, "boot with high-resolution timers (`highres=on`) and a better clock source")
}
