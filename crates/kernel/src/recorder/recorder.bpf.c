// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The kernel's own BBR and CUBIC under other names, with a record of every call: the function's arguments, and the
// state before and after it. The functions are the kernel's, called as kfuncs.
//
// Compiled with -DBBR or -DCUBIC into one algorithm each, so that a kernel without one can still record the other.
// The types below name only the members that are read. Their offsets are set when the program is loaded, from the
// kernel's own description of its types (CO-RE).

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

// Congestion states: from this one on, the threshold is what `ssthresh` returned.
#define TCP_CA_CWR 2

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
static void *(*sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
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
#define KERNEL_SSTHRESH bbr_ssthresh
#define KERNEL_SET_STATE bbr_set_state
#endif

#ifdef CUBIC
KFUNC void cubictcp_init(struct sock *sk);
KFUNC u32 cubictcp_recalc_ssthresh(struct sock *sk);
KFUNC void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked);
KFUNC void cubictcp_state(struct sock *sk, u8 new_state);
KFUNC void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event);
KFUNC void cubictcp_acked(struct sock *sk, const struct ack_sample *sample);
KFUNC u32 tcp_reno_undo_cwnd(struct sock *sk);
#define KERNEL_SSTHRESH cubictcp_recalc_ssthresh
#define KERNEL_SET_STATE cubictcp_state
#endif

// ---- Records -------------------------------------------------------------------------------------------------------

// The codes of `Hook` (crates/replay/src/call.rs).
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
#define MAP_TYPE_SK_STORAGE 24
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

// How many calls the kernel is known to have made without running the program.
struct {
	int (*type)[MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} missed SEC(".maps");

// What the last call of a socket left behind. The next one must find it.
struct seen {
	u32 ca_state;
	u32 ssthresh;
	u8 known;          // The rest is set.
	u8 ssthresh_known; // The kernel itself changes the threshold after `undo_cwnd`.
	u8 idle;           // Nothing in flight, and CA_EVENT_TX_START must come before the next segment.
#ifdef SKIP_EPISODES
	u8 episodes;
	u8 skipping;
#endif
};

struct {
	int (*type)[MAP_TYPE_SK_STORAGE];
	int (*map_flags)[1]; // BPF_F_NO_PREALLOC, without which there is no such map.
	u32 *key;
	struct seen *value;
} sockets SEC(".maps");

#define CREATE 1

ALWAYS_INLINE void count_one(void *map)
{
	u32 first = 0;
	u64 *count = map_lookup_elem(map, &first);

	if (count)
		__sync_fetch_and_add(count, 1);
}

ALWAYS_INLINE u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

// The record of a call, with the state before it; null if there is no room.
ALWAYS_INLINE struct record *new_record(struct sock *sk, enum hook hook)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct record *record;

	record = ringbuf_reserve(&calls, sizeof *record, 0);
	if (!record) {
		count_one(&lost);
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
ALWAYS_INLINE void submit(struct sock *sk, struct record *record, u32 returned)
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

// ---- Calls that the kernel made without running the program (recorder.rs says when) --------------------------------

// Makes up for calls that were skipped, and counts them. A skipped `ssthresh` has left garbage in the threshold, from
// which the kernel would set the window at the end of the recovery. Both functions run late here, on the window of
// before the loss. They are recorded like any call.
static __attribute__((noinline)) int catch_up(struct sock *sk, u32 hook)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct seen *seen = sk_storage_get(&sockets, sk, 0, CREATE);
	u32 ca_state = BITS(icsk, icsk_ca_state);

	if (!seen)
		return 0;
	if (!seen->known) {
		seen->known = 1;
		seen->ca_state = ca_state;
		return 0;
	}
	// An undo puts lost segments back into flight.
	if (seen->idle && in_flight(tp) && hook != UNDO)
		count_one(&missed);
	if (ca_state >= TCP_CA_CWR && seen->ssthresh_known && tp->snd_ssthresh != seen->ssthresh) {
		u32 cwnd = tp->snd_cwnd, ssthresh;
		struct record *record;

		count_one(&missed);
		tp->snd_ssthresh = seen->ssthresh;
		if (tp->prior_cwnd)
			tp->snd_cwnd = tp->prior_cwnd;
		record = new_record(sk, SSTHRESH);
		note_time(record);
		ssthresh = KERNEL_SSTHRESH(sk);
		submit(sk, record, ssthresh);
		tp->snd_cwnd = cwnd;
		tp->snd_ssthresh = ssthresh;
	}
	if (ca_state != seen->ca_state) {
		struct record *record = new_record(sk, SET_STATE);

		count_one(&missed);
		seen->ca_state = ca_state;
		note_arguments(record, ca_state, 0, 0);
		note_time(record);
		KERNEL_SET_STATE(sk, ca_state);
		submit(sk, record, 0);
	}
	return 0;
}

ALWAYS_INLINE struct record *before(struct sock *sk, enum hook hook)
{
	// A socket that is thrown away is cleared and then set to its first state. That is no decision about a connection.
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return 0;
	catch_up(sk, hook);
	return new_record(sk, hook);
}

// Submits the record and remembers what the next call must find. `value` is the argument of CWND_EVENT and SET_STATE.
ALWAYS_INLINE void after(struct sock *sk, struct record *record, enum hook hook, u32 value, u32 returned)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct seen *seen;

	submit(sk, record, returned);
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return;
	seen = sk_storage_get(&sockets, sk, 0, 0);
	if (!seen)
		return;
	seen->ssthresh = hook == SSTHRESH ? returned : tp->snd_ssthresh;
	seen->ssthresh_known = hook != UNDO;
	seen->idle = !in_flight(tp) && !(hook == CWND_EVENT && value == CA_EVENT_TX_START);
	if (hook == SET_STATE)
		seen->ca_state = value;
}

#ifdef SKIP_EPISODES
// For a test: whether to behave as a program that was skipped. So it is in every other episode, from `ssthresh` to the
// change of state, as when one timer makes all of these calls.
ALWAYS_INLINE int skipped(struct sock *sk, enum hook hook)
{
	struct seen *seen = sk_storage_get(&sockets, sk, 0, CREATE);

	if (!seen)
		return 0;
	if (hook == SSTHRESH)
		return seen->skipping = ++seen->episodes & 1;
	if (hook == SET_STATE && seen->skipping) {
		seen->skipping = 0;
		return 1;
	}
	return hook == CWND_EVENT && seen->skipping;
}
#define GARBAGE 668121856
#define MAY_BE_SKIPPED(hook, returned)                                                                                 \
	if (skipped(sk, hook))                                                                                         \
		return returned;
#else
#define MAY_BE_SKIPPED(hook, returned)
#endif

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
