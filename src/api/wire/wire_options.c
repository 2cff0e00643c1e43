#include "api/wire/wire_options.h"

#include "api/json.h"
#include "api/wire/wire_launcher_fields.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

/* Beyond these a value is a mistake, not a wish. */
#define BANDWIDTH_MAX (INT64_C(1) << 50)
#define SECONDS_MAX (INT64_C(1) << 31)
#define DOWNTIME_MAX_MS 2000000
#define FACTOR_MAX 1e6

static const char *const strategies[] = {"ferry", "kubevirt"};
_Static_assert(FERRY_COUNT(strategies) == WIRE_STRATEGY_COUNT, "one name a strategy");
static const struct wire_words strategy_words = {strategies, WIRE_STRATEGY_COUNT};
static const char *const compressions[] = {"none", "zstd"};
static const struct wire_words compression_words = {compressions, 2};

void wire_options_init(struct wire_options *o)
{
    *o = (struct wire_options){
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

/* ---- the table ---------------------------------------------------------------------------------
 */

#define PLAIN(kind, name, member, ...) WIRE_ROW(kind, wire_options, name, member, __VA_ARGS__)
#define STALL(kind, name, member, ...) WIRE_ROW(kind, wire_stall, name, member, __VA_ARGS__)
#define TUNING(name, member, ...) WIRE_ROW(WIRE_NUMBER, wire_tuning, name, member, __VA_ARGS__)

static const struct wire_field plain[] = {
    [WIRE_OPTION_BANDWIDTH] =
        PLAIN(WIRE_NUMBER, "bandwidthBytesPerS", bandwidth_bytes_per_s, .max = BANDWIDTH_MAX),
    [WIRE_OPTION_AUTO_CONVERGE] = PLAIN(WIRE_FLAG, "allowAutoConverge", allow_auto_converge),
    [WIRE_OPTION_POST_COPY] = PLAIN(WIRE_FLAG, "allowPostCopy", allow_post_copy),
    [WIRE_OPTION_DISRUPTION] =
        PLAIN(WIRE_FLAG, "allowWorkloadDisruption", allow_workload_disruption),
    [WIRE_OPTION_UNSAFE] = PLAIN(WIRE_FLAG, "unsafe", unsafe),
    [WIRE_OPTION_COMPLETION_TIMEOUT] = PLAIN(WIRE_NUMBER, "completionTimeoutPerGiBS",
                                             completion_timeout_per_gib_s, .max = SECONDS_MAX),
    [WIRE_OPTION_PROGRESS_TIMEOUT] =
        PLAIN(WIRE_NUMBER, "progressTimeoutS", progress_timeout_s, .max = SECONDS_MAX),
    [WIRE_OPTION_MAX_DOWNTIME] =
        PLAIN(WIRE_NUMBER, "maxDowntimeMs", max_downtime_ms, .min = 1, .max = DOWNTIME_MAX_MS),
    [WIRE_OPTION_CONNECTIONS] = PLAIN(WIRE_NUMBER, "parallelConnections", parallel_connections,
                                      .max = WIRE_CONNECTIONS_MAX),
    [WIRE_OPTION_PATH] =
        PLAIN(WIRE_NUMBER, "pathBytesPerS", path_bytes_per_s, .max = BANDWIDTH_MAX),
    [WIRE_OPTION_STRATEGY] = PLAIN(WIRE_WORD, "strategy", strategy, .words = &strategy_words),
    [WIRE_OPTION_COMPRESSION] = PLAIN(WIRE_WORD, "compression", zstd, .words = &compression_words),
    [WIRE_OPTION_COUNT] = {0},
};

static const struct wire_field stall[] = {
    STALL(WIRE_NUMBER, "stallMargin", margin_percent, .max = 100),
    STALL(WIRE_FACTOR, "ewmaAlpha", ewma_alpha, .min = 0.001, .max = 1),
    STALL(WIRE_NUMBER, "stallProgressTimeout", progress_timeout_s, .max = SECONDS_MAX),
    STALL(WIRE_NUMBER, "switchoverTimeout", switchover_timeout_s, .max = SECONDS_MAX),
    STALL(WIRE_FACTOR, "precopyPossibleFactor", possible_factor, .min = 1, .max = FACTOR_MAX),
    STALL(WIRE_FACTOR, "patienceWindowDecayFactor", decay, .max = 1),
    STALL(WIRE_FLAG, "searchLocalMinima", search_minima),
    STALL(WIRE_FACTOR, "completionTimeoutFactor", completion_factor, .min = 1, .max = FACTOR_MAX),
    {0},
};

static const struct wire_field tuning[] = {
    TUNING("initialMs", initial_ms, .min = 1, .max = DOWNTIME_MAX_MS),
    TUNING("steps", steps, .min = 1, .max = SECONDS_MAX),
    TUNING("startAfterIteration", start_iteration, .max = SECONDS_MAX),
    TUNING("cooldownSeconds", cooldown_s, .min = 1, .max = SECONDS_MAX),
    {0},
};

static const char stall_name[] = "stallDetector", tuning_name[] = "downtimeTuning";

/* ---- reading -----------------------------------------------------------------------------------
 */

static yyjson_val *member(const yyjson_val *json, const char *name)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)json, name);

    return v && !yyjson_is_null(v) ? v : NULL;
}

static int read_options(const yyjson_val *json, struct wire_options *o, struct ferry_error *err)
{
    const yyjson_val *stalled = member(json, stall_name), *tuned = member(json, tuning_name);
    int rc = wire_fields_read(json, plain, "options", FERRY_INVALID, o, err);

    if (rc == 0 && o->zstd && o->parallel_connections == 0) {
        rc = ferry_fail(err, FERRY_INVALID,
                        "options.compression: zstd needs options.parallelConnections");
    }
    if (rc == 0) {
        rc = wire_fields_read(stalled, stall, "options.stallDetector", FERRY_INVALID, &o->stall,
                              err);
    }
    if (rc == 0) {
        rc = wire_fields_read(tuned, tuning, "options.downtimeTuning", FERRY_INVALID, &o->tuning,
                              err);
    }
    o->stall.on = stalled != NULL;
    o->tuning.on = tuned != NULL;
    return rc;
}

int wire_options_read(const yyjson_val *json, struct wire_options *ret, struct ferry_error *err)
{
    struct wire_options o;

    wire_options_init(&o);
    int rc = yyjson_is_null((yyjson_val *)json) ? 0 : read_options(json, &o, err);
    if (rc == 0) {
        *ret = o;
    }
    return rc;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

yyjson_mut_val *wire_options_write(yyjson_mut_doc *doc, const struct wire_options *o)
{
    yyjson_mut_val *v = wire_fields_write(doc, plain, o);

    if (o->stall.on) {
        yyjson_mut_obj_add_val(doc, v, stall_name, wire_fields_write(doc, stall, &o->stall));
    }
    if (o->tuning.on) {
        yyjson_mut_obj_add_val(doc, v, tuning_name, wire_fields_write(doc, tuning, &o->tuning));
    }
    return v;
}

/* KubeVirt's names of what is passed on as it is. */
static void add_configuration(const yyjson_val *config, yyjson_mut_doc *doc, yyjson_mut_val *to)
{
    const char *const members[][2] = {
        {"/completionTimeoutPerGiB", plain[WIRE_OPTION_COMPLETION_TIMEOUT].name},
        {"/progressTimeout", plain[WIRE_OPTION_PROGRESS_TIMEOUT].name},
        {"/maxDowntimeMs", plain[WIRE_OPTION_MAX_DOWNTIME].name},
        {"/experimental/stallDetector", stall_name},
        {"/experimental/downtimeTuning", tuning_name},
    };

    for (size_t i = 0; i < FERRY_COUNT(members); i++) {
        yyjson_val *v = yyjson_ptr_get((yyjson_val *)config, members[i][0]);

        if (v && !yyjson_is_null(v)) {
            yyjson_mut_obj_add_val(doc, to, members[i][1], yyjson_val_mut_copy(doc, v));
        }
    }
}

char *wire_options_request(const struct wire_options *o, unsigned said, const yyjson_val *config)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *v = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, v);
    for (unsigned i = 0; i < WIRE_OPTION_COUNT; i++) {
        if (said & 1U << i) {
            wire_field_put(doc, v, &plain[i], o);
        }
    }
    add_configuration(config, doc, v);
    return json_doc_text(doc, 0, NULL);
}
