#include "handler/node/node_report.h"

#include <string.h>
#include <yyjson.h>

#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

#define OUR_KUBELET "ferry-"

struct label {
    const char *key, *value;
};

enum { LABELS = 4 };

static void labels_of(const struct node_facts *f, struct label ret[LABELS])
{
    ret[0] = (struct label){LABEL_HOSTNAME, f->name};
    ret[1] = (struct label){LABEL_OS, "linux"};
    ret[2] = (struct label)
    {
        LABEL_ARCH,
#if defined(__aarch64__)
            "arm64"
#else
            "amd64"
#endif
    };
    ret[3] = (struct label){LABEL_SCHEDULABLE, "true"};
}

char *node_report_os_image(const char *os_release)
{
    static const char key[] = "PRETTY_NAME=";
    const char *line = os_release, *end;

    for (; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (!ferry_str_starts(line, key)) {
            continue;
        }
        const char *value = line + strlen(key);
        char quote[] = {*value == '"' || *value == '\'' ? *value++ : '\n', '\n', '\0'};
        return ferry_strndup(value, strcspn(value, quote));
    }
    return ferry_strdup("Linux");
}

char *node_report_manifest(const struct node_facts *f)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);
    struct label labels[LABELS];

    yyjson_mut_obj_add_str(doc, o, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, o, "kind", "Node");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, o, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", f->name);
    yyjson_mut_val *map = yyjson_mut_obj_add_obj(doc, meta, "labels");
    labels_of(f, labels);
    for (size_t i = 0; i < LABELS; i++) {
        yyjson_mut_obj_add_str(doc, map, labels[i].key, labels[i].value);
    }
    yyjson_mut_obj_add_obj(doc, o, "spec");
    return json_doc_take(doc);
}

static void put_in_map(struct api_patch *p, const struct api_map *map, bool *made,
                       const char *where, const char *key, const char *value)
{
    ferry_cleanup_free char *escaped = api_pointer_escape(key);
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", where, escaped);

    if (ferry_streq(api_map_get(map, key), value)) {
        return;
    }
    if (map->n == 0 && !*made) {
        api_patch_add_raw(p, where, "{}");
        *made = true;
    }
    api_patch_add_str(p, path, value);
}

/* What was never said need not be taken back. */
static void put_or_clear(struct api_patch *p, const struct api_meta *meta, bool *made,
                         const char *key, const char *value)
{
    if (!ferry_str_empty(value) || !ferry_str_empty(api_map_get(&meta->annotations, key))) {
        put_in_map(p, &meta->annotations, made, "/metadata/annotations", key, value ? value : "");
    }
}

/* Those of an earlier CPU, QEMU or libvirt go. */
static void put_cpu(struct api_patch *p, const struct api_meta *meta, bool *made,
                    const struct node_cpu *cpu)
{
    for (size_t i = 0; i < cpu->n; i++) {
        put_in_map(p, &meta->labels, made, "/metadata/labels", cpu->labels[i], "true");
    }
    for (size_t i = 0; i < meta->labels.n; i++) {
        const char *key = meta->labels.items[i].key;

        if (node_cpu_is_kind(key) && !node_cpu_has(cpu, key)) {
            ferry_cleanup_free char *escaped = api_pointer_escape(key);
            ferry_cleanup_free char *path = ferry_asprintf("/metadata/labels/%s", escaped);

            api_patch_remove(p, path);
        }
    }
}

struct api_patch *node_report_metadata(const struct api_object *node, const struct node_facts *f,
                                       int64_t now_ms)
{
    struct api_patch *p = api_patch_new();
    const struct api_meta *meta = node->meta;
    struct label labels[LABELS];
    char now[FERRY_RFC3339_SIZE];
    bool made = false;

    api_patch_test_str(p, "/metadata/uid", meta->uid);
    labels_of(f, labels);
    for (size_t i = 0; i < LABELS; i++) {
        put_in_map(p, &meta->labels, &made, "/metadata/labels", labels[i].key, labels[i].value);
    }
    if (f->cpu) {
        put_cpu(p, meta, &made, f->cpu);
    }
    made = false;
    put_in_map(p, &meta->annotations, &made, "/metadata/annotations", ANNOTATION_HEARTBEAT,
               ferry_rfc3339(now_ms, now));
    /* An agent that was just started may not know yet; one in trouble knows that there is none. */
    if (!ferry_str_empty(f->migration_address) || !ferry_str_empty(f->migration_trouble)) {
        put_or_clear(p, meta, &made, ANNOTATION_MIGRATION_ADDRESS, f->migration_address);
    }
    put_or_clear(p, meta, &made, ANNOTATION_MIGRATION_NETWORK, f->migration_network);
    put_or_clear(p, meta, &made, ANNOTATION_MIGRATION_TROUBLE, f->migration_trouble);
    return p;
}

/* ---- status -----------------------------------------------------------------------------------
 */

static void put_resources(struct api_patch *p, const struct node_facts *f, const char *path)
{
    /* As KubeVirt's device plugin has it: any number of guests may share the device. */
    const char *kvm = f->kvm ? ",\"" RESOURCE_KVM "\":\"1000\"" : "";
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"cpu\":\"%lld\",\"memory\":\"%lldKi\",\"pods\":\"%lld\"%s}", (long long)f->cpus,
        (long long)(f->memory_bytes / 1024), (long long)f->pods, kvm);

    api_patch_add_raw(p, path, json);
}

static void put_addresses(struct api_patch *p, const struct node_facts *f)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "[{\"type\":\"InternalIP\",\"address\":\"%s\"},{\"type\":\"Hostname\",\"address\":\"%s\"}]",
        f->address, f->name);

    api_patch_add_raw(p, "/status/addresses", json);
}

/* Where kubelet says the same, so that the API server finds every node's API alike. */
static void put_endpoint(struct api_patch *p, const struct api_object *node,
                         const struct node_facts *f)
{
    ferry_cleanup_free char *json =
        ferry_asprintf("{\"kubeletEndpoint\":{\"Port\":%d}}", f->api_port);

    if (f->api_port) {
        api_patch_add_raw(p, "/status/daemonEndpoints", json);
    } else if (yyjson_ptr_get((yyjson_val *)node->root, "/status/daemonEndpoints")) {
        api_patch_remove(p, "/status/daemonEndpoints");
    }
}

static void put_info(struct api_patch *p, const struct node_facts *f)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    ferry_cleanup_free char *kubelet = ferry_asprintf(OUR_KUBELET "%s", f->version);
    struct label labels[LABELS];

    labels_of(f, labels);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, o, "architecture", labels[2].value);
    yyjson_mut_obj_add_str(doc, o, "operatingSystem", "linux");
    yyjson_mut_obj_add_str(doc, o, "kernelVersion", f->kernel);
    yyjson_mut_obj_add_str(doc, o, "osImage", f->os_image);
    yyjson_mut_obj_add_str(doc, o, "containerRuntimeVersion", "bubblewrap://");
    yyjson_mut_obj_add_str(doc, o, "kubeletVersion", kubelet);
    ferry_cleanup_free char *json = json_doc_take(doc);
    api_patch_add_raw(p, "/status/nodeInfo", json);
}

static void put_ready(struct api_patch *p, const struct api_node *n, int64_t now_ms)
{
    size_t i = 0;
    char now[FERRY_RFC3339_SIZE], since[FERRY_RFC3339_SIZE];

    while (i < n->conditions.n && !ferry_streq(n->conditions.items[i].type, CONDITION_READY)) {
        i++;
    }
    const struct api_condition *old = i < n->conditions.n ? &n->conditions.items[i] : NULL;
    bool same = old && ferry_streq(old->status, "True") && old->last_transition_ms;
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"HandlerReady\",\"message\":"
        "\"ferry-handler reports\",\"lastHeartbeatTime\":\"%s\",\"lastTransitionTime\":\"%s\"}",
        ferry_rfc3339(now_ms, now), ferry_rfc3339(same ? old->last_transition_ms : now_ms, since));
    ferry_cleanup_free char *path =
        old ? ferry_asprintf("/status/conditions/%zu", i) : ferry_strdup("/status/conditions/-");
    if (old) {
        api_patch_remove(p, path);
    } else if (n->conditions.n == 0) {
        api_patch_add_raw(p, "/status/conditions", "[]");
    }
    api_patch_add_raw(p, path, json);
}

bool node_report_is_ours(const struct api_object *node)
{
    const char *kubelet = api_json_str(node->root, "/status/nodeInfo/kubeletVersion");

    return ferry_str_empty(kubelet) || ferry_str_starts(kubelet, OUR_KUBELET);
}

struct api_patch *node_report_status(const struct api_object *node, const struct node_facts *f,
                                     int64_t now_ms)
{
    if (!node_report_is_ours(node)) {
        return NULL;
    }
    struct api_patch *p = api_patch_new();
    api_patch_test_str(p, "/metadata/resourceVersion", node->meta->resource_version);
    if (!yyjson_obj_get((yyjson_val *)node->root, "status")) {
        api_patch_add_raw(p, "/status", "{}");
    }
    put_resources(p, f, "/status/capacity");
    put_resources(p, f, "/status/allocatable");
    put_addresses(p, f);
    put_endpoint(p, node, f);
    put_info(p, f);
    put_ready(p, &node->u.node, now_ms);
    return p;
}
