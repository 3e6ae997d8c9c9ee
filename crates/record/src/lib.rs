//! What a run gives, whichever world ran it: summaries, time series, provenance.
//!
//! In reading order: [`run`] holds the types that a world fills; [`measures`] turns them into the numbers that people
//! compare, by one definition for every world; [`summary`] writes those as JSON; [`table`] lays the time series out as
//! Arrow columns, and [`mod@parquet`] stores the tables with their provenance.
//!
//! Apart from runs, [`trace`] stores what a kernel's congestion control was told and decided, call by call.
//!
//! The last three need the feature `parquet`.
//!
//! Nothing here reads a clock or the machine: equal runs give equal bytes.
#![forbid(unsafe_code)]

pub mod measures;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod run;
pub mod summary;
#[cfg(feature = "parquet")]
pub mod table;
#[cfg(feature = "parquet")]
pub mod trace;
pub use run::*;
