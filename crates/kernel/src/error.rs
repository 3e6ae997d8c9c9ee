//! Errors as sentences, each with a fix.

use std::io;

use fullpipe_emu::EmuError;

/// Why the kernel world cannot run. `Display` is one sentence; [`KernelError::fix`] is the fix.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The path cannot be emulated.
    #[error(transparent)]
    Emu(#[from] EmuError),
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control {name:?}; it has {}", .available.join(", "))]
    NoAlgorithm {
        /// The name in Linux.
        name: String,
        /// What the kernel has.
        available: Vec<String>,
    },
    /// Something is missing that is needed to record the kernel's decisions.
    #[error("cannot record the kernel's decisions: {reason}")]
    NoRecorder {
        /// What is missing.
        reason: String,
        /// How to get it.
        fix: String,
    },
    /// Something is missing that is needed to load a congestion control of ours, or it is already loaded.
    #[error("cannot load the congestion control: {reason}")]
    NotLoaded {
        /// What is missing.
        reason: String,
        /// How to get it.
        fix: String,
    },
    /// A congestion control that is to be looked at or removed is not loaded.
    #[error("no congestion control {name:?} of Fullpipe is loaded; loaded: {}", if .loaded.is_empty() { "none".to_owned() } else { .loaded.join(", ") })]
    NothingLoaded {
        /// The name.
        name: String,
        /// What is.
        loaded: Vec<String>,
    },
    /// A recording with gaps, which cannot be replayed.
    #[error("the recorder lost {lost} calls and kept {kept}")]
    LostCalls {
        /// How many were lost.
        lost: u64,
        /// How many were kept.
        kept: usize,
    },
    /// A recording that does not fit into memory.
    #[error("the recording has more than {most} calls")]
    TooManyCalls {
        /// How many it may have.
        most: usize,
    },
    /// A log cannot be written.
    #[error("cannot log the run's packets: {0}")]
    Log(#[source] io::Error),
}

impl KernelError {
    /// A failed system call, as [`EmuError::system`].
    pub fn system(attempted: impl Into<String>, source: io::Error) -> KernelError {
        EmuError::system(attempted, source).into()
    }

    /// The fix, one sentence.
    pub fn fix(&self) -> String {
        match self {
            KernelError::Emu(error) => error.fix(),
            KernelError::NoAlgorithm { name, .. } => format!(
                "load its module as root (`modprobe tcp_{name}`), choose one of these, or use the simulator \
                 (--world sim)"
            ),
            KernelError::NoRecorder { fix, .. } | KernelError::NotLoaded { fix, .. } => fix.clone(),
            KernelError::NothingLoaded { .. } => {
                "name one that is (`fullpipe kernel status`), or load it (`fullpipe kernel load`)".to_owned()
            }
            KernelError::LostCalls { .. } => {
                "stop other programs on this machine, or record a slower path or fewer flows".to_owned()
            }
            KernelError::Log(_) => "check the disk of the log's folder".to_owned(),
            KernelError::TooManyCalls { .. } => {
                "record a shorter time, a slower path or fewer flows".to_owned()
            }
        }
    }
}
