#include "launcher/strategy/migrate_options.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/str.h"

/* Beyond these a value is a mistake, not a wish. */
#define BANDWIDTH_MAX (INT64_C(1) << 50)
#define SECONDS_MAX (INT64_C(1) << 31)
#define DOWNTIME_MAX_MS 2000000
#define FACTOR_MAX 1e6

static const char *const strategy_names[] = {"ferry", "kubevirt"};
_Static_assert(FERRY_COUNT(strategy_names) == MIGRATE_STRATEGY_COUNT, "one name a strategy");

void migrate_options_init(struct migrate_options *o)
{
    *o = (struct migrate_options){
        .completion_timeout_per_gib_s = 150,
        .progress_timeout_s = 150,
        .max_downtime_ms = 900,
        .stall = {.margin_percent = 4,
                  .progress_timeout_s = 40,
                  .switchover_timeout_s = 60,
                  .ewma_alpha = 0.4,
                  .possible_factor = 1.5,
                  .decay = 0.5,
                  .completion_factor = 2,
                  .search_minima = true},
        .tuning = {.initial_ms = 150, .steps = 7, .start_iteration = 3, .cooldown_s = 10},
    };
}

/* One row per field; the encoder and the decoder both walk these. */
enum kind { NUMBER, FLAG, FACTOR };

struct field {
    const char *name;
    enum kind kind;
    size_t offset;
    double min, max;
};

#define F(struct_, kind_, name_, member, min_, max_)                                               \
    {                                                                                              \
        name_, kind_, offsetof(struct struct_, member), min_, max_                                 \
    }

static const struct field plain[] = {
    F(migrate_options, NUMBER, "bandwidthBytesPerS", bandwidth_bytes_per_s, 0, BANDWIDTH_MAX),
    F(migrate_options, FLAG, "allowAutoConverge", allow_auto_converge, 0, 1),
    F(migrate_options, FLAG, "allowPostCopy", allow_post_copy, 0, 1),
    F(migrate_options, FLAG, "allowWorkloadDisruption", allow_workload_disruption, 0, 1),
    F(migrate_options, FLAG, "unsafe", unsafe, 0, 1),
    F(migrate_options, NUMBER, "completionTimeoutPerGiBS", completion_timeout_per_gib_s, 0,
      SECONDS_MAX),
    F(migrate_options, NUMBER, "progressTimeoutS", progress_timeout_s, 0, SECONDS_MAX),
    F(migrate_options, NUMBER, "maxDowntimeMs", max_downtime_ms, 1, DOWNTIME_MAX_MS),
    F(migrate_options, NUMBER, "parallelConnections", parallel_connections, 0,
      MIGRATE_CONNECTIONS_MAX),
    F(migrate_options, NUMBER, "pathBytesPerS", path_bytes_per_s, 0, BANDWIDTH_MAX),
    {0},
};

static const struct field stall[] = {
    F(migrate_stall, NUMBER, "stallMargin", margin_percent, 0, 100),
    F(migrate_stall, FACTOR, "ewmaAlpha", ewma_alpha, 0.001, 1),
    F(migrate_stall, NUMBER, "stallProgressTimeout", progress_timeout_s, 0, SECONDS_MAX),
    F(migrate_stall, NUMBER, "switchoverTimeout", switchover_timeout_s, 0, SECONDS_MAX),
    F(migrate_stall, FACTOR, "precopyPossibleFactor", possible_factor, 1, FACTOR_MAX),
    F(migrate_stall, FACTOR, "patienceWindowDecayFactor", decay, 0, 1),
    F(migrate_stall, FLAG, "searchLocalMinima", search_minima, 0, 1),
    F(migrate_stall, FACTOR, "completionTimeoutFactor", completion_factor, 1, FACTOR_MAX),
    {0},
};

static const struct field tuning[] = {
    F(migrate_tuning, NUMBER, "initialMs", initial_ms, 1, DOWNTIME_MAX_MS),
    F(migrate_tuning, NUMBER, "steps", steps, 1, SECONDS_MAX),
    F(migrate_tuning, NUMBER, "startAfterIteration", start_iteration, 0, SECONDS_MAX),
    F(migrate_tuning, NUMBER, "cooldownSeconds", cooldown_s, 1, SECONDS_MAX),
    {0},
};

static yyjson_val *member(const yyjson_val *json, const char *name)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)(uintptr_t)json, name);

    return v && !yyjson_is_null(v) ? v : NULL;
}

/* ---- decoding ----------------------------------------------------------------------------------
 */

static int decode_field(const yyjson_val *v, const struct field *f, const char *where, char *base,
                        struct ferry_error *err)
{
    yyjson_val *value = (yyjson_val *)(uintptr_t)v;
    void *to = base + f->offset;

    switch (f->kind) {
    case FLAG:
        if (!yyjson_is_bool(value)) {
            return ferry_fail(err, FERRY_INVALID, "%s.%s: must be true or false", where, f->name);
        }
        *(bool *)to = yyjson_get_bool(value);
        return 0;
    case NUMBER:
        if (!yyjson_is_int(value) || (double)yyjson_get_sint(value) < f->min ||
            (double)yyjson_get_sint(value) > f->max) {
            return ferry_fail(err, FERRY_INVALID, "%s.%s: must be a whole number from %.0f to %.0f",
                              where, f->name, f->min, f->max);
        }
        *(int64_t *)to = yyjson_get_sint(value);
        return 0;
    case FACTOR:
        break;
    }
    const char *text = yyjson_get_str(value); /* KubeVirt writes factors as strings */
    char *end = NULL;
    double d = text ? strtod(text, &end) : yyjson_get_num(value);
    bool number = text ? end != text && *end == '\0' : yyjson_is_num(value);
    if (!number || !(d >= f->min) || d > f->max) {
        return ferry_fail(err, FERRY_INVALID, "%s.%s: must be a number from %g to %g", where,
                          f->name, f->min, f->max);
    }
    *(double *)to = d;
    return 0;
}

static int decode_object(const yyjson_val *json, const struct field *fields, const char *where,
                         void *base, struct ferry_error *err)
{
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)json)) {
        return ferry_fail(err, FERRY_INVALID, "%s: must be an object", where);
    }
    for (; fields->name; fields++) {
        yyjson_val *v = member(json, fields->name);

        if (v && decode_field(v, fields, where, base, err) < 0) {
            return -FERRY_INVALID;
        }
    }
    return 0;
}

static int decode_words(const yyjson_val *json, struct migrate_options *o, struct ferry_error *err)
{
    yyjson_val *strategy = member(json, "strategy"), *compression = member(json, "compression");

    if (strategy) {
        int i = 0;

        while (i < MIGRATE_STRATEGY_COUNT &&
               !ferry_streq(yyjson_get_str(strategy), strategy_names[i])) {
            i++;
        }
        if (i == MIGRATE_STRATEGY_COUNT) {
            return ferry_fail(err, FERRY_INVALID, "options.strategy: must be ferry or kubevirt");
        }
        o->strategy = (enum migrate_strategy)i;
    }
    if (compression) {
        o->zstd = ferry_streq(yyjson_get_str(compression), "zstd");
        if (!o->zstd && !ferry_streq(yyjson_get_str(compression), "none")) {
            return ferry_fail(err, FERRY_INVALID, "options.compression: must be none or zstd");
        }
    }
    if (o->zstd && o->parallel_connections == 0) {
        return ferry_fail(err, FERRY_INVALID,
                          "options.compression: zstd needs options.parallelConnections");
    }
    return 0;
}

int migrate_options_decode(const yyjson_val *json, struct migrate_options *ret,
                           struct ferry_error *err)
{
    struct migrate_options o;

    migrate_options_init(&o);
    if (json && !yyjson_is_null((yyjson_val *)(uintptr_t)json)) {
        yyjson_val *stalled, *tuned;

        if (decode_object(json, plain, "options", &o, err) < 0 || decode_words(json, &o, err) < 0) {
            return -FERRY_INVALID;
        }
        stalled = member(json, "stallDetector");
        tuned = member(json, "downtimeTuning");
        o.stall.on = stalled != NULL;
        o.tuning.on = tuned != NULL;
        if ((stalled &&
             decode_object(stalled, stall, "options.stallDetector", &o.stall, err) < 0) ||
            (tuned && decode_object(tuned, tuning, "options.downtimeTuning", &o.tuning, err) < 0)) {
            return -FERRY_INVALID;
        }
    }
    *ret = o;
    return 0;
}

/* ---- encoding ----------------------------------------------------------------------------------
 */

static yyjson_mut_val *encode_object(yyjson_mut_doc *doc, const struct field *fields,
                                     const void *base)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    for (; fields->name; fields++) {
        const void *from = (const char *)base + fields->offset;

        switch (fields->kind) {
        case NUMBER:
            yyjson_mut_obj_add_int(doc, o, fields->name, *(const int64_t *)from);
            break;
        case FLAG:
            yyjson_mut_obj_add_bool(doc, o, fields->name, *(const bool *)from);
            break;
        case FACTOR:
            yyjson_mut_obj_add_real(doc, o, fields->name, *(const double *)from);
            break;
        }
    }
    return o;
}

yyjson_mut_val *migrate_options_json(yyjson_mut_doc *doc, const struct migrate_options *o)
{
    yyjson_mut_val *v = encode_object(doc, plain, o);

    yyjson_mut_obj_add_str(doc, v, "strategy", strategy_names[o->strategy]);
    yyjson_mut_obj_add_str(doc, v, "compression", o->zstd ? "zstd" : "none");
    if (o->stall.on) {
        yyjson_mut_obj_add_val(doc, v, "stallDetector", encode_object(doc, stall, &o->stall));
    }
    if (o->tuning.on) {
        yyjson_mut_obj_add_val(doc, v, "downtimeTuning", encode_object(doc, tuning, &o->tuning));
    }
    return v;
}
