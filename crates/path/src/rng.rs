//! Randomness: one stream for each element, which never changes between versions.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019). A stream is named by (seed of the chain, index of the
//! element), so adding draws to one element never shifts another's.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The random stream of one element.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of element `index` in a chain with this `seed`.
    pub(crate) fn new(seed: u64, index: usize) -> Stream {
        // Mixed twice, so that (seed, index + 1) and (seed + 1, index) are unrelated.
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed).wrapping_add(index as u64))))
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 32 random bits: the upper half, which is the better one.
    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in 0..=`max`, by multiplication (bias below (`max` + 1) / 2^64).
    #[inline]
    pub(crate) fn up_to(&mut self, max: u64) -> u64 {
        ((self.next_u64() as u128 * (max as u128 + 1)) >> 64) as u64
    }
}

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every input bit reaches every output bit.
pub const fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, every recorded seed means something else: do not change the numbers.
    #[test]
    fn first_draws_are_golden() {
        let first = |seed, index| {
            let mut stream = Stream::new(seed, index);
            [stream.next_u64(), stream.next_u64()]
        };
        assert_eq!(first(0, 0), GOLDEN[0]);
        assert_eq!(first(0, 1), GOLDEN[1]);
        assert_eq!(first(1, 0), GOLDEN[2]);
        assert_eq!(first(u64::MAX, 7), GOLDEN[3]);
    }

    // Computed outside this crate, from the algorithms as published.
    const GOLDEN: [[u64; 2]; 4] = [
        [4_526_510_421_850_589_242, 9_596_305_322_356_609_015],
        [8_753_936_365_949_018_337, 2_657_517_459_490_522_273],
        [4_577_072_067_518_496_145, 8_161_067_896_715_757_060],
        [13_329_393_014_175_577_156, 17_758_237_992_554_376_204],
    ];

    /// The generator's published test vector: state 1, 2, 3, 4 (from the authors' C code).
    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        let state = [1u64, 2, 3, 4].map(u64::to_le_bytes).concat();
        let mut random = Xoshiro256PlusPlus::from_seed(state.try_into().expect("32 bytes"));
        assert_eq!([random.next_u64(), random.next_u64()], [41_943_041, 58_720_359]);
    }

    #[test]
    fn up_to_covers_both_ends() {
        let mut stream = Stream::new(1, 1);
        let mut seen = [0; 3];
        (0..3000).for_each(|_| seen[stream.up_to(2) as usize] += 1);
        assert!(seen.iter().all(|&times| times > 900), "{seen:?}");
        assert_eq!(stream.up_to(0), 0);
        stream.up_to(u64::MAX);
    }
}
