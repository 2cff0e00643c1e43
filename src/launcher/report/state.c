#include "launcher/report/state.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_launcher_fields.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/str.h"
#include "json/doc.h"

enum { FILE_MAX = 256 * 1024 };

static const char *const vm_names[] = {"none", "starting", "started"};
static const char *const abort_names[] = {"", "asked", "stuck", "not-converging"};
static_assert(FERRY_COUNT(vm_names) == STATE_VM_COUNT, "one name a value");
static_assert(FERRY_COUNT(abort_names) == STATE_ABORT_COUNT, "likewise");
static const struct wire_words vm_words = {vm_names, STATE_VM_COUNT};
static const struct wire_words abort_words = {abort_names, STATE_ABORT_COUNT};

#define MOVE(kind, name, member, ...)                                                              \
    WIRE_ROW(kind, state_migration, name, member, WIRE_ANY, __VA_ARGS__)
#define VALUE(kind, name, member, ...)                                                             \
    WIRE_ROW(kind, state_values, name, member, WIRE_ANY, __VA_ARGS__)

static const struct wire_field migration_fields[] = {
    MOVE(WIRE_TEXT, "uid", uid, .needed = true),
    MOVE(WIRE_WORD, "role", role, .words = &wire_launcher_roles, .needed = true),
    MOVE(WIRE_WORD, "phase", phase, .words = &wire_launcher_phases),
    MOVE(WIRE_NUMBER, "startMs", start_ms),
    MOVE(WIRE_NUMBER, "endMs", end_ms),
    MOVE(WIRE_WORD, "abort", abort, .words = &abort_words),
    MOVE(WIRE_TEXT, "abortDetail", abort_detail),
    MOVE(WIRE_FLAG, "abortAccepted", abort_accepted),
    MOVE(WIRE_WORD, "abortStatus", abort_status, .words = &wire_aborts),
    MOVE(WIRE_WORD, "mode", mode, .words = &wire_modes),
    MOVE(WIRE_FLAG, "suspended", suspended),
    MOVE(WIRE_NUMBER, "recoveries", recoveries),
    MOVE(WIRE_FLAG, "neverRan", never_ran),
    MOVE(WIRE_FLAG, "filtered", filtered),
    MOVE(WIRE_NUMBER, "diskBytes", disk_bytes),
    MOVE(WIRE_FLAG, "incomingSeen", incoming_seen),
    MOVE(WIRE_FLAG, "finalized", finalized),
    MOVE(WIRE_TEXT, "failureReason", failure_reason),
    MOVE(WIRE_TEXT, "reasonCode", reason_code),
    MOVE(WIRE_NUMBER, "downtimeMs", downtime_ms),
    {0},
};

static const struct wire_field value_fields[] = {
    VALUE(WIRE_TEXT, "hostUUID", host_uuid),
    VALUE(WIRE_WORD, "vm", vm, .words = &vm_words),
    VALUE(WIRE_NUMBER, "graceS", grace_s),
    VALUE(WIRE_NUMBER, "memoryBytes", memory_bytes),
    VALUE(WIRE_FLAG, "panicked", panicked),
    VALUE(WIRE_NUMBER, "oomKills", oom_kills),
    VALUE(WIRE_FLAG, "stop", stop),
    VALUE(WIRE_FLAG, "rescued", rescued),
    VALUE(WIRE_NUMBER, "stopDeadlineMs", stop_deadline_ms),
    {0},
};

void state_values_init(struct state_values *v)
{
    *v = (struct state_values){.grace_s = 30};
    v->migration.mode = MODE_PRE_COPY;
    v->migration.downtime_ms = -1;
    wire_options_init(&v->migration.options);
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
    return v->migration.role != LAUNCHER_ROLE_NONE && ferry_streq(v->migration.uid, uid);
}

int state_may_begin(const struct state_values *v, const char *uid, struct ferry_error *err)
{
    if (state_uid_known(v, uid)) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "migration %s was here before: a migration runs only once", uid);
    }
    if (!state_migration_over(&v->migration)) {
        return ferry_fail(err, FERRY_CONFLICT, "migration %s is not over yet", v->migration.uid);
    }
    if (v->stop) {
        return ferry_fail(err, FERRY_CONFLICT, "this launcher was asked to stop");
    }
    return 0;
}

void state_begin_migration(struct state_values *v, const struct state_migration *m)
{
    if (v->migration.role != LAUNCHER_ROLE_NONE) {
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
    return m->role == LAUNCHER_ROLE_NONE || m->phase == LAUNCHER_SUCCEEDED ||
           m->phase == LAUNCHER_FAILED;
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static yyjson_mut_val *encode_migration(yyjson_mut_doc *doc, const struct state_migration *m)
{
    yyjson_mut_val *o = wire_fields_write(doc, migration_fields, m);

    if (m->role == LAUNCHER_ROLE_SOURCE) { /* a target has none */
        yyjson_mut_obj_add_val(doc, o, "options", wire_options_write(doc, &m->options));
    }
    return o;
}

char *state_encode(const struct state_values *v)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = wire_fields_write(doc, value_fields, v);
    yyjson_mut_val *past = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, o);
    if (v->migration.role != LAUNCHER_ROLE_NONE) {
        yyjson_mut_obj_add_val(doc, o, "migration", encode_migration(doc, &v->migration));
    }
    yyjson_mut_obj_add_val(doc, o, "guest", wire_launcher_guest_write(doc, &v->guest));
    for (size_t i = 0; i < v->n_past; i++) {
        yyjson_mut_arr_add_str(doc, past, v->past[i]);
    }
    yyjson_mut_obj_add_val(doc, o, "past", past);
    return json_doc_text(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
}

static int decode_migration(const yyjson_val *o, struct state_migration *m, struct ferry_error *err)
{
    int rc = wire_fields_read(o, migration_fields, "migration", FERRY_INVALID, m, err);

    if (rc == 0 && !state_uid_valid(m->uid)) {
        rc = ferry_fail(err, FERRY_INVALID, "migration.uid: not a UID");
    }
    return rc < 0 ? rc
                  : wire_options_read(yyjson_obj_get((yyjson_val *)o, "options"), &m->options, err);
}

static void decode_past(yyjson_val *list, struct state_values *v)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    for (yyjson_val *item; (item = yyjson_arr_iter_next(&it)) && v->n_past < STATE_PAST_MAX;) {
        const char *uid = yyjson_get_str(item);

        if (state_uid_valid(uid)) {
            snprintf(v->past[v->n_past++], STATE_UID_SIZE, "%s", uid);
        }
    }
}

int state_decode(const char *json, size_t len, struct state_values *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct state_values v;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc < 0) {
        return rc;
    }
    yyjson_val *o = yyjson_doc_get_root(doc), *m = yyjson_obj_get(o, "migration");
    state_values_init(&v);
    rc = wire_fields_read(o, value_fields, "state", FERRY_INVALID, &v, err);
    if (rc == 0 && m) {
        rc = decode_migration(m, &v.migration, err);
    }
    if (rc == 0) {
        rc = wire_launcher_guest_read(yyjson_obj_get(o, "guest"), &v.guest, err);
    }
    if (rc == 0) {
        decode_past(yyjson_obj_get(o, "past"), &v);
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
