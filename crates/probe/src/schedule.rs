//! When each packet of a stage is due, from a few numbers that both ends can bound.

use crate::wire::BYTES;

/// Bytes of an IP packet of the thin flow.
pub const THIN_BYTES: u16 = 100;
/// No packet is longer: the receiver's buffers are of this size.
pub const MOST_BYTES: u16 = 2000;
/// No piece is slower, in bits a second, and no thin flow has longer gaps.
const SLOWEST_BPS: f64 = 1000.0;
const LONGEST_NS: u64 = 1_000_000_000_000;

/// A stretch of constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Bits a second of IP packets, without the thin flow.
    pub rate_bps: f64,
    /// How many packets.
    pub packets: u32,
    /// Bytes of each, with the header of IP.
    pub bytes: u16,
    /// Every second packet can be marked (ECT(0)).
    pub ecn: bool,
    /// A packet of a thin flow, by turns Not-ECT and ECT(1), after as many nanoseconds each; 0: none.
    pub thin_every_ns: u64,
}

/// A packet of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Nanoseconds after the start of the stage.
    pub at_ns: u64,
    /// Bytes, with the header of IP.
    pub bytes: u16,
    /// 0, or 1 for the thin flow.
    pub flow: u8,
    /// The two bits of ECN.
    pub ecn: u8,
}

/// What a piece may be: with its thin flow no faster than `most_bps`, and packets with room for a head. The thin flow has at
/// most a hundredth of that.
pub fn bounded(piece: Piece, most_bps: f64, overhead: u16) -> Piece {
    let least = BYTES as u16 + overhead;
    let thin_bits = f64::from(THIN_BYTES) * 8.0;
    let thin_every_ns = match piece.thin_every_ns {
        0 => 0,
        asked => asked.clamp((thin_bits * 1e9 / (0.01 * most_bps)).ceil() as u64, LONGEST_NS),
    };
    let thin_bps = if thin_every_ns == 0 { 0.0 } else { thin_bits * 1e9 / thin_every_ns as f64 };
    let most_bps = (most_bps - thin_bps).max(SLOWEST_BPS);
    let rate_bps =
        if piece.rate_bps.is_finite() { piece.rate_bps.clamp(SLOWEST_BPS, most_bps) } else { most_bps };
    Piece { rate_bps, bytes: piece.bytes.clamp(least, MOST_BYTES), thin_every_ns, ..piece }
}

/// The packets of a stage, one after the other.
pub fn packets(pieces: &[Piece]) -> impl Iterator<Item = Due> + '_ {
    let mut began_ns = 0u64;
    pieces.iter().flat_map(move |piece| {
        let gap_ns = f64::from(piece.bytes) * 8e9 / piece.rate_bps;
        let start_ns = began_ns;
        began_ns = start_ns.saturating_add((gap_ns * f64::from(piece.packets)) as u64);
        let (mut fat, mut thin, piece) = (0u32, 0u64, *piece);
        std::iter::from_fn(move || {
            if fat == piece.packets {
                return None;
            }
            let fat_ns = (gap_ns * f64::from(fat)) as u64;
            let thin_ns = thin.saturating_mul(piece.thin_every_ns);
            if piece.thin_every_ns > 0 && thin_ns < fat_ns {
                thin += 1;
                return Some(Due {
                    at_ns: start_ns.saturating_add(thin_ns),
                    bytes: THIN_BYTES,
                    flow: 1,
                    ecn: (thin % 2) as u8,
                });
            }
            fat += 1;
            let ecn = if piece.ecn && fat.is_multiple_of(2) { 2 } else { 0 };
            Some(Due { at_ns: start_ns.saturating_add(fat_ns), bytes: piece.bytes, flow: 0, ecn })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: Piece = Piece { rate_bps: 12e6, packets: 4, bytes: 1500, ecn: true, thin_every_ns: 0 };

    #[test]
    fn packets_follow_at_the_rate() {
        let after = Piece { rate_bps: 6e6, packets: 2, ..PIECE };
        let due: Vec<Due> = packets(&[PIECE, after]).collect();
        let at: Vec<u64> = due.iter().map(|one| one.at_ns / 1_000_000).collect();
        assert_eq!(at, [0, 1, 2, 3, 4, 6]);
        assert_eq!(due.iter().map(|one| one.ecn).collect::<Vec<_>>(), [0, 2, 0, 2, 0, 2]);
    }

    #[test]
    fn a_thin_flow_runs_beside() {
        let piece = Piece { thin_every_ns: 1_500_000, ..PIECE };
        let thin: Vec<Due> = packets(&[piece]).filter(|one| one.flow == 1).collect();
        assert_eq!(thin.iter().map(|one| one.at_ns).collect::<Vec<_>>(), [0, 1_500_000]);
        assert_eq!(thin.iter().map(|one| one.ecn).collect::<Vec<_>>(), [1, 0]);
        assert!(packets(&[piece]).collect::<Vec<_>>().is_sorted_by_key(|one| one.at_ns));
    }

    #[test]
    fn hostile_pieces_are_bounded() {
        for rate_bps in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            let piece = bounded(Piece { rate_bps, bytes: 0, ..PIECE }, 1e8, 28);
            assert!(piece.rate_bps >= 1000.0 && piece.rate_bps <= 1e8, "{rate_bps}");
            assert_eq!(piece.bytes, 76);
        }
    }

    #[test]
    fn a_thin_flow_counts_towards_the_highest_rate() {
        for (rate_bps, packets_, thin_every_ns) in [
            (4e6, 1000, 1),
            (4e6, 1000, 1000),
            (1e9, 1000, u64::MAX),
            (1000.0, u32::MAX, 1 << 63),
            (1e6, 50, 10_000_000),
        ] {
            let piece = bounded(
                Piece { rate_bps, packets: packets_, bytes: 1000, ecn: false, thin_every_ns },
                4e6,
                28,
            );
            let due: Vec<Due> = packets(&[piece]).take(5000).collect();
            let bits: f64 = due[1..].iter().map(|one| f64::from(one.bytes) * 8.0).sum();
            let last = due[due.len() - 1].at_ns.max(1);
            // The packets at the very start have no time yet.
            assert!(bits - 800.0 <= 4.0001e-3 * last as f64, "{bits} bits in {last} ns");
            let thin = due.iter().filter(|one| one.flow == 1).count();
            assert!(thin as f64 * 800.0 <= 0.01 * 4e-3 * last as f64 + 800.0);
        }
    }
}
