//! Where the stacks' randomness comes from: during a run, from its seed.
//!
//! The stacks take a seed for most of what they draw, but not for all: noq's BBRv3 and its reserved transport parameter draw
//! from the thread's generator, which `rand` seeds from `getrandom`. Built with `--cfg getrandom_backend="custom"`, `getrandom`
//! (0.3 and 0.4) calls the function below. On the thread of a run it hands out a stream of the run's seed, and on any other
//! thread what the operating system gives. Each run has a thread of its own, because the thread's generator lives as long as
//! its thread.
//!
//! TLS draws from the operating system in any case (`ring` uses `getrandom` 0.2). Its values have constant lengths, and nothing
//! in a record depends on more of them than their lengths.

use std::cell::Cell;

use fullpipe_path::mix;
use getrandom::Error;

thread_local! {
    /// The state of this run's stream; `None` on threads that run nothing.
    static STREAM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What is added to the state of a stream for each eight bytes (SplitMix64; Steele, Lea and Flood 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// From now on, randomness on this thread comes from `seed`. Returns whether it does: only if the whole program was built with
/// the flag.
pub(crate) fn begin(seed: u64) -> bool {
    STREAM.set(Some(seed));
    let mut drawn = [0; 8];
    let filled = getrandom::fill(&mut drawn).is_ok();
    STREAM.set(Some(seed));
    filled && drawn == mix(seed.wrapping_add(STEP)).to_le_bytes()
}

/// Bytes for `getrandom`.
///
/// # Safety
/// `dest` is valid for writes of `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(dest: *mut u8, len: usize) -> Result<(), Error> {
    // SAFETY: the caller says that it may be written; once it is, it is initialised.
    let out = unsafe {
        dest.write_bytes(0, len);
        std::slice::from_raw_parts_mut(dest, len)
    };
    match STREAM.get() {
        Some(state) => {
            STREAM.set(Some(fill(state, out)));
            Ok(())
        }
        None => from_system(out),
    }
}

/// Fills `out`, and returns the state of the stream behind it.
fn fill(mut state: u64, out: &mut [u8]) -> u64 {
    for piece in out.chunks_mut(8) {
        state = state.wrapping_add(STEP);
        piece.copy_from_slice(&mix(state).to_le_bytes()[..piece.len()]);
    }
    state
}

fn from_system(mut out: &mut [u8]) -> Result<(), Error> {
    while !out.is_empty() {
        // SAFETY: `out` may be written.
        let filled = unsafe { libc::syscall(libc::SYS_getrandom, out.as_mut_ptr(), out.len(), 0) };
        match usize::try_from(filled) {
            Ok(filled) => out = &mut out[filled..],
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Error::UNEXPECTED),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn_with(seed: u64) -> Vec<u8> {
        let draw = move || {
            assert!(begin(seed), "tests need RUSTFLAGS='--cfg getrandom_backend=\"custom\"'");
            let mut drawn = vec![0; 21];
            getrandom::fill(&mut drawn).unwrap();
            drawn
        };
        std::thread::spawn(draw).join().unwrap()
    }

    #[test]
    fn a_seed_gives_one_stream() {
        assert_eq!(drawn_with(7), drawn_with(7));
        assert_ne!(drawn_with(7), drawn_with(8));
    }

    #[test]
    fn idle_threads_use_system_randomness() {
        let draw = || {
            let mut drawn = [0; 32];
            getrandom::fill(&mut drawn).map(|()| drawn)
        };
        assert_ne!(draw().unwrap(), draw().unwrap());
    }
}
