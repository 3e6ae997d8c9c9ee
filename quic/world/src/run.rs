//! A whole run, on a thread of its own.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use fullpipe_export::Log;
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Time;

use crate::cc::Own;
use crate::error::QuicError;
use crate::options::Options;
use crate::random;
use crate::watch;
use crate::world::World;

/// Runs a scenario from start to end. `seed` replaces the one in `spec`. Setting `cancel` ends the run soon.
///
/// # Errors
/// When it is cancelled, when this world cannot run the scenario ([`refuses`](crate::refuses)), when the path cannot be built, or
/// when a connection breaks.
pub fn run(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, QuicError> {
    run_with(spec, seed, cancel, Options::default(), &[])
}

/// How often a run tells of its progress.
const STEPS: u128 = 50;

/// The same with other options, and with controllers that the program brings.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    spec: &Spec,
    seed: u64,
    cancel: &AtomicBool,
    options: Options,
    own: &[Own],
) -> Result<Run, QuicError> {
    run_telling(spec, seed, cancel, options, own, &mut |_| ())
}

/// The same; `progress` is told now and then which part of the scenario's time is over.
///
/// # Errors
/// As [`run`].
pub fn run_telling(
    spec: &Spec,
    seed: u64,
    cancel: &AtomicBool,
    options: Options,
    own: &[Own],
    progress: &mut (dyn FnMut(f64) + Send),
) -> Result<Run, QuicError> {
    run_perhaps_logged(spec, seed, cancel, options, own, progress, None)
}

/// The same; `log` is told what happens to packets ([`log_header`](crate::log_header)). The record is the same as without.
///
/// # Errors
/// As [`run`].
pub fn run_logged(
    spec: &Spec,
    seed: u64,
    cancel: &AtomicBool,
    options: Options,
    own: &[Own],
    progress: &mut (dyn FnMut(f64) + Send),
    log: Box<dyn Log + Send>,
) -> Result<Run, QuicError> {
    run_perhaps_logged(spec, seed, cancel, options, own, progress, Some(log))
}

fn run_perhaps_logged(
    spec: &Spec,
    seed: u64,
    cancel: &AtomicBool,
    options: Options,
    own: &[Own],
    progress: &mut (dyn FnMut(f64) + Send),
    log: Option<Box<dyn Log + Send>>,
) -> Result<Run, QuicError> {
    let whole = || {
        begin(seed)?;
        let mut world = World::new(spec, seed, options, own, true, log)?;
        for step in 1..STEPS {
            let until = Time::from_nanos((u128::from(world.end.as_nanos()) * step / STEPS) as u64);
            world.advance(until, cancel)?;
            progress(step as f64 / STEPS as f64);
        }
        world.advance(Time::NEVER, cancel)?;
        Ok(world.record(spec, seed, options))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("quic run".to_owned());
        let thread = thread
            .spawn_scoped(scope, || caught(whole))
            .map_err(|error| QuicError::Panicked(format!("no thread could be started: {error}")))?;
        // `caught` leaves nothing that could panic.
        thread.join().unwrap_or_else(|_| Err(QuicError::Panicked(String::new())))
    })
}

/// This thread is that of a run: its randomness comes from the seed from now on.
pub(crate) fn begin(seed: u64) -> Result<(), QuicError> {
    watch::enter();
    if random::begin(fullpipe_path::mix(seed)) { Ok(()) } else { Err(QuicError::Build) }
}

thread_local! {
    /// Where this thread panicked: file, line and column.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, the error of a panic says where it was. For programs: a library leaves the hook to its user.
pub(crate) fn report_positions_of_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PLACE.set(panic.location().map(ToString::to_string));
        before(panic);
    }));
}

/// Turns a panic, of this world, of a stack or of a controller, into an error: the caller goes on.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, QuicError>) -> Result<T, QuicError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let message = message.unwrap_or_default();
        let reported = PLACE.take().map(|place| format!("{place}: {message}"));
        Err(QuicError::Panicked(reported.unwrap_or(message)))
    })
}
