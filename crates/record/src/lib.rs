//! What a run gives, whichever world ran it: summaries, time series, provenance.

pub mod run;
pub use run::*;
