/* Google's tcp_bbr.c (BBRv3) as it is, if GOOGLE_BBR names it, under the core of a Linux that knows nothing of it: what Google's
 * core adds to a sample, to a segment's state and to the hooks is here, and comes from the plan. Without it, nothing.
 */
#include "kernel.h"
#include "api.h"

const struct tcp_congestion_ops *differential_bbr3_ops(void);
void differential_bbr3_state(const struct sock *sk, u64 *fields);
void differential_bbr3_lost(struct sock *sk, u32 segments, const struct loss_plan *loss);
void differential_bbr3_repaired(struct sock *sk);

#ifdef GOOGLE_BBR

/* Of the sample that the core is about to pass. */
extern struct plan plan;
extern bool event_is_ece, event_may_answer_probe;

typedef struct rate_sample linux_rate_sample;
typedef struct tcp_congestion_ops linux_congestion_ops;

#define rate_sample google_rate_sample
#define tcp_congestion_ops google_congestion_ops
#define tcp_skb_cb google_skb_cb
#define tcp_bbr_info google_bbr_info
#define tcp_cc_info google_cc_info
#undef TCP_SKB_CB
#define TCP_SKB_CB(skb) ((struct google_skb_cb *)&(skb)->cb[0])
#define tcp_skb_pcount(skb) ((int)TCP_SKB_CB(skb)->tcp_gso_segs)
#define tcp_skb_tx_in_flight_is_suspicious(count, sacked, in_flight) 0

struct rate_sample {
	u32 prior_delivered;
	s32 delivered, delivered_ce, lost;
	long interval_us, rtt_us;
	u32 tx_in_flight, acked_sacked, prior_in_flight;
	int losses;
	bool is_app_limited, is_ack_delayed, is_ece, is_acking_tlp_retrans_seq;
};

struct tcp_skb_cb {
	u32 seq, end_seq, tcp_gso_segs;
	u8 sacked;
	struct {
		u64 delivered_mstamp;
		u32 in_flight, lost;
		bool is_app_limited;
	} tx;
};

enum tcp_bbr_phase {
	BBR_PHASE_INVALID, BBR_PHASE_STARTUP, BBR_PHASE_DRAIN, BBR_PHASE_PROBE_RTT, BBR_PHASE_PROBE_BW_UP,
	BBR_PHASE_PROBE_BW_DOWN, BBR_PHASE_PROBE_BW_CRUISE, BBR_PHASE_PROBE_BW_REFILL,
};

struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	u8 bbr_mode, bbr_phase, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};

union tcp_cc_info { struct tcp_bbr_info bbr; };

struct tcp_congestion_ops {
	u32 flags;
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	void (*init)(struct sock *sk);
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*tso_segs)(struct sock *sk, unsigned int mss_now);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	void (*set_state)(struct sock *sk, u8 state);
};

#define CA_EVENT_TLP_RECOVERY 100
#define TCP_CONG_WANTS_CE_EVENTS 4
#define TCP_ECN_OK 1
#define TCP_ECN_LOW 16
#define TCP_ECN_ECT_PERMANENT 32
#define BTF_SET8_START(name) static struct btf_id_set8 name;
#define BTF_SET8_END(name)
#define BITS_PER_TYPE(type) (8 * sizeof(type))
#define DIV_ROUND_UP_ULL(a, b) (((u64)(a) + (u64)(b) - 1) / (u64)(b))
#define ilog2(x) (fls64(x) - 1)

/* Linux's own module has these names already. */
#undef module_init
#undef module_exit
#define module_init(f)
#define module_exit(f)

/* Off, as in a kernel that nobody has told to rehash. */
#define TCP_PLB_SCALE 8
struct tcp_plb_state { u32 pause_until; };
#define tcp_plb_update_state(sk, plb, ratio) ((void)(sk), (void)(plb), (void)(ratio))
#define tcp_plb_check_rehash(sk, plb) ((void)(sk), (void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(sk), (void)(plb))
/* The receiving half. */
#define dctcp_ece_ack_update(sk, event, prior_rcv_nxt, state) ((void)(sk), (void)(event), (void)(state))

#include GOOGLE_BBR

static void control(struct sock *sk, u32 ack, int flag, const linux_rate_sample *rs)
{
	struct rate_sample google = {
		.prior_delivered = rs->prior_delivered, .delivered = rs->delivered,
		.delivered_ce = plan.marked_since, .lost = plan.lost_since,
		.interval_us = rs->interval_us, .rtt_us = rs->rtt_us, .tx_in_flight = plan.tx_in_flight,
		.acked_sacked = rs->acked_sacked, .prior_in_flight = rs->prior_in_flight, .losses = rs->losses,
		.is_app_limited = rs->is_app_limited, .is_ack_delayed = rs->is_ack_delayed, .is_ece = event_is_ece,
		.is_acking_tlp_retrans_seq = event_may_answer_probe,
	};

	(void)ack, (void)flag;
	tcp_bbr_cong_ops.cong_control(sk, &google);
}

const linux_congestion_ops *differential_bbr3_ops(void)
{
	static linux_congestion_ops ops;

	ops.init = tcp_bbr_cong_ops.init;
	ops.ssthresh = tcp_bbr_cong_ops.ssthresh;
	ops.undo_cwnd = tcp_bbr_cong_ops.undo_cwnd;
	ops.cwnd_event = tcp_bbr_cong_ops.cwnd_event;
	ops.set_state = tcp_bbr_cong_ops.set_state;
	ops.cong_control = control;
	return &ops;
}

void differential_bbr3_lost(struct sock *sk, u32 segments, const struct loss_plan *loss)
{
	struct sk_buff skb = { 0 };

	TCP_SKB_CB(&skb)->tcp_gso_segs = segments;
	TCP_SKB_CB(&skb)->tx.delivered_mstamp = 1;
	TCP_SKB_CB(&skb)->tx.in_flight = loss->tx_in_flight;
	TCP_SKB_CB(&skb)->tx.lost = tcp_sk(sk)->lost - loss->since;
	TCP_SKB_CB(&skb)->tx.is_app_limited = loss->app_limited;
	tcp_bbr_cong_ops.skb_marked_lost(sk, &skb);
}

void differential_bbr3_repaired(struct sock *sk)
{
	tcp_bbr_cong_ops.cwnd_event(sk, CA_EVENT_TLP_RECOVERY);
}

void differential_bbr3_state(const struct sock *sk, u64 *fields)
{
	const struct bbr *bbr = inet_csk_ca(sk);
	const u64 state[] = {
		bbr->min_rtt_us, bbr->min_rtt_stamp, bbr->probe_rtt_done_stamp, bbr->probe_rtt_min_us,
		bbr->probe_rtt_min_stamp, bbr->next_rtt_delivered, bbr->cycle_mstamp, bbr->mode, bbr->prev_ca_state,
		bbr->round_start, bbr->bw_probe_up_rounds, bbr->try_fast_path, bbr->idle_restart,
		bbr->probe_rtt_round_done, bbr->init_cwnd, bbr->pacing_gain, bbr->cwnd_gain, bbr->full_bw_reached,
		bbr->full_bw_cnt, bbr->cycle_idx, bbr->has_seen_rtt, bbr->prior_cwnd, bbr->full_bw,
		bbr->ack_epoch_mstamp, bbr->extra_acked[0], bbr->extra_acked[1], bbr->ack_epoch_acked,
		bbr->extra_acked_win_rtts, bbr->extra_acked_win_idx, bbr->full_bw_now, bbr->startup_ecn_rounds,
		bbr->loss_in_cycle, bbr->ecn_in_cycle, bbr->loss_round_delivered, bbr->undo_bw_lo,
		bbr->undo_inflight_lo, bbr->undo_inflight_hi, bbr->bw_latest, bbr->bw_lo, bbr->bw_hi[0], bbr->bw_hi[1],
		bbr->inflight_latest, bbr->inflight_lo, bbr->inflight_hi, bbr->bw_probe_up_cnt, bbr->bw_probe_up_acks,
		bbr->probe_wait_us, bbr->ecn_eligible, bbr->ecn_alpha, bbr->bw_probe_samples, bbr->prev_probe_too_high,
		bbr->stopped_risky_probe, bbr->rounds_since_probe, bbr->loss_round_start, bbr->loss_in_round,
		bbr->ecn_in_round, bbr->ack_phase, bbr->loss_events_in_round, bbr->alpha_last_delivered,
		bbr->alpha_last_delivered_ce, bbr_tso_segs_goal((struct sock *)sk),
	};

	_Static_assert(sizeof(state) <= sizeof(((struct view *)0)->private_), "the view is too small");
	memcpy(fields, state, sizeof(state));
}

#else

const struct tcp_congestion_ops *differential_bbr3_ops(void) { return NULL; }
void differential_bbr3_state(const struct sock *sk, u64 *fields) { (void)sk, (void)fields; }
void differential_bbr3_lost(struct sock *sk, u32 segments, const struct loss_plan *loss) { (void)sk, (void)segments, (void)loss; }
void differential_bbr3_repaired(struct sock *sk) { (void)sk; }

#endif
