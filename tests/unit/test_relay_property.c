/* Two ends of ferry stream protocol 1 in a small world of their own: virtual time, connections that
 * carry bytes late, in pieces, and break anywhere; applications that write, close halfway, stall
 * and die; a target that refuses, forgets, or comes back as another instance; relays that hand
 * their streams over to a successor at any moment. Every run is made from a seed. After each: what
 * was delivered is what was written, or both ends say why not; nothing hangs, nothing spins, memory
 * stays inside its bound.
 *
 *   FERRY_SEED=N   only that run, with a trace
 *   FERRY_RUNS=N   so many random runs */
#include "lib/unit.h"

#include <inttypes.h>

#include "relay/protocol/protocol.h"

enum { SOURCE, TARGET, CONNS = 64 };
enum {
    CUTS = 1 << 0,
    STALLS = 1 << 1,
    SLOW_HELLO = 1 << 2, /* connections so slow that a HELLO arrives after it was given up */
    UNIX_LATE = 1 << 3,
    UPGRADES = 1 << 4, /* a relay is replaced by its successor */
    /* From here on a stream need not finish. */
    BREAKS = 1 << 5, /* an application dies, or takes no more */
    CANCELS = 1 << 6,
    FORGETS = 1 << 7,    /* the target relay loses its state */
    DOWN_LONG = 1 << 8,  /* the path is away longer than the resume window */
    UNIX_GONE = 1 << 9,  /* nobody listens on the target's unix socket */
    IMPATIENT = 1 << 10, /* the target's resume window is shorter than the source's */
    FATAL = ~(CUTS | STALLS | SLOW_HELLO | UNIX_LATE | UPGRADES),
};

struct chunk {
    struct chunk *next;
    int64_t at;
    size_t len, pos;
    uint8_t data[];
};

/* One direction of a connection. */
struct pipe {
    struct chunk *head, *tail;
    size_t bytes;
    int64_t last_at;
    bool fin, hole;
};

struct conn {
    bool used, cut;
    struct pipe to[2]; /* towards SOURCE, towards TARGET */
    bool closed[2];    /* by SOURCE, by TARGET */
    int64_t lost_at[2];
    int64_t latency;
    uint64_t carried, cut_after;
    uint8_t hello[FRAME_HELLO_MAX];
    size_t hello_len;
    bool pending; /* the target waits for its HELLO */
    bool flushed; /* and answered without a stream */
};

/* An application with the relay's end of its unix connection. */
struct side {
    struct protocol *p;
    int conn;
    uint64_t total, wrote; /* by the application */
    bool close_after_peer; /* it closes only when the peer has closed */
    bool eof, failed;      /* the relay was told */
    uint64_t got;
    bool got_eof;
    int64_t write_stall, read_stall;
    bool flushing; /* the relay has sent its last byte on the connection */
    struct iovec parts[2];
    int n_parts;
    uint32_t parts_sum;
    enum protocol_state state;
};

struct world {
    uint64_t seed, rng;
    bool trace;
    unsigned faults;
    int64_t now;
    struct protocol_config config[2];
    struct side side[2];
    struct conn conns[CONNS];
    uint8_t instance;
    int64_t dial_done, unix_done, link_up_at;
    unsigned cuts_left, upgrades;
    uint64_t first_cut, first_carried; /* of the first connection */
    size_t pipe_room, step_max;
    bool gone, target_made;
    struct hello_tombstone tombstone;
    int64_t tombstone_until;
    struct protocol_outcome outcome[2];
    bool over[2];
    uint64_t read_at_break[2];
    bool broken[2];
};

/* ---- chance ---- */

static uint64_t next_random(struct world *w)
{
    uint64_t z = (w->rng += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(struct world *w, uint64_t n)
{
    return n ? next_random(w) % n : 0;
}

static bool one_in(struct world *w, uint64_t n)
{
    return below(w, n) == 0;
}

static uint8_t pattern(const struct world *w, int from, uint64_t offset)
{
    uint64_t x = (offset + (uint64_t)from * 77777 + w->seed) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint8_t)(x >> 40);
}

static void die(const struct world *w, const char *what)
{
    printf("seed %" PRIu64 ", at %.6f s: %s\n", w->seed, (double)w->now / 1e9, what);
    for (int i = 0; i < 2; i++) {
        const struct side *s = &w->side[i];

        printf("  %s: %s, outcome %s %u '%s', wrote %" PRIu64 " of %" PRIu64 " eof %d, got %" PRIu64
               " eof %d\n",
               i ? "target" : "source", w->over[i] ? "over" : protocol_state_name(s->state),
               protocol_end_name(w->outcome[i].end), w->outcome[i].code, w->outcome[i].text,
               s->wrote, s->total, s->eof, s->got, s->got_eof);
    }
    fail_msg("%s (FERRY_SEED=%" PRIu64 ")", what, w->seed);
}

static void say(const struct world *w, int side, const char *what)
{
    if (w->trace) {
        printf("%12.6f %s %s\n", (double)w->now / 1e9, side ? "target" : "source", what);
    }
}

/* ---- connections ---- */

static void pipe_write(struct pipe *q, const void *data, size_t n, int64_t at)
{
    if (q->hole || n == 0) {
        return;
    }
    struct chunk *c = malloc(sizeof(*c) + n);

    assert_non_null(c);
    *c = (struct chunk){.at = at > q->last_at ? at : q->last_at, .len = n};
    memcpy(c->data, data, n);
    q->last_at = c->at;
    if (q->tail) {
        q->tail->next = c;
    } else {
        q->head = c;
    }
    q->tail = c;
    q->bytes += n;
}

static size_t pipe_read(struct pipe *q, void *data, size_t n, int64_t now)
{
    struct chunk *c = q->head;

    if (!c || c->at > now) {
        return 0;
    }
    if (n > c->len - c->pos) {
        n = c->len - c->pos;
    }
    memcpy(data, c->data + c->pos, n);
    c->pos += n;
    q->bytes -= n;
    if (c->pos == c->len) {
        q->head = c->next;
        if (!q->head) {
            q->tail = NULL;
        }
        free(c);
    }
    return n;
}

static void pipe_clear(struct pipe *q)
{
    while (q->head) {
        struct chunk *c = q->head;

        q->head = c->next;
        free(c);
    }
    q->tail = NULL;
    q->bytes = 0;
}

/* Of what is under way a part still arrives. */
static void pipe_cut(struct world *w, struct pipe *q)
{
    size_t keep = below(w, q->bytes + 1);

    for (struct chunk **c = &q->head; *c;) {
        size_t have = (*c)->len - (*c)->pos;

        if (have <= keep) {
            keep -= have;
            c = &(*c)->next;
            continue;
        }
        q->bytes -= have - keep;
        (*c)->len = (*c)->pos + keep;
        keep = 0;
        if ((*c)->len > (*c)->pos) {
            c = &(*c)->next;
            continue;
        }
        struct chunk *gone = *c;

        *c = gone->next;
        free(gone);
    }
    q->tail = NULL;
    for (struct chunk *c = q->head; c; c = c->next) {
        q->tail = c;
    }
    q->hole = true;
}

static void cut(struct world *w, struct conn *c)
{
    if (c->cut) {
        return;
    }
    c->cut = true;
    say(w, SOURCE, "(connection is cut)");
    for (int i = 0; i < 2; i++) {
        pipe_cut(w, &c->to[i]);
        /* Learnt at once, late, or never. */
        int64_t at = w->now + (int64_t)below(w, one_in(w, 2) ? 1000 : 2000000000);

        if (!one_in(w, 3) && at < c->lost_at[i]) {
            c->lost_at[i] = at;
        }
    }
    int64_t down = (int64_t)below(w, 3 * FERRY_NS_PER_S);

    if ((w->faults & DOWN_LONG) && one_in(w, 4)) {
        down = (int64_t)below(w, 2) ? 70 * FERRY_NS_PER_S : 20 * FERRY_NS_PER_S;
    }
    if (one_in(w, 2)) {
        w->link_up_at = w->now + down;
    }
}

static void conn_send(struct world *w, int conn, int from, const void *data, size_t n)
{
    struct conn *c = &w->conns[conn];

    pipe_write(&c->to[!from], data, n, w->now + c->latency);
    c->carried += n;
    if (conn == 0 && w->first_carried < c->carried) {
        w->first_carried = c->carried;
    }
    if (c->carried >= c->cut_after) {
        cut(w, c);
    }
}

static void conn_close(struct world *w, int conn, int side)
{
    struct conn *c = &w->conns[conn];

    c->closed[side] = true;
    c->to[!side].fin = true;
    if (c->closed[SOURCE] && c->closed[TARGET]) {
        pipe_clear(&c->to[SOURCE]);
        pipe_clear(&c->to[TARGET]);
        memset(c, 0, sizeof(*c));
    }
}

/* Is there nothing more to come for `side`? */
static bool conn_ended(const struct world *w, int conn, int side)
{
    const struct conn *c = &w->conns[conn];
    const struct pipe *q = &c->to[side];

    if (q->head && q->head->at <= w->now) {
        return false;
    }
    return (!q->head && q->fin && !q->hole && q->last_at <= w->now) || c->lost_at[side] <= w->now;
}

static int conn_open(struct world *w)
{
    for (int i = 0; i < CONNS; i++) {
        struct conn *c = &w->conns[i];

        if (!c->used) {
            *c = (struct conn){.used = true, .pending = true, .cut_after = UINT64_MAX};
            c->lost_at[SOURCE] = c->lost_at[TARGET] = PROTOCOL_NEVER;
            c->latency = (int64_t)below(w, 5000000);
            if ((w->faults & SLOW_HELLO) && one_in(w, 3)) {
                c->latency = (int64_t)(10 + below(w, 6)) * FERRY_NS_PER_S;
            }
            if (w->first_cut > 0) {
                c->cut_after = w->first_cut - 1;
                w->first_cut = 0;
            } else if ((w->faults & CUTS) && w->cuts_left > 0) {
                w->cuts_left--;
                c->cut_after = one_in(w, 2) ? below(w, 300) : below(w, 60000);
            }
            return i;
        }
    }
    die(w, "too many connections");
    return -1;
}

/* ---- the shell around one end ---- */

static void gone(struct world *w, int i)
{
    struct side *s = &w->side[i];

    if (i == TARGET) {
        w->gone = true;
        protocol_tombstone(s->p, &w->tombstone);
        w->tombstone_until = w->now + w->config[TARGET].resume_window_ns + PROTOCOL_GRACE;
    }
    w->outcome[i] = *protocol_outcome(s->p);
    w->over[i] = true;
    s->p = protocol_free(s->p);
}

static void disconnect(struct world *w, int i, const char *why)
{
    struct side *s = &w->side[i];

    say(w, i, why);
    if (s->conn >= 0) {
        conn_close(w, s->conn, i);
    }
    s->conn = -1;
    s->flushing = false;
    s->n_parts = 0;
    protocol_disconnected(s->p, w->now, why);
}

static bool step_receive(struct world *w, int i)
{
    struct side *s = &w->side[i];
    bool did = false;

    while (s->conn >= 0) {
        struct pipe *q = &w->conns[s->conn].to[i];
        void *where;
        size_t space = protocol_recv_space(s->p, &where);

        if (space == 0) {
            die(w, "no place for received bytes");
        }
        size_t n = pipe_read(q, where, 1 + below(w, space), w->now);

        if (n == 0) {
            if (conn_ended(w, s->conn, i)) {
                disconnect(w, i, "connection ended");
                did = true;
            }
            break;
        }
        protocol_received(s->p, n, w->now);
        did = true;
        if (one_in(w, 16)) {
            break;
        }
    }
    return did;
}

static bool step_deliver(struct world *w, int i)
{
    struct side *s = &w->side[i];
    struct iovec vec[3];
    int n = protocol_write_vec(s->p, vec, 3);

    if (s->failed) {
        return false;
    }
    if (w->now < s->read_stall) {
        return false;
    }
    if ((w->faults & STALLS) && one_in(w, 40)) {
        s->read_stall = w->now + (int64_t)below(w, one_in(w, 6) ? 30 * FERRY_NS_PER_S : 50000000);
        return true;
    }
    if (n > 0) {
        size_t k = below(w, (uint64_t)n), take = 1 + below(w, vec[k].iov_len), sum = 0;

        for (size_t v = 0; v <= k; v++) {
            size_t len = v < k ? vec[v].iov_len : take;
            const uint8_t *bytes = vec[v].iov_base;

            for (size_t b = 0; b < len; b++) {
                if (bytes[b] != pattern(w, !i, s->got + sum + b)) {
                    die(w, "delivered bytes differ");
                }
            }
            sum += len;
        }
        s->got += sum;
        protocol_unix_written(s->p, sum, w->now);
        return true;
    }
    if (protocol_shutdown_due(s->p)) {
        if (s->got_eof) {
            die(w, "EOF twice");
        }
        s->got_eof = true;
        protocol_shutdown_done(s->p, w->now);
        return true;
    }
    return false;
}

static bool step_read(struct world *w, int i)
{
    struct side *s = &w->side[i];
    void *where;
    size_t space;

    if (s->eof || s->failed || w->now < s->write_stall) {
        return false;
    }
    if ((w->faults & STALLS) && one_in(w, 60)) {
        s->write_stall = w->now + (int64_t)below(w, one_in(w, 8) ? 30 * FERRY_NS_PER_S : 50000000);
        return true;
    }
    space = protocol_read_space(s->p, &where);
    if (space == 0) {
        return false;
    }
    if (s->wrote == s->total) {
        if (s->close_after_peer && !s->got_eof) {
            return false;
        }
        s->eof = true;
        protocol_unix_eof(s->p, w->now);
        return true;
    }
    size_t n = 1 + below(w, one_in(w, 3) ? space : w->step_max);

    n = n < space ? n : space;
    n = n < s->total - s->wrote ? n : (size_t)(s->total - s->wrote);
    for (size_t b = 0; b < n; b++) {
        ((uint8_t *)where)[b] = pattern(w, i, s->wrote + b);
    }
    s->wrote += n;
    protocol_unix_read(s->p, n);
    return true;
}

static uint32_t sum_of(const struct iovec *parts, int n)
{
    uint32_t sum = 2166136261u;

    for (int k = 0; k < n; k++) {
        for (size_t b = 0; b < parts[k].iov_len; b++) {
            sum = (sum ^ ((const uint8_t *)parts[k].iov_base)[b]) * 16777619u;
        }
    }
    return sum;
}

static bool step_send(struct world *w, int i)
{
    struct side *s = &w->side[i];
    bool did = false;

    while (s->conn >= 0 && w->conns[s->conn].to[!i].bytes < w->pipe_room) {
        struct iovec parts[2];
        int n = protocol_output(s->p, w->now, parts);

        if (s->n_parts > 0 && protocol_hangup(s->p) != PROTOCOL_DROP &&
            (n != s->n_parts || parts[0].iov_base != s->parts[0].iov_base ||
             sum_of(parts, n) != s->parts_sum)) {
            die(w, "output changed before it was sent");
        }
        s->n_parts = 0;
        if (n == 0) {
            break;
        }
        if (one_in(w, 8)) {
            memcpy(s->parts, parts, sizeof(parts));
            s->n_parts = n;
            s->parts_sum = sum_of(parts, n);
            return true;
        }
        size_t take = 1 + below(w, parts[0].iov_len);
        int conn = s->conn;

        if (n == 2 && one_in(w, 2)) {
            size_t more = 1 + below(w, parts[1].iov_len);

            take = parts[0].iov_len;
            conn_send(w, conn, i, parts[0].iov_base, take);
            conn_send(w, conn, i, parts[1].iov_base, more);
            take += more;
        } else {
            conn_send(w, conn, i, parts[0].iov_base, take);
        }
        protocol_sent(s->p, take);
        did = true;
        if (one_in(w, 16)) {
            break;
        }
    }
    return did;
}

static bool step_hangup(struct world *w, int i)
{
    struct side *s = &w->side[i];
    struct iovec parts[2];

    switch (protocol_hangup(s->p)) {
    case PROTOCOL_KEEP:
        return false;
    case PROTOCOL_DROP:
        if (s->conn < 0) {
            die(w, "asked to drop a connection that is not there");
        }
        disconnect(w, i, "dropped");
        return true;
    case PROTOCOL_FLUSH:
        /* The shell's deadline for all of it. */
        if (w->conns[s->conn].lost_at[i] > w->now + 5 * FERRY_NS_PER_S && !s->flushing) {
            w->conns[s->conn].lost_at[i] = w->now + 5 * FERRY_NS_PER_S;
        }
        if (!s->flushing && protocol_output(s->p, w->now, parts) == 0) {
            s->flushing = true;
            w->conns[s->conn].to[!i].fin = true;
            return true;
        }
        break;
    }
    return false;
}

/* Applications and operators that end a stream. */
static bool step_break(struct world *w, int i)
{
    struct side *s = &w->side[i];

    if ((w->faults & BREAKS) && !s->failed && one_in(w, 300)) {
        say(w, i, "application breaks");
        w->broken[i] = true;
        w->read_at_break[i] = s->wrote;
        if (one_in(w, 2)) {
            s->failed = true;
            protocol_unix_failed(s->p, "broken by test", w->now);
        } else {
            /* It takes no more, but what it wrote is there to be read. */
            protocol_unix_write_failed(s->p, "broken pipe by test", w->now);
        }
        return true;
    }
    if ((w->faults & CANCELS) && one_in(w, 300)) {
        say(w, i, "cancelled");
        protocol_cancel(s->p, "cancelled by test", w->now);
        return true;
    }
    return false;
}

/* The state of a stream as bytes; the caller frees them. */
static uint8_t *export_state(const struct world *w, const struct protocol *p, size_t *ret_len)
{
    struct pack k = {0};

    protocol_export(p, w->now, &k);
    size_t len = k.len;
    k = (struct pack){.data = malloc(len), .room = len};
    assert_non_null(k.data);
    protocol_export(p, w->now, &k);
    if (k.len != len) {
        die(w, "two exports differ in size");
    }
    *ret_len = len;
    return k.data;
}

/* Whatever the relay of this side was doing with connections is over. */
static void drop_connections(struct world *w, int i)
{
    struct side *s = &w->side[i];

    if (i == SOURCE) {
        w->dial_done = PROTOCOL_NEVER;
    }
    for (int c = 0; c < CONNS; c++) {
        bool mine = c == s->conn || (i == TARGET && (w->conns[c].pending || w->conns[c].flushed));

        if (w->conns[c].used && !w->conns[c].closed[i] && mine) {
            cut(w, &w->conns[c]);
            conn_close(w, c, i);
        }
    }
    s->conn = -1;
    s->flushing = false;
    s->n_parts = 0;
}

/* The relay of this side is replaced: its successor goes on from what was exported. */
static bool step_upgrade(struct world *w, int i)
{
    struct side *s = &w->side[i];
    struct ferry_error err;
    size_t len, again;

    if (!(w->faults & UPGRADES) || !one_in(w, 120) || protocol_state(s->p) == PROTOCOL_CLOSED) {
        return false;
    }
    say(w, i, "(successor takes over)");
    w->upgrades++;
    drop_connections(w, i);
    if (i == TARGET && protocol_state(s->p) == PROTOCOL_OPENING) {
        s->p = protocol_free(s->p);                   /* has not begun: begins anew */
        w->outcome[TARGET].end = PROTOCOL_STATE_LOST; /* unless it does */
        w->unix_done = PROTOCOL_NEVER;
        return true;
    }
    uint8_t *state = export_state(w, s->p, &len);
    struct unpack u = {.data = state, .len = len};

    s->p = protocol_free(s->p);
    if (protocol_import(&u, w->now, &s->p, &err) < 0 || u.pos != u.len) {
        die(w, err.msg);
    }
    uint8_t *second = export_state(w, s->p, &again);

    if (again != len || memcmp(state, second, len) != 0) {
        die(w, "the successor has another state");
    }
    free(state);
    free(second);
    return true;
}

static bool step_side(struct world *w, int i)
{
    struct side *s = &w->side[i];
    struct protocol_stats stats;
    bool did;

    if (!s->p) {
        return false;
    }
    if (step_upgrade(w, i)) {
        return true;
    }
    did = step_receive(w, i);
    did |= step_break(w, i);
    did |= step_deliver(w, i);
    did |= step_read(w, i);
    protocol_tick(s->p, w->now);
    did |= step_send(w, i);
    did |= step_hangup(w, i);
    protocol_stats(s->p, &stats);
    if (stats.memory > protocol_memory_max(s->p)) {
        die(w, "memory above its bound");
    }
    if (protocol_state(s->p) != s->state) {
        s->state = protocol_state(s->p);
        say(w, i, protocol_state_name(s->state));
    }
    if (s->state == PROTOCOL_CLOSED && s->conn < 0) {
        gone(w, i);
        did = true;
    }
    return did;
}

/* ---- the source dials, the target accepts ---- */

static bool step_dial(struct world *w)
{
    struct side *s = &w->side[SOURCE];

    if (!s->p) {
        return false;
    }
    if (w->dial_done == PROTOCOL_NEVER && s->conn < 0 && protocol_dial_at(s->p) <= w->now) {
        protocol_dialling(s->p);
        w->dial_done = w->now + (int64_t)below(w, 3000000);
        return true;
    }
    if (w->dial_done > w->now) {
        return false;
    }
    w->dial_done = PROTOCOL_NEVER;
    if (protocol_state(s->p) == PROTOCOL_CLOSED) {
        return false;
    }
    if (w->now < w->link_up_at) {
        protocol_disconnected(s->p, w->now, "no route");
        return true;
    }
    s->conn = conn_open(w);
    protocol_connected(s->p, w->now);
    say(w, SOURCE, "connected");
    return true;
}

static void answer(struct world *w, int conn, const uint8_t *frame, size_t n)
{
    conn_send(w, conn, TARGET, frame, n);
    w->conns[conn].to[SOURCE].fin = true;
    w->conns[conn].flushed = true;
    w->conns[conn].lost_at[TARGET] = w->now + 5 * FERRY_NS_PER_S;
}

static void start_target(struct world *w, int conn, const struct hello *h)
{
    struct side *s = &w->side[TARGET];

    /* Only a source that never heard of the first may start another. */
    if (s->p || w->gone || (w->target_made && w->side[SOURCE].wrote + w->side[SOURCE].got > 0)) {
        die(w, "a second unix connection for one stream");
    }
    w->target_made = true;
    memset(w->config[TARGET].instance, w->instance, FRAME_ID);
    s->p = protocol_new_target(&w->config[TARGET], h, w->now);
    s->conn = conn;
    /* A fresh unix connection: to an application that starts from the beginning. */
    s->wrote = s->got = 0;
    s->eof = s->failed = s->got_eof = false;
    w->broken[TARGET] = false;
    w->unix_done = w->now + (int64_t)below(w, w->faults & UNIX_LATE ? 5 * FERRY_NS_PER_S : 1000000);
}

static void accept_hello(struct world *w, int conn)
{
    struct side *s = &w->side[TARGET];
    struct conn *c = &w->conns[conn];
    struct hello_refusal refusal;
    struct protocol_stats stats = {0};
    struct hello h;
    uint8_t buf[HELLO_ANSWER_MAX];

    if (hello_get(c->hello, c->hello_len, &h, &refusal) < 0) {
        die(w, "HELLO that is none");
    }
    if (s->p) {
        protocol_stats(s->p, &stats);
    }
    struct hello_facts facts = {
        .move_known = true,
        .peer_is_source = true,
        .channel_open = true,
        .accepting = !(w->faults & UNIX_LATE) || !one_in(w, 4),
        .known = s->p      ? HELLO_KNOWN_LIVE
                 : w->gone ? HELLO_KNOWN_GONE
                           : HELLO_KNOWN_NOT,
        .live_move = w->config[SOURCE].move,
        .live_channel = w->config[SOURCE].channel,
        .live_epoch = stats.epoch,
        .live_same_peer = true,
        .tombstone = &w->tombstone,
    };
    enum hello_verdict verdict = hello_decide(&h, &facts, &refusal);

    c->pending = false;
    c->latency %= 5000000;
    if (verdict == HELLO_START) {
        say(w, TARGET, "HELLO: new");
        start_target(w, conn, &h);
    } else if (verdict == HELLO_FINISHED) {
        say(w, TARGET, "HELLO: finished");
        answer(w, conn, buf, hello_put_finished(buf, &w->tombstone, w->config[TARGET].instance));
    } else if (verdict == HELLO_ATTACH && protocol_attach(s->p, &h, w->now, &refusal) == 0) {
        say(w, TARGET, "HELLO: attached");
        if (s->conn >= 0) {
            conn_close(w, s->conn, TARGET);
        }
        s->conn = conn;
        s->flushing = false;
        s->n_parts = 0;
    } else {
        say(w, TARGET, refusal.text);
        answer(w, conn, buf, hello_put_refused(buf, &refusal));
    }
}

/* Connections that have no stream yet, or never will. */
static bool step_accept(struct world *w, int conn)
{
    struct conn *c = &w->conns[conn];
    uint8_t sink[256];
    bool did = false;

    if (c->flushed) {
        while (pipe_read(&c->to[TARGET], sink, sizeof(sink), w->now) > 0) {
            did = true;
        }
    }
    while (c->pending) {
        size_t need = hello_need(c->hello, c->hello_len);

        if (need == 0) {
            accept_hello(w, conn);
            return true;
        }
        size_t n = pipe_read(&c->to[TARGET], c->hello + c->hello_len, 1 + below(w, need), w->now);

        if (n == 0) {
            break;
        }
        c->hello_len += n;
        did = true;
    }
    if ((c->pending || c->flushed) && !c->closed[TARGET] && conn_ended(w, conn, TARGET)) {
        conn_close(w, conn, TARGET);
        did = true;
    }
    return did;
}

static bool step_target_world(struct world *w)
{
    struct side *s = &w->side[TARGET];
    bool did = false;

    for (int i = 0; i < CONNS; i++) {
        if (w->conns[i].used) {
            did |= step_accept(w, i);
        }
    }
    if (s->p && w->unix_done <= w->now) {
        w->unix_done = PROTOCOL_NEVER;
        if (w->faults & UNIX_GONE) {
            protocol_unix_refused(s->p, "nobody listens", w->now);
        } else {
            protocol_unix_connected(s->p, w->now);
        }
        did = true;
    }
    if (w->gone && w->now >= w->tombstone_until) {
        w->gone = false;
        did = true;
    }
    if ((w->faults & FORGETS) && one_in(w, 400)) {
        say(w, TARGET, "(relay is replaced)");
        if (s->p) {
            s->p = protocol_free(s->p);
            w->over[TARGET] = true;
            w->outcome[TARGET].end = PROTOCOL_STATE_LOST;
        }
        w->gone = false;
        w->instance++;
        w->unix_done = PROTOCOL_NEVER;
        for (int i = 0; i < CONNS; i++) {
            if (w->conns[i].used && !w->conns[i].closed[TARGET]) {
                cut(w, &w->conns[i]);
                conn_close(w, i, TARGET);
            }
        }
        s->conn = -1;
        s->n_parts = 0;
        did = true;
    }
    return did;
}

/* ---- time passes ---- */

static int64_t soonest(int64_t a, int64_t b, int64_t now)
{
    return b > now && b < a ? b : a;
}

static int64_t next_event(const struct world *w)
{
    int64_t at = PROTOCOL_NEVER, now = w->now;

    for (int i = 0; i < 2; i++) {
        const struct side *s = &w->side[i];

        if (s->p) {
            if (protocol_deadline(s->p) <= now) {
                return now;
            }
            at = soonest(at, protocol_deadline(s->p), now);
        }
        at = soonest(at, s->read_stall, now);
        at = soonest(at, s->write_stall, now);
    }
    for (int k = 0; k < CONNS; k++) {
        const struct conn *c = &w->conns[k];

        for (int i = 0; c->used && i < 2; i++) {
            at = soonest(at, c->lost_at[i], now);
            at = soonest(at, c->to[i].last_at, now);
            if (c->to[i].head) {
                at = soonest(at, c->to[i].head->at, now);
            }
        }
    }
    at = soonest(at, w->dial_done, now);
    at = soonest(at, w->unix_done, now);
    if (w->gone) {
        at = soonest(at, w->tombstone_until, now);
    }
    return at;
}

static bool source_over(const struct world *w)
{
    return w->over[SOURCE] && !w->side[TARGET].p;
}

static void run(struct world *w)
{
    unsigned still = 0;

    while (!source_over(w)) {
        int64_t before = w->now;
        bool did = step_dial(w);

        did |= step_side(w, SOURCE);
        did |= step_target_world(w);
        did |= step_side(w, TARGET);
        if (did) {
            w->now += (int64_t)below(w, 200000);
            still = 0;
            continue;
        }
        int64_t at = next_event(w);

        if (at == PROTOCOL_NEVER) {
            die(w, "nothing will ever happen again");
        }
        w->now = at;
        still = at == before ? still + 1 : 0;
        if (still > 1000) {
            die(w, "a deadline has passed and nothing comes of it");
        }
        if (w->now > 4000 * FERRY_NS_PER_S) {
            die(w, "does not come to an end");
        }
    }
}

/* ---- what must be true in the end ---- */

static void check(const struct world *w)
{
    const struct side *s = w->side;
    bool fatal = w->faults & FATAL;

    for (int i = 0; i < 2; i++) {
        if (w->outcome[i].end != PROTOCOL_FINISHED) {
            continue;
        }
        if (i == TARGET && !w->target_made) {
            continue;
        }
        /* Whoever says finished knows it of both directions. */
        for (int k = 0; k < 2; k++) {
            if (s[k].got != s[!k].total || !s[k].got_eof || !s[k].eof) {
                die(w, "finished, but not all is delivered");
            }
        }
    }
    if (!fatal && (w->outcome[SOURCE].end != PROTOCOL_FINISHED ||
                   w->outcome[TARGET].end != PROTOCOL_FINISHED || !w->target_made)) {
        die(w, "nothing fatal happened, yet it did not finish");
    }
    if (w->outcome[TARGET].end == PROTOCOL_FINISHED && w->target_made &&
        w->outcome[SOURCE].end != PROTOCOL_FINISHED && !fatal) {
        die(w, "the ends disagree");
    }
    /* A reset comes after what was read before it. */
    for (int i = 0; i < 2; i++) {
        bool heard = w->outcome[!i].end == PROTOCOL_RESET && w->outcome[!i].by_peer;

        if ((w->faults & FATAL) == BREAKS && !(w->faults & STALLS) && w->broken[i] && heard &&
            !w->broken[!i] && s[!i].got < w->read_at_break[i]) {
            die(w, "reset came before the bytes that preceded it");
        }
    }
}

static void setup(struct world *w, uint64_t seed)
{
    static const uint32_t windows[] = {700, 3000, 16384, 65536, 200000};
    static const uint32_t blocks[] = {4096, 16384, 65536};

    memset(w, 0, sizeof(*w));
    w->seed = w->rng = seed;
    w->now = FERRY_NS_PER_S;
    w->faults = CUTS | STALLS | (one_in(w, 2) ? UPGRADES : 0);
    if (one_in(w, 4)) {
        w->faults = (unsigned)below(w, 32);
    } else if (one_in(w, 2)) {
        w->faults = (unsigned)below(w, 2048);
    }
    w->cuts_left = (unsigned)below(w, 12);
    w->pipe_room = 1 + below(w, one_in(w, 2) ? 2000 : 200000);
    w->step_max = 1 + below(w, one_in(w, 4) ? 64 : 20000);
    w->instance = 1;
    w->dial_done = w->unix_done = PROTOCOL_NEVER;
    for (int i = 0; i < 2; i++) {
        struct protocol_config *c = &w->config[i];
        struct side *s = &w->side[i];

        protocol_config_defaults(c);
        c->resume_window_ns = 60 * FERRY_NS_PER_S;
        c->open_timeout_ns = w->faults & FATAL ? 40 * FERRY_NS_PER_S : 400 * FERRY_NS_PER_S;
        c->window_max = windows[below(w, COUNT_OF(windows))];
        c->window_start = (uint32_t)(100 + below(w, c->window_max - 100));
        c->send_max = windows[below(w, COUNT_OF(windows))];
        c->block_size = blocks[below(w, COUNT_OF(blocks))];
        s->conn = -1;
        s->total = one_in(w, 6) ? below(w, 3) : below(w, one_in(w, 4) ? 150000 : 12000);
        if (w->step_max < 100) {
            s->total /= 16;
        }
    }
    if (w->faults & SLOW_HELLO) {
        w->config[SOURCE].resume_window_ns = w->config[TARGET].resume_window_ns =
            600 * FERRY_NS_PER_S;
        w->config[SOURCE].open_timeout_ns = 600 * FERRY_NS_PER_S;
    }
    if (w->faults & IMPATIENT) {
        w->config[TARGET].resume_window_ns = 2 * FERRY_NS_PER_S;
    }
    w->side[below(w, 2)].close_after_peer = one_in(w, 2);
    memset(w->config[SOURCE].id, 7, FRAME_ID);
    strcpy(w->config[SOURCE].move, "0f1e-move");
    w->config[SOURCE].channel = 49152;
}

static void start(struct world *w)
{
    w->side[SOURCE].p = protocol_new_source(&w->config[SOURCE], w->now);
    run(w);
    for (int i = 0; i < CONNS; i++) {
        pipe_clear(&w->conns[i].to[SOURCE]);
        pipe_clear(&w->conns[i].to[TARGET]);
    }
    check(w);
}

static struct world world;

static void random_worlds(void **state)
{
    const char *one = getenv("FERRY_SEED"), *many = getenv("FERRY_RUNS");
    uint64_t runs = many ? strtoull(many, NULL, 10) : 4000, first = 1;
    unsigned ends[PROTOCOL_END_COUNT] = {0}, upgrades = 0;

    (void)state;
    if (one) {
        first = strtoull(one, NULL, 10);
        runs = 1;
    }
    for (uint64_t seed = first; seed < first + runs; seed++) {
        setup(&world, seed);
        world.trace = one != NULL;
        start(&world);
        ends[world.outcome[SOURCE].end]++;
        upgrades += world.upgrades;
    }
    printf("seeds %" PRIu64 " to %" PRIu64 ", %u upgrades, source:", first, first + runs - 1,
           upgrades);
    for (int i = 0; i < PROTOCOL_END_COUNT; i++) {
        printf(" %s %u", protocol_end_name((enum protocol_end)i), ends[i]);
    }
    printf("\n");
}

/* A short stream whose first connection is cut after so many bytes. Returns how many bytes that
 * connection carried. */
static uint64_t short_stream(uint64_t seed, uint64_t cut_after)
{
    setup(&world, seed);
    world.faults = 0;
    world.side[SOURCE].total = 300;
    world.side[TARGET].total = 200;
    world.side[SOURCE].close_after_peer = seed & 1;
    world.side[TARGET].close_after_peer = false;
    world.first_cut = cut_after + 1; /* 0 = none */
    start(&world);
    return world.first_carried;
}

/* One cut after every number of bytes that a stream carries: inside HELLO, HELLO-OK, DATA, FIN, the
 * last ACK. It must finish each time. */
static void cut_at_every_byte(void **state)
{
    uint64_t seed = 1000000, carried = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        uint64_t n = short_stream(seed++, UINT64_MAX - 1);

        carried = n > carried ? n : carried;
    }
    assert_true(carried > 600);
    for (uint64_t at = 0; at <= carried; at++) {
        short_stream(seed++, at);
    }
    printf("cut after each of %" PRIu64 " bytes\n", carried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(random_worlds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
