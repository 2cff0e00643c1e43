/* Theory of operation.
 *
 * An object is one block of memory: holder, decoded struct, JSON values, strings, and room for what
 * decoding allocates. The values are copied out of the document they were parsed in, a list or a
 * watch event, so that this can go: yyjson keeps the values of a subtree side by side, and a
 * container says by a relative offset where it ends, so they can be copied as they are, and only
 * strings need a new pointer: to a copy, or to a word that all objects share (words.h). */
#include "api/object.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/arena.h"
#include "api/decode.h"
#include "api/intern.h"
#include "api/json.h"
#include "base/str.h"

struct holder {
    atomic_uint refs;
    struct api_arena arena;
    struct api_object object; /* last: what its kind does not use of `u` is not allocated */
};

/* Decoded forms of what lists and maps hold take about so much per JSON value; more is no error. */
enum { ARENA_PER_VALUE = 4 };

static struct holder *holder_of(struct api_object *o)
{
    return (struct holder *)((char *)o - offsetof(struct holder, object));
}

static void holder_free(struct holder *h)
{
    api_arena_done(&h->arena);
    free(h);
}

/* What the strings take that the object has for itself. */
static size_t string_room(const yyjson_val *v, size_t n)
{
    size_t room = 0;

    for (size_t i = 0; i < n; i++) {
        if (unsafe_yyjson_is_str((yyjson_val *)&v[i])) {
            size_t len = unsafe_yyjson_get_len((yyjson_val *)&v[i]);

            room += api_intern(v[i].uni.str, len) ? 0 : len + 1;
        }
    }
    return room;
}

/* Copies the values of a subtree and their strings. */
static void copy_values(const yyjson_val *from, size_t n, yyjson_val *to, char *strings)
{
    memcpy(to, from, n * sizeof(*to));
    for (size_t i = 0; i < n; i++) {
        if (unsafe_yyjson_is_str(&to[i])) {
            size_t len = unsafe_yyjson_get_len(&to[i]);
            const char *word = api_intern(to[i].uni.str, len);

            if (word) {
                to[i].uni.str = word;
                continue;
            }
            memcpy(strings, to[i].uni.str, len);
            strings[len] = '\0';
            to[i].uni.str = strings;
            strings += len + 1;
        }
    }
}

static size_t aligned(size_t n)
{
    return (n + alignof(yyjson_val) - 1) / alignof(yyjson_val) * alignof(yyjson_val);
}

int api_object_from_val(enum api_kind kind, const yyjson_val *val, struct api_object **ret,
                        struct ferry_error *err)
{
    size_t strings;

    if (!val) {
        return ferry_fail(err, FERRY_INVALID, "no object");
    }
    if (!yyjson_is_obj((yyjson_val *)val)) {
        return ferry_fail(err, FERRY_INVALID, "must be a JSON object");
    }
    int rc = api_json_measure(val, API_JSON_DEPTH, &strings, err);
    if (rc < 0) {
        return rc;
    }
    size_t n = (size_t)(unsafe_yyjson_get_next((yyjson_val *)val) - val);
    strings = string_room(val, n);
    size_t head = aligned(offsetof(struct holder, object.u) + api_kind_size(kind));
    size_t values = n * sizeof(*val), room = n * ARENA_PER_VALUE;
    char *block = malloc(head + values + room + strings);
    if (!block) {
        abort(); /* as in base/str.h */
    }
    struct holder *h = (struct holder *)(void *)memset(block, 0, head);
    yyjson_val *root = (yyjson_val *)(void *)(block + head);

    copy_values(val, n, root, block + head + values + room);
    api_arena_init(&h->arena, block + head + values, room);
    atomic_init(&h->refs, 1);
    h->object.kind = kind;
    h->object.root = root;
    h->object.meta = &h->object.u.bare;
    rc = api_kind_decode(kind, root, &h->arena, &h->object, err);
    if (rc < 0) {
        holder_free(h);
        return rc;
    }
    *ret = &h->object;
    return 0;
}

int api_object_parse(enum api_kind kind, const char *json, size_t len, struct api_object **ret,
                     struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_read(json, len, &doc, err);

    return rc < 0 ? rc : api_object_from_val(kind, yyjson_doc_get_root(doc), ret, err);
}

struct api_object *api_object_ref(struct api_object *o)
{
    atomic_fetch_add_explicit(&holder_of(o)->refs, 1, memory_order_relaxed);
    return o;
}

struct api_object *api_object_unref(struct api_object *o)
{
    if (o && atomic_fetch_sub_explicit(&holder_of(o)->refs, 1, memory_order_acq_rel) == 1) {
        holder_free(holder_of(o));
    }
    return NULL;
}
