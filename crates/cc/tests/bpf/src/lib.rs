//! The events and limits of BBRv3 as functions of their own, as a program for the kernel would call them.
#![no_std]

use fullpipe_cc::controllers::{bbr3, bbr3_linux};
use fullpipe_cc::{
    Ack, CeMarks, Config, Connection, Controller, Discarded, Limits, Lost, RttSample, Sent, StateChange,
    TailRepair, TransmitStart, Undo, WindowUnused,
};

/// The functions of one controller, whose names begin with `prefix`.
macro_rules! functions {
    ($module:ident, $prefix:literal, $controller:ty, $params:ty) => {
        mod $module {
            use super::*;

            #[unsafe(export_name = concat!($prefix, "_new"))]
            pub extern "C" fn new(
                bbr: &mut $controller,
                params: &$params,
                config: &Config,
                connection: &Connection,
            ) {
                *bbr = <$controller>::new(params, config, connection);
            }

            #[unsafe(export_name = concat!($prefix, "_on_transmit_start"))]
            pub extern "C" fn on_transmit_start(bbr: &mut $controller, start: &TransmitStart) {
                bbr.on_transmit_start(start);
            }

            #[unsafe(export_name = concat!($prefix, "_on_window_unused"))]
            pub extern "C" fn on_window_unused(bbr: &mut $controller, unused: &WindowUnused) {
                bbr.on_window_unused(unused);
            }

            #[unsafe(export_name = concat!($prefix, "_on_sent"))]
            pub extern "C" fn on_sent(bbr: &mut $controller, sent: &Sent) {
                bbr.on_sent(sent);
            }

            #[unsafe(export_name = concat!($prefix, "_on_rtt"))]
            pub extern "C" fn on_rtt(bbr: &mut $controller, sample: &RttSample) {
                bbr.on_rtt(sample);
            }

            #[unsafe(export_name = concat!($prefix, "_on_ce"))]
            pub extern "C" fn on_ce(bbr: &mut $controller, marks: &CeMarks) {
                bbr.on_ce(marks);
            }

            #[unsafe(export_name = concat!($prefix, "_on_lost"))]
            pub extern "C" fn on_lost(bbr: &mut $controller, lost: &Lost) {
                bbr.on_lost(lost);
            }

            #[unsafe(export_name = concat!($prefix, "_on_tail_repair"))]
            pub extern "C" fn on_tail_repair(bbr: &mut $controller, repair: &TailRepair) {
                bbr.on_tail_repair(repair);
            }

            #[unsafe(export_name = concat!($prefix, "_on_discarded"))]
            pub extern "C" fn on_discarded(bbr: &mut $controller, discarded: &Discarded) {
                bbr.on_discarded(discarded);
            }

            #[unsafe(export_name = concat!($prefix, "_on_state"))]
            pub extern "C" fn on_state(bbr: &mut $controller, change: &StateChange) {
                bbr.on_state(change);
            }

            #[unsafe(export_name = concat!($prefix, "_on_undo"))]
            pub extern "C" fn on_undo(bbr: &mut $controller, undo: &Undo) {
                bbr.on_undo(undo);
            }

            #[unsafe(export_name = concat!($prefix, "_on_ack"))]
            pub extern "C" fn on_ack(bbr: &mut $controller, ack: &Ack) {
                bbr.on_ack(ack);
            }

            #[unsafe(export_name = concat!($prefix, "_on_mss"))]
            pub extern "C" fn on_mss(bbr: &mut $controller, mss: u32) {
                bbr.on_mss(mss);
            }

            #[unsafe(export_name = concat!($prefix, "_limits"))]
            pub extern "C" fn limits(bbr: &$controller, limits: &mut Limits) {
                *limits = bbr.limits();
            }
        }
    };
}

functions!(draft, "bbr3", bbr3::Bbr3, bbr3::Params);
functions!(linux, "bbr3_linux", bbr3_linux::Bbr3Linux, bbr3_linux::Params);

/// One function for each thing that BPF does not have; `check.py --mistakes` must find them all.
#[cfg(feature = "mistakes")]
mod mistakes {
    /// May panic.
    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_panic(numbers: &[u64; 4], at: usize) -> u64 {
        numbers[at]
    }

    /// Needs a product of 128 bits to saturate.
    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_overflow(a: u64, b: u64) -> u64 {
        a.saturating_mul(b)
    }

    /// Has one.
    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_wide(a: u64, b: u64) -> u64 {
        ((a as u128 * b as u128) >> 64) as u64
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_float(a: u64) -> u64 {
        (a as f64 * 2.77) as u64
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_signed_division(a: i64, b: &i64) -> i64 {
        a / (*b).max(1)
    }

    /// Its bound depends on data.
    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_loop(mut a: u64) -> u64 {
        let mut steps = 0;
        while a > 1 {
            a = if a % 2 == 0 { a / 2 } else { a.wrapping_mul(3).wrapping_add(1) };
            steps += 1;
        }
        steps
    }

    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_indirect_call(next: extern "C" fn(u64) -> u64, a: u64) -> u64 {
        next(next(a))
    }

    /// The stack of a BPF program has 512 bytes.
    #[unsafe(no_mangle)]
    pub extern "C" fn mistake_stack(next: extern "C" fn(&mut [u64; 65])) -> u64 {
        let mut numbers = [1; 65];
        next(&mut numbers);
        numbers[0]
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
