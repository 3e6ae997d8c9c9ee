//! Ratios in hundredths, as the draft states its constants: 2.77 is 277, exactly.

use crate::parameter::{Slot, Stored};

/// A factor in 1/100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u32);

impl Ratio {
    /// The factor that changes nothing.
    pub const ONE: Ratio = Ratio(100);

    /// A factor of `hundredths / 100`.
    pub const fn from_hundredths(hundredths: u32) -> Ratio {
        Ratio(hundredths)
    }

    /// The factor times 100.
    pub const fn hundredths(self) -> u32 {
        self.0
    }

    /// `value` times the factor, rounded down.
    #[inline]
    pub(crate) const fn of(self, value: u64) -> u64 {
        times(value, self.0) / 100
    }

    /// Whether `part` is more than this share of `whole`, without rounding.
    #[inline]
    pub(crate) const fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        times(part, 100) > times(whole, self.0)
    }
}

/// The product, at most `u64::MAX`. In two halves: BPF has no product of 128 bits, which `u64::saturating_mul` needs.
#[inline]
pub(crate) const fn times(value: u64, factor: u32) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    let low = (value & LOW) * factor as u64;
    let high = (value >> 32) * factor as u64 + (low >> 32);
    if high > LOW { u64::MAX } else { high << 32 | low & LOW }
}

impl Stored for Ratio {
    fn from_stored(stored: u32) -> Ratio {
        Ratio(stored)
    }

    fn slot(&mut self) -> Slot<'_> {
        Slot::Number(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_rounds_down_without_overflow() {
        assert_eq!(Ratio::from_hundredths(277).of(101), 279, "279.77");
        assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX / 100);
    }

    #[test]
    fn split_multiplication_matches_saturating_mul() {
        let numbers =
            [0, 1, 99, u32::MAX as u64, 1 << 32, (1 << 32) + 1, u64::MAX / 100, u64::MAX / 99, u64::MAX];
        for (value, factor) in numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b as u32))) {
            assert_eq!(times(value, factor), value.saturating_mul(factor as u64), "{value} {factor}");
        }
    }

    #[test]
    fn share_is_exceeded_only_strictly() {
        let two = Ratio::from_hundredths(2);
        assert!(!two.is_exceeded_by(2, 100));
        assert!(two.is_exceeded_by(3, 149), "149 * 0.02 = 2.98");
        assert!(!two.is_exceeded_by(0, 0));
    }
}
