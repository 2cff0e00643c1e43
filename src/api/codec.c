/* Theory of operation.
 *
 * A table names fields by their path. Before its first use it is arranged as a plan: a tree of
 * objects, in each of which a key is found by its hash. Decoding then walks the document once, key
 * by key, and does per key what the rows with that path say: the cost is that of the document, not
 * of the table, and most fields of most objects are absent. */
#include "api/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/kinds.h"
#include "api/object.h"
#include "base/str.h"

/* ---- plans -----------------------------------------------------------------------------------
 */

struct level;

struct entry { /* a key of an object */
    const char *key;
    size_t len;
    uint32_t hash;
    const char *path; /* of the first row with this key on its way, and its length up to here */
    size_t path_len;
    const struct api_field **rows; /* those that end here */
    size_t n_rows;
    struct level *below; /* of those that go on; or NULL */
};

struct level { /* an object */
    struct entry *entries;
    size_t n;
    uint16_t *slots; /* open addressing: number of the entry + 1, or 0 */
    uint32_t mask;
};

struct api_plan {
    struct level top;
    const struct api_field **defaults; /* INT rows whose default is not 0 */
    size_t n_defaults;
};

static uint64_t load(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return v;
}

/* Of the ends of the key and its length: enough to tell the few keys of an object apart. */
static uint32_t hash_of(const char *key, size_t len)
{
    uint64_t h = len;

    if (len >= 8) {
        h ^= load(key, 8) ^ load(key + len - 8, 8) << 7;
    } else if (len >= 4) {
        h ^= load(key, 4) ^ load(key + len - 4, 4) << 29;
    } else if (len > 0) {
        h ^= load(key, 1) << 8 ^ load(key + len / 2, 1) << 16 ^ load(key + len - 1, 1) << 24;
    }
    return (uint32_t)((h * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

static struct entry *entry_of(struct level *l, const char *path, size_t from, size_t len)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->entries[i].len == len && memcmp(l->entries[i].key, path + from, len) == 0) {
            return &l->entries[i];
        }
    }
    l->entries = ferry_xrealloc(l->entries, l->n + 1, sizeof(*l->entries));
    l->entries[l->n] = (struct entry){.key = path + from,
                                      .len = len,
                                      .hash = hash_of(path + from, len),
                                      .path = path,
                                      .path_len = from + len};
    return &l->entries[l->n++];
}

static void add_row(struct level *l, const struct api_field *f)
{
    size_t from = 0;

    for (;;) {
        size_t len = strcspn(f->path + from, ".");
        struct entry *e = entry_of(l, f->path, from, len);

        if (!f->path[from + len]) {
            e->rows = ferry_xrealloc(e->rows, e->n_rows + 1, sizeof(*e->rows));
            e->rows[e->n_rows++] = f;
            return;
        }
        if (!e->below) {
            e->below = ferry_xcalloc(1, sizeof(*e->below));
        }
        l = e->below;
        from += len + 1;
    }
}

static void arrange(struct level *l)
{
    uint32_t size = 4;

    while (size < l->n * 3) {
        size *= 2;
    }
    l->mask = size - 1;
    l->slots = ferry_xcalloc(size, sizeof(*l->slots));
    for (size_t i = 0; i < l->n; i++) {
        uint32_t at = l->entries[i].hash & l->mask;

        while (l->slots[at]) {
            at = (at + 1) & l->mask;
        }
        l->slots[at] = (uint16_t)(i + 1);
        if (l->entries[i].below) {
            arrange(l->entries[i].below);
        }
    }
}

static void level_done(struct level *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->entries[i].below) {
            level_done(l->entries[i].below);
            free(l->entries[i].below);
        }
        free(l->entries[i].rows);
    }
    free(l->entries);
    free(l->slots);
}

static const struct api_plan *plan_of(struct api_table *table)
{
    struct api_plan *plan = atomic_load_explicit(&table->plan, memory_order_acquire);
    struct api_plan *none = NULL;

    if (plan) {
        return plan;
    }
    plan = ferry_xcalloc(1, sizeof(*plan));
    for (const struct api_field *f = table->rows; f->path; f++) {
        add_row(&plan->top, f);
        if (f->type == API_FIELD_INT && f->arg != 0) {
            plan->defaults =
                ferry_xrealloc(plan->defaults, plan->n_defaults + 1, sizeof(*plan->defaults));
            plan->defaults[plan->n_defaults++] = f;
        }
    }
    arrange(&plan->top);
    if (!atomic_compare_exchange_strong_explicit(&table->plan, &none, plan, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        level_done(&plan->top); /* another thread was first */
        free(plan->defaults);
        free(plan);
        plan = none;
    }
    return plan;
}

static const struct entry *find(const struct level *l, const char *key, size_t len)
{
    uint32_t hash = hash_of(key, len);

    for (uint32_t at = hash & l->mask; l->slots[at]; at = (at + 1) & l->mask) {
        const struct entry *e = &l->entries[l->slots[at] - 1];

        if (e->hash == hash && e->len == len && memcmp(e->key, key, len) == 0) {
            return e;
        }
    }
    return NULL;
}

/* ---- fields ----------------------------------------------------------------------------------
 */

static void *at(void *out, size_t offset)
{
    return (char *)out + offset;
}

static int wrong(const struct api_field *f, const char *what, struct ferry_error *err)
{
    ferry_fail(err, FERRY_INVALID, "must be %s", what);
    ferry_wrap_about(err, "%s", f->path);
    return -FERRY_INVALID;
}

/* The same of a member of an object, or of an item of a list. */
static int wrong_member(const struct api_field *f, const char *key, const char *what,
                        struct ferry_error *err)
{
    ferry_fail(err, FERRY_INVALID, "must be %s", what);
    ferry_wrap_about(err, "%s[%.200s]", f->path, key);
    return -FERRY_INVALID;
}

static int wrong_item(const struct api_field *f, size_t i, const char *what,
                      struct ferry_error *err)
{
    ferry_fail(err, FERRY_INVALID, "must be %s", what);
    ferry_wrap_about(err, "%s[%zu]", f->path, i);
    return -FERRY_INVALID;
}

static int get_string(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_str(v)) {
        return wrong(f, "a string", err);
    }
    *(const char **)at(out, f->offset) = yyjson_get_str(v);
    return 0;
}

static int get_bool(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_bool(v)) {
        return wrong(f, "true or false", err);
    }
    *(bool *)at(out, f->offset) = yyjson_get_bool(v);
    return 0;
}

static int get_int(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    return api_json_get_int(v, at(out, f->offset)) ? 0 : wrong(f, "a whole number", err);
}

static int get_time(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_str(v)) {
        return wrong(f, "a time", err);
    }
    if (api_time_parse(yyjson_get_str(v), at(out, f->offset), err) < 0) {
        return ferry_wrap_about(err, "%s", f->path);
    }
    return 0;
}

static int get_quantity(const struct api_field *f, yyjson_val *v, void *out,
                        struct ferry_error *err)
{
    if (api_quantity_val(v, f->arg, at(out, f->offset), err) < 0) {
        return ferry_wrap_about(err, "%s", f->path);
    }
    return 0;
}

static int get_map(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                   struct ferry_error *err)
{
    struct api_map *map = at(out, f->offset);
    yyjson_val *key, *val;
    size_t i, max;

    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object of strings", err);
    }
    struct api_pair *items = api_arena_alloc(arena, yyjson_obj_size(v), sizeof(*items));
    yyjson_obj_foreach(v, i, max, key, val)
    {
        if (!yyjson_is_str(val)) {
            return wrong_member(f, yyjson_get_str(key), "a string", err);
        }
        items[i] = (struct api_pair){.key = yyjson_get_str(key), .value = yyjson_get_str(val)};
    }
    *map = (struct api_map){.items = items, .n = yyjson_obj_size(v)};
    return 0;
}

static int get_strings(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                       struct ferry_error *err)
{
    struct api_strings *list = at(out, f->offset);
    yyjson_val *val;
    size_t i, max;

    if (!yyjson_is_arr(v)) {
        return wrong(f, "a list of strings", err);
    }
    const char **items = api_arena_alloc(arena, yyjson_arr_size(v), sizeof(*items));
    yyjson_arr_foreach(v, i, max, val)
    {
        if (!yyjson_is_str(val)) {
            return wrong_item(f, i, "a string", err);
        }
        items[i] = yyjson_get_str(val);
    }
    *list = (struct api_strings){.items = items, .n = yyjson_arr_size(v)};
    return 0;
}

/* {"43117": 49152, ...}: TCP port to logical channel. */
static int get_ports(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                     struct ferry_error *err)
{
    yyjson_val *key, *val;
    size_t i, max;

    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object of port numbers", err);
    }
    struct api_port *items = api_arena_alloc(arena, yyjson_obj_size(v), sizeof(*items));
    yyjson_obj_foreach(v, i, max, key, val)
    {
        const char *name = yyjson_get_str(key);
        int64_t logical;
        long long port;

        if (ferry_parse_int(name, 1, 65535, &port, NULL) < 0) {
            return wrong_member(f, name, "a port number", err);
        }
        if (!api_json_get_int(val, &logical) || logical < 0 || logical > 65535) {
            return wrong_member(f, name, "a number from 0 to 65535", err);
        }
        items[i] = (struct api_port){.port = (int)port, .logical = (int)logical};
    }
    *(const struct api_port **)at(out, f->offset) = items;
    *(size_t *)at(out, f->count_offset) = yyjson_obj_size(v);
    return 0;
}

static int get_list(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                    struct ferry_error *err)
{
    yyjson_val *val;
    size_t i, max;

    if (!yyjson_is_arr(v)) {
        return wrong(f, "a list", err);
    }
    char *items = api_arena_alloc(arena, yyjson_arr_size(v), f->item_size);
    yyjson_arr_foreach(v, i, max, val)
    {
        if (!yyjson_is_obj(val)) {
            return wrong_item(f, i, "an object", err);
        }
        if (api_codec_decode(f->table, val, items + i * f->item_size, arena, err) < 0) {
            ferry_prefix(err, "%s[%zu].", f->path, i);
            return -FERRY_INVALID;
        }
    }
    *(void **)at(out, f->offset) = items;
    *(size_t *)at(out, f->count_offset) = yyjson_arr_size(v);
    return 0;
}

static int get_ints(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                    struct ferry_error *err)
{
    struct api_ints *list = at(out, f->offset);
    yyjson_val *val;
    size_t i, max;

    if (!yyjson_is_arr(v)) {
        return wrong(f, "a list of whole numbers", err);
    }
    int64_t *items = api_arena_alloc(arena, yyjson_arr_size(v), sizeof(*items));
    yyjson_arr_foreach(v, i, max, val)
    {
        if (!api_json_get_int(val, &items[i])) {
            return wrong_item(f, i, "a whole number", err);
        }
    }
    *list = (struct api_ints){.items = items, .n = yyjson_arr_size(v)};
    return 0;
}

static int get_struct(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                      struct ferry_error *err)
{
    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object", err);
    }
    if (api_codec_decode(f->table, v, at(out, f->offset), arena, err) < 0) {
        ferry_prefix(err, "%s.", f->path);
        return -FERRY_INVALID;
    }
    return 0;
}

static int decode_field(const struct api_field *f, yyjson_val *v, void *out,
                        struct api_arena *arena, struct ferry_error *err)
{
    switch (f->type) {
    case API_FIELD_STR:
        return get_string(f, v, out, err);
    case API_FIELD_BOOL:
        return get_bool(f, v, out, err);
    case API_FIELD_INT:
        return get_int(f, v, out, err);
    case API_FIELD_TIME:
        return get_time(f, v, out, err);
    case API_FIELD_QUANTITY:
        return get_quantity(f, v, out, err);
    case API_FIELD_MAP:
        return get_map(f, v, out, arena, err);
    case API_FIELD_STRINGS:
        return get_strings(f, v, out, arena, err);
    case API_FIELD_INTS:
        return get_ints(f, v, out, arena, err);
    case API_FIELD_PORTS:
        return get_ports(f, v, out, arena, err);
    case API_FIELD_LIST:
        return get_list(f, v, out, arena, err);
    case API_FIELD_STRUCT:
        return get_struct(f, v, out, arena, err);
    case API_FIELD_PRESENT:
        *(bool *)at(out, f->offset) = true;
        return 0;
    case API_FIELD_MARK:
        *(int *)at(out, f->offset) = (int)f->arg;
        return 0;
    case API_FIELD_RAW:
        if (!yyjson_is_ctn(v)) {
            return wrong(f, "an object or a list", err);
        }
        *(const yyjson_val **)at(out, f->offset) = v;
        return 0;
    }
    return ferry_fail(err, FERRY_FATAL, "%s: unknown field type", f->path);
}

/* ---- objects ---------------------------------------------------------------------------------
 */

static int decode_level(const struct level *l, yyjson_val *v, void *out, struct api_arena *arena,
                        struct ferry_error *err)
{
    yyjson_val *key, *val;
    size_t i, max;

    yyjson_obj_foreach(v, i, max, key, val)
    {
        const struct entry *e = find(l, yyjson_get_str(key), yyjson_get_len(key));

        if (!e || yyjson_is_null(val)) {
            continue;
        }
        for (size_t r = 0; r < e->n_rows; r++) {
            int rc = decode_field(e->rows[r], val, out, arena, err);

            if (rc < 0) {
                return rc;
            }
        }
        if (e->below) {
            if (!yyjson_is_obj(val)) {
                ferry_fail(err, FERRY_INVALID, "must be an object");
                ferry_wrap_about(err, "%.*s", (int)e->path_len, e->path);
                return -FERRY_INVALID;
            }
            int rc = decode_level(e->below, val, out, arena, err);

            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

int api_codec_decode(struct api_table *table, const yyjson_val *v, void *out,
                     struct api_arena *arena, struct ferry_error *err)
{
    const struct api_plan *plan = plan_of(table);

    for (size_t i = 0; i < plan->n_defaults; i++) {
        *(int64_t *)at(out, plan->defaults[i]->offset) = plan->defaults[i]->arg;
    }
    int rc = decode_level(&plan->top, (yyjson_val *)v, out, arena, err);
    return rc == 0 && table->finish ? table->finish(v, out, err) : rc;
}
