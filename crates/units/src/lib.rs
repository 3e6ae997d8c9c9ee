//! Quantities as types: [`Time`], [`Duration`], [`Bytes`] and [`Rate`].
//!
//! Each is one unsigned 64-bit integer, so arithmetic is exact and the same on every machine. A raw number that leaves
//! the type carries its unit in the name of the method that made it (`as_nanos`, `as_bits_per_sec`).
//!
//! With the feature `serde` each (de)serialises as its integer; the field that holds it names the unit (`rate_bps`).
#![no_std]

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than everything: a timer that is not set.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The time `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros * NANOS_PER_MICRO)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the start, rounded down as Linux's `tcp_mstamp` is.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Seconds since the start, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self + duration`, or [`Time::NEVER`] where that does not fit.
    pub const fn saturating_add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration.0))
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration; stands for "unlimited".
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Duration {
        Duration(nanos)
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Duration {
        Duration(micros * NANOS_PER_MICRO)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Duration {
        Duration(millis * NANOS_PER_MILLI)
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Duration {
        Duration(secs * NANOS_PER_SEC)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Seconds, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// `self * factor`, or [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bytes(u64);

impl Bytes {
    /// None.
    pub const ZERO: Bytes = Bytes(0);
    /// Stands for "unlimited".
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Rate = Rate(0);
    /// Stands for "unlimited".
    pub const MAX: Rate = Rate(u64::MAX);

    /// `bps` bits per second.
    pub const fn from_bits_per_sec(bps: u64) -> Rate {
        Rate(bps)
    }

    /// `bytes` bytes per second, the unit of Linux's `sk_pacing_rate`; saturates.
    pub const fn from_bytes_per_sec(bytes: u64) -> Rate {
        Rate(bytes.saturating_mul(8))
    }

    /// Bits per second.
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0
    }

    /// Whole bytes per second, rounded down.
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// How long `bytes` take at this rate, rounded down to a nanosecond; [`Duration::MAX`] at rate zero.
    pub const fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // A division of 64 bits is the faster one, and enough for a burst.
        if let Some(work) = bytes.0.checked_mul(8 * NANOS_PER_SEC) {
            return Duration(work / self.0);
        }
        let nanos = bytes.0 as u128 * 8 * NANOS_PER_SEC as u128 / self.0 as u128;
        Duration(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
    }

    /// How many whole bytes pass in `duration` at this rate; saturates.
    pub const fn bytes_in(self, duration: Duration) -> Bytes {
        let bytes = self.0 as u128 * duration.0 as u128 / (8 * NANOS_PER_SEC as u128);
        Bytes(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        Time(self.0 + duration.0)
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration.0;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, duration: Duration) -> Time {
        Time(self.0 - duration.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { write!(f, "never") } else { write!(f, "{}", Duration(self.0)) }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[(NANOS_PER_SEC, "s"), (NANOS_PER_MILLI, "ms"), (NANOS_PER_MICRO, "us"), (1, "ns")],
        )
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB"), (1, "B")])
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0,
            &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")],
        )
    }
}

/// Prints `value` in the largest unit that it fills, with at most three decimals and no trailing zeros.
fn scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (scale, name) =
        units.iter().copied().find(|(scale, _)| value >= *scale).unwrap_or(units[units.len() - 1]);
    let whole = value / scale;
    let mut thousandths = (value % scale) as u128 * 1000 / scale as u128;
    if thousandths == 0 {
        return write!(f, "{whole} {name}");
    }
    let mut digits = 3;
    while thousandths.is_multiple_of(10) {
        thousandths /= 10;
        digits -= 1;
    }
    write!(f, "{whole}.{thousandths:0digits$} {name}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn packet_takes_120_us_at_100mbit() {
        let rate = Rate::from_bits_per_sec(100_000_000);
        assert_eq!(rate.time_for(Bytes::new(1500)), Duration::from_micros(120));
        assert_eq!(rate.bytes_in(Duration::from_micros(120)), Bytes::new(1500));
    }

    #[test]
    fn extremes_saturate_instead_of_wrapping() {
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Duration::MAX);
        assert_eq!(Rate::from_bits_per_sec(1).time_for(Bytes::MAX), Duration::MAX);
        // Up to where 64 bits are enough, and beyond.
        let most = u64::MAX / (8 * NANOS_PER_SEC);
        for bytes in [most, most + 1] {
            let nanos = bytes as u128 * 8 * NANOS_PER_SEC as u128 / 999;
            assert_eq!(Rate::from_bits_per_sec(999).time_for(Bytes::new(bytes)).as_nanos() as u128, nanos);
        }
        assert_eq!(Time::ZERO.saturating_since(Time::from_nanos(5)), Duration::ZERO);
        assert_eq!(Time::NEVER.saturating_add(Duration::from_secs(1)), Time::NEVER);
    }

    #[test]
    fn quantities_print_in_human_units() {
        assert_eq!(Rate::from_bits_per_sec(1_500_000).to_string(), "1.5 Mbit/s");
        assert_eq!(Duration::from_micros(40_000).to_string(), "40 ms");
        assert_eq!(Bytes::new(100_050).to_string(), "100.05 KB");
        assert_eq!(Bytes::ZERO.to_string(), "0 B");
        assert_eq!(Time::NEVER.to_string(), "never");
    }
}
