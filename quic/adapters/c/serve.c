// The protocol of quic/adapters/PROTOCOL.md, for `fp_stack`.
#define _POSIX_C_SOURCE 200809L
#include "fullpipe_stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    uint8_t *bytes;
    size_t length, room;
} buffer;

static uint64_t now_ns, drawn;
// Where the protocol goes.
static FILE *sink;

uint64_t fp_now(void) { return now_ns; }

#ifdef FP_VIRTUAL_CLOCK
// A program's own comes before that of libc.
int clock_gettime(clockid_t clock, struct timespec *out) {
    (void)clock;
    out->tv_sec = (time_t)(1767225600 + now_ns / 1000000000), out->tv_nsec = (long)(now_ns % 1000000000);
    return 0;
}
#endif

// SplitMix64 (Steele, Lea and Flood 2014).
void fp_random(void *out, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t z = drawn;
        drawn += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        memcpy((uint8_t *)out + at, &z, bytes - at < 8 ? bytes - at : 8);
    }
}

static uint8_t *append(buffer *to, size_t bytes) {
    while (to->room - to->length < bytes) {
        to->room = to->room ? to->room * 2 : 1 << 16;
        to->bytes = realloc(to->bytes, to->room);
        if (!to->bytes) abort();
    }
    to->length += bytes;
    return to->bytes + to->length - bytes;
}

static void put(uint8_t *at, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(number >> 8 * i);
}

static uint64_t get(const uint8_t *at, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++) number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static int read_frame(buffer *into) {
    uint8_t length[4];
    into->length = 0;
    if (fread(length, 1, 4, stdin) != 4) return 0;
    size_t bytes = get(length, 4);
    append(into, bytes + 1)[bytes] = 0;
    into->length = bytes;
    return fread(into->bytes, 1, bytes, stdin) == bytes;
}

static int write_frame(const void *bytes, size_t length) {
    uint8_t head[4];
    put(head, length, 4);
    return fwrite(head, 1, 4, sink) == 4 && fwrite(bytes, 1, length, sink) == length && !fflush(sink);
}

// The value behind a key of flat JSON as the world writes it; "" if there is none.
static const char *value_of(const char *json, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(json, quoted);
    return found ? found + strlen(quoted) : "";
}

static uint64_t number_of(const char *json, const char *key) { return strtoull(value_of(json, key), 0, 10); }

typedef struct {
    const fp_stack *stack;
    void *self;
    fp_app app;
    int touched[2];
    uint64_t delivered, delivered_at;
    uint8_t *out;
} conversation;

enum { HEAD = 16 * 8 + 4, ROOM = 1 << 17 };

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

static uint64_t timer_behind(conversation *c, uint64_t now) {
    uint64_t timer = least(c->stack->timeout(c->self, 0), c->stack->timeout(c->self, 1));
    return timer > now ? timer : now + 1;
}

static uint32_t send_all(conversation *c, int end, uint64_t now, buffer *answer) {
    fp_sent sent = {0};
    uint32_t count = 0;
    while (c->stack->transmit(c->self, end, now, c->out, ROOM, &sent)) {
        if (!sent.each || sent.bytes > ROOM) {
            fprintf(stderr, "transmit() writes %zu bytes in datagrams of %zu; at most %d in datagrams of at least 1 (fp_sent)\n", sent.bytes,
                    sent.each, ROOM);
            exit(1);
        }
        for (size_t at = 0; at < sent.bytes; at += sent.each) {
            size_t length = sent.bytes - at < sent.each ? sent.bytes - at : sent.each;
            uint8_t *to = append(answer, 16 + length);
            put(to, sent.at, 8);
            to[8] = (uint8_t)end, to[9] = sent.ecn & 3, to[10] = to[11] = 0;
            put(to + 12, length, 4);
            memcpy(to + 16, c->out + at, length);
            count++;
        }
    }
    return count;
}

static void turn(conversation *c, buffer *asked, buffer *answer) {
    uint8_t *in = asked->bytes;
    uint64_t now = get(in, 8), until = get(in + 8, 8), arrivals = get(in + 16, 4), events = get(in + 20, 4), delivered = c->delivered;
    size_t at = 24, event = 24;
    uint32_t count = 0;
    fp_state state;
    for (uint64_t i = 0; i < arrivals; i++) event += 16 + get(in + event + 12, 4);
    answer->length = 0;
    append(answer, HEAD);
    for (;;) {
        now_ns = now;
        for (; arrivals && get(in + at, 8) <= now; arrivals--) {
            size_t length = get(in + at + 12, 4);
            c->stack->receive(c->self, in[at + 8], now, in[at + 9], in + at + 16, length);
            c->touched[in[at + 8]] = 1;
            at += 16 + length;
        }
        for (; events && get(in + event, 8) <= now; events--, event += 24) {
            if (in[event + 8] == 0) c->app.total = get(in + event + 16, 8);
            else c->app.stopped = 1;
            c->touched[0] = 1;
        }
        for (int end = 1; end >= 0; end--) {
            if (c->stack->timeout(c->self, end) <= now) {
                c->stack->on_timeout(c->self, end, now);
                c->touched[end] = 1;
            }
            if (!c->touched[end]) continue;
            c->touched[end] = 0;
            c->stack->application(c->self, end, now, &c->app);
            count += send_all(c, end, now, answer);
        }
        memset(&state, 0xff, sizeof state), state.connected = state.failed = 0;
        delivered = c->stack->state(c->self, &state);
        if (delivered != c->delivered) c->delivered = delivered, c->delivered_at = now;
        // A timer of now has been handled.
        uint64_t next = timer_behind(c, now);
        if (arrivals) next = least(next, get(in + at, 8));
        if (events) next = least(next, get(in + event, 8));
        if (next > until) break;
        now = next;
    }
    const uint64_t words[16] = {until, timer_behind(c, until), (state.connected ? 1u : 0u) | (state.failed ? 2u : 0u), c->delivered,
                                c->delivered_at, state.window, state.ssthresh, state.in_flight, state.srtt_ns, state.min_rtt_ns,
                                state.pacing_bps, state.bandwidth_bps, state.lost, state.acked, state.timeouts, state.phase};
    for (int i = 0; i < 16; i++) put(answer->bytes + 8 * i, words[i], 8);
    put(answer->bytes + HEAD - 4, count, 4);
}

int fp_serve(const char *about, const fp_stack *stack) {
    buffer asked = {0}, answer = {0};
    // What the stack prints must not get into the protocol.
    fflush(stdout);
    int output = dup(STDOUT_FILENO);
    sink = output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? 0 : fdopen(output, "wb");
    if (!sink) {
        perror("standard output cannot be duplicated");
        return 1;
    }
    if (!read_frame(&asked)) return 0;
    if (!write_frame(about, strlen(about)) || !read_frame(&asked)) return 0;
    char controller[64] = "";
    const char *json = (const char *)asked.bytes, *why = "it does not say why";
    sscanf(value_of(json, "controller"), "\"%63[a-z0-9_-]\"", controller);
    fp_setup setup = {number_of(json, "seed"), controller, number_of(json, "mtu"), number_of(json, "receive_window"),
                      number_of(json, "send_window"), !strncmp(value_of(json, "ecn"), "true", 4)};
    drawn = setup.seed;
    conversation c = {.stack = stack, .touched = {1, 1}, .delivered_at = FP_NEVER, .out = malloc(ROOM)};
    if (!c.out) abort();
    c.self = stack->create(&setup, &why);
    if (!c.self) {
        char text[512];
        snprintf(text, sizeof text, "{\"ok\": false, \"message\": \"%s\"}", why);
        return !write_frame(text, strlen(text));
    }
    if (!write_frame("{\"ok\": true}", 12)) return 1;
    while (read_frame(&asked)) {
        turn(&c, &asked, &answer);
        if (!write_frame(answer.bytes, answer.length)) return 1;
    }
    return 0;
}
