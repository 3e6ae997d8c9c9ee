//! A log of a run as text.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_export::qlog::Qlog;
use fullpipe_export::{Event, Files, Log};
use fullpipe_scenario::Spec;
use fullpipe_sim::log_header;
use fullpipe_units::Time;

use crate::answer::Refusal;
use crate::request::QlogForm;
use crate::run::run_logged;

/// The most packets of a log: about 150 MB. It says so if it ends there.
const MOST_PACKETS: u64 = 200_000;

/// The log of a run in one form. `label` is what the command line calls the alternative.
pub(crate) fn of_run(label: &str, spec: &Spec, seed: u64, form: QlogForm) -> Result<Vec<u8>, Refusal> {
    let header = log_header(label, spec, seed);
    let text = Arc::new(Mutex::new(Vec::new()));
    let out = |of: QlogForm| Out((of == form).then(|| Arc::clone(&text)));
    let never = |error: io::Error| Refusal::Failure(format!("a log in memory cannot be written: {error}"));
    let qlog = Qlog::new(out(QlogForm::Current), out(QlogForm::Qvis), &header).map_err(never)?;
    let files = Arc::new(Mutex::new(Files::new(Some(qlog), None, &header, MOST_PACKETS)));
    run_logged(spec, seed, Shared(Arc::clone(&files)))?;
    let files = Arc::into_inner(files).expect("the run is over, and its log gone");
    files.into_inner().unwrap_or_else(PoisonError::into_inner).finish().map_err(never)?;
    Ok(std::mem::take(&mut text.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Where a form goes: into the text, or nowhere.
struct Out(Option<Arc<Mutex<Vec<u8>>>>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(text) = &self.0 {
            text.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Shared(Arc<Mutex<Files<Out>>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(at, flow, event);
    }
}
