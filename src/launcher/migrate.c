/* Theory of operation. A migration has two threads here. The *runner* makes libvirt's blocking
 * call, then waits until it is clear where the guest is and writes the result. The *monitor* looks
 * at the job every 400 ms and at each new round, publishes what it sees, lets strategy_decide()
 * judge, and carries out aborts, ours and those that were asked for.
 *
 * libvirtd itself drives the move (peer to peer). When the launcher dies meanwhile, the move goes
 * on; the next launcher finds "running" in the state file and starts the same two threads, the
 * runner without a call to make. When our connection to libvirtd breaks, the call returns with an
 * error that says nothing about the move; the runner then asks the (new) libvirtd. */
#include "launcher/migrate.h"

#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/record.h"
#include "launcher/result.h"
#include "launcher/sample.h"
#include "launcher/strategy.h"

enum { SAMPLE_MS = 400, LOG_EVERY = 10, ABORT_AGAIN_MS = 1000, LOOK_AGAIN_MS = 200 };

/* What libvirt's call came back with. */
struct call_result {
    bool known, ok;
    int code;
    char text[512];
};

struct migrate {
    const struct context *c;
    pthread_mutex_t lock;
    bool busy;            /* guarded by lock: the two threads exist */
    bool joinable;        /* guarded by lock: `runner` must be joined */
    bool over;            /* guarded by lock: the monitor shall end */
    struct sample sample; /* guarded by lock */
    struct sample final;  /* guarded by lock: from the job completed event */
    pthread_t runner;
    /* Of the current migration; set before its threads start. */
    char uid[STATE_UID_SIZE];
    bool make_call, paused;
    struct migrate_options options;
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
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void migrate_sample(struct migrate *m, struct sample *ret)
{
    pthread_mutex_lock(&m->lock);
    *ret = m->sample;
    pthread_mutex_unlock(&m->lock);
}

/* ---- the monitor -------------------------------------------------------------------------------
 */

static void log_sample(const struct sample *s)
{
    ferry_info("migration", F_INT("elapsedMs", s->elapsed_ms), F_INT("iteration", s->iteration),
               F_INT("processedBytes", s->processed_bytes),
               F_INT("remainingBytes", s->remaining_bytes), F_INT("totalBytes", s->total_bytes),
               F_INT("bytesPerS", s->bytes_per_s), F_INT("dirtyBytesPerS", s->dirty_bytes_per_s),
               F_INT("expectedDowntimeMs", s->downtime_ms));
}

static void publish_sample(struct migrate *m, const struct sample *s)
{
    for (int i = 0; i < 2; i++) {
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *o = sample_json(doc, s);

        yyjson_mut_doc_set_root(doc, o);
        yyjson_mut_obj_add_strcpy(doc, o, "uid", m->uid);
        if (i == 0) {
            events_publish(m->c->events, "sample", doc);
        } else {
            record_add(m->record, "sample", doc);
        }
    }
}

/* Writes down that the migration shall be aborted, and why. */
static void decide_abort(struct migrate *m, enum state_abort why, const char *detail)
{
    struct ferry_error err;
    struct state_values *v = state_lock(m->c->state);

    if (v->migration.abort != STATE_ABORT_NONE || state_migration_over(&v->migration)) {
        state_unlock(m->c->state);
        return;
    }
    v->migration.abort = why;
    v->migration.abort_status = STATE_ABORT_STATUS_ABORTING;
    snprintf(v->migration.abort_detail, sizeof(v->migration.abort_detail), "%s", detail);
    if (state_commit(m->c->state, &err) < 0) {
        ferry_error("cannot write down an abort", F_ERR(&err));
    }
}

static void judge(struct migrate *m, const struct sample *s, struct strategy_memory *memory)
{
    struct strategy_input in = {.policy = &m->options,
                                .guest_bytes = m->guest_bytes,
                                .elapsed_ms = (ferry_now_ns() - m->started_ns) / FERRY_NS_PER_MS,
                                .sample = *s};
    struct strategy_decision d;
    struct state_values v;

    strategy_decide(&in, memory, &d);
    state_get(m->c->state, &v);
    if (d.action == STRATEGY_KEEP || v.migration.abort != STATE_ABORT_NONE) {
        return;
    }
    ferry_warn("migration is aborted", F_STR("migration", m->uid), F_STR("why", d.why));
    record_note(m->record, "decision", d.why);
    decide_abort(m,
                 d.action == STRATEGY_ABORT_STUCK ? STATE_ABORT_STUCK : STATE_ABORT_NOT_CONVERGING,
                 d.why);
}

/* Carries out an abort that was decided; again now and then until the migration is over, because
 * libvirt has no job to abort in the first moments. */
static void abort_job(struct migrate *m, int64_t *io_next_ns)
{
    struct ferry_error err;
    struct state_values v;

    state_get(m->c->state, &v);
    if (v.migration.abort == STATE_ABORT_NONE || ferry_now_ns() < *io_next_ns) {
        return;
    }
    *io_next_ns = ferry_now_ns() + ABORT_AGAIN_MS * FERRY_NS_PER_MS;
    virt_cleanup_domain virDomainPtr d = virt_domain(m->c->virt, &err);
    if (!d || virDomainAbortJob(d) < 0) {
        if (d) {
            virt_fail(&err, "aborting the job");
        }
        record_note(m->record, "abort-refused", err.msg);
        *io_next_ns = ferry_now_ns() + LOOK_AGAIN_MS * FERRY_NS_PER_MS;
        return;
    }
    record_note(m->record, "abort-accepted", v.migration.abort_detail);
    state_lock(m->c->state)->migration.abort_accepted = true;
    if (state_commit(m->c->state, &err) < 0) {
        ferry_error("cannot write down an abort", F_ERR(&err));
    }
}

static bool monitor_over(struct migrate *m)
{
    pthread_mutex_lock(&m->lock);
    bool over = m->over;
    pthread_mutex_unlock(&m->lock);
    return over;
}

static void take_sample(struct migrate *m, bool log, struct strategy_memory *memory)
{
    struct sample s;

    if (virt_sample(m->c->virt, false, &s, NULL) < 0) {
        s = (struct sample){.downtime_ms = -1}; /* tolerated: only the clocks go on */
    } else if (s.present && s.active) {
        pthread_mutex_lock(&m->lock);
        m->sample = s;
        pthread_mutex_unlock(&m->lock);
        publish_sample(m, &s);
        if (log) {
            log_sample(&s);
        }
    }
    judge(m, &s, memory);
}

static void *run_monitor(void *ctx)
{
    struct migrate *m = ctx;
    struct strategy_memory memory = {0};
    uint64_t seen = virt_last_event(m->c->virt);
    int64_t next_sample_ns = ferry_now_ns(), next_abort_ns = 0;

    for (unsigned n = 0; !monitor_over(m);) {
        struct virt_event e = {.type = VIRT_EVENT_WAKE};
        bool any = virt_next_event(m->c->virt, seen, next_sample_ns, &e);
        bool round = any && e.type == VIRT_EVENT_ITERATION;

        seen = any ? e.seq : seen;
        if (any && e.type == VIRT_EVENT_JOB_COMPLETED) {
            pthread_mutex_lock(&m->lock);
            m->final = e.completed;
            pthread_mutex_unlock(&m->lock);
        }
        abort_job(m, &next_abort_ns);
        if (!round && ferry_now_ns() < next_sample_ns) {
            continue;
        }
        next_sample_ns = ferry_now_ns() + SAMPLE_MS * FERRY_NS_PER_MS;
        take_sample(m, round || n++ % LOG_EVERY == 0, &memory);
    }
    return NULL;
}

/* ---- the runner --------------------------------------------------------------------------------
 */

static void call_libvirt(struct migrate *m, struct call_result *ret)
{
    struct ferry_error err;
    struct migrate_call call;
    virTypedParameterPtr params = NULL;
    int n = 0, max = 0;

    *ret = (struct call_result){.known = true};
    virt_cleanup_domain virDomainPtr d = virt_domain(m->c->virt, &err);
    if (!d) {
        snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
        return;
    }
    migrate_call_make(&m->options, m->c->migration_dir, m->c->uid, m->paused, &call);
    virTypedParamsAddString(&params, &n, &max, VIR_MIGRATE_PARAM_URI, call.memory_uri);
    if (call.bandwidth_mib_per_s) {
        virTypedParamsAddULLong(&params, &n, &max, VIR_MIGRATE_PARAM_BANDWIDTH,
                                call.bandwidth_mib_per_s);
    }
    ret->ok = virDomainMigrateToURI3(d, call.destination_uri, params, (unsigned)n, call.flags) == 0;
    if (!ret->ok) {
        virErrorPtr e = virGetLastError();

        ret->code = e ? e->code : 0;
        snprintf(ret->text, sizeof(ret->text), "%s", e && e->message ? e->message : "");
    }
    virTypedParamsFree(params, n);
    migrate_call_done(&call);
}

/* Looks until it is clear where the guest is. There is no deadline: a wrong answer would be worse
 * than a late one, and the migration's own deadlines are the monitor's. */
static void settle(struct migrate *m, const struct call_result *call, struct result *ret)
{
    for (;;) {
        struct result_input in = {.call_known = call->known,
                                  .call_ok = call->ok,
                                  .libvirt_code = call->code,
                                  .text = call->text};
        struct state_values v;
        struct sample s;

        if (virt_view(m->c->virt, &in.domain, NULL) == 0) {
            in.job_active = virt_sample(m->c->virt, false, &s, NULL) == 0 && s.active;
            state_get(m->c->state, &v);
            in.abort = v.migration.abort;
            in.abort_detail = v.migration.abort_detail;
            in.abort_accepted = v.migration.abort_accepted;
            result_decide(&in, ret);
            if (ret->decided) {
                return;
            }
        }
        ferry_sleep_ms(LOOK_AGAIN_MS);
    }
}

static int64_t real_downtime(struct migrate *m)
{
    struct sample s;

    pthread_mutex_lock(&m->lock);
    int64_t ms = m->final.present ? m->final.downtime_ms : -1;
    pthread_mutex_unlock(&m->lock);
    if (ms < 0 && virt_sample(m->c->virt, true, &s, NULL) == 0 && s.present) {
        ms = s.downtime_ms;
    }
    return ms;
}

static void write_result(struct migrate *m, const struct result *r)
{
    struct ferry_error err;
    int64_t downtime = r->phase == STATE_PHASE_SUCCEEDED ? real_downtime(m) : -1;

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
        ferry_error("cannot write down the end of a migration", F_ERR(&err));
        ferry_sleep_ms(1000);
    }
    ferry_info("migration is over", F_STR("migration", m->uid),
               F_STR("phase", state_phase_name(r->phase)), F_STR("code", r->reason_code),
               F_STR("reason", r->failure_reason), F_INT("downtimeMs", downtime));
}

static void note_end(struct migrate *m)
{
    struct sample s;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    struct state_values v;

    state_get(m->c->state, &v);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "phase", state_phase_name(v.migration.phase));
    yyjson_mut_obj_add_strcpy(doc, o, "failureReason", v.migration.failure_reason);
    yyjson_mut_obj_add_strcpy(doc, o, "reasonCode", v.migration.reason_code);
    yyjson_mut_obj_add_int(doc, o, "downtimeMs", v.migration.downtime_ms);
    record_add(m->record, "end", doc);
    migrate_sample(m, &s);
    context_publish_migration(m->c, &s);
}

static void *run_migration(void *ctx)
{
    struct migrate *m = ctx;
    struct call_result call = {0};
    struct result result;
    pthread_t monitor;
    bool monitored = pthread_create(&monitor, NULL, run_monitor, m) == 0;

    if (m->make_call && monitored) {
        call_libvirt(m, &call);
        record_note(m->record, "call", call.ok ? "ok" : call.text);
    } else if (m->make_call) {
        call = (struct call_result){.known = true, .text = "cannot start the monitor"};
    }
    settle(m, &call, &result);
    pthread_mutex_lock(&m->lock);
    m->over = true;
    pthread_mutex_unlock(&m->lock);
    virt_wake(m->c->virt);
    if (monitored) {
        pthread_join(monitor, NULL);
    }
    write_result(m, &result);
    note_end(m);
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
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_strcpy(doc, o, "uid", m->uid);
    yyjson_mut_obj_add_int(doc, o, "guestBytes", m->guest_bytes);
    yyjson_mut_obj_add_val(doc, o, "options", migrate_options_json(doc, &m->options));
    record_add(m->record, m->make_call ? "start" : "reattach", doc);
    if (m->make_call && m->options.allow_post_copy) {
        record_note(m->record, "decision", "post-copy is allowed, but not used yet");
    }
    context_publish_migration(m->c, &m->sample);
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
    m->over = false;
    m->sample = m->final = (struct sample){.downtime_ms = -1};
    m->record = record_open(m->c->record_dir, m->uid);
    note_start(m);
    m->joinable = pthread_create(&m->runner, NULL, run_migration, m) == 0;
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
    bool current = m->role != STATE_ROLE_NONE && ferry_streq(m->uid, uid);

    *ret_again = current && m->role == STATE_ROLE_SOURCE && !state_migration_over(m);
    if (*ret_again) {
        return 0;
    }
    if (state_uid_known(v, uid)) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "migration %s was here before: a migration runs only once", uid);
    }
    if (!state_migration_over(m)) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is not over yet", m->uid);
    }
    if (v->stop) {
        return ferry_fail(err, FERRY_CONFLICT, "this launcher was asked to stop");
    }
    return 0;
}

static int begin(struct migrate *m, const char *uid, const struct migrate_options *options,
                 struct ferry_error *err)
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
                        view_state_name(now.state), now.reason[0] ? ", " : "", now.reason);
    }
    if (rc < 0 || again) {
        state_unlock(m->c->state);
        return rc;
    }
    struct state_migration fresh = {.role = STATE_ROLE_SOURCE,
                                    .phase = STATE_PHASE_RUNNING,
                                    .start_ms = ferry_now_unix_ms(),
                                    .downtime_ms = -1,
                                    .options = *options};
    snprintf(fresh.uid, sizeof(fresh.uid), "%s", uid);
    state_begin_migration(v, &fresh);
    copy = *v;
    rc = state_commit(m->c->state, err);
    if (rc < 0) {
        return rc;
    }
    m->paused = now.state == VIEW_PAUSED;
    m->busy = true;
    start_threads(m, &copy, true);
    return 0;
}

int migrate_start(struct migrate *m, const char *uid, const struct api_vmi *vmi,
                  const struct migrate_options *options, struct ferry_error *err)
{
    int rc = context_check_vmi(m->c, vmi, err);

    if (rc < 0) {
        return rc;
    }
    pthread_mutex_lock(&m->lock);
    struct state_values v;
    state_get(m->c->state, &v);
    if (m->busy && !ferry_streq(v.migration.uid, uid)) {
        rc = ferry_fail(err, FERRY_RETRY, "migration %s is not over yet", v.migration.uid);
    } else {
        rc = begin(m, uid, options, err);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

void migrate_reattach(struct migrate *m)
{
    struct state_values v;

    pthread_mutex_lock(&m->lock);
    state_get(m->c->state, &v);
    if (!m->busy && v.migration.role == STATE_ROLE_SOURCE && !state_migration_over(&v.migration)) {
        ferry_info("going on with a migration", F_STR("migration", v.migration.uid));
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
    if (v.migration.role != STATE_ROLE_SOURCE) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "migration %s comes in here; it is cancelled at its source", uid);
    }
    decide_abort(m, STATE_ABORT_ASKED, "asked for");
    virt_wake(m->c->virt);
    return 0;
}
