//! Turns panics of the Parquet library on damaged files into errors.

use std::cell::Cell;
use std::panic::{self, UnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, or `None` if it panics. Nothing is printed then. `work` must own what it changes, so that no
/// incomplete value survives.
pub(crate) fn contained<T>(work: impl FnOnce() -> T + UnwindSafe) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let done = panic::catch_unwind(work);
    QUIET.set(false);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_none_thread_continues() {
        assert_eq!(contained(|| -> u8 { panic!("damaged") }), None);
        assert_eq!(contained(|| 1), Some(1));
    }
}
