//! The files that a run is logged into. Python opens, names and removes them; what is written into them is written here.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_export::pcapng::Pcapng;
use fullpipe_export::qlog::Qlog;
use fullpipe_export::{Event, Files, Log, Written};
use fullpipe_record::Run;
use fullpipe_scenario::Spec;
use fullpipe_sim::{SimError, Simulation, Status, log_header};
use fullpipe_units::{Duration, Time};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// How often a run that is logged looks whether its files can still be written, in parts of its length.
const LOOKS: u64 = 256;

type Out = BufWriter<File>;

/// What became of the files of a run.
#[derive(Default)]
pub(crate) struct Logged {
    /// When they had the most packets that they may, if they end there.
    pub(crate) full_at: Option<Time>,
    /// Packets that are not in them because the disk was too slow.
    pub(crate) missed: u64,
}

/// Where the packets of a run are logged: descriptors of open files.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct Logs {
    pub(crate) title: String,
    pub(crate) qlog: Option<(File, File)>,
    pub(crate) pcap: Option<File>,
    // Only Linux has the kernel world.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    pub(crate) spool: Option<File>,
    pub(crate) snaplen: u32,
    pub(crate) most: u64,
    logged: Mutex<Logged>,
}

/// A file of its own for a descriptor that Python holds open.
#[cfg(unix)]
fn own(descriptor: i32) -> io::Result<File> {
    /// The standard library has no kind for it, and panics at a negative descriptor.
    const EBADF: i32 = 9;
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(EBADF));
    }
    // SAFETY: Python holds it open during this call.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) };
    Ok(File::from(borrowed.try_clone_to_owned()?))
}

/// Elsewhere, a descriptor is a number of the C library, of which Rust knows nothing.
#[cfg(not(unix))]
fn own(_descriptor: i32) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "logs of packets need Linux or macOS"))
}

#[pymethods]
impl Logs {
    /// `qlog` are files for the current form and for the older one. A packet in the file `pcap` is cut behind `snaplen` bytes. No
    /// file gets more than `most` packets. The kernel world needs `spool`, an empty file to write and read, for a qlog.
    #[new]
    #[pyo3(signature = (title, qlog, pcap, snaplen, most, spool=None))]
    fn new(
        title: String,
        qlog: Option<(i32, i32)>,
        pcap: Option<i32>,
        snaplen: u32,
        most: u64,
        spool: Option<i32>,
    ) -> PyResult<Logs> {
        let qlog = qlog.map(|(one, other)| Ok((own(one)?, own(other)?))).transpose();
        let pcap = pcap.map(own).transpose();
        let spool = spool.map(own).transpose();
        Ok(Logs {
            title,
            qlog: qlog.map_err(|error| os_error(&error))?,
            pcap: pcap.map_err(|error| os_error(&error))?,
            spool: spool.map_err(|error| os_error(&error))?,
            snaplen,
            most,
            logged: Mutex::default(),
        })
    }

    /// When the files had the most packets that they may, in seconds, if they end there. After the run.
    fn full_at_s(&self) -> Option<f64> {
        self.lock().full_at.map(Time::as_secs_f64)
    }

    /// How many packets are not in the files because the disk was too slow. After the run.
    fn missed(&self) -> u64 {
        self.lock().missed
    }
}

impl Logs {
    fn lock(&self) -> MutexGuard<'_, Logged> {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what became of them.
    pub(crate) fn note(&self, logged: Logged) {
        *self.lock() = logged;
    }

    fn begin(&self, spec: &Spec, seed: u64) -> io::Result<Files<Out>> {
        let header = log_header(&self.title, spec, seed);
        let out =
            |file: &File| -> io::Result<Out> { Ok(BufWriter::with_capacity(1 << 18, file.try_clone()?)) };
        let qlog = match &self.qlog {
            Some((one, other)) => Some(Qlog::new(out(one)?, out(other)?, &header)?),
            None => None,
        };
        let application = concat!("Fullpipe ", env!("CARGO_PKG_VERSION"));
        let pcap = match &self.pcap {
            Some(file) => Some(Pcapng::new(out(file)?, self.snaplen, application, "sender")?),
            None => None,
        };
        Ok(Files::new(qlog, pcap, &header, self.most))
    }
}

/// Why a logged run failed.
pub(crate) enum LogError {
    Sim(SimError),
    File(io::Error),
}

/// The files, as the log of a simulation.
struct Shared(Arc<Mutex<Files<Out>>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(at, flow, event);
    }
}

/// A simulation that is logged, and its files.
pub(crate) struct LoggedSimulation {
    pub(crate) simulation: Simulation,
    pub(crate) files: Arc<Mutex<Files<Out>>>,
}

impl LoggedSimulation {
    pub(crate) fn new(spec: &Spec, seed: u64, logs: &Logs) -> Result<LoggedSimulation, LogError> {
        let files = Arc::new(Mutex::new(logs.begin(spec, seed).map_err(LogError::File)?));
        let log = Box::new(Shared(Arc::clone(&files)));
        let simulation = Simulation::logged(spec, seed, log).map_err(LogError::Sim)?;
        Ok(LoggedSimulation { simulation, files })
    }

    /// Runs to the end, or until a file cannot be written.
    pub(crate) fn run(mut self, cancel: &AtomicBool, logs: &Logs) -> Result<Run, LogError> {
        let part = Duration::from_nanos(self.simulation.end().as_nanos() / LOOKS + 1);
        loop {
            let until = self.simulation.now() + part;
            let status = self.simulation.advance_unless(until, cancel).map_err(LogError::Sim)?;
            if status == Status::Over || self.has_failed() {
                break;
            }
        }
        self.finish(logs)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).failed()
    }

    /// Ends the files, and gives the record.
    pub(crate) fn finish(self, logs: &Logs) -> Result<Run, LogError> {
        let LoggedSimulation { simulation, files } = self;
        let failed = files.lock().unwrap_or_else(PoisonError::into_inner).failed();
        // The simulation has the other handle.
        let run = (!failed).then(|| simulation.finish());
        let files = Arc::into_inner(files).expect("the simulation is gone");
        let written = files.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
        let Written { full_at } = written.map_err(LogError::File)?;
        logs.note(Logged { full_at, missed: 0 });
        Ok(run.expect("files that have not failed"))
    }
}

/// An error of a file, as Python's own.
pub(crate) fn os_error(error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text))
        }
        None => PyOSError::new_err(error.to_string()),
    }
}

impl LogError {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            LogError::Sim(error) => crate::errors::sim_error(py, &error),
            LogError::File(error) => os_error(&error),
        }
    }
}
