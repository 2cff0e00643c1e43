#include "api/wire/wire_launcher_status.h"

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_launcher_fields.h"
#include "base/str.h"
#include "json/doc.h"

#define SAMPLE(name, member)                                                                       \
    WIRE_ROW(WIRE_NUMBER, launcher_sample, name, member, .max = WIRE_NUMBER_MAX, .sparse = true,   \
             .absent = -1)
#define RUN(kind, name, member, ...)                                                               \
    WIRE_ROW(kind, launcher_migration, name, member, WIRE_ANY, __VA_ARGS__)
#define GUEST(kind, name, member, ...)                                                             \
    WIRE_ROW(kind, launcher_guest, name, member, WIRE_ANY, .sparse = true, __VA_ARGS__)
#define STATUS(kind, name, member, ...) WIRE_ROW(kind, launcher_status, name, member, __VA_ARGS__)

static const struct wire_field sample_fields[] = {
    SAMPLE("elapsedMs", elapsed_ms),
    SAMPLE("totalBytes", total_bytes),
    SAMPLE("processedBytes", processed_bytes),
    SAMPLE("remainingBytes", remaining_bytes),
    SAMPLE("bytesPerS", bytes_per_s),
    SAMPLE("dirtyBytesPerS", dirty_bytes_per_s),
    SAMPLE("iteration", iteration),
    SAMPLE("expectedDowntimeMs", downtime_ms),
    SAMPLE("throttlePercent", throttle_percent),
    {0},
};

/* Of a move that copies disks. */
static const struct wire_field disk_fields[] = {
    SAMPLE("diskTotalBytes", disk_total_bytes),
    SAMPLE("diskRemainingBytes", disk_remaining_bytes),
    {0},
};

static const struct wire_field migration_fields[] = {
    RUN(WIRE_TEXT, "uid", uid, .needed = true),
    RUN(WIRE_WORD, "role", role, .words = &wire_launcher_roles, .needed = true),
    RUN(WIRE_WORD, "phase", phase, .words = &wire_launcher_phases, .needed = true),
    RUN(WIRE_WORD, "mode", mode, .words = &wire_modes, .open = true),
    RUN(WIRE_TIME, "startTimestamp", start_ms, .sparse = true),
    RUN(WIRE_TIME, "endTimestamp", end_ms, .sparse = true),
    RUN(WIRE_FLAG, "abortRequested", abort_requested),
    RUN(WIRE_WORD, "abortStatus", abort_status, .words = &wire_aborts, .open = true),
    RUN(WIRE_TEXT, "failureReason", failure_reason),
    RUN(WIRE_TEXT, "reasonCode", reason_code),
    RUN(WIRE_FLAG, "neverRan", never_ran, .sparse = true),
    RUN(WIRE_FLAG, "filtered", filtered, .sparse = true),
    RUN(WIRE_NUMBER, "recoveries", recoveries, .sparse = true),
    RUN(WIRE_NUMBER, "downtimeMs", downtime_ms, .sparse = true, .absent = -1),
    {0},
};

static const struct wire_field domain_fields[] = {
    STATUS(WIRE_WORD, "state", domain, .words = &wire_launcher_domains, .needed = true),
    STATUS(WIRE_WORD, "reason", domain_reason, .words = &wire_launcher_reasons, .open = true,
           .other = LAUNCHER_REASON_NONE),
    {0},
};

static const struct wire_field guest_fields[] = {
    GUEST(WIRE_TIME, "resetTimestamp", reset_ms),
    GUEST(WIRE_TIME, "watchdogTimestamp", watchdog_ms),
    GUEST(WIRE_WORD, "watchdogAction", watchdog, .words = &wire_launcher_watchdogs, .open = true,
          .other = LAUNCHER_WATCHDOG_OTHER),
    GUEST(WIRE_TEXT, "volume", volume),
    GUEST(WIRE_WORD, "diskError", disk_error, .words = &wire_launcher_disk_errors, .open = true,
          .other = LAUNCHER_DISK_BROKEN),
    {0},
};

static const struct wire_field status_fields[] = {
    STATUS(WIRE_TEXT, "machine", machine, .sparse = true),
    {0},
};

/* ---- writing -----------------------------------------------------------------------------------
 */

yyjson_mut_val *wire_launcher_sample_write(yyjson_mut_doc *doc, const struct launcher_sample *s)
{
    yyjson_mut_val *o = wire_fields_write(doc, sample_fields, s);

    if (s->disk_total_bytes > 0) {
        wire_fields_add(doc, o, disk_fields, s);
    }
    return o;
}

yyjson_mut_val *wire_launcher_migration_write(yyjson_mut_doc *doc,
                                              const struct launcher_migration *m)
{
    yyjson_mut_val *o = wire_fields_write(doc, migration_fields, m);

    if (m->role == LAUNCHER_ROLE_SOURCE && m->sample.present) {
        yyjson_mut_obj_add_val(doc, o, "sample", wire_launcher_sample_write(doc, &m->sample));
    }
    return o;
}

yyjson_mut_val *wire_launcher_guest_write(yyjson_mut_doc *doc, const struct launcher_guest *g)
{
    return wire_fields_write(doc, guest_fields, g);
}

char *wire_launcher_status_write(const struct launcher_status *s)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_val(doc, o, "domain", wire_fields_write(doc, domain_fields, s));
    wire_fields_add(doc, o, status_fields, s);
    yyjson_mut_val *guest = wire_launcher_guest_write(doc, &s->guest);
    if (yyjson_mut_obj_size(guest) > 0) {
        yyjson_mut_obj_add_val(doc, o, "guest", guest);
    }
    if (s->migration.role != LAUNCHER_ROLE_NONE) {
        yyjson_mut_obj_add_val(doc, o, "migration",
                               wire_launcher_migration_write(doc, &s->migration));
    }
    return json_doc_text(doc, 0, NULL);
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static yyjson_val *member(const yyjson_val *o, const char *name)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)o, name);

    return v && !yyjson_is_null(v) ? v : NULL;
}

static int read_sample(const yyjson_val *v, struct launcher_sample *s, struct ferry_error *err)
{
    for (const struct wire_field *f = sample_fields; f->name; f++) {
        *(int64_t *)((char *)s + f->offset) = f->absent;
    }
    int rc = wire_fields_read(v, sample_fields, "migration.sample", FERRY_PEER, s, err);

    s->present = v != NULL;
    return rc < 0 ? rc : wire_fields_read(v, disk_fields, "migration.sample", FERRY_PEER, s, err);
}

static int read_migration(const yyjson_val *v, struct launcher_migration *m,
                          struct ferry_error *err)
{
    int rc = wire_fields_read(v, migration_fields, "migration", FERRY_PEER, m, err);

    return rc < 0 ? rc : read_sample(member(v, "sample"), &m->sample, err);
}

int wire_launcher_guest_read(const yyjson_val *o, struct launcher_guest *ret,
                             struct ferry_error *err)
{
    return wire_fields_read(o, guest_fields, "guest", FERRY_PEER, ret, err);
}

static int read_status(const yyjson_val *root, struct launcher_status *s, struct ferry_error *err)
{
    const yyjson_val *migration = member(root, "migration");
    int rc = wire_fields_read(member(root, "domain"), domain_fields, "domain", FERRY_PEER, s, err);

    if (rc == 0) {
        rc = wire_fields_read(root, status_fields, "status", FERRY_PEER, s, err);
    }
    if (rc == 0) {
        rc = wire_launcher_guest_read(member(root, "guest"), &s->guest, err);
    }
    return rc == 0 && migration ? read_migration(migration, &s->migration, err) : rc;
}

int wire_launcher_status_read(const char *json, size_t len, struct launcher_status *ret,
                              struct ferry_error *err)
{
    struct launcher_status s = {.migration = {.downtime_ms = -1, .sample.downtime_ms = -1}};
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);

    rc = rc < 0 ? rc : read_status(yyjson_doc_get_root(doc), &s, err);
    if (rc < 0) {
        return ferry_wrap(err, "launcher status");
    }
    *ret = s;
    return 0;
}
