//! The generator of everything random here: a seed repeats a run.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of one flow.
    pub fn of(seed: u64, flow: u64) -> Random {
        let mut random = Random(seed ^ flow.wrapping_mul(0xd1b5_4a32_d192_ed03));
        random.draw();
        random
    }

    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.draw() as u128 * bound as u128) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A count from zero to `most`.
    #[inline]
    pub fn upto(&mut self, most: u32) -> u32 {
        self.below(most as u64 + 1) as u32
    }

    /// Whether something happens that happens `per_10_000` times of 10,000.
    #[inline]
    pub fn chance(&mut self, per_10_000: u32) -> bool {
        per_10_000 > 0 && self.below(10_000) < per_10_000 as u64
    }

    /// Of any order of magnitude from `low`, at least one, to `high`.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let bits = |value: u64| 64 - value.leading_zeros() as u64;
        let bits = self.between(bits(low), bits(high));
        let least = (1u64 << (bits - 1)).max(low);
        let most = ((1u128 << bits) - 1).min(high as u128) as u64;
        self.between(least.min(most), most)
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
