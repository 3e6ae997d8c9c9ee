//! A decimal number with six places: how parameters are written by people and scenarios.

use core::fmt;

const ONE: i64 = 1_000_000;

/// A fixed-point number in millionths. Decisions never see it: a controller turns it into its own integer unit once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(i64);

impl Decimal {
    /// The number 0.
    pub const ZERO: Decimal = Decimal(0);
    /// The number 1.
    pub const ONE: Decimal = Decimal(ONE);

    /// `millionths` millionths.
    pub const fn from_millionths(millionths: i64) -> Decimal {
        Decimal(millionths)
    }

    /// A whole number.
    pub const fn from_integer(integer: i32) -> Decimal {
        Decimal(integer as i64 * ONE)
    }

    /// `numerator / denominator`, rounded to the nearest millionth. For non-negative numbers.
    pub const fn from_ratio(numerator: u32, denominator: u32) -> Decimal {
        Decimal((numerator as i64 * ONE + denominator as i64 / 2) / denominator as i64)
    }

    /// For people and plots.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// Whether there is nothing after the point.
    pub const fn is_whole(self) -> bool {
        self.0 % ONE == 0
    }

    /// `self * numerator / denominator`, rounded to the nearest integer. For non-negative numbers that fit.
    pub(crate) const fn scaled(self, numerator: u32, denominator: u32) -> u32 {
        let divisor = ONE as i128 * denominator as i128;
        ((self.0 as i128 * numerator as i128 + divisor / 2) / divisor) as u32
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (whole, mut places) = (magnitude / ONE as u64, magnitude % ONE as u64);
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if places == 0 {
            return write!(f, "{whole}");
        }
        let mut width = 6;
        while places.is_multiple_of(10) {
            places /= 10;
            width -= 1;
        }
        write!(f, "{whole}.{places:0width$}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn decimals_print_without_trailing_zeros() {
        assert_eq!(Decimal::from_integer(4).to_string(), "4");
        assert_eq!(Decimal::from_millionths(-1_250_000).to_string(), "-1.25");
        assert_eq!(Decimal::from_ratio(739, 256).to_string(), "2.886719");
    }

    #[test]
    fn printed_gain_round_trips() {
        for gain in 1..1024 {
            assert_eq!(Decimal::from_ratio(gain, 256).scaled(256, 1), gain);
        }
    }
}
