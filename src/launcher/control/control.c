#include "launcher/control/control.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/str.h"
#include "base/user.h"
#include "launcher/control/control_priv.h"

enum { CONNECTIONS_MAX = 32 };

static const struct route {
    const char *method, *before, *after; /* path: before UID after; no UID when `after` is NULL */
    void (*call)(struct control *c, struct http_exchange *x, const char *uid);
} routes[] = {
    {"PUT", "/v1/vm", NULL, control_put_vm},
    {"DELETE", "/v1/vm", NULL, control_delete_vm},
    {"POST", "/v1/vm/pause", NULL, control_post_pause},
    {"POST", "/v1/vm/unpause", NULL, control_post_unpause},
    {"GET", "/v1/status", NULL, control_get_status},
    {"GET", "/v1/events", NULL, control_get_events},
    {"GET", "/metrics", NULL, control_get_metrics},
    {"POST", "/v1/plan", NULL, control_post_plan},
    {"POST", "/v1/disks", NULL, control_post_disks},
    {"PUT", "/v1/target/", "", control_put_target},
    {"PUT", "/v1/migrations/", "", control_put_migration},
    {"POST", "/v1/migrations/", "/cancel", control_post_cancel},
    {"POST", "/v1/migrations/", "/finalize", control_post_finalize},
    {"POST", "/v1/migrations/", "/withdraw", control_post_withdraw},
    {"POST", "/v1/migrations/", "/recover", control_post_recover},
    {"PUT", "/v1/migrations/", "/path", control_put_path},
    {"PUT", "/v1/migrations/", "/target-state", control_put_target_state},
    {"GET", "/v1/records/", "", control_get_record},
};

/* True when `path` is that of `r`; copies the UID. */
static bool matches(const struct route *r, const char *path, char uid[STATE_UID_SIZE])
{
    uid[0] = '\0';
    if (!r->after) {
        return ferry_streq(path, r->before);
    }
    size_t skip = strlen(r->before), end = strlen(r->after), len = strlen(path);
    if (len <= skip + end || len - skip - end >= STATE_UID_SIZE ||
        !ferry_str_starts(path, r->before) || !ferry_str_ends(path, r->after)) {
        return false;
    }
    memcpy(uid, path + skip, len - skip - end);
    uid[len - skip - end] = '\0';
    return state_uid_valid(uid);
}

static void handle(struct http_exchange *x, void *ctx)
{
    struct control *c = ctx;
    const struct http_peer *peer = http_peer(x);
    char uid[STATE_UID_SIZE];
    struct ferry_error err;
    bool path_known = false;

    /* The socket is root's and nobody else can open it. */
    if (!peer->local || (peer->uid != getuid() && !ferry_user_may_be_root(peer->uid))) {
        ferry_fail(&err, FERRY_DENIED, "only root may talk to a launcher");
        http_answer_error(x, 0, &err);
        return;
    }
    /* Handlers of before did not say. */
    const char *vmi = http_query(x, "vmi");
    if (vmi && !ferry_streq(vmi, c->parts.context->uid)) {
        ferry_fail(&err, FERRY_DENIED, "this launcher is that of VMI %s, not of %.64s",
                   c->parts.context->uid, vmi);
        http_answer_error(x, 0, &err);
        return;
    }
    for (size_t i = 0; i < FERRY_COUNT(routes); i++) {
        if (!matches(&routes[i], http_path(x), uid)) {
            continue;
        }
        path_known = true;
        if (ferry_streq(http_method(x), routes[i].method)) {
            routes[i].call(c, x, uid);
            return;
        }
    }
    ferry_fail(&err, FERRY_NOT_FOUND, "there is no %s %s", http_method(x), http_path(x));
    http_answer_error(x, path_known ? 405 : 404, &err);
}

int control_start(const struct control_parts *parts, int listen_fd, struct control **ret,
                  struct ferry_error *err)
{
    struct control *c = ferry_xcalloc(1, sizeof(*c));

    c->parts = *parts;
    c->machine = machine_new(parts->context->domain.qmp_path);
    int rc = http_server_start(&(struct http_server_config){.name = "launcher",
                                                            .listen_fd = listen_fd,
                                                            .max_connections = CONNECTIONS_MAX,
                                                            .handle = handle,
                                                            .ctx = c},
                               &c->server, err);
    if (rc < 0) {
        machine_free(c->machine);
        free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

void control_stop(struct control *c)
{
    if (c) {
        http_server_stop(c->server);
        machine_free(c->machine);
        free(c);
    }
}
