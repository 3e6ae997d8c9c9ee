// A transport stack in Fullpipe's virtual time, behind an adapter in C. Fill an `fp_stack`, and call `fp_serve` from `main`: it speaks
// the protocol (quic/adapters/PROTOCOL.md) on standard input and output. Times are nanoseconds of the run. A stack has both ends of a
// connection: end 0 is the client, which sends the data; end 1 is the server.
#ifndef FULLPIPE_STACK_H
#define FULLPIPE_STACK_H
#include <stddef.h>
#include <stdint.h>

// A time that never comes, and a number that is not known.
#define FP_NEVER UINT64_MAX

typedef struct {
    uint64_t seed;
    const char *controller;
    // The longest datagram, bytes.
    size_t mtu;
    uint64_t receive_window, send_window;
    int ecn;
} fp_setup;

// What the sending application wants by now: bytes since the start, after which it closes (FP_NEVER: without end; 0: before it starts);
// whether it has stopped.
typedef struct {
    uint64_t total;
    int stopped;
} fp_app;

// What the sending end says of itself. `fp_serve` sets all numbers to FP_NEVER before it asks. Volumes are bytes, rates bit/s.
typedef struct {
    // The client's handshake is complete, and data may be sent; without a handshake, set it from the start. Cases count from it.
    int connected;
    // The connection has ended, and nobody wanted it to.
    int failed;
    uint64_t window, ssthresh, in_flight, srtt_ns, min_rtt_ns, pacing_bps, bandwidth_bps, lost, acked, timeouts, phase;
} fp_state;

// Datagrams in one go: when they leave (now, or later if the stack leaves pacing to its caller), their ECN codepoint, bytes of all, and of
// each but the last.
typedef struct {
    uint64_t at;
    uint8_t ecn;
    size_t bytes, each;
} fp_sent;

typedef struct {
    // Returns the connection; null, with a sentence in `why`, if it cannot be made.
    void *(*create)(const fp_setup *setup, const char **why);
    void (*receive)(void *self, int end, uint64_t now, uint8_t ecn, uint8_t *datagram, size_t bytes);
    uint64_t (*timeout)(void *self, int end);
    void (*on_timeout)(void *self, int end, uint64_t now);
    // The application of this end writes, or reads, what it can. Called after anything has happened to the end.
    void (*application)(void *self, int end, uint64_t now, const fp_app *app);
    // Writes what the end sends now, of at most `room` bytes; returns 0 if it sends nothing more.
    int (*transmit)(void *self, int end, uint64_t now, uint8_t *out, size_t room, fp_sent *sent);
    // Returns the bytes that the receiving application has, in order.
    uint64_t (*state)(void *self, fp_state *state);
} fp_stack;

// Returns a program's exit code, once the input ends. `about` is JSON of the protocol's About, with "protocol": 1. From its call on, what
// is written to standard output goes to standard error.
int fp_serve(const char *about, const fp_stack *stack);
// The time of the run, for a stack that reads the clock by itself.
uint64_t fp_now(void);
// Fills with what follows from the seed, for what the stack draws.
void fp_random(void *out, size_t bytes);
#endif
