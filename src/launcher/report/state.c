#include "launcher/report/state.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "api/object.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/str.h"
#include "json/doc.h"

enum { FILE_MAX = 256 * 1024 };

static const char *const vm_names[] = {"none", "starting", "started"};
static const char *const role_names[] = {"", "source", "target"};
static const char *const phase_names[] = {"prepared", "running", "succeeded", "failed"};
static const char *const abort_names[] = {"", "asked", "stuck", "not-converging"};
static const char *const abort_status_names[] = {"", "Aborting", "Succeeded", "Failed"};
#define NAMES(table, count) static_assert(FERRY_COUNT(table) == (count), "one name a value")
NAMES(vm_names, STATE_VM_COUNT);
NAMES(role_names, STATE_ROLE_COUNT);
NAMES(phase_names, STATE_PHASE_COUNT);
NAMES(abort_names, STATE_ABORT_COUNT);
NAMES(abort_status_names, STATE_ABORT_STATUS_COUNT);

const char *state_role_name(enum state_role role)
{
    return role_names[role];
}

const char *state_phase_name(enum state_phase phase)
{
    return phase_names[phase];
}

const char *state_abort_status_name(enum state_abort_status status)
{
    return abort_status_names[status];
}

void state_values_init(struct state_values *v)
{
    *v = (struct state_values){.grace_s = 30};
    v->migration.downtime_ms = -1;
    migrate_options_init(&v->migration.options);
}

bool state_uid_valid(const char *uid)
{
    size_t n = uid ? strlen(uid) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)uid[i]) && uid[i] != '-') {
            return false;
        }
    }
    return n > 0 && n < STATE_UID_SIZE;
}

bool state_uid_known(const struct state_values *v, const char *uid)
{
    for (size_t i = 0; i < v->n_past; i++) {
        if (ferry_streq(v->past[i], uid)) {
            return true;
        }
    }
    return v->migration.role != STATE_ROLE_NONE && ferry_streq(v->migration.uid, uid);
}

void state_begin_migration(struct state_values *v, const struct state_migration *m)
{
    if (v->migration.role != STATE_ROLE_NONE) {
        if (v->n_past == STATE_PAST_MAX) {
            memmove(v->past[0], v->past[1], sizeof(v->past[0]) * (STATE_PAST_MAX - 1));
            v->n_past--;
        }
        memcpy(v->past[v->n_past++], v->migration.uid, STATE_UID_SIZE);
    }
    v->migration = *m;
}

bool state_migration_over(const struct state_migration *m)
{
    return m->role == STATE_ROLE_NONE || m->phase == STATE_PHASE_SUCCEEDED ||
           m->phase == STATE_PHASE_FAILED;
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static yyjson_mut_val *encode_migration(yyjson_mut_doc *doc, const struct state_migration *m)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, o, "uid", m->uid);
    yyjson_mut_obj_add_str(doc, o, "role", role_names[m->role]);
    yyjson_mut_obj_add_str(doc, o, "phase", phase_names[m->phase]);
    yyjson_mut_obj_add_int(doc, o, "startMs", m->start_ms);
    yyjson_mut_obj_add_int(doc, o, "endMs", m->end_ms);
    yyjson_mut_obj_add_str(doc, o, "abort", abort_names[m->abort]);
    yyjson_mut_obj_add_str(doc, o, "abortDetail", m->abort_detail);
    yyjson_mut_obj_add_bool(doc, o, "abortAccepted", m->abort_accepted);
    yyjson_mut_obj_add_str(doc, o, "abortStatus", abort_status_names[m->abort_status]);
    yyjson_mut_obj_add_str(doc, o, "mode", strategy_mode_name(m->mode));
    yyjson_mut_obj_add_bool(doc, o, "suspended", m->suspended);
    yyjson_mut_obj_add_int(doc, o, "recoveries", m->recoveries);
    yyjson_mut_obj_add_bool(doc, o, "filtered", m->filtered);
    yyjson_mut_obj_add_bool(doc, o, "neverRan", m->never_ran);
    yyjson_mut_obj_add_int(doc, o, "diskBytes", m->disk_bytes);
    yyjson_mut_obj_add_bool(doc, o, "incomingSeen", m->incoming_seen);
    yyjson_mut_obj_add_bool(doc, o, "finalized", m->finalized);
    yyjson_mut_obj_add_str(doc, o, "failureReason", m->failure_reason);
    yyjson_mut_obj_add_str(doc, o, "reasonCode", m->reason_code);
    yyjson_mut_obj_add_int(doc, o, "downtimeMs", m->downtime_ms);
    if (m->role == STATE_ROLE_SOURCE) { /* a target has none */
        yyjson_mut_obj_add_val(doc, o, "options", migrate_options_json(doc, &m->options));
    }
    return o;
}

char *state_encode(const struct state_values *v)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    yyjson_mut_val *past = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "hostUUID", v->host_uuid);
    yyjson_mut_obj_add_str(doc, o, "vm", vm_names[v->vm]);
    yyjson_mut_obj_add_int(doc, o, "graceS", v->grace_s);
    yyjson_mut_obj_add_int(doc, o, "memoryBytes", v->memory_bytes);
    yyjson_mut_obj_add_bool(doc, o, "stop", v->stop);
    yyjson_mut_obj_add_bool(doc, o, "rescued", v->rescued);
    yyjson_mut_obj_add_int(doc, o, "stopDeadlineMs", v->stop_deadline_ms);
    if (v->migration.role != STATE_ROLE_NONE) {
        yyjson_mut_obj_add_val(doc, o, "migration", encode_migration(doc, &v->migration));
    }
    for (size_t i = 0; i < v->n_past; i++) {
        yyjson_mut_arr_add_str(doc, past, v->past[i]);
    }
    yyjson_mut_obj_add_val(doc, o, "past", past);
    char *text = json_doc_text(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    yyjson_mut_doc_free(doc);
    return text;
}

static void copy_text(const yyjson_val *v, const char *pointer, char *to, size_t size)
{
    const char *s = api_json_str(v, pointer);

    snprintf(to, size, "%s", s ? s : "");
}

/* Index of the text at `pointer` in `names`; -1 when it is none of them, 0 when it is absent. */
static int lookup(const yyjson_val *v, const char *pointer, const char *const *names, int count)
{
    const char *s = api_json_str(v, pointer);

    if (!s) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (ferry_streq(s, names[i])) {
            return i;
        }
    }
    return -1;
}

static int decode_migration(const yyjson_val *o, struct state_migration *m, struct ferry_error *err)
{
    int role = lookup(o, "/role", role_names, STATE_ROLE_COUNT);
    int phase = lookup(o, "/phase", phase_names, STATE_PHASE_COUNT);
    int abort = lookup(o, "/abort", abort_names, STATE_ABORT_COUNT);
    int status = lookup(o, "/abortStatus", abort_status_names, STATE_ABORT_STATUS_COUNT);

    int mode = 0;

    while (mode < STRATEGY_MODE_COUNT && api_json_str(o, "/mode") &&
           !ferry_streq(api_json_str(o, "/mode"), strategy_mode_name((enum strategy_mode)mode))) {
        mode++;
    }
    copy_text(o, "/uid", m->uid, sizeof(m->uid));
    if (role <= 0 || phase < 0 || abort < 0 || status < 0 || mode == STRATEGY_MODE_COUNT ||
        !state_uid_valid(m->uid)) {
        return ferry_fail(err, FERRY_INVALID, "migration: a field has an unknown value");
    }
    m->role = (enum state_role)role;
    m->phase = (enum state_phase)phase;
    m->abort = (enum state_abort)abort;
    m->abort_status = (enum state_abort_status)status;
    m->mode = (enum strategy_mode)mode;
    m->suspended = api_json_bool(o, "/suspended", false);
    m->recoveries = api_json_int(o, "/recoveries", 0);
    m->filtered = api_json_bool(o, "/filtered", false);
    m->never_ran = api_json_bool(o, "/neverRan", false);
    m->disk_bytes = api_json_int(o, "/diskBytes", 0);
    m->start_ms = api_json_int(o, "/startMs", 0);
    m->end_ms = api_json_int(o, "/endMs", 0);
    copy_text(o, "/abortDetail", m->abort_detail, sizeof(m->abort_detail));
    m->abort_accepted = api_json_bool(o, "/abortAccepted", false);
    m->incoming_seen = api_json_bool(o, "/incomingSeen", false);
    m->finalized = api_json_bool(o, "/finalized", false);
    copy_text(o, "/failureReason", m->failure_reason, sizeof(m->failure_reason));
    copy_text(o, "/reasonCode", m->reason_code, sizeof(m->reason_code));
    m->downtime_ms = api_json_int(o, "/downtimeMs", -1);
    return migrate_options_decode(yyjson_obj_get((yyjson_val *)(uintptr_t)o, "options"),
                                  &m->options, err);
}

int state_decode(const char *json, size_t len, struct state_values *ret, struct ferry_error *err)
{
    yyjson_doc *doc;
    struct state_values v;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc < 0) {
        return rc;
    }
    yyjson_val *o = yyjson_doc_get_root(doc), *item, *m = yyjson_obj_get(o, "migration");
    state_values_init(&v);
    copy_text(o, "/hostUUID", v.host_uuid, sizeof(v.host_uuid));
    int vm = lookup(o, "/vm", vm_names, STATE_VM_COUNT);
    v.grace_s = api_json_int(o, "/graceS", v.grace_s);
    v.memory_bytes = api_json_int(o, "/memoryBytes", 0);
    v.stop = api_json_bool(o, "/stop", false);
    v.rescued = api_json_bool(o, "/rescued", false);
    v.stop_deadline_ms = api_json_int(o, "/stopDeadlineMs", 0);
    yyjson_arr_iter it = yyjson_arr_iter_with(yyjson_obj_get(o, "past"));
    while ((item = yyjson_arr_iter_next(&it)) && v.n_past < STATE_PAST_MAX) {
        const char *uid = yyjson_get_str(item);

        if (state_uid_valid(uid)) {
            snprintf(v.past[v.n_past++], STATE_UID_SIZE, "%s", uid);
        }
    }
    if (vm < 0) {
        rc = ferry_fail(err, FERRY_INVALID, "vm: unknown value");
    } else if (m) {
        rc = decode_migration(m, &v.migration, err);
    }
    yyjson_doc_free(doc);
    if (rc == 0) {
        v.vm = (enum state_vm)vm;
        *ret = v;
    }
    return rc;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

struct state {
    char *path; /* immutable */
    pthread_mutex_t lock;
    struct state_values values, before; /* guarded by lock; `before`: since state_lock() */
};

int state_open(const char *path, struct state **ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct state_values values;
    int rc = ferry_read_file(path, FILE_MAX, &text, err);

    state_values_init(&values);
    if (rc == 0 && text.len) {
        rc = state_decode(text.data, text.len, &values, err);
    }
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return ferry_wrap(err, "state file %s", path);
    }
    struct state *s = ferry_xcalloc(1, sizeof(*s));
    s->path = ferry_strdup(path);
    s->values = values;
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return 0;
}

void state_close(struct state *s)
{
    if (s) {
        pthread_mutex_destroy(&s->lock);
        free(s->path);
        free(s);
    }
}

void state_get(struct state *s, struct state_values *ret)
{
    pthread_mutex_lock(&s->lock);
    *ret = s->values;
    pthread_mutex_unlock(&s->lock);
}

struct state_values *state_lock(struct state *s)
{
    pthread_mutex_lock(&s->lock);
    s->before = s->values;
    return &s->values;
}

void state_unlock(struct state *s)
{
    pthread_mutex_unlock(&s->lock);
}

int state_commit(struct state *s, struct ferry_error *err)
{
    ferry_cleanup_free char *text = state_encode(&s->values);
    int rc = ferry_write_file(s->path, text, strlen(text), 0600, err);

    if (rc < 0) {
        s->values = s->before;
        ferry_wrap(err, "state file");
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}
