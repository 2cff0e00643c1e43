#include "handler/local/launcher_client.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "handler/local/node_call.h"
#include "handler/local/records.h"
#include "json/doc.h"

enum {
    STATUS_MS = 3000,
    QUICK_MS = 10000,
    RECOVER_MS = 30000,
    PLAN_MS = 20000,
    START_MS = 60000, /* a guest's QEMU is started before the answer */
};

struct launcher_call {
    const struct launcher_at *at;
    const char *method, *path, *body; /* body: may be NULL */
    int timeout_ms;
    size_t max_reply;
};

static int call(const struct launcher_call *c, struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *vmi = http_escape(c->at->vmi);
    ferry_cleanup_free char *path = ferry_asprintf("%s?vmi=%s", c->path, vmi);

    return node_call(&(struct node_call){.socket = c->at->socket,
                                         .method = c->method,
                                         .path = path,
                                         .body = c->body,
                                         .timeout_ms = c->timeout_ms,
                                         .max_reply = c->max_reply},
                     ret, err);
}

int launcher_get_status(const struct launcher_at *at, struct launcher_status *ret,
                        struct ferry_error *err)
{
    http_cleanup_reply struct http_reply reply = {0};
    int rc = call(
        &(struct launcher_call){
            .at = at, .method = "GET", .path = "/v1/status", .timeout_ms = STATUS_MS},
        &reply, err);

    return rc < 0 ? rc : wire_launcher_status_read(reply.body.data, reply.body.len, ret, err);
}

struct vmi_call {
    const struct launcher_at *at;
    const char *method, *path;
    const struct api_object *vmi;
    /* Members beside "vmi", as JSON; NULL = not sent. */
    const char *options, *source_disks, *target_disks;
    int timeout_ms;
};

static int send_vmi(const struct vmi_call *c, struct http_reply *ret, struct ferry_error *err)
{
    const char *const members[][2] = {{"options", c->options},
                                      {"sourceDisks", c->source_disks},
                                      {"targetDisks", c->target_disks}};
    ferry_cleanup_free char *object = json_doc_val_text(c->vmi->root, 0, NULL);
    ferry_cleanup_buf struct ferry_buf body = {0};

    ferry_buf_printf(&body, "{\"vmi\":%s", object);
    for (size_t i = 0; i < FERRY_COUNT(members); i++) {
        if (members[i][1]) {
            ferry_buf_printf(&body, ",\"%s\":%s", members[i][0], members[i][1]);
        }
    }
    ferry_buf_puts(&body, "}");
    return call(&(struct launcher_call){.at = c->at,
                                        .method = c->method,
                                        .path = c->path,
                                        .body = body.data,
                                        .timeout_ms = c->timeout_ms},
                ret, err);
}

const char *launcher_refused(const struct ferry_error *err)
{
    bool for_good = err->http && (err->cls == FERRY_INVALID || err->cls == FERRY_NOT_FOUND ||
                                  err->cls == FERRY_DENIED);

    return for_good ? ferry_error_words(err) : NULL;
}

int launcher_sync(const struct launcher_at *at, const struct api_object *vmi,
                  struct ferry_error *err)
{
    return send_vmi(
        &(struct vmi_call){
            .at = at, .method = "PUT", .path = "/v1/vm", .vmi = vmi, .timeout_ms = START_MS},
        NULL, err);
}

int launcher_stop(const struct launcher_at *at, int64_t grace_s, struct ferry_error *err)
{
    ferry_cleanup_free char *body = ferry_asprintf("{\"graceS\":%lld}", (long long)grace_s);

    return call(
        &(struct launcher_call){
            .at = at, .method = "DELETE", .path = "/v1/vm", .body = body, .timeout_ms = QUICK_MS},
        NULL, err);
}

int launcher_set_paused(const struct launcher_at *at, bool paused, struct ferry_error *err)
{
    return call(&(struct launcher_call){.at = at,
                                        .method = "POST",
                                        .path = paused ? "/v1/vm/pause" : "/v1/vm/unpause",
                                        .timeout_ms = QUICK_MS},
                NULL, err);
}

static char *path_of(const char *collection, const char *uid, const char *verb)
{
    ferry_cleanup_free char *escaped = http_escape(uid);

    return ferry_asprintf("/v1/%s/%s%s", collection, escaped, verb);
}

int launcher_prepare(const struct launcher_at *at, const char *uid, const struct api_object *vmi,
                     const char *options_json, const char *source_disks_json,
                     struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("target", uid, "");

    return send_vmi(&(struct vmi_call){.at = at,
                                       .method = "PUT",
                                       .path = path,
                                       .vmi = vmi,
                                       .options = options_json,
                                       .source_disks = source_disks_json,
                                       .timeout_ms = QUICK_MS},
                    ret, err);
}

int launcher_disks(const struct launcher_at *at, const struct api_object *vmi,
                   struct http_reply *ret, struct ferry_error *err)
{
    return send_vmi(
        &(struct vmi_call){
            .at = at, .method = "POST", .path = "/v1/disks", .vmi = vmi, .timeout_ms = QUICK_MS},
        ret, err);
}

int launcher_migrate(const struct launcher_at *at, const char *uid, const struct api_object *vmi,
                     const char *options_json, const char *target_disks_json,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("migrations", uid, "");

    return send_vmi(&(struct vmi_call){.at = at,
                                       .method = "PUT",
                                       .path = path,
                                       .vmi = vmi,
                                       .options = options_json,
                                       .target_disks = target_disks_json,
                                       .timeout_ms = QUICK_MS},
                    NULL, err);
}

static int post(const struct launcher_at *at, const char *uid, const char *verb,
                struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("migrations", uid, verb);

    return call(
        &(struct launcher_call){.at = at, .method = "POST", .path = path, .timeout_ms = QUICK_MS},
        NULL, err);
}

int launcher_cancel(const struct launcher_at *at, const char *uid, struct ferry_error *err)
{
    return post(at, uid, "/cancel", err);
}

int launcher_finalize(const struct launcher_at *at, const char *uid, struct ferry_error *err)
{
    return post(at, uid, "/finalize", err);
}

int launcher_withdraw(const struct launcher_at *at, const char *uid, struct ferry_error *err)
{
    return post(at, uid, "/withdraw", err);
}

int launcher_get_record(const struct launcher_at *at, const char *uid, struct http_reply *ret,
                        struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("records", uid, "");

    return call(&(struct launcher_call){.at = at,
                                        .method = "GET",
                                        .path = path,
                                        .timeout_ms = QUICK_MS,
                                        .max_reply = RECORD_MAX},
                ret, err);
}

static int tell(const struct launcher_at *at, const char *method, const char *path, const char *key,
                const char *value, int timeout_ms, struct ferry_error *err)
{
    ferry_cleanup_free char *body = ferry_asprintf("{\"%s\":\"%s\"}", key, value);

    return call(
        &(struct launcher_call){
            .at = at, .method = method, .path = path, .body = body, .timeout_ms = timeout_ms},
        NULL, err);
}

int launcher_recover(const struct launcher_at *at, const char *uid, enum launcher_role role,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("migrations", uid, "/recover");

    return tell(at, "POST", path, "role", wire_launcher_role_text(role), RECOVER_MS, err);
}

int launcher_target_state(const struct launcher_at *at, const char *uid, enum outcome_target state,
                          struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("migrations", uid, "/target-state");

    return tell(at, "PUT", path, "state", wire_launcher_target_text(state), QUICK_MS, err);
}

int launcher_tell_path(const struct launcher_at *at, const char *uid, bool away,
                       int64_t bytes_per_s, struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of("migrations", uid, "/path");
    ferry_cleanup_free char *body =
        ferry_asprintf("{\"state\":\"%s\",\"bytesPerS\":%lld}",
                       wire_launcher_path_text(away ? LAUNCHER_PATH_AWAY : LAUNCHER_PATH_UP),
                       (long long)bytes_per_s);

    return call(
        &(struct launcher_call){
            .at = at, .method = "PUT", .path = path, .body = body, .timeout_ms = QUICK_MS},
        NULL, err);
}

int launcher_plan(const struct launcher_at *at, const char *options_json, struct http_reply *ret,
                  struct ferry_error *err)
{
    ferry_cleanup_free char *body = ferry_asprintf("{\"options\":%s}", options_json);

    return call(
        &(struct launcher_call){
            .at = at, .method = "POST", .path = "/v1/plan", .body = body, .timeout_ms = PLAN_MS},
        ret, err);
}
