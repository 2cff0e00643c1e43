#include "handler/serve/node_answers.h"

#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/node_call.h"
#include "handler/local/records.h"
#include "handler/serve/node_check_move.h"
#include "handler/serve/node_console.h"
#include "handler/serve/node_metrics.h"
#include "handler/serve/node_plan.h"
#include "handler/serve/node_pod.h"

#ifndef FERRY_VERSION
#define FERRY_VERSION "unknown"
#endif

enum { QUICK_MS = 5000 };

#define JSON_LINES "application/x-ndjson"
#define PLAIN_TEXT "text/plain; charset=utf-8"

/* ---- /v1/records/UID --------------------------------------------------------------------------
 */

static void records(struct http_exchange *x, const struct node_api_config *cfg, const char *uid)
{
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(cfg->node->pods);
    ferry_cleanup_buf struct ferry_buf kept = {0};
    struct ferry_error err;

    for (size_t i = 0; i < pods.n; i++) {
        ferry_cleanup_free char *socket = node_pod_socket(cfg, pods.items[i]);
        const struct launcher_at launcher = node_pod_launcher(socket, pods.items[i]);
        http_cleanup_reply struct http_reply reply = {0};

        if (node_pod_runs(pods.items[i]) && launcher.vmi &&
            launcher_get_record(&launcher, uid, &reply, NULL) == 0) {
            http_answer(x, 200, JSON_LINES, reply.body.data, reply.body.len);
            return;
        }
    }
    if (records_load(cfg->node->records_dir, uid, &kept, &err) < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer(x, 200, JSON_LINES, kept.data, kept.len);
}

/* ---- /v1/paths --------------------------------------------------------------------------------
 */

static int path_to(const struct node_api_config *cfg, const char *node, struct http_reply *ret,
                   struct ferry_error *err)
{
    ferry_cleanup_free char *escaped = http_escape(node);
    ferry_cleanup_free char *path = ferry_asprintf("/v1/paths/%s", escaped);

    return node_call(&(struct node_call){.socket = cfg->node->relay_socket,
                                         .method = "GET",
                                         .path = path,
                                         .timeout_ms = QUICK_MS},
                     ret, err);
}

static void paths(struct http_exchange *x, const struct node_api_config *cfg, const char *only)
{
    kube_cleanup_list struct kube_list nodes = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};
    struct ferry_error err;
    int rc = kube_client_list(cfg->node->client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &nodes,
                              &err);
    const char *comma = "";

    (void)only;
    ferry_buf_puts(&out, "{\"paths\":{");
    for (size_t i = 0; i < nodes.n && rc == 0; i++) {
        const char *name = nodes.items[i]->meta->name;
        http_cleanup_reply struct http_reply reply = {0};

        if (ferry_streq(name, cfg->node->name)) {
            continue;
        }
        rc = path_to(cfg, name, &reply, &err);
        if (rc == 0) {
            ferry_buf_printf(&out, "%s\"%s\":%.*s", comma, name, (int)reply.body.len,
                             reply.body.data);
            comma = ",";
        }
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    ferry_buf_puts(&out, "}}");
    http_answer_json(x, 200, out.data);
}

/* ---- /metrics ---------------------------------------------------------------------------------
 */

static void add_launchers(const struct node_api_config *cfg, struct ferry_buf *out)
{
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(cfg->node->pods);
    struct launcher_status *status = ferry_xcalloc(pods.n + 1, sizeof(*status));
    struct node_metrics_vm *vms = ferry_xcalloc(pods.n + 1, sizeof(*vms));
    size_t n = 0;

    for (size_t i = 0; i < pods.n; i++) {
        const struct api_meta *m = pods.items[i]->meta;
        ferry_cleanup_free char *socket = node_pod_socket(cfg, pods.items[i]);
        const struct launcher_at launcher = node_pod_launcher(socket, pods.items[i]);

        if (node_pod_runs(pods.items[i]) && launcher.vmi &&
            launcher_get_status(&launcher, &status[n], NULL) == 0) {
            vms[n] = (struct node_metrics_vm){m->namespace_, m->owners[0].name, &status[n]};
            n++;
        }
    }
    node_metrics_moves(out, cfg->node->name, vms, n);
    free(status);
    free(vms);
}

static void metrics(struct http_exchange *x, const struct node_api_config *cfg, const char *rest)
{
    struct node_metrics m = {.node = cfg->node->name, .version = FERRY_VERSION};
    kube_cleanup_snapshot struct kube_snapshot here = kube_informer_list(cfg->here);
    kube_cleanup_snapshot struct kube_snapshot coming = kube_informer_list(cfg->coming);
    http_cleanup_reply struct http_reply relay = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)rest;
    for (size_t i = 0; i < here.n; i++) {
        enum node_role f = node_role_of(&here.items[i]->u.vmi, m.node);

        m.roles[f] += f != NODE_ROLE_TARGET; /* those are in the other list, too */
    }
    for (size_t i = 0; i < coming.n; i++) {
        m.roles[NODE_ROLE_TARGET] +=
            node_role_of(&coming.items[i]->u.vmi, m.node) == NODE_ROLE_TARGET;
    }
    node_metrics_begin(&out, &m);
    add_launchers(cfg, &out);
    if (node_call(&(struct node_call){.socket = cfg->node->relay_socket,
                                      .method = "GET",
                                      .path = "/metrics",
                                      .timeout_ms = QUICK_MS},
                  &relay, NULL) == 0) {
        ferry_buf_append(&out, relay.body.data, relay.body.len);
    }
    http_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, out.len);
}

/* ---- /v1/pause/NAMESPACE/NAME, /v1/unpause/NAMESPACE/NAME --------------------------------------
 */

static void set_paused(struct http_exchange *x, const struct node_api_config *cfg, const char *vm,
                       bool paused)
{
    api_cleanup_object struct api_object *pod = NULL;
    struct ferry_error err;
    int rc = node_pod_of_vm(cfg, vm, &pod, &err);

    if (rc == 0) {
        ferry_cleanup_free char *socket = node_pod_socket(cfg, pod);

        const struct launcher_at launcher = node_pod_launcher(socket, pod);

        rc = launcher_set_paused(&launcher, paused, &err);
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer_json(x, 200, "{}");
}

static void pause_vm(struct http_exchange *x, const struct node_api_config *cfg, const char *vm)
{
    set_paused(x, cfg, vm, true);
}

static void unpause_vm(struct http_exchange *x, const struct node_api_config *cfg, const char *vm)
{
    set_paused(x, cfg, vm, false);
}

/* ---- routing ----------------------------------------------------------------------------------
 */

static void healthz(struct http_exchange *x, const struct node_api_config *cfg, const char *rest)
{
    (void)cfg;
    (void)rest;
    http_answer(x, 200, PLAIN_TEXT, "ok", 2);
}

void node_answer(struct http_exchange *x, const struct node_api_config *cfg)
{
    static const struct {
        const char *method;
        const char *path; /* with a '/' at its end something must follow, else nothing */
        void (*answer)(struct http_exchange *x, const struct node_api_config *cfg,
                       const char *rest);
    } routes[] = {
        {"GET", "/healthz", healthz},
        {"GET", "/metrics", metrics},
        {"GET", "/v1/paths", paths},
        {"GET", "/v1/checks/", node_check_move},
        {"GET", "/v1/records/", records},
        {"GET", "/v1/console/", node_console_read},
        {"POST", "/v1/console/", node_console_write},
        {"POST", "/v1/plan/", node_plan},
        {"POST", "/v1/pause/", pause_vm},
        {"POST", "/v1/unpause/", unpause_vm},
    };
    const char *path = http_path(x);
    bool known = false;
    struct ferry_error err;

    for (size_t i = 0; i < FERRY_COUNT(routes); i++) {
        size_t n = strlen(routes[i].path);
        bool open = routes[i].path[n - 1] == '/';

        if (strncmp(path, routes[i].path, n) != 0 || open != (path[n] != '\0')) {
            continue;
        }
        if (ferry_streq(http_method(x), routes[i].method)) {
            routes[i].answer(x, cfg, path + n);
            return;
        }
        known = true;
    }
    if (known) {
        ferry_fail(&err, FERRY_INVALID, "%s: %s is not a method of it", path, http_method(x));
        http_answer_error(x, 405, &err);
        return;
    }
    ferry_fail(&err, FERRY_NOT_FOUND, "%.200s: no such call", path);
    http_answer_error(x, 404, &err);
}
