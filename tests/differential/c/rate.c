/* Linux's tcp_rate.c as it is, over a ring of segments. */
#include "net/ipv4/tcp_rate.c"

#define SEGMENTS 4096

static struct sk_buff segments[SEGMENTS];
static struct tcp_sock rated;
static struct rate_sample sample;

struct rate_view {
	u64 first_tx_mstamp, delivered_mstamp, prior_mstamp;
	s64 interval_us;
	s32 delivered;
	u32 total, app_limited, prior_delivered, is_app_limited, is_retrans;
};

void differential_rate_open(u64 now_us, u32 delivered)
{
	memset(&rated, 0, sizeof(rated));
	rated.delivered = delivered;
	rated.delivered_mstamp = rated.first_tx_mstamp = rated.tcp_mstamp = now_us;
	rated.mss_cache = 1;
	rated.snd_cwnd = 1u << 30;
}

void differential_rate_sent(u32 index, u64 now_us, u32 packets_out, u32 end_seq, bool retransmission)
{
	struct sk_buff *skb = &segments[index % SEGMENTS];
	struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

	skb->skb_mstamp_ns = now_us * NSEC_PER_USEC;
	cb->end_seq = end_seq;
	cb->sacked = retransmission ? TCPCB_SACKED_RETRANS | TCPCB_EVER_RETRANS : 0;
	rated.packets_out = packets_out;
	tcp_rate_skb_sent(&rated.inet_conn.sk, skb);
}

void differential_rate_begin(void) { sample = (struct rate_sample){ .prior_delivered = 0 }; }

/* Linux calls it of a SACKed segment when it is SACKed, and once more when it is acknowledged. */
void differential_rate_delivered(u32 index, bool sacked)
{
	struct sk_buff *skb = &segments[index % SEGMENTS];

	if (sacked)
		TCP_SKB_CB(skb)->sacked |= TCPCB_SACKED_ACKED;
	tcp_rate_skb_delivered(&rated.inet_conn.sk, skb, &sample);
}

void differential_rate_end(u64 now_us, u32 delivered, u32 lost, u32 min_rtt_us)
{
	rated.tcp_mstamp = now_us;
	rated.delivered += delivered;
	minmax_reset(&rated.rtt_min, 0, min_rtt_us);
	tcp_rate_gen(&rated.inet_conn.sk, delivered, lost, false, &sample);
}

void differential_rate_app_limited(u32 in_flight)
{
	/* All of the conditions hold: nothing to send, nothing queued, room in the window. */
	rated.packets_out = in_flight;
	tcp_rate_check_app_limited(&rated.inet_conn.sk);
}

void differential_rate_view(struct rate_view *view)
{
	*view = (struct rate_view){
		.first_tx_mstamp = rated.first_tx_mstamp, .delivered_mstamp = rated.delivered_mstamp,
		.prior_mstamp = sample.prior_mstamp, .interval_us = sample.interval_us, .delivered = sample.delivered,
		.total = rated.delivered, .app_limited = rated.app_limited, .prior_delivered = sample.prior_delivered,
		.is_app_limited = sample.is_app_limited, .is_retrans = sample.is_retrans,
	};
}
