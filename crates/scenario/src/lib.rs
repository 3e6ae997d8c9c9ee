//! What a user may say, and what it resolves to.
//!
//! A scenario says what the path is, what flows cross it and for how long, in TOML or in JSON of the same shape, with
//! units that people write. [`resolve_all`] turns it into numbers: one [`Spec`], or one for each controller under
//! `compare`. Every world runs exactly that [`Spec`].
//!
//! In reading order:
//!
//! * [`document`]: the shape of a scenario, field by field; [`schema()`] prints it as JSON Schema.
//! * [`quantity`]: `100 Mbit/s`, `40 ms`, `1.5 bdp`, `0.1 %`, read exactly; [`decimal`] is the number in front.
//! * [`controller`][]: `bbr1:probe_gain=1.5`.
//! * [`resolve`](mod@resolve): from words to numbers; `resolve/path.rs` and `resolve/flows.rs` hold the two large parts.
//! * [`spec`]: the numbers; `check.rs` holds a spec against its invariants, [`bounds`] lists the limits.
//! * [`transfers`]: when an application that sends one transfer after another writes, and when its peer asks.
//! * [`error`]: one error, in one sentence: the field, what was given, what was expected, and the mend.
//!
//! This crate reads files (traces, scenarios) and nothing else: no clock, no random numbers, no environment.
#![forbid(unsafe_code)]

pub mod bounds;
mod check;
pub mod controller;
pub mod decimal;
pub mod document;
pub mod error;
pub mod quantity;
mod reader;
pub mod resolve;
pub mod schema;
pub mod spec;
pub mod transfers;

pub use controller::ControllerChoice;
pub use error::ScenarioError;
pub use resolve::{Format, resolve, resolve_all, resolve_file};
pub use schema::schema;
pub use spec::Spec;
