/* Linux's tcp_cubic.c as it is, its module parameters, and a view of its private state. */
#include "net/ipv4/tcp_cubic.c"
#include "api.h"

const struct tcp_congestion_ops *differential_cubic_ops(const struct setup *setup);
void differential_cubic_state(const struct sock *sk, u64 *fields);

const struct tcp_congestion_ops *differential_cubic_ops(const struct setup *setup)
{
	hystart = setup->hystart;
	hystart_detect = setup->hystart_detect;
	hystart_low_window = setup->hystart_low_window;
	hystart_ack_delta_us = setup->hystart_ack_delta_us;
	fast_convergence = setup->fast_convergence;
	tcp_friendliness = setup->tcp_friendliness;
	beta = setup->beta;
	bic_scale = setup->bic_scale;
	cubictcp_register();
	return &cubictcp;
}

void differential_cubic_state(const struct sock *sk, u64 *fields)
{
	const struct bictcp *ca = inet_csk_ca(sk);
	const u64 state[16] = {
		ca->cnt, ca->last_max_cwnd, ca->last_cwnd, ca->last_time, ca->bic_origin_point, ca->bic_K, ca->delay_min,
		ca->epoch_start, ca->ack_cnt, ca->tcp_cwnd, ca->sample_cnt, ca->found, ca->round_start, ca->end_seq,
		ca->last_ack, ca->curr_rtt,
	};

	memcpy(fields, state, sizeof(state));
}
