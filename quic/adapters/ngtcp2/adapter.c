// ngtcp2, as Debian has it (0.12.1, with GnuTLS), in virtual time.
#include "../c/fullpipe_stack.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ngtcp2_conn *conn;
    gnutls_session_t tls;
    ngtcp2_crypto_conn_ref ref;
    ngtcp2_path path;
    struct sockaddr_in local, remote;
    int64_t stream;
    uint64_t delivered;
    size_t burst;
    int is_open, has_failed, index;
} endpoint;

typedef struct {
    endpoint ends[2];
    fp_setup setup;
    fp_app app;
    uint64_t written;
    gnutls_certificate_credentials_t client, server;
    ngtcp2_cc_algo algorithm;
} connection;

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref) { return ((endpoint *)ref->user_data)->conn; }

static void draw(uint8_t *out, size_t bytes, const ngtcp2_rand_ctx *context) {
    (void)context;
    fp_random(out, bytes);
}

static int new_id(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t bytes, void *user) {
    (void)conn, (void)user;
    fp_random(cid->data, bytes), cid->datalen = bytes;
    fp_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static int challenge(ngtcp2_conn *conn, uint8_t *data, void *user) {
    (void)conn, (void)user;
    fp_random(data, NGTCP2_PATH_CHALLENGE_DATALEN);
    return 0;
}

static int on_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data, size_t bytes, void *user,
                   void *of_stream) {
    (void)flags, (void)offset, (void)data, (void)of_stream;
    ((endpoint *)user)->delivered += bytes;
    ngtcp2_conn_extend_max_stream_offset(conn, stream, bytes);
    ngtcp2_conn_extend_max_offset(conn, bytes);
    return 0;
}

static int on_done(ngtcp2_conn *conn, void *user) {
    (void)conn;
    ((endpoint *)user)->is_open = 1;
    return 0;
}

static ngtcp2_callbacks callbacks = {
    .client_initial = ngtcp2_crypto_client_initial_cb,
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
    .handshake_completed = on_done,
    .encrypt = ngtcp2_crypto_encrypt_cb,
    .decrypt = ngtcp2_crypto_decrypt_cb,
    .hp_mask = ngtcp2_crypto_hp_mask_cb,
    .recv_stream_data = on_data,
    .recv_retry = ngtcp2_crypto_recv_retry_cb,
    .rand = draw,
    .get_new_connection_id = new_id,
    .update_key = ngtcp2_crypto_update_key_cb,
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
    .get_path_challenge_data = challenge,
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
};

static int start_tls(connection *c, int end, gnutls_session_t *tls) {
    const char *how = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE";
    static const gnutls_datum_t alpn = {(unsigned char *)"transfer", 8};
    if (gnutls_init(tls, end ? GNUTLS_SERVER : GNUTLS_CLIENT) || gnutls_priority_set_direct(*tls, how, 0)) return 0;
    if (end ? ngtcp2_crypto_gnutls_configure_server_session(*tls) : ngtcp2_crypto_gnutls_configure_client_session(*tls)) return 0;
    gnutls_session_set_ptr(*tls, &c->ends[end].ref);
    gnutls_alpn_set_protocols(*tls, &alpn, 1, 0);
    if (!end) gnutls_server_name_set(*tls, GNUTLS_NAME_DNS, "localhost", 9);
    return !gnutls_credentials_set(*tls, GNUTLS_CRD_CERTIFICATE, end ? c->server : c->client);
}

static int start(connection *c, int end, uint64_t now, const ngtcp2_pkt_hd *header) {
    endpoint *e = &c->ends[end];
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_settings_default(&settings);
    ngtcp2_transport_params_default(&params);
    settings.initial_ts = now, settings.max_tx_udp_payload_size = c->setup.mtu, settings.no_tx_udp_payload_size_shaping = 1;
    settings.cc_algo = c->algorithm;
    params.initial_max_streams_uni = 4, params.initial_max_stream_data_uni = params.initial_max_data = c->setup.receive_window;
    ngtcp2_cid source = {.datalen = 16}, destination = {.datalen = 16};
    fp_random(source.data, 16), fp_random(destination.data, 16);
    int error;
    if (end) {
        params.original_dcid = header->dcid;
        error = ngtcp2_conn_server_new(&e->conn, &header->scid, &source, &e->path, header->version, &callbacks, &settings, &params, 0, e);
    } else {
        error = ngtcp2_conn_client_new(&e->conn, &destination, &source, &e->path, NGTCP2_PROTO_VER_V1, &callbacks, &settings, &params, 0, e);
    }
    e->ref.get_conn = conn_of, e->ref.user_data = e, e->stream = -1;
    if (error || !start_tls(c, end, &e->tls)) {
        fprintf(stderr, "end %d cannot start: %s\n", end, ngtcp2_strerror(error));
        e->has_failed = 1;
        return 0;
    }
    ngtcp2_conn_set_tls_native_handle(e->conn, e->tls);
    return 1;
}

static void *create(const fp_setup *setup, const char **why) {
    static const struct { const char *name; ngtcp2_cc_algo algorithm; } known[] = {
        {"cubic", NGTCP2_CC_ALGO_CUBIC}, {"reno", NGTCP2_CC_ALGO_RENO}, {"bbr", NGTCP2_CC_ALGO_BBR}, {"bbr2", NGTCP2_CC_ALGO_BBR2}};
    connection *c = calloc(1, sizeof *c);
    if (!c) abort();
    size_t which = 0;
    while (which < 4 && strcmp(known[which].name, setup->controller)) which++;
    if (which == 4) {
        *why = "it has cubic, reno, bbr and bbr2";
        return 0;
    }
    c->algorithm = known[which].algorithm, c->setup = *setup;
    gnutls_certificate_allocate_credentials(&c->client), gnutls_certificate_allocate_credentials(&c->server);
    if (gnutls_certificate_set_x509_key_file(c->server, KEYS "/cert.pem", KEYS "/key.pem", GNUTLS_X509_FMT_PEM)) {
        *why = "the certificate " KEYS "/cert.pem cannot be read";
        return 0;
    }
    for (int end = 0; end < 2; end++) {
        endpoint *e = &c->ends[end];
        e->index = end;
        e->local = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1000), .sin_addr.s_addr = htonl(0x0a000001u + (unsigned)end)};
        e->remote = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1000), .sin_addr.s_addr = htonl(0x0a000002u - (unsigned)end)};
        e->path.local = (ngtcp2_addr){(ngtcp2_sockaddr *)&e->local, sizeof e->local};
        e->path.remote = (ngtcp2_addr){(ngtcp2_sockaddr *)&e->remote, sizeof e->remote};
    }
    return c;
}

static void failed(endpoint *e, const char *what, long error) {
    e->has_failed = 1;
    fprintf(stderr, "end %d: %s: %s\n", e->index, what, ngtcp2_strerror((int)error));
}

static void receive(void *self, int end, uint64_t now, uint8_t ecn, uint8_t *data, size_t bytes) {
    connection *c = self;
    endpoint *e = &c->ends[end];
    ngtcp2_pkt_hd header;
    if (e->has_failed) return;
    if (!e->conn && (!end || ngtcp2_accept(&header, data, bytes) || !start(c, end, now, &header))) return;
    ngtcp2_pkt_info info = {ecn};
    int error = ngtcp2_conn_read_pkt(e->conn, &e->path, &info, data, bytes, now);
    if (error) failed(e, "read", error);
}

static uint64_t timeout(void *self, int end) {
    endpoint *e = &((connection *)self)->ends[end];
    return e->conn && !e->has_failed ? ngtcp2_conn_get_expiry(e->conn) : FP_NEVER;
}

static void on_timeout(void *self, int end, uint64_t now) {
    endpoint *e = &((connection *)self)->ends[end];
    int error = ngtcp2_conn_handle_expiry(e->conn, now);
    if (error) failed(e, "timer", error);
}

static void application(void *self, int end, uint64_t now, const fp_app *app) {
    connection *c = self;
    endpoint *e = &c->ends[end];
    e->burst = 0;
    if (end) return;
    if (app->total && !e->conn && !e->has_failed && !start(c, 0, now, 0)) return;
    if (e->is_open && e->stream < 0) ngtcp2_conn_open_uni_stream(e->conn, &e->stream, 0);
    if (app->stopped && !c->app.stopped && e->stream >= 0) ngtcp2_conn_shutdown_stream_write(e->conn, e->stream, 0);
    c->app = *app;
}

static int transmit(void *self, int end, uint64_t now, uint8_t *out, size_t room, fp_sent *sent) {
    static uint8_t zeros[1 << 16];
    connection *c = self;
    endpoint *e = &c->ends[end];
    if (!e->conn || e->has_failed) return 0;
    if (c->setup.mtu < room) room = c->setup.mtu;
    ngtcp2_pkt_info info = {0};
    ngtcp2_ssize taken = -1, bytes = 0;
    if (e->burst < ngtcp2_conn_get_send_quantum(e->conn)) {
        uint64_t left = c->app.total - c->written;
        int writes = !end && e->stream >= 0 && !c->app.stopped && left;
        ngtcp2_vec data = {zeros, left < sizeof zeros ? left : sizeof zeros};
        uint32_t flags = left <= sizeof zeros ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE;
        bytes = ngtcp2_conn_writev_stream(e->conn, 0, &info, out, room, &taken, writes ? flags : 0, writes ? e->stream : -1,
                                          writes ? &data : 0, writes, now);
        if (bytes == NGTCP2_ERR_STREAM_DATA_BLOCKED) // By flow control: what else there is.
            bytes = ngtcp2_conn_writev_stream(e->conn, 0, &info, out, room, 0, 0, -1, 0, 0, now);
        if (bytes < 0) {
            failed(e, "write", bytes);
            return 0;
        }
        if (writes && taken > 0) c->written += (uint64_t)taken;
    }
    if (bytes == 0) {
        ngtcp2_conn_update_pkt_tx_time(e->conn, now);
        return 0;
    }
    e->burst += (size_t)bytes;
    *sent = (fp_sent){now, info.ecn, (size_t)bytes, (size_t)bytes};
    return 1;
}

static uint64_t state(void *self, fp_state *state) {
    connection *c = self;
    endpoint *client = &c->ends[0];
    state->failed = client->has_failed || c->ends[1].has_failed;
    if (!client->conn) return 0;
    ngtcp2_conn_stat stat;
    ngtcp2_conn_get_conn_stat(client->conn, &stat);
    state->connected = client->is_open;
    state->window = stat.cwnd, state->ssthresh = stat.ssthresh, state->in_flight = stat.bytes_in_flight;
    state->srtt_ns = stat.smoothed_rtt;
    if (stat.min_rtt != UINT64_MAX) state->min_rtt_ns = stat.min_rtt;
    return c->ends[1].delivered;
}

int main(void) {
    static const fp_stack stack = {create, receive, timeout, on_timeout, application, transmit, state};
    return fp_serve("{\"protocol\": 1, \"name\": \"ngtcp2\", \"version\": \"0.12.1\", \"licence\": \"MIT\","
                    " \"controllers\": [\"cubic\", \"reno\", \"bbr\", \"bbr2\"],"
                    " \"tells\": [\"window\", \"ssthresh\", \"in_flight\", \"srtt\", \"min_rtt\"],"
                    " \"policy\": \"its pacer is kept to: a send quantum at a time, then its next timer\"}",
                    &stack);
}
