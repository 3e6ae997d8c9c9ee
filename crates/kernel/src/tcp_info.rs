//! What a kernel socket reports about itself: `TCP_INFO` and `TCP_CC_INFO`.
//!
//! Layout: `struct tcp_info` and `union tcp_cc_info` in Linux `include/uapi/linux/tcp.h` and `inet_diag.h`. The kernel
//! only ever appends to `tcp_info`, so fields are read by offset and a field behind the end of a shorter, older
//! structure reads as zero.

use std::io;
use std::os::fd::OwnedFd;

use fullpipe_cc::{CaState, Phase};

use crate::sys;

/// The fields of `struct tcp_info` that are recorded. Rates are in bytes a second, times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// `TCP_ESTABLISHED` is 1, `TCP_SYN_SENT` 2, and so on.
    pub state: u8,
    /// Recovery state.
    pub ca_state: CaState,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, SACKed.
    pub sacked: u32,
    /// Of these, marked lost.
    pub lost: u32,
    /// Retransmissions in the network.
    pub retrans: u32,
    /// Smoothed RTT.
    pub rtt_us: u32,
    /// Slow-start threshold; 0x7fffffff while infinite.
    pub snd_ssthresh: u32,
    /// Congestion window.
    pub snd_cwnd: u32,
    /// Segment size.
    pub snd_mss: u32,
    /// Retransmissions so far.
    pub total_retrans: u32,
    /// Pacing rate; meaningful only if the socket is paced.
    pub pacing_rate: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Minimum RTT; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Data segments sent, retransmissions included.
    pub data_segs_out: u32,
    /// Last delivery-rate sample.
    pub delivery_rate: u64,
    /// Segments that were delivered by ACKs with ECE; 0 before Linux 4.18.
    pub delivered_ce: u32,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub total_rto: u16,
}

/// Larger than any known `struct tcp_info`.
const TCP_INFO_BYTES: usize = 512;

impl TcpInfo {
    /// Queries the kernel.
    ///
    /// # Errors
    /// When it is not a TCP socket.
    pub fn of(socket: &OwnedFd) -> io::Result<TcpInfo> {
        let mut buffer = [0; TCP_INFO_BYTES];
        let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer)?;
        Ok(TcpInfo::parse(&buffer[..length]))
    }

    /// Reads the kernel's bytes.
    pub fn parse(bytes: &[u8]) -> TcpInfo {
        let u8_at = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let u16_at = |at| array(bytes, at).map_or(0, u16::from_ne_bytes);
        let u32_at = |at| array(bytes, at).map_or(0, u32::from_ne_bytes);
        let u64_at = |at| array(bytes, at).map_or(0, u64::from_ne_bytes);
        TcpInfo {
            state: u8_at(0),
            ca_state: CaState::from_code(u8_at(1).into()).unwrap_or(CaState::Loss),
            snd_mss: u32_at(16),
            unacked: u32_at(24),
            sacked: u32_at(28),
            lost: u32_at(32),
            retrans: u32_at(36),
            rtt_us: u32_at(68),
            snd_ssthresh: u32_at(76),
            snd_cwnd: u32_at(80),
            total_retrans: u32_at(100),
            pacing_rate: u64_at(104),
            bytes_acked: u64_at(120),
            min_rtt_us: u32_at(148),
            data_segs_out: u32_at(156),
            delivery_rate: u64_at(160),
            delivered_ce: u32_at(196),
            total_rto: u16_at(240),
        }
    }

    /// Segments in the network as TCP counts them (Linux: `tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// Whether the handshake is done.
    pub fn is_connected(&self) -> bool {
        const TCP_SYN_SENT: u8 = 2;
        self.state != 0 && self.state != TCP_SYN_SENT
    }

    /// Whether the connection has ended (Linux: `TCP_CLOSE`, which sockets have whose connection waits in `TIME_WAIT`, too).
    pub fn is_closed(&self) -> bool {
        const TCP_CLOSE: u8 = 7;
        self.state == TCP_CLOSE
    }

    /// What a loss-based controller is doing.
    pub fn loss_based_phase(&self) -> Phase {
        fullpipe_cc::phase::loss_based(self.ca_state, self.snd_cwnd, self.snd_ssthresh)
    }
}

/// `struct tcp_bbr_info`: the estimates of BBR. Version 3 appends some, and its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrInfo {
    /// Bandwidth estimate, bytes a second.
    pub bandwidth: u64,
    /// Minimum RTT.
    pub min_rtt_us: u32,
    /// Gains times 256.
    pub pacing_gain: u32,
    /// See `pacing_gain`.
    pub cwnd_gain: u32,
    /// What version 3 says that it is doing; `None` of version 1, and if it says nothing known.
    pub reported_phase: Option<Phase>,
}

/// The phases of `enum tcp_bbr_phase`, by their code; zero is none.
const TOLD_PHASES: [Phase; 7] = [
    Phase::Startup,
    Phase::Drain,
    Phase::ProbeRtt,
    Phase::ProbeBwUp,
    Phase::ProbeBwDown,
    Phase::ProbeBwCruise,
    Phase::ProbeBwRefill,
];

impl BbrInfo {
    /// Queries the kernel; `None` if the socket's controller reports nothing of this shape.
    ///
    /// # Errors
    /// When it is not a TCP socket.
    pub fn of(socket: &OwnedFd) -> io::Result<Option<BbrInfo>> {
        let mut buffer = [0; 52];
        let length = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut buffer)?;
        Ok(BbrInfo::parse(&buffer[..length]))
    }

    /// Reads the kernel's bytes.
    pub fn parse(bytes: &[u8]) -> Option<BbrInfo> {
        let word = |at| array(bytes, at).map(u32::from_ne_bytes);
        Some(BbrInfo {
            bandwidth: u64::from(word(0)?) | u64::from(word(4)?) << 32,
            min_rtt_us: word(8)?,
            pacing_gain: word(12)?,
            cwnd_gain: word(16)?,
            reported_phase: bytes
                .get(37)
                .and_then(|code| TOLD_PHASES.get((*code as usize).wrapping_sub(1)))
                .copied(),
        })
    }

    /// The phase: as version 3 tells it, or of version 1 derived from the gains, which the first ACK sets. A policer's rate in force
    /// reads as cruising.
    pub fn phase(&self) -> Phase {
        if let Some(reported) = self.reported_phase {
            return reported;
        }
        if self.bandwidth == 0 {
            return Phase::Startup;
        }
        fullpipe_cc::phase::of_gains(self.pacing_gain, self.cwnd_gain)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct tcp_info` of Linux 6.18 with every field set to something of its own.
    fn example() -> Vec<u8> {
        let mut bytes = vec![0; 248];
        (bytes[0], bytes[1]) = (1, 3);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (at, value) in
            [(16, 1448u32), (24, 100), (28, 30), (32, 10), (36, 5), (68, 40_123), (76, 0x7fff_ffff), (80, 77)]
        {
            put(at, &value.to_ne_bytes());
        }
        for (at, value) in [(100, 9u32), (148, 40_001), (156, 5_000), (196, 321)] {
            put(at, &value.to_ne_bytes());
        }
        for (at, value) in [(104, 12_500_000u64), (120, 1_000_000), (160, 12_000_000)] {
            put(at, &value.to_ne_bytes());
        }
        put(240, &2u16.to_ne_bytes());
        bytes
    }

    #[test]
    fn fields_match_kernel_layout() {
        let info = TcpInfo::parse(&example());
        assert_eq!((info.state, info.ca_state, info.snd_mss), (1, CaState::Recovery, 1448));
        assert_eq!(info.in_flight(), 100 + 5 - 30 - 10);
        assert_eq!((info.rtt_us, info.min_rtt_us, info.snd_cwnd), (40_123, 40_001, 77));
        assert_eq!((info.total_retrans, info.data_segs_out, info.total_rto), (9, 5_000, 2));
        assert_eq!(info.delivered_ce, 321);
        assert_eq!(
            (info.pacing_rate, info.bytes_acked, info.delivery_rate),
            (12_500_000, 1_000_000, 12_000_000)
        );
        assert_eq!(info.loss_based_phase(), Phase::Recovery);
    }

    #[test]
    fn shorter_structure_reads_rest_as_zero() {
        for length in 0..248 {
            let info = TcpInfo::parse(&example()[..length]);
            assert_eq!(info.total_rto == 2, length >= 242);
            assert_eq!(info.snd_cwnd == 77, length >= 84);
        }
        assert!(!TcpInfo::parse(&[]).is_connected());
    }

    #[test]
    fn gains_tell_the_phase() {
        let phase = |pacing_gain: u32, cwnd_gain: u32| {
            let words = [1, 2, 40_000, pacing_gain, cwnd_gain];
            let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
            let info = BbrInfo::parse(&bytes).unwrap();
            assert_eq!(info.bandwidth, 1 + (2 << 32));
            info.phase()
        };
        assert_eq!(phase(739, 739), Phase::Startup);
        assert_eq!(phase(88, 739), Phase::Drain);
        assert_eq!(phase(320, 512), Phase::ProbeBwUp);
        assert_eq!(phase(192, 512), Phase::ProbeBwDown);
        assert_eq!(phase(256, 512), Phase::ProbeBwCruise);
        assert_eq!(phase(256, 256), Phase::ProbeRtt);
        assert_eq!(BbrInfo::parse(&[0; 16]), None);
        // Version 3, whose gain of one is that of two phases.
        let reported = |code: u8| {
            let mut bytes = [1; 52];
            bytes[37] = code;
            BbrInfo::parse(&bytes).unwrap().reported_phase
        };
        assert_eq!([reported(0), reported(7), reported(8)], [None, Some(Phase::ProbeBwRefill), None]);
    }
}
