#include "relay/state/state.h"

#include <string.h>

#include "base/str.h"

enum {
    TEXT_MAX = 1024,
    GROUPS_MAX = 4096,
    STREAMS_MAX = 4096, /* of a group */
    TOMBS_MAX = 4096,
    PATHS_MAX = 4096,
    PREDECESSORS_MAX = 64,
    DENIALS_MAX = 8192,
};
static const char mark[8] = {'f', 'e', 'r', 'r', 'y', 'r', 'l', 'y'};

/* ---- writing ----------------------------------------------------------------------------------
 */

static void put_place(struct pack *k, int place)
{
    pack_u32(k, (uint32_t)(place + 1)); /* 0 = none */
}

static void put_spec(struct pack *k, const struct relay_spec *s)
{
    pack_u8(k, (uint8_t)s->role);
    pack_text(k, s->key);
    pack_text(k, s->move);
    pack_u64(k, s->generation);
    pack_u8(k, (uint8_t)s->mode);
    pack_i64(k, s->resume_window_ns);
    pack_u64(k, s->rate);
    pack_text(k, s->peer_node);
    pack_text(k, s->peer_cn);
    pack_text(k, s->peer_address);
    pack_text(k, s->address);
    pack_text(k, s->dir);
    pack_text(k, s->interface);
    pack_bool(k, s->has_owner);
    pack_u32(k, s->owner);
    pack_u32(k, (uint32_t)s->n_channels);
    for (size_t i = 0; i < s->n_channels; i++) {
        pack_u32(k, (uint32_t)s->channels[i].logical);
        pack_u32(k, (uint32_t)s->channels[i].port);
        pack_text(k, s->channels[i].unix_path);
    }
}

static void put_tomb(struct pack *k, const struct relay_state_tomb *t)
{
    const struct hello_tombstone *s = &t->stone;

    pack_bytes(k, s->id, sizeof(s->id));
    pack_text(k, s->move);
    pack_u32(k, s->channel);
    pack_u64(k, s->epoch);
    pack_bool(k, s->finished);
    pack_u64(k, s->delivered);
    pack_u64(k, s->sent);
    pack_u32(k, (uint32_t)s->refusal.code);
    pack_text(k, s->refusal.text);
    pack_i64(k, t->until_ns);
}

static void put_stream(struct pack *k, const struct relay_state_stream *s, int64_t now)
{
    pack_u32(k, s->channel);
    put_place(k, s->fd);
    pack_bool(k, s->fresh);
    pack_i64(k, s->since_ms);
    pack_text(k, s->peer);
    if (s->fresh) {
        return;
    }
    pack_i64(k, s->born_ns);
    pack_bool(k, s->eof);
    pack_bool(k, s->deaf);
    pack_bool(k, s->hup);
    pack_bool(k, s->opened);
    pack_bool(k, s->has_slot);
    pack_u64(k, s->dropped);
    protocol_export(s->p, now, k);
}

static void put_group(struct pack *k, const struct relay_state_group *g, int64_t now)
{
    put_spec(k, g->spec);
    put_place(k, g->dir);
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        put_place(k, g->listeners[i]);
        pack_u32(k, (uint32_t)g->ports[i]);
    }
    pack_u32(k, (uint32_t)g->n_tombs);
    for (size_t i = 0; i < g->n_tombs; i++) {
        put_tomb(k, &g->tombs[i]);
    }
    pack_u32(k, (uint32_t)g->n_streams);
    for (size_t i = 0; i < g->n_streams; i++) {
        put_stream(k, &g->streams[i], now);
    }
}

void relay_state_pack(const struct relay_state *s, int64_t now, struct pack *k)
{
    pack_bytes(k, mark, sizeof(mark));
    pack_u32(k, RELAY_STATE_VERSION);
    pack_bool(k, s->alone);
    pack_bytes(k, s->instance, sizeof(s->instance));
    pack_u64(k, s->rate);
    pack_bool(k, s->draining);
    for (size_t i = 0; i < RELAY_STATE_TOTALS; i++) {
        pack_u64(k, s->totals[i]);
    }
    pack_u32(k, (uint32_t)s->n_fds);
    put_place(k, s->control);
    pack_u32(k, (uint32_t)s->n_predecessors);
    for (size_t i = 0; i < s->n_predecessors; i++) {
        put_place(k, s->predecessors[i]);
    }
    pack_u32(k, (uint32_t)s->n_paths);
    for (size_t i = 0; i < s->n_paths; i++) {
        pack_text(k, s->paths[i].node);
        pack_u64(k, s->paths[i].bytes_per_s);
        pack_i64(k, s->paths[i].rtt_us);
    }
    pack_u32(k, (uint32_t)s->n_groups);
    for (size_t i = 0; i < s->n_groups; i++) {
        put_group(k, &s->groups[i], now);
    }
    if (s->n_denials) {
        pack_u32(k, (uint32_t)s->n_denials);
    }
    for (size_t i = 0; i < s->n_denials; i++) {
        pack_text(k, s->denials[i].node);
        pack_text(k, s->denials[i].generation);
        pack_i64(k, s->denials[i].before_s);
    }
}

/* ---- reading ----------------------------------------------------------------------------------
 */

struct reader {
    struct unpack u;
    int64_t now;
    uint32_t n_fds;
    uint8_t *used; /* which descriptors have an owner */
    struct ferry_error *err;
};

static void check(struct reader *r, bool good, const char *what)
{
    if (!good) {
        unpack_fail(&r->u, what);
    }
}

/* Each descriptor belongs to one thing. */
static int get_place(struct reader *r)
{
    uint32_t v = unpack_u32(&r->u);

    if (r->u.bad || v == 0) {
        return -1;
    }
    if (v > r->n_fds || r->used[v - 1]) {
        unpack_fail(&r->u, v > r->n_fds ? "a descriptor that is not there"
                                        : "a descriptor that two things claim");
        return -1;
    }
    r->used[v - 1] = 1;
    return (int)v - 1;
}

/* How many there are of something; at least one byte follows for each. */
static size_t get_count(struct reader *r, size_t max)
{
    uint32_t n = unpack_u32(&r->u);

    check(r, n <= max && n <= r->u.len - r->u.pos, "a list that is too long");
    return r->u.bad ? 0 : n;
}

static void get_channels(struct reader *r, struct relay_spec *s)
{
    size_t n = get_count(r, RELAY_CHANNELS_MAX);

    check(r, n > 0, "a move without channels");
    for (size_t i = 0; i < n; i++) {
        struct relay_channel *c = &s->channels[i];
        uint32_t logical = unpack_u32(&r->u), port = unpack_u32(&r->u);

        c->unix_path = unpack_text(&r->u, TEXT_MAX);
        s->n_channels = i + 1;
        check(r, logical <= UINT16_MAX && port <= UINT16_MAX, "a channel that cannot be");
        check(r, c->unix_path || (s->role == RELAY_SOURCE && s->dir), "a channel without a socket");
        c->logical = (int)logical;
        c->port = (int)port;
    }
}

static struct relay_spec *get_spec(struct reader *r)
{
    struct relay_spec *s = ferry_xcalloc(1, sizeof(*s));
    struct unpack *u = &r->u;
    uint8_t role = unpack_u8(u);

    s->role = role == RELAY_SOURCE ? RELAY_SOURCE : RELAY_TARGET;
    s->key = unpack_text(u, RELAY_KEY_MAX);
    s->move = unpack_text(u, FRAME_MOVE_MAX);
    s->generation = unpack_u64(u);
    uint8_t mode = unpack_u8(u);
    s->mode = mode == RELAY_RAW ? RELAY_RAW : mode == RELAY_PLAIN ? RELAY_PLAIN : RELAY_FERRY;
    s->resume_window_ns = unpack_i64(u);
    s->rate = unpack_u64(u);
    s->peer_node = unpack_text(u, TEXT_MAX);
    s->peer_cn = unpack_text(u, TEXT_MAX);
    s->peer_address = unpack_text(u, TEXT_MAX);
    s->address = unpack_text(u, TEXT_MAX);
    s->dir = unpack_text(u, TEXT_MAX);
    s->interface = unpack_text(u, TEXT_MAX);
    s->has_owner = unpack_bool(u);
    s->owner = unpack_u32(u);
    get_channels(r, s);
    check(r, role == s->role && mode == s->mode, "a move of an unknown kind");
    check(r, s->key && relay_spec_key_valid(s->key), "a key that cannot be");
    check(r, s->move && hello_move_good(s->move), "a move uid that cannot be");
    check(r, s->address != NULL, "a move without an address");
    check(r, s->resume_window_ns >= 0, "a resume window that cannot be");
    /* Without either, whoever connects would be taken for the peer. */
    check(r,
          s->mode == RELAY_PLAIN ? s->role == RELAY_SOURCE || s->peer_address != NULL
                                 : s->peer_node || s->peer_cn,
          "a move without a peer");
    return s;
}

static void get_tomb(struct reader *r, struct relay_state_tomb *t)
{
    struct hello_tombstone *s = &t->stone;
    const uint8_t *id = unpack_bytes(&r->u, FRAME_ID);

    if (id) {
        memcpy(s->id, id, FRAME_ID);
    }
    unpack_text_into(&r->u, s->move, sizeof(s->move));
    s->channel = unpack_u32(&r->u);
    s->epoch = unpack_u64(&r->u);
    s->finished = unpack_bool(&r->u);
    s->delivered = unpack_u64(&r->u);
    s->sent = unpack_u64(&r->u);
    uint32_t code = unpack_u32(&r->u);
    unpack_text_into(&r->u, s->refusal.text, sizeof(s->refusal.text));
    t->until_ns = unpack_i64(&r->u);
    check(r, code < FRAME_REFUSAL_COUNT && s->epoch < FRAME_NUMBER_MAX,
          "a tombstone that cannot be");
    s->refusal.code = (enum frame_refusal)(code < FRAME_REFUSAL_COUNT ? code : 0);
}

static void get_stream(struct reader *r, const struct relay_spec *spec,
                       struct relay_state_stream *s)
{
    struct unpack *u = &r->u;

    s->channel = unpack_u32(u);
    s->fd = get_place(r);
    s->fresh = unpack_bool(u);
    s->since_ms = unpack_i64(u);
    unpack_text_into(u, s->peer, sizeof(s->peer));
    check(r, s->channel < spec->n_channels && spec->mode == RELAY_FERRY, "a stream of no channel");
    if (s->fresh) {
        check(r, s->fd >= 0 && spec->role == RELAY_SOURCE, "a new stream without a socket");
        return;
    }
    s->born_ns = unpack_i64(u);
    s->eof = unpack_bool(u);
    s->deaf = unpack_bool(u);
    s->hup = unpack_bool(u);
    s->opened = unpack_bool(u);
    s->has_slot = unpack_bool(u);
    s->dropped = unpack_u64(u);
    check(r, s->born_ns >= 0 && s->born_ns <= r->now, "a time that has not come yet");
    if (u->bad || protocol_import(u, r->now, &s->p, r->err) < 0) {
        unpack_fail(u, r->err && r->err->msg[0] ? r->err->msg : "a stream that cannot be read");
        return;
    }
    check(r,
          protocol_belongs(s->p, spec->role == RELAY_TARGET, spec->move,
                           (uint32_t)spec->channels[s->channel].logical),
          "a stream of another move");
    check(r, protocol_unix_over(s->p) ? s->fd < 0 : s->fd >= 0,
          "a stream whose socket is there and should not, or is not");
}

static void get_group(struct reader *r, struct relay_state_group *g)
{
    g->spec = get_spec(r);
    g->dir = get_place(r);
    for (size_t i = 0; i < RELAY_CHANNELS_MAX; i++) {
        g->listeners[i] = -1;
    }
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        g->listeners[i] = get_place(r);
        uint32_t port = unpack_u32(&r->u);

        check(r, g->listeners[i] >= 0 && port <= UINT16_MAX, "a channel that does not listen");
        g->ports[i] = (int)port;
    }
    check(r, g->spec->role == RELAY_TARGET || !g->spec->dir || g->dir >= 0, "no directory");
    size_t n = get_count(r, TOMBS_MAX);
    g->tombs = ferry_xcalloc(n + 1, sizeof(*g->tombs));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        get_tomb(r, &g->tombs[g->n_tombs++]);
    }
    n = get_count(r, STREAMS_MAX);
    g->streams = ferry_xcalloc(n + 1, sizeof(*g->streams));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        get_stream(r, g->spec, &g->streams[g->n_streams++]);
    }
}

static void get_lists(struct reader *r, struct relay_state *s)
{
    size_t n = get_count(r, PREDECESSORS_MAX);
    s->predecessors = ferry_xcalloc(n + 1, sizeof(*s->predecessors));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        s->predecessors[s->n_predecessors++] = get_place(r);
        check(r, s->predecessors[i] >= 0, "a predecessor without a socket");
    }
    n = get_count(r, PATHS_MAX);
    s->paths = ferry_xcalloc(n + 1, sizeof(*s->paths));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        struct relay_state_path *p = &s->paths[s->n_paths++];

        p->node = unpack_text(&r->u, TEXT_MAX);
        p->bytes_per_s = unpack_u64(&r->u);
        p->rtt_us = unpack_i64(&r->u);
        check(r, p->node != NULL, "a path to nowhere");
    }
    n = get_count(r, GROUPS_MAX);
    s->groups = ferry_xcalloc(n + 1, sizeof(*s->groups));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        get_group(r, &s->groups[s->n_groups++]);
    }
}

static void get_denials(struct reader *r, struct relay_state *s)
{
    check(r, r->u.len - r->u.pos >= sizeof(uint32_t), "something behind its end");
    size_t n = get_count(r, DENIALS_MAX);
    check(r, r->u.bad || n > 0, "something behind its end");

    s->denials = ferry_xcalloc(n + 1, sizeof(*s->denials));
    for (size_t i = 0; i < n && !r->u.bad; i++) {
        struct tls_denial *d = &s->denials[s->n_denials++];

        d->node = unpack_text(&r->u, TEXT_MAX);
        d->generation = unpack_text(&r->u, TLS_GENERATION_SIZE - 1);
        d->before_s = unpack_i64(&r->u);
        check(r, d->node != NULL, "a removed node without a name");
    }
}

static void get_all(struct reader *r, struct relay_state *s)
{
    s->owned = true;
    s->control = -1;
    s->alone = unpack_bool(&r->u);
    const uint8_t *instance = unpack_bytes(&r->u, FRAME_ID);
    if (instance) {
        memcpy(s->instance, instance, FRAME_ID);
    }
    s->rate = unpack_u64(&r->u);
    s->draining = unpack_bool(&r->u);
    for (size_t i = 0; i < RELAY_STATE_TOTALS; i++) {
        s->totals[i] = unpack_u64(&r->u);
    }
    r->n_fds = unpack_u32(&r->u);
    check(r, r->n_fds <= RELAY_STATE_FDS_MAX, "too many descriptors");
    s->n_fds = r->u.bad ? 0 : r->n_fds;
    r->used = ferry_xcalloc(s->n_fds + 1, 1);
    s->control = get_place(r);
    check(r, s->alone == (s->control < 0), "a control socket missing, or one too many");
    get_lists(r, s);
    check(r, !s->alone || s->n_groups == 1, "not one path alone");
    if (!r->u.bad && r->u.pos < r->u.len) {
        get_denials(r, s);
    }
    check(r, r->u.bad || r->u.pos == r->u.len, "something behind its end");
    free(r->used);
}

int relay_state_unpack(const uint8_t *data, size_t len, int64_t now, struct relay_state *ret,
                       struct ferry_error *err)
{
    struct ferry_error inner = {0};
    struct reader r = {.u = {.data = data, .len = len}, .now = now, .err = &inner};
    const uint8_t *head = unpack_bytes(&r.u, sizeof(mark));

    *ret = (struct relay_state){0};
    if (!head || memcmp(head, mark, sizeof(mark)) != 0) {
        return ferry_fail(err, FERRY_PEER, "not the state of a relay");
    }
    uint32_t version = unpack_u32(&r.u);
    if (r.u.bad || version != RELAY_STATE_VERSION) {
        return ferry_fail(err, FERRY_PEER, "state of version %u, this relay knows %d", version,
                          RELAY_STATE_VERSION);
    }
    get_all(&r, ret);
    if (r.u.bad) {
        int rc = ferry_fail(err, FERRY_PEER, "state of a relay, at byte %zu: %s", r.u.pos, r.u.bad);

        relay_state_done(ret);
        return rc;
    }
    return 0;
}

static void group_done(struct relay_state_group *g, bool owned)
{
    for (size_t i = 0; owned && i < g->n_streams; i++) {
        protocol_free(g->streams[i].p);
    }
    if (owned) {
        relay_spec_free(g->spec);
    }
    free(g->streams);
    free(g->tombs);
}

void relay_state_done(struct relay_state *s)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        group_done(&s->groups[i], s->owned);
    }
    for (size_t i = 0; s->owned && i < s->n_paths; i++) {
        free(s->paths[i].node);
    }
    tls_denials_list_free(s->denials, s->n_denials);
    free(s->groups);
    free(s->paths);
    free(s->predecessors);
    *s = (struct relay_state){0};
}
