//! A command, or a shell, behind an emulated path.
//!
//! As root and without a server command, the outer end of the path is a device in the caller's network namespace, so that servers
//! outside are reached on its address. Otherwise the outer end is a second namespace of our own, in which the server command
//! runs: its ports are used by nobody else.
//!
//! * [`contained`]: how the command and its server run, so that nothing outlives the shell.
//! * [`server`]: the server at the outer end.
//! * [`report`]: what the user reads of the path.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use fullpipe_scenario::spec::{Randomness, Spec};

use self::contained::{Role, start};
use self::report::Way;
use self::server::Server;
use crate::EmuError;
use crate::address::{Block, Outside, free_block};
use crate::clock::Clock;
use crate::ferry::{Ferry, FerryReport};
use crate::namespace::{
    Privilege, ask_to_die_with_parent, become_capable, current_network, enter_network, enter_new_network,
};
use crate::path::{Classes, FIRST_PORT, OneWay, Path};
use crate::qdisc::LinuxQueue;
use crate::router::{Between, Router};
use crate::settings::{self, set_sysctl};
use crate::sys;
use crate::sys::process::{self, Child};
use crate::tun::{Address, Tun, limit_gso_segments};

pub(crate) mod contained;
mod report;
pub(crate) mod server;

/// In the environment of the command and of the server: the address of the outer end.
const SERVER_VARIABLE: &str = "FULLPIPE_SERVER";
/// The same: its IPv6 address, if it has one.
const SERVER6_VARIABLE: &str = "FULLPIPE_SERVER6";
/// The same, where there is a server: a port that nothing else at the outer end uses.
const PORT_VARIABLE: &str = "FULLPIPE_PORT";
/// In the command's environment: the paths of this shell and of those around it, the outermost first, each in brackets.
const PATH_VARIABLE: &str = "FULLPIPE_PATH";

/// Runs `command` (or `$SHELL`, if it is empty) behind the path of `spec` and returns its exit code. The forward path
/// leads from the command outwards, the reverse path to it; flows and duration of the spec do not matter.
///
/// `server` runs at the outer end until the command ends; the command starts when the server has opened a port. The server is then the
/// only thing that the command can reach; `{server}` and `{port}` in its words become the address of the outer end and a port that
/// nothing else uses. Both are in the environment variables `FULLPIPE_SERVER` and `FULLPIPE_PORT`, too, the IPv6 address is in
/// `FULLPIPE_SERVER6`, and the path in `FULLPIPE_PATH`. Shells nest, up to four deep; each level has random streams of its own. What each
/// direction does, and at the end what it did, is printed on standard error.
///
/// Call it in a process of its own that has only one thread.
///
/// # Errors
/// When the ends of the path cannot be made ([`become_capable`], no TUN device, shells nested too deep), when the ferry
/// fails, and when `command` or `server` cannot be started.
pub fn shell(spec: &Spec, command: &[String], server: Option<&[String]>) -> Result<i32, EmuError> {
    let privilege = become_capable()?;
    ask_to_die_with_parent();
    let server = server.filter(|server| !server.is_empty());
    // Without rights in the caller's network namespace, the outer end cannot be there.
    let outside = if privilege == Privilege::UserNamespace || server.is_some() {
        Outside::Own
    } else {
        Outside::Caller
    };
    let ends = Ends::create(spec, outside)?;
    announce(spec, &ends, server.is_some());
    let foreground = process::own_foreground();
    process::ignore_terminal_signals();
    let finished = run_behind(spec, &ends, command, server, foreground.is_some());
    if let Some(group) = foreground {
        process::restore_foreground(group);
    }
    process::heed_terminal_signals();
    finished
}

/// Prints what each direction does and what can be reached.
fn announce(spec: &Spec, ends: &Ends, served: bool) {
    eprintln!("fullpipe: {}", report::plan(Way::Up, &spec.forward));
    eprintln!("fullpipe: {}", report::plan(Way::Down, &spec.reverse));
    eprintln!("fullpipe: seed {0}; --seed {0} repeats the random numbers of this path", spec.seed);
    let address = ends.block.outer();
    let ipv6 = match ends.ipv6 {
        true => format!(" and {} (${SERVER6_VARIABLE})", ends.block.outer6()),
        false => String::new(),
    };
    match ends.at {
        Outside::Caller => {
            eprintln!("fullpipe: servers outside are reachable at {address} (${SERVER_VARIABLE}){ipv6}");
        }
        Outside::Own if served => {
            eprintln!(
                "fullpipe: the server is reachable at {address} (${SERVER_VARIABLE}){ipv6}, and nothing else"
            );
        }
        Outside::Own => eprintln!(
            "fullpipe: without root, nothing outside is reachable; --server COMMAND runs a server at {address}"
        ),
    }
}

/// The two ends of the path and where they are.
struct Ends {
    block: Block,
    at: Outside,
    /// Whether both ends have IPv6 addresses.
    ipv6: bool,
    inner: Arc<Tun>,
    outer: Arc<Tun>,
    inside: OwnedFd,
    outside: OwnedFd,
    /// The router that the command's packets pass first.
    router: Option<Router>,
}

impl Ends {
    /// Makes both ends. Leaves the calling thread in the inner namespace.
    fn create(spec: &Spec, at: Outside) -> Result<Ends, EmuError> {
        let mtu = spec.mtu_bytes;
        let caller = current_network()?;
        // Until the device has its address, another shell in this namespace must not choose the same block.
        sys::lock(&caller).map_err(|error| EmuError::system("lock the network namespace", error))?;
        let block = free_block(at)?;
        if at == Outside::Own {
            enter_network_with_ipv6()?;
            tune(spec);
        }
        let outside = current_network()?;
        let outer = Tun::create(Address { own: block.outer(), prefix: block.prefix(), mtu })?;
        let mut ipv6 = outer.add_ipv6(block.outer6(), block.prefix6(), mtu)?;
        drop(caller);
        let (inner, router) = match LinuxQueue::of_router(&spec.forward)? {
            Some(queue) => {
                let between = Between {
                    near: block.inner(),
                    prefix: block.prefix(),
                    far: block.outer(),
                    mtu,
                    gso_max_segs: spec.hosts.gso_max_segs,
                };
                let router = Router::create(&queue, between)?;
                // The router has routes for IPv4 only.
                ipv6 = false;
                (router.tun(), Some(router))
            }
            None => {
                enter_network_with_ipv6()?;
                let inner = Tun::create(Address { own: block.inner(), prefix: block.prefix(), mtu })?;
                inner.add_default_route(block.outer())?;
                ipv6 = ipv6 && inner.add_ipv6(block.inner6(), block.prefix6(), mtu)?;
                if ipv6 {
                    inner.add_default_route6()?;
                }
                limit_gso_segments(inner.name(), spec.hosts.gso_max_segs)?;
                (Arc::new(inner), None)
            }
        };
        let inside = current_network()?;
        tune(spec);
        // So that shells inside this one reach what is outside it.
        let _ = set_sysctl("net.ipv4.ip_forward", "1");
        let _ = set_sysctl("net.ipv6.conf.all.forwarding", "1");
        Ok(Ends { block, at, ipv6, inner, outer: Arc::new(outer), inside, outside, router })
    }
}

/// Moves the calling thread into a new network namespace in which IPv6 is on, where the kernel has it.
fn enter_network_with_ipv6() -> Result<(), EmuError> {
    enter_new_network()?;
    let _ = set_sysctl("net.ipv6.conf.all.disable_ipv6", "0");
    Ok(())
}

/// Window limits and ECN as the scenario has them; the default algorithm is the one outside.
fn tune(spec: &Spec) {
    for reason in settings::apply(&settings::tcp_settings(&spec.hosts)) {
        eprintln!("fullpipe: {reason}");
    }
}

/// Starts the processes, carries their packets, and waits for the command.
fn run_behind(
    spec: &Spec,
    ends: &Ends,
    command: &[String],
    server: Option<&[String]>,
    foreground: bool,
) -> Result<i32, EmuError> {
    let shell = [std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())];
    let command = if command.is_empty() { &shell[..] } else { command };
    let address = ends.block.outer().to_string();
    let port = FIRST_PORT.to_string();
    let mut variables: Vec<(&str, OsString)> = vec![(SERVER_VARIABLE, address.clone().into())];
    variables.extend(ends.ipv6.then(|| (SERVER6_VARIABLE, ends.block.outer6().to_string().into())));
    variables.extend(server.map(|_| (PORT_VARIABLE, port.clone().into())));
    let server = match server {
        Some(words) => {
            let place = |word: &String| word.replace("{server}", &address).replace("{port}", &port);
            let words: Vec<String> = words.iter().map(place).collect();
            enter_network(&ends.outside)?;
            let server = Server::start(&words, &variables)?;
            enter_network(&ends.inside)?;
            Some(server)
        }
        None => None,
    };
    variables.push((PATH_VARIABLE, nested_label(spec)));
    let finished = match start(command, &variables, Role::Command { foreground }) {
        Ok(command) => carry(spec, ends, command.child),
        Err(error) => Err(error),
    };
    if let Some(server) = server {
        server.end();
    }
    finished
}

/// The path of this shell behind those of the shells around it.
fn nested_label(spec: &Spec) -> OsString {
    let mut label = std::env::var_os(PATH_VARIABLE).unwrap_or_default();
    if !label.is_empty() {
        label.push(" ");
    }
    label.push(report::label(spec));
    label
}

/// Carries packets until `child` ends; returns its exit code.
fn carry(spec: &Spec, ends: &Ends, child: Child) -> Result<i32, EmuError> {
    let stop = sys::event_fd().map_err(|error| EmuError::system("create an eventfd", error))?;
    let path = path_of(spec, ends.block.level())?;
    let (code, ferried) = thread::scope(|scope| {
        let ferry = scope.spawn(|| {
            let ends = (Arc::clone(&ends.inner), Arc::clone(&ends.outer));
            let ferried = Ferry::new(ends, &path).and_then(|ferry| ferry.run(Clock::start(), &stop));
            if ferried.is_err() {
                child.kill();
            }
            ferried
        });
        let code = child.wait();
        sys::signal_event(&stop);
        (code, ferry.join())
    });
    let ferried = ferried.map_err(EmuError::panicked("ferry"))??;
    if let Some(router) = &ends.router {
        let (counted, undecided) = router.finish()?;
        eprintln!("fullpipe: {}", report::routed(&counted, undecided));
    }
    summarize(&path, &ferried);
    code.map_err(|error| EmuError::system("wait for the command", error))
}

/// The path of a scenario, apart from its flows and its duration. Paths at different levels must not lose the same packets.
fn path_of(spec: &Spec, level: u32) -> Result<Path, EmuError> {
    let run = spec.seed.wrapping_add(u64::from(level) << 32);
    let mut path = Path::new(
        OneWay::new(spec.forward.clone(), Randomness::Forward.seed(run)),
        OneWay::new(spec.reverse.clone(), Randomness::Reverse.seed(run)),
    );
    path.mtu_bytes = spec.mtu_bytes;
    path.classes = Classes::Flows;
    path.with_router()
}

/// Prints what happened to the packets, and why their times may be wrong.
fn summarize(path: &Path, ferried: &FerryReport) {
    let ways = [Way::Up, Way::Down].into_iter().zip(&ferried.counts).zip(ferried.marked);
    for ((way, counts), marked) in ways {
        eprintln!("fullpipe: {}", report::outcome(way, counts, marked));
    }
    for reason in path.doubts(ferried) {
        eprintln!("fullpipe: {reason}");
    }
}
