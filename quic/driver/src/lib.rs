//! Drives a congestion controller of fullpipe-cc by what a QUIC stack reports of its packets.
//!
//! A stack reports packets: sent, acknowledged, lost. A [`Controller`](fullpipe_cc::Controller) wants events in a fixed order, with
//! a delivery-rate sample, recovery periods and counts of bytes. This crate stands between the two. It reads no clock, draws no
//! random numbers but those of its seed, and needs an allocator but no `std`.
//!
//! In reading order:
//!
//! 1. [`Events`]: what happened to packets, as events for a controller. The stack keeps a [`Note`] for each packet and gives it
//!    back when the packet is acknowledged or lost. The adapters for quinn and s2n-quic use it.
//! 2. [`Driver`]: the same for a stack that names packets by their numbers; it keeps the notes itself ([`Flight`]). The
//!    adapter for noq uses it; `examples/adapter.rs` is one to copy.
//! 3. [`InBytes`]: any built-in controller for a transport that counts bytes, as QUIC does.
//! 4. [`Rtt`]: round-trip times by RFC 9002.
//! 5. [`pacing`]: what a stack's pacer needs of a controller's limits.
//! 6. With the feature `std`, [`shared`]: what adapters share, such as looking at a controller from outside of its connection.
//!
//! # Losses that come after the end of an ACK
//!
//! A controller gets the losses of an ACK before the ACK. noq and quinn report them after it: packets acknowledged, end of the
//! acknowledged packets, packets lost, congestion marks. So an ACK stays open after [`Events::end_acked`], and what follows at the
//! same instant belongs to it. The next packet that is sent or acknowledged, a later time, or a question for the limits
//! ([`Events::limits`]) settles it: only then does the controller get all of its events.
//!
//! # What is different from TCP
//!
//! - There is no cumulative acknowledgement. What is not in flight counts as acknowledged: `SND.UNA` is the count of bytes sent less
//!   those in flight, and [`Connection::packets_out`](fullpipe_cc::Connection::packets_out) equals the bytes in flight.
//! - Recovery periods are those of RFC 9002 section 7.3.2: one begins with the loss of a packet that was sent after the last one
//!   began, and ends when a packet sent in it is acknowledged. The loss of an older packet is reported, and begins none.
//! - [`CaState::Loss`](fullpipe_cc::CaState::Loss) is persistent congestion (section 7.6). A probe timeout by itself is no event.
//! - No packet is a retransmission, and no tail probe repairs a loss: probes have numbers of their own.
//! - `on_window_unused` never comes: RFC 9002 section 7.8 does not shrink a window that is not used.
//!
//! ```
//! use fullpipe_cc::Params;
//! use fullpipe_quic_driver::{Driver, InBytes, Start};
//! use fullpipe_units::{Duration, Time};
//!
//! let start = Start { now: Time::from_micros(1_000_000), mtu: 1200, seed: 1 };
//! let mut driver = Driver::new(InBytes::new(&Params::by_name("bbr3").unwrap(), &start), &start);
//! driver.sent(start.now, 0, 1200, None);
//! let later = start.now + Duration::from_millis(20);
//! assert!(driver.acked(later, 0, Some(start.now), 1200, false));
//! driver.events_mut().end_acked();
//! let limits = driver.limits();
//! assert!(limits.cwnd >= 12_000 && driver.events().in_flight() == 0);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod driver;
mod events;
mod flight;
mod in_bytes;
pub mod pacing;
mod rtt;
#[cfg(feature = "std")]
pub mod shared;
mod usage;

pub use driver::Driver;
pub use events::{Counts, Events, Note, Start};
pub use flight::{Flight, Which};
pub use in_bytes::InBytes;
pub use rtt::Rtt;
