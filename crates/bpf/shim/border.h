// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The border between the shim and the controller in Rust (src/lib.rs, program/src/lib.rs), and what the shim keeps of a
// connection.

#define STATE_BYTES 768
#define PARAMS_BYTES 512

// `Event` in src/lib.rs, member by member.
struct event {
	u64 now_us, delivered_us, departure_ns, delivered, lost;
	u32 jiffies, packets_out, in_flight, srtt_us, min_rtt_us, random, ca_state, app_limited;
	// The rate sample, for an ACK.
	u64 prior_delivered_us, prior_delivered;
	s64 interval_us, rtt_us;
	s32 sampled;
	u32 prior_in_flight, newly_delivered, newly_lost, flags, max_packets_out, tx_in_flight, lost_since_sent,
		marked_since_sent, newly_acked;
	u64 snd_una, snd_nxt;
	// Init.
	u32 mss, cwnd_clamp, hz, initial_cwnd, gso_max, ssthresh;
	u64 max_rate;
	// A run of lost segments.
	u64 tx_delivered, tx_lost;
	u32 units, new_range;
	// A change of state.
	u32 to, reduce, proven, timer;
	// Transmission starts.
	u64 last_sent_us, rto_us;
};
_Static_assert(sizeof(struct event) == 248, "as src/lib.rs says");

// Of `event::flags`.
enum { APP_LIMITED = 1 << 1, RETRANSMITTED = 1 << 2, MAYBE_DELAYED = 1 << 3, CWND_LIMITED = 1 << 4, ECHOED = 1 << 5,
       UNA_ADVANCED = 1 << 6, MAY_RAISE = 1 << 7, PACED = 1 << 8 };

// `Outcome` in src/lib.rs.
struct outcome {
	u64 rate, bandwidth;
	u32 cwnd, ssthresh, min_burst, mark_app_limited, phase, min_rtt_us;
};
_Static_assert(sizeof(struct outcome) == 40, "as src/lib.rs says");

// `Call` in src/lib.rs.
enum call { INIT, ACK, LOST, STATE, UNDO, START, MARKS, MSS };

struct controller {
	u64 state[STATE_BYTES / 8];
	struct event event;
	struct outcome outcome;
};

// What the loader writes into the object before the kernel sees it: it looks for the text (src/objects.rs). The kernel treats
// these values as constants, and removes the code of what is off.
volatile const struct {
	char marker[16];
	u32 hz;
	u32 paced;
	u32 recording;
	u32 timing;
	u8 params[PARAMS_BYTES];
} options SEC(".rodata") = { .marker = "fullpipe-options", .hz = 1000, .paced = 1 };

extern void fullpipe_init(void *state, const void *params, const struct event *event, struct outcome *outcome);

// Each call of the controller. Returns 1 if it panicked, in which case Rust leaves this very function behind LLVM's back: it
// must not conclude that the answer is always 0.
INLINE int no_panic(void)
{
	int panicked = 0;

	asm volatile("" : "+r"(panicked));
	return panicked;
}
#define CALL(name)                                                                                                     \
	extern void fullpipe_##name(void *state, const struct event *event, struct outcome *outcome);                  \
	VERIFIED_ALONE int call_##name(struct controller *c)                                                           \
	{                                                                                                              \
		if (!c)                                                                                                \
			return 0;                                                                                      \
		fullpipe_##name(c->state, &c->event, &c->outcome);                                                     \
		return no_panic();                                                                                     \
	}
CALL(ack)
CALL(lost)
CALL(state)
CALL(undo)
CALL(start)
CALL(marks)
CALL(mss)

VERIFIED_ALONE int call_init(struct controller *c)
{
	const void *params = (const void *)options.params;

	if (!c)
		return 0;
	// They are not the zeros that the compiler sees here.
	asm volatile("" : "+r"(params));
	fullpipe_init(c->state, params, &c->event, &c->outcome);
	return no_panic();
}

// ---- What the shim keeps of a connection ----------------------------------------------------------------------------

// A send, as it found the connection. Powers of two.
#define SENDS 512
#define RESENDS 128

struct sent {
	u32 seq, in_flight, lost, delivered;
};

struct resent {
	u32 seq, end, in_flight, lost, delivered, noted;
};

#define INTACT 0x66756c6c70697065

struct flow {
	u64 magic;
	struct controller c;
	u64 id;
	u64 delivered, lost, una, nxt; // What Linux counts in 32 bits.
	u32 ca_state; // As the controller knows it.
	u32 mss;
	u32 reducing; // `ssthresh` was called: a reduction begins.
	u32 ce_seen;
	// safety.h
	u64 last_us, last_delivered_us, floor_us, floor_delivered;
	u32 floor_rounds, floor_lost;
	// sends.h
	u64 node; // Where a walk through the unacknowledged segments is.
	u32 newest, sends, newest_resent, resends;
	u32 lost_seen, lost_high, lost_end, resent_seen;
	struct {
		u32 in_flight, lost, delivered;
	} before; // The connection at the end of the last hook.
	struct sent sent[SENDS];
	struct resent resent[RESENDS];
};
_Static_assert(sizeof(struct flow) <= 16384, "what a socket may cost");

struct {
	NUMBER(type, MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct flow);
} flows SEC(".maps");

// What `fullpipe kernel status` shows: `COUNTERS` in crates/kernel/src/congestion/status.rs.
enum counter { CONNECTIONS, FELL_STORAGE, FELL_STUCK, FELL_CLOCK, FELL_MAGIC, FELL_OUTCOME, FELL_PANIC, SENDS_UNKNOWN,
	       LOSSES_UNKNOWN, STATES_LATE, RECORDS_LOST, COUNTERS = 16 };

struct {
	NUMBER(type, MAP_TYPE_ARRAY);
	NUMBER(max_entries, COUNTERS);
	TYPE(key, u32);
	TYPE(value, u64);
} counters SEC(".maps");

INLINE void count(u32 which, u64 more)
{
	u64 *counter = map_lookup_elem(&counters, &which);

	if (counter)
		__sync_fetch_and_add(counter, more);
}

// Which object this is, in JSON. User space writes and reads it.
struct about {
	char text[1024];
};
struct {
	NUMBER(type, MAP_TYPE_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct about);
} about SEC(".maps");

// ---- Recording: every call, for a replay ----------------------------------------------------------------------------

struct record {
	u64 id;
	u32 call, network;
	struct event event;
	struct outcome outcome;
};

// One page, unless the loader asks for more because it records.
struct {
	NUMBER(type, MAP_TYPE_RINGBUF);
	NUMBER(max_entries, 4096);
} calls SEC(".maps");

INLINE void record(struct sock *sk, struct flow *flow, enum call call)
{
	struct record *record;

	if (!options.recording)
		return;
	record = ringbuf_reserve(&calls, sizeof(*record), 0);
	if (!record) {
		count(RECORDS_LOST, 1);
		return;
	}
	record->id = flow->id;
	record->call = call;
	record->network = sk->__sk_common.skc_net.net->ns.inum;
	record->event = flow->c.event;
	record->outcome = flow->c.outcome;
	ringbuf_submit(record, NO_WAKEUP);
}

// ---- Time of an ACK, in buckets of doubling length from 64 ns -------------------------------------------------------

#define BUCKETS 24
struct {
	NUMBER(type, MAP_TYPE_ARRAY);
	NUMBER(max_entries, BUCKETS);
	TYPE(key, u32);
	TYPE(value, u64);
} times SEC(".maps");

INLINE void took(u64 ns)
{
	u32 bucket = 0;
	u64 *counter;

	ns >>= 6;
	for (int step = 0; step < BUCKETS - 1; step++) {
		if (!ns)
			break;
		ns >>= 1;
		bucket++;
	}
	counter = map_lookup_elem(&times, &bucket);
	if (counter)
		__sync_fetch_and_add(counter, 1);
}
