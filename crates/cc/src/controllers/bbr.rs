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
use crate::controllers::recovery::PriorThreshold;
use crate::gain::Gain;

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

/// What a view under the kernel's names has of a value: most as they are, gains and thresholds as numbers.
pub(crate) trait InView<V> {
    fn view(self) -> V;
    fn restored(view: V) -> Self;
}

impl<V> InView<V> for V {
    fn view(self) -> V {
        self
    }

    fn restored(view: V) -> V {
        view
    }
}

impl InView<u32> for Gain {
    fn view(self) -> u32 {
        self.q8()
    }

    fn restored(view: u32) -> Gain {
        Gain::from_q8(view)
    }
}

impl InView<u32> for PriorThreshold {
    fn view(self) -> u32 {
        self.get().unwrap_or(0)
    }

    fn restored(view: u32) -> PriorThreshold {
        PriorThreshold::restored(view)
    }
}

/// Defines the view of a controller under the kernel's names: each field with its type, and where the controller has it.
macro_rules! state {
    (
        $(#[$about:meta])*
        pub struct State of $Controller:ident;
        $($(#[$note:meta])* $field:ident: $Type:ty = $place:ident $(.$within:ident)?,)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names and meanings are those of the kernel's struct bbr")]
        pub struct State {
            $($(#[$note])* pub $field: $Type,)+
            /// `tp->snd_cwnd`.
            pub snd_cwnd: u32,
            /// `tp->snd_ssthresh`.
            pub snd_ssthresh: u32,
            /// `sk->sk_pacing_rate`, bytes a second.
            pub pacing_rate: u64,
            /// `tp->prior_ssthresh`, which the core keeps: the threshold to return to, zero if nothing can be undone.
            pub prior_ssthresh: u32,
        }

        impl $Controller {
            /// The whole state.
            pub fn state(&self) -> State {
                use $crate::controllers::bbr::InView;
                State {
                    $($field: self.$place$(.$within)?.view(),)+
                    snd_cwnd: self.cwnd,
                    snd_ssthresh: self.ssthresh,
                    pacing_rate: self.pacing_rate,
                    prior_ssthresh: self.prior_ssthresh.view(),
                }
            }

            /// Takes over such a state; parameters and configuration stay.
            pub fn restore(&mut self, state: &State) {
                use $crate::controllers::bbr::InView;
                $(self.$place$(.$within)? = InView::restored(state.$field);)+
                self.cwnd = state.snd_cwnd;
                self.ssthresh = state.snd_ssthresh;
                self.pacing_rate = state.pacing_rate;
                self.prior_ssthresh = InView::restored(state.prior_ssthresh);
                self.plan_bursts();
            }
        }
    };
}
pub(crate) use state;
