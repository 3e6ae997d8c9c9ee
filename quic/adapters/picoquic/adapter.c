// picoquic in virtual time, from a checkout: ../README.md. It takes time from its caller, in microseconds.
#include "../c/fullpipe_stack.h"

#include <picoquic.h>
#include <picotls.h>
#include <picoquic_crypto_provider_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tls_api.h>

typedef struct {
    picoquic_quic_t *ends[2];
    struct sockaddr_in addresses[2];
    picoquic_cnx_t *client;
    picoquic_congestion_algorithm_t const *algorithm;
    fp_setup setup;
    fp_app app;
    uint64_t now_us, due[2], written, delivered;
    int is_open, has_failed;
} connection;

static int on_event(picoquic_cnx_t *cnx, uint64_t stream, uint8_t *bytes, size_t room, picoquic_call_back_event_t event, void *user,
                    void *of_stream) {
    (void)cnx, (void)stream, (void)of_stream;
    connection *c = user;
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        c->delivered += room;
        break;
    case picoquic_callback_ready:
        c->is_open = 1;
        break;
    case picoquic_callback_prepare_to_send: {
        uint64_t left = c->app.total - c->written;
        size_t piece = left < room ? left : room;
        uint8_t *to = picoquic_provide_stream_data_buffer(bytes, piece, piece == left && c->app.total != FP_NEVER, piece < left);
        if (to) memset(to, 0, piece), c->written += piece;
        break;
    }
    case picoquic_callback_stateless_reset:
    case picoquic_callback_close:
    case picoquic_callback_application_close:
        c->has_failed = 1, c->client = 0;
        break;
    default:
        break;
    }
    return 0;
}

static void *create(const fp_setup *setup, const char **why) {
    static uint8_t of_resets[PICOQUIC_RESET_SECRET_SIZE];
    connection *c = calloc(1, sizeof *c);
    if (!c) abort();
    picoquic_register_all_congestion_control_algorithms();
    picoquic_tls_api_init();
    picoquic_register_crypto_random_provider_fn(fp_random);
    c->algorithm = picoquic_get_congestion_algorithm(setup->controller), c->setup = *setup;
    fp_random(of_resets, sizeof of_resets);
    for (int end = 0; end < 2; end++) {
        c->due[end] = FP_NEVER;
        c->addresses[end] = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(1000), .sin_addr.s_addr = htonl(0x0a000001u + (unsigned)end)};
        picoquic_quic_t *quic = picoquic_create(8, end ? KEYS "/cert.pem" : 0, end ? KEYS "/key.pem" : 0, 0, "transfer", on_event, c, 0, 0,
                                                of_resets, 0, &c->now_us, 0, 0, 0);
        if (!quic || !c->algorithm) {
            *why = quic ? "there is no such controller" : "picoquic cannot be set up; is the certificate " KEYS "/cert.pem there?";
            return 0;
        }
        picoquic_set_default_congestion_algorithm(quic, c->algorithm);
        picoquic_set_null_verifier(quic);
        picoquic_set_mtu_max(quic, (uint32_t)setup->mtu + 28);
        picoquic_set_default_pmtud_policy(quic, picoquic_pmtud_required);
        picoquic_set_max_data_control(quic, setup->receive_window);
        picoquic_set_default_tp_value(quic, picoquic_tp_initial_max_stream_data_bidi_remote, setup->receive_window);
        c->ends[end] = quic;
    }
    return c;
}

static void receive(void *self, int end, uint64_t now, uint8_t ecn, uint8_t *data, size_t bytes) {
    connection *c = self;
    c->now_us = now / 1000;
    int error = picoquic_incoming_packet(c->ends[end], data, bytes, (struct sockaddr *)&c->addresses[!end],
                                         (struct sockaddr *)&c->addresses[end], 0, ecn, c->now_us);
    if (error) fprintf(stderr, "end %d: error %d\n", end, error);
}

static uint64_t timeout(void *self, int end) { return ((connection *)self)->due[end]; }

// What is due is done when the end is asked for packets.
static void on_timeout(void *self, int end, uint64_t now) { (void)self, (void)end, (void)now; }

static void application(void *self, int end, uint64_t now, const fp_app *app) {
    connection *c = self;
    c->now_us = now / 1000;
    if (end || c->has_failed) return;
    if (app->total && !c->client)
        c->client = picoquic_create_client_cnx(c->ends[0], (struct sockaddr *)&c->addresses[1], c->now_us, 0, "localhost", "transfer",
                                               on_event, c);
    if (c->client && !app->stopped && app->total != c->app.total) picoquic_mark_active_stream(c->client, 0, 1, 0);
    if (c->client && app->stopped && !c->app.stopped) picoquic_reset_stream(c->client, 0, 0);
    c->app = *app;
}

static int transmit(void *self, int end, uint64_t now, uint8_t *out, size_t room, fp_sent *sent) {
    connection *c = self;
    struct sockaddr_storage to, from;
    size_t bytes = 0;
    int interface;
    c->now_us = now / 1000;
    if (c->setup.mtu < room) room = c->setup.mtu;
    int error = picoquic_prepare_next_packet(c->ends[end], c->now_us, out, room, &bytes, &to, &from, &interface, 0, 0);
    if (error) fprintf(stderr, "end %d cannot send: error %d\n", end, error);
    if (error || !bytes) {
        // It may ask for the present microsecond again, for which the next is as good.
        uint64_t wake = picoquic_get_next_wake_time(c->ends[end], c->now_us);
        c->due[end] = wake >= FP_NEVER / 1000 ? FP_NEVER : (wake > c->now_us ? wake : c->now_us + 1) * 1000;
        return 0;
    }
    *sent = (fp_sent){now, c->setup.ecn ? c->algorithm->ecn_mark : 0, bytes, bytes};
    return 1;
}

static uint64_t state(void *self, fp_state *state) {
    connection *c = self;
    state->connected = c->is_open, state->failed = c->has_failed;
    if (c->client && c->is_open) {
        picoquic_path_quality_t path;
        picoquic_get_default_path_quality(c->client, &path);
        state->window = path.cwin, state->in_flight = path.bytes_in_transit;
        state->srtt_ns = path.rtt * 1000, state->min_rtt_ns = path.rtt_min * 1000;
        state->pacing_bps = path.pacing_rate * 8, state->lost = path.lost;
    }
    return c->delivered;
}

int main(void) {
    static const fp_stack stack = {create, receive, timeout, on_timeout, application, transmit, state};
    return fp_serve("{\"protocol\": 1, \"name\": \"picoquic\", \"version\": \"" PICOQUIC_VERSION "\", \"licence\": \"MIT\","
                    " \"controllers\": [\"bbr\", \"bbr1\", \"c4\", \"cubic\", \"dcubic\", \"fast\", \"newreno\", \"prague\"],"
                    " \"tells\": [\"window\", \"in_flight\", \"srtt\", \"min_rtt\", \"pacing_rate\", \"lost\"],"
                    " \"policy\": \"its pacer is kept to: what prepare_next_packet() gives, then its next wake time; packet size by probes\"}",
                    &stack);
}
