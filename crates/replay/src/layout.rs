//! Where the kernel keeps the private state of a congestion control: `icsk_ca_priv`, 104 bytes.
//!
//! Source: BTF of Linux 6.18, x86-64, `struct bbr` and `struct bictcp`; unchanged since 5.14 and 5.15. Bits are counted
//! from the least significant one of the first byte, as a little-endian machine with GCC or Clang lays out bit-fields.

use super::Hook;

/// `icsk_ca_priv`, raw.
pub type Private = [u64; 13];

/// A congestion control whose calls can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ops {
    /// Linux's BBR, version 1.
    Bbr,
    /// Linux's CUBIC with HyStart.
    Cubic,
}

/// One field of a private state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateField {
    /// The kernel's name for it; `bw_s0_v` stands for `bw.s[0].v`.
    pub name: &'static str,
    bit: u32,
    bits: u32,
}

impl Ops {
    /// Both controls.
    pub const ALL: [Ops; 2] = [Ops::Bbr, Ops::Cubic];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Ops::Bbr => "bbr",
            Ops::Cubic => "cubic",
        }
    }

    /// The control with this name.
    pub fn by_name(name: &str) -> Option<Ops> {
        Ops::ALL.into_iter().find(|ops| ops.name() == name)
    }

    /// The fields of its private state, in the order of their bits.
    pub const fn fields(self) -> &'static [PrivateField] {
        match self {
            Ops::Bbr => &BBR,
            Ops::Cubic => &CUBIC,
        }
    }

    /// Whether the kernel calls this function of the control.
    pub const fn has(self, hook: Hook) -> bool {
        match hook {
            Hook::Main => matches!(self, Ops::Bbr),
            Hook::CongAvoid | Hook::PktsAcked => matches!(self, Ops::Cubic),
            Hook::Init | Hook::CwndEvent | Hook::SetState | Hook::Ssthresh | Hook::Undo => true,
        }
    }

    /// Whether every bit that no field owns is zero, as the kernel leaves them. If not, the state is of another layout.
    pub fn owns(self, private: &Private) -> bool {
        let owned = match self {
            Ops::Bbr => &BBR_BITS,
            Ops::Cubic => &CUBIC_BITS,
        };
        private.iter().zip(owned).all(|(word, owned)| word & !owned == 0)
    }
}

const BBR_BITS: Private = bits_of(&BBR);
const CUBIC_BITS: Private = bits_of(&CUBIC);

/// The bits that `fields` own.
const fn bits_of(fields: &[PrivateField]) -> Private {
    let (mut bits, mut index) = ([0; 13], 0);
    while index < fields.len() {
        let field = fields[index];
        bits[(field.bit / 64) as usize] |= field.mask() << (field.bit % 64);
        index += 1;
    }
    bits
}

impl PrivateField {
    /// Width in bits, at most 64.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Its value.
    #[inline]
    pub const fn get(&self, private: &Private) -> u64 {
        // No field crosses a boundary of 64 bits; a test says so.
        private[(self.bit / 64) as usize] >> (self.bit % 64) & self.mask()
    }

    /// Sets it, dropping bits that do not fit.
    #[inline]
    pub fn set(&self, private: &mut Private, value: u64) {
        let (word, shift) = (&mut private[(self.bit / 64) as usize], self.bit % 64);
        *word = *word & !(self.mask() << shift) | (value & self.mask()) << shift;
    }
}

const fn field(name: &'static str, bit: u32, bits: u32) -> PrivateField {
    PrivateField { name, bit, bits }
}

pub(super) const BBR: [PrivateField; 39] = [
    field("min_rtt_us", 0, 32),
    field("min_rtt_stamp", 32, 32),
    field("probe_rtt_done_stamp", 64, 32),
    field("bw_s0_t", 96, 32),
    field("bw_s0_v", 128, 32),
    field("bw_s1_t", 160, 32),
    field("bw_s1_v", 192, 32),
    field("bw_s2_t", 224, 32),
    field("bw_s2_v", 256, 32),
    field("rtt_cnt", 288, 32),
    field("next_rtt_delivered", 320, 32),
    field("cycle_mstamp", 384, 64),
    field("mode", 448, 3),
    field("prev_ca_state", 451, 3),
    field("packet_conservation", 454, 1),
    field("round_start", 455, 1),
    field("idle_restart", 456, 1),
    field("probe_rtt_round_done", 457, 1),
    field("lt_is_sampling", 471, 1),
    field("lt_rtt_cnt", 472, 7),
    field("lt_use_bw", 479, 1),
    field("lt_bw", 480, 32),
    field("lt_last_delivered", 512, 32),
    field("lt_last_stamp", 544, 32),
    field("lt_last_lost", 576, 32),
    field("pacing_gain", 608, 10),
    field("cwnd_gain", 618, 10),
    field("full_bw_reached", 628, 1),
    field("full_bw_cnt", 629, 2),
    field("cycle_idx", 631, 3),
    field("has_seen_rtt", 634, 1),
    field("prior_cwnd", 640, 32),
    field("full_bw", 672, 32),
    field("ack_epoch_mstamp", 704, 64),
    field("extra_acked_0", 768, 16),
    field("extra_acked_1", 784, 16),
    field("ack_epoch_acked", 800, 20),
    field("extra_acked_win_rtts", 820, 5),
    field("extra_acked_win_idx", 825, 1),
];

pub(super) const CUBIC: [PrivateField; 16] = [
    field("cnt", 0, 32),
    field("last_max_cwnd", 32, 32),
    field("last_cwnd", 64, 32),
    field("last_time", 96, 32),
    field("bic_origin_point", 128, 32),
    field("bic_K", 160, 32),
    field("delay_min", 192, 32),
    field("epoch_start", 224, 32),
    field("ack_cnt", 256, 32),
    field("tcp_cwnd", 288, 32),
    field("sample_cnt", 336, 8),
    field("found", 344, 8),
    field("round_start", 352, 32),
    field("end_seq", 384, 32),
    field("last_ack", 416, 32),
    field("curr_rtt", 448, 32),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_never_overlap_or_cross_words() {
        for ops in Ops::ALL {
            let mut taken = [0; 13];
            for (position, field) in ops.fields().iter().enumerate() {
                assert_eq!(
                    field.bit / 64,
                    (field.bit + field.bits - 1) / 64,
                    "{} crosses a word",
                    field.name
                );
                assert_eq!(field.get(&taken), 0, "{} overlaps", field.name);
                field.set(&mut taken, u64::MAX);
                assert!(ops.fields()[..position].iter().all(|other| other.name != field.name));
            }
            assert!(ops.owns(&taken));
            assert!(!ops.owns(&taken.map(|word| word << 1 | 1)));
        }
    }

    #[test]
    fn oversized_value_keeps_neighbouring_fields() {
        let mut private = [u64::MAX; 13];
        let mode = BBR.iter().find(|field| field.name == "mode").unwrap();
        mode.set(&mut private, 0b1_010);
        assert_eq!(mode.get(&private), 0b010);
        assert_eq!(private[7], u64::MAX - 0b101);
    }

    #[test]
    fn stray_bits_reveal_another_layout() {
        let mut private = [0; 13];
        assert!(Ops::Bbr.owns(&private));
        private[5] = 1 << 40;
        assert!(!Ops::Bbr.owns(&private));
        assert!(!Ops::Cubic.owns(&[0, 0, 0, 0, 0, 1 << 8, 0, 0, 0, 0, 0, 0, 0]));
    }
}
