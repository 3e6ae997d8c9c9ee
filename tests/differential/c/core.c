/* Linux's core, from tcp_input.c, tcp_output.c and tcp_recovery.c by name (linux_core.h, made by build.rs), over a
 * scoreboard that has numbers only: how many segments are out, SACKed, lost and retransmitted. What an ACK does to them comes
 * from the plan. The functions between the two marks are ours; all others are Linux's.
 */
#include "kernel.h"
#include "api.h"

u32 event_jiffies, event_random, event_hz = 1000;

static struct net net;
static struct socket a_socket;
static struct tcp_sock the_socket;
static struct tcp_congestion_ops shim;
static const struct tcp_congestion_ops *linux_ops;
/* Shared with bbr3.c. */
struct plan plan;
bool event_is_ece, event_may_answer_probe;
static struct loss_plan loss_plan;
static struct entry entries[32];
static u32 entries_len;
static bool reducing, in_timer, ece_ack_now;
static struct entry *marks;
static u32 prior_delivered_ce;
/* The last draw that our controller was told of: an event without one uses it again. */
static u32 told_random;
static u32 control;

void differential_bbr3_lost(struct sock *sk, u32 segments, const struct loss_plan *loss);
void differential_bbr3_repaired(struct sock *sk);

#define MOST_ENTRIES (sizeof(entries) / sizeof(entries[0]))

static struct snapshot snapshot(const struct tcp_sock *tp)
{
	return (struct snapshot){
		.tcp_mstamp = tp->tcp_mstamp, .tcp_wstamp_ns = tp->tcp_wstamp_ns, .delivered_mstamp = tp->delivered_mstamp,
		.jiffies = event_jiffies, .delivered = tp->delivered, .lost = tp->lost, .packets_out = tp->packets_out,
		.in_flight = tcp_packets_in_flight(tp), .srtt_us = tp->srtt_us, .min_rtt_us = tcp_min_rtt(tp),
		.ca_state = tp->inet_conn.icsk_ca_state, .app_limited = tp->app_limited, .snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt, .random = event_random,
	};
}

static struct entry *log_entry(const struct sock *sk, u32 kind)
{
	struct entry *entry = &entries[entries_len];

	if (entries_len + 1 < MOST_ENTRIES)
		entries_len++;
	memset(entry, 0, offsetof(struct entry, at));
	entry->kind = kind;
	entry->at = snapshot(tcp_sk(sk));
	if (kind == LOG_STATE || kind == LOG_ACK || kind == LOG_TX_START)
		told_random = event_random;
	return entry;
}

/* ---- the hooks of the congestion control, noted and passed on ---- */

static u32 shim_ssthresh(struct sock *sk)
{
	reducing = true;
	return linux_ops->ssthresh(sk);
}

static void shim_set_state(struct sock *sk, u8 state)
{
	struct entry *entry = log_entry(sk, LOG_STATE);

	entry->to = state;
	entry->reduce = reducing;
	entry->proven = ece_ack_now;
	entry->timer = in_timer;
	reducing = false;
	if (linux_ops->set_state)
		linux_ops->set_state(sk, state);
}

static void shim_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (linux_ops->cwnd_event)
		linux_ops->cwnd_event(sk, event);
}

static void shim_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us >= 0)
		log_entry(sk, LOG_RTT)->rtt_us = sample->rtt_us;
	if (linux_ops->pkts_acked)
		linux_ops->pkts_acked(sk, sample);
}

/* ---- what stands in for the scoreboard ---- */

struct tcphdr;
struct tcp_sacktag_state;
struct skb_shared_info { u16 gso_segs; };
static struct skb_shared_info shared_info = { .gso_segs = 1 };
#define skb_shinfo(skb) ((void)(skb), &shared_info)
#define tcp_hdr(skb) ((void)(skb), (struct tcphdr *)NULL)
#define SKB_DROP_REASON_TCP_TOO_OLD_ACK 1
#define SKB_DROP_REASON_TCP_ACK_UNSENT_DATA 2
#define tcp_send_challenge_ack(sk) ((void)(sk))
#define tcp_replace_ts_recent(tp, seq) ((void)(tp))
#define tcp_update_wl(tp, seq) ((void)(tp))
#define tcp_ecn_rcv_ecn_echo(tp, header) (plan.ece)
#define tcp_ecn_accept_cwr(sk, skb) ((void)(sk))
#define tcp_ecn_queue_cwr(tp) ((void)(tp))
#define tcp_ecn_withdraw_cwr(tp) ((void)(tp))
#define tcp_rack_update_reo_wnd(sk, rs) ((void)(sk))
#define tcp_set_xmit_timer(sk) ((void)(sk))
#define tcp_rearm_rto(sk) ((void)(sk))
#define sk_dst_confirm(sk) ((void)(sk))
#define tcp_ack_probe(sk) ((void)(sk))
#define tcp_verify_left_out(tp) ((void)(tp))
#define tcp_check_sack_reneging(sk, flag) ((void)(sk), false)
#define tcp_check_sack_reordering(sk, seq, timestamps) ((void)(sk))
#define tcp_clear_all_retrans_hints(tp) ((void)(tp))
#define tcp_is_non_sack_preventing_reopen(sk) ((void)(sk), false)
#define tcp_reset_reno_sack(tp) ((void)(tp))
#define tcp_add_reno_sack(sk, n, ece) ((void)(sk))
#define tcp_update_rto_time(tp) ((void)(tp))
#define tcp_mtup_probe_failed(sk) ((void)(sk))
#define tcp_simple_retransmit(sk) ((void)(sk))
#define tcp_update_scoreboard(sk, n) ((void)(sk))
#define tcp_write_queue_empty(sk) ((void)(sk), false)
#define tcp_chrono_start(sk, which) ((void)(sk))
#define tcp_force_fast_retransmit(sk) ((void)(sk), false)
#define tcp_xmit_recovery(sk, rexmit) ((void)(rexmit))
#define tcp_xmit_retransmit_queue(sk) ((void)(sk))
#define tcp_packet_delayed(tp) ((void)(tp), plan.packet_delayed)
#define tcp_rate_gen planned_rate
#define skb_rbtree_walk(skb, root) for (skb = NULL; skb;)

static u32 tcp_highest_sack_seq(struct tcp_sock *tp) { return tp->snd_una; }

static bool tcp_any_retrans_done(const struct sock *sk)
{
	return tcp_sk(sk)->retrans_out || (tcp_sk(sk)->packets_out && plan.any_retrans);
}

static void tcp_snd_una_update(struct tcp_sock *tp, u32 ack)
{
	tp->bytes_acked += ack - tp->snd_una;
	tp->snd_una = ack;
}

static int tcp_ack_update_window(struct sock *sk, const struct sk_buff *skb, u32 ack, u32 ack_seq);
static int tcp_sacktag_write_queue(struct sock *sk, const struct sk_buff *skb, u32 prior_una, struct tcp_sacktag_state *state);
static void tcp_count_delivered(struct tcp_sock *tp, u32 n, bool ece)
{
	tp->delivered += n;
	tp->delivered_ce += ece ? n : 0;
}
static void tcp_in_ack_event(struct sock *sk, int flag);
static int tcp_clean_rtx_queue(struct sock *sk, const struct sk_buff *skb, u32 prior_fack, u32 prior_una,
			       struct tcp_sacktag_state *sack, bool ece);
static void planned_rate(struct sock *sk, u32 delivered, u32 lost, bool reneged, struct rate_sample *rs);
static void tcp_identify_packet_loss(struct sock *sk, int *flag);
static void tcp_timeout_mark_lost(struct sock *sk);
static void tcp_rack_detect_loss(struct sock *sk, u32 *timeout);
static void note_undo(struct sock *sk);
static void note_repair(struct sock *sk);
static void note_may_answer_probe(void);
static void note_marks(struct sock *sk, int flag);
static void note_unused(struct sock *sk);
static void note_ack(struct sock *sk, u32 ack, u32 acked_sacked, int flag, const struct rate_sample *rs);

#include "linux_core.h"

/* ---- ours again ---- */

static void note_undo(struct sock *sk) { log_entry(sk, LOG_UNDO); }

/* Google's core does both of the next two within tcp_process_tlp_ack. */
static void note_repair(struct sock *sk)
{
	u32 random = event_random;

	log_entry(sk, LOG_REPAIR)->is_app_limited = tcp_sk(sk)->tlp_orig_data_app_limited;
	event_random = told_random;
	if (control == 5)
		differential_bbr3_repaired(sk);
	event_random = random;
}

static void note_may_answer_probe(void) { event_may_answer_probe = true; }

/* Google's core: tcp_notify_skb_loss_event. */
static void note_lost(struct sock *sk, u32 segments)
{
	struct entry *entry;
	u32 random = event_random;

	if (!segments)
		return;
	tcp_sk(sk)->lost += segments;
	entry = log_entry(sk, LOG_LOST);
	entry->acked = segments;
	entry->tx_in_flight = loss_plan.tx_in_flight;
	entry->lost_since = loss_plan.since;
	entry->is_app_limited = loss_plan.app_limited;
	event_random = told_random;
	if (control == 5)
		differential_bbr3_lost(sk, segments, &loss_plan);
	event_random = random;
	/* The next run left later. */
	loss_plan.tx_in_flight += segments;
}

static void note_marks(struct sock *sk, int flag)
{
	ece_ack_now = flag & FLAG_ECE;
	if (ece_ack_now)
		marks->proven = true;
}

/* In every ACK that is not old; only those carry marks. */
static void tcp_in_ack_event(struct sock *sk, int flag)
{
	marks = log_entry(sk, LOG_CE);
	marks->acked_sacked = tcp_sk(sk)->delivered_ce - prior_delivered_ce;
	if (linux_ops->in_ack_event)
		linux_ops->in_ack_event(sk, flag);
}

static void note_unused(struct sock *sk) { log_entry(sk, LOG_UNUSED)->used = tcp_sk(sk)->snd_cwnd_used; }

static void note_ack(struct sock *sk, u32 ack, u32 acked_sacked, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct entry *entry = log_entry(sk, LOG_ACK);

	(void)ack;
	entry->rtt_us = rs->rtt_us;
	entry->may_raise = tcp_may_raise_cwnd(sk, flag);
	entry->una_advanced = !!(flag & FLAG_SND_UNA_ADVANCED);
	entry->acked = plan.acked;
	entry->is_cwnd_limited = tp->is_cwnd_limited;
	entry->max_packets_out = tp->max_packets_out;
	entry->prior_in_flight = rs->prior_in_flight;
	entry->acked_sacked = acked_sacked;
	entry->losses = rs->losses;
	entry->is_ack_delayed = rs->is_ack_delayed;
	entry->delivered = rs->delivered;
	entry->interval_us = rs->interval_us;
	entry->prior_mstamp = rs->prior_mstamp;
	entry->prior_delivered = rs->prior_delivered;
	entry->is_app_limited = rs->is_app_limited;
	entry->is_retrans = rs->is_retrans;
	entry->tx_in_flight = plan.tx_in_flight;
	entry->lost_since = plan.lost_since;
	entry->marked_since = plan.marked_since;
	entry->may_answer_probe = event_may_answer_probe;
	event_is_ece = flag & FLAG_ECE;
}

static int tcp_ack_update_window(struct sock *sk, const struct sk_buff *skb, u32 ack, u32 ack_seq)
{
	(void)skb, (void)ack_seq;
	tcp_snd_una_update(tcp_sk(sk), ack);
	return plan.window_update ? FLAG_WIN_UPDATE : 0;
}

static int tcp_sacktag_write_queue(struct sock *sk, const struct sk_buff *skb, u32 prior_una, struct tcp_sacktag_state *state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	int flag = 0;

	(void)skb, (void)prior_una;
	if (plan.duplicates) {
		/* tcp_check_dsack */
		flag |= FLAG_DSACKING_ACK;
		if (plan.duplicate_of_probe)
			flag |= FLAG_DSACK_TLP;
		if (tp->undo_marker && tp->undo_retrans > 0)
			tp->undo_retrans = max_t(int, 0, tp->undo_retrans - (int)plan.duplicates);
		state->sack_delivered += plan.duplicates;
	}
	if (plan.sacked) {
		tp->sacked_out += plan.sacked;
		tp->lost_out -= plan.sacked_lost;
		tp->retrans_out -= plan.sacked_retrans;
		state->sack_delivered += plan.sacked;
		flag |= FLAG_DATA_SACKED;
		if (plan.original)
			flag |= FLAG_ORIG_SACK_ACKED;
		tp->rack.advanced = 1;
	}
	return flag;
}

static int tcp_clean_rtx_queue(struct sock *sk, const struct sk_buff *skb, u32 prior_fack, u32 prior_una,
			       struct tcp_sacktag_state *sack, bool ece)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	int flag = 0;

	(void)skb, (void)prior_fack, (void)prior_una;
	if (plan.acked) {
		flag |= FLAG_DATA_ACKED | FLAG_SET_XMIT_TIMER;
		if (plan.acked_retrans)
			flag |= FLAG_RETRANS_DATA_ACKED;
		if (plan.original)
			flag |= FLAG_ORIG_SACK_ACKED;
		if (plan.maybe_delayed)
			flag |= FLAG_ACK_MAYBE_DELAYED;
		tp->packets_out -= plan.acked;
		tp->sacked_out -= plan.acked_sacked;
		tp->lost_out -= plan.acked_lost;
		tp->retrans_out -= plan.acked_retrans;
		tcp_count_delivered(tp, plan.acked - plan.acked_sacked, ece);
		tp->rack.advanced = 1;
	}
	sack->rate->rtt_us = plan.rtt_us;
	tp->srtt_us = plan.srtt_us;
	minmax_reset(&tp->rtt_min, event_jiffies, plan.min_rtt_us);
	if (icsk->icsk_ca_ops->pkts_acked) {
		struct ack_sample sample = { .pkts_acked = plan.acked, .rtt_us = plan.rtt_us };

		icsk->icsk_ca_ops->pkts_acked(sk, &sample);
	}
	return flag;
}

/* The end of tcp_rate_gen, with the plan's sample; the sampler itself is compared by itself. */
static void planned_rate(struct sock *sk, u32 delivered, u32 lost, bool reneged, struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)reneged;
	if (tp->app_limited && after(tp->delivered, tp->app_limited))
		tp->app_limited = 0;
	if (delivered)
		tp->delivered_mstamp = tp->tcp_mstamp;
	rs->acked_sacked = delivered;
	rs->losses = lost;
	rs->delivered = plan.delivered;
	rs->interval_us = plan.interval_us;
	rs->prior_delivered = plan.prior_delivered;
	rs->prior_mstamp = plan.prior_mstamp;
	rs->is_app_limited = plan.is_app_limited;
	rs->is_retrans = plan.is_retrans;
}

static void mark_lost(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 plain = tp->packets_out - tp->sacked_out - tp->lost_out;
	u32 lost = min(plan.lost, plain), again = min(plan.lost_retrans, tp->retrans_out);
	u32 runs = max(loss_plan.runs, 1u);

	/* A retransmission that is found lost was marked lost before, unless an undo took the mark away. */
	again = min(again, tp->lost_out + lost);
	tp->lost_out += lost;
	tp->retrans_out -= again;
	for (; runs > 1 && lost; runs--) {
		u32 run = max(lost / runs, 1u);

		note_lost(sk, run);
		lost -= run;
	}
	note_lost(sk, lost);
	note_lost(sk, again);
	plan.lost = plan.lost_retrans = 0;
}

static void tcp_identify_packet_loss(struct sock *sk, int *flag)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 prior_retrans = tp->retrans_out;

	if (!tp->packets_out || !tp->rack.advanced)
		return;
	tp->rack.advanced = 0;
	mark_lost(sk);
	if (prior_retrans > tp->retrans_out)
		*flag |= FLAG_LOST_RETRANS;
}

static void tcp_timeout_mark_lost(struct sock *sk) { mark_lost(sk); }

static void tcp_rack_detect_loss(struct sock *sk, u32 *timeout)
{
	*timeout = 0;
	mark_lost(sk);
}

/* ---- what the Rust side calls ---- */

extern struct tcp_congestion_ops differential_reno_ops;
const struct tcp_congestion_ops *differential_bbr_ops(void);
const struct tcp_congestion_ops *differential_bbr3_ops(void);
const struct tcp_congestion_ops *differential_cubic_ops(const struct setup *setup);
const struct tcp_congestion_ops *differential_dctcp_ops(const struct setup *setup);
const struct tcp_congestion_ops *differential_vegas_ops(const struct setup *setup);
void differential_bbr_state(const struct sock *sk, u64 *fields);
void differential_bbr3_state(const struct sock *sk, u64 *fields);
void differential_cubic_state(const struct sock *sk, u64 *fields);
void differential_dctcp_state(const struct sock *sk, u64 *fields);
void differential_vegas_state(const struct sock *sk, u64 *fields);

void differential_open(const struct setup *setup)
{
	struct tcp_sock *tp = &the_socket;
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->sk;

	memset(tp, 0, sizeof(*tp));
	reducing = in_timer = ece_ack_now = false;
	told_random = 0;
	loss_plan = (struct loss_plan){ .runs = 1 };
	event_hz = setup->hz;
	event_jiffies = setup->jiffies;
	net.ipv4.sysctl_tcp_slow_start_after_idle = setup->slow_start_after_idle;
	net.ipv4.sysctl_tcp_pacing_ss_ratio = setup->pacing_ss_ratio;
	net.ipv4.sysctl_tcp_pacing_ca_ratio = setup->pacing_ca_ratio;
	net.ipv4.sysctl_tcp_reordering = 3;
	net.ipv4.sysctl_tcp_frto = 2;
	net.ipv4.sysctl_tcp_min_tso_segs = 2;
	control = setup->control;
	linux_ops = control == 0 ? &differential_reno_ops : control == 1 ? differential_cubic_ops(setup) :
		    control == 2 ? differential_bbr_ops() : control == 3 ? differential_vegas_ops(setup) :
		    control == 4 ? differential_dctcp_ops(setup) : differential_bbr3_ops();
	shim = *linux_ops;
	shim.ssthresh = shim_ssthresh;
	shim.set_state = shim_set_state;
	shim.cwnd_event = shim_cwnd_event;
	shim.pkts_acked = shim_pkts_acked;
	sk->net = &net;
	sk->sk_socket = &a_socket;
	sk->sk_state = 1;
	sk->sk_pacing_rate = ~0ul;
	sk->sk_max_pacing_rate = setup->max_pacing_rate;
	sk->sk_pacing_status = setup->paced;
	sk->sk_pacing_shift = 10;
	sk->sk_gso_max_size = setup->gso_max;
	icsk->icsk_ca_ops = &shim;
	icsk->icsk_rto = setup->hz;
	tp->snd_cwnd_clamp = setup->cwnd_clamp;
	tp->snd_cwnd = min(TCP_INIT_CWND, setup->cwnd_clamp);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->mss_cache = setup->mss;
	tp->reordering = setup->reordering;
	tp->ecn_flags = 1 | (setup->ecn_low ? 16 : 0); /* TCP_ECN_OK, and Google's TCP_ECN_LOW */
	tp->delivered = setup->delivered;
	tp->lost = setup->lost;
	tp->snd_una = tp->snd_nxt = tp->high_seq = setup->seq;
	tp->snd_wnd = 1u << 30;
	tp->srtt_us = setup->srtt_us;
	minmax_reset(&tp->rtt_min, event_jiffies, setup->min_rtt_us);
	tp->tcp_mstamp = tp->delivered_mstamp = tp->first_tx_mstamp = setup->now_us;
	tp->tcp_clock_cache = tp->tcp_wstamp_ns = setup->now_us * NSEC_PER_USEC;
	tp->lsndtime = event_jiffies;
	if (linux_ops->init)
		linux_ops->init(sk);
	if (!linux_ops->cong_control)
		tcp_update_pacing_rate(sk);
	entries_len = 0;
}

/* Time passes; the next burst leaves wait_ns later. */
void differential_now(u64 now_us, u32 jiffies, u64 wait_ns, u32 random)
{
	struct tcp_sock *tp = &the_socket;

	tp->tcp_mstamp = now_us;
	tp->tcp_clock_cache = now_us * NSEC_PER_USEC;
	tp->tcp_wstamp_ns = tp->tcp_clock_cache + wait_ns;
	event_jiffies = jiffies;
	event_random = random;
	entries_len = 0;
}

void differential_ack(const struct plan *given)
{
	struct tcp_sock *tp = &the_socket;
	struct sk_buff skb = { 0 };
	bool slow;

	plan = *given;
	prior_delivered_ce = tp->delivered_ce;
	event_may_answer_probe = false;
	TCP_SKB_CB(&skb)->ack_seq = plan.old ? tp->snd_una - 1 : tp->snd_una + plan.acked;
	TCP_SKB_CB(&skb)->sacked = plan.sacked || plan.duplicates;
	slow = TCP_SKB_CB(&skb)->sacked || plan.ece || plan.window_update;
	tcp_ack(&tp->inet_conn.sk, &skb, slow ? FLAG_SLOWPATH : 0);
	ece_ack_now = false;
}

/* New segments leave: tcp_skb_entail, then tcp_write_xmit. */
void differential_send(u32 segments, bool is_cwnd_limited, u32 rto)
{
	struct tcp_sock *tp = &the_socket;
	struct sock *sk = &tp->inet_conn.sk;

	tp->inet_conn.icsk_rto = rto;
	if (!tcp_packets_in_flight(tp)) {
		struct entry *entry = log_entry(sk, LOG_TX_START);

		entry->idle = event_jiffies - tp->lsndtime;
		entry->rto = rto;
	}
	tcp_slow_start_after_idle_check(sk);
	tcp_event_data_sent(tp, sk);
	tp->snd_nxt += segments;
	tp->packets_out += segments;
	if (tcp_in_cwnd_reduction(sk))
		tp->prr_out += segments;
	tcp_cwnd_validate(sk, is_cwnd_limited);
}

/* Lost segments leave again: __tcp_retransmit_skb and tcp_xmit_retransmit_queue. */
void differential_retransmit(u32 segments, u32 rto)
{
	struct tcp_sock *tp = &the_socket;
	struct sock *sk = &tp->inet_conn.sk;

	tp->inet_conn.icsk_rto = rto;
	if (!tcp_packets_in_flight(tp)) {
		struct entry *entry = log_entry(sk, LOG_TX_START);

		entry->idle = event_jiffies - tp->lsndtime;
		entry->rto = rto;
	}
	tcp_event_data_sent(tp, sk);
	tp->retrans_out += segments;
	if (tp->undo_retrans < 0)
		tp->undo_retrans = 0;
	tp->undo_retrans += segments;
	if (tcp_in_cwnd_reduction(sk))
		tp->prr_out += segments;
}

/* A tail loss probe: the last segment once more. */
void differential_probe(bool retransmitted)
{
	struct tcp_sock *tp = &the_socket;

	tp->tlp_high_seq = tp->snd_nxt;
	tp->tlp_retrans = retransmitted;
	tp->tlp_orig_data_app_limited = tp->app_limited;
}

void differential_losses(const struct loss_plan *given) { loss_plan = *given; }

void differential_timeout(u32 lost, u32 lost_retrans)
{
	struct sock *sk = &the_socket.inet_conn.sk;

	plan = (struct plan){ .lost = lost, .lost_retrans = lost_retrans };
	in_timer = true;
	tcp_enter_loss(sk);
	in_timer = false;
	the_socket.inet_conn.icsk_retransmits++;
}

void differential_reordering_timeout(u32 lost, u32 lost_retrans, bool any_retrans)
{
	struct sock *sk = &the_socket.inet_conn.sk;

	plan = (struct plan){ .lost = lost, .lost_retrans = lost_retrans, .any_retrans = any_retrans };
	in_timer = true;
	tcp_rack_reo_timeout(sk);
	in_timer = false;
}

/* The application had nothing to send (tcp_rate_check_app_limited, whose conditions are the sender's). */
void differential_app_limited(void)
{
	struct tcp_sock *tp = &the_socket;
	u32 mark = tp->delivered + tcp_packets_in_flight(tp);

	tp->app_limited = mark ? mark : 1;
}

void differential_mss(u32 mss) { the_socket.mss_cache = mss; }

const struct entry *differential_log(u32 *len)
{
	*len = entries_len;
	return entries;
}

void differential_view(struct view *view)
{
	struct tcp_sock *tp = &the_socket;
	struct sock *sk = &tp->inet_conn.sk;

	view->pacing_rate = sk->sk_pacing_rate;
	view->now_us = tp->tcp_mstamp;
	view->cwnd = tp->snd_cwnd;
	view->ssthresh = tp->snd_ssthresh;
	view->cwnd_cnt = tp->snd_cwnd_cnt;
	view->prior_cwnd = tp->prior_cwnd;
	view->prior_ssthresh = tp->prior_ssthresh;
	view->prr_delivered = tp->prr_delivered;
	view->prr_out = tp->prr_out;
	view->app_limited = tp->app_limited;
	view->packets_out = tp->packets_out;
	view->sacked_out = tp->sacked_out;
	view->lost_out = tp->lost_out;
	view->retrans_out = tp->retrans_out;
	view->in_flight = tcp_packets_in_flight(tp);
	view->ca_state = tp->inet_conn.icsk_ca_state;
	view->undo_marker = tp->undo_marker;
	view->high_seq = tp->high_seq;
	view->snd_una = tp->snd_una;
	view->snd_nxt = tp->snd_nxt;
	view->delivered = tp->delivered;
	view->lost = tp->lost;
	view->jiffies = event_jiffies;
	view->lsndtime = tp->lsndtime;
	view->tlp_high_seq = tp->tlp_high_seq;
	view->frto = tp->frto;
	view->undo_retrans = tp->undo_retrans;
	view->min_tso_segs = linux_ops->min_tso_segs ? linux_ops->min_tso_segs(sk) : 2;
	if (control == 1)
		differential_cubic_state(sk, view->private_);
	else if (control == 2)
		differential_bbr_state(sk, view->private_);
	else if (control == 3)
		differential_vegas_state(sk, view->private_);
	else if (control == 4)
		differential_dctcp_state(sk, view->private_);
	else if (control == 5)
		differential_bbr3_state(sk, view->private_);
}
