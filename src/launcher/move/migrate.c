/* Theory of operation. A migration has two threads. The *runner*, here, makes libvirt's blocking
 * call, then waits until it is clear where the guest is and writes the result. The *monitor*
 * (monitor.c) looks at the job meanwhile and steers it.
 *
 * libvirtd itself drives the move (peer to peer). When the launcher dies meanwhile, the move goes
 * on; the next launcher finds "running" in the state file and starts the same two threads, the
 * runner without a call to make. When our connection to libvirtd breaks, the call returns with an
 * error that says nothing about the move; the runner then asks the (new) libvirtd. */
#include "launcher/move/migrate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_reason.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/libvirt/qmp_session.h"
#include "launcher/move/dirty_limit.h"
#include "launcher/move/gate.h"
#include "launcher/move/monitor.h"
#include "launcher/move/preflight.h"
#include "launcher/move/request.h"
#include "launcher/move/rescue.h"
#include "launcher/move/result.h"
#include "launcher/move/unplug.h"
#include "launcher/report/record.h"
#include "launcher/strategy/sample.h"
#include "json/doc.h"

enum { RECHECK_MS = 200, QMP_MS = 5000, HANG_MS = 3000 };

struct migrate {
    const struct context *c;
    pthread_mutex_t lock;
    bool busy;                  /* guarded by lock: the runner works */
    bool joinable;              /* guarded by lock: `runner` must be joined */
    bool calling;               /* guarded by lock: libvirt's call has not returned */
    int64_t hanging_ns;         /* guarded by lock: since when it must have; 0 = it need not */
    enum outcome_target target; /* guarded by lock: what the handler said of the other side */
    char *plan;                 /* guarded by lock: of the next migration, or NULL */
    struct monitor *monitor;    /* guarded by lock: of the current or the last migration */
    pthread_t runner;
    /* Of the current migration; set before its threads start. */
    char uid[STATE_UID_SIZE];
    bool make_call, paused;
    struct disks disks;              /* with make_call only */
    struct disks_sizes target_disks; /* likewise; empty = not known */
    struct wire_options options;
    int64_t guest_bytes, started_ns;
    struct record *record;
};

struct migrate *migrate_new(const struct context *c)
{
    struct migrate *m = ferry_xcalloc(1, sizeof(*m));

    m->c = c;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void migrate_free(struct migrate *m)
{
    if (!m) {
        return;
    }
    if (m->joinable) {
        pthread_join(m->runner, NULL);
    }
    monitor_free(m->monitor);
    free(m->plan);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void migrate_sample(struct migrate *m, struct launcher_sample *ret)
{
    *ret = (struct launcher_sample){.downtime_ms = -1};
    pthread_mutex_lock(&m->lock);
    if (m->monitor) {
        monitor_sample(m->monitor, ret);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- the runner --------------------------------------------------------------------------------
 */

static int64_t qmp_deadline(void)
{
    return ferry_now_ns() + QMP_MS * FERRY_NS_PER_MS;
}

/* Lets the guest run here again: it was stopped by the switch-over, or by us. */
static void resume_source(struct migrate *m, const char *why)
{
    struct ferry_error err;
    virt_cleanup_domain virDomainPtr d = virt_domain(m->c->virt, &err);

    if (d && gate_open(m->c->gate, &err) < 0) {
        ferry_error("cannot resume the guest", F_ERR(&err));
    } else if (d && virDomainResume(d) < 0) {
        virt_fail(&err, "resuming the guest");
    } else if (d) {
        record_note(m->record, "resume", why);
        ferry_info("the guest runs here again", F_STR("why", why));
        return;
    }
    record_note(m->record, "resume-refused", err.msg);
}

/* The same by QEMU's own monitor, where libvirtd does not answer. */
static void resume_alone(struct migrate *m, const char *why)
{
    struct ferry_error err;
    bool ran = false;

    if (gate_open(m->c->gate, &err) < 0 || rescue_continue(m->c, &ran, &err) < 0) {
        ferry_error("cannot resume the guest yet", F_ERR(&err));
        record_note(m->record, "resume-refused", err.msg);
    } else if (!ran) {
        record_note(m->record, "resume", why);
        ferry_warn("the guest runs here again; libvirtd does not answer", F_STR("why", why));
    }
}

/* The same out of a post-copy: the state says it first, because QEMU is never the same again. */
static void rescue_source(struct migrate *m, bool libvirtd_answers)
{
    static const char why[] = "post-copy did not begin, and the guest never ran on the target";
    struct ferry_error err;
    char status[40];

    /* QEMU 10.0 up to some of its stable releases, and 10.1, stay in "device" when they could not
     * send the last of what precedes post-copy, and are as little to be resumed as in post-copy;
     * others say that it failed. */
    if (qmp_session_migration_status(m->c->qmp, status, sizeof(status), qmp_deadline(), NULL) ==
            0 &&
        !ferry_str_starts(status, "postcopy") && !ferry_streq(status, "device")) {
        if (libvirtd_answers) {
            resume_source(m, why);
        } else {
            resume_alone(m, why);
        }
        return;
    }
    state_lock(m->c->state)->rescued = true;
    if (state_commit(m->c->state, &err) < 0 || rescue_run(m->c, &err) < 0) {
        ferry_error("cannot take the guest back from post-copy yet", F_ERR(&err));
        record_note(m->record, "rescue-refused", err.msg);
        return;
    }
    record_note(m->record, "rescue", "the target never ran the guest, and never will");
    ferry_warn("the guest was taken back from post-copy and runs here again");
}

/* Removes what is left of a guest that runs elsewhere. */
static int stop_source(struct migrate *m, struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = virt_domain(m->c->virt, err);

    if (!d) {
        return err->cls == FERRY_NOT_FOUND ? 0 : -(int)err->cls;
    }
    if (virDomainIsActive(d) == 1 && virDomainDestroy(d) < 0) {
        return virt_fail(err, "ending the guest that runs elsewhere");
    }
    ferry_warn("source domain destroyed: the guest runs on the target");
    return 0;
}

/* The guest stands still here and QEMU did not send all of it: it cannot have been started on the
 * target, which happens only after that. */
static bool never_complete(struct migrate *m, const struct result_input *in)
{
    bool stopped =
        in->domain.between || (in->suspended && in->domain.state == LAUNCHER_DOMAIN_PAUSED);
    unsigned long version = 0;
    char status[40];

    if (in->job_active || !stopped || in->domain.postcopy ||
        qmp_session_migration_status(m->c->qmp, status, sizeof(status), qmp_deadline(), NULL) < 0) {
        return false;
    }
    if (in->postcopy) {
        virt_qemu_version(m->c->virt, &version, NULL);
    }
    return result_never_sent(status, in->postcopy, version);
}

/* libvirtd does not tell, but the guest is known to have run nowhere else, and QEMU itself can be
 * asked. */
static void settle_alone(struct migrate *m)
{
    struct state_values v;

    state_get(m->c->state, &v);
    pthread_mutex_lock(&m->lock);
    bool ours = m->target == OUTCOME_TARGET_NEVER_RAN;
    pthread_mutex_unlock(&m->lock);
    if (ours && v.migration.mode == MODE_POST_COPY && !v.rescued) {
        rescue_source(m, false);
    }
}

/* Looks until it is clear where the guest is. There is no deadline: a wrong answer would be worse
 * than a late one, and the migration's own deadlines are the monitor's. */
static void settle(struct migrate *m, const struct request_result *call, struct result *ret)
{
    for (;;) {
        struct result_input in = {.call_known = call->known,
                                  .call_ok = call->ok,
                                  .libvirt_code = call->code,
                                  .refused = call->refused,
                                  .text = call->text};
        struct state_values v;
        struct launcher_sample s;

        if (virt_view(m->c->virt, &in.domain, NULL) < 0) {
            settle_alone(m);
        } else {
            state_get(m->c->state, &v);
            in.rescued = v.rescued;
            /* not asked of a libvirtd that waits for the end of a migration that has none */
            in.job_active =
                !in.rescued && virt_sample(m->c->virt, false, &s, NULL) == 0 && s.active;
            in.abort = v.migration.abort;
            in.abort_detail = v.migration.abort_detail;
            in.abort_accepted = v.migration.abort_accepted;
            in.postcopy = v.migration.mode == MODE_POST_COPY;
            in.suspended = v.migration.suspended && m->c->gated; /* else as libvirt says */
            pthread_mutex_lock(&m->lock);
            in.target = m->target;
            pthread_mutex_unlock(&m->lock);
            in.incomplete = never_complete(m, &in);
            result_decide(&in, ret);
            if (ret->decided) {
                return;
            }
            if (ret->rescue_source) {
                rescue_source(m, true);
            }
            if (ret->resume_source) {
                resume_source(m, "the target is gone, and the guest had not run there");
            }
        }
        ferry_sleep_ms(RECHECK_MS);
    }
}

static int64_t real_downtime(struct migrate *m)
{
    struct launcher_sample s;

    monitor_final(m->monitor, &s);
    int64_t ms = s.present ? s.downtime_ms : -1;
    if (ms < 0 && virt_sample(m->c->virt, true, &s, NULL) == 0 && s.present) {
        ms = s.downtime_ms;
    }
    return ms;
}

static void write_result(struct migrate *m, const struct result *r, int64_t downtime)
{
    struct ferry_error err;

    for (;;) {
        struct state_values *v = state_lock(m->c->state);

        v->migration.phase = r->phase;
        v->migration.end_ms = ferry_now_unix_ms();
        v->migration.abort_status = r->abort_status;
        v->migration.downtime_ms = downtime;
        snprintf(v->migration.failure_reason, sizeof(v->migration.failure_reason), "%s",
                 r->failure_reason);
        snprintf(v->migration.reason_code, sizeof(v->migration.reason_code), "%s", r->reason_code);
        if (state_commit(m->c->state, &err) == 0) {
            break;
        }
        ferry_error("cannot record the end of a migration", F_ERR(&err));
        ferry_sleep_ms(1000);
    }
    ferry_info("migration is over", F_STR("migration", m->uid),
               F_STR("phase", wire_launcher_phase_text(r->phase)), F_STR("code", r->reason_code),
               F_STR("reason", r->failure_reason), F_INT("downtimeMs", downtime));
}

/* Before the state says that it is over: who acts on that finds the record whole. */
static void note_end(struct migrate *m, const struct result *r, int64_t downtime)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "phase", wire_launcher_phase_text(r->phase));
    yyjson_mut_obj_add_strcpy(doc, o, "failureReason", r->failure_reason);
    yyjson_mut_obj_add_strcpy(doc, o, "reasonCode", r->reason_code);
    yyjson_mut_obj_add_int(doc, o, "downtimeMs", downtime);
    record_add(m->record, "end", doc);
}

static void publish_end(struct migrate *m)
{
    struct launcher_sample s;

    migrate_sample(m, &s);
    context_publish_migration(m->c, &s);
}

/* What remains to be done here once it is clear where the guest is. */
static void clean_up(struct migrate *m, const struct result *r)
{
    struct state_values v;
    struct ferry_error err;
    struct view now;

    state_get(m->c->state, &v);
    if (r->stop_source && stop_source(m, &err) < 0) {
        ferry_error("cannot destroy the source domain", F_ERR(&err));
    }
    v.migration.phase = r->phase;
    snprintf(v.migration.reason_code, sizeof(v.migration.reason_code), "%s", r->reason_code);
    if (!gate_must_be_closed(&v) && gate_open(m->c->gate, &err) < 0) {
        ferry_error("libvirt may not resume the guest", F_ERR(&err));
    }
    if (r->phase == LAUNCHER_FAILED && v.migration.suspended &&
        virt_view(m->c->virt, &now, NULL) == 0 && now.state == LAUNCHER_DOMAIN_PAUSED &&
        !now.between && !now.postcopy) {
        resume_source(m, "it was paused only for the move");
    }
}

static void set_calling(struct migrate *m, bool calling)
{
    pthread_mutex_lock(&m->lock);
    m->calling = calling;
    m->hanging_ns = 0;
    pthread_mutex_unlock(&m->lock);
}

/* What recovery needs is there before post-copy begins. */
static void keep_monitor(struct migrate *m)
{
    struct ferry_error err;

    if (m->options.allow_post_copy && qmp_session_open(m->c->qmp, qmp_deadline(), &err) < 0) {
        ferry_warn("no QMP session", F_ERR(&err));
    }
}

/* What the guest gives back for the move, if the move can be. */
static int give_devices_back(struct migrate *m, enum wire_reason *ret_code, struct ferry_error *err)
{
    int rc = 0;

    if (unplug_needed(m->c) && (rc = preflight_run(m->c, ret_code, err)) == 0 &&
        (rc = unplug_all(m->c, m->record, err)) < 0) {
        *ret_code = err->cls == FERRY_INVALID ? REASON_DEVICE_NOT_MIGRATABLE : REASON_LIBVIRT_ERROR;
    }
    return rc;
}

static void make_request(struct migrate *m, struct request_result *ret)
{
    struct ferry_error err;

    if (give_devices_back(m, &ret->refused, &err) < 0) {
        ret->known = true;
        snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
        return;
    }
    set_calling(m, true);
    request_make(&(struct request){.c = m->c,
                                   .options = &m->options,
                                   .paused = m->paused,
                                   .vfio = unplug_keeps_some(m->c),
                                   .disks = &m->disks,
                                   .target_disks = &m->target_disks,
                                   .record = m->record},
                 ret);
    set_calling(m, false);
}

static void *run_migration(void *ctx)
{
    struct migrate *m = ctx;
    struct request_result call = {0};
    struct result result;
    struct state_values v;

    keep_monitor(m);
    state_get(m->c->state, &v);
    if (m->make_call && !v.rescued) {
        make_request(m, &call);
        record_note(m->record, "call", call.ok ? "ok" : call.text);
    }
    settle(m, &call, &result);
    monitor_stop(m->monitor);
    if (result.phase != LAUNCHER_SUCCEEDED) {
        dirty_limit_cancel(m->c); /* the guest that stays is not to be held back any more */
    }
    qmp_session_close(m->c->qmp);
    clean_up(m, &result);
    int64_t downtime = result.phase == LAUNCHER_SUCCEEDED ? real_downtime(m) : -1;
    note_end(m, &result, downtime);
    write_result(m, &result, downtime);
    publish_end(m);
    record_close(m->record);
    m->record = NULL;
    pthread_mutex_lock(&m->lock);
    m->busy = false;
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- start -------------------------------------------------------------------------------------
 */

static void note_start(struct migrate *m)
{
    static const struct launcher_sample none = {.downtime_ms = -1};
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_strcpy(doc, o, "uid", m->uid);
    yyjson_mut_obj_add_int(doc, o, "guestBytes", m->guest_bytes);
    yyjson_mut_obj_add_val(doc, o, "options", wire_options_write(doc, &m->options));
    record_add(m->record, m->make_call ? "start" : "reattach", doc);
    if (m->plan) {
        yyjson_doc *plan = yyjson_read(m->plan, strlen(m->plan), 0);

        record_add(m->record, "plan", json_doc_copy(plan));
        yyjson_doc_free(plan);
        free(m->plan);
        m->plan = NULL;
    }
    context_publish_migration(m->c, &none);
}

/* Called with m->lock held and m->busy set; the state file says "running". */
static void start_threads(struct migrate *m, const struct state_values *v, bool make_call)
{
    if (m->joinable) {
        pthread_join(m->runner, NULL); /* an earlier one: it is past its last use of the lock */
        m->joinable = false;
    }
    snprintf(m->uid, sizeof(m->uid), "%s", v->migration.uid);
    m->make_call = make_call;
    m->options = v->migration.options;
    m->guest_bytes = v->memory_bytes;
    m->started_ns =
        ferry_now_ns() - (ferry_now_unix_ms() - v->migration.start_ms) * FERRY_NS_PER_MS;
    m->target = OUTCOME_TARGET_UNKNOWN;
    monitor_free(m->monitor);
    m->monitor = NULL;
    m->record = record_open(m->c->record_dir, m->uid);
    note_start(m);
    struct monitor_config watch = {.c = m->c,
                                   .uid = m->uid,
                                   .options = m->options,
                                   .data_bytes = m->guest_bytes + v->migration.disk_bytes,
                                   .started_ns = m->started_ns,
                                   .vfio = unplug_keeps_some(m->c),
                                   .record = m->record};
    m->joinable = monitor_start(&watch, &m->monitor, NULL) == 0 &&
                  pthread_create(&m->runner, NULL, run_migration, m) == 0;
    if (!m->joinable) { /* without threads nothing will ever be decided: the next launcher will */
        ferry_error("cannot start a thread");
        abort();
    }
}

/* Class CONFLICT unless migration `uid` may begin now. `*ret_again`: it runs already. */
static int check_begin(const struct state_values *v, const char *uid, bool *ret_again,
                       struct ferry_error *err)
{
    const struct state_migration *m = &v->migration;
    bool current = m->role != LAUNCHER_ROLE_NONE && ferry_streq(m->uid, uid);

    *ret_again = current && m->role == LAUNCHER_ROLE_SOURCE && !state_migration_over(m);
    return *ret_again ? 0 : state_may_begin(v, uid, err);
}

static int begin(struct migrate *m, const char *uid, const struct wire_options *options,
                 int64_t disk_bytes, struct ferry_error *err)
{
    struct view now;
    struct state_values copy;
    bool again;
    int rc = virt_view(m->c->virt, &now, err);

    if (rc < 0) {
        return rc;
    }
    struct state_values *v = state_lock(m->c->state);
    rc = check_begin(v, uid, &again, err);
    if (rc == 0 && !again && !view_active(&now)) {
        rc = ferry_fail(err, FERRY_CONFLICT, "there is no running guest here: it is %s%s%s",
                        wire_launcher_domain_text(now.state), now.reason ? ", " : "",
                        wire_launcher_reason_text(now.reason));
    }
    if (rc < 0 || again) {
        state_unlock(m->c->state);
        return rc;
    }
    struct state_migration fresh = {.role = LAUNCHER_ROLE_SOURCE,
                                    .phase = LAUNCHER_RUNNING,
                                    .mode = MODE_PRE_COPY,
                                    .start_ms = ferry_now_unix_ms(),
                                    .downtime_ms = -1,
                                    .disk_bytes = disk_bytes,
                                    .options = *options};
    snprintf(fresh.uid, sizeof(fresh.uid), "%s", uid);
    bool was_open = !gate_must_be_closed(v);
    /* Before the state says that it runs: then nobody would begin it again. */
    rc = gate_close(m->c->gate, err);
    if (rc < 0) {
        state_unlock(m->c->state);
        return rc;
    }
    state_begin_migration(v, &fresh);
    copy = *v;
    rc = state_commit(m->c->state, err);
    if (rc < 0) {
        if (was_open && gate_open(m->c->gate, NULL) < 0) {
            ferry_warn("the guest here cannot be resumed until the launcher is started again");
        }
        return rc;
    }
    m->paused = now.state == LAUNCHER_DOMAIN_PAUSED;
    m->busy = true;
    start_threads(m, &copy, true);
    return 0;
}

int migrate_start(struct migrate *m, const char *uid, const struct api_vmi *vmi,
                  const struct wire_options *options, const struct disks_sizes *target_disks,
                  struct ferry_error *err)
{
    struct disks disks;
    int64_t disk_bytes;
    int rc = context_check_vmi(m->c, vmi, err);

    if (rc < 0 || (rc = disk_image_find(vmi, m->c->domain.disk_dir, &disks, err)) < 0 ||
        (rc = disk_image_copied_bytes(&disks, m->c->domain.disk_dir, &disk_bytes, err)) < 0) {
        return rc;
    }
    pthread_mutex_lock(&m->lock);
    struct state_values v;
    state_get(m->c->state, &v);
    if (m->busy && !ferry_streq(v.migration.uid, uid)) {
        rc = ferry_fail(err, FERRY_RETRY, "migration %s is not over yet", v.migration.uid);
    } else {
        if (!m->busy) {
            m->disks = disks;
            m->target_disks = *target_disks;
        }
        rc = begin(m, uid, options, disk_bytes, err);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

int migrate_keep_out(struct migrate *m, struct ferry_error *err)
{
    struct state_values v;

    pthread_mutex_lock(&m->lock);
    state_get(m->c->state, &v);
    if (!m->busy && state_migration_over(&v.migration)) {
        return 0;
    }
    pthread_mutex_unlock(&m->lock);
    return ferry_fail(err, FERRY_CONFLICT, "the guest is being moved: migration %s is not over yet",
                      v.migration.uid);
}

void migrate_let_in(struct migrate *m)
{
    pthread_mutex_unlock(&m->lock);
}

void migrate_reattach(struct migrate *m)
{
    struct state_values v;

    pthread_mutex_lock(&m->lock);
    state_get(m->c->state, &v);
    if (!m->busy && v.migration.role == LAUNCHER_ROLE_SOURCE &&
        !state_migration_over(&v.migration)) {
        ferry_info("resumed a migration after a restart", F_STR("migration", v.migration.uid));
        m->busy = true;
        start_threads(m, &v, false);
    }
    pthread_mutex_unlock(&m->lock);
}

int migrate_cancel(struct migrate *m, const char *uid, struct ferry_error *err)
{
    struct state_values v;

    state_get(m->c->state, &v);
    if (!state_uid_known(&v, uid)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no migration %s here", uid);
    }
    if (!ferry_streq(v.migration.uid, uid) || state_migration_over(&v.migration)) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is over", uid);
    }
    if (v.migration.role != LAUNCHER_ROLE_SOURCE) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "migration %s comes in here; it is cancelled at its source", uid);
    }
    int rc = monitor_decide_abort(m->c, STATE_ABORT_ASKED, "asked for", err);
    virt_wake(m->c->virt);
    return rc;
}

/* ---- what others know --------------------------------------------------------------------------
 */

void migrate_note_plan(struct migrate *m, const char *json)
{
    pthread_mutex_lock(&m->lock);
    free(m->plan);
    m->plan = ferry_strdup(json);
    pthread_mutex_unlock(&m->lock);
}

/* CONFLICT unless `uid` is the current migration, away from here; NOT_FOUND when it is unknown. */
static int check_current(const struct state_values *v, const char *uid, struct ferry_error *err)
{
    if (!state_uid_known(v, uid)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no migration %s here", uid);
    }
    if (!ferry_streq(v->migration.uid, uid) || v->migration.role != LAUNCHER_ROLE_SOURCE) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s does not go away from here now", uid);
    }
    return 0;
}

int migrate_set_path(struct migrate *m, const char *uid, bool away, int64_t bytes_per_s,
                     struct ferry_error *err)
{
    struct state_values v;

    state_get(m->c->state, &v);
    int rc = check_current(&v, uid, err);
    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&m->lock);
    if (m->busy && m->monitor) {
        monitor_set_path(m->monitor, away, bytes_per_s);
    }
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* The move is over as failed, the guest went on here, and now it turns out that it runs there too:
 * libvirt lets the source run when the target's answer is lost. The target's has gone on, and is
 * what the handlers show to the world. */
static int give_way(struct migrate *m, struct ferry_error *err)
{
    int rc = stop_source(m, err);

    if (rc < 0) {
        return rc;
    }
    struct state_values *v = state_lock(m->c->state);
    v->migration.phase = LAUNCHER_SUCCEEDED;
    v->migration.failure_reason[0] = v->migration.reason_code[0] = '\0';
    return state_commit(m->c->state, err);
}

/* libvirt waits for ever for the end of a post-copy that it wants to cancel, which QEMU does not
 * do. A new libvirtd forgets about it. Called with m->lock held. */
static void note_hanging(struct migrate *m, bool hangs)
{
    int64_t now = ferry_now_ns();

    if (!m->calling || !hangs) {
        return;
    }
    if (m->hanging_ns == 0) {
        m->hanging_ns = now;
    } else if (now - m->hanging_ns >= HANG_MS * FERRY_NS_PER_MS) {
        m->hanging_ns = now;
        ferry_warn("libvirtd does not return from a post-copy that did not begin");
        atomic_store(m->c->libvirtd_hangs, true);
    }
}

int migrate_set_target(struct migrate *m, const char *uid, enum outcome_target target,
                       struct ferry_error *err)
{
    struct state_values v;
    struct view now;

    state_get(m->c->state, &v);
    int rc = check_current(&v, uid, err);
    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&m->lock);
    m->target = target;
    note_hanging(m, v.migration.mode == MODE_POST_COPY && target == OUTCOME_TARGET_NEVER_RAN);
    bool busy = m->busy;
    pthread_mutex_unlock(&m->lock);
    if (busy || target != OUTCOME_TARGET_ACTIVE || v.migration.phase != LAUNCHER_FAILED) {
        return 0;
    }
    rc = virt_view(m->c->virt, &now, err);
    return rc == 0 && view_active(&now) ? give_way(m, err) : rc;
}
