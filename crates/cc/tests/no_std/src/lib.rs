//! Every controller through the conformance checks, without std, alloc, or an operating system.
#![no_std]

use fullpipe_cc::{Any, CATALOGUE, Params};
use fullpipe_conformance::{Path, check_all};

/// The number of controllers that broke a law: zero.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_cc_check() -> u32 {
    let mut broken = 0;
    for info in CATALOGUE {
        let Some(params) = Params::by_name(info.name) else { return u32::MAX };
        let path = Path { answers_delay: info.answers_delay, ..Path::default() };
        let result = check_all(&path, |config, connection| Any::new(&params, config, connection));
        broken += result.is_err() as u32;
    }
    broken
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
