// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Calls that the kernel made without running the program (recorder.rs says when): they are noticed, counted and made up for.

// Makes up for calls that were skipped, and counts them. A skipped `ssthresh` has left garbage in the threshold, from
// which the kernel would set the window at the end of the recovery. Both functions run late here, on the window of
// before the loss. They are recorded like any call.
static __attribute__((noinline)) int catch_up(struct sock *sk, u32 hook)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct seen *seen = sk_storage_get(&sockets, sk, 0, CREATE);
	u32 ca_state = BITS(icsk, icsk_ca_state);

	if (!seen)
		return 0;
	if (!seen->known) {
		seen->known = 1;
		seen->ca_state = ca_state;
		return 0;
	}
	// An undo puts lost segments back into flight.
	if (seen->idle && in_flight(tp) && hook != UNDO)
		count_one(&missed);
	if (ca_state >= TCP_CA_CWR && seen->ssthresh_known && tp->snd_ssthresh != seen->ssthresh) {
		u32 cwnd = tp->snd_cwnd, ssthresh;
		struct record *record;

		count_one(&missed);
		tp->snd_ssthresh = seen->ssthresh;
		if (tp->prior_cwnd)
			tp->snd_cwnd = tp->prior_cwnd;
		record = new_record(sk, SSTHRESH);
		note_time(record);
		ssthresh = KERNEL_SSTHRESH(sk);
		submit(sk, record, ssthresh);
		tp->snd_cwnd = cwnd;
		tp->snd_ssthresh = ssthresh;
	}
	if (ca_state != seen->ca_state) {
		struct record *record = new_record(sk, SET_STATE);

		count_one(&missed);
		seen->ca_state = ca_state;
		note_arguments(record, ca_state, 0, 0);
		note_time(record);
		KERNEL_SET_STATE(sk, ca_state);
		submit(sk, record, 0);
	}
	return 0;
}

ALWAYS_INLINE struct record *before(struct sock *sk, enum hook hook)
{
	// A socket that is thrown away is cleared and then set to its first state. That is no decision about a connection.
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return 0;
	catch_up(sk, hook);
	return new_record(sk, hook);
}

// Submits the record and remembers what the next call must find. `value` is the argument of CWND_EVENT and SET_STATE.
ALWAYS_INLINE void after(struct sock *sk, struct record *record, enum hook hook, u32 value, u32 returned)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct seen *seen;

	submit(sk, record, returned);
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		return;
	seen = sk_storage_get(&sockets, sk, 0, 0);
	if (!seen)
		return;
	seen->ssthresh = hook == SSTHRESH ? returned : tp->snd_ssthresh;
	seen->ssthresh_known = hook != UNDO;
	seen->idle = !in_flight(tp) && !(hook == CWND_EVENT && value == CA_EVENT_TX_START);
	if (hook == SET_STATE)
		seen->ca_state = value;
}

#ifdef SKIP_EPISODES
// For a test: whether to behave as a program that was skipped. So it is in every other episode, from `ssthresh` to the
// change of state, as when one timer makes all of these calls.
ALWAYS_INLINE int skipped(struct sock *sk, enum hook hook)
{
	struct seen *seen = sk_storage_get(&sockets, sk, 0, CREATE);

	if (!seen)
		return 0;
	if (hook == SSTHRESH)
		return seen->skipping = ++seen->episodes & 1;
	if (hook == SET_STATE && seen->skipping) {
		seen->skipping = 0;
		return 1;
	}
	return hook == CWND_EVENT && seen->skipping;
}
#define GARBAGE 668121856
#define MAY_BE_SKIPPED(hook, returned)                                                                                 \
	if (skipped(sk, hook))                                                                                         \
		return returned;
#else
#define MAY_BE_SKIPPED(hook, returned)
#endif
