/* The informer against a scripted API server on loopback: the conversation is fixed, so that the
 * rare turns (410, broken lines, a server that is away) come when the test wants them. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/server.h"
#include "kube/informer.h"

enum { TURNS = 14, DEADLINE_S = 20 };

/* One request that is expected and its answer. A watch that holds stays open until the server
 * stops. */
struct turn {
    const char *from; /* watch from this version; NULL = a list */
    int status;
    const char *body;
    bool hold;
};

struct stage {
    const struct turn *turns;
    pthread_mutex_t lock;
    size_t at;
    char problem[256];
    struct ferry_buf deltas; /* "+a@1 ~a@2 -a@2 " */
    struct http_server *server;
    int port;
};

struct streaming {
    struct stage *stage;
    const struct turn *turn;
    size_t sent;
};

static ssize_t stream_read(void *ctx, char *buf, size_t max)
{
    struct streaming *s = ctx;
    size_t left = strlen(s->turn->body) - s->sent;
    /* Seven bytes at a time: lines never arrive whole. */
    size_t n = left < 7 ? left : 7;

    if (n > 0) {
        n = n < max ? n : max;
        memcpy(buf, s->turn->body + s->sent, n);
        s->sent += n;
        return (ssize_t)n;
    }
    if (s->turn->hold && !http_server_stopping(s->stage->server)) {
        ferry_sleep_ms(20);
        return 0;
    }
    return -1;
}

static void stream_done(void *ctx)
{
    free(ctx);
}

static void serve(struct http_exchange *x, void *ctx)
{
    struct stage *st = ctx;
    const char *from = http_query(x, "watch") ? http_query(x, "resourceVersion") : NULL;

    pthread_mutex_lock(&st->lock);
    const struct turn *t = &st->turns[st->at];
    if (!t->body) {
        snprintf(st->problem, sizeof(st->problem), "one request too many: %s from %s",
                 from ? "watch" : "list", from ? from : "-");
        t = NULL;
    } else if (!ferry_streq(from, t->from)) {
        snprintf(st->problem, sizeof(st->problem), "turn %zu: %s from %s, expected %s", st->at,
                 from ? "watch" : "list", from ? from : "-", t->from ? t->from : "list");
        t = NULL;
    } else {
        st->at++;
    }
    pthread_mutex_unlock(&st->lock);
    if (!t) {
        http_answer(x, 503, "text/plain", "", 0);
    } else if (!from || t->status != 200) {
        http_answer_json(x, t->status, t->body);
    } else {
        struct streaming *s = ferry_xcalloc(1, sizeof(*s));

        *s = (struct streaming){.stage = st, .turn = t};
        http_answer_stream(
            x, 200, "application/json",
            &(struct http_stream){.read = stream_read, .done = stream_done, .ctx = s});
    }
}

static int listen_on(int port, int *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 16), 0);
    getsockname(fd, (struct sockaddr *)&a, &len);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static void stage_open(struct stage *st)
{
    struct ferry_error err = {0};
    int fd = listen_on(st->port, &st->port);

    assert_int_equal(http_server_start(
                         &(struct http_server_config){
                             .name = "script", .listen_fd = fd, .handle = serve, .ctx = st},
                         &st->server, &err),
                     0);
}

static void on_delta(void *ctx, struct api_object *old, struct api_object *now)
{
    struct stage *st = ctx;
    const struct api_meta *m = now ? now->meta : old->meta;

    pthread_mutex_lock(&st->lock);
    ferry_buf_printf(&st->deltas, "%c%s@%s ",
                     !old   ? '+'
                     : !now ? '-'
                            : '~',
                     m->name, m->resource_version);
    pthread_mutex_unlock(&st->lock);
}

static struct kube_client *client_for(int port)
{
    struct kube_client *c = NULL;
    struct ferry_error err = {0};
    ferry_cleanup_free char *url = ferry_asprintf("http://127.0.0.1:%d", port);

    assert_int_equal(kube_client_new(&(struct kube_config){.server = url}, &c, &err), 0);
    return c;
}

/* Waits until the deltas are `want`, then a moment that nothing comes after. */
static void expect_deltas(struct stage *st, const char *name, const char *want)
{
    int64_t deadline = ferry_now_ns() + DEADLINE_S * FERRY_NS_PER_S;
    bool equal = false;

    while (!equal && ferry_now_ns() < deadline) {
        pthread_mutex_lock(&st->lock);
        equal =
            strcmp(st->deltas.data ? st->deltas.data : "", want) == 0 && !st->turns[st->at].body;
        pthread_mutex_unlock(&st->lock);
        ferry_sleep_ms(5);
    }
    pthread_mutex_lock(&st->lock);
    ferry_cleanup_free char *got = ferry_strdup(st->deltas.data ? st->deltas.data : "");
    ferry_cleanup_free char *problem = ferry_strdup(st->problem);
    pthread_mutex_unlock(&st->lock);
    if (!equal || problem[0]) {
        fail_msg("%s: deltas '%s', expected '%s'; %s", name, got, want, problem);
    }
}

#define POD(name, rv)                                                                              \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"u-" name                  \
    "\",\"resourceVersion\":\"" rv "\"}}"
#define LIST(rv, items)                                                                            \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}")
#define STATUS(code, text)                                                                         \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" code ",\"message\":\"" text "\"}"

static const struct conversation {
    const char *name, *deltas;
    struct turn turns[TURNS];
    enum api_kind kind; /* pods unless told otherwise */
} conversations[] = {
    {"events in order, resumed from the last event",
     "+a@1 +b@2 +c@11 ~a@12 -b@2 ",
     {{NULL, 200, LIST("10", POD("a", "1") "," POD("b", "2"))},
      {"10", 200,
       EVENT("ADDED", POD("c", "11")) EVENT("MODIFIED", POD("a", "12"))
           EVENT("DELETED", POD("b", "13"))},
      {"13", 200, "\n", true}}},
    {"a bookmark moves the version on",
     "+a@1 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, BOOKMARK("40")},
      {"40", 200, "\n", true}}},
    {"410 as a status lists again; what changed meanwhile comes as deltas",
     "+a@1 +b@2 ~a@52 +d@53 -b@2 ",
     {{NULL, 200, LIST("10", POD("a", "1") "," POD("b", "2"))},
      {"10", 410, STATUS("410", "too old resource version")},
      {NULL, 200, LIST("60", POD("a", "52") "," POD("d", "53"))},
      {"60", 200, "\n", true}}},
    {"410 as an event lists again",
     "+a@1 -a@1 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, EVENT("ERROR", STATUS("410", "too old"))},
      {NULL, 200, LIST("60", "")},
      {"60", 200, "\n", true}}},
    {"another error event resumes without a list",
     "+a@1 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, EVENT("ERROR", STATUS("500", "etcd away"))},
      {"10", 200, "\n", true}}},
    {"a broken line resumes from before it",
     "+a@1 +b@11 +c@12 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, EVENT("ADDED", POD("b", "11")) "{\"type\":\"ADDED\",\"obj\n"},
      {"11", 200, EVENT("ADDED", POD("c", "12"))},
      {"12", 200, "\n", true}}},
    {"a line cut by the end of the stream is not applied",
     "+a@1 +b@11 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, "{\"type\":\"ADDED\",\"object\":" POD("b", "11")},
      {"10", 200, EVENT("ADDED", POD("b", "11"))},
      {"11", 200, "\n", true}}},
    {"a malformed object does not stop the others",
     "+a@1 +c@12 ",
     {{NULL, 200, LIST("10", "{\"metadata\":7}," POD("a", "1"))},
      {"10", 200,
       EVENT("ADDED", "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"11\"},\"spec\":[]}")
           EVENT("ADDED", POD("c", "12"))},
      {"12", 200, "\n", true}}},
    {"a repeated event is no delta",
     "+a@1 +b@11 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, EVENT("ADDED", POD("b", "11")) EVENT("MODIFIED", POD("b", "11"))},
      {"11", 200, "\n", true}}},
    {"a failing list is tried again",
     "+a@1 ",
     {{NULL, 503, STATUS("503", "starting")},
      {NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, "\n", true}}},
    {"a kind of our own that is not served yet is waited for",
     "+a@1 ",
     {{NULL, 404, "404 page not found"},
      {NULL, 404, "404 page not found"},
      {NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 200, "\n", true}},
     API_KIND_VMI},
    {"a foreign kind that is not installed is empty, and not asked for all the time",
     "",
     {{NULL, 404, "404 page not found"}},
     API_KIND_NETWORK},
    {"a foreign kind that was there is not taken for gone",
     "+a@1 +b@61 ",
     {{NULL, 200, LIST("10", POD("a", "1"))},
      {"10", 410, STATUS("410", "too old resource version")},
      {NULL, 404, "404 page not found"},
      {NULL, 200, LIST("60", POD("a", "1"))},
      {"60", 200, EVENT("ADDED", POD("b", "61")), true}},
     API_KIND_STORAGE_PROFILE},
};

static void test_conversations(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(conversations); i++) {
        const struct conversation *c = &conversations[i];
        struct stage st = {.turns = c->turns, .lock = PTHREAD_MUTEX_INITIALIZER};
        struct kube_informer *inf = NULL;
        struct ferry_error err = {0};

        stage_open(&st);
        struct kube_client *client = client_for(st.port);
        const struct kube_informer_config cfg = {.client = client,
                                                 .kind = c->kind ? c->kind : API_KIND_POD,
                                                 .on_delta = on_delta,
                                                 .ctx = &st};
        assert_int_equal(kube_informer_start(&cfg, &inf, &err), 0);
        if (kube_informer_wait_synced(inf, ferry_now_ns() + DEADLINE_S * FERRY_NS_PER_S, &err) <
            0) {
            fail_msg("%s: %s", c->name, err.msg);
        }
        expect_deltas(&st, c->name, c->deltas);
        kube_informer_cancel(inf);
        http_server_stop(st.server);
        kube_informer_stop(inf);
        kube_client_free(client);
        ferry_buf_done(&st.deltas);
    }
}

static void test_reads(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        {NULL, 200, LIST("10", POD("b", "2") "," POD("a", "1"))},
        {"10", 200, EVENT("MODIFIED", POD("a", "11")), true},
        {0},
    };
    struct stage st = {.turns = turns, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct kube_informer *inf = NULL;
    struct ferry_error err = {0};

    stage_open(&st);
    struct kube_client *client = client_for(st.port);
    kube_informer_start(
        &(struct kube_informer_config){
            .client = client, .kind = API_KIND_POD, .on_delta = on_delta, .ctx = &st},
        &inf, &err);
    expect_deltas(&st, "reads", "+b@2 +a@1 ~a@11 ");
    kube_cleanup_snapshot struct kube_snapshot s = kube_informer_list(inf);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.items[0]->meta->name, "a");
    assert_string_equal(s.items[1]->meta->name, "b");
    api_cleanup_object struct api_object *a = kube_informer_get(inf, "ns", "a");
    assert_string_equal(a->meta->resource_version, "11");
    assert_null(kube_informer_get(inf, "ns", "x"));
    assert_null(kube_informer_get(inf, "other", "a"));
    kube_informer_cancel(inf);
    http_server_stop(st.server);
    kube_informer_stop(inf);
    kube_client_free(client);
    ferry_buf_done(&st.deltas);
    assert_string_equal(a->meta->name, "a"); /* outlives the cache */
}

static void test_server_away_at_first(void **state)
{
    (void)state;
    static const struct turn turns[] = {
        {NULL, 200, LIST("10", POD("a", "1"))}, {"10", 200, "\n", true}, {0}};
    struct stage st = {.turns = turns, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct kube_informer *inf = NULL;
    struct ferry_error err = {0};

    close(listen_on(0, &st.port));
    struct kube_client *client = client_for(st.port);
    kube_informer_start(
        &(struct kube_informer_config){
            .client = client, .kind = API_KIND_POD, .on_delta = on_delta, .ctx = &st},
        &inf, &err);
    assert_int_equal(kube_informer_wait_synced(inf, ferry_now_ns() + 300 * FERRY_NS_PER_MS, &err),
                     -FERRY_RETRY);
    assert_non_null(strstr(err.msg, "pods"));
    assert_false(kube_informer_synced(inf));
    stage_open(&st);
    assert_int_equal(
        kube_informer_wait_synced(inf, ferry_now_ns() + DEADLINE_S * FERRY_NS_PER_S, &err), 0);
    expect_deltas(&st, "away at first", "+a@1 ");
    kube_informer_cancel(inf);
    http_server_stop(st.server);
    kube_informer_stop(inf);
    kube_client_free(client);
    ferry_buf_done(&st.deltas);
}

#define TOO_OLD                                                                                    \
    {NULL, 200, LIST("10", POD("a", "1"))},                                                        \
    {                                                                                              \
        "10", 410, STATUS("410", "too old resource version")                                       \
    }

/* Whose lists are always too old by the time they have come is not asked for them ever faster. */
static void test_too_old_again_and_again(void **state)
{
    (void)state;
    static const struct turn turns[] = {TOO_OLD,
                                        TOO_OLD,
                                        TOO_OLD,
                                        TOO_OLD,
                                        TOO_OLD,
                                        {NULL, 200, LIST("10", POD("a", "1"))},
                                        {"10", 200, "\n", true},
                                        {0}};
    struct stage st = {.turns = turns, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct kube_informer *inf = NULL;
    struct ferry_error err = {0};
    int64_t began = ferry_now_ns();

    stage_open(&st);
    struct kube_client *client = client_for(st.port);
    kube_informer_start(
        &(struct kube_informer_config){
            .client = client, .kind = API_KIND_POD, .on_delta = on_delta, .ctx = &st},
        &inf, &err);
    expect_deltas(&st, "too old again and again", "+a@1 ");
    /* five pauses that double from 100 ms, each at least half of that */
    assert_true(ferry_now_ns() - began >= 1550 * FERRY_NS_PER_MS);
    kube_informer_cancel(inf);
    http_server_stop(st.server);
    kube_informer_stop(inf);
    kube_client_free(client);
    ferry_buf_done(&st.deltas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_server_away_at_first),
        cmocka_unit_test(test_too_old_again_and_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
