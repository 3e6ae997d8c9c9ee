//! An allocator that counts while it is asked to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// Off but for measurements of memory, so that timed runs pay for one load only.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// Bytes allocated since the count began, less those freed.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

impl Counting {
    fn note(change: isize) {
        if COUNTING.load(Relaxed) {
            let live = LIVE.fetch_add(change, Relaxed) + change;
            PEAK.fetch_max(live, Relaxed);
        }
    }
}

// SAFETY: every call is handed to the system's allocator as it came; counting touches no memory but the counters.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::note(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::note(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Counting::note(-(layout.size() as isize));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Counting::note(new_size as isize - layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// What some work took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The most bytes it held at once. Asked for, not mapped: an untouched part of a block counts as well, and the old
    /// block that a growing one is copied from does not.
    pub(crate) peak: i64,
    /// Bytes that its result still holds.
    pub(crate) kept: i64,
}

/// Counts what `work` allocates. Only one at a time, and with no other thread at work.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTING.store(true, Relaxed);
    let result = work();
    COUNTING.store(false, Relaxed);
    (result, Taken { peak: PEAK.load(Relaxed) as i64, kept: LIVE.load(Relaxed) as i64 })
}
