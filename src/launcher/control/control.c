#include "launcher/control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "base/channels.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server.h"
#include "launcher/control/control_events.h"
#include "launcher/domain/disk_image.h"
#include "launcher/libvirt/machine.h"
#include "launcher/move/dirty_rate.h"
#include "launcher/move/migrate_call.h"
#include "launcher/move/planner.h"
#include "launcher/move/recover.h"
#include "launcher/report/metrics.h"
#include "launcher/report/record.h"
#include "launcher/report/status.h"
#include "json/doc.h"

enum { CONNECTIONS_MAX = 32, GRACE_MAX_S = 24 * 3600 };

struct control {
    struct control_parts parts;
    struct http_server *server;
    struct machine *machine;
};

/* ---- pieces ------------------------------------------------------------------------------------
 */

struct body {
    yyjson_doc *doc;
    const yyjson_val *root;
    struct api_object *vmi; /* NULL unless asked for */
};

static void body_done(struct body *b)
{
    yyjson_doc_free(b->doc);
    api_object_unref(b->vmi);
}
#define cleanup_body ferry_cleanup(body_done)

/* An empty body is an empty object. */
static int decode_vmi(struct body *b, struct ferry_error *err)
{
    yyjson_val *vmi = yyjson_obj_get((yyjson_val *)(uintptr_t)b->root, "vmi");

    if (!vmi) {
        return ferry_fail(err, FERRY_INVALID, "request: the field 'vmi' is missing");
    }
    int rc = api_object_from_val(API_KIND_VMI, vmi, &b->vmi, err);
    return rc < 0 ? ferry_wrap(err, "vmi") : 0;
}

static int read_body(struct http_exchange *x, bool with_vmi, struct body *ret,
                     struct ferry_error *err)
{
    size_t len;
    const char *text = http_body(x, &len);
    int rc = api_json_parse(len ? text : "{}", len ? len : 2, &ret->doc, err);

    if (rc < 0) {
        return ferry_wrap(err, "request");
    }
    ret->root = yyjson_doc_get_root(ret->doc);
    return with_vmi ? decode_vmi(ret, err) : 0;
}

static int status_text(struct control *c, char **ret, struct ferry_error *err)
{
    const struct context *ctx = c->parts.context;
    struct state_values v;
    struct sample sample;
    struct view domain;
    char machine[MACHINE_SIZE];
    int rc = virt_view(ctx->virt, &domain, err);

    /* Not knowing is said as such: an invented "none" would look like a lost guest. */
    if (rc < 0) {
        return rc;
    }
    state_get(ctx->state, &v);
    migrate_sample(c->parts.migrate, &sample);
    /* Its monitor is left alone while the guest moves, and its main loop may stand still. */
    machine_get(c->machine,
                view_active(&domain) && !domain.between && !domain.postcopy &&
                    state_migration_over(&v.migration),
                machine);
    *ret = status_json(&domain, machine, &v.migration, &sample);
    return 0;
}

static void answer_status(struct control *c, struct http_exchange *x)
{
    ferry_cleanup_free char *text = NULL;
    struct ferry_error err;

    if (status_text(c, &text, &err) < 0) {
        http_answer_error(x, 0, &err);
    } else {
        http_answer_json(x, 200, text);
    }
}

/* Answers with the status, or with the error. */
static void answer(struct control *c, struct http_exchange *x, int rc,
                   const struct ferry_error *err)
{
    if (rc < 0) {
        http_answer_error(x, 0, err);
    } else {
        answer_status(c, x);
    }
}

/* Likewise for what must be taken while libvirtd is silent: without a status. */
static void answer_done(struct http_exchange *x, int rc, const struct ferry_error *err)
{
    if (rc < 0) {
        http_answer_error(x, 0, err);
    } else {
        http_answer_json(x, 200, "{}");
    }
}

/* ---- calls -------------------------------------------------------------------------------------
 */

static void put_vm(struct control *c, struct http_exchange *x, const char *uid)
{
    cleanup_body struct body b = {0};
    struct ferry_error err;
    int rc = read_body(x, true, &b, &err);

    (void)uid;
    if (rc == 0) {
        rc = vm_sync(c->parts.vm, &b.vmi->u.vmi, &err);
    }
    answer(c, x, rc, &err);
}

static void delete_vm(struct control *c, struct http_exchange *x, const char *uid)
{
    cleanup_body struct body b = {0};
    struct ferry_error err;
    int rc = read_body(x, false, &b, &err);
    int64_t grace = rc == 0 ? api_json_int(b.root, "/graceS", -1) : 0;

    (void)uid;
    if (rc == 0 && grace > GRACE_MAX_S) {
        rc = ferry_fail(&err, FERRY_INVALID, "graceS: must be at most %d", GRACE_MAX_S);
    }
    if (rc == 0) {
        rc = vm_stop(c->parts.vm, grace, &err);
    }
    answer_done(x, rc, &err);
}

static void add_sizes(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct disks_sizes *sizes)
{
    for (size_t i = 0; i < sizes->n; i++) {
        yyjson_mut_val *d = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_strcpy(doc, d, "name", sizes->list[i].name);
        yyjson_mut_obj_add_int(doc, d, "bytes", sizes->list[i].bytes);
    }
}

/* Which images a move would copy, and how large they are. */
static void post_disks(struct control *c, struct http_exchange *x, const char *uid)
{
    cleanup_body struct body b = {0};
    struct disks disks;
    struct disks_sizes sizes;
    struct ferry_error err;
    int rc = read_body(x, true, &b, &err);

    (void)uid;
    if (rc < 0 ||
        (rc = disk_image_find(&b.vmi->u.vmi, c->parts.context->domain.disk_dir, &disks, &err)) <
            0 ||
        (rc = disk_image_sizes(&disks, c->parts.context->domain.disk_dir, true, &sizes, &err)) <
            0) {
        http_answer_error(x, 0, &err);
        return;
    }
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);
    add_sizes(doc, yyjson_mut_obj_add_arr(doc, o, "disks"), &sizes);
    ferry_cleanup_free char *text = json_doc_take(doc);
    http_answer_json(x, 200, text);
}

/* The answer to PUT /v1/target/UID: where the sockets are, and how large the images. */
static int target_text(const struct context *ctx, const struct api_vmi *vmi, char **ret,
                       struct ferry_error *err)
{
    ferry_cleanup_free char *memory =
        ferry_channel_path(ctx->migration_dir, ctx->uid, FERRY_CHANNEL_MEMORY);
    ferry_cleanup_free char *socket =
        ferry_channel_path(ctx->migration_dir, ctx->uid, FERRY_CHANNEL_DISKS);
    struct disks disks;
    struct disks_sizes sizes;
    int rc = disk_image_find(vmi, ctx->domain.disk_dir, &disks, err);

    if (rc < 0 || (rc = disk_image_sizes(&disks, ctx->domain.disk_dir, true, &sizes, err)) < 0) {
        return rc;
    }
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "controlSocket", ctx->control_socket);
    yyjson_mut_obj_add_str(doc, o, "memorySocket", memory);
    yyjson_mut_obj_add_bool(doc, o, "postCopy", target_can_post_copy());
    add_sizes(doc, list, &sizes);
    if (sizes.n) {
        yyjson_mut_obj_add_str(doc, o, "diskSocket", socket);
        yyjson_mut_obj_add_val(doc, o, "disks", list);
    }
    *ret = json_doc_text(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    return 0;
}

/* An optional member of a request, as the other side answered it as "disks". */
static int read_disks(const struct body *b, const char *member, struct disks_sizes *ret,
                      struct ferry_error *err)
{
    yyjson_val *list = yyjson_obj_get((yyjson_val *)(uintptr_t)b->root, member), *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    *ret = (struct disks_sizes){0};
    while ((item = yyjson_arr_iter_next(&it))) {
        const char *name = yyjson_get_str(yyjson_obj_get(item, "name"));

        if (ret->n == DISKS_MAX || ferry_str_empty(name) || strlen(name) >= DISKS_NAME_SIZE) {
            return ferry_fail(err, FERRY_INVALID, "%s: each needs a name, at most %d", member,
                              DISKS_MAX);
        }
        snprintf(ret->list[ret->n].name, DISKS_NAME_SIZE, "%s", name);
        ret->list[ret->n++].bytes = yyjson_get_sint(yyjson_obj_get(item, "bytes"));
    }
    return 0;
}

static void put_target(struct control *c, struct http_exchange *x, const char *uid)
{
    const struct context *ctx = c->parts.context;
    cleanup_body struct body b = {0};
    struct migrate_options options;
    struct disks_sizes disks;
    struct ferry_error err;
    int rc = read_body(x, true, &b, &err);

    if (rc == 0 && (rc = read_disks(&b, "sourceDisks", &disks, &err)) == 0) {
        rc = migrate_options_decode(yyjson_obj_get((yyjson_val *)(uintptr_t)b.root, "options"),
                                    &options, &err);
    }
    if (rc == 0 && !ctx->libvirt_socket) {
        rc = ferry_fail(&err, FERRY_INVALID,
                        "libvirt is not reached through a unix socket here, so no relay can lead "
                        "a move to it: this launcher can only be a source");
    }
    if (rc == 0 && options.allow_post_copy && !target_can_post_copy()) {
        rc = ferry_fail(&err, FERRY_INVALID,
                        "options.allowPostCopy: QEMU cannot use userfaultfd here "
                        "(/dev/userfaultfd is not accessible)");
    }
    if (rc == 0) {
        rc = target_prepare(c->parts.target, uid, &b.vmi->u.vmi, &disks, &err);
    }
    ferry_cleanup_free char *text = NULL;
    if (rc < 0 || target_text(ctx, &b.vmi->u.vmi, &text, &err) < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer_json(x, 200, text);
}

static void put_migration(struct control *c, struct http_exchange *x, const char *uid)
{
    cleanup_body struct body b = {0};
    struct migrate_options options;
    struct disks_sizes disks;
    struct ferry_error err;
    int rc = read_body(x, true, &b, &err);

    if (rc == 0 && (rc = read_disks(&b, "targetDisks", &disks, &err)) == 0) {
        rc = migrate_options_decode(yyjson_obj_get((yyjson_val *)(uintptr_t)b.root, "options"),
                                    &options, &err);
    }
    if (rc == 0) {
        rc = migrate_start(c->parts.migrate, uid, &b.vmi->u.vmi, &options, &disks, &err);
    }
    answer(c, x, rc, &err);
}

static void post_cancel(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = migrate_cancel(c->parts.migrate, uid, &err);

    answer(c, x, rc, &err);
}

static void post_finalize(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = target_finalize(c->parts.target, uid, &err);

    answer(c, x, rc, &err);
}

static void post_withdraw(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = target_withdraw(c->parts.target, uid, &err);

    answer_done(x, rc, &err);
}

/* Index of the string `name` of the body in `words`; INVALID when it is none of them. */
static int read_word(const struct body *b, const char *name, const char *const *words, int n,
                     int *ret, struct ferry_error *err)
{
    const char *s = yyjson_get_str(yyjson_obj_get((yyjson_val *)(uintptr_t)b->root, name));

    for (int i = 0; s && i < n; i++) {
        if (words[i] && ferry_streq(s, words[i])) {
            *ret = i;
            return 0;
        }
    }
    return ferry_fail(err, FERRY_INVALID, "%s: missing, or not one of the known words", name);
}

static void post_recover(struct control *c, struct http_exchange *x, const char *uid)
{
    static const char *const roles[] = {NULL, "source", "target"};
    cleanup_body struct body b = {0};
    struct ferry_error err;
    int role = 0, rc = read_body(x, false, &b, &err);

    if (rc == 0 && (rc = read_word(&b, "role", roles, STATE_ROLE_COUNT, &role, &err)) == 0) {
        rc = recover_run(c->parts.context, uid, (enum state_role)role,
                         api_json_str(b.root, "/unix"), &err);
    }
    answer(c, x, rc, &err);
}

static void put_path(struct control *c, struct http_exchange *x, const char *uid)
{
    static const char *const states[] = {"up", "away"};
    cleanup_body struct body b = {0};
    struct ferry_error err;
    int away = 0, rc = read_body(x, false, &b, &err);

    if (rc == 0 && (rc = read_word(&b, "state", states, 2, &away, &err)) == 0) {
        int64_t bytes_per_s = api_json_int(b.root, "/bytesPerS", 0);

        rc = migrate_set_path(c->parts.migrate, uid, away != 0, bytes_per_s > 0 ? bytes_per_s : 0,
                              &err);
    }
    answer(c, x, rc, &err);
}

static void put_target_state(struct control *c, struct http_exchange *x, const char *uid)
{
    static const char *const states[] = {
        [OUTCOME_TARGET_UNKNOWN] = "unknown",
        [OUTCOME_TARGET_GONE] = "gone",
        [OUTCOME_TARGET_INCOMING] = "incoming",
        [OUTCOME_TARGET_ACTIVE] = "active",
        [OUTCOME_TARGET_POSTCOPY] = "postcopy",
        [OUTCOME_TARGET_POSTCOPY_PAUSED] = "postcopy-paused",
        [OUTCOME_TARGET_NEVER_RAN] = "never-ran",
    };
    cleanup_body struct body b = {0};
    struct ferry_error err;
    int state = 0, rc = read_body(x, false, &b, &err);

    if (rc == 0 && (rc = read_word(&b, "state", states, OUTCOME_TARGET_COUNT, &state, &err)) == 0) {
        rc = migrate_set_target(c->parts.migrate, uid, (enum outcome_target)state, &err);
    }
    answer_done(x, rc, &err);
}

/* Not while the guest is being moved: what stands still there is the move's own affair. */
static void set_paused(struct control *c, struct http_exchange *x, bool paused)
{
    struct ferry_error err;
    int rc = migrate_keep_out(c->parts.migrate, &err);

    if (rc == 0) {
        rc = vm_set_paused(c->parts.vm, paused, &err);
        migrate_let_in(c->parts.migrate);
    }
    answer(c, x, rc, &err);
}

static void post_pause(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    set_paused(c, x, true);
}

static void post_unpause(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    set_paused(c, x, false);
}

static void get_events(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    control_events(x, c->parts.context->events);
}

static void get_status(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    answer_status(c, x);
}

static void post_plan(struct control *c, struct http_exchange *x, const char *uid)
{
    cleanup_body struct body b = {0};
    ferry_cleanup_free char *text = NULL;
    struct migrate_options options;
    struct ferry_error err;
    int rc = read_body(x, false, &b, &err);

    (void)uid;
    if (rc == 0 && yyjson_obj_get((yyjson_val *)(uintptr_t)b.root, "vmi")) {
        rc = decode_vmi(&b, &err);
    }
    if (rc == 0 &&
        (rc = migrate_options_decode(yyjson_obj_get((yyjson_val *)(uintptr_t)b.root, "options"),
                                     &options, &err)) == 0) {
        rc = planner_run(c->parts.context, &options, b.vmi ? &b.vmi->u.vmi : NULL, &text, &err);
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    migrate_note_plan(c->parts.migrate, text);
    http_answer_json(x, 200, text);
}

/* As last measured; negative when it is not known, or the guest is being moved. */
static int64_t dirty_rate(const struct context *c, const struct state_values *v)
{
    struct view now;

    if (!state_migration_over(&v->migration) || virt_view(c->virt, &now, NULL) < 0 ||
        now.state != VIEW_RUNNING) {
        return -1;
    }
    virt_cleanup_domain virDomainPtr d = virt_domain(c->virt, NULL);
    return d ? dirty_rate_latest(d) : -1;
}

static void get_metrics(struct control *c, struct http_exchange *x, const char *uid)
{
    const struct context *ctx = c->parts.context;
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct state_values v;
    struct sample sample;

    (void)uid;
    state_get(ctx->state, &v);
    migrate_sample(c->parts.migrate, &sample);
    launcher_metrics_write(&(struct launcher_metrics){.namespace_ = ctx->namespace_,
                                                      .name = ctx->name,
                                                      .migration = &v.migration,
                                                      .sample = &sample,
                                                      .dirty_bytes_per_s = dirty_rate(ctx, &v)},
                           &text);
    http_answer(x, 200, "text/plain; version=0.0.4", text.data ? text.data : "", text.len);
}

static void get_record(struct control *c, struct http_exchange *x, const char *uid)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;

    if (record_read(c->parts.context->record_dir, uid, &text, &err) < 0) {
        if (err.cls == FERRY_NOT_FOUND) {
            ferry_fail(&err, FERRY_NOT_FOUND, "there is no record of migration %s", uid);
        }
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer(x, 200, "application/x-ndjson", text.data ? text.data : "", text.len);
}

/* ---- routes ------------------------------------------------------------------------------------
 */

static const struct route {
    const char *method, *before, *after; /* path: before UID after; no UID when `after` is NULL */
    void (*call)(struct control *c, struct http_exchange *x, const char *uid);
} routes[] = {
    {"PUT", "/v1/vm", NULL, put_vm},
    {"DELETE", "/v1/vm", NULL, delete_vm},
    {"POST", "/v1/vm/pause", NULL, post_pause},
    {"POST", "/v1/vm/unpause", NULL, post_unpause},
    {"GET", "/v1/status", NULL, get_status},
    {"GET", "/v1/events", NULL, get_events},
    {"GET", "/metrics", NULL, get_metrics},
    {"POST", "/v1/plan", NULL, post_plan},
    {"POST", "/v1/disks", NULL, post_disks},
    {"PUT", "/v1/target/", "", put_target},
    {"PUT", "/v1/migrations/", "", put_migration},
    {"POST", "/v1/migrations/", "/cancel", post_cancel},
    {"POST", "/v1/migrations/", "/finalize", post_finalize},
    {"POST", "/v1/migrations/", "/withdraw", post_withdraw},
    {"POST", "/v1/migrations/", "/recover", post_recover},
    {"PUT", "/v1/migrations/", "/path", put_path},
    {"PUT", "/v1/migrations/", "/target-state", put_target_state},
    {"GET", "/v1/records/", "", get_record},
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

    if (!peer->local || (peer->uid != 0 && peer->uid != getuid())) {
        ferry_fail(&err, FERRY_DENIED, "only root may talk to a launcher");
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
