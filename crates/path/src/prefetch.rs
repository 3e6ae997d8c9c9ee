//! Hints to the processor about memory that is needed soon. With thousands of flows, each event finds its flow outside the
//! core's own caches; what is fetched while earlier events are handled need not be waited for. A hint changes no result.

/// Bytes that a cache holds together.
const LINE: usize = 64;

/// Fetches a value into the caches.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_first(value, size_of::<T>());
}

/// Fetches the first `bytes` of a value.
#[inline(always)]
pub fn prefetch_first<T>(value: &T, bytes: usize) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    let mut offset = 0;
    while offset < bytes {
        hint(start.wrapping_add(offset));
        offset += LINE;
    }
}

/// Fetches an element of a slice. An index past the end does no harm, and so is not looked for.
#[inline(always)]
pub fn prefetch_element<T>(slice: &[T], index: usize) {
    hint(slice.as_ptr().wrapping_add(index).cast());
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint(place: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is a hint. It reads and changes nothing, and no address makes it fault.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint(_: *const u8) {}
