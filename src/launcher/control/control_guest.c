/* Calls about the guest and what is to be seen of it. */
#include "launcher/control/control_priv.h"

#include "api/object.h"
#include "base/str.h"
#include "launcher/control/control_events.h"
#include "launcher/move/dirty_rate.h"
#include "launcher/report/metrics.h"

enum { GRACE_MAX_S = 24 * 3600 };

void control_put_vm(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct ferry_error err;
    int rc = control_body_read(x, true, &b, &err);

    (void)uid;
    if (rc == 0) {
        rc = vm_sync(c->parts.vm, &b.vmi->u.vmi, &err);
    }
    control_answer(c, x, rc, &err);
}

void control_delete_vm(struct control *c, struct http_exchange *x, const char *uid)
{
    control_cleanup_body struct control_body b = {0};
    struct ferry_error err;
    int rc = control_body_read(x, false, &b, &err);
    int64_t grace = rc == 0 ? api_json_int(b.root, "/graceS", -1) : 0;

    (void)uid;
    if (rc == 0 && grace > GRACE_MAX_S) {
        rc = ferry_fail(&err, FERRY_INVALID, "graceS: must be at most %d", GRACE_MAX_S);
    }
    if (rc == 0) {
        rc = vm_stop(c->parts.vm, grace, &err);
    }
    control_answer_done(x, rc, &err);
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
    control_answer(c, x, rc, &err);
}

void control_post_pause(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    set_paused(c, x, true);
}

void control_post_unpause(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    set_paused(c, x, false);
}

void control_get_status(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    control_answer_status(c, x);
}

void control_get_events(struct control *c, struct http_exchange *x, const char *uid)
{
    (void)uid;
    control_events(x, c->parts.context->events);
}

/* As last measured; negative when it is not known, or the guest is being moved. */
static int64_t dirty_rate(const struct context *c, const struct state_values *v)
{
    struct view now;

    if (!state_migration_over(&v->migration) || virt_view(c->virt, &now, NULL) < 0 ||
        now.state != LAUNCHER_DOMAIN_RUNNING) {
        return -1;
    }
    virt_cleanup_domain virDomainPtr d = virt_domain(c->virt, NULL);
    return d ? dirty_rate_latest(d) : -1;
}

void control_get_metrics(struct control *c, struct http_exchange *x, const char *uid)
{
    const struct context *ctx = c->parts.context;
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct state_values v;
    struct launcher_sample sample;

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
