/* What the Rust side plans, and what it gets to know. src/linux.rs mirrors these structures field by field. */
#ifndef DIFFERENTIAL_API_H
#define DIFFERENTIAL_API_H

#include <stdbool.h>
#include <stdint.h>

/* A connection at one moment. */
struct snapshot {
	uint64_t tcp_mstamp, tcp_wstamp_ns, delivered_mstamp;
	uint32_t jiffies, delivered, lost, packets_out, in_flight, srtt_us, min_rtt_us, ca_state, app_limited;
	uint32_t snd_una, snd_nxt, random;
};

enum { LOG_RTT, LOG_CE, LOG_UNDO, LOG_STATE, LOG_ACK, LOG_UNUSED, LOG_TX_START, LOG_LOST, LOG_REPAIR };

/* Something that Linux's core did in an event, in its order. */
struct entry {
	uint32_t kind;
	/* LOG_STATE: the new state; whether ssthresh was called for it, the ACK carries a mark, a timer caused it. LOG_CE: whether the
	 * core has taken note of a mark; acked_sacked is by how much delivered_ce grew.
	 */
	uint32_t to, reduce, proven, timer;
	/* LOG_RTT, LOG_ACK; -1 for none. */
	int64_t rtt_us;
	/* LOG_UNUSED: segments. LOG_TX_START: idle since lsndtime, in jiffies, and the timeout. */
	uint32_t used, idle, rto;
	/* LOG_ACK. */
	uint32_t may_raise, una_advanced, acked, is_cwnd_limited, max_packets_out;
	uint32_t prior_in_flight, acked_sacked, losses, is_ack_delayed;
	int64_t delivered, interval_us;
	uint64_t prior_mstamp;
	uint32_t prior_delivered, is_app_limited, is_retrans;
	/* Of Google's kernel. LOG_LOST: acked segments, sent with so many in flight and lost since; LOG_REPAIR: is_app_limited. */
	uint32_t tx_in_flight, lost_since, marked_since, may_answer_probe;
	struct snapshot at;
};

/* One ACK. Counts are in segments. */
struct plan {
	/* Cumulatively acknowledged; of those were SACKed, marked lost, retransmitted before. */
	uint32_t acked, acked_sacked, acked_lost, acked_retrans;
	/* Newly SACKed; of those were marked lost, retransmitted. */
	uint32_t sacked, sacked_lost, sacked_retrans;
	/* Reported as duplicates. */
	uint32_t duplicates;
	/* Newly marked lost, and retransmissions that are found lost. */
	uint32_t lost, lost_retrans;
	int32_t rtt_us;
	uint32_t srtt_us, min_rtt_us;
	uint32_t original, ece, maybe_delayed, packet_delayed, duplicate_of_probe, any_retrans, window_update, old;
	/* The delivery-rate sample. */
	int32_t delivered;
	int64_t interval_us;
	uint64_t prior_mstamp;
	uint32_t prior_delivered, is_app_limited, is_retrans;
	/* What Google's kernel adds to it. */
	uint32_t tx_in_flight, lost_since, marked_since;
};

/* What the losses of the next event were sent with, and in how many runs they come. */
struct loss_plan {
	uint32_t tx_in_flight, since, app_limited, runs;
};

/* A new connection. */
struct setup {
	uint32_t control, mss, cwnd_clamp, hz, gso_max, paced, slow_start_after_idle, pacing_ss_ratio, pacing_ca_ratio;
	uint32_t delivered, lost, seq, srtt_us, min_rtt_us, reordering, jiffies;
	uint64_t max_pacing_rate, now_us;
	/* Of CUBIC. */
	int32_t hystart, hystart_detect, hystart_low_window, hystart_ack_delta_us, fast_convergence, tcp_friendliness;
	int32_t beta, bic_scale;
	/* Of Vegas. */
	int32_t vegas_alpha, vegas_beta, vegas_gamma;
	/* Of DCTCP. */
	uint32_t dctcp_shift_g, dctcp_alpha_on_init;
	/* Of Google's BBR: the route says that marks are those of a shallow threshold. */
	uint32_t ecn_low;
};

/* What is compared, and what the generator looks at. */
struct view {
	uint64_t pacing_rate, now_us;
	uint32_t cwnd, ssthresh, cwnd_cnt, prior_cwnd, prior_ssthresh, prr_delivered, prr_out, app_limited;
	uint32_t packets_out, sacked_out, lost_out, retrans_out, in_flight, ca_state, undo_marker, high_seq;
	uint32_t snd_una, snd_nxt, delivered, lost, jiffies, lsndtime, tlp_high_seq, frto, min_tso_segs;
	int32_t undo_retrans;
	uint64_t private_[64];
};

#endif
