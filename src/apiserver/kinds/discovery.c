/* kubectl learns from OpenAPI v3 that the server takes the parameter `fieldValidation` for a kind,
 * and without that refuses to apply: each kind's patch says so here. The schemas are those of the
 * custom resource definitions and, of core kinds, of core_schema.c; of foreign kinds only that they
 * exist. */
#include "apiserver/kinds/discovery.h"

#include <string.h>

#include "api/json.h"
#include "apiserver/kinds/core_schema.h"
#include "apiserver/kinds/crds.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

#define KUBERNETES_MINOR "32" /* whose behaviour this server follows */
#define KUBEVIRT_MINOR "9"

static bool first_of_group(const struct api_resource *r)
{
    for (const struct api_resource *o = api_resources(); o < r; o++) {
        if (ferry_streq(o->group, r->group) && ferry_streq(o->version, r->version)) {
            return false;
        }
    }
    return true;
}

/* Groups without stored objects: clients look for them before they call what is in them. */
static const struct api_resource bare_groups[] = {
    {.group = "policy",
     .version = "v1",
     .plural = "pods/eviction",
     .kind_name = "Eviction",
     .namespaced = true},
    {.group = "subresources.kubevirt.io",
     .version = "v1",
     .plural = "virtualmachines/migrate",
     .kind_name = "VirtualMachine",
     .namespaced = true},
    {.group = "subresources.kubevirt.io",
     .version = "v1",
     .plural = "virtualmachineinstances/pause",
     .kind_name = "VirtualMachineInstance",
     .namespaced = true},
    {.group = "subresources.kubevirt.io",
     .version = "v1",
     .plural = "virtualmachineinstances/unpause",
     .kind_name = "VirtualMachineInstance",
     .namespaced = true},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .plural = "selfsubjectaccessreviews",
     .singular = "selfsubjectaccessreview",
     .kind_name = "SelfSubjectAccessReview"},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .plural = "selfsubjectrulesreviews",
     .singular = "selfsubjectrulesreview",
     .kind_name = "SelfSubjectRulesReview"},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .plural = "subjectaccessreviews",
     .singular = "subjectaccessreview",
     .kind_name = "SubjectAccessReview"},
    {.group = "authorization.k8s.io",
     .version = "v1",
     .plural = "localsubjectaccessreviews",
     .singular = "localsubjectaccessreview",
     .kind_name = "LocalSubjectAccessReview",
     .namespaced = true},
    {.group = "authentication.k8s.io",
     .version = "v1",
     .plural = "selfsubjectreviews",
     .singular = "selfsubjectreview",
     .kind_name = "SelfSubjectReview"},
};
enum { BARE_GROUPS = FERRY_COUNT(bare_groups) };

/* The first of all versions of its group, which is the one that is preferred. */
static bool opens_group(const struct api_resource *r)
{
    for (const struct api_resource *o = api_resources(); o < r; o++) {
        if (ferry_streq(o->group, r->group)) {
            return false;
        }
    }
    return true;
}

static void put_version(struct ferry_buf *b, const struct api_resource *r)
{
    ferry_buf_printf(b, "{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}", r->group, r->version,
                     r->version);
}

static void put_group(struct ferry_buf *b, const struct api_resource *r, bool typed)
{
    ferry_buf_printf(b, "{%s\"name\":\"%s\",\"versions\":[",
                     typed ? "\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," : "", r->group);
    put_version(b, r);
    for (const struct api_resource *o = api_resources(); o->plural; o++) {
        if (ferry_streq(o->group, r->group) && !ferry_streq(o->version, r->version) &&
            first_of_group(o)) {
            ferry_buf_puts(b, ",");
            put_version(b, o);
        }
    }
    ferry_buf_puts(b, "],\"preferredVersion\":");
    put_version(b, r);
    ferry_buf_puts(b, "}");
}

static void groups(struct ferry_buf *b)
{
    bool first = true;

    ferry_buf_puts(b, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (*r->group && opens_group(r)) {
            ferry_buf_puts(b, first ? "" : ",");
            put_group(b, r, false);
            first = false;
        }
    }
    for (size_t i = 0; i < BARE_GROUPS; i++) {
        if (i == 0 || !ferry_streq(bare_groups[i].group, bare_groups[i - 1].group)) {
            ferry_buf_puts(b, ",");
            put_group(b, &bare_groups[i], false);
        }
    }
    ferry_buf_puts(b, "]}");
}

static void put_resource(struct ferry_buf *b, const struct api_resource *r)
{
    const char *at = r->short_names;

    ferry_buf_printf(b,
                     "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,\"kind\":\"%s\","
                     "\"verbs\":[\"create\",\"delete\",%s\"get\",\"list\",\"patch\",\"update\","
                     "\"watch\"]",
                     r->plural, r->singular, r->namespaced ? "true" : "false", r->kind_name,
                     ferry_streq(r->plural, "namespaces") ? "" : "\"deletecollection\",");
    if (*at) {
        ferry_buf_puts(b, ",\"shortNames\":[");
        while (*at) {
            size_t n = strcspn(at, ",");

            ferry_buf_printf(b, "%s\"%.*s\"", at == r->short_names ? "" : ",", (int)n, at);
            at += n + (at[n] == ',');
        }
        ferry_buf_puts(b, "]");
    }
    if (r->kind == API_KIND_POD || r->kind == API_KIND_VMI) {
        ferry_buf_puts(b, ",\"categories\":[\"all\"]"); /* kubectl get all */
    }
    ferry_buf_puts(b, "}");
    if (r->has_status) {
        ferry_buf_printf(b,
                         ",{\"name\":\"%s/status\",\"singularName\":\"\",\"namespaced\":%s,"
                         "\"kind\":\"%s\",\"verbs\":[\"get\",\"patch\",\"update\"]}",
                         r->plural, r->namespaced ? "true" : "false", r->kind_name);
    }
    if (r->kind == API_KIND_NODE) {
        ferry_buf_puts(b, ",{\"name\":\"nodes/proxy\",\"singularName\":\"\",\"namespaced\":false,"
                          "\"kind\":\"NodeProxyOptions\",\"verbs\":[\"get\"]}");
    }
    if (r->kind == API_KIND_POD) {
        ferry_buf_puts(b, ",{\"name\":\"pods/binding\",\"singularName\":\"\",\"namespaced\":true,"
                          "\"kind\":\"Binding\",\"verbs\":[\"create\"]},"
                          "{\"name\":\"pods/eviction\",\"singularName\":\"\",\"namespaced\":true,"
                          "\"group\":\"policy\",\"version\":\"v1\",\"kind\":\"Eviction\","
                          "\"verbs\":[\"create\"]}");
    }
}

/* kubectl takes an empty group for a broken one. */
static void put_bare_resources(struct ferry_buf *b, const char *group)
{
    bool first = true;

    for (size_t i = 0; i < BARE_GROUPS; i++) {
        const struct api_resource *r = &bare_groups[i];

        if (ferry_streq(r->group, group)) {
            ferry_buf_printf(b,
                             "%s{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,"
                             "\"kind\":\"%s\",\"verbs\":[\"create\"%s]}",
                             first ? "" : ",", r->plural, r->singular ? r->singular : "",
                             r->namespaced ? "true" : "false", r->kind_name,
                             strchr(r->plural, '/') ? ",\"update\"" : "");
            first = false;
        }
    }
}

static void resources(struct ferry_buf *b, const char *group, const char *version)
{
    bool first = true;

    ferry_buf_printf(
        b,
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"%s%s%s\","
        "\"resources\":[",
        group, *group ? "/" : "", version);
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        if (ferry_streq(r->group, group) && ferry_streq(r->version, version)) {
            ferry_buf_puts(b, first ? "" : ",");
            put_resource(b, r);
            first = false;
        }
    }
    put_bare_resources(b, group);
    ferry_buf_puts(b, "]}");
}

/* ---- OpenAPI v3 --------------------------------------------------------------------------------
 */

static void gv_path(const struct api_resource *r, struct ferry_buf *b)
{
    if (*r->group) {
        ferry_buf_printf(b, "apis/%s/%s", r->group, r->version);
    } else {
        ferry_buf_printf(b, "api/%s", r->version);
    }
}

static void openapi_index(struct ferry_buf *b)
{
    bool first = true;

    ferry_buf_puts(b, "{\"paths\":{");
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        ferry_cleanup_buf struct ferry_buf path = {0};

        if (!first_of_group(r)) {
            continue;
        }
        gv_path(r, &path);
        ferry_buf_printf(b, "%s\"%s\":{\"serverRelativeURL\":\"/openapi/v3/%s?hash=ferry-2\"}",
                         first ? "" : ",", path.data, path.data);
        first = false;
    }
    ferry_buf_puts(b, "}}");
}

static void put_operation(struct ferry_buf *b, const char *method, const struct api_resource *r)
{
    ferry_buf_printf(
        b,
        "\"%s\":{\"x-kubernetes-group-version-kind\":{\"group\":\"%s\",\"version\":\"%s\","
        "\"kind\":\"%s\"},\"parameters\":[{\"name\":\"dryRun\",\"in\":\"query\",\"schema\":"
        "{\"type\":\"string\",\"uniqueItems\":true}},{\"name\":\"fieldManager\",\"in\":\"query\","
        "\"schema\":{\"type\":\"string\",\"uniqueItems\":true}},{\"name\":\"fieldValidation\","
        "\"in\":\"query\",\"schema\":{\"type\":\"string\",\"uniqueItems\":true}}],"
        "\"responses\":{\"200\":{\"description\":\"OK\"}}}",
        method, r->group, r->version, r->kind_name);
}

/* "io.kubevirt.v1.VirtualMachine": the group from right to left, as Kubernetes names schemas. */
static void put_schema_name(struct ferry_buf *b, const struct api_resource *r)
{
    const char *end = r->group + strlen(r->group);

    if (!*r->group) {
        ferry_buf_puts(b, "io.k8s.api.core.");
    }
    while (end > r->group) {
        const char *start = end;

        while (start > r->group && start[-1] != '.') {
            start--;
        }
        ferry_buf_printf(b, "%.*s.", (int)(end - start), start);
        end = start > r->group ? start - 1 : start;
    }
    ferry_buf_printf(b, "%s.%s", r->version, r->kind_name);
}

/* Definitions do not describe metadata; it is that of all objects. */
static char *definition_text(const struct api_resource *r)
{
    const yyjson_val *schema = crds_schema(r);
    ferry_cleanup_buf struct ferry_buf meta = {0};

    if (!schema) {
        return NULL;
    }
    ferry_buf_puts(&meta, "{");
    core_schema_reference(&meta, "ObjectMeta");
    ferry_buf_puts(&meta, "}");
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    api_cleanup_doc yyjson_doc *reference = yyjson_read(meta.data, meta.len, 0);
    yyjson_mut_val *root = yyjson_val_mut_copy(doc, (yyjson_val *)schema);
    yyjson_mut_obj_put(yyjson_mut_obj_get(root, "properties"), yyjson_mut_str(doc, "metadata"),
                       yyjson_val_mut_copy(doc, yyjson_doc_get_root(reference)));
    return json_doc_mut_text(root, 0, NULL);
}

/* Of the kinds that have a definition; of foreign ones only that they exist. */
static void put_schema(struct ferry_buf *b, const struct api_resource *r)
{
    ferry_cleanup_free char *text = definition_text(r);

    ferry_buf_puts(b, "\"");
    put_schema_name(b, r);
    ferry_buf_printf(b,
                     "\":{\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\",\"kind\":\"%s\","
                     "\"version\":\"%s\"}],%s",
                     r->group, r->kind_name, r->version,
                     text ? text + 1
                          : "\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}");
}

static void openapi_group(struct ferry_buf *b, const char *wanted)
{
    bool first = true;

    ferry_buf_puts(b, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Ferry\",\"version\":\"v1\"},"
                      "\"paths\":{");
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        ferry_cleanup_buf struct ferry_buf path = {0};

        gv_path(r, &path);
        if (!ferry_streq(path.data, wanted)) {
            continue;
        }
        ferry_buf_puts(&path, r->namespaced ? "/namespaces/{namespace}/" : "/");
        ferry_buf_puts(&path, r->plural);
        ferry_buf_printf(b, "%s\"/%s\":{", first ? "" : ",", path.data);
        put_operation(b, "post", r);
        ferry_buf_printf(b, "},\"/%s/{name}\":{", path.data);
        put_operation(b, "put", r);
        ferry_buf_puts(b, ",");
        put_operation(b, "patch", r);
        ferry_buf_puts(b, "}");
        first = false;
    }
    ferry_buf_puts(b, "},\"components\":{\"schemas\":{");
    core_schema_components(b);
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        ferry_cleanup_buf struct ferry_buf path = {0};

        gv_path(r, &path);
        if (ferry_streq(path.data, wanted) && !core_schema_knows(r)) {
            ferry_buf_puts(b, ",");
            put_schema(b, r);
        }
    }
    ferry_buf_puts(b, "}}}");
}

static bool serves_gv(const char *path)
{
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        ferry_cleanup_buf struct ferry_buf p = {0};

        gv_path(r, &p);
        if (ferry_streq(p.data, path)) {
            return true;
        }
    }
    return false;
}

static void version(struct ferry_buf *b, const char *minor)
{
    ferry_buf_printf(b,
                     "{\"major\":\"1\",\"minor\":\"%s\",\"gitVersion\":\"v1.%s.0+ferry\","
                     "\"gitCommit\":\"\",\"gitTreeState\":\"clean\",\"buildDate\":"
                     "\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\",\"compiler\":\"c\","
                     "\"platform\":\"linux/amd64\"}",
                     minor, minor);
}

bool discovery_is_virt_version(const char *path)
{
    return ferry_streq(path, "/apis/subresources.kubevirt.io/v1/version");
}

static bool group_path_of(struct ferry_buf *b, const char *path, const struct api_resource *r)
{
    size_t n = strlen(r->group);

    if (!*r->group || strncmp(path, r->group, n) != 0) {
        return false;
    }
    if (!path[n]) {
        put_group(b, r, true);
        return true;
    }
    if (path[n] == '/' && ferry_streq(path + n + 1, r->version)) {
        resources(b, r->group, r->version);
        return true;
    }
    return false;
}

/* "/apis/GROUP" and "/apis/GROUP/VERSION" */
static bool group_path(struct ferry_buf *b, const char *path)
{
    for (const struct api_resource *r = api_resources(); *path && r->plural; r++) {
        if (group_path_of(b, path, r)) {
            return true;
        }
    }
    for (size_t i = 0; *path && i < BARE_GROUPS; i++) {
        if (group_path_of(b, path, &bare_groups[i])) {
            return true;
        }
    }
    return false;
}

char *discovery_answer(const char *path)
{
    static const char openapi[] = "/openapi/v3";
    ferry_cleanup_free char *trimmed = ferry_strdup(path);
    ferry_cleanup_buf struct ferry_buf b = {0};
    size_t len = strlen(trimmed);

    if (len > 1 && trimmed[len - 1] == '/') {
        trimmed[len - 1] = '\0';
    }
    if (ferry_streq(trimmed, "/version")) {
        version(&b, KUBERNETES_MINOR);
    } else if (discovery_is_virt_version(trimmed)) {
        version(&b, KUBEVIRT_MINOR);
    } else if (ferry_streq(trimmed, "/api")) {
        ferry_buf_puts(&b, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                           "\"serverAddressByClientCIDRs\":[]}");
    } else if (ferry_streq(trimmed, "/apis")) {
        groups(&b);
    } else if (ferry_streq(trimmed, "/api/v1")) {
        resources(&b, "", "v1");
    } else if (ferry_streq(trimmed, openapi)) {
        openapi_index(&b);
    } else if (ferry_str_starts(trimmed, "/openapi/v3/") &&
               serves_gv(trimmed + strlen(openapi) + 1)) {
        openapi_group(&b, trimmed + strlen(openapi) + 1);
    } else if (!ferry_str_starts(trimmed, "/apis/") ||
               !group_path(&b, trimmed + strlen("/apis/"))) {
        return NULL;
    }
    return ferry_buf_take(&b);
}
