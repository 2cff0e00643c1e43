#include "launcher/migrate_call.h"

#include <libvirt/libvirt.h>
#include <stdlib.h>

#include "base/str.h"

enum { MIB = 1 << 20 };

/* Beyond these a value is a mistake, not a wish. */
#define BANDWIDTH_MAX (INT64_C(1) << 50)
#define SECONDS_MAX (INT64_C(1) << 31)

void migrate_options_init(struct migrate_options *o)
{
    *o = (struct migrate_options){.completion_timeout_per_gib_s = 150, .progress_timeout_s = 150};
}

static int get_number(const yyjson_val *json, const char *name, int64_t max, int64_t *io,
                      struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)(uintptr_t)json, name);

    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_int(v) || yyjson_get_sint(v) < 0 || yyjson_get_sint(v) > max) {
        return ferry_fail(err, FERRY_INVALID, "options.%s: must be a whole number from 0 to %lld",
                          name, (long long)max);
    }
    *io = yyjson_get_sint(v);
    return 0;
}

static int get_flag(const yyjson_val *json, const char *name, bool *io, struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)(uintptr_t)json, name);

    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_bool(v)) {
        return ferry_fail(err, FERRY_INVALID, "options.%s: must be true or false", name);
    }
    *io = yyjson_get_bool(v);
    return 0;
}

int migrate_options_decode(const yyjson_val *json, struct migrate_options *ret,
                           struct ferry_error *err)
{
    struct migrate_options o;

    migrate_options_init(&o);
    if (json && !yyjson_is_null((yyjson_val *)(uintptr_t)json)) {
        if (!yyjson_is_obj((yyjson_val *)(uintptr_t)json)) {
            return ferry_fail(err, FERRY_INVALID, "options: must be an object");
        }
        if (get_number(json, "bandwidthBytesPerS", BANDWIDTH_MAX, &o.bandwidth_bytes_per_s, err) <
                0 ||
            get_number(json, "completionTimeoutPerGiBS", SECONDS_MAX,
                       &o.completion_timeout_per_gib_s, err) < 0 ||
            get_number(json, "progressTimeoutS", SECONDS_MAX, &o.progress_timeout_s, err) < 0 ||
            get_flag(json, "allowAutoConverge", &o.allow_auto_converge, err) < 0 ||
            get_flag(json, "allowPostCopy", &o.allow_post_copy, err) < 0 ||
            get_flag(json, "allowWorkloadDisruption", &o.allow_workload_disruption, err) < 0 ||
            get_flag(json, "unsafe", &o.unsafe, err) < 0) {
            return -(int)FERRY_INVALID;
        }
    }
    *ret = o;
    return 0;
}

yyjson_mut_val *migrate_options_json(yyjson_mut_doc *doc, const struct migrate_options *o)
{
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_int(doc, v, "bandwidthBytesPerS", o->bandwidth_bytes_per_s);
    yyjson_mut_obj_add_bool(doc, v, "allowAutoConverge", o->allow_auto_converge);
    yyjson_mut_obj_add_bool(doc, v, "allowPostCopy", o->allow_post_copy);
    yyjson_mut_obj_add_bool(doc, v, "allowWorkloadDisruption", o->allow_workload_disruption);
    yyjson_mut_obj_add_bool(doc, v, "unsafe", o->unsafe);
    yyjson_mut_obj_add_int(doc, v, "completionTimeoutPerGiBS", o->completion_timeout_per_gib_s);
    yyjson_mut_obj_add_int(doc, v, "progressTimeoutS", o->progress_timeout_s);
    return v;
}

char *migrate_socket_path(const char *dir, const char *key, enum migrate_channel channel)
{
    if (channel == MIGRATE_CHANNEL_CONTROL) {
        return ferry_asprintf("%s/%s-source.sock", dir, key);
    }
    return ferry_asprintf("%s/%s-%d-source.sock", dir, key, (int)channel);
}

void migrate_call_make(const struct migrate_options *o, const char *dir, const char *key,
                       bool paused, struct migrate_call *ret)
{
    ferry_cleanup_free char *control = migrate_socket_path(dir, key, MIGRATE_CHANNEL_CONTROL);
    ferry_cleanup_free char *memory = migrate_socket_path(dir, key, MIGRATE_CHANNEL_MEMORY);
    unsigned flags = VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_PERSIST_DEST;

    if (o->unsafe) {
        flags |= VIR_MIGRATE_UNSAFE;
    }
    if (o->allow_auto_converge) {
        flags |= VIR_MIGRATE_AUTO_CONVERGE;
    }
    if (paused) {
        flags |= VIR_MIGRATE_PAUSED;
    }
    /* POSTCOPY is left out even when allowed: nothing here would switch to it yet, and the
     * capability alone changes how QEMU connects. */
    int64_t bandwidth = o->bandwidth_bytes_per_s;
    *ret = (struct migrate_call){
        .flags = flags,
        .destination_uri = ferry_asprintf("qemu+unix:///session?socket=%s", control),
        .memory_uri = ferry_asprintf("unix://%s", memory),
        /* rounded to MiB/s, never down to 0, which would mean unlimited */
        .bandwidth_mib_per_s = bandwidth == 0 ? 0
                               : bandwidth < MIB
                                   ? 1
                                   : (unsigned long long)((bandwidth + MIB / 2) / MIB),
    };
}

void migrate_call_done(struct migrate_call *c)
{
    free(c->destination_uri);
    free(c->memory_uri);
    *c = (struct migrate_call){0};
}
