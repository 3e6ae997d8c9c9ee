//! Linux's side: the functions and structures of `c/api.h`, field by field.

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    pub tcp_mstamp: u64,
    pub tcp_wstamp_ns: u64,
    pub delivered_mstamp: u64,
    pub jiffies: u32,
    pub delivered: u32,
    pub lost: u32,
    pub packets_out: u32,
    pub in_flight: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub ca_state: u32,
    pub app_limited: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub random: u32,
}

pub const LOG_RTT: u32 = 0;
pub const LOG_CE: u32 = 1;
pub const LOG_UNDO: u32 = 2;
pub const LOG_STATE: u32 = 3;
pub const LOG_ACK: u32 = 4;
pub const LOG_UNUSED: u32 = 5;
pub const LOG_TX_START: u32 = 6;
pub const LOG_LOST: u32 = 7;
pub const LOG_REPAIR: u32 = 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    pub kind: u32,
    pub to: u32,
    pub reduce: u32,
    pub proven: u32,
    pub timer: u32,
    pub rtt_us: i64,
    pub used: u32,
    pub idle: u32,
    pub rto: u32,
    pub may_raise: u32,
    pub una_advanced: u32,
    pub acked: u32,
    pub is_cwnd_limited: u32,
    pub max_packets_out: u32,
    pub prior_in_flight: u32,
    pub acked_sacked: u32,
    pub losses: u32,
    pub is_ack_delayed: u32,
    pub delivered: i64,
    pub interval_us: i64,
    pub prior_mstamp: u64,
    pub prior_delivered: u32,
    pub is_app_limited: u32,
    pub is_retrans: u32,
    pub tx_in_flight: u32,
    pub lost_since: u32,
    pub marked_since: u32,
    pub may_answer_probe: u32,
    pub at: Snapshot,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    pub acked: u32,
    pub acked_sacked: u32,
    pub acked_lost: u32,
    pub acked_retrans: u32,
    pub sacked: u32,
    pub sacked_lost: u32,
    pub sacked_retrans: u32,
    pub duplicates: u32,
    pub lost: u32,
    pub lost_retrans: u32,
    pub rtt_us: i32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub original: u32,
    pub ece: u32,
    pub maybe_delayed: u32,
    pub packet_delayed: u32,
    pub duplicate_of_probe: u32,
    pub any_retrans: u32,
    pub window_update: u32,
    pub old: u32,
    pub delivered: i32,
    pub interval_us: i64,
    pub prior_mstamp: u64,
    pub prior_delivered: u32,
    pub is_app_limited: u32,
    pub is_retrans: u32,
    pub tx_in_flight: u32,
    pub lost_since: u32,
    pub marked_since: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LossPlan {
    pub tx_in_flight: u32,
    pub since: u32,
    pub app_limited: u32,
    pub runs: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    pub control: u32,
    pub mss: u32,
    pub cwnd_clamp: u32,
    pub hz: u32,
    pub gso_max: u32,
    pub paced: u32,
    pub slow_start_after_idle: u32,
    pub pacing_ss_ratio: u32,
    pub pacing_ca_ratio: u32,
    pub delivered: u32,
    pub lost: u32,
    pub seq: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub reordering: u32,
    pub jiffies: u32,
    pub max_pacing_rate: u64,
    pub now_us: u64,
    pub hystart: i32,
    pub hystart_detect: i32,
    pub hystart_low_window: i32,
    pub hystart_ack_delta_us: i32,
    pub fast_convergence: i32,
    pub tcp_friendliness: i32,
    pub beta: i32,
    pub bic_scale: i32,
    pub vegas_alpha: i32,
    pub vegas_beta: i32,
    pub vegas_gamma: i32,
    pub dctcp_shift_g: u32,
    pub dctcp_alpha_on_init: u32,
    pub ecn_low: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub pacing_rate: u64,
    pub now_us: u64,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub cwnd_cnt: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub prr_delivered: u32,
    pub prr_out: u32,
    pub app_limited: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub in_flight: u32,
    pub ca_state: u32,
    pub undo_marker: u32,
    pub high_seq: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub delivered: u32,
    pub lost: u32,
    pub jiffies: u32,
    pub lsndtime: u32,
    pub tlp_high_seq: u32,
    pub frto: u32,
    pub min_tso_segs: u32,
    pub undo_retrans: i32,
    pub private: [u64; 64],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RateView {
    pub first_tx_mstamp: u64,
    pub delivered_mstamp: u64,
    pub prior_mstamp: u64,
    pub interval_us: i64,
    pub delivered: i32,
    pub total: u32,
    pub app_limited: u32,
    pub prior_delivered: u32,
    pub is_app_limited: u32,
    pub is_retrans: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinmaxSample {
    pub t: u32,
    pub v: u32,
}

pub type Minmax = [MinmaxSample; 3];

unsafe extern "C" {
    fn differential_open(setup: *const Setup);
    fn differential_now(now_us: u64, jiffies: u32, wait_ns: u64, random: u32);
    fn differential_ack(plan: *const Plan);
    fn differential_send(segments: u32, is_cwnd_limited: bool, rto: u32);
    fn differential_retransmit(segments: u32, rto: u32);
    fn differential_probe(retransmitted: bool);
    fn differential_timeout(lost: u32, lost_retrans: u32);
    fn differential_reordering_timeout(lost: u32, lost_retrans: u32, any_retrans: bool);
    fn differential_app_limited();
    fn differential_mss(mss: u32);
    fn differential_losses(plan: *const LossPlan);
    fn differential_log(len: *mut u32) -> *const Entry;
    fn differential_view(view: *mut View);
    fn differential_rate_open(now_us: u64, delivered: u32);
    fn differential_rate_sent(index: u32, now_us: u64, packets_out: u32, end_seq: u32, retransmission: bool);
    fn differential_rate_begin();
    fn differential_rate_delivered(index: u32, sacked: bool);
    fn differential_rate_end(now_us: u64, delivered: u32, lost: u32, min_rtt_us: u32);
    fn differential_rate_app_limited(in_flight: u32);
    fn differential_rate_view(view: *mut RateView);
    fn minmax_running_max(filter: *mut Minmax, window: u32, time: u32, value: u32) -> u32;
}

/// Linux's congestion control under its core. The C code keeps one connection in static memory, so there is one of it, and it
/// stays in its thread.
pub struct Core(());

impl Core {
    pub fn new() -> Core {
        Core(())
    }

    // SAFETY, of all below: plain structures that live through the call, in the one thread that has a `Core`.

    pub fn open(&mut self, setup: &Setup) {
        unsafe { differential_open(setup) }
    }

    pub fn now(&mut self, now_us: u64, jiffies: u32, wait_ns: u64, random: u32) {
        unsafe { differential_now(now_us, jiffies, wait_ns, random) }
    }

    pub fn ack(&mut self, plan: &Plan) {
        unsafe { differential_ack(plan) }
    }

    pub fn send(&mut self, segments: u32, is_cwnd_limited: bool, rto: u32) {
        unsafe { differential_send(segments, is_cwnd_limited, rto) }
    }

    pub fn retransmit(&mut self, segments: u32, rto: u32) {
        unsafe { differential_retransmit(segments, rto) }
    }

    pub fn probe(&mut self, retransmitted: bool) {
        unsafe { differential_probe(retransmitted) }
    }

    pub fn timeout(&mut self, lost: u32, lost_retrans: u32) {
        unsafe { differential_timeout(lost, lost_retrans) }
    }

    pub fn reordering_timeout(&mut self, lost: u32, lost_retrans: u32, any_retrans: bool) {
        unsafe { differential_reordering_timeout(lost, lost_retrans, any_retrans) }
    }

    pub fn app_limited(&mut self) {
        unsafe { differential_app_limited() }
    }

    pub fn mss(&mut self, mss: u32) {
        unsafe { differential_mss(mss) }
    }

    pub fn losses(&mut self, plan: &LossPlan) {
        unsafe { differential_losses(plan) }
    }

    /// What the core did in the last event.
    pub fn log(&self) -> &[Entry] {
        let mut len = 0;
        unsafe {
            let entries = differential_log(&mut len);
            std::slice::from_raw_parts(entries, len as usize)
        }
    }

    pub fn view(&self, view: &mut View) {
        unsafe { differential_view(view) }
    }
}

impl View {
    pub fn new() -> View {
        // SAFETY: numbers only.
        unsafe { std::mem::zeroed() }
    }
}

/// Linux's delivery-rate sampler, likewise.
pub struct Rate(());

impl Rate {
    pub fn new() -> Rate {
        Rate(())
    }

    pub fn open(&mut self, now_us: u64, delivered: u32) {
        unsafe { differential_rate_open(now_us, delivered) }
    }

    pub fn sent(&mut self, index: u32, now_us: u64, packets_out: u32, end_seq: u32, retransmission: bool) {
        unsafe { differential_rate_sent(index, now_us, packets_out, end_seq, retransmission) }
    }

    pub fn begin(&mut self) {
        unsafe { differential_rate_begin() }
    }

    pub fn delivered(&mut self, index: u32, sacked: bool) {
        unsafe { differential_rate_delivered(index, sacked) }
    }

    pub fn end(&mut self, now_us: u64, delivered: u32, lost: u32, min_rtt_us: u32) {
        unsafe { differential_rate_end(now_us, delivered, lost, min_rtt_us) }
    }

    pub fn app_limited(&mut self, in_flight: u32) {
        unsafe { differential_rate_app_limited(in_flight) }
    }

    pub fn view(&self) -> RateView {
        let mut view = RateView::default();
        unsafe { differential_rate_view(&mut view) }
        view
    }
}

pub fn running_max(filter: &mut Minmax, window: u32, time: u32, value: u32) -> u32 {
    // SAFETY: a structure of six numbers that lives through the call.
    unsafe { minmax_running_max(filter, window, time, value) }
}
