//! The server at the outer end: started before the command, watched until it listens.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;

use fullpipe_units::{Duration, Time};

use super::contained::{Contained, Role, start};
use crate::EmuError;
use crate::clock::Clock;

/// A client waits for its server to open a port, but not for longer than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often the wait looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A server that has been started.
pub(super) struct Server {
    process: Contained,
}

impl Server {
    /// Starts a server in the calling thread's network namespace and waits until it has opened a TCP or UDP port. An
    /// error if it ends before that. The process must have one thread.
    pub(super) fn start(command: &[String], variables: &[(&str, OsString)]) -> Result<Server, EmuError> {
        let process = start(command, variables, Role::Server)?;
        let has_port = wait_for_port(process.child.id(), Clock::start(), || {
            let ended =
                process.child.ended().map_err(|error| EmuError::system("look after the server", error))?;
            match ended {
                Some(code) => Err(EmuError::ServerEnded { command: command.join(" "), code }),
                None => Ok(()),
            }
        })?;
        if !has_port {
            eprintln!("fullpipe: the server has not opened a port within {PATIENCE}; starting the command");
        }
        Ok(Server { process })
    }

    /// Ends the server, and says so if it had ended by itself and with an error.
    pub(super) fn end(self) {
        match self.process.child.ended() {
            Ok(Some(0)) | Err(_) => {}
            Ok(Some(code)) => eprintln!("fullpipe: the server exited with code {code} while the command ran"),
            Ok(None) => {
                self.process.child.kill();
                let _ = self.process.child.wait();
            }
        }
    }
}

/// Waits until [`has_open_port`], and returns true; or false when `clock` shows [`PATIENCE`]. Before each look, `look` may find
/// that there is nothing to wait for.
pub(crate) fn wait_for_port(
    first: u32,
    clock: Clock,
    mut look: impl FnMut() -> Result<(), EmuError>,
) -> Result<bool, EmuError> {
    loop {
        look()?;
        if has_open_port(first) {
            return Ok(true);
        }
        let now = clock.now();
        if now >= Time::ZERO + PATIENCE {
            return Ok(false);
        }
        clock.sleep_until(now + LOOK_EVERY);
    }
}

/// Whether a process in the process namespace of `first` has a port of the calling thread's network namespace open:
/// a listening TCP socket, or a bound UDP socket.
fn has_open_port(first: u32) -> bool {
    let open = open_sockets();
    if open.is_empty() {
        return false;
    }
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    // Without the right to trace, only what process 1 has started can be looked into.
    let mut within = std::iter::once(first.to_string()).chain(children_of(first));
    let Some(own) = within.find_map(|process| namespace(&process)) else { return false };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| {
        name.bytes().all(|byte| byte.is_ascii_digit())
            && namespace(&name).as_ref() == Some(&own)
            && sockets_of(&name).any(|inode| open.contains(&inode))
    })
}

/// The children of a process, as far as the kernel says.
fn children_of(process: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Inode numbers of a process's sockets.
fn sockets_of(process: &str) -> impl Iterator<Item = u64> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// Inode numbers of the open ports in the calling thread's network namespace.
fn open_sockets() -> HashSet<u64> {
    const TCP_LISTEN: &str = "0A";
    /// What /proc/net/udp shows for a socket that is bound and not connected: TCP_CLOSE.
    const UDP_BOUND: &str = "07";
    let tables = [("tcp", TCP_LISTEN), ("tcp6", TCP_LISTEN), ("udp", UDP_BOUND), ("udp6", UDP_BOUND)];
    let of_table = |(table, state): (&str, &str)| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        parse_sockets(&text, state)
    };
    tables.into_iter().flat_map(of_table).collect()
}

/// Inode numbers of the sockets in this state.
fn parse_sockets(table: &str, state: &str) -> Vec<u64> {
    const STATE: usize = 3;
    const INODE: usize = 9;
    let inode = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns.get(STATE) == Some(&state)).then(|| columns.get(INODE)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_match_by_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41234 1 0 100 0\n   \
            1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 41235 1 0 20 4\n";
        assert_eq!(parse_sockets(table, "0A"), [41234]);
        assert_eq!(parse_sockets(table, "01"), [41235]);
        assert_eq!(parse_sockets("", "0A"), [0; 0]);
    }

    #[test]
    fn child_is_identified_by_parent() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let found = children_of(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id().to_string()), "{found:?}");
    }

    #[test]
    fn own_open_port_is_detected() {
        let before = open_sockets();
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(open_sockets().difference(&before).next().is_some());
        assert!(has_open_port(std::process::id()));
        drop(listening);
    }
}
