/* The body is the magic "k8s\0" and a runtime.Unknown, which names apiVersion and kind and carries
 * the object's own message. Messages are decoded by tables: field number, JSON name, type. */
#include "apiserver/message/protobuf.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

#include "api/json.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"
#include "json/keys.h"

enum { MAX_DEPTH = 8, MAX_BYTES = 3 << 20 };
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum type {
    STRING,
    INTEGER,
    BOOLEAN,
    MESSAGE,
    STRINGS,      /* repeated */
    MESSAGES,     /* repeated */
    STRING_MAP,   /* map<string, string> */
    BYTES_MAP,    /* map<string, bytes>, base64 in JSON */
    QUANTITY_MAP, /* map<string, Quantity>; a Quantity is a message with its text as field 1 */
};

static bool is_map(enum type type)
{
    return type == STRING_MAP || type == BYTES_MAP || type == QUANTITY_MAP;
}

struct field {
    const char *name; /* NULL ends a table */
    const struct field *table;
    unsigned number;
    enum type type;
};

static const struct field owner_fields[] = {
    {"kind", NULL, 1, STRING},
    {"name", NULL, 3, STRING},
    {"uid", NULL, 4, STRING},
    {"apiVersion", NULL, 5, STRING},
    {"controller", NULL, 6, BOOLEAN},
    {"blockOwnerDeletion", NULL, 7, BOOLEAN},
    {.name = NULL},
};
/* Times and managed fields are the server's business. */
static const struct field meta_fields[] = {
    {"name", NULL, 1, STRING},
    {"generateName", NULL, 2, STRING},
    {"namespace", NULL, 3, STRING},
    {"uid", NULL, 5, STRING},
    {"resourceVersion", NULL, 6, STRING},
    {"labels", NULL, 11, STRING_MAP},
    {"annotations", NULL, 12, STRING_MAP},
    {"ownerReferences", owner_fields, 13, MESSAGES},
    {"finalizers", NULL, 14, STRINGS},
    {.name = NULL},
};
static const struct field namespace_fields[] = {{"metadata", meta_fields, 1, MESSAGE},
                                                {.name = NULL}};
static const struct field configmap_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"data", NULL, 2, STRING_MAP},
    {"binaryData", NULL, 3, BYTES_MAP},
    {"immutable", NULL, 4, BOOLEAN},
    {.name = NULL},
};
static const struct field secret_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"data", NULL, 2, BYTES_MAP},
    {"type", NULL, 3, STRING},
    {"stringData", NULL, 4, STRING_MAP},
    {"immutable", NULL, 5, BOOLEAN},
    {.name = NULL},
};
static const struct field precondition_fields[] = {
    {"uid", NULL, 1, STRING}, {"resourceVersion", NULL, 2, STRING}, {.name = NULL}};
static const struct field delete_fields[] = {
    {"gracePeriodSeconds", NULL, 1, INTEGER},
    {"preconditions", precondition_fields, 2, MESSAGE},
    {"propagationPolicy", NULL, 4, STRING},
    {"dryRun", NULL, 5, STRINGS},
    {.name = NULL},
};
static const struct field quota_spec_fields[] = {
    {"hard", NULL, 1, QUANTITY_MAP}, {"scopes", NULL, 2, STRINGS}, {.name = NULL}};
static const struct field quota_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"spec", quota_spec_fields, 2, MESSAGE},
    {.name = NULL},
};
static const struct field eviction_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"deleteOptions", delete_fields, 2, MESSAGE},
    {.name = NULL},
};
static const struct field resource_fields[] = {
    {"namespace", NULL, 1, STRING}, {"verb", NULL, 2, STRING},
    {"group", NULL, 3, STRING},     {"version", NULL, 4, STRING},
    {"resource", NULL, 5, STRING},  {"subresource", NULL, 6, STRING},
    {"name", NULL, 7, STRING},      {.name = NULL},
};
static const struct field path_fields[] = {
    {"path", NULL, 1, STRING}, {"verb", NULL, 2, STRING}, {.name = NULL}};
static const struct field access_spec_fields[] = {
    {"resourceAttributes", resource_fields, 1, MESSAGE},
    {"nonResourceAttributes", path_fields, 2, MESSAGE},
    {.name = NULL},
};
static const struct field access_review_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"spec", access_spec_fields, 2, MESSAGE},
    {.name = NULL},
};
static const struct field subject_review_spec_fields[] = {
    {"resourceAttributes", resource_fields, 1, MESSAGE},
    {"nonResourceAttributes", path_fields, 2, MESSAGE},
    {"user", NULL, 3, STRING},
    {"groups", NULL, 4, STRINGS},
    {"uid", NULL, 6, STRING},
    {.name = NULL},
};
static const struct field subject_review_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"spec", subject_review_spec_fields, 2, MESSAGE},
    {.name = NULL},
};
static const struct field policy_rule_fields[] = {
    {"verbs", NULL, 1, STRINGS},           {"apiGroups", NULL, 2, STRINGS},
    {"resources", NULL, 3, STRINGS},       {"resourceNames", NULL, 4, STRINGS},
    {"nonResourceURLs", NULL, 5, STRINGS}, {.name = NULL},
};
static const struct field requirement_fields[] = {{"key", NULL, 1, STRING},
                                                  {"operator", NULL, 2, STRING},
                                                  {"values", NULL, 3, STRINGS},
                                                  {.name = NULL}};
static const struct field selector_fields[] = {
    {"matchLabels", NULL, 1, STRING_MAP},
    {"matchExpressions", requirement_fields, 2, MESSAGES},
    {.name = NULL},
};
static const struct field aggregation_fields[] = {
    {"clusterRoleSelectors", selector_fields, 1, MESSAGES}, {.name = NULL}};
static const struct field role_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"rules", policy_rule_fields, 2, MESSAGES},
    {"aggregationRule", aggregation_fields, 3, MESSAGE}, /* of a ClusterRole */
    {.name = NULL},
};
static const struct field subject_fields[] = {
    {"kind", NULL, 1, STRING},
    {"apiGroup", NULL, 2, STRING},
    {"name", NULL, 3, STRING},
    {"namespace", NULL, 4, STRING},
    {.name = NULL},
};
static const struct field role_ref_fields[] = {{"apiGroup", NULL, 1, STRING},
                                               {"kind", NULL, 2, STRING},
                                               {"name", NULL, 3, STRING},
                                               {.name = NULL}};
static const struct field role_binding_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"subjects", subject_fields, 2, MESSAGES},
    {"roleRef", role_ref_fields, 3, MESSAGE},
    {.name = NULL},
};
static const struct field rules_spec_fields[] = {{"namespace", NULL, 1, STRING}, {.name = NULL}};
static const struct field rules_review_fields[] = {
    {"metadata", meta_fields, 1, MESSAGE},
    {"spec", rules_spec_fields, 2, MESSAGE},
    {.name = NULL},
};

static const struct {
    const char *kind;
    const struct field *table;
} kinds[] = {
    {"Namespace", namespace_fields},
    {"ConfigMap", configmap_fields},
    {"Secret", secret_fields},
    {"DeleteOptions", delete_fields},
    {"ResourceQuota", quota_fields},
    {"Eviction", eviction_fields},
    {"SelfSubjectAccessReview", access_review_fields},
    {"SelfSubjectRulesReview", rules_review_fields},
    {"SelfSubjectReview", namespace_fields}, /* metadata alone */
    {"SubjectAccessReview", subject_review_fields},
    {"LocalSubjectAccessReview", subject_review_fields},
    {"Role", role_fields},
    {"ClusterRole", role_fields},
    {"RoleBinding", role_binding_fields},
    {"ClusterRoleBinding", role_binding_fields},
};

/* ---- bytes -------------------------------------------------------------------------------------
 */

struct slice {
    const unsigned char *at;
    size_t len;
};

/* One field as it stands in the bytes. */
struct raw {
    unsigned number;
    enum wire wire;
    uint64_t value;
    struct slice bytes;
};

static bool take_varint(struct slice *s, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && s->len; shift += 7) {
        unsigned char c = *s->at;

        s->at++;
        s->len--;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool skip(struct slice *s, size_t n)
{
    if (n > s->len) {
        return false;
    }
    s->at += n;
    s->len -= n;
    return true;
}

static bool take_field(struct slice *s, struct raw *ret)
{
    uint64_t tag, n;

    if (!take_varint(s, &tag) || tag >> 3 == 0 || tag >> 3 > INT32_MAX) {
        return false;
    }
    *ret = (struct raw){.number = (unsigned)(tag >> 3), .wire = (enum wire)(tag & 7)};
    switch (tag & 7) {
    case WIRE_VARINT:
        return take_varint(s, &ret->value);
    case WIRE_64:
        return skip(s, 8);
    case WIRE_32:
        return skip(s, 4);
    case WIRE_BYTES:
        if (!take_varint(s, &n) || n > s->len) {
            return false;
        }
        ret->bytes = (struct slice){.at = s->at, .len = (size_t)n};
        return skip(s, (size_t)n);
    default:
        return false;
    }
}

/* ---- objects -----------------------------------------------------------------------------------
 */

static int malformed(struct ferry_error *err)
{
    return ferry_fail(err, FERRY_INVALID, "malformed protobuf");
}

static yyjson_mut_val *text(yyjson_mut_doc *doc, struct slice s)
{
    return memchr(s.at, 0, s.len) ? NULL : yyjson_mut_strncpy(doc, (const char *)s.at, s.len);
}

static yyjson_mut_val *base64(yyjson_mut_doc *doc, struct slice s)
{
    ferry_cleanup_free unsigned char *out = ferry_xcalloc((s.len + 2) / 3 * 4 + 1, 1);
    int n = EVP_EncodeBlock(out, s.at, (int)s.len);

    return yyjson_mut_strncpy(doc, (const char *)out, (size_t)n);
}

static yyjson_mut_val *quantity(yyjson_mut_doc *doc, struct slice s)
{
    struct slice value = {.at = s.at};
    struct raw f;

    while (s.len) {
        if (!take_field(&s, &f) || (f.number == 1 && f.wire != WIRE_BYTES)) {
            return NULL;
        }
        value = f.number == 1 ? f.bytes : value;
    }
    return text(doc, value);
}

static yyjson_mut_val *map_value(yyjson_mut_doc *doc, struct slice s, enum type type)
{
    return type == BYTES_MAP      ? base64(doc, s)
           : type == QUANTITY_MAP ? quantity(doc, s)
                                  : text(doc, s);
}

/* An entry of a map is a message with key 1 and value 2; absent ones are empty. */
static bool put_entry(yyjson_mut_doc *doc, yyjson_mut_val *map, struct slice s, enum type type)
{
    struct slice key = {.at = s.at}, value = {.at = s.at};
    struct raw f;

    while (s.len) {
        if (!take_field(&s, &f) || f.wire != WIRE_BYTES) {
            return false;
        }
        if (f.number == 1) {
            key = f.bytes;
        } else if (f.number == 2) {
            value = f.bytes;
        }
    }
    yyjson_mut_val *k = text(doc, key), *v = map_value(doc, value, type);
    return k && v && yyjson_mut_obj_add(map, k, v); /* settled when all are there */
}

static bool decode(yyjson_mut_doc *doc, const struct field *table, struct slice s, int depth,
                   yyjson_mut_val *into);

static yyjson_mut_val *child(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *name, bool list)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(obj, name);

    if (!v) {
        v = list ? yyjson_mut_arr(doc) : yyjson_mut_obj(doc);
        yyjson_mut_obj_put(obj, yyjson_mut_str(doc, name), v);
    }
    return v;
}

static bool put_scalar(yyjson_mut_doc *doc, yyjson_mut_val *into, const struct field *f,
                       const struct raw *raw)
{
    yyjson_mut_val *v = NULL;

    if (f->type == STRING) {
        v = text(doc, raw->bytes);
    } else if (f->type == INTEGER) {
        v = yyjson_mut_sint(doc, (int64_t)raw->value);
    } else {
        v = yyjson_mut_bool(doc, raw->value != 0);
    }
    return v && yyjson_mut_obj_put(into, yyjson_mut_str(doc, f->name), v);
}

static bool put_field(yyjson_mut_doc *doc, yyjson_mut_val *into, const struct field *f,
                      const struct raw *raw, int depth)
{
    bool number = f->type == INTEGER || f->type == BOOLEAN;

    if (raw->wire != (number ? WIRE_VARINT : WIRE_BYTES)) {
        return false;
    }
    switch (f->type) {
    case STRING:
    case INTEGER:
    case BOOLEAN:
        return put_scalar(doc, into, f, raw);
    case MESSAGE:
        return decode(doc, f->table, raw->bytes, depth - 1, child(doc, into, f->name, false));
    case MESSAGES:
        return decode(doc, f->table, raw->bytes, depth - 1,
                      yyjson_mut_arr_add_obj(doc, child(doc, into, f->name, true)));
    case STRINGS:
        return yyjson_mut_arr_append(child(doc, into, f->name, true), text(doc, raw->bytes));
    case STRING_MAP:
    case BYTES_MAP:
    case QUANTITY_MAP:
        return put_entry(doc, child(doc, into, f->name, false), raw->bytes, f->type);
    }
    return false;
}

/* Of the entries of a map with the same key the last one holds. */
static void settle_maps(const struct field *table, yyjson_mut_val *obj)
{
    for (const struct field *f = table; f->name; f++) {
        yyjson_mut_val *map = is_map(f->type) ? yyjson_mut_obj_get(obj, f->name) : NULL;

        if (map) {
            json_keys_settle(map);
        }
    }
}

static bool decode(yyjson_mut_doc *doc, const struct field *table, struct slice s, int depth,
                   yyjson_mut_val *into)
{
    struct raw raw;

    while (s.len && depth > 0) {
        if (!take_field(&s, &raw)) {
            return false;
        }
        for (const struct field *f = table; f->name; f++) {
            if (f->number == raw.number && !put_field(doc, into, f, &raw, depth)) {
                return false;
            }
        }
    }
    settle_maps(table, into);
    return depth > 0;
}

struct envelope {
    yyjson_mut_val *root; /* apiVersion and kind */
    struct slice object;
};

static bool open_envelope(yyjson_mut_doc *doc, struct slice s, struct envelope *ret)
{
    static const struct field type_fields[] = {
        {"apiVersion", NULL, 1, STRING}, {"kind", NULL, 2, STRING}, {.name = NULL}};
    struct raw raw;

    ret->root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, ret->root);
    while (s.len) {
        if (!take_field(&s, &raw)) {
            return false;
        }
        if (raw.number == 1 &&
            (raw.wire != WIRE_BYTES || !decode(doc, type_fields, raw.bytes, 1, ret->root))) {
            return false;
        }
        if (raw.number == 2) {
            ret->object = raw.bytes;
        }
    }
    return true;
}

/* What was decoded must be writable as JSON: text that is not UTF-8 is found here. */
static bool is_text(yyjson_mut_doc *doc)
{
    ferry_cleanup_free char *json = yyjson_mut_write(doc, 0, NULL);

    return json != NULL;
}

int protobuf_parse(const void *body, size_t len, yyjson_mut_doc **ret, struct ferry_error *err)
{
    static const char magic[4] = {'k', '8', 's', 0};
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    struct slice s = {.at = body, .len = len};
    struct envelope e = {0};

    if (len < sizeof(magic) || len > MAX_BYTES || memcmp(body, magic, sizeof(magic)) != 0 ||
        !skip(&s, sizeof(magic)) || !open_envelope(doc, s, &e)) {
        return malformed(err);
    }
    const char *kind = yyjson_mut_get_str(yyjson_mut_obj_get(e.root, "kind"));
    for (size_t i = 0; kind && i < FERRY_COUNT(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) != 0) {
            continue;
        }
        if (!decode(doc, kinds[i].table, e.object, MAX_DEPTH, e.root) || !is_text(doc)) {
            return malformed(err);
        }
        *ret = ferry_take_ptr(doc);
        return 0;
    }
    return ferry_fail(err, FERRY_NOT_FOUND, "protobuf is not understood for this kind; send JSON");
}
