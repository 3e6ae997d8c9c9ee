//! What can go wrong, in sentences, each with the way to mend it.

use std::io;

/// Why the kernel world cannot run. `Display` is one sentence; [`EmuError::mend`] says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// A right is missing.
    #[error("not permitted to {attempted}: {source}")]
    NotPermitted {
        /// What was attempted.
        attempted: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no usable `/dev/net/tun`.
    #[error("cannot open /dev/net/tun: {0}")]
    NoTun(io::Error),
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control {name:?}; it has {}", .available.join(", "))]
    NoAlgorithm {
        /// The name in Linux.
        name: String,
        /// What the kernel has.
        available: Vec<String>,
    },
    /// The scenario asks for something that the kernel world cannot do.
    #[error("{field}: {reason}")]
    Unsupported {
        /// Which part of the scenario.
        field: String,
        /// Why not.
        reason: String,
        /// What to do instead.
        mend: String,
    },
    /// The path cannot be built.
    #[error("the path cannot be built: {0}")]
    Path(String),
    /// Any other failed system call.
    #[error("cannot {attempted}: {source}")]
    System {
        /// What was attempted.
        attempted: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something is missing that recording the kernel's decisions needs.
    #[error("cannot record the kernel's decisions: {reason}")]
    NoRecorder {
        /// What.
        reason: String,
        /// How to get it.
        mend: String,
    },
    /// A recording with gaps, which nobody can replay.
    #[error("the recorder lost {lost} calls and kept {kept}")]
    LostCalls {
        /// How many found no room.
        lost: u64,
        /// How many did.
        kept: usize,
    },
    /// A recording that does not fit into memory.
    #[error("the recording has more than {most} calls")]
    TooManyCalls {
        /// How many it may have.
        most: usize,
    },
    /// Part of the emulator stopped early.
    #[error("the {0} stopped unexpectedly")]
    Stopped(&'static str),
}

impl EmuError {
    /// A failed system call, sorted by what it means. `attempted` completes the sentence "cannot ...".
    pub fn system(attempted: impl Into<String>, source: io::Error) -> EmuError {
        let attempted = attempted.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => EmuError::NotPermitted { attempted, source },
            _ => EmuError::System { attempted, source },
        }
    }

    /// What to do about it, one sentence.
    pub fn mend(&self) -> String {
        match self {
            EmuError::NotPermitted { .. } => {
                "run as root, or allow unprivileged user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1` \
                 (Debian), `sysctl -w user.max_user_namespaces=10000`, \
                 `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu)"
                    .to_owned()
            }
            EmuError::NoTun(source) if source.raw_os_error() == Some(libc::EACCES) => {
                "run as root, or let everyone open the device: `chmod 666 /dev/net/tun`".to_owned()
            }
            EmuError::NoTun(_) => {
                "load the module (`modprobe tun`) and make the node: `mkdir -p /dev/net && mknod -m 666 /dev/net/tun c \
                 10 200`; in a container, pass `--device /dev/net/tun`"
                    .to_owned()
            }
            EmuError::NoAlgorithm { name, .. } => format!(
                "load its module as root (`modprobe tcp_{name}`), choose one that is there, or use the simulator \
                 (--world sim)"
            ),
            EmuError::Unsupported { mend, .. } | EmuError::NoRecorder { mend, .. } => mend.clone(),
            EmuError::LostCalls { .. } => {
                "stop what else runs on this machine, or record a slower path or fewer flows".to_owned()
            }
            EmuError::TooManyCalls { .. } => "record a shorter time, a slower path or fewer flows".to_owned(),
            EmuError::Path(_) => "correct the path in the scenario".to_owned(),
            EmuError::System { .. } | EmuError::Stopped(_) => {
                "`fullpipe doctor` shows what this machine can do".to_owned()
            }
        }
    }
}
