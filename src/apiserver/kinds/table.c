#include "apiserver/kinds/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "apiserver/kinds/crds.h"
#include "apiserver/kinds/jsonpath.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

/* Writes the text of one cell. */
struct cell {
    const yyjson_val *object;
    const struct table_move *move; /* or NULL */
    int64_t now_ms;
    struct ferry_buf *out;
};

struct column {
    const char *name;
    const char *pointer;                  /* to a string, or */
    void (*render)(const struct cell *c); /* what makes the text */
    bool wide;                            /* only with -o wide */
    const char *format;
};

static const char *text_at(const struct cell *c, const char *pointer)
{
    const char *s = api_json_str(c->object, pointer);

    return s ? s : "";
}

char *table_age(int64_t since_ms, int64_t now_ms, char buf[TABLE_AGE_SIZE])
{
    int64_t s = (now_ms - since_ms) / 1000;
    int64_t m = s / 60, h = m / 60, d = h / 24, y = d / 365;

    if (since_ms == 0) {
        snprintf(buf, TABLE_AGE_SIZE, "<unknown>");
    } else if (s < 0) {
        snprintf(buf, TABLE_AGE_SIZE, "0s");
    } else if (s < 120) {
        snprintf(buf, TABLE_AGE_SIZE, "%llds", (long long)s);
    } else if (m < 10 && s % 60) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldm%llds", (long long)m, (long long)(s % 60));
    } else if (m < 180) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldm", (long long)m);
    } else if (h < 8 && m % 60) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldh%lldm", (long long)h, (long long)(m % 60));
    } else if (h < 48) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldh", (long long)h);
    } else if (d < 8 && h % 24) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldd%lldh", (long long)d, (long long)(h % 24));
    } else if (d < 365 * 2) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldd", (long long)d);
    } else if (y < 8 && d % 365) {
        snprintf(buf, TABLE_AGE_SIZE, "%lldy%lldd", (long long)y, (long long)(d % 365));
    } else {
        snprintf(buf, TABLE_AGE_SIZE, "%lldy", (long long)y);
    }
    return buf;
}

static void render_since(const struct cell *c, const char *time)
{
    char buf[TABLE_AGE_SIZE];
    int64_t ms = 0;

    if (!*time || api_time_parse(time, &ms, NULL) < 0) {
        ms = 0;
    }
    ferry_buf_puts(c->out, table_age(ms, c->now_ms, buf));
}

static void render_age(const struct cell *c)
{
    render_since(c, text_at(c, "/metadata/creationTimestamp"));
}

static void render_condition(const struct cell *c, const char *type)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/status/conditions"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(api_json_str(v, "/type"), type)) {
            const char *status = api_json_str(v, "/status");

            ferry_buf_puts(c->out, status ? status : "");
        }
    }
}

static void render_vmi_ready(const struct cell *c)
{
    render_condition(c, CONDITION_READY);
}

static void render_vmi_migratable(const struct cell *c)
{
    render_condition(c, CONDITION_LIVE_MIGRATABLE);
}

static void render_vmi_paused(const struct cell *c)
{
    render_condition(c, CONDITION_PAUSED);
}

static void render_pod_ready(const struct cell *c)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/status/containerStatuses"), *v;
    size_t i, max, ready = 0;

    yyjson_arr_foreach(list, i, max, v)
    {
        ready += api_json_bool(v, "/ready", false);
    }
    ferry_buf_printf(c->out, "%zu/%zu", ready,
                     yyjson_arr_size(yyjson_ptr_get((yyjson_val *)c->object, "/spec/containers")));
}

static void render_pod_status(const struct cell *c)
{
    const char *reason = text_at(c, "/status/reason");
    const char *waiting = text_at(c, "/status/containerStatuses/0/state/waiting/reason");

    if (*text_at(c, "/metadata/deletionTimestamp")) {
        ferry_buf_puts(c->out, "Terminating");
    } else if (*reason) {
        ferry_buf_puts(c->out, reason);
    } else {
        ferry_buf_puts(c->out, *waiting ? waiting : text_at(c, "/status/phase"));
    }
}

static void render_pod_restarts(const struct cell *c)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/status/containerStatuses"), *v;
    size_t i, max;
    int64_t n = 0;

    yyjson_arr_foreach(list, i, max, v)
    {
        n += api_json_int(v, "/restartCount", 0);
    }
    ferry_buf_printf(c->out, "%lld", (long long)n);
}

static void render_node_status(const struct cell *c)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/status/conditions"), *v;
    const char *text = "Unknown";
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(api_json_str(v, "/type"), CONDITION_READY)) {
            text = ferry_streq(api_json_str(v, "/status"), "True") ? "Ready" : "NotReady";
        }
    }
    ferry_buf_printf(c->out, "%s%s", text,
                     api_json_bool(c->object, "/spec/unschedulable", false) ? ",SchedulingDisabled"
                                                                            : "");
}

static void render_node_roles(const struct cell *c)
{
    static const char prefix[] = LABEL_NODE_ROLE;
    yyjson_val *labels = yyjson_ptr_get((yyjson_val *)c->object, "/metadata/labels"), *key, *v;
    size_t i, max, n = 0;

    yyjson_obj_foreach(labels, i, max, key, v)
    {
        const char *k = yyjson_get_str(key);

        if (ferry_str_starts(k, prefix)) {
            ferry_buf_printf(c->out, "%s%s", n++ ? "," : "", k + strlen(prefix));
        }
    }
    if (!n) {
        ferry_buf_puts(c->out, "<none>");
    }
}

static void render_node_address(const struct cell *c)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/status/addresses"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(api_json_str(v, "/type"), "InternalIP")) {
            const char *a = api_json_str(v, "/address");

            ferry_buf_puts(c->out, a ? a : "");
            return;
        }
    }
    ferry_buf_puts(c->out, "<none>");
}

static void render_data_count(const struct cell *c)
{
    ferry_buf_printf(c->out, "%zu",
                     yyjson_obj_size(yyjson_ptr_get((yyjson_val *)c->object, "/data")));
}

static void render_event_seen(const struct cell *c)
{
    const char *last = text_at(c, "/lastTimestamp");

    render_since(c, *last ? last : text_at(c, "/metadata/creationTimestamp"));
}

static void render_event_object(const struct cell *c)
{
    const char *kind = text_at(c, "/involvedObject/kind");

    for (; *kind; kind++) {
        char lower = *kind >= 'A' && *kind <= 'Z' ? (char)(*kind + 32) : *kind;

        ferry_buf_append(c->out, &lower, 1);
    }
    ferry_buf_printf(c->out, "/%s", text_at(c, "/involvedObject/name"));
}

/* What the migration says itself; until it is over, what its VMI knows. */
static void render_of_move(const struct cell *c, const char *own, const char *known)
{
    const char *said = text_at(c, own);

    ferry_buf_puts(c->out, *said ? said : known);
}

static void render_migration_source(const struct cell *c)
{
    render_of_move(c, "/status/migrationState/sourceNode", c->move ? c->move->source : "");
}

static void render_migration_target(const struct cell *c)
{
    render_of_move(c, "/status/migrationState/targetNode", c->move ? c->move->target : "");
}

static void render_migration_mode(const struct cell *c)
{
    render_of_move(c, "/status/migrationState/mode", c->move ? c->move->mode : "");
}

/* How far a move is: what its source last said of the bytes, everything once it is over. */
static void render_migration_progress(const struct cell *c)
{
    int64_t total = c->move ? c->move->total_bytes : 0;
    int64_t left = c->move ? c->move->remaining_bytes : 0;

    if (wire_phase_is(text_at(c, "/status/phase"), PHASE_SUCCEEDED)) {
        ferry_buf_puts(c->out, "100%");
    } else if (total > 0 && left <= total) {
        ferry_buf_printf(c->out, "%d%%", (int)(100.0 * (double)(total - left) / (double)total));
    }
}

/* Why it failed; while it waits, what for. */
static void render_migration_reason(const struct cell *c)
{
    const char *failed = text_at(c, "/status/migrationState/failureReason");
    wire_cleanup_queue struct wire_queue q = {0};

    if (*failed) {
        ferry_buf_puts(c->out, failed);
    } else if (wire_queue_read(wire_annotation(c->object, ANNOTATION_QUEUE), &q) && q.reason) {
        ferry_buf_puts(c->out, wire_reason_text(q.reason));
    }
}

static void render_annotation(const struct cell *c, const char *key)
{
    const char *text = wire_annotation(c->object, key);

    ferry_buf_puts(c->out, text ? text : "");
}

static void render_migration_queue(const struct cell *c)
{
    render_annotation(c, ANNOTATION_QUEUE);
}

static void render_migration_result(const struct cell *c)
{
    render_annotation(c, ANNOTATION_RESULT);
}

static void render_access_modes(const struct cell *c)
{
    static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/spec/accessModes"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        for (size_t j = 0; j < FERRY_COUNT(names); j++) {
            if (ferry_streq(yyjson_get_str(v), names[j][0])) {
                ferry_buf_printf(c->out, "%s%s", i ? "," : "", names[j][1]);
            }
        }
    }
}

static void render_pv_claim(const struct cell *c)
{
    if (*text_at(c, "/spec/claimRef/name")) {
        ferry_buf_printf(c->out, "%s/%s", text_at(c, "/spec/claimRef/namespace"),
                         text_at(c, "/spec/claimRef/name"));
    }
}

static void render_role_ref(const struct cell *c)
{
    ferry_buf_printf(c->out, "%s/%s", text_at(c, "/roleRef/kind"), text_at(c, "/roleRef/name"));
}

static void render_subjects(const struct cell *c, const char *kind)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)c->object, "/subjects"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        const char *ns = api_json_str(v, "/namespace"), *name = api_json_str(v, "/name");

        if (ferry_streq(api_json_str(v, "/kind"), kind)) {
            ferry_buf_printf(c->out, "%s%s%s%s", c->out->len ? ", " : "", ns ? ns : "",
                             ns ? "/" : "", name ? name : "");
        }
    }
}

static void render_users(const struct cell *c)
{
    render_subjects(c, "User");
}

static void render_groups(const struct cell *c)
{
    render_subjects(c, "Group");
}

static void render_accounts(const struct cell *c)
{
    render_subjects(c, "ServiceAccount");
}

/* ---- columns -----------------------------------------------------------------------------------
 */

#define NAME                                                                                       \
    {                                                                                              \
        "Name", "/metadata/name", NULL, false, "name"                                              \
    }
#define AGE                                                                                        \
    {                                                                                              \
        "Age", NULL, render_age, false, ""                                                         \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL, false, NULL                                                              \
    }

static const struct column vmi_columns[] = {
    NAME,
    AGE,
    {"Phase", "/status/phase", NULL, false, ""},
    {"IP", "/status/interfaces/0/ipAddress", NULL, false, ""},
    {"NodeName", "/status/nodeName", NULL, false, ""},
    {"Ready", NULL, render_vmi_ready, false, ""},
    {"Live-Migratable", NULL, render_vmi_migratable, true, ""},
    {"Paused", NULL, render_vmi_paused, true, ""},
    END,
};
static const struct column migration_columns[] = {
    NAME,
    {"Phase", "/status/phase", NULL, false, ""},
    {"VMI", "/spec/vmiName", NULL, false, ""},
    {"Source", NULL, render_migration_source, false, ""},
    {"Target", NULL, render_migration_target, false, ""},
    {"Mode", NULL, render_migration_mode, false, ""},
    {"Progress", NULL, render_migration_progress, false, ""},
    {"Reason", NULL, render_migration_reason, false, ""},
    AGE,
    {"Queue", NULL, render_migration_queue, true, ""},
    {"Result", NULL, render_migration_result, true, ""},
    END,
};
static const struct column pod_columns[] = {
    NAME,
    {"Ready", NULL, render_pod_ready, false, ""},
    {"Status", NULL, render_pod_status, false, ""},
    {"Restarts", NULL, render_pod_restarts, false, ""},
    AGE,
    {"IP", "/status/podIP", NULL, true, ""},
    {"Node", "/spec/nodeName", NULL, true, ""},
    END,
};
static const struct column node_columns[] = {
    NAME,
    {"Status", NULL, render_node_status, false, ""},
    {"Roles", NULL, render_node_roles, false, ""},
    AGE,
    {"Version", "/status/nodeInfo/kubeletVersion", NULL, false, ""},
    {"Internal-IP", NULL, render_node_address, true, ""},
    {"OS-Image", "/status/nodeInfo/osImage", NULL, true, ""},
    {"Kernel-Version", "/status/nodeInfo/kernelVersion", NULL, true, ""},
    END,
};
static const struct column namespace_columns[] = {
    NAME, {"Status", "/status/phase", NULL, false, ""}, AGE, END};
static const struct column event_columns[] = {
    {"Last Seen", NULL, render_event_seen, false, ""},
    {"Type", "/type", NULL, false, ""},
    {"Reason", "/reason", NULL, false, ""},
    {"Object", NULL, render_event_object, false, ""},
    {"Message", "/message", NULL, false, ""},
    {"Name", "/metadata/name", NULL, true, "name"},
    END,
};
static const struct column configmap_columns[] = {
    NAME, {"Data", NULL, render_data_count, false, ""}, AGE, END};
static const struct column secret_columns[] = {NAME,
                                               {"Type", "/type", NULL, false, ""},
                                               {"Data", NULL, render_data_count, false, ""},
                                               AGE,
                                               END};
static const struct column lease_columns[] = {
    NAME, {"Holder", "/spec/holderIdentity", NULL, false, ""}, AGE, END};
static const struct column pv_columns[] = {
    NAME,
    {"Capacity", "/spec/capacity/storage", NULL, false, ""},
    {"Access Modes", NULL, render_access_modes, false, ""},
    {"Reclaim Policy", "/spec/persistentVolumeReclaimPolicy", NULL, false, ""},
    {"Status", "/status/phase", NULL, false, ""},
    {"Claim", NULL, render_pv_claim, false, ""},
    {"StorageClass", "/spec/storageClassName", NULL, false, ""},
    AGE,
    END,
};
static const struct column pvc_columns[] = {
    NAME,
    {"Status", "/status/phase", NULL, false, ""},
    {"Volume", "/spec/volumeName", NULL, false, ""},
    {"Capacity", "/status/capacity/storage", NULL, false, ""},
    {"Access Modes", NULL, render_access_modes, false, ""},
    {"StorageClass", "/spec/storageClassName", NULL, false, ""},
    AGE,
    END,
};
static const struct column storage_class_columns[] = {
    NAME, {"Provisioner", "/provisioner", NULL, false, ""}, AGE, END};
static const struct column role_columns[] = {
    NAME, {"Created At", "/metadata/creationTimestamp", NULL, false, ""}, END};
static const struct column role_binding_columns[] = {
    NAME,
    {"Role", NULL, render_role_ref, false, ""},
    AGE,
    {"Users", NULL, render_users, true, ""},
    {"Groups", NULL, render_groups, true, ""},
    {"ServiceAccounts", NULL, render_accounts, true, ""},
    END,
};
static const struct column plain_columns[] = {NAME, AGE, END};

static const struct {
    const char *plural;
    const struct column *columns;
} tables[] = {
    {"virtualmachineinstances", vmi_columns},
    {"virtualmachineinstancemigrations", migration_columns},
    {"pods", pod_columns},
    {"nodes", node_columns},
    {"namespaces", namespace_columns},
    {"events", event_columns},
    {"configmaps", configmap_columns},
    {"secrets", secret_columns},
    {"leases", lease_columns},
    {"persistentvolumes", pv_columns},
    {"persistentvolumeclaims", pvc_columns},
    {"storageclasses", storage_class_columns},
    {"roles", role_columns},
    {"clusterroles", role_columns},
    {"rolebindings", role_binding_columns},
    {"clusterrolebindings", role_binding_columns},
};

static const struct column *columns_of(const struct api_resource *r)
{
    for (size_t i = 0; i < FERRY_COUNT(tables); i++) {
        if (ferry_streq(r->plural, tables[i].plural)) {
            return tables[i].columns;
        }
    }
    return plain_columns;
}

/* ---- columns of custom resource definitions ----------------------------------------------------
 */

/* Kinds that have columns of their own above show more than their definition says. */
static const yyjson_val *crd_columns_of(const struct api_resource *r)
{
    return columns_of(r) == plain_columns ? crds_columns(r) : NULL;
}

static void put_crd_definitions(struct ferry_buf *b, const yyjson_val *columns)
{
    size_t i, max;
    yyjson_val *c;

    ferry_buf_puts(b, "{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":"
                      "\"Name of the object\",\"priority\":0}");
    yyjson_arr_foreach((yyjson_val *)columns, i, max, c)
    {
        const char *name = api_json_str(c, "/name");

        ferry_buf_printf(b,
                         ",{\"name\":\"%s\",\"type\":\"string\",\"format\":\"\","
                         "\"description\":\"%s\",\"priority\":%d}",
                         name, name, (int)api_json_int(c, "/priority", 0));
    }
}

static void put_crd_cell(const struct cell *cell, const yyjson_val *column)
{
    const char *path = api_json_str(column, "/jsonPath"), *type = api_json_str(column, "/type");
    const yyjson_val *v = jsonpath_first(cell->object, path ? path : "");
    const char *text = yyjson_get_str((yyjson_val *)v);
    ferry_cleanup_free char *written = v && !text ? json_doc_val_text(v, 0, NULL) : NULL;

    if (ferry_streq(type, "date") && text) {
        render_since(cell, text);
    } else {
        ferry_buf_puts(cell->out, text ? text : written ? written : "");
    }
}

static void put_crd_cells(struct ferry_buf *b, const yyjson_val *object, const yyjson_val *columns,
                          int64_t now_ms)
{
    const char *name = api_json_str(object, "/metadata/name");
    size_t i, max;
    yyjson_val *c;

    ferry_buf_json(b, name ? name : "");
    yyjson_arr_foreach((yyjson_val *)columns, i, max, c)
    {
        ferry_cleanup_buf struct ferry_buf text = {0};

        put_crd_cell(&(struct cell){.object = object, .now_ms = now_ms, .out = &text}, c);
        ferry_buf_puts(b, ",");
        ferry_buf_json(b, text.data ? text.data : "");
    }
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

void table_begin(struct ferry_buf *b, const struct api_resource *r, uint64_t version)
{
    char metadata[64];

    snprintf(metadata, sizeof(metadata), "{\"resourceVersion\":\"%llu\"}",
             (unsigned long long)version);
    table_begin_list(b, r, metadata);
}

void table_begin_list(struct ferry_buf *b, const struct api_resource *r, const char *metadata)
{
    ferry_buf_printf(b,
                     "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":"
                     "%s,\"columnDefinitions\":[",
                     metadata);
    if (crd_columns_of(r)) {
        put_crd_definitions(b, crd_columns_of(r));
        ferry_buf_puts(b, "],\"rows\":[");
        return;
    }
    for (const struct column *c = columns_of(r); c->name; c++) {
        ferry_buf_printf(b,
                         "%s{\"name\":\"%s\",\"type\":\"string\",\"format\":\"%s\","
                         "\"description\":\"%s of the %s\",\"priority\":%d}",
                         c == columns_of(r) ? "" : ",", c->name, c->format, c->name, r->kind_name,
                         c->wide ? 1 : 0);
    }
    ferry_buf_puts(b, "],\"rows\":[");
}

static void put_metadata(struct ferry_buf *b, const yyjson_val *object)
{
    yyjson_val *meta = yyjson_obj_get((yyjson_val *)object, "metadata");
    ferry_cleanup_free char *text = meta ? json_doc_val_text(meta, 0, NULL) : NULL;

    ferry_buf_printf(b,
                     ",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                     "\"meta.k8s.io/v1\",\"metadata\":%s}",
                     text ? text : "{}");
}

void table_row(struct ferry_buf *b, const struct api_resource *r, const yyjson_val *object,
               const char *json, const struct table_move *move, enum table_include include,
               int64_t now_ms, bool first)
{
    ferry_buf_puts(b, first ? "{\"cells\":[" : ",{\"cells\":[");
    if (crd_columns_of(r)) {
        put_crd_cells(b, object, crd_columns_of(r), now_ms);
    }
    for (const struct column *c = columns_of(r); c->name && !crd_columns_of(r); c++) {
        ferry_cleanup_buf struct ferry_buf text = {0};
        struct cell cell = {.object = object, .move = move, .now_ms = now_ms, .out = &text};

        if (c->render) {
            c->render(&cell);
        } else {
            ferry_buf_puts(&text, text_at(&cell, c->pointer));
        }
        ferry_buf_puts(b, c == columns_of(r) ? "" : ",");
        ferry_buf_json(b, text.data ? text.data : "");
    }
    ferry_buf_puts(b, "]");
    if (include == TABLE_METADATA) {
        put_metadata(b, object);
    } else if (include == TABLE_OBJECT) {
        ferry_buf_printf(b, ",\"object\":%s", json);
    }
    ferry_buf_puts(b, "}");
}

void table_end(struct ferry_buf *b)
{
    ferry_buf_puts(b, "]}");
}
