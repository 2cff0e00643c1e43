/* Two ends of a TLS connection over a socket pair: who is accepted, who is refused with which
 * words, half-close, and credentials that change on disk. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/fd.h"
#include "base/str.h"
#include "tls/conn.h"
#include "tls/pki.h"

static char *dir;
static struct pki_ca *site, *other;

static char *path_of(const char *name)
{
    return ferry_asprintf("%s/%s", dir, name);
}

static int setup(void **state)
{
    char template[] = "/tmp/ferry-tls.XXXXXX";

    (void)state;
    dir = ferry_strdup(mkdtemp(template));
    ferry_cleanup_free char *a = path_of("site"), *b = path_of("other");
    return pki_ca_open(a, true, &site, NULL) == 0 && pki_ca_open(b, true, &other, NULL) == 0 ? 0
                                                                                             : -1;
}

static int teardown(void **state)
{
    (void)state;
    pki_ca_free(site);
    pki_ca_free(other);
    ferry_remove_tree(dir, NULL);
    free(dir);
    return 0;
}

/* A certificate that tests make: what deviates from a good relay certificate of `node`. */
struct papers {
    const char *node;
    bool other_ca, self_signed;
    bool no_client, no_server;
    int64_t lifetime_s;
};

static void write_papers(const struct papers *p, const char *name)
{
    ferry_cleanup_free char *crt = ferry_asprintf("%s/%s.crt", dir, name);
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s.key", dir, name);
    ferry_cleanup_free char *uri = pki_node_uri(p->node);
    const char *const uris[] = {uri, NULL};
    const struct pki_leaf leaf = {.common_name = name,
                                  .uris = p->node[0] ? uris : NULL,
                                  .client = !p->no_client,
                                  .server = !p->no_server,
                                  .lifetime_s = p->lifetime_s};
    struct ferry_error err;

    if (p->self_signed) {
        struct pki_ca *own = NULL;
        ferry_cleanup_free char *d = ferry_asprintf("%s/self-%s", dir, name);
        ferry_cleanup_free char *own_crt = ferry_asprintf("%s/ca.crt", d);
        ferry_cleanup_free char *own_key = ferry_asprintf("%s/ca.key", d);

        assert_int_equal(pki_ca_open(d, true, &own, &err), 0);
        pki_ca_free(own);
        assert_int_equal(rename(own_crt, crt), 0);
        assert_int_equal(rename(own_key, key), 0);
        return;
    }
    assert_int_equal(pki_issue_files(p->other_ca ? other : site, &leaf, crt, key, &err), 0);
}

static struct tls_credentials *credentials(const char *name, const char *ca_dir)
{
    ferry_cleanup_free char *crt = ferry_asprintf("%s/%s.crt", dir, name);
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s.key", dir, name);
    ferry_cleanup_free char *ca = ferry_asprintf("%s/%s/ca.crt", dir, ca_dir);
    const struct tls_credentials_files files = {.ca = ca, .cert = crt, .key = key};
    struct tls_credentials *c = NULL;
    struct ferry_error err;

    if (tls_credentials_new(&files, &c, &err) < 0 || tls_credentials_load(c, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return c;
}

struct ends {
    int fds[2]; /* client, server */
    struct tls_conn *client, *server;
    enum tls_io client_io, server_io;
    struct ferry_error client_err, server_err;
};

/* What each side speaks, and how many records under one key. */
static const char *client_protocol, *server_protocol;
static uint64_t client_renews, server_renews;

static int make_conn(struct tls_credentials *credentials, enum tls_role role, int fd,
                     const char *peer, struct tls_conn **ret, struct ferry_error *err)
{
    const struct tls_conn_config config = {
        .credentials = credentials,
        .role = role,
        .fd = fd,
        .peer.node = peer,
        .protocol = role == TLS_CLIENT ? client_protocol : server_protocol,
        .renew_after = role == TLS_CLIENT ? client_renews : server_renews,
    };

    return tls_conn_new(&config, ret, err);
}

static void join(struct ends *e, struct tls_credentials *cc, const char *expect_server,
                 struct tls_credentials *sc, const char *expect_client)
{
    struct ferry_error err;

    *e = (struct ends){0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, e->fds), 0);
    assert_int_equal(make_conn(cc, TLS_CLIENT, e->fds[0], expect_server, &e->client, &err), 0);
    assert_int_equal(make_conn(sc, TLS_SERVER, e->fds[1], expect_client, &e->server, &err), 0);
    e->client_io = e->server_io = TLS_WANT_READ;
    for (int i = 0; i < 20; i++) {
        if (e->client_io == TLS_WANT_READ || e->client_io == TLS_WANT_WRITE) {
            e->client_io = tls_conn_handshake(e->client, &e->client_err);
        }
        if (e->server_io == TLS_WANT_READ || e->server_io == TLS_WANT_WRITE) {
            e->server_io = tls_conn_handshake(e->server, &e->server_err);
        }
    }
}

static void part(struct ends *e)
{
    tls_conn_free(e->client);
    tls_conn_free(e->server);
    close(e->fds[0]);
    close(e->fds[1]);
}

static void test_who_is_let_in(void **state)
{
    static const struct {
        const char *name;
        struct papers client, server;
        const char *server_says, *client_says; /* NULL = content */
    } rows[] = {
        {"good", {.node = "a"}, {.node = "b"}, NULL, NULL},
        {"client is another node",
         {.node = "c"},
         {.node = "b"},
         "names the wrong node (node 'c', expected 'a')",
         NULL},
        {"client is no node", {.node = ""}, {.node = "b"}, "(no node, expected 'a')", NULL},
        {"prefix of the node is not it", {.node = "a2"}, {.node = "b"}, "wrong node", NULL},
        {"client of another CA",
         {.node = "a", .other_ca = true},
         {.node = "b"},
         "not come from this site's CA",
         NULL},
        {"client signed itself",
         {.node = "a", .self_signed = true},
         {.node = "b"},
         "self-signed",
         NULL},
        {"client expired",
         {.node = "a", .lifetime_s = -60},
         {.node = "b"},
         "has expired (at ",
         NULL},
        {"client is a server only",
         {.node = "a", .no_client = true},
         {.node = "b"},
         "may not be used as a client",
         NULL},
        {"server is another node",
         {.node = "a"},
         {.node = "x"},
         "the peer refused this side",
         "names the wrong node (node 'x', expected 'b')"},
        {"server of another CA",
         {.node = "a"},
         {.node = "b", .other_ca = true},
         "alert 'unknown CA'",
         "not come from this site's CA"},
        {"server signed itself",
         {.node = "a"},
         {.node = "b", .self_signed = true},
         "the peer refused this side",
         "self-signed"},
        {"server expired",
         {.node = "a"},
         {.node = "b", .lifetime_s = -60},
         "alert 'certificate expired'",
         "has expired (at "},
        {"server is a client only",
         {.node = "a"},
         {.node = "b", .no_server = true},
         "the peer refused this side",
         "may not be used as a server"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ends e;

        write_papers(&rows[i].client, "client");
        write_papers(&rows[i].server, "server");
        struct tls_credentials *cc = credentials("client", "site");
        struct tls_credentials *sc = credentials("server", "site");
        join(&e, cc, "b", sc, "a");
        if ((e.server_io == TLS_OK) != !rows[i].server_says ||
            (rows[i].server_says && !strstr(e.server_err.msg, rows[i].server_says))) {
            fail_msg("%s: server: %s", rows[i].name, e.server_err.msg);
        }
        if ((e.client_io == TLS_OK) != !rows[i].client_says ||
            (rows[i].client_says && !strstr(e.client_err.msg, rows[i].client_says))) {
            fail_msg("%s: client: %s", rows[i].name, e.client_err.msg);
        }
        if (rows[i].server_says && !rows[i].client_says) {
            /* With TLS 1.3 the client learns it at its first read. */
            char byte;
            size_t n = 0;

            assert_int_equal(tls_conn_read(e.client, &byte, 1, &n, &e.client_err), TLS_FAILED);
            assert_non_null(strstr(e.client_err.msg, "the peer refused this side"));
        }
        part(&e);
        tls_credentials_free(cc);
        tls_credentials_free(sc);
    }
}

static void test_half_close(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    struct ferry_error err;
    char buf[64];
    size_t n = 0;
    struct ends e;

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    join(&e, ca, "b", cb, "a");
    assert_int_equal(e.server_io, TLS_OK);
    assert_int_equal(tls_conn_write(e.client, "question", 8, &n, &err), TLS_OK);
    assert_int_equal(tls_conn_close_send(e.client, &err), TLS_OK);
    assert_int_equal(tls_conn_read(e.server, buf, sizeof(buf), &n, &err), TLS_OK);
    assert_int_equal(n, 8);
    assert_int_equal(tls_conn_read(e.server, buf, sizeof(buf), &n, &err), TLS_EOF);
    /* The other direction goes on. */
    assert_int_equal(tls_conn_read(e.client, buf, sizeof(buf), &n, &err), TLS_WANT_READ);
    assert_int_equal(tls_conn_write(e.server, "answer", 6, &n, &err), TLS_OK);
    assert_true(tls_conn_unsent(e.server) > 6);
    assert_int_equal(tls_conn_read(e.client, buf, sizeof(buf), &n, &err), TLS_WANT_READ);
    assert_int_equal(tls_conn_flush(e.server, &err), TLS_OK);
    assert_int_equal(tls_conn_unsent(e.server), 0);
    assert_int_equal(tls_conn_read(e.client, buf, sizeof(buf), &n, &err), TLS_OK);
    assert_int_equal(n, 6);
    assert_int_equal(tls_conn_read(e.client, buf, sizeof(buf), &n, &err), TLS_WANT_READ);
    assert_int_equal(tls_conn_close_send(e.server, &err), TLS_OK);
    assert_int_equal(tls_conn_read(e.client, buf, sizeof(buf), &n, &err), TLS_EOF);
    part(&e);
    /* A connection that ends without saying so is an error, not the end of the data. */
    join(&e, ca, "b", cb, "a");
    assert_int_equal(shutdown(e.fds[0], SHUT_RDWR), 0);
    assert_int_equal(tls_conn_read(e.server, buf, sizeof(buf), &n, &err), TLS_FAILED);
    assert_non_null(strstr(err.msg, "in the middle of the data"));
    part(&e);
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

/* How often each side has renewed its key, as OpenSSL tells it. */
static unsigned by_client, by_server;

static void watch_states(const SSL *ssl, int where, int value)
{
    (void)value;
    if (where & SSL_CB_LOOP) {
        by_client += SSL_get_state(ssl) == TLS_ST_CW_KEY_UPDATE;
        by_server += SSL_get_state(ssl) == TLS_ST_SW_KEY_UPDATE;
    }
}

static void watch(struct tls_credentials *c)
{
    SSL_CTX *ctx = NULL;

    assert_int_equal(tls_credentials_context(c, &ctx, NULL), 0);
    SSL_CTX_set_info_callback(ctx, watch_states);
    SSL_CTX_free(ctx);
}

enum { LONG_PIECE = 16 * 1024, LONG_COUNT = 300 };

/* Sends `count` full records, and takes them in as far as they come. */
static void carry(struct tls_conn *from, struct tls_conn *to, unsigned count)
{
    uint8_t sent[LONG_PIECE], got[LONG_PIECE];
    struct ferry_error err;
    uint64_t written = 0, read = 0, all = (uint64_t)count * LONG_PIECE;

    while (read < all) {
        size_t n = 0, at = written % LONG_PIECE;

        for (size_t i = 0; i < LONG_PIECE; i++) {
            sent[i] = (uint8_t)((written - at + i) * 31 >> 8);
        }
        if (written < all && tls_conn_write(from, sent + at, LONG_PIECE - at, &n, &err) == TLS_OK) {
            written += n;
        }
        (void)tls_conn_flush(from, &err);
        (void)tls_conn_read(from, got, 1, &n, &err); /* what it is asked for */
        n = 0;
        switch (tls_conn_read(to, got, sizeof(got), &n, &err)) {
        case TLS_OK:
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(got[i], (uint8_t)((read + i) * 31 >> 8));
            }
            read += n;
            break;
        case TLS_WANT_READ:
        case TLS_WANT_WRITE:
            break;
        default:
            fail_msg("%s", err.msg);
        }
    }
}

static void test_keys_are_renewed(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    static const struct {
        const char *name;
        uint64_t client, server; /* records under one key */
        unsigned client_least, client_most, server_least, server_most;
    } rows[] = {
        {"never within so few", 0, 0, 0, 0, 0, 0},
        {"the sender by itself", 10, 0, LONG_COUNT / 10 - 2, LONG_COUNT / 10, 0, 0},
        {"the receiver asks", 0, 80, 1, 4, 1, 4},
        {"a sender that does is not asked", 10, 20, LONG_COUNT / 10 - 2, LONG_COUNT / 10, 0, 0},
    };

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    watch(ca);
    watch(cb);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ends e;

        by_client = by_server = 0;
        client_renews = rows[i].client;
        server_renews = rows[i].server;
        join(&e, ca, "b", cb, "a");
        assert_int_equal(e.server_io, TLS_OK);
        carry(e.client, e.server, LONG_COUNT);
        if (by_client < rows[i].client_least || by_client > rows[i].client_most ||
            by_server < rows[i].server_least || by_server > rows[i].server_most) {
            fail_msg("%s: %u times by the client, %u by the server", rows[i].name, by_client,
                     by_server);
        }
        carry(e.server, e.client, 20); /* and back */
        part(&e);
    }
    client_renews = server_renews = 0;
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

/* After its end a side sends nothing, so it neither renews nor asks nor answers; the other goes on.
 */
static void test_renewal_after_an_end(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    static const struct {
        uint64_t client, server;
    } rows[] = {{5, 0}, {0, 5}, {5, 5}};
    struct ferry_error err;

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    watch(ca);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t piece[64] = {0}, got[64];
        size_t n = 0;
        struct ends e;

        client_renews = rows[i].client;
        server_renews = rows[i].server;
        join(&e, ca, "b", cb, "a");
        /* Small records, all of them there before the server has read one: its question comes late.
         */
        for (int k = 0; k < 20; k++) {
            assert_int_equal(tls_conn_write(e.client, piece, sizeof(piece), &n, &err), TLS_OK);
        }
        assert_int_equal(tls_conn_close_send(e.client, &err), TLS_OK);
        for (int k = 0; k < 20; k++) {
            assert_int_equal(tls_conn_read(e.server, got, sizeof(got), &n, &err), TLS_OK);
        }
        assert_int_equal(tls_conn_read(e.server, got, sizeof(got), &n, &err), TLS_EOF);
        by_client = 0;
        carry(e.server, e.client, 40);
        assert_true(by_client == 0 || rows[i].server); /* OpenSSL answers who asks */
        part(&e);
    }
    client_renews = server_renews = 0;
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

/* A key that is due while a record waits to be written stays as it is until that is through. */
static void test_renewal_waits_for_a_record(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    uint8_t piece[LONG_PIECE] = {0}, got[LONG_PIECE];
    struct ferry_error err;
    uint64_t written = 0, read = 0;
    enum tls_io io = TLS_OK;
    struct ends e;
    size_t n = 0;

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    client_renews = 1;
    join(&e, ca, "b", cb, "a");
    for (; io == TLS_OK; written += io == TLS_OK ? n : 0) {
        io = tls_conn_write(e.client, piece, sizeof(piece), &n, &err);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tls_conn_write(e.client, piece, sizeof(piece), &n, &err), TLS_WANT_WRITE);
    }
    while (read < written + LONG_PIECE) {
        if (tls_conn_read(e.server, got, sizeof(got), &n, &err) == TLS_OK) {
            read += n;
        } else if (io != TLS_OK) {
            io = tls_conn_write(e.client, piece, sizeof(piece), &n, &err);
            assert_true(io == TLS_OK || io == TLS_WANT_WRITE);
        }
        assert_int_not_equal(tls_conn_flush(e.client, &err), TLS_FAILED);
    }
    client_renews = 0;
    part(&e);
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

/* What is there for certain, although a first look may say that there is nothing yet. */
static size_t read_some(struct tls_conn *c, void *buf, size_t size)
{
    struct ferry_error err;
    size_t n = 0;

    for (int i = 0; i < 4; i++) {
        switch (tls_conn_read(c, buf, size, &n, &err)) {
        case TLS_OK:
            return n;
        case TLS_WANT_READ:
        case TLS_WANT_WRITE:
            break;
        default:
            fail_msg("%s", err.msg);
        }
    }
    fail_msg("nothing to read");
    return 0;
}

/* The peer renews its key, or asks for another of ours, while our socket takes no more. */
static void test_peer_renews_while_a_record_waits(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    uint8_t piece[LONG_PIECE] = {0}, got[LONG_PIECE];
    struct ferry_error err;
    struct ends e;

    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    (void)state;
    server_renews = 1;
    join(&e, ca, "b", cb, "a");
    for (int round = 0; round < 4; round++) {
        enum tls_io io = TLS_OK;
        size_t n = 0, whole = 0;

        for (; io == TLS_OK; whole += n) {
            n = 0;
            io = tls_conn_write(e.client, piece, sizeof(piece), &n, &err);
        }
        assert_int_equal(io, TLS_WANT_WRITE);
        if (round % 2) { /* it reads, so it asks; else it writes, so it renews its own */
            whole -= read_some(e.server, got, 1);
            whole -= read_some(e.server, got, 1);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(tls_conn_write(e.server, piece, sizeof(piece), &n, &err), TLS_OK);
        }
        assert_int_equal(tls_conn_flush(e.server, &err), TLS_OK);
        for (size_t read = 0; read < 2 * sizeof(piece);) {
            read += read_some(e.client, got, sizeof(got));
        }
        while (whole > 0) {
            assert_int_not_equal(tls_conn_flush(e.client, &err), TLS_FAILED);
            n = 0;
            io = tls_conn_read(e.server, got, sizeof(got), &n, &err);
            assert_true(io == TLS_OK || io == TLS_WANT_READ);
            whole -= n;
        }
    }
    server_renews = 0;
    part(&e);
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

static void test_no_falling_back(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    static const struct {
        const char *client, *server, *server_says, *client_says;
    } rows[] = {
        {NULL, NULL, NULL, NULL},
        {TLS_FERRY_PROTOCOL, TLS_FERRY_PROTOCOL, NULL, NULL},
        {"h2", NULL, NULL, "it does not speak h2"}, /* others' protocols mean nothing to raw TLS */
        {NULL, TLS_FERRY_PROTOCOL, "it does not offer ferry/1", "it speaks ferry/1, not raw TLS"},
        {TLS_FERRY_PROTOCOL, NULL, "it wants ferry/1", "it does not speak ferry/1"},
        {"h2", TLS_FERRY_PROTOCOL, "it does not offer ferry/1", "it does not speak"},
    };

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct ends e;

        client_protocol = rows[i].client;
        server_protocol = rows[i].server;
        join(&e, ca, "b", cb, "a");
        if ((e.server_io == TLS_FAILED) != !!rows[i].server_says ||
            (e.client_io == TLS_FAILED) != !!rows[i].client_says ||
            (rows[i].server_says && !strstr(e.server_err.msg, rows[i].server_says)) ||
            (rows[i].client_says && !strstr(e.client_err.msg, rows[i].client_says))) {
            fail_msg("row %zu: server '%s', client '%s'", i, e.server_err.msg, e.client_err.msg);
        }
        part(&e);
    }
    client_protocol = server_protocol = NULL;
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

static void test_garbage_instead_of_tls(void **state)
{
    const struct papers b = {.node = "b"};
    struct tls_conn *conn = NULL;
    struct ferry_error err;
    int fds[2];

    (void)state;
    write_papers(&b, "b");
    struct tls_credentials *cb = credentials("b", "site");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(make_conn(cb, TLS_SERVER, fds[1], "a", &conn, &err), 0);
    assert_int_equal(ferry_write_all(fds[0], "GET / HTTP/1.1\r\n\r\n", 18, &err), 0);
    assert_int_equal(tls_conn_handshake(conn, &err), TLS_FAILED);
    assert_int_equal(err.cls, FERRY_DENIED);
    assert_non_null(strstr(err.msg, "it does not speak TLS"));
    tls_conn_free(conn);
    close(fds[0]);
    close(fds[1]);
    tls_credentials_free(cb);
}

/* 499: a CA, certificate or key that changed on disk is used; half of a change is not */
static void test_credentials_are_read_again(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"}, c = {.node = "c"};
    struct ends e;

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    struct tls_credentials *ca = credentials("a", "site"), *cb = credentials("b", "site");
    join(&e, ca, "b", cb, "a");
    assert_int_equal(e.server_io, TLS_OK);
    part(&e);
    /* The server becomes node c: the next connection sees it. */
    write_papers(&c, "b");
    join(&e, ca, "b", cb, "a");
    assert_int_equal(e.client_io, TLS_FAILED);
    part(&e);
    join(&e, ca, "c", cb, "a");
    assert_int_equal(e.client_io, TLS_OK);
    part(&e);
    /* A rotation half done: key and certificate do not fit, so the former ones stay. */
    ferry_cleanup_free char *key = path_of("b.key"), *crt = path_of("b.crt");
    ferry_cleanup_free char *other_key = path_of("a.key");
    struct ferry_buf text = {0};
    assert_int_equal(ferry_read_file(other_key, 65536, &text, NULL), 0);
    assert_int_equal(ferry_write_file(key, text.data, text.len, 0600, NULL), 0);
    ferry_buf_done(&text);
    join(&e, ca, "c", cb, "a");
    assert_int_equal(e.client_io, TLS_OK);
    part(&e);
    assert_int_equal(unlink(crt), 0);
    join(&e, ca, "c", cb, "a");
    assert_int_equal(e.client_io, TLS_OK);
    part(&e);
    write_papers(&b, "b");
    join(&e, ca, "b", cb, "a");
    assert_int_equal(e.client_io, TLS_OK);
    part(&e);
    tls_credentials_free(ca);
    tls_credentials_free(cb);
}

/* 499: files that are not there or not what they should be are named */
static void test_files_that_cannot_be_used(void **state)
{
    const struct papers a = {.node = "a"}, b = {.node = "b"};
    static const struct {
        const char *ca, *cert, *key, *says;
    } rows[] = {
        {"site/ca.crt", "a.crt", "missing.key", "missing.key: No such file"},
        {"missing.crt", "a.crt", "a.key", "missing.crt: No such file"},
        {"site/ca.crt", "a.crt", "b.key", "do not belong together"},
        {"site/ca.crt", "a.key", "a.key", "a.key holds no usable certificate"},
        {"site/ca.crt", "a.crt", "a.crt", "a.crt holds no private key"},
        {"a.key", "a.crt", "a.key", "a.key holds no certificate"},
        {"site", "a.crt", "a.key", "not a file"},
    };

    (void)state;
    write_papers(&a, "a");
    write_papers(&b, "b");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *ca = path_of(rows[i].ca), *crt = path_of(rows[i].cert);
        ferry_cleanup_free char *key = path_of(rows[i].key);
        const struct tls_credentials_files files = {.ca = ca, .cert = crt, .key = key};
        struct tls_credentials *c = NULL;
        struct ferry_error err;

        assert_int_equal(tls_credentials_new(&files, &c, &err), 0);
        assert_true(tls_credentials_load(c, &err) < 0);
        if (!strstr(err.msg, rows[i].says)) {
            fail_msg("row %zu: '%s' does not say '%s'", i, err.msg, rows[i].says);
        }
        tls_credentials_free(c);
    }
    ferry_cleanup_free char *ca = path_of("site/ca.crt"), *crt = path_of("a.crt");
    ferry_cleanup_free char *key = path_of("a.key");
    const struct tls_credentials_files mine = {.ca = ca, .cert = crt, .key = key, .node = "z"};
    struct tls_credentials *wrong = NULL;
    struct ferry_error why;
    assert_int_equal(tls_credentials_new(&mine, &wrong, &why), 0);
    assert_int_equal(tls_credentials_load(wrong, &why), -FERRY_DENIED);
    assert_non_null(strstr(why.msg, "a.crt: the certificate names the wrong node (node 'a', "));
    tls_credentials_free(wrong);
    const struct tls_credentials_files nowhere = {
        .ca = "/no/such/ca.crt", .cert = "/no/such/a.crt", .key = "/no/such/a.key"};
    struct tls_credentials *none = NULL;
    struct ferry_error err;
    assert_int_equal(tls_credentials_new(&nowhere, &none, &err), -FERRY_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/no/such/ca.crt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_let_in),
        cmocka_unit_test(test_half_close),
        cmocka_unit_test(test_keys_are_renewed),
        cmocka_unit_test(test_renewal_waits_for_a_record),
        cmocka_unit_test(test_peer_renews_while_a_record_waits),
        cmocka_unit_test(test_renewal_after_an_end),
        cmocka_unit_test(test_no_falling_back),
        cmocka_unit_test(test_garbage_instead_of_tls),
        cmocka_unit_test(test_credentials_are_read_again),
        cmocka_unit_test(test_files_that_cannot_be_used),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, setup, teardown);
}
