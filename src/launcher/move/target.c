/* Theory of operation. One thread watches while a migration is expected: at each of libvirt's
 * events, and every so often, it looks at the domain and lets incoming_decide() say how far it is.
 * The guest counts as arrived only when libvirt's incoming job is over too: until then the source
 * may still take it back. */
#include "launcher/move/target.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/wire/wire_reason.h"
#include "base/channels.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/disk_made.h"
#include "launcher/libvirt/qmp.h"
#include "launcher/libvirt/qmp_session.h"
#include "launcher/move/control_filter.h"
#include "launcher/move/gate.h"
#include "launcher/move/incoming.h"
#include "launcher/move/migrate_call.h"
#include "launcher/move/unplug.h"

/* The arrival is an event; only the end of libvirt's job is not, and is polled for. */
enum {
    RECHECK_MS = 500,
    JOB_LOOK_MS = 50,
    QMP_MS = 1000,
    ANNOUNCE_MS = 1000,
    BROKEN_MS = 3000, /* libvirt gets so long to end a QEMU that could not load its guest */
};

struct target {
    const struct context *c;
    pthread_mutex_t lock;
    pthread_t watcher;
    bool watching; /* guarded by lock: `watcher` exists and must be joined */
    bool end;      /* guarded by lock: it shall end */
    bool idle;     /* guarded by lock: it has ended by itself */
    struct control_filter *filter;
    int64_t broken_ns; /* of the watcher: since when QEMU says that it failed; 0 = it does not */
};

struct target *target_new(const struct context *c)
{
    struct target *t = ferry_xcalloc(1, sizeof(*t));

    t->c = c;
    t->filter = control_filter_new(c);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

/* ---- clean-up ----------------------------------------------------------------------------------
 */

/* QEMU's sockets of a failed attempt stay behind; so may those of the relay from a time when this
 * pod was a source. */
static void remove_sockets(struct target *t)
{
    for (size_t i = 0; i < FERRY_CHANNELS; i++) {
        ferry_cleanup_free char *path =
            ferry_channel_path(t->c->migration_dir, t->c->uid, ferry_channels[i]);

        if (unlink(path) < 0 && errno != ENOENT) {
            struct ferry_error err;

            ferry_fail_errno(&err, errno, "removing %s", path);
            ferry_warn("cannot remove a socket", F_ERR(&err));
        }
    }
}

/* Removes a guest that did not come in, and its definition. */
static void undefine(struct target *t, bool even_active)
{
    virt_cleanup_domain virDomainPtr d = virt_domain(t->c->virt, NULL);

    if (d && even_active && virDomainIsActive(d) == 1 && virDomainDestroy(d) < 0) {
        struct ferry_error err;

        virt_fail(&err, "ending a guest that did not come in");
        ferry_warn("cannot kill a QEMU process", F_ERR(&err));
    }
    if (d && virDomainIsActive(d) == 0 && virDomainUndefine(d) < 0) {
        struct ferry_error err;

        virt_fail(&err, "removing the definition of the domain");
        ferry_warn("cannot undefine a domain", F_ERR(&err));
    }
}

/* ---- watching ----------------------------------------------------------------------------------
 */

/* Makes sure that a guest that did not come in will not run here later; true when it also did not
 * run before. The source may have it back then. */
static bool never_will_run(struct target *t)
{
    struct ferry_error err;

    if (gate_close(t->c->gate, &err) < 0) {
        ferry_error("cannot close the gate", F_ERR(&err));
        return false;
    }
    return t->c->gated && !gate_started(t->c->gate);
}

/* QEMU has told the network where the guest is now, at the switch-over; it tells it again, because
 * what was sent then may have been lost. Rounds of growing distance, all NICs. */
static void announce(struct target *t)
{
    static const char rounds[] = "{\"initial\":50,\"max\":550,\"rounds\":5,\"step\":100}";
    struct ferry_error err;

    if (qmp_call(t->c->domain.qmp_path, "announce-self", rounds,
                 ferry_now_ns() + ANNOUNCE_MS * FERRY_NS_PER_MS, NULL, &err) < 0) {
        ferry_debug("QEMU does not announce the guest again", F_ERR(&err));
    }
}

/* Writes a step down; true when the migration is over. */
static bool apply(struct target *t, const struct incoming *in)
{
    static const struct launcher_sample none = {.downtime_ms = -1};
    struct ferry_error err;
    bool never_ran = in->phase == LAUNCHER_FAILED && never_will_run(t);
    struct state_values *v = state_lock(t->c->state);
    struct state_migration *m = &v->migration;

    if (state_migration_over(m) || (m->phase == in->phase && m->incoming_seen == in->seen)) {
        bool over = state_migration_over(m);

        state_unlock(t->c->state);
        return over;
    }
    m->phase = in->phase;
    m->incoming_seen = in->seen;
    if (state_migration_over(m)) {
        m->end_ms = ferry_now_unix_ms();
    }
    if (in->phase == LAUNCHER_SUCCEEDED) {
        v->vm = STATE_VM_STARTED;
    } else if (in->phase == LAUNCHER_FAILED) {
        snprintf(m->failure_reason, sizeof(m->failure_reason), "%s", in->failure_reason);
        snprintf(m->reason_code, sizeof(m->reason_code), "%s", wire_reason_text(in->reason_code));
        m->never_ran = never_ran;
    }
    if (state_commit(t->c->state, &err) < 0) {
        ferry_error("cannot record the progress of a migration", F_ERR(&err));
        return false; /* again at the next pass */
    }
    ferry_info("incoming migration", F_STR("phase", wire_launcher_phase_text(in->phase)));
    if (in->phase == LAUNCHER_FAILED) {
        remove_sockets(t);
        undefine(t, never_ran);
    }
    if (in->phase == LAUNCHER_FAILED || in->phase == LAUNCHER_SUCCEEDED) {
        disk_made_settle(t->c->domain.disk_dir, in->phase == LAUNCHER_SUCCEEDED);
    }
    context_publish_migration(t->c, &none);
    if (in->phase == LAUNCHER_SUCCEEDED) {
        announce(t);
    }
    return in->phase == LAUNCHER_SUCCEEDED || in->phase == LAUNCHER_FAILED;
}

/* Whether QEMU has said for a while that what came in cannot be loaded. */
static bool is_broken(struct target *t)
{
    char status[40];
    int64_t now = ferry_now_ns();

    if (qmp_session_migration_status(t->c->qmp, status, sizeof(status),
                                     now + QMP_MS * FERRY_NS_PER_MS, NULL) < 0 ||
        !ferry_streq(status, "failed")) {
        t->broken_ns = 0;
        return false;
    }
    t->broken_ns = t->broken_ns ? t->broken_ns : now;
    return now - t->broken_ns >= BROKEN_MS * FERRY_NS_PER_MS;
}

/* Whether the move ends because of what the source asked for. Not once the guest was started here:
 * then the refusal came behind the last call that mattered. */
static bool is_refused(struct target *t, char ret_reason[CONTROL_FILTER_REASON])
{
    struct ferry_error err;

    if (!control_filter_refused(t->filter, ret_reason)) {
        return false;
    }
    if (never_will_run(t) || !t->c->gated) {
        return true;
    }
    if (gate_open(t->c->gate, &err) < 0) {
        ferry_error("libvirt may not resume the guest", F_ERR(&err));
    }
    return false;
}

/* True when the migration is over; `*ret_arrived`: only libvirt's job keeps it open. */
static bool look(struct target *t, bool *ret_arrived)
{
    struct incoming_input in = {0};
    char refused[CONTROL_FILTER_REASON];
    struct state_values v;
    struct ferry_error err;

    *ret_arrived = false;
    if (virt_view(t->c->virt, &in.domain, NULL) < 0) {
        return false;
    }
    /* After the look at the domain: libvirtd ends one whose source is gone, and the filter says why
     * before that. */
    in.refused = is_refused(t, refused) ? refused : NULL;
    /* Asked for only when the answer matters: libvirtd logs an error for each look at a domain that
     * still comes in. */
    in.job_over = view_active(&in.domain) && !in.domain.between && !in.domain.postcopy &&
                  virt_job_over(t->c->virt);
    /* Now, while QEMU has all it needs to answer: in post-copy it may not. */
    if (view_active(&in.domain) &&
        qmp_session_open(t->c->qmp, ferry_now_ns() + QMP_MS * FERRY_NS_PER_MS, &err) < 0) {
        ferry_debug("no connection to QEMU's monitor yet", F_ERR(&err));
    }
    in.broken = view_active(&in.domain) && in.domain.between && is_broken(t);
    state_get(t->c->state, &v);
    in.seen = v.migration.incoming_seen;
    struct incoming step = incoming_decide(&in);
    *ret_arrived = in.domain.state == LAUNCHER_DOMAIN_RUNNING;
    return apply(t, &step);
}

static bool is_over(struct target *t)
{
    struct state_values v;

    state_get(t->c->state, &v);
    return state_migration_over(&v.migration);
}

static void *watch(void *ctx)
{
    struct target *t = ctx;
    uint64_t seen = virt_last_event(t->c->virt);

    for (bool over = false; !over;) {
        struct virt_event e;
        bool arrived;

        over = look(t, &arrived);
        int64_t wait_ms = arrived ? JOB_LOOK_MS : RECHECK_MS;
        if (!over &&
            virt_next_event(t->c->virt, seen, ferry_now_ns() + wait_ms * FERRY_NS_PER_MS, &e)) {
            seen = e.seq;
        }
        pthread_mutex_lock(&t->lock);
        bool end = t->end;
        over = over && is_over(t); /* the next one may have been prepared since */
        if (over) {
            qmp_session_close(t->c->qmp);
            control_filter_stop(t->filter);
        }
        t->idle = over || end;
        pthread_mutex_unlock(&t->lock);
        over = over || end;
    }
    return NULL;
}

/* With t->lock held. */
static int start_watching_locked(struct target *t, struct ferry_error *err)
{
    if (t->watching && !t->idle) {
        return 0;
    }
    if (t->watching) {
        pthread_join(t->watcher, NULL);
    }
    t->idle = t->end = false;
    int rc = pthread_create(&t->watcher, NULL, watch, t);
    t->watching = rc == 0;
    return rc == 0 ? 0 : ferry_fail_errno(err, rc, "starting a thread");
}

void target_free(struct target *t)
{
    if (!t) {
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->end = true;
    bool watching = t->watching;
    pthread_mutex_unlock(&t->lock);
    if (watching) {
        virt_wake(t->c->virt);
        pthread_join(t->watcher, NULL);
    }
    control_filter_free(t->filter);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

/* CONFLICT unless migration `uid` may be prepared; `*ret_again`: it was. */
static int check_prepare(const struct state_values *v, const struct view *now, const char *uid,
                         bool *ret_again, struct ferry_error *err)
{
    const struct state_migration *m = &v->migration;

    *ret_again =
        m->role == LAUNCHER_ROLE_TARGET && ferry_streq(m->uid, uid) && m->phase != LAUNCHER_FAILED;
    int rc = *ret_again ? 0 : state_may_begin(v, uid, err);
    return rc == 0 && !*ret_again && view_active(now)
               ? ferry_fail(err, FERRY_CONFLICT, "a guest runs here already")
               : rc;
}

static int begin(struct target *t, const char *uid, const struct api_vmi *vmi,
                 struct ferry_error *err)
{
    struct view now;
    bool again;
    int rc = virt_view(t->c->virt, &now, err);

    if (rc < 0) {
        return rc;
    }
    struct state_values *v = state_lock(t->c->state);
    rc = check_prepare(v, &now, uid, &again, err);
    if (rc < 0 || again) {
        state_unlock(t->c->state);
        return rc;
    }
    struct state_migration fresh = {.role = LAUNCHER_ROLE_TARGET,
                                    .phase = LAUNCHER_PREPARED,
                                    .mode = MODE_PRE_COPY,
                                    .filtered = true,
                                    .start_ms = ferry_now_unix_ms(),
                                    .downtime_ms = -1};
    snprintf(fresh.uid, sizeof(fresh.uid), "%s", uid);
    state_begin_migration(v, &fresh);
    v->grace_s = vmi->grace_s;
    v->memory_bytes = vmi->memory_bytes;
    v->vm = STATE_VM_NONE;
    rc = state_commit(t->c->state, err);
    if (rc == 0) {
        rc = gate_reset(t->c->gate, err);
    }
    if (rc == 0) {
        control_filter_stop(t->filter); /* of the one before */
        remove_sockets(t);
        undefine(t, false);
    }
    return rc;
}

int target_prepare(struct target *t, const char *uid, const struct api_vmi *vmi,
                   const struct disks_sizes *source_disks, struct ferry_error *err)
{
    ferry_cleanup_free char *xml = NULL;
    struct disks disks;
    struct disks_sizes made = {0};
    int rc = context_check_vmi(t->c, vmi, err);

    if (rc < 0 || (rc = disk_image_find(vmi, t->c->domain.disk_dir, &disks, err)) < 0 ||
        (rc = disks_check_arrival(&disks, err)) < 0) {
        return rc;
    }
    pthread_mutex_lock(&t->lock);
    rc = disk_made_create(&disks, t->c->domain.disk_dir, source_disks, &made, err);
    rc = rc < 0 ? rc : disk_made_initial(vmi, &disks, t->c->domain.disk_dir, err);
    /* Refuse here, before a byte moves, what could not be run here. */
    if (rc == 0 && (rc = context_domain(t->c, vmi, &xml, err)) == 0 &&
        (rc = control_filter_agree(t->filter, xml, &disks, err)) == 0 &&
        (rc = begin(t, uid, vmi, err)) == 0 && (rc = unplug_expect(t->c, xml, err)) == 0 &&
        (rc = control_filter_start(t->filter, err)) == 0) {
        rc = start_watching_locked(t, err);
    }
    if (rc < 0) {
        disk_made_undo(t->c->domain.disk_dir, &made);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void target_leave(struct target *t)
{
    struct state_values v;

    state_get(t->c->state, &v);
    if (v.migration.role == LAUNCHER_ROLE_TARGET && v.migration.phase != LAUNCHER_SUCCEEDED) {
        disk_made_settle(t->c->domain.disk_dir, false);
    }
}

int target_finalize(struct target *t, const char *uid, struct ferry_error *err)
{
    struct state_values *v = state_lock(t->c->state);
    const struct state_migration *m = &v->migration;
    int rc = 0;

    if (!state_uid_known(v, uid)) {
        rc = ferry_fail(err, FERRY_NOT_FOUND, "there is no migration %s here", uid);
    } else if (!ferry_streq(m->uid, uid) || m->role != LAUNCHER_ROLE_TARGET ||
               m->phase != LAUNCHER_SUCCEEDED) {
        rc = ferry_fail(err, FERRY_CONFLICT, "migration %s has not succeeded here", uid);
    }
    if (rc < 0 || m->finalized) {
        state_unlock(t->c->state);
        return rc;
    }
    v->migration.finalized = true;
    return state_commit(t->c->state, err);
}

/* CONFLICT unless migration `uid` comes in here and can still be kept from it; `*ret_done`: it is.
 */
static int check_withdraw(const struct context *c, const struct state_values *v, const char *uid,
                          bool *ret_done, struct ferry_error *err)
{
    const struct state_migration *m = &v->migration;

    if (!state_uid_known(v, uid)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no migration %s here", uid);
    }
    if (!ferry_streq(m->uid, uid) || m->role != LAUNCHER_ROLE_TARGET) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s does not come in here now", uid);
    }
    *ret_done = m->phase == LAUNCHER_FAILED && m->never_ran;
    if (!*ret_done && state_migration_over(m)) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is over here: %s", uid,
                          wire_launcher_phase_text(m->phase));
    }
    if (!*ret_done && !c->gated) {
        return ferry_fail(
            err, FERRY_INVALID,
            "libvirtd here does not ask before it starts a guest: nothing is promised");
    }
    return 0;
}

/* The gate first, and with the state locked: the watcher closes it under the same lock or sees what
 * is written here. */
int target_withdraw(struct target *t, const char *uid, struct ferry_error *err)
{
    struct state_values *v = state_lock(t->c->state);
    struct state_migration *m = &v->migration;
    bool done = false;
    int rc = check_withdraw(t->c, v, uid, &done, err);

    if (rc == 0 && !done) {
        rc = gate_close(t->c->gate, err);
    }
    if (rc == 0 && !done && gate_started(t->c->gate)) {
        struct ferry_error inner;

        if (gate_open(t->c->gate, &inner) < 0) {
            ferry_error("libvirt may not resume the guest", F_ERR(&inner));
        }
        rc = ferry_fail(err, FERRY_CONFLICT, "the guest of migration %s was started here", uid);
    }
    if (rc < 0 || done) {
        state_unlock(t->c->state);
        return rc;
    }
    m->phase = LAUNCHER_FAILED;
    m->never_ran = true;
    m->end_ms = ferry_now_unix_ms();
    snprintf(m->reason_code, sizeof(m->reason_code), "%s", wire_reason_text(REASON_ABORTED));
    snprintf(m->failure_reason, sizeof(m->failure_reason),
             "the move was given up before the guest ran here");
    rc = state_commit(t->c->state, err);
    ferry_info("incoming migration is withdrawn", F_STR("migration", uid));
    virt_wake(t->c->virt);
    return rc;
}

bool target_can_post_copy(void)
{
    ferry_cleanup_buf struct ferry_buf text = {0};

    return access("/dev/userfaultfd", R_OK | W_OK) == 0 ||
           (ferry_read_file("/proc/sys/vm/unprivileged_userfaultfd", 16, &text, NULL) == 0 &&
            text.len && text.data[0] == '1');
}

void target_tend(struct target *t)
{
    if (control_filter_tend(t->filter)) {
        virt_wake(t->c->virt);
    }
}

void target_reattach(struct target *t)
{
    struct ferry_error err;
    struct state_values v;

    pthread_mutex_lock(&t->lock);
    state_get(t->c->state, &v);
    if (v.migration.role == LAUNCHER_ROLE_TARGET && !state_migration_over(&v.migration)) {
        ferry_info("resumed waiting for a migration", F_STR("migration", v.migration.uid));
        if (v.migration.filtered && control_filter_start(t->filter, &err) < 0) {
            ferry_error("no filter for the control channel", F_ERR(&err));
        }
        if (start_watching_locked(t, &err) < 0) {
            ferry_error("cannot wait for the migration", F_ERR(&err));
        }
    }
    pthread_mutex_unlock(&t->lock);
}
