//! The expected result for the datagrams, computed afterwards from the sender's own stamps.
//!
//! Times are computed by the arithmetic of a single server, which shares no code with the path. Decisions are computed by
//! the path model itself, because it defines which packets a seed loses.

use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Admission, Cause, Chain, Packet};
use fullpipe_units::Time;

use crate::EmuError;

/// The path's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives.
    Arrives,
    /// It finds the queue full.
    QueueFull,
    /// It is lost at random, behind the queue.
    Lost,
}

/// The decisions of a path with these elements and this seed on packets of `bytes` that enter it at these times.
pub(super) fn fates(
    elements: &[ElementConfig],
    seed: u64,
    bytes: u32,
    sent_ns: &[u64],
) -> Result<Vec<Fate>, EmuError> {
    let mut chain: Chain<()> =
        Chain::new(elements, &[], seed).map_err(|error| EmuError::Path(error.to_string()))?;
    let decide = |&at: &u64| {
        let now = Time::from_nanos(at);
        while chain.pop(now).is_some() {}
        match chain.push(now, Packet::new(bytes, 0), ()) {
            Admission::Queued => Fate::Arrives,
            Admission::Dropped(Cause::Lost) => Fate::Lost,
            Admission::Dropped(_) => Fate::QueueFull,
        }
    };
    Ok(sent_ns.iter().map(decide).collect())
}

/// A link and a delay: a server that works at a constant rate in order of arrival (Lindley's recursion).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) rate_bps: u64,
    pub(super) delay_ns: u64,
}

impl Pipe {
    /// When packets of `bytes` that enter at these times reach the other end, to a nanosecond, rounded up.
    pub(super) fn arrivals(self, bytes: u32, sent_ns: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let rate = u128::from(self.rate_bps);
        // In billionths of a bit: the server does `rate` of them per nanosecond.
        let work = u128::from(bytes) * 8_000_000_000;
        let mut free = 0;
        let arrival = |sent: u64| {
            free = (u128::from(sent) * rate).max(free) + work;
            free.div_ceil(rate) as u64 + self.delay_ns
        };
        sent_ns.into_iter().map(arrival).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::config::{Probability, QueueConfig, Schedule};
    use fullpipe_units::{Bytes, Duration, Rate};

    const MICROS: u64 = 1_000;

    fn link(mbit: u64, queue_bytes: u64) -> ElementConfig {
        ElementConfig::Link {
            name: "link".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(mbit * 1_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(queue_bytes), None),
        }
    }

    #[test]
    fn packet_waits_for_predecessor() {
        // 1000 bytes at 8 Mbit/s take 1000 us. The second waits 400 us, the third finds the link free.
        let pipe = Pipe { rate_bps: 8_000_000, delay_ns: 20_000 * MICROS };
        let sent = [0, 600, 5_000].map(|micros| micros * MICROS);
        assert_eq!(pipe.arrivals(1000, sent), [21_000, 22_000, 26_000].map(|micros| micros * MICROS));
    }

    #[test]
    fn parts_of_a_nanosecond_add_up() {
        // 1 byte at 3 Gbit/s takes 2 2/3 ns.
        let pipe = Pipe { rate_bps: 3_000_000_000, delay_ns: 0 };
        assert_eq!(pipe.arrivals(1, [0; 6]), [3, 6, 8, 11, 14, 16]);
    }

    /// At one and a half times the rate, with room for two and a half packets. In units of a packet, on arrival there are 0,
    /// 1/3, 2/3, 1, 4/3, then 5/3 (too much), 1, 4/3, 5/3 (too much), ...: of three packets one is dropped.
    #[test]
    fn overload_of_half_drops_every_third() {
        // 1500 bytes at 12 Mbit/s take 1000 us; one is sent every 666 2/3 us.
        let sent: Vec<u64> = (0..300u64).map(|number| (number * 2_000_000).div_ceil(3)).collect();
        let fates = fates(&[link(12, 3750)], 1, 1500, &sent).unwrap();
        let dropped: Vec<usize> = (0..15).filter(|number| fates[*number] == Fate::QueueFull).collect();
        assert_eq!(dropped, [5, 8, 11, 14]);
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::QueueFull).count(), 99);
    }

    /// Not the same code, but the same times.
    #[test]
    fn arithmetic_and_path_agree_exactly() {
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(20)) };
        let mut chain: Chain<()> = Chain::new(&[link(77, 1 << 40), delay], &[], 1).unwrap();
        let sent: Vec<u64> =
            (0..1000).map(|number| number * number * 137 % 1_000 + number * 100_000).collect();
        let mut due = Vec::new();
        for at in &sent {
            chain.push(Time::from_nanos(*at), Packet::new(1234, 0), ());
        }
        while let Some((time, ..)) = chain.pop(Time::from_nanos(u64::MAX - 1)) {
            due.push(time.as_nanos());
        }
        let pipe = Pipe { rate_bps: 77_000_000, delay_ns: 20_000 * MICROS };
        assert_eq!(pipe.arrivals(1234, sent), due);
    }

    #[test]
    fn losses_depend_on_order_and_seed() {
        let loss = ElementConfig::loss(Schedule::constant(Probability::from_f64(0.1)));
        let path = [link(100, 1 << 40), loss];
        let early: Vec<u64> = (0..1000).map(|number| number * 1_000_000).collect();
        let late: Vec<u64> = early.iter().map(|at| at + at % 7_000).collect();
        let of = |seed, sent: &[u64]| fates(&path, seed, 1500, sent).unwrap();
        assert_eq!(of(1, &early), of(1, &late));
        assert_ne!(of(1, &early), of(2, &early));
        assert!(of(1, &early).contains(&Fate::Lost));
    }
}
