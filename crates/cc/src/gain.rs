//! Gains: small factors in 1/256, as both versions of BBR keep them.

/// A factor in 1/256 (Linux: `BBR_UNIT` is one).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(pub(crate) u32);

impl Gain {
    /// The binary places of a gain (Linux: `BBR_SCALE`).
    const SCALE: u32 = 8;
    /// The gain that changes nothing.
    pub const ONE: Gain = Gain(1 << Gain::SCALE);

    /// A gain of `q8 / 256`.
    pub const fn from_q8(q8: u32) -> Gain {
        Gain(q8)
    }

    /// The gain times 256, as the kernel stores and reports it.
    pub const fn q8(self) -> u32 {
        self.0
    }

    /// `value` times the gain, rounded down; the product wraps at 64 bits, as in Linux.
    #[inline]
    pub(crate) const fn times(self, value: u64) -> u64 {
        value.wrapping_mul(self.0 as u64) >> Gain::SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_rounds_down_and_wraps() {
        assert_eq!(Gain::from_q8(739).times(100), 288, "2.887 times 100");
        assert_eq!(Gain::ONE.times(u64::MAX), u64::MAX >> 8);
    }
}
