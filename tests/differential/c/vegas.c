/* Linux's tcp_vegas.c as it is, its module parameters, and a view of its private state. */
#include "net/ipv4/tcp_vegas.c"
#include "api.h"

const struct tcp_congestion_ops *differential_vegas_ops(const struct setup *setup);
void differential_vegas_state(const struct sock *sk, u64 *fields);

const struct tcp_congestion_ops *differential_vegas_ops(const struct setup *setup)
{
	alpha = setup->vegas_alpha;
	beta = setup->vegas_beta;
	gamma = setup->vegas_gamma;
	return &tcp_vegas;
}

void differential_vegas_state(const struct sock *sk, u64 *fields)
{
	const struct vegas *vegas = inet_csk_ca(sk);

	fields[0] = vegas->baseRTT;
}
