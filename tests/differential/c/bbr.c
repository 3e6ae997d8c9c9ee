/* Linux's tcp_bbr.c as it is, and a view of its private state. */
#include "net/ipv4/tcp_bbr.c"

const struct tcp_congestion_ops *differential_bbr_ops(void);
void differential_bbr_state(const struct sock *sk, u64 *fields);

const struct tcp_congestion_ops *differential_bbr_ops(void)
{
	return &tcp_bbr_cong_ops;
}

void differential_bbr_state(const struct sock *sk, u64 *fields)
{
	const struct bbr *bbr = inet_csk_ca(sk);
	const u64 state[39] = {
		bbr->min_rtt_us, bbr->min_rtt_stamp, bbr->probe_rtt_done_stamp, bbr->bw.s[0].t, bbr->bw.s[0].v,
		bbr->bw.s[1].t, bbr->bw.s[1].v, bbr->bw.s[2].t, bbr->bw.s[2].v, bbr->rtt_cnt, bbr->next_rtt_delivered,
		bbr->cycle_mstamp, bbr->mode, bbr->prev_ca_state, bbr->packet_conservation, bbr->round_start,
		bbr->idle_restart, bbr->probe_rtt_round_done, bbr->lt_is_sampling, bbr->lt_rtt_cnt, bbr->lt_use_bw,
		bbr->lt_bw, bbr->lt_last_delivered, bbr->lt_last_stamp, bbr->lt_last_lost, bbr->pacing_gain,
		bbr->cwnd_gain, bbr->full_bw_reached, bbr->full_bw_cnt, bbr->cycle_idx, bbr->has_seen_rtt,
		bbr->prior_cwnd, bbr->full_bw, bbr->ack_epoch_mstamp, bbr->extra_acked[0], bbr->extra_acked[1],
		bbr->ack_epoch_acked, bbr->extra_acked_win_rtts, bbr->extra_acked_win_idx,
	};

	memcpy(fields, state, sizeof(state));
}
