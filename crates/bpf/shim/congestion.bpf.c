// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A controller of ours as a congestion control of Linux. Each hook tells the controller what the kernel tells it, and sets
// the window and the rate that the controller asks for. No decision is made here, except the one not to trust it any more.
//
// Order of the hooks, and which calls they become: crates/cc/src/controller.rs.

#include "kernel.h"
#include "border.h"
#include "safety.h"
#include "sends.h"

// The functions of the kernel that we call may only be called by programs under the GPL or both licences.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A function receives its arguments as an array of 64-bit words.
#define OPERATION SEC("struct_ops")
#define SOCKET ((struct sock *)arguments[0])

INLINE void describe(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct event *event = &flow->c.event;

	event->now_us = tp->tcp_mstamp;
	event->delivered_us = tp->delivered_mstamp;
	event->departure_ns = tp->tcp_wstamp_ns;
	event->delivered = wide(&flow->delivered, tp->delivered);
	event->lost = wide(&flow->lost, tp->lost);
	event->jiffies = jiffies64();
	event->packets_out = tp->packets_out;
	event->in_flight = in_flight(tp);
	event->srtt_us = tp->srtt_us >> 3;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->random = prandom_u32();
	event->ca_state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);
	event->app_limited = tp->app_limited != 0;
	event->snd_una = wide(&flow->una, tp->snd_una);
	event->snd_nxt = wide(&flow->nxt, tp->snd_nxt);
}

INLINE void apply(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 cwnd = flow->c.outcome.cwnd;

	if (cwnd)
		tp->snd_cwnd = cwnd;
	sk->sk_pacing_rate = flow->c.outcome.rate;
	if (flow->c.outcome.mark_app_limited) {
		u32 until = tp->delivered + in_flight(tp);

		tp->app_limited = until ? until : 1;
	}
}

// The same losses, told before anything else of a hook. Returns 1 if the controller panicked.
NOINLINE int tell_losses(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct loss_walk walk = { .sk = sk, .flow = flow, .wanted = tp->lost - flow->lost_seen };

	if (!walk.wanted)
		return 0;
	flow->lost_seen = tp->lost;
	describe(sk, flow);
	flow->node = (u64)tp->retransmit_skb_hint;
	if (!tp->retransmit_skb_hint) {
		flow->node = (u64)sk->tcp_rtx_queue.rb_node;
		go_to_first(flow);
	}
	loop(4096, note_loss, &walk, 0);
	if (walk.found < walk.wanted)
		count(LOSSES_UNKNOWN, walk.wanted - walk.found);
	return walk.panicked;
}

INLINE int tell_state(struct sock *sk, struct flow *flow, u32 to)
{
	struct event *event = &flow->c.event;
	int panicked;

	describe(sk, flow);
	event->ca_state = flow->ca_state;
	event->to = to;
	event->reduce = flow->reducing;
	event->proven = to == TCP_CA_CWR;
	event->timer = to == TCP_CA_LOSS;
	flow->reducing = 0;
	flow->ca_state = to;
	panicked = call_state(&flow->c);
	record(sk, flow, STATE);
	return panicked;
}

INLINE int tell_mss(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	int panicked;

	if (flow->mss == tp->mss_cache)
		return 0;
	flow->mss = flow->c.event.mss = tp->mss_cache;
	panicked = call_mss(&flow->c);
	record(sk, flow, MSS);
	return panicked;
}

// What happened since the last hook: another segment size, retransmissions, losses.
INLINE int catch_up(struct sock *sk, struct flow *flow)
{
	int panicked = tell_mss(sk, flow);

	note_resends(flow, (struct tcp_sock *)sk);
	return panicked | tell_losses(sk, flow);
}

NOINLINE int begin(struct sock *sk, struct flow *flow)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct event *event = &flow->c.event;
	int panicked;

	flow->id = ktime_get_ns() << 16 | sk->__sk_common.skc_num;
	flow->delivered = tp->delivered;
	flow->lost = flow->lost_seen = flow->floor_lost = tp->lost;
	flow->una = tp->snd_una;
	flow->nxt = flow->lost_high = tp->snd_nxt;
	flow->lost_end = 0;
	flow->mss = tp->mss_cache;
	flow->ca_state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);
	flow->reducing = 0;
	flow->ce_seen = tp->delivered_ce;
	flow->last_us = flow->last_delivered_us = 0;
	flow->floor_us = tp->tcp_mstamp;
	flow->floor_delivered = 0;
	flow->floor_rounds = 0;
	flow->sends = flow->resends = 0;
	flow->resent_seen = tp->total_retrans;
	describe(sk, flow);
	event->flags = options.paced ? PACED : 0;
	event->mss = tp->mss_cache;
	event->cwnd_clamp = tp->snd_cwnd_clamp;
	event->hz = options.hz;
	event->initial_cwnd = tp->snd_cwnd;
	event->gso_max = sk->sk_gso_max_size;
	event->ssthresh = tp->snd_ssthresh;
	event->max_rate = sk->sk_max_pacing_rate;
	flow->magic = INTACT;
	panicked = call_init(&flow->c);
	record(sk, flow, INIT);
	if (options.paced && !sk->sk_pacing_status)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	tp->snd_ssthresh = flow->c.outcome.ssthresh;
	sk->sk_pacing_rate = flow->c.outcome.rate;
	look(flow, tp);
	count(CONNECTIONS, 1);
	return panicked;
}

INLINE void take(struct sock *sk)
{
	struct flow *flow = FAULT(NO_STORAGE) ? 0 : sk_storage_get(&flows, sk, 0, CREATE);

	((struct inet_connection_sock *)sk)->icsk_ca_priv[0] = RUNS;
	if (!flow)
		fall(sk, FELL_STORAGE);
	else if (begin(sk, flow))
		fall(sk, FELL_PANIC);
}

OPERATION void on_init(u64 *arguments)
{
	take(SOCKET);
}

OPERATION void on_ack(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	const struct rate_sample *rs = (const struct rate_sample *)arguments[3];
	u32 ack = arguments[1], state, cause;
	int flag = arguments[2], panicked;
	struct flow *flow;
	struct event *event;
	u64 began = options.timing ? ktime_get_ns() : 0;

	if (!mark_of(sk)) {
		// The ACK of a SYN comes before `init`. A later one shows that the kernel skipped `init`.
		if (sk->__sk_common.skc_state == TCP_SYN_SENT)
			return;
		take(sk);
	}
	flow = flow_of(sk);
	if (!flow) {
		if (GUARDED)
			reno(sk, ack, flag, rs->acked_sacked);
		return;
	}
	panicked = catch_up(sk, flow);
	state = BITS((struct inet_connection_sock *)sk, icsk_ca_state);
	if (state != flow->ca_state) {
		count(STATES_LATE, 1);
		panicked |= tell_state(sk, flow, state);
	}
	event = &flow->c.event;
	event->newly_acked = (tp->snd_una - (u32)flow->una + flow->mss - 1) / (flow->mss ? flow->mss : 1);
	describe(sk, flow);
	event->prior_delivered_us = rs->prior_mstamp;
	event->prior_delivered = earlier(flow->delivered, rs->prior_delivered);
	event->interval_us = rs->interval_us;
	event->rtt_us = rs->rtt_us;
	event->sampled = rs->delivered;
	event->prior_in_flight = rs->prior_in_flight;
	event->newly_delivered = rs->acked_sacked;
	event->newly_lost = rs->losses;
	event->max_packets_out = tp->max_packets_out;
	event->flags = (rs->is_app_limited ? APP_LIMITED : 0) | (rs->is_retrans ? RETRANSMITTED : 0) |
		       (rs->is_ack_delayed ? MAYBE_DELAYED : 0) | (BITS(tp, is_cwnd_limited) ? CWND_LIMITED : 0) |
		       (flag & FLAG_SND_UNA_ADVANCED ? UNA_ADVANCED : 0) | (flag & FLAG_DATA_ACKED ? MAY_RAISE : 0);
	event->tx_in_flight = 0;
	event->lost_since_sent = 0;
	event->marked_since_sent = rs->delivered_ce > 0 ? rs->delivered_ce : 0;
	if (rs->delivered >= 0) {
		u32 end = rs->last_end_seq, known;
		struct seen seen = {};

		known = rs->is_retrans ? find_resend(flow, end - 1, rs->prior_delivered, 0, &seen) :
					 find_send(flow, end - 1, &seen);
		event->tx_in_flight = rs->prior_in_flight;
		if (known) {
			// Sends that share a note: what was delivered between them had left the flight.
			u32 between = rs->prior_delivered - seen.delivered, flight = flight_with(flow, &seen, end);

			if (between < flight) {
				event->tx_in_flight = flight - between;
				event->lost_since_sent = tp->lost - seen.lost;
			}
		} else {
			count(SENDS_UNKNOWN, 1);
		}
	}
	panicked |= call_ack(&flow->c);
	record(sk, flow, ACK);
	cause = distrusted(flow, tp);
	if (panicked || FAULT(PANIC))
		cause = FELL_PANIC;
	if (cause) {
		fall(sk, cause);
		if (GUARDED)
			return;
	}
	apply(sk, flow);
	look(flow, tp);
	if (options.timing)
		took(ktime_get_ns() - began);
}

OPERATION u32 on_undo(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct flow *flow = flow_of(sk);
	int panicked;

	if (!flow)
		return tcp_reno_undo_cwnd(sk);
	panicked = catch_up(sk, flow);
	describe(sk, flow);
	flow->c.event.ca_state = flow->ca_state;
	flow->lost_high = ((struct tcp_sock *)sk)->snd_una;
	panicked |= call_undo(&flow->c);
	record(sk, flow, UNDO);
	look(flow, (struct tcp_sock *)sk);
	if (panicked) {
		fall(sk, FELL_PANIC);
		return TCP_INIT_CWND;
	}
	return flow->c.outcome.cwnd;
}

OPERATION void on_event(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow;
	u64 tick_us = options.hz ? 1000000 / options.hz : 1000;

	if ((u32)arguments[1] != CA_EVENT_TX_START)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	describe(sk, flow);
	flow->c.event.last_sent_us = flow->c.event.now_us - (u32)(flow->c.event.jiffies - tp->lsndtime) * tick_us;
	flow->c.event.rto_us = ((struct inet_connection_sock *)sk)->icsk_rto * tick_us;
	if (call_start(&flow->c)) {
		fall(sk, FELL_PANIC);
		return;
	}
	record(sk, flow, START);
	apply(sk, flow);
}

OPERATION u32 on_ssthresh(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct flow *flow = flow_of(sk);
	u32 threshold;

	if (!flow)
		return tcp_reno_ssthresh(sk);
	// The controller is asked when the state changes, which is next.
	flow->reducing = 1;
	threshold = ((struct tcp_sock *)sk)->snd_ssthresh;
	return threshold;
}

OPERATION void on_state(u64 *arguments)
{
	struct sock *sk = SOCKET;
	u32 to = (u8)arguments[1];
	struct flow *flow;
	int panicked;

	// A socket that is thrown away is set to its first state. That is no decision about a connection.
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	panicked = catch_up(sk, flow) | tell_state(sk, flow, to);
	if (panicked) {
		fall(sk, FELL_PANIC);
		return;
	}
	// On the way into a fast recovery, an ACK follows.
	if (to == TCP_CA_LOSS || to < TCP_CA_CWR)
		apply(sk, flow);
	look(flow, (struct tcp_sock *)sk);
}

OPERATION void on_marks(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow;

	if (!((u32)arguments[1] & CA_ACK_ECE))
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	describe(sk, flow);
	flow->c.event.flags = ECHOED;
	flow->c.event.units = tp->delivered_ce - flow->ce_seen;
	flow->ce_seen = tp->delivered_ce;
	if (call_marks(&flow->c)) {
		fall(sk, FELL_PANIC);
		return;
	}
	record(sk, flow, MARKS);
}

OPERATION u32 on_send(u64 *arguments)
{
	struct sock *sk = SOCKET;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *flow = flow_of(sk);

	if (!flow)
		return 2;
	if (catch_up(sk, flow)) {
		fall(sk, FELL_PANIC);
		return 2;
	}
	note_send(flow, tp);
	look(flow, tp);
	return flow->c.outcome.min_burst;
}

// The loader writes the name (src/objects.rs looks for this one).
SEC(".struct_ops")
struct tcp_congestion_ops congestion = {
	.name = "fullpipe-cc-nam",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)on_init,
	.cong_control = (void *)on_ack,
	.undo_cwnd = (void *)on_undo,
	.cwnd_event = (void *)on_event,
	.ssthresh = (void *)on_ssthresh,
	.set_state = (void *)on_state,
	.in_ack_event = (void *)on_marks,
	.min_tso_segs = (void *)on_send,
};

// A line for each connection that has a state: its ends, and the model (`MODEL` in crates/kernel/src/congestion/status.rs).
SEC("iter/bpf_sk_storage_map")
int list_flows(struct bpf_iter__bpf_sk_storage_map *context)
{
	static const char line[] = "%u %u %u %u %u %llu %llu %u %u %u\n";
	struct sock *sk = context->sk;
	struct flow *flow = context->value;
	u64 values[10];

	if (!sk || !flow)
		return 0;
	values[0] = sk->__sk_common.skc_net.net->ns.inum;
	values[1] = sk->__sk_common.skc_num;
	values[2] = __builtin_bswap16(sk->__sk_common.skc_dport);
	values[3] = flow->c.outcome.phase;
	values[4] = flow->c.outcome.cwnd;
	values[5] = flow->c.outcome.bandwidth;
	values[6] = flow->c.outcome.rate;
	values[7] = flow->c.outcome.min_rtt_us;
	values[8] = flow->c.event.in_flight;
	values[9] = AS(struct inet_connection_sock, sk)->icsk_ca_priv[0] == RUNS;
	seq_printf(context->meta->seq, line, sizeof(line), values, sizeof(values));
	return 0;
}
