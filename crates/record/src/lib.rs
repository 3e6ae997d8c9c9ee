//! The results of a run in any world: summaries, time series, provenance.
//!
//! In reading order: [`run`] has the types that a world fills; [`measures`] computes from them the numbers to compare, by
//! one definition for every world; [`summary`] writes those as JSON; [`table`] converts the time series to Arrow columns,
//! and [`mod@parquet`] stores the tables with their provenance.
//!
//! [`Run::told`] reads a run that another process has made.
//!
//! [`seen`] is what packets tell of a flow whose hosts say nothing: a program.
//!
//! Apart from runs, [`recording`] stores the inputs and decisions of a kernel's congestion control, call by call, and
//! [`frames`] reads any Parquet file without trusting it.
//!
//! The last four need the feature `parquet`.
//!
//! Nothing here reads a clock or the machine: equal runs give equal bytes.
#![forbid(unsafe_code)]

#[cfg(feature = "parquet")]
mod contain;
#[cfg(feature = "parquet")]
pub mod file;
#[cfg(feature = "parquet")]
pub mod frames;
pub mod measures;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "parquet")]
pub mod recording;
pub mod run;
pub mod seen;
pub mod summary;
#[cfg(feature = "parquet")]
pub mod table;
mod told;
pub use run::*;
pub use seen::{Delay, Payload, RttSource, Seen, UNKNOWN};
