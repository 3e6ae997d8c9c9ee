//! What both stacks share: what streams carry, and the time of a run as theirs.

use std::sync::LazyLock;
use std::time::Instant;

use fullpipe_path::mix;
use fullpipe_units::Time;

/// What a stream carries, in pieces of at most this. It fits a processor's second cache, from which packets are copied.
pub(crate) static CHUNK: [u8; 32 << 10] = [0x5a; 32 << 10];

/// The instant that stands for the beginning of every run. Only differences to it matter; some way before it must be
/// representable, for stacks that subtract.
#[expect(
    clippy::disallowed_methods,
    reason = "the stacks need an `Instant`, and there is no other way to get one"
)]
pub(crate) fn epoch() -> Instant {
    static EPOCH: LazyLock<Instant> =
        LazyLock::new(|| Instant::now() + std::time::Duration::from_secs(100_000));
    *EPOCH
}

/// A time of the run as the stack's.
pub(crate) fn then(epoch: Instant, now: Time) -> Instant {
    epoch + std::time::Duration::from_nanos(now.as_nanos())
}

/// A time of the stack as the run's.
pub(crate) fn since(epoch: Instant, at: Instant) -> Time {
    let nanos = at.saturating_duration_since(epoch).as_nanos();
    u64::try_from(nanos).map_or(Time::NEVER, Time::from_nanos)
}

/// The rate at which both stacks pace by the window, bytes a second: 1.25 windows in a round trip (RFC 9002, section 7.7, with
/// its N = 1.25).
pub(crate) fn paced_by_window(window: u64, srtt: std::time::Duration) -> Option<u64> {
    let rate = u128::from(window) * 1_250_000_000 / srtt.as_nanos().max(1);
    (!srtt.is_zero()).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Fills `out` with what depends on `key` and `data`.
pub(crate) fn sign(key: u64, data: &[u8], out: &mut [u8]) {
    let state = data.iter().fold(mix(key), |state, byte| mix(state.wrapping_add(u64::from(*byte) + 1)));
    for (index, piece) in out.chunks_mut(8).enumerate() {
        piece.copy_from_slice(&mix(state.wrapping_add(index as u64)).to_le_bytes()[..piece.len()]);
    }
}
