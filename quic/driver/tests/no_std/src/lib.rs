//! Every controller in the driver, without std or an operating system.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use fullpipe_cc::{CATALOGUE, Params};
use fullpipe_quic_driver::{Driver, InBytes, Start};
use fullpipe_units::{Duration, Time};

/// Has no memory: this program is built, not run.
struct Nothing;

// SAFETY: `alloc` may fail at any time, and what it never gave is never given back.
unsafe impl GlobalAlloc for Nothing {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static NOTHING: Nothing = Nothing;

/// The sum of the windows after an ACK.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_quic_driver_check() -> u64 {
    let start = Start { now: Time::from_micros(1_000_000), mtu: 1200, seed: 1 };
    let mut windows = 0;
    for params in CATALOGUE.iter().filter_map(|info| Params::by_name(info.name)) {
        let mut driver = Driver::new(InBytes::new(&params, &start), &start);
        driver.sent(start.now, 0, 1200, None);
        driver.acked(start.now + Duration::from_millis(20), 0, None, 1200, false);
        windows += driver.limits().cwnd as u64;
    }
    windows
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
