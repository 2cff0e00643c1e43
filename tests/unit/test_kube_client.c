#include "lib/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/server.h"
#include "kube/client.h"
#include "kube/recorder.h"

/* ---- kubeconfig ------------------------------------------------------------------------------
 */

#define CONFIG(cluster, user)                                                                      \
    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"                                           \
    "contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: team}\n"                    \
    "clusters:\n- name: k\n  cluster:\n" cluster "users:\n- name: u\n  user:\n" user

static const struct config_case {
    const char *name, *text;
    const char *server, *ca, *cert, *key, *token; /* expected, or */
    const char *error;
} config_cases[] = {
    {"data inside",
     CONFIG("    server: https://h:6443/\n    certificate-authority-data: Q0E=\n",
            "    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ\n"),
     .server = "https://h:6443", .ca = "CA", .cert = "CERT", .key = "KEY"},
    {"a token", CONFIG("    server: https://h\n", "    token: sesame\n"), .server = "https://h",
     .token = "sesame"},
    {"files beside it",
     CONFIG("    server: https://h\n    certificate-authority: ca.pem\n",
            "    client-certificate: ca.pem\n    client-key: ca.pem\n"),
     .server = "https://h", .ca = "FILE\n", .cert = "FILE\n", .key = "FILE\n"},
    {"JSON is YAML",
     "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}],"
     "\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"http://h\"}}]}",
     .server = "http://h"},
    {"no such context", "current-context: x\ncontexts: []\n", .error = "names no context"},
    {"no server", CONFIG("    insecure: 1\n", "    token: t\n"),
     .error = "no cluster with a server"},
    {"half a key pair",
     CONFIG("    server: https://h\n", "    client-certificate-data: Q0VSVA==\n"),
     .error = "go together"},
    {"not base64",
     CONFIG("    server: https://h\n    certificate-authority-data: '%%%%'\n", "    token: t\n"),
     .error = "certificate-authority-data: not base64"},
    {"missing file",
     CONFIG("    server: https://h\n    certificate-authority: gone.pem\n", "    token: t\n"),
     .error = "gone.pem"},
    {"empty", "", .error = "is empty"},
    {"not YAML", "a: [\n", .error = "kubeconfig"},
};

static void assert_same(const char *name, const char *got, const char *want)
{
    if (!ferry_streq(got, want)) {
        fail_msg("%s: got '%s', expected '%s'", name, got ? got : "(none)", want ? want : "(none)");
    }
}

static void test_config(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-kube-XXXXXX";
    struct ferry_error err = {0};

    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *pem = ferry_asprintf("%s/ca.pem", dir);
    ferry_cleanup_free char *path = ferry_asprintf("%s/config", dir);
    assert_int_equal(ferry_write_file(pem, "FILE\n", 5, 0600, &err), 0);
    for (size_t i = 0; i < COUNT_OF(config_cases); i++) {
        const struct config_case *c = &config_cases[i];
        kube_cleanup_config struct kube_config config = {0};

        assert_int_equal(ferry_write_file(path, c->text, strlen(c->text), 0600, &err), 0);
        err = (struct ferry_error){0};
        int rc = kube_config_load(path, &config, &err);
        if (c->error) {
            if (rc >= 0 || !strstr(err.msg, c->error)) {
                fail_msg("%s: '%s' does not say '%s'", c->name, err.msg, c->error);
            }
            continue;
        }
        if (rc < 0) {
            fail_msg("%s: %s", c->name, err.msg);
        }
        assert_same(c->name, config.server, c->server);
        assert_same(c->name, config.ca_pem, c->ca);
        assert_same(c->name, config.cert_pem, c->cert);
        assert_same(c->name, config.key_pem, c->key);
        assert_same(c->name, config.token, c->token);
    }
    assert_int_equal(kube_config_load("/nowhere/config", &(struct kube_config){0}, &err),
                     -FERRY_NOT_FOUND);
    ferry_remove_tree(dir, NULL);
}

static void test_in_cluster(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-kube-XXXXXX";
    struct ferry_error err = {0};
    kube_cleanup_config struct kube_config c = {0}, six = {0}, none = {0};

    assert_non_null(mkdtemp(dir));
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(kube_config_in_cluster(dir, &none, &err), -FERRY_NOT_FOUND);
    assert_non_null(strstr(err.msg, "KUBERNETES_SERVICE_HOST"));
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(kube_config_in_cluster(dir, &none, &err), -FERRY_NOT_FOUND);
    assert_non_null(strstr(err.msg, "service account"));
    ferry_cleanup_free char *ca = ferry_asprintf("%s/ca.crt", dir);
    ferry_cleanup_free char *token = ferry_asprintf("%s/token", dir);
    ferry_cleanup_free char *ns = ferry_asprintf("%s/namespace", dir);
    assert_int_equal(ferry_write_file(ca, "PEM\n", 4, 0600, &err), 0);
    assert_int_equal(ferry_write_file(token, "one\n", 4, 0600, &err), 0);
    assert_int_equal(kube_config_in_cluster(dir, &c, &err), 0);
    assert_string_equal(c.server, "https://10.96.0.1:443");
    assert_string_equal(c.ca_pem, "PEM\n");
    assert_string_equal(c.token, "one");
    assert_string_equal(c.token_file, token);
    assert_null(c.namespace_);
    assert_int_equal(ferry_write_file(ns, "ferry", 5, 0600, &err), 0);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    assert_int_equal(kube_config_in_cluster(dir, &six, &err), 0);
    assert_string_equal(six.server, "https://[fd00::1]:443");
    assert_string_equal(six.namespace_, "ferry");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    ferry_remove_tree(dir, NULL);
}

/* ---- calls against a server that answers as told and keeps what it was asked -------------------
 */

enum { EVENT_OBJECTS = 300, EVENTS_EACH = 4 };

struct server {
    int status;
    const char *body;
    char method[16], path[256], media[64], request[2048], authorization[256];
    struct http_server *http;
    struct kube_client *client;
    char url[64];
    int events, disorder, last_event[EVENT_OBJECTS];
};

static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER; /* guards its answer and its notes */

/* What it answers from now on; what it has noted already is answered as it was told then. */
static void answer_with(struct server *s, int status, const char *body)
{
    pthread_mutex_lock(&serving);
    s->status = status;
    s->body = body;
    pthread_mutex_unlock(&serving);
}

/* "number K of object I": do those of one object come in their order? */
static void note_event(struct server *s)
{
    const char *text = strstr(s->request, "number ");
    int number = 0, object = 0;

    if (text && sscanf(text, "number %d of object %d", &number, &object) == 2) {
        s->events++;
        s->disorder += number != ++s->last_event[object];
    }
}

static void serve(struct http_exchange *x, void *ctx)
{
    struct server *s = ctx;
    size_t len = 0;
    const char *media = http_header(x, "Content-Type");

    pthread_mutex_lock(&serving);
    snprintf(s->method, sizeof(s->method), "%s", http_method(x));
    snprintf(s->path, sizeof(s->path), "%s", http_path(x));
    snprintf(s->media, sizeof(s->media), "%s", media ? media : "");
    snprintf(s->request, sizeof(s->request), "%s", http_body(x, &len));
    const char *authorization = http_header(x, "Authorization");
    snprintf(s->authorization, sizeof(s->authorization), "%s", authorization ? authorization : "");
    note_event(s);
    int status = s->status;
    const char *body = s->body;
    pthread_mutex_unlock(&serving);
    http_answer_json(x, status, body);
}

static int setup(void **state)
{
    static struct server s;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct ferry_error err = {0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0) {
        return -1;
    }
    getsockname(fd, (struct sockaddr *)&a, &len);
    int rc = http_server_start(
        &(struct http_server_config){.name = "t", .listen_fd = fd, .handle = serve, .ctx = &s},
        &s.http, &err);
    snprintf(s.url, sizeof(s.url), "http://127.0.0.1:%d", ntohs(a.sin_port));
    *state = &s;
    return rc < 0 ? rc : kube_client_new(&(struct kube_config){.server = s.url}, &s.client, &err);
}

static int teardown(void **state)
{
    struct server *s = *state;

    kube_client_free(s->client);
    http_server_stop(s->http);
    return 0;
}

static const char POD[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
                          "\"namespace\":\"n\",\"uid\":\"u1\",\"resourceVersion\":\"5\"}}";

static void test_classes(void **state)
{
    struct server *s = *state;
    static const struct {
        int status, cls;
    } cases[] = {{400, FERRY_INVALID},   {401, FERRY_DENIED},   {403, FERRY_DENIED},
                 {404, FERRY_NOT_FOUND}, {409, FERRY_CONFLICT}, {410, FERRY_RETRY},
                 {422, FERRY_INVALID},   {429, FERRY_RETRY},    {500, FERRY_RETRY},
                 {503, FERRY_RETRY},     {504, FERRY_RETRY}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        struct api_object *o = NULL;

        answer_with(s, cases[i].status,
                    "{\"kind\":\"Status\",\"message\":\"the server's own words\"}");
        int rc = kube_client_get(s->client, kube_ref(API_KIND_POD, "n", "p"), &o, &err);
        assert_int_equal(rc, -cases[i].cls);
        assert_int_equal(err.http, cases[i].status);
        assert_non_null(strstr(err.msg, "the server's own words"));
        assert_non_null(strstr(err.msg, "get pods n/p"));
        assert_null(o);
    }
}

static void test_patch(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    static const char guarded[] = "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]";

    answer_with(s, 422, "{\"kind\":\"Status\",\"message\":\"no\"}");
    struct kube_ref ref = kube_ref(API_KIND_VMI, "n", "v");
    assert_int_equal(kube_client_patch(s->client, ref, KUBE_PATCH_JSON, guarded, NULL, &err),
                     -FERRY_CONFLICT);
    assert_int_equal(err.cls, FERRY_CONFLICT);
    assert_non_null(strstr(err.msg, "changed meanwhile"));
    answer_with(s, 422,
                "{\"kind\":\"Status\",\"message\":\"status.phase: no such\",\"details\":"
                "{\"kind\":\"VirtualMachineInstance\",\"name\":\"v\"}}");
    assert_int_equal(kube_client_patch(s->client, ref, KUBE_PATCH_JSON, guarded, NULL, &err),
                     -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "status.phase"));
    assert_string_equal(s->media, "application/json-patch+json");
    assert_string_equal(s->request, guarded);
    /* what only speaks of a test is no guard: there is nothing to try again */
    static const char plain[] = "[{\"op\":\"add\",\"path\":\"/test\",\"value\":\"test\"}]";
    answer_with(s, 422, "{\"kind\":\"Status\",\"message\":\"no\"}");
    assert_int_equal(kube_client_patch(s->client, ref, KUBE_PATCH_JSON, plain, NULL, &err),
                     -FERRY_INVALID);
    assert_int_equal(kube_client_patch(s->client, ref, KUBE_PATCH_JSON, "[]", NULL, &err),
                     -FERRY_INVALID);
    assert_int_equal(kube_client_patch(s->client, ref, KUBE_PATCH_MERGE, "{}", NULL, &err),
                     -FERRY_INVALID);
    assert_string_equal(s->media, "application/merge-patch+json");
    assert_string_equal(s->path, "/apis/kubevirt.io/v1/namespaces/n/virtualmachineinstances/v");
}

static void test_requests(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *pod = NULL;

    answer_with(s, 200, POD);
    assert_int_equal(kube_client_get(s->client, kube_ref(API_KIND_POD, "n", "p"), &pod, &err), 0);
    assert_string_equal(pod->meta->uid, "u1");
    assert_string_equal(s->path, "/api/v1/namespaces/n/pods/p");

    struct kube_delete_options options = {.uid = "u1", .has_grace = true, .grace_s = 0};
    assert_int_equal(kube_client_delete(s->client, kube_ref_of(pod), &options, &err), 0);
    assert_string_equal(s->method, "DELETE");
    assert_non_null(strstr(s->request, "\"gracePeriodSeconds\":0"));
    assert_non_null(strstr(s->request, "\"preconditions\":{\"uid\":\"u1\"}"));

    answer_with(s, 201, POD);
    assert_int_equal(kube_client_bind(s->client, pod, "node-2", &err), 0);
    assert_string_equal(s->path, "/api/v1/namespaces/n/pods/p/binding");
    assert_non_null(strstr(s->request, "\"name\":\"node-2\""));

    assert_string_equal(kube_ref_status(pod).subresource, "status");
    assert_int_equal(
        kube_client_create(s->client, kube_ref(API_KIND_POD, "n", "p"), POD, NULL, &err), 0);
    assert_string_equal(s->path, "/api/v1/namespaces/n/pods");

    answer_with(s, 200, "not json");
    struct api_object *o = NULL;
    assert_true(kube_client_get(s->client, kube_ref(API_KIND_POD, "n", "p"), &o, &err) < 0);
    assert_null(o);
}

/* A token file is read again when it is another one, and what cannot be read changes nothing. */
static void test_token_file(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    char dir[] = "/tmp/test-kube-XXXXXX";
    kube_cleanup_client struct kube_client *client = NULL;
    static const struct {
        const char *text; /* NULL: the file is gone */
        const char *sent;
    } steps[] = {{"one\n", "Bearer one"},
                 {"two, longer\n", "Bearer two, longer"},
                 {"", "Bearer two, longer"},
                 {NULL, "Bearer two, longer"},
                 {"three", "Bearer three"}};

    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *file = ferry_asprintf("%s/token", dir);
    struct kube_config config = {.server = s->url, .token = (char[]){"first"}, .token_file = file};
    assert_int_equal(kube_client_new(&config, &client, &err), 0);
    answer_with(s, 200, POD);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        api_cleanup_object struct api_object *pod = NULL;

        if (steps[i].text) {
            assert_int_equal(
                ferry_write_file(file, steps[i].text, strlen(steps[i].text), 0600, &err), 0);
        } else {
            unlink(file);
        }
        assert_int_equal(kube_client_get(client, kube_ref(API_KIND_POD, "n", "p"), &pod, &err), 0);
        assert_string_equal(s->authorization, steps[i].sent);
    }
    ferry_remove_tree(dir, NULL);
}

static int conflict_until(void *ctx, struct ferry_error *err)
{
    int *left = ctx;

    return --*left > 0 ? ferry_fail(err, FERRY_CONFLICT, "another was quicker") : 0;
}

static int always_invalid(void *ctx, struct ferry_error *err)
{
    ++*(int *)ctx;
    return ferry_fail(err, FERRY_INVALID, "no");
}

static void test_conflicts(void **state)
{
    struct ferry_error err = {0};
    int left = 3, never = 1000, calls = 0;

    (void)state;
    assert_int_equal(kube_retry_conflicts(conflict_until, &left, &err), 0);
    assert_int_equal(left, 0);
    assert_int_equal(kube_retry_conflicts(conflict_until, &never, &err), -FERRY_CONFLICT);
    assert_true(never > 900);
    assert_int_equal(kube_retry_conflicts(always_invalid, &calls, &err), -FERRY_INVALID);
    assert_int_equal(calls, 1);
}

static void test_events(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *pod = NULL;
    struct kube_recorder *r = NULL;

    assert_int_equal(api_object_parse(API_KIND_POD, POD, sizeof(POD) - 1, &pod, &err), 0);
    answer_with(s, 201, "{}");
    assert_int_equal(kube_recorder_start(s->client, "test", "host", &r, &err), 0);
    kube_record(r, pod, KUBE_EVENT_WARNING, "Because", "it \"happened\" %d times", 2);
    kube_recorder_stop(r);
    assert_string_equal(s->path, "/api/v1/namespaces/n/events");
    assert_non_null(strstr(s->request, "\"reason\":\"Because\""));
    assert_non_null(strstr(s->request, "it \\\"happened\\\" 2 times"));
    assert_non_null(strstr(s->request, "\"uid\":\"u1\""));

    assert_int_equal(kube_recorder_start(s->client, "test", NULL, &r, &err), 0);
    for (int i = 0; i < 3; i++) {
        kube_record(r, pod, KUBE_EVENT_NORMAL, "Again", "and again");
    }
    kube_recorder_stop(r);
    assert_string_equal(s->method, "PATCH");
    assert_non_null(strstr(s->request, "\"count\":3"));
    kube_record(NULL, pod, KUBE_EVENT_NORMAL, "Nobody", "listens");
}

/* What is left of a move when its object is gone says which VM it was about. */
static void test_events_of_moves(void **state)
{
    static const char text[] = "{\"metadata\":{\"name\":\"m\",\"namespace\":\"n\",\"uid\":\"u1\"},"
                               "\"spec\":{\"vmiName\":\"web\"}}";
    struct server *s = *state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *move = NULL;
    struct kube_recorder *r = NULL;

    assert_int_equal(api_object_parse(API_KIND_MIGRATION, text, sizeof(text) - 1, &move, &err), 0);
    s->status = 201;
    s->body = "{}";
    assert_int_equal(kube_recorder_start(s->client, "test", NULL, &r, &err), 0);
    kube_record(r, move, KUBE_EVENT_NORMAL, "Because", "so");
    kube_recorder_stop(r);
    assert_non_null(strstr(s->request, "\"related\":{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                                       "\"VirtualMachineInstance\",\"namespace\":\"n\",\"name\":"
                                       "\"web\"}"));
}

static bool last_request_has(struct server *s, const char *text)
{
    pthread_mutex_lock(&serving);
    bool has = strstr(s->request, text) != NULL;
    pthread_mutex_unlock(&serving);
    return has;
}

/* An event that the server no longer has is not counted up but made anew. */
static void test_event_expired(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *pod = NULL;
    struct kube_recorder *r = NULL;

    assert_int_equal(api_object_parse(API_KIND_POD, POD, sizeof(POD) - 1, &pod, &err), 0);
    answer_with(s, 201, "{}");
    assert_int_equal(kube_recorder_start(s->client, "test", NULL, &r, &err), 0);
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Hourly", "as ever");
    for (int64_t until = ferry_now_ns() + 60 * FERRY_NS_PER_S;
         !last_request_has(s, "Hourly") && ferry_now_ns() < until;) {
        usleep(1000);
    }
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Other", "to know that the first was answered");
    for (int64_t until = ferry_now_ns() + 60 * FERRY_NS_PER_S;
         !last_request_has(s, "Other") && ferry_now_ns() < until;) {
        usleep(1000);
    }
    answer_with(s, 404, "{}");
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Hourly", "as ever");
    kube_recorder_stop(r);
    assert_string_equal(s->method, "POST");
    assert_non_null(strstr(s->request, "\"reason\":\"Hourly\""));
    assert_non_null(strstr(s->request, "\"count\":1"));
}

static bool comes(struct server *s, const char *text)
{
    int64_t until = ferry_now_ns() + 60 * FERRY_NS_PER_S;

    while (!last_request_has(s, text) && ferry_now_ns() < until) {
        usleep(1000);
    }
    return last_request_has(s, text);
}

/* A server that has had too much gets it later. */
static void test_event_told_to_wait(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    api_cleanup_object struct api_object *pod = NULL;
    struct kube_recorder *r = NULL;

    assert_int_equal(api_object_parse(API_KIND_POD, POD, sizeof(POD) - 1, &pod, &err), 0);
    answer_with(s, 429, "{\"message\":\"writes too much\"}");
    assert_int_equal(kube_recorder_start(s->client, "test", NULL, &r, &err), 0);
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Patient", "in the end");
    assert_true(comes(s, "Patient"));
    pthread_mutex_lock(&serving);
    s->request[0] = '\0';
    s->status = 201;
    s->body = "{}";
    pthread_mutex_unlock(&serving);
    assert_true(comes(s, "Patient"));
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Next", "and on");
    assert_true(comes(s, "Next"));

    /* Nor does it keep a program from its end. */
    answer_with(s, 429, "{}");
    kube_record(r, pod, KUBE_EVENT_NORMAL, "Never", "taken");
    assert_true(comes(s, "Never"));
    kube_recorder_stop(r);
}

/* More than a thousand moves at once: each event is written, those of one object in order. */
static void test_event_burst(void **state)
{
    struct server *s = *state;
    struct ferry_error err = {0};
    struct kube_recorder *r = NULL;
    int done = 0, disorder = 0;

    answer_with(s, 201, "{}");
    s->events = s->disorder = 0;
    assert_int_equal(kube_recorder_start(s->client, "test", NULL, &r, &err), 0);
    for (int i = 0; i < EVENT_OBJECTS * EVENTS_EACH; i++) {
        char uid[16], message[64];

        snprintf(uid, sizeof(uid), "u%d", i % EVENT_OBJECTS);
        snprintf(message, sizeof(message), "number %d of object %d", i / EVENT_OBJECTS + 1,
                 i % EVENT_OBJECTS);
        kube_record_about(r, API_KIND_POD,
                          &(struct api_meta){.namespace_ = "n", .name = uid, .uid = uid}, NULL,
                          KUBE_EVENT_NORMAL, "Burst", NULL, message);
    }
    for (int64_t until = ferry_now_ns() + 120 * FERRY_NS_PER_S;
         done < EVENT_OBJECTS * EVENTS_EACH && ferry_now_ns() < until;) {
        usleep(10000);
        pthread_mutex_lock(&serving);
        done = s->events;
        disorder = s->disorder;
        pthread_mutex_unlock(&serving);
    }
    kube_recorder_stop(r);
    assert_int_equal(done, EVENT_OBJECTS * EVENTS_EACH);
    assert_int_equal(disorder, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_in_cluster),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_patch),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_token_file),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_of_moves),
        cmocka_unit_test(test_event_expired),
        cmocka_unit_test(test_event_told_to_wait),
        cmocka_unit_test(test_event_burst),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
