// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The kernel's own BBR and CUBIC under other names, with a record of every call: what the function was told, the
// state it found, and the state it left. The functions themselves are the kernel's, called as kfuncs; nothing is
// decided here.
//
// Compiled with -DBBR or -DCUBIC into one algorithm each, so that a kernel without one can still record the other.
// The types below name only what is read. Where it lies is settled when the program is loaded, from the kernel's own
// description of its types (CO-RE).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

// The kernel functions that we call may only be called by programs under the GPL or both licences.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

// ---- Types of the kernel -------------------------------------------------------------------------------------------

#define PRIVATE_WORDS 13

#define TCP_CLOSE 7

enum tcp_ca_event { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

struct sock_common {
	u16 skc_num;
	u8 skc_state;
	struct {
		struct net *net;
	} skc_net;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[PRIVATE_WORDS];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u64 tcp_clock_cache;
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 first_tx_mstamp;
	u64 tcp_wstamp_ns;
	u32 delivered;
	u32 lost;
	u32 app_limited;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 snd_cwnd_cnt;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 max_packets_out;
	u32 total_retrans;
	u8 is_cwnd_limited : 1;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
	_Bool is_ack_delayed;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#pragma clang attribute pop

// Members that an algorithm does not set are absent in the kernel's copy, too.
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

// A bit-field has no address: its byte and its place in it are settled when the program is loaded.
#define BYTE_OFFSET 0
#define BYTE_SIZE 1
#define LEFT_SHIFT 4
#define RIGHT_SHIFT 5
#define BITS(from, field)                                                                                              \
	({                                                                                                             \
		const void *at = (const void *)(from) + __builtin_preserve_field_info((from)->field, BYTE_OFFSET);     \
		u64 bits = 0;                                                                                          \
		/* Keeps the compiler from moving the offset into the loads below, where it would be settled wrongly. */ \
		asm volatile("" : "+r"(at));                                                                           \
		switch (__builtin_preserve_field_info((from)->field, BYTE_SIZE)) {                                     \
		case 1: bits = *(const u8 *)at; break;                                                                 \
		case 2: bits = *(const u16 *)at; break;                                                                \
		case 4: bits = *(const u32 *)at; break;                                                                \
		case 8: bits = *(const u64 *)at; break;                                                                \
		}                                                                                                      \
		bits <<= __builtin_preserve_field_info((from)->field, LEFT_SHIFT);                                     \
		bits >> __builtin_preserve_field_info((from)->field, RIGHT_SHIFT);                                     \
	})

// ---- Functions of the kernel: helpers by their numbers (uapi/linux/bpf.h), kfuncs by their names --------------------

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u64 (*jiffies64)(void) = (void *)118;
static void *(*ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;

#define KFUNC extern __attribute__((section(".ksyms")))

#ifdef BBR
KFUNC void bbr_init(struct sock *sk);
KFUNC void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
KFUNC u32 bbr_sndbuf_expand(struct sock *sk);
KFUNC u32 bbr_undo_cwnd(struct sock *sk);
KFUNC void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event);
KFUNC u32 bbr_ssthresh(struct sock *sk);
KFUNC u32 bbr_min_tso_segs(struct sock *sk);
KFUNC void bbr_set_state(struct sock *sk, u8 new_state);
#endif

#ifdef CUBIC
KFUNC void cubictcp_init(struct sock *sk);
KFUNC u32 cubictcp_recalc_ssthresh(struct sock *sk);
KFUNC void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked);
KFUNC void cubictcp_state(struct sock *sk, u8 new_state);
KFUNC void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event);
KFUNC void cubictcp_acked(struct sock *sk, const struct ack_sample *sample);
KFUNC u32 tcp_reno_undo_cwnd(struct sock *sk);
#endif

// ---- Records -------------------------------------------------------------------------------------------------------

// The codes of `Hook` (crates/cc/src/replay/call.rs).
enum hook { INIT, MAIN, CWND_EVENT, SET_STATE, SSTHRESH, UNDO, CONG_AVOID, PKTS_ACKED };

// What user space reads: `Record` in record.rs, member by member. Large members first, so that there are no gaps.
struct record {
	u64 ktime_ns;
	s64 argument[3];
	u64 rs_prior_mstamp;
	s64 rs_interval_us;
	s64 rs_rtt_us;
	u64 tcp_clock_cache;
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 first_tx_mstamp;
	u64 tcp_wstamp_ns;
	u64 sk_pacing_rate;
	u64 sk_max_pacing_rate;
	u64 after_sk_pacing_rate;
	u64 private_before[PRIVATE_WORDS];
	u64 private_after[PRIVATE_WORDS];
	u32 network;
	u32 returned;
	u32 rs_prior_delivered;
	s32 rs_delivered;
	u32 rs_snd_interval_us;
	u32 rs_rcv_interval_us;
	s32 rs_losses;
	u32 rs_acked_sacked;
	u32 rs_prior_in_flight;
	u32 rs_last_end_seq;
	u32 jiffies32;
	u32 after_jiffies32;
	u32 delivered;
	u32 lost;
	u32 app_limited;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 srtt_us;
	u32 min_rtt_us;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 snd_cwnd_cnt;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 max_packets_out;
	u32 total_retrans;
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
	u32 after_snd_cwnd;
	u32 after_snd_ssthresh;
	u32 after_snd_cwnd_cnt;
	u32 after_prior_cwnd;
	u16 port;
	u8 hook;
	u8 ca_state;
	u8 is_cwnd_limited;
	u8 rs_is_app_limited;
	u8 rs_is_retrans;
	u8 rs_is_ack_delayed;
};

_Static_assert(sizeof(struct record) == 488, "record.rs says the same");

#define MAP_TYPE_ARRAY 2
#define MAP_TYPE_RINGBUF 27
// 33,000 calls, which is over two seconds of a path of 1 Gbit/s. User space comes by every 10 ms, unless the machine
// is busy.
#define RING_BYTES (16 << 20)

struct {
	int (*type)[MAP_TYPE_RINGBUF];
	int (*max_entries)[RING_BYTES];
} calls SEC(".maps");

// How many records found no room.
struct {
	int (*type)[MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} lost SEC(".maps");

// The record of a call, with the state before it; null if there is no room, or nothing to record.
ALWAYS_INLINE struct record *before(struct sock *sk, enum hook hook)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct record *record;

	// A socket that is thrown away is cleared and then set to its first state. That is no decision about a connection.
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return 0;
	record = ringbuf_reserve(&calls, sizeof *record, 0);
	if (!record) {
		u32 first = 0;
		u64 *count = map_lookup_elem(&lost, &first);

		if (count)
			__sync_fetch_and_add(count, 1);
		return 0;
	}
	__builtin_memset(record, 0, sizeof *record);
	record->hook = hook;
	record->network = sk->__sk_common.skc_net.net->ns.inum;
	record->port = sk->__sk_common.skc_num;
	record->ca_state = BITS(icsk, icsk_ca_state);
	record->tcp_clock_cache = tp->tcp_clock_cache;
	record->tcp_mstamp = tp->tcp_mstamp;
	record->delivered_mstamp = tp->delivered_mstamp;
	record->first_tx_mstamp = tp->first_tx_mstamp;
	record->tcp_wstamp_ns = tp->tcp_wstamp_ns;
	record->delivered = tp->delivered;
	record->lost = tp->lost;
	record->app_limited = tp->app_limited;
	record->packets_out = tp->packets_out;
	record->sacked_out = tp->sacked_out;
	record->lost_out = tp->lost_out;
	record->retrans_out = tp->retrans_out;
	record->srtt_us = tp->srtt_us;
	record->min_rtt_us = tp->rtt_min.s[0].v;
	record->mss_cache = tp->mss_cache;
	record->snd_una = tp->snd_una;
	record->snd_nxt = tp->snd_nxt;
	record->snd_cwnd = tp->snd_cwnd;
	record->snd_ssthresh = tp->snd_ssthresh;
	record->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	record->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	record->prior_cwnd = tp->prior_cwnd;
	record->prior_ssthresh = tp->prior_ssthresh;
	record->max_packets_out = tp->max_packets_out;
	record->total_retrans = tp->total_retrans;
	record->is_cwnd_limited = BITS(tp, is_cwnd_limited);
	record->sk_pacing_rate = sk->sk_pacing_rate;
	record->sk_max_pacing_rate = sk->sk_max_pacing_rate;
	record->sk_pacing_status = sk->sk_pacing_status;
	record->sk_gso_max_size = sk->sk_gso_max_size;
	for (int i = 0; i < PRIVATE_WORDS; i++)
		record->private_before[i] = icsk->icsk_ca_priv[i];
	return record;
}

// The clocks, as close before the call as can be: jiffies may tick at any moment, and the kernel reads them itself.
ALWAYS_INLINE void note_time(struct record *record)
{
	if (!record)
		return;
	record->ktime_ns = ktime_get_ns();
	record->jiffies32 = (u32)jiffies64();
}

// Completes the record with the state after the call. User space polls, so nobody is woken.
ALWAYS_INLINE void after(struct sock *sk, struct record *record, u32 returned)
{
	const u64 no_wakeup = 1;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;

	if (!record)
		return;
	record->after_jiffies32 = (u32)jiffies64();
	record->returned = returned;
	record->after_sk_pacing_rate = sk->sk_pacing_rate;
	record->after_snd_cwnd = tp->snd_cwnd;
	record->after_snd_ssthresh = tp->snd_ssthresh;
	record->after_snd_cwnd_cnt = tp->snd_cwnd_cnt;
	record->after_prior_cwnd = tp->prior_cwnd;
	for (int i = 0; i < PRIVATE_WORDS; i++)
		record->private_after[i] = icsk->icsk_ca_priv[i];
	ringbuf_submit(record, no_wakeup);
}

ALWAYS_INLINE void note_arguments(struct record *record, s64 first, s64 second, s64 third)
{
	if (!record)
		return;
	record->argument[0] = first;
	record->argument[1] = second;
	record->argument[2] = third;
}

// ---- The algorithms: a function receives its arguments as an array of 64-bit words ---------------------------------

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
		after(sk, record, 0);                                                                                  \
	}

// One that takes a value of `type`, too.
#define OF_SOCKET_AND(type, name, hook, function)                                                                      \
	OPERATION void name(u64 *arguments)                                                                            \
	{                                                                                                              \
		struct sock *sk = SOCKET;                                                                              \
		type value = arguments[1];                                                                             \
		struct record *record = before(sk, hook);                                                              \
                                                                                                                       \
		note_arguments(record, value, 0, 0);                                                                   \
		note_time(record);                                                                                     \
		function(sk, value);                                                                                   \
		after(sk, record, 0);                                                                                  \
	}

// One that takes a socket and answers with a number.
#define ANSWERING(name, hook, function)                                                                                \
	OPERATION u32 name(u64 *arguments)                                                                             \
	{                                                                                                              \
		struct sock *sk = SOCKET;                                                                              \
		struct record *record = before(sk, hook);                                                              \
		u32 returned;                                                                                          \
                                                                                                                       \
		note_time(record);                                                                                     \
		returned = function(sk);                                                                               \
		after(sk, record, returned);                                                                           \
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
	after(sk, record, 0);
}

// These two answer from state that the others leave, and change none.
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
	after(sk, record, 0);
}

OPERATION void fp_cubic_pkts_acked(u64 *arguments)
{
	struct sock *sk = SOCKET;
	const struct ack_sample *sample = (const struct ack_sample *)arguments[1];
	struct record *record = before(sk, PKTS_ACKED);

	note_arguments(record, sample->pkts_acked, sample->in_flight, sample->rtt_us);
	note_time(record);
	cubictcp_acked(sk, sample);
	after(sk, record, 0);
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
