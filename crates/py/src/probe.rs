//! What Python calls of the data plane of a path measurement. Only Linux has it; `no_probe.rs` stands in elsewhere.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use fullpipe_probe::budget::Short;
use fullpipe_probe::plane::{End, Exchange, Limits, Plane, Record, Sent};
use fullpipe_probe::rule::Rule;
use fullpipe_probe::schedule::Piece;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interruptible;

/// One end of a measurement: it receives until it is ended, deleted, or a limit is reached.
#[pyclass(frozen, name = "ProbePlane", module = "fullpipe._native")]
pub(crate) struct PyPlane(Arc<Plane>);

/// A rate in bits a second, packets, bytes of each, whether every second can be marked, nanoseconds between a thin flow's packets.
type PyPiece = (f64, u32, u16, bool, u64);

#[pymethods]
impl PyPlane {
    /// On one or two connected sockets of UDP.
    #[new]
    #[pyo3(signature = (sockets, *, v6, cookie, sent_bytes, received_bytes, rate_bps, seconds, records))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument with a name in Python")]
    fn new(
        sockets: Vec<RawFd>,
        v6: bool,
        cookie: u64,
        sent_bytes: u64,
        received_bytes: u64,
        rate_bps: f64,
        seconds: f64,
        records: usize,
    ) -> PyResult<PyPlane> {
        if !(1..=2).contains(&sockets.len()) || sockets.iter().any(|fd| *fd < 0) {
            return Err(PyValueError::new_err("one or two open sockets are needed"));
        }
        // SAFETY: they are open, and Python's caller keeps them so during this call, which copies them.
        let borrowed: Vec<_> = sockets.iter().map(|fd| unsafe { BorrowedFd::borrow_raw(*fd) }).collect();
        let time_ns = (seconds * 1e9) as i64;
        let limits = Limits { sent_bytes, received_bytes, rate_bps, time_ns, records };
        Ok(PyPlane(Arc::new(Plane::new(&borrowed, v6, cookie, limits).map_err(refused)?)))
    }

    /// Sends a stage without the GIL: what was sent as columns (nanoseconds i64, bytes u16, flow u8, ECN u8; little-endian), why it
    /// ended, and by how many seconds the latest packet was late.
    #[pyo3(signature = (stream, pieces, *, echo, rule, silence_s))]
    fn send<'py>(
        &self,
        py: Python<'py>,
        stream: u16,
        pieces: Vec<PyPiece>,
        echo: bool,
        rule: (String, f64, f64),
        silence_s: f64,
    ) -> PyResult<(Bound<'py, PyBytes>, &'static str, f64)> {
        let pieces: Vec<Piece> = pieces.into_iter().map(piece).collect();
        let rule = rule_of(&rule)?;
        let plane = Arc::clone(&self.0);
        let silence_ns = (silence_s * 1e9) as i64;
        let work = move |stop: &_| plane.send((stream, echo), &pieces, rule, silence_ns, stop);
        let (sent, end, late_ns) = interruptible(py, work)?.map_err(refused)?;
        let why = match end {
            End::Whole => "whole",
            End::Rule => "rule",
            End::Silence => "silence",
            End::Limit => "limit",
            End::Stopped => "stopped",
        };
        Ok((PyBytes::new(py, &sent_columns(&sent)), why, late_ns as f64 / 1e9))
    }

    /// Takes out what arrived of a stage, as columns: nanoseconds i64, number u32, ECN u8; little-endian.
    fn arrived<'py>(&self, py: Python<'py>, stream: u16) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &record_columns(&self.0.arrived(stream)))
    }

    /// The exchanges of the latest stage of echoes: of each four times i64 in nanoseconds, little-endian.
    fn exchanges<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let all: Vec<Exchange> = self.0.exchanges();
        PyBytes::new(py, &all.iter().flatten().flat_map(|time| time.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// Bytes that left and that arrived.
    fn moved(&self) -> (u64, u64) {
        self.0.bytes()
    }

    /// Takes bytes that something else sends from the budget. 0: they are taken. Else nothing was: seconds until the rate allows
    /// it, or None if there are not as many. `line`: for the control connection.
    #[pyo3(signature = (count, *, line))]
    fn spend(&self, count: u64, line: bool) -> Option<f64> {
        match self.0.spend(count, line) {
            Ok(()) => Some(0.0),
            Err(Short::Wait(wait_ns)) => Some(wait_ns as f64 / 1e9),
            Err(Short::Bytes) => None,
        }
    }

    /// Bytes that may still leave, without those of the control connection.
    fn left(&self) -> u64 {
        self.0.left()
    }

    /// Datagrams that this machine dropped because nobody read them.
    fn dropped_here(&self) -> u64 {
        self.0.dropped_here()
    }

    /// Ends sending and receiving.
    fn end(&self) {
        self.0.end();
    }
}

fn piece((rate_bps, packets, bytes, ecn, thin_every_ns): PyPiece) -> Piece {
    Piece { rate_bps, packets, bytes, ecn, thin_every_ns }
}

fn rule_of((name, one, other): &(String, f64, f64)) -> PyResult<Rule> {
    match name.as_str() {
        "whole" => Ok(Rule::Whole),
        "full" => Ok(Rule::Full { late_ns: (one * 1e9) as i64 }),
        "overflow" => Ok(Rule::Overflow { share: *one, linger_ns: (other * 1e9) as i64 }),
        "missing" => Ok(Rule::Missing { packets: *one as u32 }),
        other => Err(PyValueError::new_err(format!("{other:?} is no rule"))),
    }
}

fn refused(error: io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error().unwrap_or(0), error.to_string()))
}

fn sent_columns(sent: &[Sent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 * sent.len());
    bytes.extend(sent.iter().flat_map(|one| one.at_ns.to_le_bytes()));
    bytes.extend(sent.iter().flat_map(|one| one.bytes.to_le_bytes()));
    bytes.extend(sent.iter().map(|one| one.flow));
    bytes.extend(sent.iter().map(|one| one.ecn));
    bytes
}

fn record_columns(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(13 * records.len());
    bytes.extend(records.iter().flat_map(|one| one.at_ns.to_le_bytes()));
    bytes.extend(records.iter().flat_map(|one| one.seq.to_le_bytes()));
    bytes.extend(records.iter().map(|one| one.ecn));
    bytes
}
