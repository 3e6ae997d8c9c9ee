//! Congestion controllers as state machines: events in, limits out. They are exact to Linux, and usable by any transport.
//!
//! In reading order:
//!
//! 1. [`controller`]: the interface between a transport and a controller; start here.
//! 2. [`registry`]: all controllers by name, and behind one type; `README.md` says how to add one. [`parameter`]: parameters.
//! 3. [`delivery`]: the delivery-rate sampler, the transport's half of BBR. [`windowed`]: its maximum filter.
//! 4. [`controllers`]: the algorithms; its page says which are which.
//! 5. [`ordered`]: a wrapper that checks whether a transport keeps the order of events. [`segments`]: one for transports that
//!    count bytes and controllers that count segments.
//!
//! Two crates beside this one judge controllers: `fullpipe-conformance` by laws that every controller obeys, including yours,
//! and `fullpipe-replay` by recorded decisions of a real kernel.
//!
//! The crate has no clock, no timer, no allocation, no random numbers, no floating point in a decision, and no packets.
//! The crate needs neither `std` nor `alloc`; `tests/no_std` proves it.
//!
//! ```
//! use fullpipe_cc::{Any, Config, Connection, Controller, Limits, Params};
//! use fullpipe_units::{Duration, Rate};
//!
//! let config = Config {
//!     mss: 1448,
//!     unit: 1448,
//!     initial_cwnd: 10,
//!     cwnd_clamp: u32::MAX,
//!     max_pacing_rate: Rate::MAX,
//!     gso_max: Config::GSO_MAX,
//!     max_tcp_header: Config::MAX_TCP_HEADER,
//!     paced: true,
//!     hz: 1000,
//!     ssthresh: Limits::INFINITE,
//! };
//! let connection = Connection { srtt: Duration::from_millis(20), min_rtt: Duration::from_millis(20), ..Connection::default() };
//! let controller = Any::new(&Params::by_name("bbr").unwrap(), &config, &connection);
//! assert_eq!(controller.limits().cwnd, 10);
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod controller;
pub mod controllers;
mod decimal;
pub mod delivery;
pub mod gain;
pub mod ordered;
pub mod parameter;
pub mod phase;
pub mod registry;
pub mod segments;
#[cfg(test)]
mod testing;
pub mod windowed;

pub use controller::*;
pub use delivery::{Sampler, TxState};
pub use ordered::{AckEvent, Ordered, OutOfOrder};
pub use parameter::{ControllerInfo, Decimal, ParamError, ParameterInfo};
pub use registry::{Any, CATALOGUE, Params};
pub use segments::Segments;
