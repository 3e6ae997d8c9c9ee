// SPDX-License-Identifier: MIT OR Apache-2.0
//
// When a connection stops to trust the controller, and what it does then: the kernel's Reno, inside the same hooks. It
// touches that connection alone, for the rest of its life, and is counted by its cause.

// In the first word of the socket's private state, which the kernel clears when the socket takes another congestion control.
#define RUNS 0x46505255
#define FELL 0x4650464c

// A window at its floor for so long, with more to send, without loss and without an RTT that it doubled, is a controller
// that is stuck: BBR probes every two to three seconds, and ProbeRTT lasts 0.2 s.
#define FLOOR_SEGMENTS 4
#ifndef STUCK_US
#define STUCK_US 10000000
#define STUCK_ROUNDS 64
#endif

#ifdef FAULTS
// A test object: which fault to inject, and whether the guards are off. Written by the test.
enum fault { NO_FAULT, NO_STORAGE, STUCK, CLOCK_BACK, MAGIC_LOST, NO_RATE, PANIC };
struct {
	NUMBER(type, MAP_TYPE_ARRAY);
	NUMBER(max_entries, 2);
	TYPE(key, u32);
	TYPE(value, u64);
} faults SEC(".maps");
INLINE u64 fault_word(u32 which)
{
	u64 *word = map_lookup_elem(&faults, &which);

	return word ? *word : 0;
}
#define FAULT(which) (fault_word(0) == (which))
#define GUARDED (!fault_word(1))
#else
#define FAULT(which) 0
#define GUARDED 1
#endif

INLINE u64 mark_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv[0];
}

INLINE u32 in_flight(struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

// From here on, Reno. It searches anew, from the initial window.
NOINLINE int fall(struct sock *sk, u32 cause)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	count(cause, 1);
	if (!GUARDED)
		return 0;
	((struct inet_connection_sock *)sk)->icsk_ca_priv[0] = FELL;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->snd_cwnd = TCP_INIT_CWND;
	return 0;
}

// As the kernel paces those that ask for it (`tcp_update_pacing_rate`): twice the window an RTT in slow start, else 1.2 times.
INLINE void pace_reno(struct sock *sk, struct tcp_sock *tp)
{
	u64 window = tp->snd_cwnd, rate = (u64)tp->mss_cache * (1000000 << 3);
	u32 srtt = tp->srtt_us;

	if (window < tp->packets_out)
		window = tp->packets_out;
	rate *= window;
	rate = tp->snd_cwnd < tp->snd_ssthresh / 2 ? rate * 2 : rate + rate / 5;
	if (srtt)
		rate /= srtt;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

// What the kernel does for congestion controls without `cong_control`, except that the window is the threshold at once in
// a recovery (RFC 6675): proportional rate reduction is no function that a program may call.
NOINLINE int reno(struct sock *sk, u32 ack, int flag, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);

	if (state == TCP_CA_CWR || state == TCP_CA_RECOVERY) {
		if (tp->snd_cwnd > tp->snd_ssthresh)
			tp->snd_cwnd = tp->snd_ssthresh;
	} else if (flag & FLAG_DATA_ACKED) {
		tcp_reno_cong_avoid(sk, ack, acked);
	}
	pace_reno(sk, tp);
	return 0;
}

// The connection's state, unless it fell or has none yet.
INLINE struct flow *flow_of(struct sock *sk)
{
	struct flow *flow;

	if (mark_of(sk) != RUNS)
		return 0;
	flow = sk_storage_get(&flows, sk, 0, 0);
	if (!flow) {
		fall(sk, FELL_STORAGE);
		return 0;
	}
#ifdef FAULTS
	if (FAULT(MAGIC_LOST))
		flow->magic = 0;
#endif
	if (flow->magic != INTACT) {
		fall(sk, FELL_MAGIC);
		return GUARDED ? 0 : flow;
	}
	return flow;
}

// Whether the window has been at its floor for too long.
INLINE int is_stuck(struct flow *flow, struct tcp_sock *tp)
{
	u64 now = flow->c.event.now_us;

	if (flow->c.outcome.cwnd > FLOOR_SEGMENTS || tp->lost != flow->floor_lost || tp->write_seq == tp->snd_nxt ||
	    tp->srtt_us >> 3 > 2 * (u64)flow->c.event.min_rtt_us) {
		flow->floor_us = now;
		flow->floor_rounds = 0;
		flow->floor_lost = tp->lost;
		return 0;
	}
	if (flow->c.event.prior_delivered >= flow->floor_delivered) {
		flow->floor_delivered = flow->c.event.delivered;
		flow->floor_rounds++;
	}
	return flow->floor_rounds >= STUCK_ROUNDS && now - flow->floor_us > STUCK_US;
}

// After an ACK: the cause for which the connection must fall, or 0.
INLINE u32 distrusted(struct flow *flow, struct tcp_sock *tp)
{
	struct event *event = &flow->c.event;
	struct outcome *outcome = &flow->c.outcome;
	u32 cause = 0;

#ifdef FAULTS
	if (FAULT(STUCK))
		outcome->cwnd = 2;
	if (FAULT(CLOCK_BACK))
		flow->last_delivered_us += 3600000000;
	if (FAULT(NO_RATE))
		outcome->rate = 0;
#endif
	if (event->now_us < flow->last_us || event->delivered_us < flow->last_delivered_us)
		cause = FELL_CLOCK;
	else if (!outcome->cwnd || !outcome->rate)
		cause = FELL_OUTCOME;
	else if (is_stuck(flow, tp))
		cause = FELL_STUCK;
	flow->last_us = event->now_us;
	flow->last_delivered_us = event->delivered_us;
	return cause;
}
