//! CUBIC in the kernel's place: the increase algorithm alone, with the window as the core had it before each call.

mod branches;

use branches::Seen;

use super::coverage::Coverage;
use super::layout::CUBIC;
use super::machine::{Fields, MOST_FIELDS, Machine};
use super::plausible::{Unequal, unequal};
use super::unwrapped::Unwrapped;
use super::{Call, Hook, Private};
use fullpipe_cc::controller::{CaState, Config, Limits};
use fullpipe_cc::controllers::cubic::{CubicIncrease, Curve, Params};
use fullpipe_cc::controllers::hystart::Round;
use fullpipe_cc::controllers::segment_window::{Acked, Algorithm, Clocks, Pacing, Sampled, Window};
use fullpipe_units::Rate;

/// Linux: `CA_EVENT_TX_START`.
const TX_START: i64 = 0;

/// The field in which idleness shows.
const EPOCH_START: usize = 7;

#[derive(Clone, Copy, Debug)]
pub(super) struct CubicMachine {
    hz: u32,
    increase: Option<CubicIncrease>,
    /// `init` was called.
    established: bool,
    /// In bytes. HyStart only compares.
    snd_nxt: Unwrapped,
    /// The window after the last call, and what the call had to return.
    window: Window,
    returned: u32,
    /// The same, if it was a threshold.
    ssthresh: Option<u32>,
}

impl CubicMachine {
    pub(super) fn new(hz: u32) -> CubicMachine {
        let window = Window { cwnd: 0, ssthresh: 0, cwnd_cnt: 0, clamp: 0, prior_cwnd: 0 };
        CubicMachine {
            hz,
            increase: None,
            established: false,
            snd_nxt: Unwrapped::default(),
            window,
            returned: 0,
            ssthresh: None,
        }
    }

    pub(super) const fn coverage() -> Coverage {
        branches::COVERAGE
    }

    fn fresh(&mut self, call: &Call) -> CubicIncrease {
        let socket = &call.socket;
        let config = Config {
            mss: socket.mss_cache,
            unit: socket.mss_cache,
            initial_cwnd: socket.snd_cwnd,
            cwnd_clamp: socket.snd_cwnd_clamp,
            max_pacing_rate: Rate::MAX,
            gso_max: socket.sk_gso_max_size,
            max_tcp_header: socket.max_tcp_header(),
            paced: is_paced(call),
            hz: self.hz,
            ssthresh: Limits::INFINITE,
        };
        self.snd_nxt = Unwrapped::default();
        let snd_nxt = self.snd_nxt.follow(socket.snd_nxt);
        CubicIncrease::new(&Params::default(), &config, socket.tcp_mstamp as u32, snd_nxt)
    }
}

fn is_paced(call: &Call) -> bool {
    call.socket.sk_pacing_status != 0
}

fn window(call: &Call) -> Window {
    let socket = &call.socket;
    Window {
        cwnd: socket.snd_cwnd,
        ssthresh: socket.snd_ssthresh,
        cwnd_cnt: socket.snd_cwnd_cnt,
        clamp: socket.snd_cwnd_clamp,
        prior_cwnd: socket.prior_cwnd,
    }
}

/// How long the flow was idle, in jiffies: `lsndtime` is not recorded, but the epoch was shifted by it, up to now. All
/// that a record shows about a shift is that it is forwards.
fn idle(call: &Call) -> u32 {
    let epoch_start = |private: &Private| CUBIC[EPOCH_START].get(private) as u32;
    let shift = epoch_start(&call.private_after).wrapping_sub(epoch_start(&call.private_before));
    if shift as i32 > 0 { shift } else { 0 }
}

impl Machine for CubicMachine {
    fn clear(&mut self, call: &Call) {
        let mut increase = self.fresh(call);
        // On a wrapping clock of sequence numbers, zero is half behind and half ahead.
        increase.restore(Curve::default(), Round { end_seq: self.snd_nxt.near(0), ..Round::default() });
        self.increase = Some(increase);
        self.established = false;
    }

    fn init(&mut self, call: &Call) {
        // cubictcp_init sets every field.
        self.increase = Some(self.fresh(call));
        self.established = true;
    }

    /// The core owns the window, but takes the threshold that it asked for.
    fn before(&self, call: &Call) -> Result<(), Unequal> {
        match self.ssthresh {
            Some(ours) => unequal(&[("snd_ssthresh", ours as u64, call.socket.snd_ssthresh as u64)]),
            None => Ok(()),
        }
    }

    fn follow_socket(&mut self, _: &Call) {}

    fn make(&mut self, call: &Call, coverage: &mut Coverage) {
        let socket = &call.socket;
        let mut increase = self.increase.expect("a flow begins with clear or init");
        increase.set_host(socket.sk_gso_max_size, is_paced(call));
        let clocks = Clocks { jiffies: socket.jiffies32, now_us: socket.tcp_mstamp as u32 };
        let snd_nxt = self.snd_nxt.follow(socket.snd_nxt);
        let before = (increase, window(call));
        let mut window = before.1;
        let mut limited = true;
        self.returned = 0;
        match call.hook {
            Hook::PktsAcked => {
                // Duplicates without timestamps bring no RTT.
                if let Ok(rtt_us) = u32::try_from(call.arguments[2]) {
                    let snd_una = self.snd_nxt.near(socket.snd_una);
                    let pacing = Pacing::from_bytes_per_sec(socket.sk_pacing_rate);
                    increase.pkts_acked(&mut window, clocks, &Sampled { rtt_us, snd_una, snd_nxt, pacing });
                }
            }
            Hook::CongAvoid => {
                limited = window.is_limit(socket.is_cwnd_limited, socket.max_packets_out);
                if limited {
                    let (segments, snd_una) = (call.arguments[1] as u32, self.snd_nxt.near(socket.snd_una));
                    increase.cong_avoid(&mut window, clocks, Acked { segments, snd_una, snd_nxt });
                }
            }
            Hook::Ssthresh => self.returned = increase.ssthresh(&window),
            Hook::SetState if call.arguments[0] == CaState::Loss as i64 => {
                increase.on_state(CaState::Loss, clocks, snd_nxt)
            }
            Hook::CwndEvent if call.arguments[0] == TX_START => {
                increase.on_transmit_start(clocks, idle(call), snd_nxt)
            }
            Hook::Undo => self.returned = window.undone(),
            Hook::Init | Hook::SetState | Hook::CwndEvent | Hook::Main => {}
        }
        let seen = Seen { hz: self.hz, established: self.established, limited };
        branches::note(call, before, (increase, window), &seen, coverage);
        (self.increase, self.window) = (Some(increase), window);
        self.ssthresh = (call.hook == Hook::Ssthresh).then_some(self.returned);
    }

    fn is_settled(&self) -> bool {
        true
    }

    /// In the order of [`CUBIC`].
    fn fields(&self) -> Fields {
        let (curve, round) = match &self.increase {
            Some(increase) => (*increase.curve(), *increase.hystart().round()),
            None => Default::default(),
        };
        let of_cubic = [
            curve.cnt,
            curve.last_max_cwnd,
            curve.last_cwnd,
            curve.last_time,
            curve.bic_origin_point,
            curve.bic_k,
            curve.delay_min,
            curve.epoch_start,
            curve.ack_cnt,
            curve.tcp_cwnd,
            round.sample_cnt,
            round.found as u32,
            round.round_start,
            round.end_seq as u32,
            round.last_ack,
            round.curr_rtt,
        ];
        const { assert!(CUBIC.len() <= MOST_FIELDS) }
        let mut fields = [0; MOST_FIELDS];
        for (field, value) in fields.iter_mut().zip(of_cubic) {
            *field = value as u64;
        }
        fields
    }

    fn returned(&self, _: &Call) -> u32 {
        self.returned
    }

    fn outcome(&self, call: &Call) -> [(&'static str, u64, u64); 4] {
        let after = &call.after;
        [
            ("snd_cwnd", self.window.cwnd as u64, after.snd_cwnd as u64),
            ("snd_ssthresh", self.window.ssthresh as u64, after.snd_ssthresh as u64),
            ("snd_cwnd_cnt", self.window.cwnd_cnt as u64, after.snd_cwnd_cnt as u64),
            ("prior_cwnd", self.window.prior_cwnd as u64, after.prior_cwnd as u64),
        ]
    }
}
