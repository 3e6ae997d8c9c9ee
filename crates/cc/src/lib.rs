//! Congestion controllers.
#![no_std]
#![forbid(unsafe_code)]

pub mod controller;
pub mod delivery;
pub use controller::*;
