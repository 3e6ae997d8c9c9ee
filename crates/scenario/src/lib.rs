//! Scenarios as people write them, and the numbers that they resolve to.
//!
//! A scenario describes a path, the flows that cross it and how long they run, in TOML or in JSON of the same shape, with
//! units that people write. [`Resolved`] holds it as numbers: one [`Spec`], or one for each controller under
//! `compare`. Every world runs exactly that [`Spec`].
//!
//! In reading order:
//!
//! * [`document`]: the shape of a scenario, field by field; [`elements`]: the further elements of its path,
//!   [`declared`]: those, and keys of a path, that `fullpipe-path` declares; [`schema()`]
//!   prints it as JSON Schema.
//! * [`quantity`]: `100 Mbit/s`, `40 ms`, `1.5 bdp`, `0.1 %`, read exactly; [`decimal`] is the number in front.
//! * [`controller`][]: `bbr1:probe_gain=1.5`; [`stack`]: `noq:bbr3`, one inside a QUIC stack; [`queue`]: `codel:target=1 ms`.
//! * [`resolve`](mod@resolve): from text to numbers; `resolve/path.rs` and `resolve/flows.rs` are the two large parts;
//!   `resolve/builder.rs` is what elements see of the scenario.
//! * [`spec`]: the numbers, and where a change of the path goes; `validate.rs` checks its invariants, `check.rs` one number.
//!   [`bounds`] lists the limits.
//! * [`said`]: a change of the path while a run goes on, in words.
//! * [`transfers`]: when an application that sends one transfer after another writes, and when its peer requests more.
//! * [`metrics`]: what hosts remember of earlier connections.
//! * [`program`]: a flow that is a program, as command lines.
//! * `place.rs`: the line of a field, for errors.
//! * [`error`]: one error, in one sentence: the field, what was given, what was expected, and the fix.
//! * [`facts`]: what a path allows: rate, round-trip time and bandwidth-delay product over time.
//!
//! This crate reads files (delivery traces, scenarios) and nothing else: no clock, no random numbers, no environment.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod change_text;
mod check;
pub mod controller;
pub mod decimal;
pub mod declared;
pub mod document;
pub mod elements;
pub mod error;
pub mod facts;
mod format;
mod key;
pub mod metrics;
mod place;
pub mod program;
pub mod quantity;
pub mod queue;
mod reader;
pub mod resolve;
pub mod schema;
pub mod spec;
pub mod stack;
pub mod transfers;
pub mod unit;
mod validate;

pub use controller::ControllerChoice;
pub use declared::path_options;
pub use error::{Place, ScenarioError};
pub use format::Format;
pub use place::line_of;
pub use program::{Program, Side};
pub use resolve::{Resolved, read_any, resolve, resolve_all, resolve_file};
pub use schema::schema;
pub use spec::Spec;
