//! The limits of a scenario. A value beyond them is an error, because it is far more often a mistake than an
//! intention.

use fullpipe_units::{Bytes, Duration, Rate};

/// The shortest run.
pub const MIN_DURATION: Duration = Duration::from_millis(1);
/// The longest run: one day.
pub const MAX_DURATION: Duration = Duration::from_secs(86_400);
/// The slowest link.
pub const MIN_RATE: Rate = Rate::from_bits_per_sec(1_000);
/// The fastest link: 1 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_bits_per_sec(1_000_000_000_000);
/// The longest round-trip time, one-way delay or jitter.
pub const MAX_DELAY: Duration = Duration::from_secs(10);
/// The smallest MTU, bytes: the size that every IPv4 host must be able to receive (RFC 791).
pub const MIN_MTU: u32 = 576;
/// The largest MTU, bytes: IPv4's length field.
pub const MAX_MTU: u32 = 65_535;
/// The largest buffer: 1 TB.
pub const MAX_BUFFER: Bytes = Bytes::new(1_000_000_000_000);
/// The packets that an assumed buffer holds at least. A flow loses packets in a smaller one although the link has capacity left.
pub const LEAST_ASSUMED_PACKETS: u64 = 10;
/// The deepest bucket, and the largest buffer of a router: tc has 32 bits for tbf's `burst` and `limit`. Nothing but its depth
/// bounds what a bucket lets pass at once, at whatever speed the hosts have.
pub const MAX_BURST: Bytes = Bytes::new(u32::MAX as u64);
/// The largest socket buffer, 2^31 - 1 bytes: Linux keeps it in an `int`.
pub const MAX_SOCKET_BUFFER: Bytes = Bytes::new(i32::MAX as u64);
/// The most a finite flow sends: 1 PB.
pub const MAX_FLOW_SIZE: Bytes = Bytes::new(1_000_000_000_000_000);
/// The shortest time between two bursts of a flow.
pub const MIN_BURST_INTERVAL: Duration = Duration::from_millis(1);
/// The shortest time between two frames of a media flow.
pub const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(1);
/// The largest frame of a media flow: 10 MB.
pub const MAX_FRAME: Bytes = Bytes::new(10_000_000);
/// The most frames of all media flows together: each is remembered, in up to 12 B.
pub const MAX_FRAMES: u64 = 10_000_000;
/// The most packets of their frames together: a bit remembers each, and they take minutes.
pub const MAX_FRAME_PACKETS: u64 = 1_000_000_000;
/// The most transfers of a flow's script.
pub const MAX_TRANSFERS: usize = 100_000;
/// The most transfers of the scripts of all flows together.
pub const MAX_ALL_TRANSFERS: u64 = 1_000_000;
/// The shortest chunk of a video.
pub const MIN_CHUNK: Duration = Duration::from_millis(1);
/// The shortest time between two releases of an aggregate.
pub const MIN_INTERVAL: Duration = Duration::from_micros(1);
/// The shortest time between two reviews of a cellular grant: a subframe of LTE.
pub const MIN_REVIEW: Duration = Duration::from_millis(1);
/// The most flows of a scenario.
pub const MAX_FLOWS: u64 = 100_000;
/// The most samples of a flow's time series.
pub const MAX_SAMPLES: u64 = 20_000;
/// The most samples of all flows together, so that a run of many flows fits in memory.
pub const MAX_ROWS: u64 = 10_000_000;
/// The most controllers under `compare`.
pub const MAX_ALTERNATIVES: usize = 1_000;
/// The most flows, elements, changes, transfers and opportunities of all alternatives together, so that specs fit in memory.
pub const MAX_PARTS: u64 = 20_000_000;
/// The most elements in one list of a path.
pub const MAX_ELEMENTS: usize = 1_000;
/// The most opportunities of all delivery traces together.
pub const MAX_OPPORTUNITIES: u64 = 20_000_000;
/// The most packets that the bottleneck may have time to carry: half a day of simulation.
pub const MAX_PACKETS: u64 = 1_000_000_000_000;
/// The largest window cap in segments: half the sequence space of one-byte segments (RFC 7323, section 2.3).
pub const MAX_CWND: u32 = 1 << 30;
/// The largest file of a delivery trace, bytes.
pub const MAX_TRACE_FILE: u64 = 200_000_000;
/// The largest scenario file, bytes.
pub const MAX_SCENARIO_FILE: u64 = 10_000_000;
/// The longest name or label, characters.
pub const MAX_NAME: usize = 100;
/// The largest window that an entry may hold, segments.
pub const MAX_WINDOW: u64 = 1 << 30;
/// The largest degree of reordering (Linux: `net.ipv4.tcp_max_reordering`).
pub const MAX_REORDERING: u64 = 300;
/// The longest round-trip time that an entry holds: 32 bits of eighths of a microsecond (Linux: `srtt_us`).
pub const MAX_KEPT_RTT: Duration = Duration::from_nanos(u32::MAX as u64 * 125);
/// The largest variation of it that an entry holds: 32 bits of quarters of a microsecond (Linux: `mdev_us`).
pub const MAX_KEPT_RTTVAR: Duration = Duration::from_nanos(u32::MAX as u64 * 250);
