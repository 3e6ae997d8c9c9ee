//! Network namespaces without names: each belongs to a thread and ends with it, so nothing has to be cleaned up.
//!
//! Order: [`become_capable`] while the process has one thread; then [`enter_new_network`] on each thread that is to
//! be an end host. `/proc/sys/net` shows the namespace of the thread that reads it.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_scenario::spec::HostSpec;
use fullpipe_units::Bytes;

use crate::EmuError;
use crate::sys;

/// How the process came by the right to make network namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It had it: root, or CAP_SYS_ADMIN and CAP_NET_ADMIN.
    Root,
    /// Through a user namespace of its own, in which it is root.
    UserNamespace,
}

/// Makes sure that this process may create network namespaces, through a user namespace if need be.
/// The process must have only one thread.
///
/// # Errors
/// When the kernel refuses a user namespace, or the process has several threads.
pub fn become_capable() -> Result<Privilege, EmuError> {
    const NEEDED: u64 = 1 << 12 | 1 << 21; // CAP_NET_ADMIN, CAP_SYS_ADMIN
    if effective_capabilities() & NEEDED == NEEDED {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = sys::effective_ids();
    sys::unshare(libc::CLONE_NEWUSER).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => EmuError::NotPermitted {
            attempted: "create a user namespace (user.max_user_namespaces is reached)".to_owned(),
            source: error,
        },
        // A mistake of the caller, not of the machine.
        Some(libc::EINVAL) => EmuError::System {
            attempted: "create a user namespace in a process with several threads".to_owned(),
            source: error,
        },
        _ => EmuError::system("create a user namespace", error),
    })?;
    write_proc("/proc/self/setgroups", "deny")?;
    write_proc("/proc/self/uid_map", &format!("0 {uid} 1"))?;
    write_proc("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// What keeps an ordinary user from making namespaces here, and how to allow it.
pub(crate) fn how_to_permit() -> String {
    how_to_permit_with(sysctl)
}

/// The settings that forbid it, the value that does, and the value that allows it.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("user.max_user_namespaces", "0", "10000"),
    ("kernel.unprivileged_userns_clone", "0", "1"), // Debian and Arch
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"), // Ubuntu
];

fn how_to_permit_with(sysctl: impl Fn(&str) -> Option<String>) -> String {
    let forbidding = FORBIDDING.iter().filter(|(name, forbids, _)| sysctl(name).as_deref() == Some(forbids));
    let commands: Vec<String> =
        forbidding.map(|(name, _, allows)| format!("`sysctl -w {name}={allows}`")).collect();
    if commands.is_empty() {
        return "run as root; no sysctl forbids user namespaces here, so a container or a security policy does (in a \
                container: `--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined`)"
            .to_owned();
    }
    format!("run as root, or allow user namespaces once, as root: {}", commands.join(", "))
}

/// The calling thread's effective capabilities; none if unreadable.
pub fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Moves the calling thread into a new, empty network namespace and brings its loopback up.
///
/// # Errors
/// When the process may not create network namespaces ([`become_capable`]).
pub fn enter_new_network() -> Result<(), EmuError> {
    sys::unshare(libc::CLONE_NEWNET)
        .map_err(|error| EmuError::system("create a network namespace", error))?;
    // Neighbour discovery and multicast reports would be foreign traffic on the path.
    let _ = set_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
    let _ = set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
    crate::tun::bring_up("lo")
}

fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// Reads a setting of the calling thread's namespace; tabs become spaces.
pub fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(sysctl_path(name)).ok().map(|text| text.trim().replace('\t', " "))
}

/// Writes a setting of the calling thread's namespace.
///
/// # Errors
/// When the kernel has no such setting or refuses the value.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), EmuError> {
    fs::write(sysctl_path(name), value)
        .map_err(|error| EmuError::system(format!("set {name} to {value:?}"), error))
}

/// Settings of a host's TCP that a scenario asks for, name and value: limits of its windows, no memory of earlier
/// connections, and ECN. A host that does not ask for ECN keeps Linux's default, 2: it agrees if the other asks.
pub fn tcp_settings(hosts: &HostSpec) -> Vec<(&'static str, String)> {
    let triple = |sizes: &[Bytes; 3]| {
        // The kernel's limit is a signed 32-bit integer.
        sizes.map(|size| size.as_u64().min(i32::MAX as u64).to_string()).join(" ")
    };
    let mut settings = vec![
        ("net.ipv4.tcp_rmem", triple(&hosts.tcp_rmem_bytes)),
        ("net.ipv4.tcp_wmem", triple(&hosts.tcp_wmem_bytes)),
        ("net.ipv4.tcp_no_metrics_save", u8::from(hosts.metrics.is_none()).to_string()),
    ];
    if let Some(metrics) = &hosts.metrics {
        let not = u8::from(!metrics.save_ssthresh).to_string();
        settings.push(("net.ipv4.tcp_no_ssthresh_metrics_save", not));
    }
    if hosts.ecn {
        settings.push(("net.ipv4.tcp_ecn", "1".to_owned()));
    }
    settings
}

/// Applies settings to the calling thread's namespace. Returns a sentence for each that is not in force then.
pub fn apply(settings: &[(&str, String)]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (name, value) in settings {
        let outcome = set_sysctl(name, value);
        let found = sysctl(name);
        if found.as_ref() != Some(value) {
            let why = outcome.err().map_or(String::new(), |error| format!(" ({error})"));
            reasons.push(format!("{name} is {found:?} (expected {value:?}){why}"));
        }
    }
    reasons
}

/// The network namespace of the calling thread.
pub(crate) fn current_network() -> Result<OwnedFd, EmuError> {
    let file = File::open("/proc/thread-self/ns/net");
    file.map(OwnedFd::from).map_err(|error| EmuError::system("open the network namespace", error))
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: &OwnedFd) -> Result<(), EmuError> {
    sys::process::enter_network(namespace)
        .map_err(|error| EmuError::system("enter a network namespace", error))
}

fn write_proc(path: &str, value: &str) -> Result<(), EmuError> {
    fs::write(path, value).map_err(|error| EmuError::system(format!("write {value:?} to {path}"), error))
}

static WATCHES_STDIN: AtomicBool = AtomicBool::new(false);

/// From now on this process ends when the one that started it does: the kernel kills it when the starting *thread*
/// ends, and [`crate::Path::carry`] ends it when standard input, if that is a pipe, is closed at the other end.
///
/// [`crate::Path::carry`] and [`crate::shell()`] ask the kernel by themselves. Call this first in a child whose standard input
/// is a pipe that its parent holds open, so that it also ends if the parent died before it could ask.
pub fn die_with_parent() {
    WATCHES_STDIN.store(true, Ordering::Relaxed);
    ask_to_die_with_parent();
}

/// Asks the kernel to kill this process when the thread that started it ends. Entering a user namespace clears the
/// request, so it is made after that.
pub fn ask_to_die_with_parent() {
    let _ = sys::die_with_parent_thread();
}

/// The parent, if the end of standard input is its own ([`die_with_parent`]).
#[derive(Debug)]
pub(crate) struct Parent {
    input: RawFd,
}

impl Parent {
    /// The parent of this process.
    pub(crate) fn watched() -> Parent {
        let watched = WATCHES_STDIN.load(Ordering::Relaxed) && sys::is_pipe_or_socket(0);
        Parent { input: if watched { 0 } else { -1 } }
    }

    /// What to poll; -1, which poll ignores, if there is nothing to watch.
    pub(crate) fn input(&self) -> RawFd {
        self.input
    }

    /// Something came from there: ends the process if it was the end. What cannot be read is not watched any more.
    pub(crate) fn heed(&mut self) {
        match std::io::stdin().read(&mut [0; 64]) {
            Ok(0) => std::process::exit(1),
            Ok(_) => {}
            Err(_) => self.input = -1,
        }
    }
}

/// Waits until `done` is signalled. If the parent closes our standard input first, ends the process: its threads'
/// namespaces and devices end with it.
pub(crate) fn wait_for(done: &OwnedFd) -> Result<(), EmuError> {
    let mut parent = Parent::watched();
    loop {
        let ready = sys::poll([done.as_raw_fd(), parent.input()], libc::POLLIN, None)
            .map_err(|error| EmuError::system("wait for the run", error))?;
        if ready[0] != 0 {
            return Ok(());
        }
        if ready[1] != 0 {
            parent.heed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::how_to_permit_with;

    #[test]
    fn the_fix_names_the_settings_that_forbid_and_no_others() {
        let ubuntu = |name: &str| match name {
            "kernel.apparmor_restrict_unprivileged_userns" => Some("1".to_owned()),
            "user.max_user_namespaces" => Some("96365".to_owned()),
            _ => None,
        };
        let fix = how_to_permit_with(ubuntu);
        assert!(fix.contains("`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"), "{fix}");
        assert!(!fix.contains("max_user_namespaces") && !fix.contains("userns_clone"), "{fix}");
        let none = how_to_permit_with(|name| (name == "user.max_user_namespaces").then(|| "0".to_owned()));
        assert!(none.contains("`sysctl -w user.max_user_namespaces=10000`"), "{none}");
    }

    #[test]
    fn where_no_setting_forbids_it_something_else_does() {
        let fix = how_to_permit_with(|_| None);
        assert!(!fix.contains("sysctl -w") && fix.contains("container"), "{fix}");
    }
}
