//! What a network path does to packets.

pub mod config;
