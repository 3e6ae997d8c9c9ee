// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Of the kernel: the types, and the functions that the shim calls.
//
// The types name only the members that are read. Their offsets are set when an object is loaded, from the kernel's own
// description of its types (CO-RE), so that one object fits every kernel.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
// A function that is verified once, by itself, whoever calls it.
#define VERIFIED_ALONE __attribute__((noinline))

#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_INIT_CWND 10
#define SK_PACING_NEEDED 1
// Of `tcp_skb_cb::sacked`.
#define TCPCB_SACKED_RETRANS 0x02
#define TCPCB_LOST 0x04
#define TCPCB_EVER_RETRANS 0x80
// Of the argument `flag` of `cong_control` (net/ipv4/tcp_input.c).
#define FLAG_DATA_ACKED 0x04
#define FLAG_SND_UNA_ADVANCED 0x400
// Of the argument of `in_ack_event`.
#define CA_ACK_ECE 4

enum tcp_ca_event { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct list_head {
	struct list_head *next, *prev;
};

struct sk_buff {
	struct list_head tcp_tsorted_anchor;
	char cb[48];
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u16 tcp_gso_segs;
	u8 sacked;
	struct {
		u32 is_app_limited : 1;
		u32 delivered;
	} tx;
};

struct sock_common {
	u16 skc_family;
	u16 skc_dport;
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
	struct rb_root tcp_rtx_queue;
};

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u32 icsk_rto;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 tcp_wstamp_ns;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 srtt_us;
	struct minmax rtt_min;
	u32 mss_cache;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_clamp;
	u32 max_packets_out;
	u32 lsndtime;
	u8 is_cwnd_limited : 1;
	struct list_head tsorted_sent_queue;
	struct sk_buff *retransmit_skb_hint;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
	_Bool is_ack_delayed;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

// Members that the shim does not set are absent in the kernel's copy, too. `sndbuf_expand` must stay absent: where a kernel skips a
// program (crates/kernel/src/recorder.rs), its answer is garbage, and sk_sndbuf grew to 1.9 GB.
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 flags;
	char name[16];
	void (*init)(struct sock *sk);
};

// A bit-field has no address: its byte and its place in it are settled when the object is loaded.
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

#define FIELD_OFFSET(type, field) __builtin_preserve_field_info(((type *)0)->field, BYTE_OFFSET)
// A pointer that the verifier knows nothing about, as one to a type of the kernel that can be read.
#define AS(type, pointer)                                                                                              \
	((type *)bpf_rdonly_cast((const void *)(pointer), __builtin_btf_type_id(*(type *)0, 1 /* of the kernel */)))

// ---- Maps -----------------------------------------------------------------------------------------------------------

#define MAP_TYPE_ARRAY 2
#define MAP_TYPE_SK_STORAGE 24
#define MAP_TYPE_RINGBUF 27
#define NO_PREALLOC 1
#define CREATE 1
#define NO_WAKEUP 1

// How libbpf reads numbers and types of a map's definition.
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

// ---- Functions: helpers by their numbers (uapi/linux/bpf.h), kfuncs by their names ----------------------------------

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*prandom_u32)(void) = (void *)7;
static void *(*sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static u64 (*jiffies64)(void) = (void *)118;
static long (*seq_printf)(struct seq_file *file, const char *format, u32 bytes, const void *data, u32 length) = (void *)126;
static void *(*ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*loop)(u32 times, void *callback, void *context, u64 flags) = (void *)181;

#define KFUNC extern __attribute__((section(".ksyms")))

KFUNC void *bpf_rdonly_cast(const void *object, u32 type);
KFUNC u32 tcp_reno_ssthresh(struct sock *sk);
KFUNC void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
KFUNC u32 tcp_reno_undo_cwnd(struct sock *sk);
