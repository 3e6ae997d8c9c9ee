//! The simulator for the browser: what `lab/src/engine/` asks it, and nothing that decides anything.
//!
//! A request is JSON; an answer is JSON, columns of numbers, and at times a text beside them. `lab/src/engine/protocol.ts` says
//! what they mean, `lab/src/engine/wasm.ts` is the other side of [`abi`].
//!
//! In reading order: [`engine`] (a request is answered), [`request`] and [`answer`] (what crosses), `limits` (what a stranger's
//! document may ask for), `columns` (series as columns), `live` (runs that go on step by step), `packets` and `qlog` (what
//! happened to packets), `catalogue` (what there is), [`abi`] (how all of it crosses).
//!
//! Nothing here reads a clock or a file, and no answer depends on the requests before it, except those of the same live run.

pub mod abi;
pub mod answer;
mod catalogue;
mod columns;
pub mod engine;
mod limits;
mod live;
mod packets;
mod qlog;
pub mod request;
mod run;
