/* Reno and what all loss-based algorithms share, from Linux's tcp_cong.c by name. */
#include "kernel.h"
#include "linux_cong.h"

struct tcp_congestion_ops differential_reno_ops = {
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};
