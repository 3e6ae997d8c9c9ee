//! Ends a program whose controller, or stack, does not return.
//!
//! A controller of a developer's own may loop for ever. Nothing can stop its thread, and without a message its run would look like
//! a slow one. So a thread of its own compares two numbers of the run's thread: how many events it has handled, and its CPU time. An
//! event takes microseconds. When [`PATIENCE_S`] of CPU time go by within one, the program answers with a sentence and ends with
//! the code [`CODE`]. CPU time passes neither while the machine does something else nor in a debugger, so that a busy machine ends
//! nothing.
//!
//! The record does not depend on it: it reads no clock for the run. A library's caller is not watched.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use fullpipe_units::Time;

/// The variable that names another patience, in seconds of CPU time.
const VARIABLE: &str = "FULLPIPE_QUIC_PATIENCE";
/// CPU time within one event, seconds.
const PATIENCE_S: f64 = 20.0;
/// The program's exit code.
const CODE: i32 = 4;

/// What a run's thread tells of itself.
#[derive(Debug)]
pub(crate) struct Beat {
    /// The thread's CPU clock.
    clock: libc::clockid_t,
    /// Events so far.
    events: AtomicU64,
    /// The time of the run, nanoseconds.
    now_ns: AtomicU64,
    /// The flow that has the processor.
    flow: AtomicUsize,
    /// Whether it is handling an event.
    busy: AtomicBool,
    /// The flows' labels.
    labels: Mutex<Vec<String>>,
}

/// That of this process: a watched program has one run.
static BEAT: OnceLock<Beat> = OnceLock::new();
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Watches the run of this process from now on. `answer` says what is wrong, and then the process ends.
///
/// # Errors
/// When the variable is no number of seconds: a sentence.
pub(crate) fn start(answer: fn(&str)) -> Result<(), String> {
    let patience = match std::env::var_os(VARIABLE) {
        Some(message) => read_patience(&message.to_string_lossy())?,
        None => Duration::from_secs_f64(PATIENCE_S),
    };
    WATCHED.store(true, Ordering::Relaxed);
    // If there is no thread, nobody watches.
    let thread = std::thread::Builder::new().name("watch".to_owned());
    let _ = thread.spawn(move || {
        let interval = (patience / 4).clamp(Duration::from_millis(1), Duration::from_millis(500));
        let mut seen = (0, Duration::ZERO);
        loop {
            std::thread::sleep(interval);
            let Some(beat) = BEAT.get() else { continue };
            let Some(spent) = beat.cpu_time() else { return };
            let events = beat.events.load(Ordering::Relaxed);
            if events != seen.0 || !beat.busy.load(Ordering::Relaxed) {
                seen = (events, spent);
            } else if spent.saturating_sub(seen.1) > patience {
                answer(&beat.sentence(patience));
                std::process::exit(CODE);
            }
        }
    });
    Ok(())
}

fn read_patience(message: &str) -> Result<Duration, String> {
    message
        .trim()
        .parse()
        .ok()
        .filter(|seconds: &f64| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            format!("{VARIABLE}: {message:?}; expected seconds of CPU time above 0, e.g. 60; or unset it")
        })
}

/// This thread is that of the run. Does nothing in a program that is not watched.
pub(crate) fn enter() {
    if !WATCHED.load(Ordering::Relaxed) {
        return;
    }
    let mut clock = 0;
    // SAFETY: the thread is this one, and `clock` may be written.
    if unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) } != 0 {
        return;
    }
    let _ = BEAT.set(Beat {
        clock,
        events: AtomicU64::new(0),
        now_ns: AtomicU64::new(0),
        flow: AtomicUsize::new(0),
        busy: AtomicBool::new(false),
        labels: Mutex::default(),
    });
}

/// The beat of this process, if it is watched.
pub(crate) fn beat() -> Option<&'static Beat> {
    BEAT.get()
}

impl Beat {
    pub(crate) fn name_flows(&self, labels: Vec<String>) {
        if let Ok(mut ours) = self.labels.lock() {
            *ours = labels;
        }
    }

    /// An event begins, at this time of the run.
    #[inline]
    pub(crate) fn begin(&self, now: Time) {
        self.now_ns.store(now.as_nanos(), Ordering::Relaxed);
        self.events.store(self.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.busy.store(true, Ordering::Relaxed);
    }

    /// It goes on with this flow.
    #[inline]
    pub(crate) fn of_flow(&self, index: usize) {
        self.flow.store(index, Ordering::Relaxed);
    }

    /// No event is being handled.
    pub(crate) fn pause(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// CPU time of the run's thread; `None` if it has ended.
    fn cpu_time(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` may be written; the clock of a thread that has ended is an error.
        #[expect(clippy::disallowed_methods, reason = "CPU time; no run depends on it")]
        let failed = unsafe { libc::clock_gettime(self.clock, &mut time) } != 0;
        (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    fn sentence(&self, patience: Duration) -> String {
        let index = self.flow.load(Ordering::Relaxed);
        let label = self.labels.lock().ok().and_then(|labels| labels.get(index).cloned()).unwrap_or_default();
        format!(
            "flow {label}: its controller or its stack has not returned for {} s of CPU time, at {:.6} s of the run; look for a \
             loop without end, or set {VARIABLE} to more seconds",
            patience.as_secs_f64(),
            self.now_ns.load(Ordering::Relaxed) as f64 / 1e9,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_seconds_above_zero() {
        assert_eq!(read_patience("60"), Ok(Duration::from_secs(60)));
        assert_eq!(read_patience(" 0.05 "), Ok(Duration::from_millis(50)));
        for message in ["", "0", "-1", "nan", "inf", "1e300", "ten", "10 s"] {
            let sentence = read_patience(message).unwrap_err();
            assert!(
                sentence.starts_with(&format!("FULLPIPE_QUIC_PATIENCE: {message:?}; expected")),
                "{sentence}"
            );
        }
    }
}
