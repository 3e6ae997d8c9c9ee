// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What stock TCP does not hand over and BBRv3 needs: the connection as each sampled or lost segment found it when it was
// sent, and each lost segment.
//
// `min_tso_segs` runs before each send and sees the state before it. So each call notes where the next segment begins
// (`snd_nxt`), and what is in flight, lost and delivered: the ring `sent`. A retransmission is noticed at the next hook, in the
// list of segments by send time. A loss is found in the tree of unacknowledged segments when the count of losses has grown.
// docs/how-to/bbr3-on-your-kernel.md lists where that is not exact.

struct seen {
	u32 in_flight, lost, delivered, seq;
};

INLINE u64 wide(u64 *total, u32 now)
{
	*total += (u32)(now - (u32)*total);
	return *total;
}

// The total that was `then` in 32 bits.
INLINE u64 earlier(u64 total, u32 then)
{
	return total - (u32)((u32)total - then);
}

INLINE void look(struct flow *flow, struct tcp_sock *tp)
{
	flow->before.in_flight = in_flight(tp);
	flow->before.lost = tp->lost;
	flow->before.delivered = tp->delivered;
}

// Notes what the next send finds. So many sends are in flight at most: where there would be more, some share a note.
INLINE void note_send(struct flow *flow, struct tcp_sock *tp)
{
	u32 next = tp->snd_nxt, at = flow->newest & (SENDS - 1);
	u32 since = next - flow->sent[at].seq;

	if (flow->sends && since && since < (next - tp->snd_una) / (SENDS - 64))
		return;
	if (!flow->sends || since) {
		flow->newest++;
		flow->sends += flow->sends < SENDS;
		at = flow->newest & (SENDS - 1);
	}
	flow->sent[at].seq = next;
	flow->sent[at].in_flight = in_flight(tp);
	flow->sent[at].lost = tp->lost;
	flow->sent[at].delivered = tp->delivered;
}

// The send that the byte `seq` left with. Returns whether it is known.
VERIFIED_ALONE int find_send(struct flow *flow, u32 seq, struct seen *seen)
{
	u32 known, low = 0, high;

	if (!flow || !seen)
		return 0;
	known = high = flow->sends;
	for (int step = 0; step < 11; step++) {
		u32 middle = (low + high) / 2;

		if (low >= high)
			break;
		if ((s32)(flow->sent[(flow->newest - middle) & (SENDS - 1)].seq - seq) <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (low >= known)
		return 0;
	low = (flow->newest - low) & (SENDS - 1);
	seen->in_flight = flow->sent[low].in_flight;
	seen->lost = flow->sent[low].lost;
	seen->delivered = flow->sent[low].delivered;
	seen->seq = flow->sent[low].seq;
	return 1;
}

// The retransmission of the byte `seq` that left when `delivered` segments were. A loss takes each one once.
VERIFIED_ALONE int find_resend(struct flow *flow, u32 seq, u32 delivered, int lost, struct seen *seen)
{
	u32 known, low = 0, high;

	if (!flow || !seen)
		return 0;
	known = high = flow->resends;
	for (int step = 0; step < 9; step++) {
		u32 middle = (low + high) / 2;

		if (low >= high)
			break;
		if ((s32)(flow->resent[(flow->newest_resent - middle) & (RESENDS - 1)].delivered - delivered) <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	for (int step = 0; step < 24; step++) {
		struct resent *one = &flow->resent[(flow->newest_resent - low) & (RESENDS - 1)];

		if (low >= known || one->delivered != delivered)
			break;
		if ((s32)(seq - one->seq) >= 0 && (s32)(seq - one->end) < 0 && !(lost && one->noted)) {
			if (lost)
				one->noted = 1;
			seen->in_flight = one->in_flight;
			seen->lost = one->lost;
			seen->delivered = one->delivered;
			seen->seq = one->seq;
			return 1;
		}
		low++;
	}
	return 0;
}

// What was in flight with the send that ends at `end`, itself included.
INLINE u32 flight_with(struct flow *flow, struct seen *seen, u32 end)
{
	u32 mss = flow->mss ? flow->mss : 1;

	return seen->in_flight + (end - seen->seq + mss - 1) / mss;
}

// ---- Retransmissions ------------------------------------------------------------------------------------------------

struct resend_walk {
	struct flow *flow;
	u64 at, head;
	u32 remaining;
};

static long note_resend(u32 step, struct resend_walk *walk)
{
	struct flow *flow = walk->flow;
	struct tcp_skb_cb *cb;
	struct resent *one;
	u32 segments;

	if (!walk->remaining || walk->at == walk->head)
		return 1;
	cb = AS(struct tcp_skb_cb, walk->at - FIELD_OFFSET(struct sk_buff, tcp_tsorted_anchor) + FIELD_OFFSET(struct sk_buff, cb));
	if (!(cb->sacked & TCPCB_SACKED_RETRANS))
		return 1;
	segments = cb->tcp_gso_segs;
	if (segments > walk->remaining)
		segments = walk->remaining;
	walk->remaining -= segments;
	flow->newest_resent++;
	flow->resends += flow->resends < RESENDS;
	one = &flow->resent[flow->newest_resent & (RESENDS - 1)];
	one->seq = cb->seq;
	one->end = cb->end_seq;
	one->in_flight = flow->before.in_flight + walk->remaining;
	one->lost = flow->before.lost;
	one->delivered = cb->tx.delivered;
	one->noted = 0;
	walk->at = (u64)AS(struct list_head, walk->at)->prev;
	return 0;
}

// Takes the retransmissions since the last hook off the end of the list of segments by send time.
INLINE void note_resends(struct flow *flow, struct tcp_sock *tp)
{
	struct resend_walk walk = { .flow = flow, .remaining = tp->total_retrans - flow->resent_seen };

	if (!walk.remaining)
		return;
	flow->resent_seen = tp->total_retrans;
	walk.head = (u64)&tp->tsorted_sent_queue;
	walk.at = (u64)tp->tsorted_sent_queue.prev;
	loop(64, note_resend, &walk, 0);
}

// ---- Losses ---------------------------------------------------------------------------------------------------------

// The deepest that a balanced tree of four thousand segments can be, and more.
#define DEPTH 40

INLINE u64 left_of(u64 node)
{
	return (u64)AS(struct rb_node, node)->rb_left;
}

INLINE u64 right_of(u64 node)
{
	return (u64)AS(struct rb_node, node)->rb_right;
}

INLINE u64 parent_of(u64 node)
{
	return AS(struct rb_node, node)->__rb_parent_color & ~3ull;
}

// From `flow->node` to the first segment below it. In the flow's memory the verifier forgets which pointer it was, and so looks
// at these two functions once.
VERIFIED_ALONE int go_to_first(struct flow *flow)
{
	u64 node;

	if (!flow)
		return 0;
	node = flow->node;
	for (int step = 0; step < DEPTH && node; step++) {
		u64 left = left_of(node);

		if (!left)
			break;
		node = left;
	}
	flow->node = node;
	return 0;
}

// From `flow->node` to the segment after it, or to 0.
VERIFIED_ALONE int go_to_next(struct flow *flow)
{
	u64 node, parent = 0;

	if (!flow)
		return 0;
	node = flow->node;
	flow->node = right_of(node);
	if (flow->node)
		return go_to_first(flow);
	for (int step = 0; step < DEPTH; step++) {
		parent = parent_of(node);
		if (!parent || right_of(parent) != node)
			break;
		node = parent;
	}
	flow->node = parent;
	return 0;
}

struct loss_walk {
	struct sock *sk;
	struct flow *flow;
	u32 wanted, found, panicked;
};

static long note_loss(u32 step, struct loss_walk *walk)
{
	struct flow *flow = walk->flow;
	struct event *event = &flow->c.event;
	struct tcp_skb_cb *cb;
	u32 sacked, known = 0, fresh = 0;

	if (!flow->node || walk->found >= walk->wanted)
		return 1;
	cb = AS(struct tcp_skb_cb, flow->node + FIELD_OFFSET(struct sk_buff, cb));
	sacked = cb->sacked;
	if (sacked & TCPCB_LOST && !(sacked & TCPCB_SACKED_RETRANS)) {
		u32 seq = cb->seq, end = cb->end_seq, segments = cb->tcp_gso_segs;
		struct seen seen = {};

		if (sacked & TCPCB_EVER_RETRANS) {
			fresh = known = find_resend(flow, seq, cb->tx.delivered, 1, &seen);
		} else if ((s32)(seq - flow->lost_high) >= 0) {
			fresh = 1;
			flow->lost_high = end;
			known = find_send(flow, end - 1, &seen);
		}
		if (fresh) {
			walk->found += segments;
			event->units = segments;
			event->new_range = seq != flow->lost_end;
			flow->lost_end = end;
			if (known) {
				event->tx_in_flight = flight_with(flow, &seen, end);
				event->tx_delivered = earlier(flow->delivered, seen.delivered);
				event->tx_lost = earlier(flow->lost, seen.lost);
			} else {
				count(SENDS_UNKNOWN, 1);
				event->tx_in_flight = event->in_flight + segments;
				event->tx_delivered = earlier(flow->delivered, cb->tx.delivered);
				event->tx_lost = flow->lost - walk->wanted;
			}
			event->lost = flow->lost - walk->wanted + walk->found;
			event->flags = BITS(cb, tx.is_app_limited) ? APP_LIMITED : 0;
			walk->panicked |= call_lost(&flow->c);
			record(walk->sk, flow, LOST);
		}
	}
	go_to_next(flow);
	return 0;
}
