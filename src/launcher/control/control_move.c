/* Calls about a move: this launcher as its source, as its target, and what it would be like. */
#include "launcher/control/control_priv.h"

#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "base/channels.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/move/migrate_call.h"
#include "launcher/move/planner.h"
#include "launcher/move/recover.h"
#include "launcher/report/record.h"
#include "json/doc.h"

static void add_sizes(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct disks_sizes *sizes)
{
    for (size_t i = 0; i < sizes->n; i++) {
        yyjson_mut_val *d = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_strcpy(doc, d, "name", sizes->list[i].name);
        yyjson_mut_obj_add_int(doc, d, "bytes", sizes->list[i].bytes);
    }
}

/* Which images a move would copy, and how large they are. */
void control_post_disks(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct disks disks;
    struct disks_sizes sizes;
    struct ferry_error err;
    int rc = control_body_read(x, true, &b, &err);

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
static int read_disks(const struct control_body *b, const char *member, struct disks_sizes *ret,
                      struct ferry_error *err)
{
    yyjson_val *list = yyjson_obj_get(b->root, member), *item;
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

void control_put_target(struct control *c, struct http_exchange *x, const char *uid)
{
    const struct context *ctx = c->parts.context;
    control_cleanup_body struct control_body b = {0};
    struct wire_options options;
    struct disks_sizes disks;
    struct ferry_error err;
    int rc = control_body_read(x, true, &b, &err);

    if (rc == 0 && (rc = read_disks(&b, "sourceDisks", &disks, &err)) == 0) {
        rc = wire_options_read(yyjson_obj_get(b.root, "options"), &options, &err);
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

void control_put_migration(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct wire_options options;
    struct disks_sizes disks;
    struct ferry_error err;
    int rc = control_body_read(x, true, &b, &err);

    if (rc == 0 && (rc = read_disks(&b, "targetDisks", &disks, &err)) == 0) {
        rc = wire_options_read(yyjson_obj_get(b.root, "options"), &options, &err);
    }
    if (rc == 0) {
        rc = migrate_start(c->parts.migrate, uid, &b.vmi->u.vmi, &options, &disks, &err);
    }
    control_answer(c, x, rc, &err);
}

void control_post_cancel(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = migrate_cancel(c->parts.migrate, uid, &err);

    control_answer(c, x, rc, &err);
}

void control_post_finalize(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = target_finalize(c->parts.target, uid, &err);

    control_answer(c, x, rc, &err);
}

void control_post_withdraw(struct control *c, struct http_exchange *x, const char *uid)
{
    struct ferry_error err;
    int rc = target_withdraw(c->parts.target, uid, &err);

    control_answer_done(x, rc, &err);
}

void control_post_recover(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct ferry_error err;
    unsigned role = 0;
    int rc = control_body_read(x, false, &b, &err);

    if (rc == 0 && (rc = control_body_word(&b, "role", &wire_launcher_roles, &role, &err)) == 0) {
        rc = recover_run(c->parts.context, uid, (enum launcher_role)role,
                         api_json_str(b.root, "/unix"), &err);
    }
    control_answer(c, x, rc, &err);
}

void control_put_path(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct ferry_error err;
    unsigned path = 0;
    int rc = control_body_read(x, false, &b, &err);

    if (rc == 0 && (rc = control_body_word(&b, "state", &wire_launcher_paths, &path, &err)) == 0) {
        int64_t bytes_per_s = api_json_int(b.root, "/bytesPerS", 0);

        rc = migrate_set_path(c->parts.migrate, uid, path == LAUNCHER_PATH_AWAY,
                              bytes_per_s > 0 ? bytes_per_s : 0, &err);
    }
    control_answer(c, x, rc, &err);
}

void control_put_target_state(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct ferry_error err;
    unsigned state = 0;
    int rc = control_body_read(x, false, &b, &err);

    if (rc == 0 &&
        (rc = control_body_word(&b, "state", &wire_launcher_targets, &state, &err)) == 0) {
        rc = migrate_set_target(c->parts.migrate, uid, (enum outcome_target)state, &err);
    }
    control_answer_done(x, rc, &err);
}

void control_post_plan(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    ferry_cleanup_free char *text = NULL;
    struct wire_options options;
    struct ferry_error err;
    int rc = control_body_read(x, false, &b, &err);

    (void)uid;
    if (rc == 0 && yyjson_obj_get(b.root, "vmi")) {
        rc = control_body_vmi(&b, &err);
    }
    if (rc == 0 &&
        (rc = wire_options_read(yyjson_obj_get(b.root, "options"), &options, &err)) == 0) {
        rc = planner_run(c->parts.context, &options, b.vmi ? &b.vmi->u.vmi : NULL, &text, &err);
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    migrate_note_plan(c->parts.migrate, text);
    http_answer_json(x, 200, text);
}

void control_get_record(struct control *c, struct http_exchange *x, const char *uid)
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
