/* The HTTP server and client against each other: over a unix socket, and over TLS with every kind
 * of client certificate that must be refused. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "http/client.h"
#include "http/server.h"
#include "tls/pki.h"

struct fixture {
    char dir[64];
    char *socket_path, *picky_path;
    struct http_server *unix_server, *picky_server, *tls_server;
    struct body_budget *budget;
    struct pki_ca *ca, *other_ca;
    int port;
};

struct counter {
    int left;
};

static ssize_t count_down(void *ctx, char *buf, size_t max)
{
    struct counter *c = ctx;

    return c->left > 0 ? snprintf(buf, max, "line %d\n", c->left--) : -1;
}

static ssize_t silence(void *ctx, char *buf, size_t max)
{
    (void)ctx, (void)buf, (void)max;
    ferry_sleep_ms(100);
    return 0;
}

static void answer_who(struct http_exchange *x)
{
    const struct http_peer *peer = http_peer(x);
    char text[1024];

    snprintf(text, sizeof(text), "local=%d uid=%d cert=%d cn=%s o=%s error=%s", peer->local,
             peer->local ? (int)peer->uid : -1, peer->certificate, peer->common_name,
             peer->n_groups ? peer->groups[0] : "", peer->tls_error);
    http_answer(x, 200, "text/plain", text, strlen(text));
}

static void handle(struct http_exchange *x, void *ctx)
{
    const char *path = http_path(x);

    (void)ctx;
    if (strcmp(path, "/echo") == 0) {
        size_t n;
        const char *body = http_body(x, &n);

        http_add_header(x, "Warning", "299 - \"mind \\\"the\\\" gap\"");
        http_answer(x, 200, http_header(x, "Content-Type"), body, n);
    } else if (strcmp(path, "/who") == 0) {
        answer_who(x);
    } else if (strcmp(path, "/query and more") == 0) {
        const char *q = http_query(x, "q");

        http_answer_json(x, 200, q ? q : "absent");
    } else if (strcmp(path, "/stream") == 0) {
        struct counter *c = calloc(1, sizeof(*c));

        c->left = 3;
        http_answer_stream(x, 200, "text/plain", &(struct http_stream){count_down, free, c});
    } else if (strcmp(path, "/silence") == 0) {
        http_answer_stream(x, 200, "text/plain", &(struct http_stream){silence, NULL, NULL});
    } else if (strcmp(path, "/nothing") != 0) {
        struct ferry_error err;

        ferry_fail(&err, FERRY_NOT_FOUND, "no \"%s\" here", path);
        http_answer_error(x, 0, &err);
    }
}

static bool admit(struct http_exchange *x, struct http_terms *terms, void *ctx)
{
    struct ferry_error err;

    (void)ctx;
    if (strcmp(http_path(x), "/small") == 0) {
        terms->max_body = 4;
    }
    if (strcmp(http_path(x), "/refused") != 0) {
        return true;
    }
    ferry_fail(&err, FERRY_DENIED, "not you");
    http_answer_error(x, 0, &err);
    return false;
}

static void start_picky(struct fixture *f)
{
    struct ferry_error err;

    f->picky_path = ferry_asprintf("%s/picky.sock", f->dir);
    f->budget = body_budget_new(8 << 20);
    struct http_server_config cfg = {.name = "picky",
                                     .listen_fd = ferry_unix_listen(f->picky_path, 0600, 16, &err),
                                     .max_body = 1000,
                                     .budget = f->budget,
                                     .admit = admit,
                                     .handle = handle};
    assert_int_equal(http_server_start(&cfg, &f->picky_server, &err), 0);
}

static int listen_tcp(int *ret_port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *ret_port = ntohs(sa.sin_port);
    return fd;
}

static void start_tls(struct fixture *f)
{
    static const char *const addresses[] = {"127.0.0.1", NULL};
    ferry_cleanup_free char *cert = NULL;
    ferry_cleanup_free char *key = NULL;
    struct ferry_error err;

    assert_int_equal(
        pki_issue(f->ca,
                  &(struct pki_leaf){.common_name = "s", .addresses = addresses, .server = true},
                  &cert, &key, &err),
        0);
    struct http_server_config cfg = {.name = "tls",
                                     .listen_fd = listen_tcp(&f->port),
                                     .cert_pem = cert,
                                     .key_pem = key,
                                     .ca_pem = pki_ca_pem(f->ca),
                                     .handle = handle};
    assert_int_equal(http_server_start(&cfg, &f->tls_server, &err), 0);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct ferry_error err;

    strcpy(f->dir, "/tmp/ferry-http-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    ferry_cleanup_free char *ca_dir = ferry_asprintf("%s/ca", f->dir);
    ferry_cleanup_free char *other_dir = ferry_asprintf("%s/other", f->dir);
    assert_int_equal(pki_ca_open(ca_dir, true, &f->ca, &err), 0);
    assert_int_equal(pki_ca_open(other_dir, true, &f->other_ca, &err), 0);
    f->socket_path = ferry_asprintf("%s/server.sock", f->dir);
    struct http_server_config cfg = {.name = "unix",
                                     .listen_fd = ferry_unix_listen(f->socket_path, 0600, 16, &err),
                                     .max_body = 1000,
                                     .doors = {.body_ms = 300},
                                     .handle = handle};
    assert_int_equal(http_server_start(&cfg, &f->unix_server, &err), 0);
    start_picky(f);
    start_tls(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    http_server_stop(f->unix_server);
    http_server_stop(f->picky_server);
    http_server_stop(f->tls_server);
    body_budget_free(f->budget);
    pki_ca_free(f->ca);
    pki_ca_free(f->other_ca);
    ferry_remove_tree(f->dir, NULL);
    free(f->socket_path);
    free(f->picky_path);
    free(f);
    return 0;
}

static struct http_client *unix_client(struct fixture *f)
{
    struct http_client *c;

    assert_int_equal(http_client_new(&(struct http_client_config){.base_url = "http://localhost",
                                                                  .unix_socket = f->socket_path},
                                     &c, NULL),
                     0);
    return c;
}

static void calls_over_unix(void **state)
{
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *expect;
    } cases[] = {
        {"POST", "/echo", "{\"a\":1}", 200, "{\"a\":1}"},
        {"PUT", "/echo", NULL, 200, ""},
        {"GET", "/query%20and%20more?q=a%26b", NULL, 200, "a&b"},
        {"GET", "/query%20and%20more", NULL, 200, "absent"},
        {"GET", "/x", NULL, 404,
         "{\"code\":404,\"message\":\"no \\\"/x\\\" "
         "here\",\"retry\":false,\"reason\":\"NotFound\"}\n"},
        {"GET", "/nothing", NULL, 500,
         "{\"code\":500,\"message\":\"no answer to GET "
         "/nothing\",\"retry\":false,\"reason\":\"InternalError\"}\n"},
        {"GET", "/stream", NULL, 200, "line 3\nline 2\nline 1\n"},
    };
    struct fixture *f = *state;
    struct http_client *c = unix_client(f);

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        http_cleanup_reply struct http_reply reply = {0};
        struct ferry_error err = {0};
        struct http_call call = {.method = cases[i].method,
                                 .path = cases[i].path,
                                 .body = cases[i].body,
                                 .body_len = cases[i].body ? strlen(cases[i].body) : 0};

        assert_int_equal(http_client_call(c, &call, &reply, &err), 0);
        assert_int_equal(reply.status, cases[i].status);
        assert_string_equal(reply.body.data, cases[i].expect);
        if (strcmp(cases[i].path, "/echo") == 0) {
            assert_string_equal(reply.warning, "mind \"the\" gap");
        }
    }
    http_client_free(c);
}

static void large_bodies_are_refused(void **state)
{
    http_cleanup_reply struct http_reply reply = {0};
    struct http_client *c = unix_client(*state);
    char body[4000];
    struct ferry_error err;

    memset(body, 'x', sizeof(body));
    struct http_call call = {
        .method = "POST", .path = "/echo", .body = body, .body_len = sizeof(body)};
    assert_int_equal(http_client_call(c, &call, &reply, &err), 0);
    assert_int_equal(reply.status, 413);
    http_client_free(c);
}

static void a_missing_server_is_a_retry(void **state)
{
    struct http_client *c;
    struct http_reply reply = {0};
    struct ferry_error err;

    (void)state;
    assert_int_equal(
        http_client_new(&(struct http_client_config){.base_url = "http://localhost",
                                                     .unix_socket = "/tmp/ferry-no-such.sock"},
                        &c, NULL),
        0);
    assert_int_equal(
        http_client_call(c, &(struct http_call){.method = "GET", .path = "/"}, &reply, &err),
        -FERRY_RETRY);
    assert_non_null(strstr(err.msg, "/tmp/ferry-no-such.sock"));
    http_client_free(c);
}

static bool keep(void *ctx, const char *data, size_t n)
{
    ferry_buf_append(ctx, data, n);
    return true;
}

static void streams(void **state)
{
    ferry_cleanup_buf struct ferry_buf got = {0};
    ferry_cleanup_buf struct ferry_buf bad = {0};
    struct http_client *c = unix_client(*state);
    struct ferry_error err;
    int status;

    struct http_stream_call call = {.path = "/stream", .on_data = keep, .ctx = &got};
    assert_int_equal(http_client_stream(c, &call, &status, &bad, &err), 0);
    assert_int_equal(status, 200);
    assert_string_equal(got.data, "line 3\nline 2\nline 1\n");
    call.path = "/x";
    assert_int_equal(http_client_stream(c, &call, &status, &bad, &err), 0);
    assert_int_equal(status, 404);
    assert_non_null(strstr(bad.data, "404"));
    call.path = "/silence";
    call.idle_ms = 300;
    assert_int_equal(http_client_stream(c, &call, &status, &bad, &err), -FERRY_RETRY);
    http_client_free(c);
}

static void who_over_unix(void **state)
{
    http_cleanup_reply struct http_reply reply = {0};
    struct http_client *c = unix_client(*state);
    char expect[128];
    struct ferry_error err;

    assert_int_equal(
        http_client_call(c, &(struct http_call){.method = "GET", .path = "/who"}, &reply, &err), 0);
    snprintf(expect, sizeof(expect), "local=1 uid=%d cert=0 cn= o= error=", (int)getuid());
    assert_string_equal(reply.body.data, expect);
    http_client_free(c);
}

static void who_over_tls(void **state)
{
    static const char *const admins[] = {"ferry:admins", NULL};
    static const struct {
        const char *name;
        struct pki_leaf leaf;
        bool certificate, other_ca;
        const char *expect; /* a part of the answer */
    } cases[] = {
        {.name = "no certificate", .expect = "cert=0 cn= o= error="},
        {.name = "good",
         .certificate = true,
         .leaf = {.common_name = "me", .organizations = admins, .client = true},
         .expect = "cert=1 cn=me o=ferry:admins error="},
        {.name = "wrong usage",
         .certificate = true,
         .leaf = {.common_name = "me", .server = true},
         .expect = "cert=0 cn= o= error=The certificate is NOT trusted"},
        {.name = "wrong CA",
         .certificate = true,
         .other_ca = true,
         .leaf = {.common_name = "me", .client = true},
         .expect = "cert=0 cn= o= error=The certificate is NOT trusted"},
        {.name = "over",
         .certificate = true,
         .leaf = {.common_name = "me", .client = true, .lifetime_s = -60},
         .expect = "expired"},
    };
    struct fixture *f = *state;
    ferry_cleanup_free char *url = ferry_asprintf("https://127.0.0.1:%d", f->port);

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        http_cleanup_reply struct http_reply reply = {0};
        ferry_cleanup_free char *cert = NULL;
        ferry_cleanup_free char *key = NULL;
        struct ferry_error err = {0};
        struct http_client *c;

        if (cases[i].certificate) {
            assert_int_equal(pki_issue(cases[i].other_ca ? f->other_ca : f->ca, &cases[i].leaf,
                                       &cert, &key, &err),
                             0);
        }
        struct http_client_config cfg = {
            .base_url = url, .ca_pem = pki_ca_pem(f->ca), .cert_pem = cert, .key_pem = key};
        assert_int_equal(http_client_new(&cfg, &c, &err), 0);
        int rc =
            http_client_call(c, &(struct http_call){.method = "GET", .path = "/who"}, &reply, &err);
        if (rc != 0 || !strstr(reply.body.data, cases[i].expect)) {
            fail_msg("%s: %s", cases[i].name, rc ? err.msg : reply.body.data);
        }
        http_client_free(c);
    }
}

static void the_client_checks_the_server(void **state)
{
    struct fixture *f = *state;
    ferry_cleanup_free char *url = ferry_asprintf("https://127.0.0.1:%d", f->port);
    struct http_reply reply = {0};
    struct http_client *c;
    struct ferry_error err;

    assert_int_equal(
        http_client_new(
            &(struct http_client_config){.base_url = url, .ca_pem = pki_ca_pem(f->other_ca)}, &c,
            &err),
        0);
    assert_int_equal(
        http_client_call(c, &(struct http_call){.method = "GET", .path = "/who"}, &reply, &err),
        -FERRY_DENIED);
    http_client_free(c);
    assert_int_equal(http_client_new(&(struct http_client_config){.base_url = url}, &c, &err),
                     -FERRY_INVALID);
}

/* One byte now and then does not hold a connection for good. */
static void slow_bodies_are_cut_off(void **state)
{
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n";
    struct fixture *f = *state;
    int64_t begin = ferry_now_ns();
    ferry_cleanup_fd int fd = ferry_unix_connect(f->socket_path, begin + 60 * FERRY_NS_PER_S, NULL);
    bool open = send(fd, head, strlen(head), MSG_NOSIGNAL) > 0;

    for (int i = 0; i < 899 && open; i++) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};

        /* nothing is to be read but the end */
        open = send(fd, "x", 1, MSG_NOSIGNAL) == 1 && poll(&pfd, 1, 50) == 0;
    }
    assert_false(open);
}

/* Answers of the server under the name `name`; what went wrong otherwise. */
static int ask(struct fixture *f, const char *name, struct ferry_error *err)
{
    ferry_cleanup_free char *url = ferry_asprintf("https://%s:%d", name, f->port);
    ferry_cleanup_free char *to = ferry_asprintf("127.0.0.1:%d", f->port);
    http_cleanup_reply struct http_reply reply = {0};
    struct http_client *c;

    assert_int_equal(http_client_new(&(struct http_client_config){.base_url = url,
                                                                  .connect_to = to,
                                                                  .ca_pem = pki_ca_pem(f->ca)},
                                     &c, err),
                     0);
    int rc = http_client_call(c, &(struct http_call){.method = "GET", .path = "/x"}, &reply, err);
    http_client_free(c);
    return rc < 0 ? rc : reply.status;
}

static void certificates_are_renewed(void **state)
{
    struct fixture *f = *state;
    ferry_cleanup_free char *url = ferry_asprintf("https://127.0.0.1:%d", f->port);
    http_cleanup_reply struct http_reply reply = {0};
    struct http_client *old;
    struct ferry_error err;

    assert_int_equal(
        http_client_new(&(struct http_client_config){.base_url = url, .ca_pem = pki_ca_pem(f->ca)},
                        &old, &err),
        0);
    assert_int_equal(
        http_client_call(old, &(struct http_call){.method = "GET", .path = "/x"}, &reply, &err), 0);
    assert_int_equal(ask(f, "first", &err), -FERRY_DENIED);
    /* more often than old daemons are kept */
    for (int i = 0; i < 12; i++) {
        const char *const names[] = {i % 2 ? "second" : "first", NULL};
        ferry_cleanup_free char *cert = NULL, *key = NULL;

        assert_int_equal(
            pki_issue(f->ca,
                      &(struct pki_leaf){.common_name = "s", .dns_names = names, .server = true},
                      &cert, &key, &err),
            0);
        assert_int_equal(http_server_renew(f->tls_server, cert, key, &err), 0);
        assert_int_equal(ask(f, names[0], &err), 404);
        assert_int_equal(ask(f, i % 2 ? "first" : "second", &err), -FERRY_DENIED);
        /* a connection from before is as it was; a new one would be refused by this name */
        http_reply_done(&reply);
        reply = (struct http_reply){0};
        if (i < 3) {
            assert_int_equal(http_client_call(old,
                                              &(struct http_call){.method = "GET", .path = "/x"},
                                              &reply, &err),
                             0);
        }
    }
    assert_true(http_server_renew(f->tls_server, "nonsense", "nonsense", &err) < 0);
    assert_int_equal(ask(f, "second", &err), 404);
    http_client_free(old);
}

static void escapes(void **state)
{
    ferry_cleanup_free char *s = http_escape("a b/c=d~e");

    (void)state;
    assert_string_equal(s, "a%20b%2Fc%3Dd~e");
}

/* What a caller who may send nothing is told, and when. */
struct early {
    const char *head; /* of a request, and some of its body */
    const char *answer;
    bool closes;
};

static void ask_raw(struct fixture *f, const struct early *e)
{
    ferry_cleanup_fd int fd =
        ferry_unix_connect(f->picky_path, ferry_now_ns() + 60 * FERRY_NS_PER_S, NULL);
    char text[4096] = {0};
    size_t have = 0;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    assert_true(send(fd, e->head, strlen(e->head), MSG_NOSIGNAL) > 0);
    while (!strstr(text, "\r\n\r\n") && poll(&pfd, 1, 20000) == 1) {
        ssize_t n = read(fd, text + have, sizeof(text) - have - 1);

        assert_true(n > 0);
        have += (size_t)n;
    }
    assert_true(ferry_str_starts(text, e->answer));
    assert_null(strstr(text, "100 Continue"));
    if (e->closes) {
        while (poll(&pfd, 1, 20000) == 1 && read(fd, text, sizeof(text)) > 0) {
        }
        assert_true(poll(&pfd, 1, 0) == 1);
    }
}

/* What a request held is given back when its connection is through with it. */
static void wait_unused(const struct fixture *f)
{
    for (int i = 0; i < 1000 && body_budget_used(f->budget) > 0; i++) {
        ferry_sleep_ms(10);
    }
    assert_int_equal(body_budget_used(f->budget), 0);
}

static void bodies_that_are_not_wanted(void **state)
{
    static const struct early cases[] = {
        /* it waits to be told */
        {"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 403 ", true},
        /* more than anybody would read */
        {"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\nabc",
         "HTTP/1.1 403 ", true},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\nabc",
         "HTTP/1.1 413 ", true},
        /* a small one is thrown away, and the connection goes on */
        {"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 403 ",
         false},
        {"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde", "HTTP/1.1 413 ",
         false},
        {"POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
         "chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
         "HTTP/1.1 413 ", false},
        {"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd", "HTTP/1.1 404 ",
         false},
        {"PATCH /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 403 ",
         false},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 ", false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ask_raw(f, &cases[i]);
    }
    wait_unused(f);
}

/* There is no room for a body: it is refused, not waited for; room for a smaller one there is. */
static void bodies_have_a_budget(void **state)
{
    struct fixture *f = *state;
    size_t held = 0;
    static const struct early busy = {
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 429 ", false};
    static const struct early good = {
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 ", false};

    assert_true(body_budget_hold(f->budget, BODY_OPERATOR, 8 << 20, &held));
    ask_raw(f, &busy);
    assert_true(body_budget_hold(f->budget, BODY_OPERATOR, 7 << 20, &held));
    ask_raw(f, &good);
    assert_true(body_budget_hold(f->budget, BODY_OPERATOR, 0, &held));
    wait_unused(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_over_unix),
        cmocka_unit_test(large_bodies_are_refused),
        cmocka_unit_test(a_missing_server_is_a_retry),
        cmocka_unit_test(streams),
        cmocka_unit_test(who_over_unix),
        cmocka_unit_test(who_over_tls),
        cmocka_unit_test(the_client_checks_the_server),
        cmocka_unit_test(slow_bodies_are_cut_off),
        cmocka_unit_test(certificates_are_renewed),
        cmocka_unit_test(escapes),
        cmocka_unit_test(bodies_that_are_not_wanted),
        cmocka_unit_test(bodies_have_a_budget),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
