//! What a user may say, and what it resolves to.

pub mod controller;
pub mod spec;
