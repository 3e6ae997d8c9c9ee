// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The record of a call: what it holds, where it goes, and how it is filled.

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
