// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Of the kernel: the types, and the functions that the recorder calls.
//
// The types name only the members that are read. Their offsets are set when the program is loaded, from the kernel's own
// description of its types (CO-RE).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

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

// ---- Functions: helpers by their numbers (uapi/linux/bpf.h), kfuncs by their names ----------------------------------

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
