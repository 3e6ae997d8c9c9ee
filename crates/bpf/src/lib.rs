//! The controllers as congestion controls of a stock Linux kernel: BPF `struct_ops`, without a patch or a module.
//!
//! One object file holds one controller: its unmodified Rust, compiled to LLVM's intermediate code, and a shim in C that only
//! translates. `build.py` makes the objects (`make bpf-objects`); they are part of the package, so that users need no compiler.
//!
//! In reading order:
//!
//! * [`Event`] and [`Outcome`]: what crosses the border between both languages, and what a recording keeps of a call.
//! * [`step()`]: one call of a controller. The program in the kernel and the replay in user space run this very function.
//! * `objects`: the object files, and how parameters get into one.
//! * `shim/congestion.bpf.c`: the hooks of the kernel. `shim/sends.h`: what stock TCP does not hand over, recovered.
//!   `shim/safety.h`: when a connection falls back to the kernel's Reno.
//! * `program/`: the crate that becomes the object's Rust half.
#![cfg_attr(target_arch = "bpf", no_std)]

use fullpipe_cc::{
    Ack, CaState, CeMarks, Config, Connection, Controller, Lost, RateSample, StateChange, TransmitStart,
    Trigger, Undo,
};
use fullpipe_units::{Duration, Rate, Time};

#[cfg(not(target_arch = "bpf"))]
pub mod objects;

/// What a call tells the controller: the connection, and after it what the kind of call adds. `struct event` of the shim.
///
/// Counts are in segments, as Linux counts. A member that a call does not use holds whatever the last call left.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each member is that of `Connection`, `Ack` and so on, or of Linux's `tcp_sock`"
)]
pub struct Event {
    pub now_us: u64,
    pub delivered_us: u64,
    pub departure_ns: u64,
    pub delivered: u64,
    pub lost: u64,
    pub jiffies: u32,
    pub packets_out: u32,
    pub in_flight: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub random: u32,
    pub ca_state: u32,
    pub app_limited: u32,
    // The rate sample, for an ACK.
    pub prior_delivered_us: u64,
    pub prior_delivered: u64,
    pub interval_us: i64,
    pub rtt_us: i64,
    pub sampled: i32,
    pub prior_in_flight: u32,
    pub newly_delivered: u32,
    pub newly_lost: u32,
    /// The `FLAG_` bits.
    pub flags: u32,
    pub max_packets_out: u32,
    pub tx_in_flight: u32,
    pub lost_since_sent: u32,
    pub marked_since_sent: u32,
    pub newly_acked: u32,
    pub snd_una: u64,
    pub snd_nxt: u64,
    // Init.
    pub mss: u32,
    pub cwnd_clamp: u32,
    pub hz: u32,
    pub initial_cwnd: u32,
    pub gso_max: u32,
    pub ssthresh: u32,
    pub max_rate: u64,
    // A run of lost segments.
    pub tx_delivered: u64,
    pub tx_lost: u64,
    pub units: u32,
    pub new_range: u32,
    // A change of state.
    pub to: u32,
    pub reduce: u32,
    pub proven: u32,
    pub timer: u32,
    // Transmission starts.
    pub last_sent_us: u64,
    pub rto_us: u64,
}

const _: () = assert!(size_of::<Event>() == 248, "shim/border.h asserts the same size");

/// The sampled or lost segment left while the application limited the sender.
pub const FLAG_APP_LIMITED: u32 = 1 << 1;
/// The sampled segment was a retransmission.
pub const FLAG_RETRANSMITTED: u32 = 1 << 2;
/// The ACK may have been delayed.
pub const FLAG_MAYBE_DELAYED: u32 = 1 << 3;
/// The window limits the sender.
pub const FLAG_CWND_LIMITED: u32 = 1 << 4;
/// The ACK echoes congestion marks.
pub const FLAG_ECHOED: u32 = 1 << 5;
/// `SND.UNA` advanced.
pub const FLAG_UNA_ADVANCED: u32 = 1 << 6;
/// The window may grow on this ACK.
pub const FLAG_MAY_RAISE: u32 = 1 << 7;
/// The socket is paced.
pub const FLAG_PACED: u32 = 1 << 8;

/// What the controller answers: its limits, and what it believes. `struct outcome` of the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes a second.
    pub rate: u64,
    /// Bytes a second; zero if there is no estimate.
    pub bandwidth: u64,
    /// Segments.
    pub cwnd: u32,
    /// Segments.
    pub ssthresh: u32,
    /// Segments in a burst.
    pub min_burst: u32,
    /// Whether the sampler is to be marked application-limited.
    pub mark_app_limited: u32,
    /// [`fullpipe_cc::Phase`] by its code.
    pub phase: u32,
    /// Zero if there is no estimate.
    pub min_rtt_us: u32,
}

const _: () = assert!(size_of::<Outcome>() == 40, "shim/border.h asserts the same size");

/// The kinds of calls; `enum call` of the shim. The first one makes the controller, the others change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// A connection begins, or takes this congestion control.
    Init,
    /// An ACK: [`Controller::on_rtt`] if it brought one, and [`Controller::on_ack`].
    Ack,
    /// [`Controller::on_lost`].
    Lost,
    /// [`Controller::on_state`].
    State,
    /// [`Controller::on_undo`].
    Undo,
    /// [`Controller::on_transmit_start`].
    Start,
    /// [`Controller::on_ce`].
    Marks,
    /// [`Controller::on_mss`].
    Mss,
}

impl Call {
    /// Every kind, in the order of its code.
    pub const ALL: [Call; 8] =
        [Call::Init, Call::Ack, Call::Lost, Call::State, Call::Undo, Call::Start, Call::Marks, Call::Mss];
}

#[inline(always)]
const fn state(code: u32) -> CaState {
    match code {
        0 => CaState::Open,
        1 => CaState::Disorder,
        2 => CaState::Cwr,
        3 => CaState::Recovery,
        _ => CaState::Loss,
    }
}

/// The configuration of a connection that begins.
#[inline(always)]
pub fn config(event: &Event) -> Config {
    Config {
        mss: event.mss,
        unit: event.mss,
        initial_cwnd: event.initial_cwnd,
        cwnd_clamp: event.cwnd_clamp,
        max_pacing_rate: Rate::from_bytes_per_sec(event.max_rate),
        gso_max: event.gso_max,
        max_tcp_header: match Config::max_tcp_header_of(event.gso_max) {
            Some(header) => header,
            None => Config::MAX_TCP_HEADER,
        },
        paced: event.flags & FLAG_PACED != 0,
        hz: event.hz,
        ssthresh: event.ssthresh,
    }
}

/// The connection at an event.
#[inline(always)]
pub fn connection(event: &Event) -> Connection {
    Connection {
        now: Time::from_micros(event.now_us),
        jiffies: event.jiffies,
        delivered: event.delivered,
        delivered_time: Time::from_micros(event.delivered_us),
        lost: event.lost,
        packets_out: event.packets_out,
        in_flight: event.in_flight,
        srtt: Duration::from_micros(event.srtt_us as u64),
        // Linux has all ones before the first sample.
        min_rtt: match event.min_rtt_us {
            u32::MAX => Duration::MAX,
            us => Duration::from_micros(us as u64),
        },
        departure: Time::from_nanos(event.departure_ns),
        state: state(event.ca_state),
        app_limited: event.app_limited != 0,
        random: event.random,
    }
}

#[inline(always)]
fn ack(event: &Event) -> Ack {
    let has = |flag| event.flags & flag != 0;
    Ack {
        connection: connection(event),
        prior_in_flight: event.prior_in_flight,
        newly_delivered: event.newly_delivered,
        newly_lost: event.newly_lost,
        newly_acked: event.newly_acked,
        rtt: (event.rtt_us >= 0).then(|| Duration::from_micros(event.rtt_us as u64)),
        maybe_delayed: has(FLAG_MAYBE_DELAYED),
        una_advanced: has(FLAG_UNA_ADVANCED),
        snd_una: event.snd_una,
        snd_nxt: event.snd_nxt,
        sample: RateSample {
            delivered: (event.sampled >= 0).then_some(event.sampled as u32),
            interval: (event.interval_us >= 0).then(|| Duration::from_micros(event.interval_us as u64)),
            prior_delivered: event.prior_delivered,
            prior_delivered_time: Time::from_micros(event.prior_delivered_us),
            app_limited: has(FLAG_APP_LIMITED),
            retransmitted: has(FLAG_RETRANSMITTED),
            tx_in_flight: event.tx_in_flight,
            lost_since_sent: event.lost_since_sent,
            marked_since_sent: event.marked_since_sent,
        },
        cwnd_limited: has(FLAG_CWND_LIMITED),
        max_packets_out: event.max_packets_out,
        may_raise_cwnd: has(FLAG_MAY_RAISE),
        // Stock TCP does not say.
        may_answer_probe: false,
    }
}

/// What the controller answers now.
#[inline(always)]
pub fn outcome(controller: &impl Controller) -> Outcome {
    let limits = controller.limits();
    let believed = controller.snapshot();
    Outcome {
        rate: limits.pacing_rate.as_bytes_per_sec(),
        bandwidth: believed.bandwidth.map_or(0, Rate::as_bytes_per_sec),
        cwnd: limits.cwnd,
        ssthresh: limits.ssthresh,
        min_burst: limits.min_burst,
        mark_app_limited: limits.mark_app_limited as u32,
        phase: believed.phase as u32,
        min_rtt_us: believed.min_rtt.map_or(0, |rtt| rtt.as_micros() as u32),
    }
}

/// Tells a controller of one call, which is not [`Call::Init`].
#[inline(always)]
pub fn step(controller: &mut impl Controller, call: Call, event: &Event) {
    match call {
        Call::Init => {}
        Call::Ack => {
            let ack = ack(event);
            if let Some(sample) = ack.rtt_sample() {
                controller.on_rtt(&sample);
            }
            controller.on_ack(&ack);
        }
        Call::Lost => controller.on_lost(&Lost {
            now: Time::from_micros(event.now_us),
            delivered: event.delivered,
            units: event.units,
            new_range: event.new_range != 0,
            tx_in_flight: event.tx_in_flight,
            tx_delivered: event.tx_delivered,
            tx_lost: event.tx_lost,
            lost: event.lost,
            app_limited: event.flags & FLAG_APP_LIMITED != 0,
        }),
        Call::State => controller.on_state(&StateChange {
            connection: connection(event),
            to: state(event.to),
            reduce: event.reduce != 0,
            proven: event.proven != 0,
            trigger: if event.timer != 0 { Trigger::Timer } else { Trigger::Ack },
        }),
        Call::Undo => controller.on_undo(&Undo { connection: connection(event) }),
        Call::Start => controller.on_transmit_start(&TransmitStart {
            connection: connection(event),
            last_sent: Time::from_micros(event.last_sent_us),
            rto: Duration::from_micros(event.rto_us),
        }),
        Call::Marks => controller.on_ce(&CeMarks {
            echoed: event.flags & FLAG_ECHOED != 0,
            units: event.units,
            delivered: event.delivered,
            snd_una: event.snd_una,
            snd_nxt: event.snd_nxt,
        }),
        Call::Mss => controller.on_mss(event.mss),
    }
}

/// Makes the functions that the shim calls (`shim/border.h`) of a controller, in a crate that `build.py` compiles:
/// `program!(Controller, Params, |params, config, connection| ...)`, with what makes the controller of a connection.
///
/// `Params` are what the loader writes into our objects. It writes none into another crate's, which would find zeros: give `()`.
#[macro_export]
macro_rules! program {
    ($controller:ty, $params:ty, $new:expr) => {
        // As `border.h` says.
        const _: () = assert!(size_of::<$controller>() <= 768 && align_of::<$controller>() <= 8);
        const _: () = assert!(size_of::<$params>() <= 512 && align_of::<$params>() <= 8);

        // The shim's pointers are valid and aligned, and point to different places: as references, which tell the compiler so, they
        // need no copies on the stack, which is small. The loader wrote parameters that user space had checked.

        #[unsafe(no_mangle)]
        extern "C" fn fullpipe_init(
            controller: &mut core::mem::MaybeUninit<$controller>,
            params: &$params,
            event: &$crate::Event,
            outcome: &mut $crate::Outcome,
        ) {
            let (config, connection) = ($crate::config(event), $crate::connection(event));
            let new: fn(&$params, &fullpipe_cc::Config, &fullpipe_cc::Connection) -> $controller = $new;
            *outcome = $crate::outcome(controller.write(new(params, &config, &connection)));
        }

        $crate::program!(calls $controller:
            fullpipe_ack Ack,
            fullpipe_lost Lost,
            fullpipe_state State,
            fullpipe_undo Undo,
            fullpipe_start Start,
            fullpipe_marks Marks,
            fullpipe_mss Mss,
        );

        /// Leaves the shim's function, into which everything here is inlined, with 1: the connection then falls back (`safety.h`).
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            // SAFETY: no instruction follows, and a function of BPF restores nothing before it ends.
            unsafe { core::arch::asm!("r0 = 1", "exit", options(noreturn)) }
        }
    };
    // A function for each call: the shim's functions around them are verified one by one.
    (calls $controller:ty: $($name:ident $call:ident,)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name(
                controller: &mut $controller,
                event: &$crate::Event,
                outcome: &mut $crate::Outcome,
            ) {
                $crate::step(controller, $crate::Call::$call, event);
                *outcome = $crate::outcome(controller);
            }
        )*
    };
}
