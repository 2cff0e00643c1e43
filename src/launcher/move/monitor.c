/* Theory of operation. One thread looks at the job every 400 ms and at each new round, publishes
 * what it sees, and lets strategy_decide() judge. What libvirt refuses is told to the strategy at
 * the next pass, which may ask for it again.
 *
 * Modes go one way, pre-copy to paused or post-copy, and are in the state file before libvirt is
 * asked: whoever reads "post-copy" there may find that it did not begin, never the reverse. An
 * abort and the switch to post-copy exclude each other under the lock of the state.
 *
 * The guest is suspended before post-copy is asked for. QEMU lets a guest that it has stopped
 * itself run again whenever it believes that the switch failed, also when it did not; one that was
 * suspended it leaves alone, and whether it may run on is decided by result.c. */
#include "launcher/move/monitor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/libvirt/qmp_session.h"
#include "launcher/move/dirty_limit.h"
#include "json/doc.h"

enum { SAMPLE_MS = 400, LOG_EVERY = 10, ABORT_AGAIN_MS = 1000, RECHECK_MS = 200, QMP_MS = 1000 };

struct monitor {
    struct monitor_config cfg;
    char uid[STATE_UID_SIZE];
    pthread_t thread;
    bool joinable; /* by monitor_stop() only */
    pthread_mutex_t lock;
    bool over, path_away;                 /* guarded by lock */
    int64_t path_bytes_per_s;             /* guarded by lock, as is */
    int64_t path_measured_ns;             /* when it was told */
    struct launcher_sample sample, final; /* guarded by lock */
    /* of its thread */
    struct strategy_memory memory;
    bool last_failed;
    int64_t next_abort_ns;
    int64_t limited_vcpus;
};

void monitor_sample(struct monitor *m, struct launcher_sample *ret)
{
    pthread_mutex_lock(&m->lock);
    *ret = m->sample;
    pthread_mutex_unlock(&m->lock);
}

void monitor_final(struct monitor *m, struct launcher_sample *ret)
{
    pthread_mutex_lock(&m->lock);
    *ret = m->final;
    pthread_mutex_unlock(&m->lock);
}

void monitor_set_path(struct monitor *m, bool away, int64_t bytes_per_s)
{
    pthread_mutex_lock(&m->lock);
    bool changed = m->path_away != away;
    m->path_away = away;
    m->path_bytes_per_s = bytes_per_s;
    m->path_measured_ns = ferry_now_ns();
    pthread_mutex_unlock(&m->lock);
    if (changed) {
        record_note(m->cfg.record, "path", away ? "away" : "up");
    }
}

/* ---- telling -----------------------------------------------------------------------------------
 */

static void log_sample(const struct launcher_sample *s, enum wire_mode mode)
{
    ferry_info("migration", F_STR("mode", wire_mode_text(mode)), F_INT("elapsedMs", s->elapsed_ms),
               F_INT("iteration", s->iteration), F_INT("processedBytes", s->processed_bytes),
               F_INT("remainingBytes", s->remaining_bytes), F_INT("totalBytes", s->total_bytes),
               F_INT("bytesPerS", s->bytes_per_s), F_INT("dirtyBytesPerS", s->dirty_bytes_per_s),
               F_INT("postCopyRequests", s->postcopy_requests),
               F_INT("expectedDowntimeMs", s->downtime_ms));
}

static void publish_sample(struct monitor *m, const struct launcher_sample *s)
{
    for (int i = 0; i < 2; i++) {
        yyjson_mut_doc *doc = json_doc_new();
        yyjson_mut_val *o = wire_launcher_sample_write(doc, s);

        yyjson_mut_doc_set_root(doc, o);
        yyjson_mut_obj_add_strcpy(doc, o, "uid", m->uid);
        if (i == 0) {
            events_publish(m->cfg.c->events, "sample", doc);
        } else {
            record_add(m->cfg.record, "sample", doc);
        }
    }
}

static void note_decision(struct monitor *m, const struct strategy_decision *d, const char *refused)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, o, "action", strategy_action_name(d->action));
    yyjson_mut_obj_add_strcpy(doc, o, "text", d->why);
    if (d->downtime_ms) {
        yyjson_mut_obj_add_int(doc, o, "downtimeMs", d->downtime_ms);
    }
    if (d->bytes_per_s) {
        yyjson_mut_obj_add_int(doc, o, "bytesPerS", d->bytes_per_s);
    }
    if (refused) {
        yyjson_mut_obj_add_strcpy(doc, o, "refused", refused);
    }
    record_add(m->cfg.record, "decision", doc);
    ferry_info("migration parameters set", F_STR("migration", m->uid),
               F_STR("action", strategy_action_name(d->action)), F_STR("why", d->why),
               F_STR("refused", refused ? refused : ""));
}

/* ---- acting ------------------------------------------------------------------------------------
 */

int monitor_decide_abort(const struct context *c, enum state_abort why, const char *detail,
                         struct ferry_error *err)
{
    struct state_values *v = state_lock(c->state);
    struct state_migration *m = &v->migration;

    if (m->mode == MODE_POST_COPY && !state_migration_over(m)) {
        state_unlock(c->state);
        return ferry_fail(err, FERRY_CONFLICT,
                          "migration %s is in post-copy: the guest runs on the target already, and "
                          "the move must finish",
                          m->uid);
    }
    if (m->abort != STATE_ABORT_NONE || state_migration_over(m)) {
        state_unlock(c->state);
        return 0;
    }
    m->abort = why;
    m->abort_status = ABORT_UNDER_WAY;
    snprintf(m->abort_detail, sizeof(m->abort_detail), "%s", detail);
    return state_commit(c->state, err);
}

/* Carries out an abort that was decided; again now and then until the migration is over, because
 * libvirt has no job to abort in the first moments. */
static void abort_job(struct monitor *m, const struct state_values *v)
{
    struct ferry_error err;

    if (v->migration.abort == STATE_ABORT_NONE || ferry_now_ns() < m->next_abort_ns) {
        return;
    }
    m->next_abort_ns = ferry_now_ns() + ABORT_AGAIN_MS * FERRY_NS_PER_MS;
    virt_cleanup_domain virDomainPtr d = virt_domain(m->cfg.c->virt, &err);
    if (!d || virDomainAbortJob(d) < 0) {
        if (d) {
            virt_fail(&err, "aborting the job");
        }
        record_note(m->cfg.record, "abort-refused", err.msg);
        m->next_abort_ns = ferry_now_ns() + RECHECK_MS * FERRY_NS_PER_MS;
        return;
    }
    record_note(m->cfg.record, "abort-accepted", v->migration.abort_detail);
    state_lock(m->cfg.c->state)->migration.abort_accepted = true;
    if (state_commit(m->cfg.c->state, &err) < 0) {
        ferry_error("cannot record an abort", F_ERR(&err));
    }
}

/* Writes the mode down; CONFLICT when an abort came first. */
static int set_mode(struct monitor *m, enum wire_mode mode, bool suspended, struct ferry_error *err)
{
    struct state_values *v = state_lock(m->cfg.c->state);

    if (mode != MODE_PRE_COPY && v->migration.abort != STATE_ABORT_NONE) {
        state_unlock(m->cfg.c->state);
        return ferry_fail(err, FERRY_CONFLICT, "an abort came first");
    }
    v->migration.mode = mode;
    v->migration.suspended = suspended;
    return state_commit(m->cfg.c->state, err);
}

/* Whether the action stops a guest that runs; one that its user paused stays as it is. */
static bool must_suspend(struct monitor *m, enum strategy_action action)
{
    struct view now;

    return action != STRATEGY_FORCE &&
           (virt_view(m->cfg.c->virt, &now, NULL) < 0 || now.state == LAUNCHER_DOMAIN_RUNNING);
}

/* A mode that libvirt did not come into. */
static void set_mode_back(struct monitor *m, enum wire_mode mode, bool suspended)
{
    struct ferry_error err;

    if (set_mode(m, mode, suspended, &err) < 0) {
        ferry_error("cannot record the mode of a migration", F_ERR(&err));
    }
}

/* The libvirt calls of an action that changes the mode to `mode`. */
static int call_in_mode(struct monitor *m, virDomainPtr d, const struct strategy_decision *what,
                        enum wire_mode mode, struct ferry_error *err)
{
    bool suspend = must_suspend(m, what->action);
    struct launcher_sample s;
    int rc = set_mode(m, mode, suspend, err);

    if (rc < 0) {
        return rc;
    }
    if ((suspend && virDomainSuspend(d) < 0) ||
        (what->action == STRATEGY_FORCE &&
         virDomainMigrateSetMaxDowntime(d, (unsigned long long)what->downtime_ms, 0) < 0)) {
        rc = virt_fail(err, "%s", strategy_action_name(what->action));
        set_mode_back(m, MODE_PRE_COPY, false);
        return rc;
    }
    if (suspend) {
        record_note(m->cfg.record, "suspend", strategy_action_name(what->action));
    }
    if (what->action == STRATEGY_POST_COPY && virDomainMigrateStartPostCopy(d, 0) < 0) {
        rc = virt_fail(err, "%s", strategy_action_name(what->action));
        /* It stays suspended: the move may be through at this instant. */
        set_mode_back(m, suspend ? MODE_PAUSED : MODE_PRE_COPY, suspend);
        return rc;
    }
    monitor_sample(m, &s);
    context_publish_migration(m->cfg.c, &s);
    return 0;
}

/* libvirt can only set it before a migration begins. */
static int set_switchover(struct monitor *m, int64_t bytes_per_s, struct ferry_error *err)
{
    ferry_cleanup_free char *arguments =
        ferry_asprintf("{\"avail-switchover-bandwidth\":%lld}", (long long)bytes_per_s);

    return qmp_session_execute(
        m->cfg.c->qmp,
        &(struct qmp_command){.name = "migrate-set-parameters", .arguments = arguments},
        ferry_now_ns() + QMP_MS * FERRY_NS_PER_MS, NULL, err);
}

static int carry_out(struct monitor *m, const struct strategy_decision *what,
                     struct ferry_error *err)
{
    if (what->action == STRATEGY_ABORT_STUCK || what->action == STRATEGY_ABORT_NOT_CONVERGING) {
        return monitor_decide_abort(
            m->cfg.c,
            what->action == STRATEGY_ABORT_STUCK ? STATE_ABORT_STUCK : STATE_ABORT_NOT_CONVERGING,
            what->why, err);
    }
    if (what->action == STRATEGY_SET_SWITCHOVER) {
        return set_switchover(m, what->bytes_per_s, err);
    }
    if (what->action == STRATEGY_LIMIT_WRITES) {
        return dirty_limit_set(m->cfg.c, what->bytes_per_s >> 20, err);
    }
    virt_cleanup_domain virDomainPtr d = virt_domain(m->cfg.c->virt, err);
    if (!d) {
        return -(int)err->cls;
    }
    switch (what->action) {
    case STRATEGY_SET_DOWNTIME:
        return virDomainMigrateSetMaxDowntime(d, (unsigned long long)what->downtime_ms, 0) < 0
                   ? virt_fail(err, "setting the allowed downtime")
                   : 0;
    case STRATEGY_POST_COPY:
        return call_in_mode(m, d, what, MODE_POST_COPY, err);
    default:
        return call_in_mode(m, d, what, MODE_PAUSED, err);
    }
}

static void judge(struct monitor *m, const struct launcher_sample *s, const struct state_values *v)
{
    struct strategy_input in = {.policy = &m->cfg.options,
                                .data_bytes = m->cfg.data_bytes,
                                .elapsed_ms =
                                    (ferry_now_ns() - m->cfg.started_ns) / FERRY_NS_PER_MS,
                                .mode = v->migration.mode,
                                .aborting = v->migration.abort != STATE_ABORT_NONE,
                                .vfio = m->cfg.vfio,
                                .limited_vcpus = m->limited_vcpus,
                                .last_failed = m->last_failed,
                                .sample = *s};
    struct strategy_decision d;
    struct ferry_error err;

    pthread_mutex_lock(&m->lock);
    in.path_away = m->path_away;
    in.path_bytes_per_s = m->path_bytes_per_s;
    in.path_measured_ms = (m->path_measured_ns - m->cfg.started_ns) / FERRY_NS_PER_MS;
    pthread_mutex_unlock(&m->lock);
    strategy_decide(&in, &m->memory, &d);
    m->last_failed = false;
    if (d.action == STRATEGY_KEEP) {
        return;
    }
    m->last_failed = carry_out(m, &d, &err) < 0;
    note_decision(m, &d, m->last_failed ? err.msg : NULL);
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static void look(struct monitor *m, bool log, const struct state_values *v)
{
    struct launcher_sample s;

    if (virt_sample(m->cfg.c->virt, false, &s, NULL) < 0) {
        s = (struct launcher_sample){.downtime_ms = -1}; /* tolerated: only the clocks go on */
    } else if (s.present && s.active) {
        pthread_mutex_lock(&m->lock);
        m->sample = s;
        pthread_mutex_unlock(&m->lock);
        publish_sample(m, &s);
        if (log) {
            log_sample(&s, v->migration.mode);
        }
    }
    judge(m, &s, v);
}

static bool is_over(struct monitor *m)
{
    pthread_mutex_lock(&m->lock);
    bool over = m->over;
    pthread_mutex_unlock(&m->lock);
    return over;
}

static void *run(void *ctx)
{
    struct monitor *m = ctx;
    struct virt *virt = m->cfg.c->virt;
    uint64_t seen = virt_last_event(virt);
    int64_t next_sample_ns = ferry_now_ns();

    m->limited_vcpus = dirty_limit_vcpus(m->cfg.c);

    for (unsigned n = 0; !is_over(m);) {
        struct virt_event e = {.type = VIRT_EVENT_WAKE};
        bool any = virt_next_event(virt, seen, next_sample_ns, &e);
        bool round = any && e.type == VIRT_EVENT_ITERATION;
        struct state_values v;

        seen = any ? e.seq : seen;
        if (any && e.type == VIRT_EVENT_JOB_COMPLETED) {
            pthread_mutex_lock(&m->lock);
            m->final = e.completed;
            pthread_mutex_unlock(&m->lock);
        }
        state_get(m->cfg.c->state, &v);
        abort_job(m, &v);
        if (!round && ferry_now_ns() < next_sample_ns) {
            continue;
        }
        next_sample_ns = ferry_now_ns() + SAMPLE_MS * FERRY_NS_PER_MS;
        if (v.rescued) { /* libvirt's job has no end, and may not let itself be looked at */
            continue;
        }
        look(m, round || n++ % LOG_EVERY == 0, &v);
    }
    return NULL;
}

int monitor_start(const struct monitor_config *cfg, struct monitor **ret, struct ferry_error *err)
{
    struct monitor *m = ferry_xcalloc(1, sizeof(*m));

    m->cfg = *cfg;
    snprintf(m->uid, sizeof(m->uid), "%s", cfg->uid);
    m->cfg.uid = m->uid;
    m->sample = m->final = (struct launcher_sample){.downtime_ms = -1};
    pthread_mutex_init(&m->lock, NULL);
    int rc = pthread_create(&m->thread, NULL, run, m);
    if (rc != 0) {
        monitor_free(m);
        return ferry_fail_errno(err, rc, "starting the monitor");
    }
    m->joinable = true;
    *ret = m;
    return 0;
}

void monitor_stop(struct monitor *m)
{
    if (!m || !m->joinable) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->over = true;
    pthread_mutex_unlock(&m->lock);
    virt_wake(m->cfg.c->virt);
    pthread_join(m->thread, NULL);
    m->joinable = false;
}

void monitor_free(struct monitor *m)
{
    if (m) {
        monitor_stop(m);
        pthread_mutex_destroy(&m->lock);
        free(m);
    }
}
