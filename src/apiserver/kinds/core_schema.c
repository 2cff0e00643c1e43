#include "apiserver/kinds/core_schema.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/kinds/core_types.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"

enum { NAME_SIZE = 80, MAX_KINDS = 32 };

/* One field as the table has it. */
struct field {
    char name[NAME_SIZE], type[NAME_SIZE];
    bool required;
};

static const struct core_type *type_named(const char *name)
{
    for (const struct core_type *t = core_types; t->name; t++) {
        if (ferry_streq(t->name, name)) {
            return t;
        }
    }
    return NULL;
}

/* The next of "name:type! name:type"; false at the end. */
static bool next_field(const char **at, struct field *ret)
{
    size_t colon = strcspn(*at, ":"), end = strcspn(*at, " ");

    if (!**at) {
        return false;
    }
    ret->required = (*at)[end - 1] == '!';
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)colon, *at);
    snprintf(ret->type, sizeof(ret->type), "%.*s", (int)(end - colon - 1 - ret->required),
             *at + colon + 1);
    *at += end + ((*at)[end] == ' ');
    return true;
}

static const struct {
    const char *type, *schema;
} scalars[] = {
    {"string", "\"type\":\"string\""},
    {"integer", "\"type\":\"integer\",\"format\":\"int32\""},
    {"long", "\"type\":\"integer\",\"format\":\"int64\""},
    {"boolean", "\"type\":\"boolean\""},
    {"bytes", "\"type\":\"string\",\"format\":\"byte\""},
    {"quantity", "\"x-kubernetes-int-or-string\":true,\"format\":\"quantity\""},
    {"intorstring", "\"x-kubernetes-int-or-string\":true"},
    {"time", "\"type\":\"string\",\"format\":\"date-time\""},
    {"microtime", "\"type\":\"string\",\"format\":\"date-time\""},
    {"any", "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true"},
};

static const char *scalar(const char *type)
{
    for (size_t i = 0; i < FERRY_COUNT(scalars); i++) {
        if (ferry_streq(scalars[i].type, type)) {
            return scalars[i].schema;
        }
    }
    return NULL;
}

static void put_text(struct ferry_buf *b, const char *type, const char *field)
{
    char what[2 * NAME_SIZE + 1];

    snprintf(what, sizeof(what), "%s%s%s", type, field ? "." : "", field ? field : "");
    for (const struct core_text *t = core_texts; t->what; t++) {
        if (ferry_streq(t->what, what)) {
            ferry_buf_puts(b, "\"description\":");
            ferry_buf_json(b, t->text);
            ferry_buf_puts(b, ",");
            return;
        }
    }
}

/* ---- written out -------------------------------------------------------------------------------
 */

static void put_type(struct ferry_buf *b, const char *type);

static void put_properties(struct ferry_buf *b, const struct core_type *t)
{
    const char *at = t->fields;
    struct field f;
    bool first = true;

    ferry_buf_puts(b, "\"type\":\"object\",\"properties\":{");
    while (next_field(&at, &f)) {
        ferry_buf_printf(b, "%s\"%s\":{", first ? "" : ",", f.name);
        put_type(b, f.type);
        ferry_buf_puts(b, "}");
        first = false;
    }
    ferry_buf_puts(b, "}");
}

static void put_type(struct ferry_buf *b, const char *type)
{
    const struct core_type *t = type_named(type);

    if (ferry_str_starts(type, "[]")) {
        ferry_buf_puts(b, "\"type\":\"array\",\"items\":{");
        put_type(b, type + 2);
        ferry_buf_puts(b, "}");
    } else if (ferry_str_starts(type, "{}")) {
        ferry_buf_puts(b, "\"type\":\"object\",\"additionalProperties\":{");
        put_type(b, type + 2);
        ferry_buf_puts(b, "}");
    } else if (t) {
        put_properties(b, t);
    } else {
        ferry_buf_puts(b, scalar(type));
    }
}

static struct {
    const struct api_resource *resource;
    yyjson_doc *doc;
} kinds[MAX_KINDS];
static size_t n_kinds;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    for (const struct api_resource *r = api_resources(); r->plural && n_kinds < MAX_KINDS; r++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        if (!core_schema_knows(r)) {
            continue;
        }
        ferry_buf_puts(&b, "{");
        put_properties(&b, type_named(r->kind_name));
        ferry_buf_puts(&b, "}");
        kinds[n_kinds].resource = r;
        kinds[n_kinds++].doc = yyjson_read(b.data, b.len, 0);
    }
}

bool core_schema_knows(const struct api_resource *r)
{
    return type_named(r->kind_name) != NULL;
}

const yyjson_val *core_schema(const struct api_resource *r)
{
    (void)pthread_once(&once, make_all);
    for (size_t i = 0; i < n_kinds; i++) {
        if (kinds[i].resource == r) {
            return yyjson_doc_get_root(kinds[i].doc);
        }
    }
    return NULL;
}

/* ---- by reference ------------------------------------------------------------------------------
 */

static void put_name(struct ferry_buf *b, const char *type)
{
    static const char *const meta[] = {"ObjectMeta", "OwnerReference", "ManagedFieldsEntry",
                                       "LabelSelector", "LabelSelectorRequirement"};
    static const char *const rbac[] = {
        "Role",       "ClusterRole",     "RoleBinding", "ClusterRoleBinding",
        "PolicyRule", "AggregationRule", "RoleRef",     "Subject"};

    for (size_t i = 0; i < FERRY_COUNT(meta); i++) {
        if (ferry_streq(meta[i], type)) {
            ferry_buf_printf(b, "io.k8s.apimachinery.pkg.apis.meta.v1.%s", type);
            return;
        }
    }
    for (size_t i = 0; i < FERRY_COUNT(rbac); i++) {
        if (ferry_streq(rbac[i], type)) {
            ferry_buf_printf(b, "io.k8s.api.rbac.v1.%s", type);
            return;
        }
    }
    ferry_buf_printf(b, "io.k8s.api.%s.v1.%s",
                     ferry_streq(type, "StorageClass")         ? "storage"
                     : ferry_str_starts(type, "Lease")         ? "coordination"
                     : ferry_streq(type, "ControllerRevision") ? "apps"
                                                               : "core",
                     type);
}

void core_schema_reference(struct ferry_buf *b, const char *type)
{
    ferry_buf_puts(b, "\"allOf\":[{\"$ref\":\"#/components/schemas/");
    put_name(b, type);
    ferry_buf_puts(b, "\"}]");
}

#define QUANTITY "io.k8s.apimachinery.pkg.api.resource.Quantity"
#define INT_OR_STRING "io.k8s.apimachinery.pkg.util.intstr.IntOrString"

static void put_field(struct ferry_buf *b, const char *type)
{
    if (ferry_str_starts(type, "[]") || ferry_str_starts(type, "{}")) {
        ferry_buf_puts(b, *type == '[' ? "\"type\":\"array\",\"items\":{"
                                       : "\"type\":\"object\",\"additionalProperties\":{");
        put_field(b, type + 2);
        ferry_buf_puts(b, "}");
    } else if (type_named(type)) {
        core_schema_reference(b, type);
    } else if (ferry_streq(type, "quantity") || ferry_streq(type, "intorstring")) {
        ferry_buf_printf(b, "\"allOf\":[{\"$ref\":\"#/components/schemas/%s\"}]",
                         *type == 'q' ? QUANTITY : INT_OR_STRING);
    } else {
        ferry_buf_puts(b, scalar(type));
    }
}

static const struct api_resource *kind_named(const char *name)
{
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (ferry_streq(r->kind_name, name)) {
            return r;
        }
    }
    return NULL;
}

static void put_envelope(struct ferry_buf *b, const struct api_resource *r)
{
    ferry_buf_printf(b,
                     "\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\",\"kind\":\"%s\","
                     "\"version\":\"%s\"}],",
                     r->group, r->kind_name, r->version);
}

static void put_component(struct ferry_buf *b, const struct core_type *t)
{
    const struct api_resource *kind = kind_named(t->name);
    ferry_cleanup_buf struct ferry_buf required = {0};
    const char *at = t->fields;
    struct field f;

    ferry_buf_puts(b, "\"");
    put_name(b, t->name);
    ferry_buf_puts(b, "\":{");
    put_text(b, t->name, NULL);
    if (kind) {
        put_envelope(b, kind);
    }
    ferry_buf_puts(b, "\"type\":\"object\",\"properties\":{");
    if (kind) {
        ferry_buf_puts(b, "\"apiVersion\":{\"type\":\"string\"},\"kind\":{\"type\":\"string\"},"
                          "\"metadata\":{");
        core_schema_reference(b, "ObjectMeta");
        ferry_buf_puts(b, "},");
    }
    while (next_field(&at, &f)) {
        ferry_buf_printf(b, "\"%s\":{", f.name);
        put_text(b, t->name, f.name);
        put_field(b, f.type);
        ferry_buf_puts(b, *at ? "}," : "}");
        if (f.required) {
            ferry_buf_printf(&required, "%s\"%s\"", required.len ? "," : "", f.name);
        }
    }
    ferry_buf_puts(b, "}");
    if (required.len) {
        ferry_buf_printf(b, ",\"required\":[%s]", required.data);
    }
    ferry_buf_puts(b, "}");
}

void core_schema_components(struct ferry_buf *b)
{
    ferry_buf_puts(b, "\"" QUANTITY "\":{\"description\":\"A number with a suffix: 1.5Gi, 500m.\","
                      "\"type\":\"string\"},\"" INT_OR_STRING "\":{\"description\":\"A number or a "
                      "name.\",\"type\":\"string\",\"format\":\"int-or-string\"},");
    for (const struct core_type *t = core_types; t->name; t++) {
        put_component(b, t);
        ferry_buf_puts(b, t[1].name ? "," : "");
    }
}
