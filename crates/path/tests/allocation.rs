//! Once its queues have grown to their size, a chain allocates nothing for a packet.

use fullpipe_path::config::{ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_path::elements::{duplicate, jitter};
use fullpipe_path::{Chain, Packet};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Those of this thread: the threads of the test harness allocate, too, and when depends on how busy the machine is.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn link(packets: Option<u32>) -> ElementConfig {
    ElementConfig::Link {
        name: "link".into(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
        queue: QueueConfig::drop_tail(Bytes::new(30_000), packets),
    }
}

/// Every kind of stage, holding queue and bookkeeping: packet limits, announced arrivals, heap, lanes, duplicates.
#[test]
fn warm_packets_need_no_allocation() {
    let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(2)) };
    let jitter =
        ElementConfig::Jitter(jitter::Config { amplitude_ns: Duration::from_millis(1), reorder: true });
    let duplicate = ElementConfig::Duplicate(duplicate::Config { probability: Probability::from_f64(0.01) });
    let elements = [link(Some(15)), delay, link(Some(15)), jitter, duplicate, link(None)];
    let delays: Vec<Duration> = (0..20).map(Duration::from_micros).collect();
    let mut chain = Chain::new(&elements, &delays, 1).unwrap();
    let mut now = Time::ZERO;
    let mut before = 0;
    for number in 0..60_000u32 {
        if number == 30_000 {
            before = ALLOCATIONS.get();
        }
        now += Duration::from_micros(if number % 1000 < 500 { 60 } else { 180 });
        chain.push(now, Packet::new(1500, number % 20), number);
        while chain.pop(now).is_some() {}
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
