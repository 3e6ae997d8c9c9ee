//! One controller behind the functions that the shim calls (`shim/border.h`). The shim checks every pointer.
#![no_std]
#![feature(asm_experimental_arch)] // For the panic handler; build.py lets the stable compiler take it.

use core::mem::MaybeUninit;

use fullpipe_bpf::{Call, Event, Outcome};
use fullpipe_cc::controllers;

#[cfg(feature = "bbr1")]
use controllers::bbr1::{Bbr1 as Controller, Params};
#[cfg(feature = "bbr3")]
use controllers::bbr3::{Bbr3 as Controller, Params};
#[cfg(feature = "bbr3-linux")]
use controllers::bbr3_linux::{Bbr3Linux as Controller, Params};

/// As `border.h` says.
const STATE_BYTES: usize = 768;
const PARAMS_BYTES: usize = 512;
const _: () = assert!(size_of::<Controller>() <= STATE_BYTES && align_of::<Controller>() <= 8);
const _: () = assert!(size_of::<Params>() <= PARAMS_BYTES && align_of::<Params>() <= 8);

// The shim's pointers are valid and aligned, and point to different places: as references, which tell the compiler so, they need no
// copies on the stack, which is small. The loader wrote parameters that user space had checked.

#[unsafe(no_mangle)]
extern "C" fn fullpipe_init(
    controller: &mut MaybeUninit<Controller>,
    params: &Params,
    event: &Event,
    outcome: &mut Outcome,
) {
    let config = fullpipe_bpf::config(event);
    let controller = controller.write(Controller::new(params, &config, &fullpipe_bpf::connection(event)));
    *outcome = fullpipe_bpf::outcome(controller);
}

/// A function for each call: the shim's functions around them are verified one by one.
macro_rules! calls {
    ($($name:ident $call:ident,)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name(controller: &mut Controller, event: &Event, outcome: &mut Outcome) {
                fullpipe_bpf::step(controller, Call::$call, event);
                *outcome = fullpipe_bpf::outcome(controller);
            }
        )*
    };
}

calls! {
    fullpipe_ack Ack,
    fullpipe_lost Lost,
    fullpipe_state State,
    fullpipe_undo Undo,
    fullpipe_start Start,
    fullpipe_marks Marks,
    fullpipe_mss Mss,
}

/// Leaves the shim's function, into which everything here is inlined, with 1: the connection then falls back (`safety.h`).
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: no instruction follows, and a function of BPF restores nothing before it ends.
    unsafe { core::arch::asm!("r0 = 1", "exit", options(noreturn)) }
}
