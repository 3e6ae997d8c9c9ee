/* Linux's tcp_dctcp.c as it is, its module parameters, and a view of its private state. Its half for receivers is not called. */
#include "kernel.h"
#include "api.h"

#define TCP_ECN_OK 1
#define TCP_ECN_DEMAND_CWR 4
#define TCP_LISTEN 10
#define TCP_CLOSE 7
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define INET_DIAG_DCTCPINFO 9
#define INET_ECN_dontxmit(sk) ((void)(sk))
#define __tcp_send_ack(sk, next, flags) ((void)(sk), (void)(next))
#define min_not_zero(x, y) ({ __auto_type x_ = (x); __auto_type y_ = (y); x_ == 0 ? y_ : (y_ == 0 ? x_ : min(x_, y_)); })

struct kernel_param { int unused; };
struct kernel_param_ops { int (*set)(const char *, const struct kernel_param *); void *get; };
#define param_set_uint_minmax(value, param, least, most) 0
#define param_get_uint NULL
#define module_param_cb(name, ops, where, mode) \
	const void *name##_param_(void); const void *name##_param_(void) { return ops; }

/* Rerouting, which is off by default. */
#define TCP_PLB_SCALE 8
struct tcp_plb_state { u8 unused; };
#define tcp_plb_init(sk, plb) ((void)(plb))
#define tcp_plb_update_state(sk, plb, ratio) ((void)(plb), (void)(ratio))
#define tcp_plb_check_rehash(sk, plb) ((void)(plb))
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)(plb))

#include "net/ipv4/tcp_dctcp.c"

const struct tcp_congestion_ops *differential_dctcp_ops(const struct setup *setup);
void differential_dctcp_state(const struct sock *sk, u64 *fields);

const struct tcp_congestion_ops *differential_dctcp_ops(const struct setup *setup)
{
	dctcp_shift_g = setup->dctcp_shift_g;
	dctcp_alpha_on_init = setup->dctcp_alpha_on_init;
	return &dctcp;
}

void differential_dctcp_state(const struct sock *sk, u64 *fields)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct dctcp *ca = inet_csk_ca(sk);

	fields[0] = ca->dctcp_alpha;
	fields[1] = ca->next_seq;
	fields[2] = ca->old_delivered;
	fields[3] = tp->delivered_ce - ca->old_delivered_ce;
}
