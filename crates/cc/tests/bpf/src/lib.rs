//! The events and limits of BBRv3 as functions of their own, as a program for the kernel would call them.
#![no_std]

use fullpipe_cc::bbr3::{Bbr3, Params};
use fullpipe_cc::{
    Ack, CeMarks, Config, Connection, Controller, Limits, Lost, StateChange, TransmitStart, Undo,
};

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_new(bbr: &mut Bbr3, params: &Params, config: &Config, connection: &Connection) {
    *bbr = Bbr3::new(params, config, connection);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_transmit_start(bbr: &mut Bbr3, start: &TransmitStart) {
    bbr.on_transmit_start(start);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_ce(bbr: &mut Bbr3, marks: &CeMarks) {
    bbr.on_ce(marks);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_lost(bbr: &mut Bbr3, lost: &Lost) {
    bbr.on_lost(lost);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_state(bbr: &mut Bbr3, change: &StateChange) {
    bbr.on_state(change);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_undo(bbr: &mut Bbr3, undo: &Undo) {
    bbr.on_undo(undo);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_ack(bbr: &mut Bbr3, ack: &Ack) {
    bbr.on_ack(ack);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_on_mss(bbr: &mut Bbr3, mss: u32) {
    bbr.on_mss(mss);
}

#[unsafe(no_mangle)]
pub extern "C" fn bbr3_limits(bbr: &Bbr3, limits: &mut Limits) {
    *limits = bbr.limits();
}

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
