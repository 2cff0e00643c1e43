/* The tables themselves: every row of every kind takes a value of its type, refuses others by its
 * path, and leaves alone what is absent. New rows are tested by being there. */
#include "lib/unit.h"

#include "api/fields.h"
#include "api/json.h"
#include "base/str.h"

/* A value of each type, and one that is none. */
static const struct {
    const char *good, *bad;
} values[] = {
    [API_FIELD_STR] = {"\"text\"", "7"},
    [API_FIELD_BOOL] = {"true", "\"yes\""},
    [API_FIELD_INT] = {"7", "\"7\""},
    [API_FIELD_TIME] = {"\"2023-11-14T22:13:20Z\"", "\"today\""},
    [API_FIELD_QUANTITY] = {"\"3Gi\"", "\"3 apples\""},
    [API_FIELD_MAP] = {"{\"a\":\"b\"}", "{\"a\":1}"},
    [API_FIELD_STRINGS] = {"[\"a\"]", "[1]"},
    [API_FIELD_INTS] = {"[7]", "[\"a\"]"},
    [API_FIELD_PORTS] = {"{\"43117\":49152}", "{\"x\":1}"},
    [API_FIELD_LIST] = {"[{}]", "[1]"},
    [API_FIELD_STRUCT] = {"{}", "7"},
    [API_FIELD_PRESENT] = {NULL, NULL}, /* as another row of its path says, else {} */
    [API_FIELD_MARK] = {"{}", NULL},
    [API_FIELD_RAW] = {"{}", "7"},
};

/* {"a":{"b":VALUE}} for "a.b". */
static char *nested(const char *path, const char *value)
{
    struct ferry_buf b = {0};
    size_t depth = 0;

    for (const char *p = path;; depth++) {
        size_t n = strcspn(p, ".");

        ferry_buf_printf(&b, "{\"%.*s\":", (int)n, p);
        if (!p[n]) {
            break;
        }
        p += n + 1;
    }
    ferry_buf_puts(&b, value);
    for (size_t i = 0; i <= depth; i++) {
        ferry_buf_puts(&b, "}");
    }
    return ferry_buf_take(&b);
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i]) {
            return false;
        }
    }
    return true;
}

/* Type of the row that decides what a value at this path looks like. */
static enum api_field_type type_at(const struct api_table *t, const char *path)
{
    enum api_field_type type = API_FIELD_MARK;

    for (const struct api_field *f = t->rows; f->path; f++) {
        if (strcmp(f->path, path) == 0 && f->type != API_FIELD_PRESENT &&
            f->type != API_FIELD_RAW) {
            type = f->type;
        }
    }
    return type;
}

static size_t width(enum api_field_type type)
{
    switch (type) {
    case API_FIELD_BOOL:
    case API_FIELD_PRESENT:
        return sizeof(bool);
    case API_FIELD_MARK:
        return sizeof(int);
    default:
        return sizeof(int64_t); /* the first word says enough of the others */
    }
}

static unsigned rows;

static void try_row(struct api_table *t, const struct api_field *f, size_t size)
{
    enum api_field_type type = type_at(t, f->path);
    bool own = f->type == API_FIELD_PRESENT || f->type == API_FIELD_RAW;
    ferry_cleanup_free char *good = nested(f->path, values[own ? type : f->type].good);
    ferry_cleanup_free char *null = nested(f->path, "null");
    ferry_cleanup_free unsigned char *out = ferry_xcalloc(1, size);
    ferry_cleanup_free unsigned char *untouched = ferry_xcalloc(1, size);
    ferry_cleanup_free unsigned char *empty = ferry_xcalloc(1, size);
    struct api_arena arena = {0};
    struct ferry_error err = {0};
    api_cleanup_doc yyjson_doc *doc = yyjson_read(good, strlen(good), 0);
    api_cleanup_doc yyjson_doc *nothing = yyjson_read(null, strlen(null), 0);
    api_cleanup_doc yyjson_doc *bare = yyjson_read("{}", 2, 0);

    if (api_codec_decode(t, yyjson_doc_get_root(doc), out, &arena, &err) < 0) {
        fail_msg("%s: %s", good, err.msg);
    }
    /* a struct shows nothing of its own, a mark may stand for 0 */
    if (f->type != API_FIELD_STRUCT && !(f->type == API_FIELD_MARK && f->arg == 0) &&
        is_zero(out + f->offset, width(f->type))) {
        fail_msg("%s left nothing at %s", good, f->path);
    }
    assert_int_equal(api_codec_decode(t, yyjson_doc_get_root(nothing), untouched, &arena, &err), 0);
    assert_int_equal(api_codec_decode(t, yyjson_doc_get_root(bare), empty, &arena, &err), 0);
    assert_memory_equal(untouched + f->offset, empty + f->offset, width(f->type));
    if (!own && values[f->type].bad) {
        ferry_cleanup_free char *bad = nested(f->path, values[f->type].bad);
        api_cleanup_doc yyjson_doc *wrong = yyjson_read(bad, strlen(bad), 0);

        if (api_codec_decode(t, yyjson_doc_get_root(wrong), out, &arena, &err) != -FERRY_INVALID ||
            !ferry_str_starts(err.msg, f->path)) {
            fail_msg("%s: '%s'", bad, err.msg);
        }
        assert_true(api_codec_decode(t, yyjson_doc_get_root(wrong), out, &arena, NULL) < 0);
    }
    api_arena_done(&arena);
    rows++;
}

static void try_table(struct api_table *t, size_t size)
{
    for (const struct api_field *f = t->rows; f->path; f++) {
        try_row(t, f, size);
        if (f->type == API_FIELD_LIST) {
            try_table(f->table, f->item_size);
        } else if (f->type == API_FIELD_STRUCT) {
            try_table(f->table, size - f->offset);
        }
    }
}

static void every_row(void **state)
{
    const struct {
        struct api_table *table;
        size_t size;
    } tables[] = {
        {&api_meta_table, sizeof(struct api_meta)},
        {&api_namespace_table, sizeof(struct api_namespace)},
        {&api_node_table, sizeof(struct api_node)},
        {&api_pod_table, sizeof(struct api_pod)},
        {&api_quota_table, sizeof(struct api_quota)},
        {&api_event_table, sizeof(struct api_event)},
        {&api_config_map_table, sizeof(struct api_config_map)},
        {&api_secret_table, sizeof(struct api_secret)},
        {&api_lease_table, sizeof(struct api_lease)},
        {&api_claim_table, sizeof(struct api_claim)},
        {&api_volume_table, sizeof(struct api_volume)},
        {&api_storage_class_table, sizeof(struct api_storage_class)},
        {&api_storage_profile_table, sizeof(struct api_storage_profile)},
        {&api_network_table, sizeof(struct api_network)},
        {&api_vmi_table, sizeof(struct api_vmi)},
        {&api_vm_table, sizeof(struct api_vm)},
        {&api_migration_table, sizeof(struct api_migration)},
        {&api_policy_table, sizeof(struct api_policy)},
        {&api_kubevirt_table, sizeof(struct api_kubevirt)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        try_table(tables[i].table, tables[i].size);
    }
    assert_true(rows > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
