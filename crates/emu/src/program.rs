//! Programs as flows: the commands of a client and of a server on the two hosts of a path, measured by their packets.
//!
//! Servers start first, and clients when their servers have opened a port, not before their time. A client's end, or the end of
//! the path, ends a flow; what the last client left on its way still arrives, until the end of the path. Each command runs under a process 1 of ours ([`crate::shell`]), so that nothing that it starts outlives
//! it, however it or we end. Processes are made before the first thread: a fork of a process with threads may do very little.
//!
//! * [`process`](self::process): a command, what it printed, and how it ended.
//! * [`tail`]: whether all that was sent has arrived.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use fullpipe_record::ProcessorTime;
use fullpipe_scenario::{Program, Side};
use fullpipe_units::{Duration, Time};

use self::process::{Process, Set};
use self::tail::Tail;
use crate::EmuError;
use crate::carry::Carried;
use crate::clock::Clock;
use crate::ferry::{Ferry, FerryReport};
use crate::load::{Machine, Processes};
use crate::meter::{Metered, meter};
use crate::namespace::{
    Parent, ask_to_die_with_parent, become_capable, current_network, enter_network, enter_new_network,
};
use crate::path::{FAR, FIRST_PORT, NEAR, Path, Quiet};
use crate::shell::server::{PATIENCE, wait_for_port};
use crate::sys;
use crate::tun::{Address, Tun, limit_gso_segments, transmit_drops};

mod process;
mod tail;

/// Time between the last preparation and the start of the path.
const GET_READY: Duration = Duration::from_millis(5);
/// How often the main thread looks whether a process has ended.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// How often it looks whether all has arrived.
const LOOK_AT_TAIL: Duration = Duration::from_millis(5);
/// A client has this time to notice that its server has failed.
const GRACE: Duration = Duration::from_secs(2);
/// If so many times as much payload goes the wrong way, the scenario names the wrong sender.
const WRONG_WAY: u64 = 10;

/// The programs that may run at a time: each is two processes and what they start.
pub const MOST_PROGRAMS: usize = 32;

/// A program, and when it runs.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The flow's name.
    pub label: String,
    /// Its commands.
    pub program: Program,
    /// When its client starts.
    pub start: Time,
    /// When its client is ended, if it has not ended by then.
    pub stop: Option<Time>,
}

/// What one program did.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What its packets tell.
    pub metered: Metered,
    /// When its client was started, and when it had ended or was ended.
    pub client: [Time; 2],
    /// Whether its client ended by itself, and what it had sent arrived.
    pub completed: bool,
}

/// What all programs did.
#[derive(Debug)]
pub struct Ran<T> {
    /// In the order of the programs.
    pub flows: Vec<Ended>,
    /// What `tune` returned at the near and at the far host.
    pub hosts: [T; 2],
    /// What the ferry recorded.
    pub ferried: FerryReport,
    /// What the programs got of the machine's processors, those of the sender's and those of the receiver's host.
    pub processor: ProcessorTime,
    /// Why the run cannot be trusted; empty when it can.
    pub doubts: Vec<String>,
}

/// Runs programs over a path until all clients have ended, or until the path's end. `tune` is called at the near and at the far
/// host, in its namespace, before anything is started there.
///
/// Call it in a process of its own that has only one thread.
///
/// # Errors
/// When the path cannot be set up or carried ([`Path::carry`]), and when a program fails: [`EmuError::Program`].
pub fn run<T>(
    mut path: Path,
    programs: &[Launch],
    mut tune: impl FnMut(&str) -> T,
) -> Result<Ran<T>, EmuError> {
    path.check()?;
    become_capable()?;
    ask_to_die_with_parent();
    let near = Host::create(NEAR, &path)?;
    let near_tuned = tune("sender");
    let far = Host::create(FAR, &path)?;
    let far_tuned = tune("receiver");
    let (mut processes, mut doubts) = start_all(programs, [&near, &far])?;

    let (metering, meter) = meter(programs.len(), FIRST_PORT, path.sample_interval);
    path.metering = Some(metering.clone());
    let quiet = Quiet::default();
    path.quiet = Some(quiet.clone());
    let (stop, done) = (event_fd()?, event_fd()?);
    processes.look_at_load(programs);
    processes.load.iter_mut().for_each(Processes::begin);
    let machine = Machine::now();
    let clock = Clock::start_in(GET_READY);
    let (lives, ferried, measured) = thread::scope(|scope| {
        let meter = scope.spawn(|| meter.run());
        let ferry = scope.spawn(|| {
            let ends = (Arc::clone(&near.tun), Arc::clone(&far.tun));
            let ferried = Ferry::new(ends, &path).and_then(|ferry| ferry.run(clock, &stop));
            sys::signal_event(&done);
            ferried
        });
        let lives = live(programs, &mut processes, &path, clock, &done);
        let lives = lives.and_then(|lives| {
            let end = Time::ZERO.saturating_add(path.duration);
            if !lives.iter().zip(programs).any(|(life, launch)| life.leaves_a_tail(launch)) {
                // What is on the path arrives; nobody waits for the rest.
                clock.sleep_until(end.min(clock.now() + path.base_rtt()));
                return Ok((false, lives));
            }
            near.enter()?;
            Ok((all_arrived(&mut processes, &quiet, (clock, end), &done)?, lives))
        });
        sys::signal_event(&stop);
        let ferried = ferry.join();
        // If the ferry failed before it had a tap.
        metering.end();
        (lives, ferried, meter.join())
    });
    // The cause of what the programs noticed.
    let ferried = ferried.map_err(EmuError::panicked("ferry"))??;
    let measured = measured.map_err(EmuError::panicked("meter"))?.until(ferried.ended);
    processes.look_at_load(programs);
    let [sender, receiver] = &processes.load;
    let processor = machine.until_now([sender.total(), receiver.total()]);
    processes.end();
    let (all_arrived, lives) = lives?;
    doubts.extend(measured.doubts());
    let ended = lives.into_iter().zip(measured.flows);
    let flows: Vec<Ended> = ended
        .zip(programs)
        .map(|((life, metered), launch)| {
            let shortfall = life.leaves_a_tail(launch) && !all_arrived && metered.on_its_way > 0;
            if shortfall {
                doubts.push(format!(
                    "{}: its client ended, but {} bytes or more that were sent had not arrived at the end of the scenario; \
                     give it a longer duration",
                    launch.label, metered.on_its_way
                ));
            }
            Ended { metered, client: [life.start, life.end], completed: life.completed && !shortfall }
        })
        .collect();
    for (index, flow) in flows.iter().enumerate() {
        check_payload(&programs[index], flow, &processes)?;
        doubts.extend(flow.metered.doubts(&programs[index].label));
    }
    let dropped_frames = [near.dropped()?, far.dropped()?];
    let carried = Carried { near: (), far: (), dropped_frames, ferried, processor };
    doubts.extend(carried.doubts(&path));
    Ok(Ran { flows, hosts: [near_tuned, far_tuned], ferried: carried.ferried, processor, doubts })
}

/// One end of the path.
struct Host {
    tun: Arc<Tun>,
    network: OwnedFd,
}

impl Host {
    /// Makes a host and leaves the calling thread in it.
    fn create(address: Ipv4Addr, path: &Path) -> Result<Host, EmuError> {
        enter_new_network()?;
        let network = current_network()?;
        let tun = Arc::new(Tun::create(Address { own: address, prefix: 30, mtu: path.mtu_bytes })?);
        limit_gso_segments(tun.name(), path.gso_max_segs)?;
        Ok(Host { tun, network })
    }

    fn enter(&self) -> Result<(), EmuError> {
        enter_network(&self.network)
    }

    /// Frames that its kernel dropped because the ferry did not read them in time.
    fn dropped(&self) -> Result<u64, EmuError> {
        self.enter()?;
        Ok(transmit_drops(self.tun.name()))
    }
}

/// Makes all processes. Servers run when this returns, and have opened a port or been waited for; clients wait for their time.
/// Returns what is doubtful about that, too.
fn start_all(programs: &[Launch], [near, far]: [&Host; 2]) -> Result<(Set, Vec<String>), EmuError> {
    let place =
        |program: &Program, side: Side| if side == program.sender { (near, NEAR) } else { (far, FAR) };
    let line = |index: usize, side: Side| {
        let program = &programs[index].program;
        let (_, server) = place(program, Side::Server);
        program.command(side, IpAddr::V4(server), FIRST_PORT + index as u16)
    };
    let mut set = Set::default();
    for (index, launch) in programs.iter().enumerate() {
        place(&launch.program, Side::Server).0.enter()?;
        set.servers.push(Process::start(&launch.label, Side::Server, line(index, Side::Server))?);
    }
    let mut doubts = Vec::new();
    let clock = Clock::start();
    for (index, launch) in programs.iter().enumerate() {
        place(&launch.program, Side::Server).0.enter()?;
        let has_port = wait_for_port(set.servers[index].id(), clock, || {
            set.look()?;
            let server = &set.servers[index];
            if server.ended.is_some() {
                return Err(server.failed(
                    "before it had opened a port",
                    "try it by itself; a server must stay in the foreground (`iperf3 -s`, not `iperf3 -s -D`)",
                ));
            }
            Ok(())
        })?;
        if !has_port {
            doubts.push(format!("{}: the server had not opened a port after {PATIENCE}", launch.label));
        }
    }
    for (index, launch) in programs.iter().enumerate() {
        place(&launch.program, Side::Client).0.enter()?;
        set.clients.push(Process::prepare(&launch.label, Side::Client, line(index, Side::Client))?);
    }
    Ok((set, doubts))
}

/// The life of a client.
#[derive(Clone, Copy, Debug)]
struct Life {
    start: Time,
    end: Time,
    completed: bool,
}

impl Life {
    /// Whether it may have left something to its kernel that is to arrive. A client that receives has what it wants.
    fn leaves_a_tail(&self, launch: &Launch) -> bool {
        self.completed && launch.program.sender == Side::Client
    }
}

/// Starts the clients, each at its time, and waits for their ends.
fn live(
    programs: &[Launch],
    processes: &mut Set,
    path: &Path,
    clock: Clock,
    done: &OwnedFd,
) -> Result<Vec<Life>, EmuError> {
    let end = Time::ZERO.saturating_add(path.duration);
    let mut lives: Vec<Option<Life>> = vec![None; programs.len()];
    let mut failed_since: Vec<Option<Time>> = vec![None; programs.len()];
    let mut parent = Parent::watched();
    loop {
        let now = clock.now();
        processes.look_at_load(programs);
        let mut next = end.min(now + LOOK_AROUND);
        for (index, launch) in programs.iter().enumerate() {
            let stop = launch.stop.map_or(end, |stop| stop.min(end));
            let client = &mut processes.clients[index];
            if lives[index].is_some() {
                continue;
            }
            if let Some(code) = client.ended {
                if code != 0 {
                    let error = client
                        .failed("", "try both commands in a shell behind the same path (`fullpipe shell`)");
                    return Err(error.beside(&processes.servers[index]));
                }
                lives[index] = Some(Life { start: launch.start, end: now, completed: true });
            } else if now >= stop {
                client.end();
                lives[index] = Some(Life { start: launch.start.min(stop), end: stop, completed: false });
            } else if now >= launch.start {
                client.go();
                next = next.min(stop);
            } else {
                next = next.min(launch.start);
            }
            let server = &processes.servers[index];
            if server.ended.is_some_and(|code| code != 0) && lives[index].is_none() {
                let since = *failed_since[index].get_or_insert(now);
                if now >= since + GRACE {
                    return Err(server
                        .failed("while its client ran", "try it by itself")
                        .beside(&processes.clients[index]));
                }
            }
        }
        if lives.iter().all(Option::is_some) || now >= end {
            return Ok(until_the_end(lives, programs, end));
        }
        processes.wait(done, &mut parent, next.saturating_since(now))?;
        processes.look()?;
        if processes.is_over {
            // The path has ended before this thread woke, or its ferry failed, which says why.
            return Ok(until_the_end(lives, programs, end));
        }
    }
}

/// Waits until what the clients have sent has arrived, or until the end of the path; returns whether it has. The calling thread
/// is in the sender's namespace.
fn all_arrived(
    processes: &mut Set,
    quiet: &Quiet,
    (clock, end): (Clock, Time),
    done: &OwnedFd,
) -> Result<bool, EmuError> {
    let mut tail = Tail::default();
    let mut parent = Parent::watched();
    loop {
        let now = clock.now();
        if processes.is_over || now >= end {
            return Ok(false);
        }
        if tail.is_gone(now, quiet) {
            return Ok(true);
        }
        processes.wait(done, &mut parent, LOOK_AT_TAIL.min(end.saturating_since(now)))?;
        // A server may end as it likes now.
        processes.look()?;
    }
}

/// The lives of all clients where the path has ended: those that were not seen to end lasted until then.
fn until_the_end(lives: Vec<Option<Life>>, programs: &[Launch], end: Time) -> Vec<Life> {
    let each = lives.into_iter().zip(programs);
    each.map(|(life, launch)| {
        let stop = launch.stop.map_or(end, |stop| stop.min(end));
        life.unwrap_or(Life { start: launch.start.min(stop), end: stop, completed: false })
    })
    .collect()
}

/// Refuses a flow that has sent nothing, or nearly everything the other way: its numbers would mean nothing.
fn check_payload(launch: &Launch, flow: &Ended, processes: &Set) -> Result<(), EmuError> {
    let [client, server] = [&processes.clients, &processes.servers]
        .map(|side| side.iter().find(|one| one.label == launch.label).expect("every program has both"));
    let seen = &flow.metered.seen;
    let (there, back) = (flow.metered.delivered_bytes, seen.returned_bytes);
    let sender = launch.program.sender;
    let end = if flow.completed { "" } else { "was still running at its end" };
    let fragments = flow.metered.uncounted.fragments;
    if there == 0 && back == 0 && fragments > 0 {
        let what =
            format!("{end}, and all {fragments} bytes that it sent were in fragments, which are not counted");
        return Err(client.failed(&what, "let it send datagrams below the MTU").beside(server));
    }
    if there == 0 && back == 0 {
        let fix = "check that the client connects to {server}, and that the scenario lasts long enough";
        return Err(client.failed(&format!("{end}, and no payload crossed the path"), fix).beside(server));
    }
    if back / WRONG_WAY > there {
        let what = format!(
            "{end}, and {there} bytes of payload came from the sender, which is said to be the {}, and {back} from the other \
             side",
            sender.name()
        );
        return Err(client.failed(&what, &format!("write sender = \"{}\"", sender.other().name())));
    }
    Ok(())
}

fn event_fd() -> Result<OwnedFd, EmuError> {
    sys::event_fd().map_err(|error| EmuError::system("create an eventfd", error))
}

impl Set {
    /// Notes what the programs at either host have got of the processors.
    fn look_at_load(&mut self, programs: &[Launch]) {
        for (side, all) in [(Side::Server, &self.servers), (Side::Client, &self.clients)] {
            for (launch, process) in programs.iter().zip(all).filter(|(_, process)| process.ended.is_none()) {
                let host = usize::from(side != launch.program.sender);
                self.load[host].look(process.id());
            }
        }
    }

    /// Waits for output, for `done` or for `timeout`.
    fn wait(&mut self, done: &OwnedFd, parent: &mut Parent, timeout: Duration) -> Result<(), EmuError> {
        let mut fds = vec![done.as_raw_fd(), parent.input()];
        fds.extend(self.all().map(Process::output));
        let ready = sys::poll_all(&fds, libc::POLLIN, Some(timeout))
            .map_err(|error| EmuError::system("wait for the programs", error))?;
        self.is_over |= ready[0] != 0;
        if ready[1] != 0 {
            parent.heed();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_scenario::Side;

    use super::*;

    fn launch(start_s: u64, stop_s: Option<u64>) -> Launch {
        let program = Program { client: "a".into(), server: "b".into(), sender: Side::Client };
        let seconds = |count: u64| Time::from_micros(1_000_000 * count);
        Launch { label: "a".into(), program, start: seconds(start_s), stop: stop_s.map(seconds) }
    }

    #[test]
    fn only_self_ended_sender_has_tail() {
        let sender = launch(0, None);
        let mut receiver = launch(0, None);
        receiver.program.sender = Side::Server;
        let life = |completed| Life { start: Time::ZERO, end: Time::ZERO, completed };
        assert!(life(true).leaves_a_tail(&sender) && !life(false).leaves_a_tail(&sender));
        assert!(!life(true).leaves_a_tail(&receiver));
    }

    #[test]
    fn early_path_end_keeps_all_flows() {
        let launches = [launch(0, None), launch(1, Some(2)), launch(1, None)];
        let end = Time::from_micros(5_000_000);
        let seen = Life { start: Time::ZERO, end: Time::from_micros(3_000_000), completed: true };
        let lives = until_the_end(vec![Some(seen), None, None], &launches, end);
        let ends: Vec<_> =
            lives.iter().map(|life| (life.end.as_nanos() / 1_000_000, life.completed)).collect();
        assert_eq!(ends, [(3000, true), (2000, false), (5000, false)]);
        assert_eq!(lives[2].start, Time::from_micros(1_000_000));
    }
}
