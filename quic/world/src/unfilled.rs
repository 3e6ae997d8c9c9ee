//! Bytes of a window that stay unfilled, of each stack.

/// Of noq's.
pub(crate) const NOQ: u64 = 0;
/// Of quinn's, which sends only what is less than the window.
pub(crate) const QUINN: u64 = 1;
