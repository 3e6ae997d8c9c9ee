// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The kernel's own BBR and CUBIC under other names, with a record of every call: the function's arguments, and the
// state before and after it. The functions are the kernel's, called as kfuncs.
//
// Compiled with -DBBR or -DCUBIC into one algorithm each, so that a kernel without one can still record the other. The
// headers stand before this file in what the compiler is given (build.rs), in the order kernel, record, missed: it reads
// a pipe, and would look for an included file in whatever folder it was started in.

// The kernel functions that we call may only be called by programs under the GPL or both licences.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A function receives its arguments as an array of 64-bit words.
#define OPERATION SEC("struct_ops")
#define SOCKET ((struct sock *)arguments[0])

// A recorded function that takes a socket and nothing else.
#define OF_SOCKET(name, hook, function)                                                                                \
	OPERATION void name(u64 *arguments)                                                                            \
	{                                                                                                              \
		struct sock *sk = SOCKET;                                                                              \
		struct record *record = before(sk, hook);                                                              \
                                                                                                                       \
		note_time(record);                                                                                     \
		function(sk);                                                                                          \
		after(sk, record, hook, 0, 0);                                                                         \
	}

// One that takes a value of `type`, too.
#define OF_SOCKET_AND(type, name, hook, function)                                                                      \
	OPERATION void name(u64 *arguments)                                                                            \
	{                                                                                                              \
		struct sock *sk = SOCKET;                                                                              \
		type value = arguments[1];                                                                             \
		struct record *record;                                                                                 \
                                                                                                                       \
		MAY_BE_SKIPPED(hook, )                                                                                 \
		record = before(sk, hook);                                                                             \
		note_arguments(record, value, 0, 0);                                                                   \
		note_time(record);                                                                                     \
		function(sk, value);                                                                                   \
		after(sk, record, hook, value, 0);                                                                     \
	}

// One that takes a socket and returns a number.
#define ANSWERING(name, hook, function)                                                                                \
	OPERATION u32 name(u64 *arguments)                                                                             \
	{                                                                                                              \
		struct sock *sk = SOCKET;                                                                              \
		struct record *record;                                                                                 \
		u32 returned;                                                                                          \
                                                                                                                       \
		MAY_BE_SKIPPED(hook, GARBAGE)                                                                          \
		record = before(sk, hook);                                                                             \
		note_time(record);                                                                                     \
		returned = function(sk);                                                                               \
		after(sk, record, hook, 0, returned);                                                                  \
		return returned;                                                                                       \
	}

#ifdef BBR

ALWAYS_INLINE void note_sample(struct record *record, const struct rate_sample *rs)
{
	if (!record)
		return;
	record->rs_prior_mstamp = rs->prior_mstamp;
	record->rs_prior_delivered = rs->prior_delivered;
	record->rs_delivered = rs->delivered;
	record->rs_interval_us = rs->interval_us;
	record->rs_snd_interval_us = rs->snd_interval_us;
	record->rs_rcv_interval_us = rs->rcv_interval_us;
	record->rs_rtt_us = rs->rtt_us;
	record->rs_losses = rs->losses;
	record->rs_acked_sacked = rs->acked_sacked;
	record->rs_prior_in_flight = rs->prior_in_flight;
	record->rs_last_end_seq = rs->last_end_seq;
	record->rs_is_app_limited = rs->is_app_limited;
	record->rs_is_retrans = rs->is_retrans;
	record->rs_is_ack_delayed = rs->is_ack_delayed;
}

OF_SOCKET(fp_bbr_init, INIT, bbr_init)
OF_SOCKET_AND(u32, fp_bbr_cwnd_event, CWND_EVENT, bbr_cwnd_event)
OF_SOCKET_AND(u8, fp_bbr_set_state, SET_STATE, bbr_set_state)
ANSWERING(fp_bbr_ssthresh, SSTHRESH, bbr_ssthresh)
ANSWERING(fp_bbr_undo_cwnd, UNDO, bbr_undo_cwnd)

OPERATION void fp_bbr_main(u64 *arguments)
{
	struct sock *sk = SOCKET;
	u32 ack = arguments[1];
	s32 flag = arguments[2];
	const struct rate_sample *rs = (const struct rate_sample *)arguments[3];
	struct record *record = before(sk, MAIN);

	note_arguments(record, ack, flag, 0);
	note_sample(record, rs);
	note_time(record);
	bbr_main(sk, ack, flag, rs);
	after(sk, record, MAIN, 0, 0);
}

// These two read what the others left, and change nothing.
OPERATION u32 fp_bbr_min_tso_segs(u64 *arguments)
{
	return bbr_min_tso_segs(SOCKET);
}

OPERATION u32 fp_bbr_sndbuf_expand(u64 *arguments)
{
	return bbr_sndbuf_expand(SOCKET);
}

SEC(".struct_ops")
struct tcp_congestion_ops fp_bbr = {
	.name = "fp_bbr",
	.init = (void *)fp_bbr_init,
	.cong_control = (void *)fp_bbr_main,
	.sndbuf_expand = (void *)fp_bbr_sndbuf_expand,
	.undo_cwnd = (void *)fp_bbr_undo_cwnd,
	.cwnd_event = (void *)fp_bbr_cwnd_event,
	.ssthresh = (void *)fp_bbr_ssthresh,
	.min_tso_segs = (void *)fp_bbr_min_tso_segs,
	.set_state = (void *)fp_bbr_set_state,
};

#endif

#ifdef CUBIC

OF_SOCKET(fp_cubic_init, INIT, cubictcp_init)
OF_SOCKET_AND(u32, fp_cubic_cwnd_event, CWND_EVENT, cubictcp_cwnd_event)
OF_SOCKET_AND(u8, fp_cubic_set_state, SET_STATE, cubictcp_state)
ANSWERING(fp_cubic_ssthresh, SSTHRESH, cubictcp_recalc_ssthresh)
ANSWERING(fp_cubic_undo_cwnd, UNDO, tcp_reno_undo_cwnd)

OPERATION void fp_cubic_cong_avoid(u64 *arguments)
{
	struct sock *sk = SOCKET;
	u32 ack = arguments[1], acked = arguments[2];
	struct record *record = before(sk, CONG_AVOID);

	note_arguments(record, ack, acked, 0);
	note_time(record);
	cubictcp_cong_avoid(sk, ack, acked);
	after(sk, record, CONG_AVOID, 0, 0);
}

OPERATION void fp_cubic_pkts_acked(u64 *arguments)
{
	struct sock *sk = SOCKET;
	const struct ack_sample *sample = (const struct ack_sample *)arguments[1];
	struct record *record = before(sk, PKTS_ACKED);

	note_arguments(record, sample->pkts_acked, sample->in_flight, sample->rtt_us);
	note_time(record);
	cubictcp_acked(sk, sample);
	after(sk, record, PKTS_ACKED, 0, 0);
}

SEC(".struct_ops")
struct tcp_congestion_ops fp_cubic = {
	.name = "fp_cubic",
	.init = (void *)fp_cubic_init,
	.ssthresh = (void *)fp_cubic_ssthresh,
	.cong_avoid = (void *)fp_cubic_cong_avoid,
	.set_state = (void *)fp_cubic_set_state,
	.undo_cwnd = (void *)fp_cubic_undo_cwnd,
	.cwnd_event = (void *)fp_cubic_cwnd_event,
	.pkts_acked = (void *)fp_cubic_pkts_acked,
};

#endif
