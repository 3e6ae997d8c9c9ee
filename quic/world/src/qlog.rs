//! The files of a logged run, which whoever runs the program has opened.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_export::qlog::Qlog;
use fullpipe_export::{Event, Files, Log};
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::failure;
use crate::tap::log_header;

type Out = BufWriter<File>;

/// A qlog that is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QlogRequest {
    /// What runs.
    title: String,
    /// Descriptors of the current form and of the older one.
    files: [RawFd; 2],
    /// The most packets.
    most: u64,
}

/// Files that a run is logged into.
pub(crate) struct QlogFiles(Arc<Shared>);

struct Shared {
    files: Mutex<Option<Files<Out>>>,
    /// Ends the run when a file cannot be written.
    cancel: Arc<AtomicBool>,
}

impl Shared {
    fn files(&self) -> MutexGuard<'_, Option<Files<Out>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reported(Arc<Shared>);

impl Log for Reported {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        if let Some(files) = &mut *self.0.files() {
            files.take(at, flow, event);
            if files.failed() {
                self.0.cancel.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl QlogFiles {
    /// Begins both files; or the answer that says why not.
    pub(crate) fn begin(
        asked: &QlogRequest,
        spec: &Spec,
        seed: u64,
        cancel: Arc<AtomicBool>,
    ) -> Result<QlogFiles, Value> {
        let [one, other] = asked.files;
        if one == other {
            return Err(failure("WorldError", &format!("qlog.files: both are {one}; expected two files")));
        }
        let (one, other) = (opened(one)?, opened(other)?);
        let header = log_header(&asked.title, spec, seed);
        let out = |file| BufWriter::with_capacity(1 << 18, file);
        let qlog = Qlog::new(out(one), out(other), &header).map_err(|error| of_file(&error))?;
        let files = Files::new(Some(qlog), None, &header, asked.most);
        Ok(QlogFiles(Arc::new(Shared { files: Mutex::new(Some(files)), cancel })))
    }

    /// What a run tells.
    pub(crate) fn log(&self) -> Box<dyn Log + Send> {
        Box::new(Reported(self.0.clone()))
    }

    /// Ends both files. Returns when they had all the packets that they may; or the answer that says what could not be written.
    pub(crate) fn finish(self) -> Result<Option<Time>, Value> {
        match self.0.files().take().map(Files::finish) {
            Some(Ok(written)) => Ok(written.full_at),
            Some(Err(error)) => Err(of_file(&error)),
            None => Ok(None),
        }
    }
}

/// The file of a descriptor that this program has inherited.
fn opened(descriptor: RawFd) -> Result<File, Value> {
    let wrong = |why: &str| {
        let wording =
            format!("qlog.files: {descriptor} {why}; expected the descriptor of a file to write into");
        failure("WorldError", &wording)
    };
    if descriptor <= libc::STDERR_FILENO {
        return Err(wrong("is no descriptor of a file of its own"));
    }
    // SAFETY: it is borrowed for this call only, which fails if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let file = borrowed.try_clone_to_owned().map(File::from).map_err(|_| wrong("is not open"))?;
    match file.metadata() {
        Ok(state) if state.is_file() => Ok(file),
        _ => Err(wrong("is no file")),
    }
}

/// An error of a file, whose name only the parent knows.
fn of_file(error: &io::Error) -> Value {
    let message = error.to_string();
    let message = message.split(" (os error").next().unwrap_or_default();
    json!({"ok": false, "kind": "OSError", "message": message, "errno": error.raw_os_error().unwrap_or(libc::EIO)})
}
