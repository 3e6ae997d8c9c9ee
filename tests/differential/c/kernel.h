/* What Linux's TCP sources need of the kernel, as far as they decide anything: our own, written for the user space. Every
 * header that they include is this one (build.rs makes a file of each name). Structures and functions that are Linux's own
 * come from the source itself (build.rs extracts them by name into linux_tcp.h).
 */
#ifndef DIFFERENTIAL_KERNEL_H
#define DIFFERENTIAL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64, __u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32, __s32;
typedef int64_t s64, __s64;

#define __read_mostly
#define ____cacheline_aligned_in_smp
#define __init
#define __exit
#define __always_inline inline
#define __bpf_kfunc __attribute__((unused))
#define likely(x) (x)
#define unlikely(x) (x)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define WARN_ON(x) ((void)(x))
#define WARN_ON_ONCE(x) (x)
#define WARN_ONCE(x, ...) (x)
#define BUILD_BUG_ON(x) _Static_assert(!(x), #x)
#define EXPORT_SYMBOL(x)
#define EXPORT_SYMBOL_GPL(x)
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_AUTHOR(x)
#define MODULE_LICENSE(x)
#define MODULE_DESCRIPTION(x)
#define MODULE_VERSION(x)
#define THIS_MODULE NULL
#define module_init(f) int f##_(void); int f##_(void) { return f(); }
#define module_exit(f) void f##_(void); void f##_(void) { f(); }
#define pr_debug(...)
#define fallthrough __attribute__((fallthrough))
#define prefetch(x)
#define IS_ENABLED(x) 0
#define cmpxchg(where, old, new) ((void)(*(where) == (old) ? *(where) = (new) : 0))
#define rcu_access_pointer(x) (x)

#define min(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ > b_ ? a_ : b_; })
#define min_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(type, a, b) ({ type a_ = (a); type b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(x, low, high) ({ __auto_type x_ = (x); x_ < (low) ? (low) : x_ > (high) ? (high) : x_; })
#define do_div(n, base) ({ u32 rest_ = (n) % (u32)(base); (n) /= (u32)(base); rest_; })
static inline u64 div_u64(u64 a, u32 b) { return a / b; }
static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline u64 div64_ul(u64 a, unsigned long b) { return a / b; }
static inline s64 div64_long(s64 a, long b) { return a / b; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }

#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define MSEC_PER_SEC 1000L

/* The clocks and the random number of the present event. */
extern u32 event_jiffies, event_random, event_hz;
#define HZ event_hz
#define tcp_jiffies32 event_jiffies
/* kernel/time/time.c and include/linux/jiffies.h, for an HZ that divides 1000. */
static inline unsigned long msecs_to_jiffies(u32 ms) { return (ms + 1000 / HZ - 1) / (1000 / HZ); }
static inline unsigned long usecs_to_jiffies(u32 us) { return ((u64)us + 1000000 / HZ - 1) / (1000000 / HZ); }
#define time_after(a, b) ((s32)((u32)(b) - (u32)(a)) < 0)
static inline u32 get_random_u32_below(u32 ceil) { return event_random % ceil; }

/* Registration, BPF and statistics decide nothing. */
struct list_head { void *next; };
struct module;
struct btf_id_set8 { int unused; };
struct btf_kfunc_id_set { struct module *owner; struct btf_id_set8 *set; };
#define BTF_KFUNCS_START(name) static struct btf_id_set8 name;
#define BTF_ID_FLAGS(...)
#define BTF_KFUNCS_END(name)
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
#define tcp_register_congestion_control(ops) ((void)(ops), 0)
#define tcp_unregister_congestion_control(ops) ((void)(ops))
#define NET_INC_STATS(net, item) ((void)(net))
#define NET_ADD_STATS(net, item, n) ((void)(net), (void)(n))
#define trace_tcp_cong_state_set(sk, state)
#define DBGUNDO(sk, text)
#define INET_DIAG_VEGASINFO 3
#define INET_DIAG_BBRINFO 16
#define TCP_CA_NAME_MAX 16
enum { LINUX_MIB_TCPLOSSUNDO, LINUX_MIB_TCPFULLUNDO, LINUX_MIB_TCPRENORECOVERY, LINUX_MIB_TCPSACKRECOVERY };
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2

/* Of a kernel without wireless meshes and tunnels (include/linux/netdevice.h): MAX_TCP_HEADER is 192. */
#define MAX_HEADER 32
#define L1_CACHE_ALIGN(x) (((x) + 63) & ~63)
#define GSO_LEGACY_MAX_SIZE 65536u
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define TCP_SYN_SENT 2
#define TCPF_ESTABLISHED 2
#define TCPF_CLOSE_WAIT 256
#define SOCK_NOSPACE 2
#define test_bit(bit, where) ((*(where) >> (bit)) & 1)

/* What the congestion control reads and writes. Sequence numbers count segments: none of the decisions here needs bytes. */
struct net {
	struct {
		int sysctl_tcp_slow_start_after_idle, sysctl_tcp_pacing_ss_ratio, sysctl_tcp_pacing_ca_ratio;
		int sysctl_tcp_reordering, sysctl_tcp_frto, sysctl_tcp_recovery;
		int sysctl_tcp_min_tso_segs, sysctl_tcp_plb_enabled;
	} ipv4;
};

struct socket { unsigned long flags; };
struct sk_buff { u64 skb_mstamp_ns; char cb[64]; };
struct inet_skb_parm { int unused; };
struct inet6_skb_parm { int unused; };
struct dst_entry;

struct sock {
	struct net *net;
	struct socket *sk_socket;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u32 sk_pacing_status;
	u8 sk_pacing_shift;
	unsigned int sk_gso_max_size;
	u8 sk_state;
	int sk_err_soft;
	int sk_wmem_alloc;
	struct { void *rb_node; } tcp_rtx_queue;
};

struct tcp_congestion_ops;
struct inet_connection_sock {
	struct sock sk;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u8 icsk_retransmits, icsk_pending, icsk_probes_out;
	u32 icsk_rto;
	struct { int probe_size; } icsk_mtup;
	struct { u32 lrcvtime, ato; u8 pending; } icsk_ack;
	/* Google's has more than Linux's 13 of them. */
	u64 icsk_ca_priv[20];
};
#define ICSK_CA_PRIV_SIZE sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv)
#define ICSK_TIME_RETRANS 1

#include <linux/win_minmax.h>

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp, tcp_clock_cache, tcp_wstamp_ns, delivered_mstamp, first_tx_mstamp;
	u32 delivered, delivered_ce, lost, app_limited, bytes_acked, max_window, rcv_tstamp;
	u32 rate_delivered, rate_interval_us, write_seq, rcv_nxt;
	bool rate_app_limited, is_sack_reneg, frto, tlp_retrans, is_cwnd_limited;
	/* Of Google's kernel. */
	bool tlp_orig_data_app_limited, fast_ack_mode;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out, cwnd_usage_seq;
	u32 srtt_us, mss_cache, snd_una, snd_nxt, high_seq, tlp_high_seq, snd_wnd;
	u32 snd_cwnd, snd_ssthresh, snd_cwnd_clamp, snd_cwnd_cnt, snd_cwnd_used, snd_cwnd_stamp;
	u32 prior_cwnd, prior_ssthresh, prr_delivered, prr_out, reordering, lsndtime;
	u32 undo_marker, retrans_stamp;
	u8 ecn_flags;
	int undo_retrans;
	struct minmax rtt_min;
	struct { u8 advanced, reo_wnd_persist; } rack;
	struct { u32 probe_seq_start; } mtu_probe;
	struct { u8 sack_ok; } rx_opt;
	void *fastopen_rsk;
	bool syn_data;
};

static inline struct tcp_sock *tcp_sk(const struct sock *sk) { return (struct tcp_sock *)sk; }
static inline struct inet_connection_sock *inet_csk(const struct sock *sk) { return (struct inet_connection_sock *)sk; }
static inline void *inet_csk_ca(const struct sock *sk) { return inet_csk(sk)->icsk_ca_priv; }
static inline struct net *sock_net(const struct sock *sk) { return sk->net; }
static inline struct dst_entry *__sk_dst_get(const struct sock *sk) { (void)sk; return NULL; }
static inline int sk_wmem_alloc_get(const struct sock *sk) { return sk->sk_wmem_alloc; }
#define SKB_TRUESIZE(x) ((x) + 512)
#define inet_csk_inc_pingpong_cnt(sk) ((void)(sk))
#define dst_metric(dst, which) ((void)(dst), 0)
/* Every peer supports SACK, and RACK finds the losses. */
#define tcp_is_sack(tp) true
#define tcp_is_reno(tp) false
#define tcp_is_rack(sk) true
#define tcp_dupack_heuristics(tp) 0

#include "linux_tcp.h"

union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_bbr_info bbr;
	struct tcp_dctcp_info dctcp;
};

/* tcp_cong.c */
void tcp_set_ca_state(struct sock *sk, const u8 ca_state);
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
/* tcp_rate.c */
void tcp_rate_skb_sent(struct sock *sk, struct sk_buff *skb);
void tcp_rate_skb_delivered(struct sock *sk, struct sk_buff *skb, struct rate_sample *rs);
void tcp_rate_gen(struct sock *sk, u32 delivered, u32 lost, bool is_sack_reneg, struct rate_sample *rs);
void tcp_rate_check_app_limited(struct sock *sk);

#endif
