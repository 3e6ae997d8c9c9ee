//! What Linux's BBRv1 ([`crate::controllers::bbr1`]) and Google's BBRv3 for Linux ([`crate::controllers::bbr3_linux`]) both have. The draft's BBRv3
//! ([`crate::controllers::bbr3`]) counts bytes and shares only `rounds` and `Moment`.
//!
//! Bandwidth is in segments a microsecond times 2^24, gains in 1/256, stamps in microseconds or jiffies, all in integers
//! that wrap as the kernel's do. Constants are parameters of each version; these files have none that a version changes.
//!
//! | file | what | Linux |
//! |---|---|---|
//! | `bandwidth` | pacing rate, smallest burst, bandwidth-delay product | `bbr_rate_bytes_per_sec`, `bbr_min_tso_segs`, `bbr_bdp` |
//! | `rounds` | packet-timed round trips | `next_rtt_delivered`, `rtt_cnt`, `round_start` |
//! | `ack_aggregation` | what ACKs deliver beyond the expected | `bbr_update_ack_aggregation` |
//!
//! Not here, because the versions differ: the bandwidth filter (ten rounds against two cycles), the plateau that ends Startup
//! (BBRv3 looks at each sample, and has a second verdict for its probes), the minimum RTT (BBRv3 takes an equal RTT for a new
//! minimum and keeps a second, shorter window), the goal of a burst, ProbeBW, and the window in recovery.

pub(crate) mod ack_aggregation;
pub(crate) mod bandwidth;
pub(crate) mod rounds;

use crate::controller::Connection;

/// When something happens, as far as the phases of BBRv3 are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The time in microseconds.
    pub(crate) now_us: u64,
    /// Units that the connection has delivered.
    pub(crate) delivered: u64,
    /// [`Connection::random`].
    pub(crate) random: u32,
}

impl Moment {
    #[inline]
    pub(crate) fn of(connection: &Connection) -> Moment {
        Moment {
            now_us: connection.now.as_micros(),
            delivered: connection.delivered,
            random: connection.random,
        }
    }
}

/// Microseconds from `earlier` to `later`, zero if it is the other way round (Linux: `tcp_stamp_us_delta`).
#[inline]
pub(crate) const fn stamp_delta(later: u64, earlier: u64) -> u32 {
    let delta = later.wrapping_sub(earlier) as i64;
    if delta < 0 { 0 } else { delta as u32 }
}

/// Whether `a` is later than `b` on a wrapping clock (Linux: `after`).
#[inline]
pub(crate) const fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}
