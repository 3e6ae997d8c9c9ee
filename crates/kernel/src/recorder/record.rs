//! A record as `record.bpf.h` has it.

use std::mem;

use fullpipe_replay::{Call, Hook, KernelSample, Outcome, Socket};

/// `struct record`, member by member.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Record {
    ktime_ns: u64,
    argument: [i64; 3],
    rs_prior_mstamp: u64,
    rs_interval_us: i64,
    rs_rtt_us: i64,
    tcp_clock_cache: u64,
    tcp_mstamp: u64,
    delivered_mstamp: u64,
    first_tx_mstamp: u64,
    tcp_wstamp_ns: u64,
    sk_pacing_rate: u64,
    sk_max_pacing_rate: u64,
    after_sk_pacing_rate: u64,
    private_before: [u64; 13],
    private_after: [u64; 13],
    /// Inode number of the socket's network namespace.
    pub(crate) network: u32,
    returned: u32,
    rs_prior_delivered: u32,
    rs_delivered: i32,
    rs_snd_interval_us: u32,
    rs_rcv_interval_us: u32,
    rs_losses: i32,
    rs_acked_sacked: u32,
    rs_prior_in_flight: u32,
    rs_last_end_seq: u32,
    jiffies32: u32,
    after_jiffies32: u32,
    delivered: u32,
    lost: u32,
    app_limited: u32,
    packets_out: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    srtt_us: u32,
    min_rtt_us: u32,
    mss_cache: u32,
    snd_una: u32,
    snd_nxt: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_cwnd_clamp: u32,
    snd_cwnd_cnt: u32,
    prior_cwnd: u32,
    prior_ssthresh: u32,
    max_packets_out: u32,
    total_retrans: u32,
    sk_pacing_status: u32,
    sk_gso_max_size: u32,
    after_snd_cwnd: u32,
    after_snd_ssthresh: u32,
    after_snd_cwnd_cnt: u32,
    after_prior_cwnd: u32,
    /// The socket's own port.
    pub(crate) port: u16,
    hook: u8,
    ca_state: u8,
    is_cwnd_limited: u8,
    rs_is_app_limited: u8,
    rs_is_retrans: u8,
    rs_is_ack_delayed: u8,
}

impl Record {
    const BYTES: usize = 488;

    /// Reads a record from the ring buffer; `None` if it is not one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Record> {
        const { assert!(mem::size_of::<Record>() == Record::BYTES, "record.bpf.h says the same") };
        if bytes.len() != Record::BYTES {
            return None;
        }
        // SAFETY: as many bytes as the record has, all of whose members are numbers of any value.
        Some(unsafe { bytes.as_ptr().cast::<Record>().read_unaligned() })
    }

    /// The call; `None` if there is no such hook.
    pub(crate) fn call(&self, flow: u32) -> Option<Call> {
        Some(Call {
            flow,
            ktime_ns: self.ktime_ns,
            hook: *Hook::ALL.get(usize::from(self.hook))?,
            arguments: self.argument,
            returned: self.returned,
            rate_sample: self.rate_sample(),
            socket: self.socket(),
            after: Outcome {
                sk_pacing_rate: self.after_sk_pacing_rate,
                snd_cwnd: self.after_snd_cwnd,
                snd_ssthresh: self.after_snd_ssthresh,
                snd_cwnd_cnt: self.after_snd_cwnd_cnt,
                prior_cwnd: self.after_prior_cwnd,
            },
            private_before: self.private_before,
            private_after: self.private_after,
        })
    }

    /// Jiffies as the call saw them. Where they ticked between our reading and the end of the call, they are the later ones
    /// if the call wrote those down.
    fn jiffies_in_call(&self) -> u32 {
        let halves = |words: [u64; 13]| words.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]);
        let mut changes = halves(self.private_before).zip(halves(self.private_after));
        let later = self.after_jiffies32;
        if changes.any(|(before, after)| after == later && before != later) { later } else { self.jiffies32 }
    }

    fn rate_sample(&self) -> KernelSample {
        KernelSample {
            prior_mstamp: self.rs_prior_mstamp,
            prior_delivered: self.rs_prior_delivered,
            delivered: self.rs_delivered,
            interval_us: self.rs_interval_us,
            snd_interval_us: self.rs_snd_interval_us,
            rcv_interval_us: self.rs_rcv_interval_us,
            rtt_us: self.rs_rtt_us,
            losses: self.rs_losses,
            acked_sacked: self.rs_acked_sacked,
            prior_in_flight: self.rs_prior_in_flight,
            last_end_seq: self.rs_last_end_seq,
            is_app_limited: self.rs_is_app_limited != 0,
            is_retrans: self.rs_is_retrans != 0,
            is_ack_delayed: self.rs_is_ack_delayed != 0,
        }
    }

    fn socket(&self) -> Socket {
        Socket {
            ca_state: self.ca_state,
            jiffies32: self.jiffies_in_call(),
            tcp_clock_cache: self.tcp_clock_cache,
            tcp_mstamp: self.tcp_mstamp,
            delivered_mstamp: self.delivered_mstamp,
            first_tx_mstamp: self.first_tx_mstamp,
            tcp_wstamp_ns: self.tcp_wstamp_ns,
            delivered: self.delivered,
            lost: self.lost,
            app_limited: self.app_limited,
            packets_out: self.packets_out,
            sacked_out: self.sacked_out,
            lost_out: self.lost_out,
            retrans_out: self.retrans_out,
            srtt_us: self.srtt_us,
            min_rtt_us: self.min_rtt_us,
            mss_cache: self.mss_cache,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            snd_cwnd: self.snd_cwnd,
            snd_ssthresh: self.snd_ssthresh,
            snd_cwnd_clamp: self.snd_cwnd_clamp,
            snd_cwnd_cnt: self.snd_cwnd_cnt,
            prior_cwnd: self.prior_cwnd,
            prior_ssthresh: self.prior_ssthresh,
            max_packets_out: self.max_packets_out,
            total_retrans: self.total_retrans,
            is_cwnd_limited: self.is_cwnd_limited != 0,
            sk_pacing_rate: self.sk_pacing_rate,
            sk_max_pacing_rate: self.sk_max_pacing_rate,
            sk_pacing_status: self.sk_pacing_status,
            sk_gso_max_size: self.sk_gso_max_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members of `struct record` in the C source: type, name and length, in order.
    fn members() -> Vec<(String, String, usize)> {
        let source = include_str!("record.bpf.h");
        let body = source.split("struct record {\n").nth(1).unwrap().split("\n};").next().unwrap();
        let member = |line: &str| {
            let (kind, name) = line.trim().trim_end_matches(';').split_once(' ').unwrap();
            let (name, length) = match name.split_once('[') {
                Some((name, "PRIVATE_WORDS]")) => (name, 13),
                Some((name, length)) => (name, length.trim_end_matches(']').parse().unwrap()),
                None => (name, 1),
            };
            (kind.to_owned(), name.to_owned(), length)
        };
        body.lines().map(member).collect()
    }

    #[test]
    fn record_matches_c_members_without_gaps() {
        let own = include_str!("record.rs");
        let body = own.split("pub(crate) struct Record {\n").nth(1).unwrap().split("\n}").next().unwrap();
        let fields = body.lines().map(str::trim).filter(|line| !line.starts_with("///"));
        let fields: Vec<_> = fields
            .map(|line| {
                let (name, kind) = line.trim_start_matches("pub(crate) ").split_once(": ").unwrap();
                (name.to_owned(), kind.trim_end_matches(',').to_owned())
            })
            .collect();
        let mut at = 0;
        let mut expected = Vec::new();
        for (kind, name, length) in members() {
            let (sign, bits) = kind.split_at(1);
            let bytes = bits.parse::<usize>().unwrap() / 8;
            assert_eq!(at % bytes, 0, "{name} is not aligned");
            at += bytes * length;
            let number = format!("{}{bits}", if sign == "s" { "i" } else { "u" });
            expected.push((name, if length == 1 { number } else { format!("[{number}; {length}]") }));
        }
        assert_eq!(fields, expected);
        assert_eq!(at, Record::BYTES);
    }

    #[test]
    fn tick_counts_if_call_observed_it() {
        let mut record = Record::read(&[0; 488]).unwrap();
        (record.jiffies32, record.after_jiffies32) = (1000, 1001);
        assert_eq!(record.call(0).unwrap().socket.jiffies32, 1000);
        record.private_before[1] = 990 << 32;
        record.private_after[1] = 1000 << 32;
        assert_eq!(record.call(0).unwrap().socket.jiffies32, 1000);
        record.private_after[1] = 1001 << 32;
        assert_eq!(record.call(0).unwrap().socket.jiffies32, 1001);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert!(Record::read(&[0; 487]).is_none());
        let mut bytes = [0; 488];
        assert_eq!(Record::read(&bytes).unwrap().call(3).unwrap(), Call { flow: 3, ..Call::default() });
        bytes[482] = 8;
        assert!(Record::read(&bytes).unwrap().call(3).is_none());
    }
}
