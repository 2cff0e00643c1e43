/* Plans carried out against a server that answers as told: what is written, and what is told of
 * what could not be. */
#include "lib/objects.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/loops/plan_apply.h"
#include "http/server.h"

/* ---- server ----------------------------------------------------------------------------------
 */

static struct {
    pthread_mutex_t lock; /* guards all below */
    int status;           /* of everything but events */
    const char *answer;
    int writes;         /* other than events */
    int events;         /* so many were posted */
    char event[8][128]; /* "KIND REASON TYPE" */
    char url[64];
    struct http_server *http;
    struct kube_client *client;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *text_at(const yyjson_val *root, const char *path)
{
    const char *text = yyjson_get_str(yyjson_ptr_get((yyjson_val *)root, path));

    return text ? text : "-";
}

static void serve(struct http_exchange *x, void *ctx)
{
    size_t len = 0;
    const char *body = http_body(x, &len);
    bool event = strstr(http_path(x), "/events") != NULL;
    (void)ctx;

    pthread_mutex_lock(&server.lock);
    int status = event ? 201 : server.status;
    const char *answer = event ? "{}" : server.answer;
    if (event && server.events < 8) {
        yyjson_doc *doc = yyjson_read(body, len, 0);
        const yyjson_val *root = yyjson_doc_get_root(doc);

        snprintf(server.event[server.events++], sizeof(server.event[0]), "%s %s %s",
                 text_at(root, "/involvedObject/kind"), text_at(root, "/reason"),
                 text_at(root, "/type"));
        yyjson_doc_free(doc);
    } else if (!event) {
        server.writes++;
    }
    pthread_mutex_unlock(&server.lock);
    http_answer_json(x, status, answer);
}

static int setup(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct ferry_error err = {0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;

    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0) {
        return -1;
    }
    getsockname(fd, (struct sockaddr *)&a, &len);
    int rc = http_server_start(
        &(struct http_server_config){.name = "t", .listen_fd = fd, .handle = serve}, &server.http,
        &err);
    snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%d", ntohs(a.sin_port));
    return rc < 0
               ? rc
               : kube_client_new(&(struct kube_config){.server = server.url}, &server.client, &err);
}

static int teardown(void **state)
{
    (void)state;
    kube_client_free(server.client);
    http_server_stop(server.http);
    return 0;
}

/* ---- cases -----------------------------------------------------------------------------------
 */

static const char MOVE[] = "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1',"
                           "'resourceVersion':'7'},'spec':{'vmiName':'web'}}";
static const char VMI[] = "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1',"
                          "'resourceVersion':'7'},'spec':{}}";
static const char POD[] = "{'metadata':{'name':'pod','namespace':'ns','uid':'pod-1',"
                          "'resourceVersion':'7'},'spec':{}}";

enum what { HAND_OVER, ABORT, CREATE, DELETE, TAKE_BACK, EVICT };

static struct api_patch *some_patch(void)
{
    struct api_patch *p = api_patch_new();

    api_patch_add_bool(p, "/status/x", true);
    return p;
}

/* What the decisions plan, in short. */
static void plan_one(struct plan *p, enum what what)
{
    api_cleanup_object struct api_object *move = make_object(API_KIND_MIGRATION, MOVE, NULL);
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, NULL);
    api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, POD, NULL);

    switch (what) {
    case HAND_OVER:
        plan_patch_status(p, vmi, some_patch());
        plan_event(p, move, KUBE_EVENT_NORMAL, "SuccessfulHandOver", "done");
        break;
    case ABORT:
        plan_patch_status(p, vmi, some_patch());
        plan_patch_status(p, move, some_patch());
        plan_event(p, move, KUBE_EVENT_NORMAL, "SuccessfulAbortMigration", "done");
        break;
    case CREATE:
        plan_create(p, API_KIND_POD, "ns", "new", ferry_strdup("{}"));
        plan_event(p, move, KUBE_EVENT_NORMAL, "SuccessfulCreate", "done");
        break;
    case DELETE:
        plan_delete(p, pod);
        plan_event(p, move, KUBE_EVENT_NORMAL, "SuccessfulDelete", "done");
        break;
    case TAKE_BACK:
        plan_delete(p, move);
        plan_event(p, vmi, KUBE_EVENT_NORMAL, "SuccessfulChangeAbortion", "done");
        break;
    case EVICT:
        plan_evict(p, pod);
        plan_event(p, vmi, KUBE_EVENT_NORMAL, "SuccessfulEvict", "done");
        break;
    }
}

#define REFUSED "{\"kind\":\"Status\",\"message\":\"no\"}"
#define FINE                                                                                       \
    "{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"9\"}}"
#define MOVE_KIND "VirtualMachineInstanceMigration "
#define VMI_KIND "VirtualMachineInstance "

static const struct {
    const char *name;
    enum what what;
    int status;
    bool each;         /* carried out one by one */
    const char *event; /* expected, or NULL */
} cases[] = {
    {"handed over", HAND_OVER, 200, false, MOVE_KIND "SuccessfulHandOver Normal"},
    {"hand-over refused", HAND_OVER, 403, false, MOVE_KIND "FailedHandOver Warning"},
    {"hand-over refused as invalid", HAND_OVER, 400, false, MOVE_KIND "FailedHandOver Warning"},
    {"hand-over too late: decided again, no event", HAND_OVER, 409, false, NULL},
    {"hand-over and the server is away: tried again, no event", HAND_OVER, 503, false, NULL},
    {"hand-over of a VM that is gone: no event", HAND_OVER, 404, false, NULL},
    {"aborted", ABORT, 200, false, MOVE_KIND "SuccessfulAbortMigration Normal"},
    {"abort refused", ABORT, 403, false, MOVE_KIND "FailedAbortMigration Warning"},
    {"created", CREATE, 201, false, MOVE_KIND "SuccessfulCreate Normal"},
    {"creation refused", CREATE, 403, false, MOVE_KIND "FailedCreate Warning"},
    {"created by an earlier try: no second event", CREATE, 409, false, NULL},
    {"deleted", DELETE, 200, false, MOVE_KIND "SuccessfulDelete Normal"},
    {"gone before: deleted", DELETE, 404, false, MOVE_KIND "SuccessfulDelete Normal"},
    {"deletion refused", DELETE, 403, false, MOVE_KIND "FailedDelete Warning"},
    {"change taken back", TAKE_BACK, 200, true, VMI_KIND "SuccessfulChangeAbortion Normal"},
    {"change could not be taken back", TAKE_BACK, 403, true,
     VMI_KIND "FailedChangeAbortion Warning"},
    {"evicted", EVICT, 201, true, VMI_KIND "SuccessfulEvict Normal"},
    {"eviction refused", EVICT, 403, true, VMI_KIND "FailedEvict Warning"},
    {"eviction has to wait: no event", EVICT, 429, true, NULL},
};

static void test_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool fine = cases[i].status < 300;
        struct plan_writer w = {.client = server.client};
        struct ferry_error err = {0};
        plan_cleanup struct plan p = {0};

        pthread_mutex_lock(&server.lock);
        server.status = cases[i].status;
        server.answer = fine ? FINE : REFUSED;
        server.events = 0;
        pthread_mutex_unlock(&server.lock);
        assert_int_equal(kube_recorder_start(server.client, "t", NULL, &w.recorder, &err), 0);
        plan_one(&p, cases[i].what);
        int rc = cases[i].each ? plan_apply_each(&p, &w, &err) : plan_apply(&p, &w, &err);
        kube_recorder_stop(w.recorder); /* writes what waits */
        bool told_error = rc < 0;
        bool want_error = !fine && !(cases[i].status == 404 && cases[i].what == DELETE) &&
                          !(cases[i].status == 409 && cases[i].what == CREATE);
        if (told_error != want_error) {
            fail_msg("%s: %d: %s", cases[i].name, rc, err.msg);
        }
        if (server.events != (cases[i].event != NULL) ||
            (cases[i].event && strcmp(server.event[0], cases[i].event) != 0)) {
            fail_msg("%s: %d events, first %s", cases[i].name, server.events,
                     server.events ? server.event[0] : "none");
        }
    }
}

/* The first write that fails ends a plan; of independent ones each is tried. */
static void test_what_is_tried(void **state)
{
    struct plan_writer w = {.client = server.client};
    struct ferry_error err = {0};
    plan_cleanup struct plan p = {0};
    (void)state;

    plan_one(&p, DELETE);
    plan_one(&p, TAKE_BACK);
    plan_one(&p, EVICT);
    server.status = 403;
    server.answer = REFUSED;
    server.writes = 0;
    assert_int_equal(plan_apply(&p, &w, &err), -FERRY_DENIED);
    assert_int_equal(server.writes, 1);
    server.writes = 0;
    assert_int_equal(plan_apply_each(&p, &w, &err), -FERRY_DENIED);
    assert_int_equal(server.writes, 3);
}

/* What was written is remembered until the caches show it. */
static void test_written_is_noted(void **state)
{
    struct pending_writes *pending = pending_writes_new();
    struct plan_writer w = {.client = server.client, .pending = pending};
    api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, POD, NULL);
    struct ferry_error err = {0};
    plan_cleanup struct plan p = {0}, q = {0};
    (void)state;

    server.status = 200;
    server.answer = FINE;
    plan_one(&p, DELETE);
    assert_int_equal(plan_apply(&p, &w, &err), 0);
    assert_true(pending_writes_is_ahead(pending, pod, ferry_now_ns()));
    plan_one(&q, HAND_OVER);
    assert_int_equal(plan_apply(&q, &w, &err), 0);
    api_cleanup_object struct api_object *old =
        make_object(API_KIND_POD, POD, "{'metadata':{'uid':'u','resourceVersion':'8'}}");
    assert_true(pending_writes_is_ahead(pending, old, ferry_now_ns()));
    pending_writes_free(pending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_what_is_tried),
        cmocka_unit_test(test_written_is_noted),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
