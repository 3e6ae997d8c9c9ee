//! The congestion controls, and what several of them share.
//!
//! In reading order:
//!
//! 1. [`reno`], then [`cubic`] with [`hystart`], and [`vegas`]: the increase algorithms; [`segment_window`]: the window they share.
//! 2. [`dctcp`]: answers the share of marked segments. [`newreno`] and [`cubic9438`]: what QUIC stacks ship, by the RFCs, with
//!    [`hystartpp`] and the window in bytes that they share, [`byte_window`].
//! 3. [`bbr1`], [`bbr3`] (the draft's) and [`bbr3_linux`] (Google's): BBR, one file for each concept of its specification.
//!    [`copa`]: answers delay by a target rate.
//!    [`fixed`]: no control at all.

pub mod bbr;
pub mod bbr1;
pub mod bbr3;
pub mod bbr3_linux;
pub mod byte_window;
pub mod copa;
pub mod cubic;
pub mod cubic9438;
pub mod dctcp;
pub mod fixed;
pub mod hystart;
pub mod hystartpp;
pub mod newreno;
pub(crate) mod profiles;
mod recovery;
pub mod reno;
pub mod segment_window;
pub mod vegas;
