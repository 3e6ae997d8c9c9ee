//! The receive window and its autotuning (Linux 6.18: `tcp_grow_window`, `tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`, `tcp_select_window`).
//!
//! The application reads at once, so the whole buffer is free except for data that waits out of order.

use fullpipe_units::{Duration, Time};

/// Payload per 256 bytes of buffer memory: a 1448-byte segment takes an `sk_buff` of 2304 bytes (`scaling_ratio`).
const PAYLOAD_PER_256: u64 = 160;
/// Before the first segment is measured (Linux: `TCP_DEFAULT_SCALING_RATIO`).
const INITIAL_PAYLOAD_PER_256: u64 = 128;
/// The first window fits the unscaled 16-bit field of a SYN.
const INITIAL_WINDOW_MAX: u64 = 65_535;

/// Window state in bytes of payload. Positions count from the start of the stream.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    mss: u64,
    buffer: u64,
    buffer_max: u64,
    /// The capacity of the buffer, the most that it could ever offer (Linux: `window_clamp`).
    clamp: u64,
    /// Most that is offered now; slow-starts towards `clamp` (Linux: `rcv_ssthresh`).
    offered: u64,
    /// First byte past the largest window ever offered; never moves back (RFC 9293 section 3.8.6: no shrinking).
    edge: u64,
    measure_start: Time,
    measure_from: u64,
    /// Most bytes read in one RTT so far (Linux: `rcvq_space.space`).
    per_rtt: u64,
}

impl ReceiveWindow {
    /// `rmem` is Linux's `tcp_rmem`: minimum, default, maximum.
    pub(crate) fn new(mss: u32, rmem: [u64; 3], now: Time) -> ReceiveWindow {
        let buffer = rmem[1].min(rmem[2]);
        let offered = (buffer * INITIAL_PAYLOAD_PER_256 / 256).min(INITIAL_WINDOW_MAX);
        ReceiveWindow {
            mss: mss as u64,
            buffer,
            buffer_max: rmem[2],
            clamp: buffer * PAYLOAD_PER_256 / 256,
            offered,
            edge: offered,
            measure_start: now,
            measure_from: 0,
            // Linux starts from the initial congestion window, 10 segments (`tcp_init_buffer_space`).
            per_rtt: offered.min(10 * mss as u64),
        }
    }

    /// The connection stands a round trip after its SYN arrived; what is read is measured from then on (Linux:
    /// `tcp_init_buffer_space`).
    pub(crate) fn on_established(&mut self, rtt: Duration) {
        self.measure_start += rtt;
    }

    /// Whether [`ReceiveWindow::on_data`] would change nothing if no data waits.
    #[inline]
    pub(crate) fn is_fully_offered(&self) -> bool {
        self.offered >= self.clamp
    }

    /// Data of `bytes` arrived in one piece, `waiting` bytes are out of order. Returns whether the window grew: then
    /// Linux acknowledges at once, so that the sender learns of it.
    #[inline]
    pub(crate) fn on_data(&mut self, bytes: u64, waiting: u64) -> bool {
        let room = self.space(waiting).saturating_sub(self.offered);
        if room == 0 || bytes < 128 {
            return false;
        }
        self.offered += room.min(2 * bytes.max(self.mss));
        true
    }

    /// The application has read up to `read`, and data waits up to `beyond` bytes further; `rtt` is the receiver's
    /// estimate of the round trip, zero if unknown.
    #[inline]
    pub(crate) fn on_read(&mut self, now: Time, read: u64, beyond: u64, rtt: Duration) {
        if rtt == Duration::ZERO || now.saturating_since(self.measure_start) < rtt {
            return;
        }
        let copied = read - self.measure_from;
        if copied > self.per_rtt {
            // Doubled, because the measured value is a round old, and increased by what the sender may grow meanwhile.
            // Before 6.16, another 16 segments were added.
            let window = 2 * copied;
            let growth = (window as u128 * (copied - self.per_rtt) as u128 / self.per_rtt as u128) as u64;
            let window = window + 2 * growth + beyond;
            let buffer = (window * 256 / PAYLOAD_PER_256).min(self.buffer_max);
            if buffer > self.buffer {
                self.buffer = buffer;
                self.clamp = buffer * PAYLOAD_PER_256 / 256;
            }
            self.per_rtt = copied;
        }
        self.measure_from = read;
        self.measure_start = now;
    }

    /// The edge to announce when everything before `expected` has arrived.
    #[inline]
    pub(crate) fn announce(&mut self, expected: u64, waiting: u64) -> u64 {
        let free = self.space(waiting).min(self.offered);
        self.edge = self.edge.max(expected + free);
        self.edge
    }

    /// The edge announced last.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// Announced window, bytes from `expected` on.
    #[inline]
    pub(crate) fn size(&self, expected: u64) -> u64 {
        self.edge - expected
    }

    #[inline]
    fn space(&self, waiting: u64) -> u64 {
        self.clamp.saturating_sub(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Feeds a sender that doubles each round and returns the windows offered at the end of each.
    fn windows(rmem: [u64; 3]) -> Vec<u64> {
        let mut window = ReceiveWindow::new(1448, rmem, Time::ZERO);
        let (mut read, mut now, mut seen) = (0, Time::ZERO, Vec::new());
        for round in 0..10 {
            for _ in 0..10u64 << round {
                read += 1448;
                window.on_data(1448, 0);
            }
            now += RTT;
            window.on_read(now, read, 0, RTT);
            window.announce(read, 0);
            seen.push(window.size(read));
        }
        seen
    }

    #[test]
    fn window_growth_outpaces_doubling_sender() {
        let windows = windows([4096, 131_072, 1 << 31]);
        for (round, window) in windows.iter().enumerate().skip(1) {
            assert!(*window >= (10u64 << (round + 1)) * 1448, "round {round}: {windows:?}");
        }
    }

    #[test]
    fn the_maximum_holds() {
        let windows = windows([4096, 131_072, 6_291_456]);
        assert_eq!(*windows.last().unwrap(), 6_291_456 * PAYLOAD_PER_256 / 256);
    }

    #[test]
    fn reordered_data_keeps_window_edge() {
        let mut window = ReceiveWindow::new(1448, [4096, 131_072, 131_072], Time::ZERO);
        let edge = window.announce(0, 0);
        assert_eq!(window.announce(0, 60_000), edge);
        assert_eq!(window.announce(0, 0), edge);
    }
}
