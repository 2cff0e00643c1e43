#include "api/object.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "api/arena.h"
#include "api/decode.h"
#include "api/json.h"
#include "base/str.h"

struct holder {
    struct api_object object; /* first: callers hold a pointer to it */
    atomic_uint refs;
    yyjson_doc *doc;
    struct api_arena arena;
};

static void holder_free(struct holder *h)
{
    api_arena_done(&h->arena);
    yyjson_doc_free(h->doc);
    free(h);
}

static int object_from_doc(enum api_kind kind, yyjson_doc *doc_take, struct api_object **ret,
                           struct ferry_error *err)
{
    struct holder *h = ferry_xcalloc(1, sizeof(*h));
    int rc;

    h->doc = doc_take;
    h->object.kind = kind;
    h->object.root = yyjson_doc_get_root(doc_take);
    h->object.meta = &h->object.u.bare;
    atomic_init(&h->refs, 1);
    if (!yyjson_is_obj((yyjson_val *)h->object.root)) {
        rc = ferry_fail(err, FERRY_INVALID, "must be a JSON object");
    } else {
        rc = api_kind_decode(kind, h->object.root, &h->arena, &h->object, err);
    }
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
    yyjson_doc *doc;
    int rc = api_json_parse_depth(json, len, API_JSON_DEPTH, &doc, err);

    return rc < 0 ? rc : object_from_doc(kind, doc, ret, err);
}

int api_object_from_val(enum api_kind kind, const yyjson_val *val, struct api_object **ret,
                        struct ferry_error *err)
{
    if (!val) {
        return ferry_fail(err, FERRY_INVALID, "no object");
    }
    int rc = api_json_check(val, API_JSON_DEPTH, err);
    if (rc < 0) {
        return rc;
    }
    api_cleanup_mut_doc yyjson_mut_doc *scratch = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *copy = scratch ? yyjson_val_mut_copy(scratch, (yyjson_val *)val) : NULL;
    yyjson_doc *doc = copy ? yyjson_mut_val_imut_copy(copy, NULL) : NULL;
    if (!doc) {
        return ferry_fail(err, FERRY_FATAL, "out of memory");
    }
    return object_from_doc(kind, doc, ret, err);
}

struct api_object *api_object_ref(struct api_object *o)
{
    atomic_fetch_add_explicit(&((struct holder *)o)->refs, 1, memory_order_relaxed);
    return o;
}

struct api_object *api_object_unref(struct api_object *o)
{
    struct holder *h = (struct holder *)o;

    if (h && atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1) {
        holder_free(h);
    }
    return NULL;
}
