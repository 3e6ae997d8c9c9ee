//! For tests: a simulated kernel that runs our own controllers, and records its calls.

use super::bbr::BbrMachine;
use super::call::{Call, Hook, Outcome, Socket};
use super::cubic::CubicMachine;
use super::layout::{Ops, Private};
use super::machine::Machine;

pub(super) const HZ: u32 = 250;

const SOCKET: Socket = Socket {
    ca_state: 0,
    jiffies32: 1_000_000,
    tcp_clock_cache: 4_000_000_000_123,
    tcp_mstamp: 4_000_000_000,
    delivered_mstamp: 4_000_000_000,
    first_tx_mstamp: 3_999_950_000,
    tcp_wstamp_ns: 4_000_000_000_000,
    delivered: 1,
    lost: 0,
    app_limited: 0,
    packets_out: 10,
    sacked_out: 0,
    lost_out: 0,
    retrans_out: 0,
    srtt_us: 400_000,
    min_rtt_us: 50_000,
    mss_cache: 1448,
    snd_una: 1_000,
    snd_nxt: 15_480,
    snd_cwnd: 10,
    snd_ssthresh: 0x7fff_ffff,
    snd_cwnd_clamp: u32::MAX,
    snd_cwnd_cnt: 0,
    prior_cwnd: 0,
    prior_ssthresh: 0,
    max_packets_out: 10,
    total_retrans: 0,
    is_cwnd_limited: true,
    sk_pacing_rate: 0,
    sk_max_pacing_rate: u64::MAX,
    sk_pacing_status: 1,
    sk_gso_max_size: 65_343,
};

/// A call that a kernel can have made, of an established flow whose private state is unknown.
pub(super) fn call(hook: Hook) -> Call {
    let after = Outcome { snd_cwnd: 10, ..Outcome::default() };
    Call { hook, socket: SOCKET, after, ..Call::default() }
}

/// The value of a private field.
pub(super) fn get(ops: Ops, private: &Private, name: &str) -> u64 {
    ops.fields().iter().find(|field| field.name == name).unwrap().get(private)
}

/// Sets a private field.
pub(super) fn set(ops: Ops, private: &mut Private, name: &str, value: u64) {
    ops.fields().iter().find(|field| field.name == name).unwrap().set(private, value);
}

enum Either {
    Bbr(BbrMachine),
    Cubic(CubicMachine),
}

/// A kernel with one flow. It keeps the socket between calls as the core does; the test decides what happens to the
/// connection.
pub(super) struct FakeKernel {
    pub(super) ops: Ops,
    pub(super) socket: Socket,
    private: Private,
    machine: Either,
    established: bool,
}

impl FakeKernel {
    /// Before its first call.
    pub(super) fn new(ops: Ops) -> FakeKernel {
        let machine = match ops {
            Ops::Bbr => Either::Bbr(BbrMachine::new(HZ)),
            Ops::Cubic => Either::Cubic(CubicMachine::new(HZ)),
        };
        FakeKernel { ops, socket: SOCKET, private: [0; 13], machine, established: false }
    }

    /// Time passes.
    pub(super) fn pass_us(&mut self, us: u64) {
        self.socket.tcp_clock_cache += us * 1_000;
        self.socket.tcp_mstamp = self.socket.tcp_clock_cache / 1_000;
        self.socket.jiffies32 = (self.socket.tcp_mstamp / (1_000_000 / HZ as u64)) as u32;
        self.socket.tcp_wstamp_ns = self.socket.tcp_wstamp_ns.max(self.socket.tcp_clock_cache);
    }

    /// Calls `hook`; `prepare` may still change what it gets.
    pub(super) fn call(&mut self, hook: Hook, prepare: impl FnOnce(&mut Call)) -> Call {
        let mut call = Call {
            hook,
            socket: self.socket,
            ktime_ns: self.socket.tcp_clock_cache,
            private_before: self.private,
            // A draw of three, and no idleness, unless the test says otherwise.
            private_after: self.private,
            ..Call::default()
        };
        if self.ops == Ops::Bbr {
            set(self.ops, &mut call.private_after, "cycle_idx", 5);
        }
        prepare(&mut call);
        let (ops, established) = (self.ops, core::mem::replace(&mut self.established, true));
        match &mut self.machine {
            Either::Bbr(machine) => decide(ops, machine, established, &mut call),
            Either::Cubic(machine) => decide(ops, machine, established, &mut call),
        }
        self.private = call.private_after;
        self.socket = call.socket;
        self.socket.sk_pacing_rate = call.after.sk_pacing_rate;
        self.socket.snd_cwnd = call.after.snd_cwnd;
        self.socket.snd_ssthresh = call.after.snd_ssthresh;
        self.socket.snd_cwnd_cnt = call.after.snd_cwnd_cnt;
        if hook == Hook::SetState {
            self.socket.ca_state = call.arguments[0] as u8;
        }
        call
    }

    pub(super) fn init(&mut self) -> Call {
        self.call(Hook::Init, |_| {})
    }

    /// An ACK of `segments` after an RTT of 50 ms, sampled over it.
    pub(super) fn ack(&mut self, segments: u32, prepare: impl FnOnce(&mut Call)) -> Call {
        let prior_delivered = self.socket.delivered;
        self.socket.delivered += segments;
        self.socket.delivered_mstamp = self.socket.tcp_mstamp;
        if self.socket.delivered > self.socket.app_limited {
            self.socket.app_limited = 0;
        }
        self.socket.snd_una = self.socket.snd_una.wrapping_add(segments * 1448);
        self.socket.snd_nxt = self.socket.snd_nxt.wrapping_add(segments * 1448);
        self.call(Hook::Main, |call| {
            let sample = &mut call.rate_sample;
            sample.prior_mstamp = call.socket.tcp_mstamp - 50_000;
            sample.prior_delivered = prior_delivered;
            sample.delivered = segments as i32;
            sample.interval_us = 50_000;
            sample.snd_interval_us = 50_000;
            sample.rcv_interval_us = 50_000;
            sample.rtt_us = 50_000;
            sample.acked_sacked = segments;
            sample.prior_in_flight = 10;
            prepare(call);
        })
    }

    /// `set_state`.
    pub(super) fn change(&mut self, to: i64) -> Call {
        self.call(Hook::SetState, |call| call.arguments[0] = to)
    }

    /// What `tcp_enter_recovery` calls.
    pub(super) fn enter_recovery(&mut self) -> [Call; 2] {
        self.socket.prior_ssthresh = current_ssthresh(&self.socket);
        [self.call(Hook::Ssthresh, |_| {}), self.change(3)]
    }

    /// What `tcp_enter_loss` calls.
    pub(super) fn enter_loss(&mut self) -> [Call; 3] {
        self.socket.prior_ssthresh = current_ssthresh(&self.socket);
        let ssthresh = self.call(Hook::Ssthresh, |_| {});
        let event = self.call(Hook::CwndEvent, |call| call.arguments[0] = 3);
        self.socket.lost_out = self.socket.packets_out;
        self.socket.snd_cwnd = 1;
        [ssthresh, event, self.change(4)]
    }
}

fn current_ssthresh(socket: &Socket) -> u32 {
    if matches!(socket.ca_state, 2 | 3) {
        return socket.snd_ssthresh;
    }
    socket.snd_ssthresh.max((socket.snd_cwnd >> 1) + (socket.snd_cwnd >> 2))
}

fn decide<M: Machine>(ops: Ops, machine: &mut M, established: bool, call: &mut Call) {
    if !established {
        machine.clear(call);
    }
    if call.hook == Hook::Init {
        machine.init(call);
    } else if !established {
        machine.follow_socket(call);
    }
    let mut coverage = match ops {
        Ops::Bbr => BbrMachine::coverage(),
        Ops::Cubic => CubicMachine::coverage(),
    };
    machine.make(call, &mut coverage);
    let socket = &call.socket;
    call.after = Outcome {
        sk_pacing_rate: socket.sk_pacing_rate,
        snd_cwnd: socket.snd_cwnd,
        snd_ssthresh: socket.snd_ssthresh,
        snd_cwnd_cnt: socket.snd_cwnd_cnt,
        prior_cwnd: socket.prior_cwnd,
    };
    call.returned = machine.returned(call);
    call.private_after = call.private_before;
    if !machine.is_settled() {
        return;
    }
    for (field, value) in ops.fields().iter().zip(machine.fields()) {
        field.set(&mut call.private_after, value);
    }
    for (name, ours, _) in machine.outcome(call) {
        match name {
            "snd_cwnd" => call.after.snd_cwnd = ours as u32,
            "snd_ssthresh" => call.after.snd_ssthresh = ours as u32,
            "snd_cwnd_cnt" => call.after.snd_cwnd_cnt = ours as u32,
            "sk_pacing_rate" => call.after.sk_pacing_rate = ours,
            _ => {}
        }
    }
}
