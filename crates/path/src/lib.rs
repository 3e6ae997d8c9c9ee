//! A network path, as the same code for virtual and for real time.
//!
//! The path never reads a clock: its driver passes the time. The simulator drives it with virtual time, the emulator with
//! the monotonic clock and real packets, and both get the same departures to the nanosecond.
//!
//! ```
//! use fullpipe_path::config::{ElementConfig, QueueConfig, Schedule};
//! use fullpipe_path::{Admission, Chain, Packet};
//! use fullpipe_units::{Bytes, Duration, Rate, Time};
//!
//! let link = ElementConfig::Link {
//!     name: "bottleneck".into(),
//!     rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
//!     queue: QueueConfig::drop_tail(Bytes::new(3_000), None),
//! };
//! let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(20)) };
//! let mut chain = Chain::new(&[link, delay], &[], 1)?;
//!
//! let packet = Packet::new(1_500, 0);
//! assert_eq!(chain.push(Time::ZERO, packet, "first"), Admission::Queued);
//! assert_eq!(chain.push(Time::ZERO, packet, "second"), Admission::Queued);
//! assert!(matches!(chain.push(Time::ZERO, packet, "third"), Admission::Dropped(_)));
//!
//! assert_eq!(chain.next(), Time::from_micros(20_120)); // 120 us on the wire, and the delay
//! let now = Time::from_micros(30_000); // a late caller
//! assert_eq!(chain.pop(now), Some((Time::from_micros(20_120), packet, "first")));
//! assert_eq!(chain.pop(now), Some((Time::from_micros(20_240), packet, "second")));
//! assert_eq!(chain.pop(now), None);
//! # Ok::<(), fullpipe_path::ConfigError>(())
//! ```
//!
//! # In reading order
//! * [`config`]: the configuration of a path, in numbers; [`ConfigError`] if they are invalid (checked in `check.rs`)
//! * `packet.rs`: [`Packet`], [`Cause`], [`Admission`]; `elements.rs`: the closed set of elements, each a file in `elements/`
//! * `chain.rs`: [`Chain`], which composes elements into stages; `hold.rs`, where packets wait for their time
//! * `carrier.rs`: [`Carrier`], the interface to a driver; `hops.rs`: [`Hops`], a chain computed the simple way, to test the
//!   other
//! * `queue.rs`: drop-tail, counters and [`QueueView`], in front of a server (`server.rs`), which is one of these:
//!   `link.rs` (constant or scheduled rate), `delivery_trace.rs` (Mahimahi), `cellular.rs` (a rate that follows demand),
//!   `token_bucket.rs` (tc-tbf), `policer.rs`
//! * `discipline.rs`: [`Discipline`], which decides what leaves a queue next; `disciplines.rs`: those that there are, each a file
//!   in `disciplines/`, with `settings.rs` for their numbers; `gate.rs`: the queue that asks one
//! * elements without a queue: `delay.rs`, `loss.rs`, `jitter.rs`, `aggregate.rs`, `duplicate.rs`, `reorder.rs`, `bleach.rs`,
//!   `ecn_blackhole.rs`, `wifi.rs`
//! * [`deliveries`]: the text format of Mahimahi delivery traces, reading and writing
//! * `change.rs`: [`Change`], what a driver may change while packets cross the path
//! * `rates.rs`: what a path could carry
//! * [`prefetch`]: hints about memory that is needed soon
//! * `schedule.rs` and `rng.rs`: values that change at known times; one random stream for each element
//!
//! # Invariants
//! * Packets and bytes: `entered + duplicated == left + dropped + inside`, always ([`Counts`]).
//! * The same configuration, seed and arrivals give the same departures and drops, on every machine and in every version.
//!   How often and how late the caller calls changes neither.
//! * Only disciplines that keep flows or services apart, jitter with `reorder` and [`config::ElementConfig::Reorder`] reorder, and
//!   unequal class delays between classes.
//! * All times and rates are integers; fractions of a nanosecond are carried, not dropped.
//! * Nothing here allocates for a packet once its queues have grown to their size, but for bursts that stay whole.
//!
//! # Two kinds of queue
//! Drop-tail is a transit function: when a packet arrives, it is known when it leaves, so it costs no event. A queue whose
//! [`Discipline`] decides when a packet *leaves* (CoDel, PIE, fair queueing) has a gate at the beginning of a stage. A packet
//! that was [`Admission::Queued`] may then still be dropped, and [`Chain::next`] may name a time at which one only moves on
//! inside.

mod carrier;
mod chain;
mod change;
mod check;
pub mod config;
mod counts;
pub mod deliveries;
mod discipline;
mod disciplines;
pub mod element;
pub mod elements;
mod error;
mod gate;
mod hold;
mod hops;
mod integral;
mod packet;
pub mod prefetch;
mod queue;
pub mod rates;
mod reschedule;
mod ring;
mod rng;
mod schedule;
mod server;
mod settings;

pub use carrier::Carrier;
pub use chain::{Chain, OwnDisciplines};
pub use change::Change;
pub use counts::Counts;
pub use discipline::{Discipline, Dropped, Line, Random, Room, Setup, Waiting};
pub use disciplines::{DISCIPLINES, DisciplineConfig};
pub use elements::{ELEMENTS, ETHERNET_HEADER_BYTES, OPPORTUNITY_BYTES};
pub use error::ConfigError;
pub use gate::MakeDiscipline;
pub use hops::Hops;
pub use packet::{Admission, Cause, Ecn, Packet, Tally};
pub use queue::{QueueView, Totals};
pub use rates::{capacities, highest_rate, shortest_buffer};
pub use rng::mix;
pub use settings::{DisciplineInfo, SettingInfo, Unit};
