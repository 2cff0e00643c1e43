/* Theory of operation. An entry is one block of memory: the struct, `at`, the name, the text, and
 * behind it what is not in the text as it is meant. `at` says where things stand, counted from the
 * beginning of the text; 0 is nowhere, for there stands the object's own brace. What is meant as it
 * is written ends at a quotation mark and costs four bytes; what is written with escapes, and
 * booleans and numbers, are copied behind the text and end with a NUL. Positions instead of a
 * parsed document: that takes more memory than the text, which is needed anyway, for whoever lists,
 * watches or gets an object is sent the text. */
#include "apiserver/store/entry.h"

#include <stdlib.h>
#include <string.h>

#include "api/intern.h"
#include "api/json.h"
#include "api/selector.h"
#include "base/count.h"

/* ---- which fields -------------------------------------------------------------------------------
 */

enum { FIELDS_MAX = 12 };

/* Of these kinds the fields that are asked for all the time: first those that clients may select
 * by. */
static const struct field_row {
    const char *plural;
    size_t n_selectable;
    const char *paths[FIELDS_MAX];
} field_rows[] = {
    {"pods",
     6,
     {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
      "status.phase", "status.podIP"}},
    {"nodes", 1, {"spec.unschedulable"}},
    {"namespaces", 1, {"status.phase"}},
    {"secrets", 1, {"type"}},
    {"events",
     9,
     {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
      "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
      "involvedObject.fieldPath", "reason", "reportingComponent", "type", "lastTimestamp",
      "metadata.creationTimestamp"}},
    {"persistentvolumes",
     0,
     {"status.phase", "spec.claimRef.namespace", "spec.claimRef.name", "spec.claimRef.uid"}},
    {"persistentvolumeclaims", 0, {"status.phase"}},
    {"virtualmachineinstancemigrations", 0, {"spec.vmiName"}},
};

static const struct field_row *row_of(const struct api_resource *r)
{
    static const struct field_row none;

    for (size_t i = 0; i < FERRY_COUNT(field_rows); i++) {
        if (ferry_streq(r->plural, field_rows[i].plural)) {
            return &field_rows[i];
        }
    }
    return &none;
}

static size_t count_fields(const struct field_row *row)
{
    size_t n = 0;

    while (n < FIELDS_MAX && row->paths[n]) {
        n++;
    }
    return n;
}

/* Where it is in the row, or as many as there are. */
static size_t field_index(const struct field_row *row, const char *path)
{
    size_t n = count_fields(row), i = 0;

    while (i < n && strcmp(row->paths[i], path) != 0) {
        i++;
    }
    return i;
}

bool entry_field_is_selectable(const struct api_resource *r, const char *path)
{
    const struct field_row *row = row_of(r);

    return ferry_streq(path, "metadata.name") || ferry_streq(path, "metadata.namespace") ||
           field_index(row, path) < row->n_selectable;
}

/* ---- reading an object once ---------------------------------------------------------------------
 */

/* What `at` holds, in this order: UID, VERSION, fields, keys and values of labels, finalizers, uids
 * of owners and whether they block. */
enum { AT_UID, AT_VERSION, AT_FIELDS };

/* An entry that is being made. */
struct draft {
    const char *json;
    size_t len;
    const char *copy;       /* of the text, in which it was parsed */
    struct ferry_buf extra; /* what goes behind the text */
    uint32_t *at;
    size_t n, n_fields, n_labels, n_finalizers, n_owners;
    bool ending;
};

static void draft_done(struct draft *d)
{
    free(d->at);
    ferry_buf_done(&d->extra);
}

/* It stands in the text as it is meant. */
static bool is_in_text(const struct draft *d, struct ferry_span s)
{
    size_t from = (size_t)((uintptr_t)s.at - (uintptr_t)d->copy);

    return from < d->len && from + s.len < d->len && d->json[from + s.len] == '"' &&
           memcmp(d->json + from, s.at, s.len) == 0;
}

static void add(struct draft *d, struct ferry_span s)
{
    uint32_t at = 0;

    if (s.at && is_in_text(d, s)) {
        at = (uint32_t)(s.at - d->copy);
    } else if (s.at) {
        at = (uint32_t)(d->len + 1 + d->extra.len);
        ferry_buf_append(&d->extra, s.at, s.len);
        ferry_buf_append(&d->extra, "", 1);
    }
    d->at[d->n++] = at;
}

static void add_string(struct draft *d, yyjson_val *v)
{
    add(d, (struct ferry_span){.at = yyjson_get_str(v), .len = yyjson_get_len(v)});
}

static void add_fields(struct draft *d, const struct field_row *row, yyjson_val *root)
{
    for (size_t i = 0; i < d->n_fields; i++) {
        char number[API_SELECTOR_NUMBER];
        struct ferry_span s = api_selector_field(root, row->paths[i], number);

        add(d, s.len ? s : (struct ferry_span){0});
    }
}

static void add_labels(struct draft *d, yyjson_val *labels)
{
    yyjson_val *key, *v;
    size_t i, max;

    yyjson_obj_foreach(labels, i, max, key, v)
    {
        add_string(d, key);
        add_string(d, v);
    }
}

static void add_finalizers(struct draft *d, yyjson_val *finalizers)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(finalizers, i, max, v)
    {
        add_string(d, v);
    }
}

static void add_owners(struct draft *d, yyjson_val *owners)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(owners, i, max, v)
    {
        add_string(d, yyjson_obj_get(v, "uid"));
        d->at[d->n++] = yyjson_is_true(yyjson_obj_get(v, "blockOwnerDeletion"));
    }
}

static void read_root(struct draft *d, const struct api_resource *resource, yyjson_val *root)
{
    yyjson_val *meta = yyjson_obj_get(root, "metadata");
    yyjson_val *labels = yyjson_obj_get(meta, "labels");
    yyjson_val *finalizers = yyjson_obj_get(meta, "finalizers");
    yyjson_val *owners = yyjson_obj_get(meta, "ownerReferences");
    const struct field_row *row = row_of(resource);

    d->n_fields = count_fields(row);
    d->n_labels = yyjson_obj_size(labels);
    d->n_finalizers = yyjson_arr_size(finalizers);
    d->n_owners = yyjson_arr_size(owners);
    d->ending = yyjson_is_str(yyjson_obj_get(meta, "deletionTimestamp"));
    d->at =
        ferry_xcalloc(AT_FIELDS + d->n_fields + 2 * d->n_labels + d->n_finalizers + 2 * d->n_owners,
                      sizeof(*d->at));
    add_string(d, yyjson_obj_get(meta, "uid"));
    add_string(d, yyjson_obj_get(meta, "resourceVersion"));
    add_fields(d, row, root);
    add_labels(d, labels);
    add_finalizers(d, finalizers);
    add_owners(d, owners);
}

/* What is no JSON has nothing of all that. */
static void read_text(struct draft *d, const struct api_resource *resource)
{
    ferry_cleanup_free char *copy = ferry_xcalloc(1, d->len + YYJSON_PADDING_SIZE);

    memcpy(copy, d->json, d->len);
    api_cleanup_doc yyjson_doc *doc =
        yyjson_read_opts(copy, d->len, YYJSON_READ_INSITU, NULL, NULL);
    d->copy = copy;
    read_root(d, resource, yyjson_doc_get_root(doc));
}

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Where everybody's copy of it is; NULL: it has to have one of its own. */
static const char *shared_copy(const char *ns)
{
    return *ns ? api_intern(ns, strlen(ns)) : "";
}

static const char *put(char **to, const void *from, size_t n)
{
    char *here = *to;

    if (n) {
        memcpy(here, from, n);
    }
    *to += n;
    return here;
}

struct entry *entry_new(const struct api_resource *resource, uint64_t version, const char *ns,
                        const char *name, const char *json, size_t json_len)
{
    ferry_cleanup(draft_done) struct draft d = {.json = json, .len = json_len};
    const char *shared_ns = shared_copy(ns);

    read_text(&d, resource);
    size_t at = d.n * sizeof(*d.at), n_ns = shared_ns ? 0 : strlen(ns) + 1;
    size_t n_name = strlen(name) + 1;
    struct entry *e =
        ferry_xcalloc(1, sizeof(*e) + at + n_ns + n_name + json_len + 1 + d.extra.len);
    char *rest = (char *)e->at;

    *e = (struct entry){.resource = resource,
                        .version = version,
                        .json_len = (uint32_t)json_len,
                        .n_labels = (uint32_t)d.n_labels,
                        .n_finalizers = (uint32_t)d.n_finalizers,
                        .n_owners = (uint32_t)d.n_owners,
                        .n_fields = (uint16_t)d.n_fields,
                        .ending = d.ending};
    atomic_init(&e->refs, 1);
    put(&rest, d.at, at);
    e->ns = put(&rest, ns, n_ns);
    e->ns = shared_ns ? shared_ns : e->ns;
    e->name = put(&rest, name, n_name);
    e->json = put(&rest, json, json_len);
    rest++; /* the NUL */
    put(&rest, d.extra.data, d.extra.len);
    return e;
}

struct entry *entry_ref(struct entry *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void entry_unref(struct entry *e)
{
    if (e && atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1) {
        free(e);
    }
}

void entry_list_done(struct entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        entry_unref(list->items[i]);
    }
    free(list->items);
    *list = (struct entry_list){0};
}

/* ---- what is known without parsing --------------------------------------------------------------
 */

static struct ferry_span span_at(const struct entry *e, uint32_t at)
{
    const char *s = e->json + at;

    if (!at) {
        return (struct ferry_span){0};
    }
    return (struct ferry_span){.at = s, .len = at > e->json_len ? strlen(s) : strcspn(s, "\"")};
}

static const uint32_t *labels_at(const struct entry *e)
{
    return e->at + AT_FIELDS + e->n_fields;
}

static const uint32_t *finalizers_at(const struct entry *e)
{
    return labels_at(e) + 2 * (size_t)e->n_labels;
}

static const uint32_t *owners_at(const struct entry *e)
{
    return finalizers_at(e) + e->n_finalizers;
}

struct ferry_span entry_uid(const struct entry *e)
{
    return span_at(e, e->at[AT_UID]);
}

bool entry_is_same(const struct entry *a, const struct entry *b)
{
    return ferry_span_eq(entry_uid(a), entry_uid(b));
}

struct ferry_span entry_label(const struct entry *e, const char *key)
{
    const uint32_t *at = labels_at(e);

    for (size_t i = 0; i < e->n_labels; i++) {
        if (ferry_span_is(span_at(e, at[2 * i]), key)) {
            return span_at(e, at[2 * i + 1]);
        }
    }
    return (struct ferry_span){0};
}

bool entry_has_finalizer(const struct entry *e, const char *name)
{
    const uint32_t *at = finalizers_at(e);

    for (size_t i = 0; i < e->n_finalizers; i++) {
        if (ferry_span_is(span_at(e, at[i]), name)) {
            return true;
        }
    }
    return false;
}

struct entry_owner entry_owner(const struct entry *e, size_t i)
{
    const uint32_t *at = owners_at(e) + 2 * i;

    return (struct entry_owner){.uid = span_at(e, at[0]), .blocks = at[1]};
}

bool entry_is_owned_by(const struct entry *e, struct ferry_span uid, bool *ret_blocks)
{
    for (size_t i = 0; uid.at && i < e->n_owners; i++) {
        struct entry_owner o = entry_owner(e, i);

        if (ferry_span_eq(o.uid, uid)) {
            *ret_blocks = o.blocks;
            return true;
        }
    }
    return false;
}

struct ferry_span entry_field(const struct entry *e, const char *path)
{
    size_t i = field_index(row_of(e->resource), path);

    if (ferry_streq(path, "metadata.name")) {
        return ferry_span_of(e->name);
    }
    if (ferry_streq(path, "metadata.namespace")) {
        return ferry_span_of(e->ns);
    }
    return i < e->n_fields ? span_at(e, e->at[AT_FIELDS + i]) : (struct ferry_span){0};
}

struct ferry_span entry_about(const struct entry *e)
{
    return e->resource->kind == API_KIND_MIGRATION ? span_at(e, e->at[AT_FIELDS])
                                                   : (struct ferry_span){0};
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

yyjson_doc *entry_doc(const struct entry *e)
{
    return e ? yyjson_read(e->json, e->json_len, 0) : NULL;
}

int entry_object(const struct entry *e, enum api_kind kind, struct api_object **ret,
                 struct ferry_error *err)
{
    return api_object_parse(kind, e->json, e->json_len, ret, err);
}

void entry_put_as_of(const struct entry *e, uint64_t version, struct ferry_buf *out)
{
    struct ferry_span old = span_at(e, e->at[AT_VERSION]);
    size_t before = old.at ? (size_t)(old.at - e->json) : e->json_len;

    ferry_buf_append(out, e->json, before);
    if (old.at) {
        ferry_buf_printf(out, "%llu", (unsigned long long)version);
        ferry_buf_append(out, old.at + old.len, e->json_len - before - old.len);
    }
}
