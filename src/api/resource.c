/* Which kinds are served, where. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/object.h"
#include "base/count.h"
#include "base/str.h"
#include "base/suggest.h"

#define KV "kubevirt.io", "v1"
#define SIZES "instancetype.kubevirt.io", "v1beta1"
#define RBAC "rbac.authorization.k8s.io", "v1"
static const struct api_resource resources[] = {
    /* group, version, plural, singular, kind name, short names, kind, namespaced, status, shared,
     * foreign */
    {"", "v1", "namespaces", "namespace", "Namespace", "ns", API_KIND_NAMESPACE, false, true,
     false},
    {"", "v1", "nodes", "node", "Node", "no", API_KIND_NODE, false, true, false},
    {"", "v1", "pods", "pod", "Pod", "po", API_KIND_POD, true, true, false},
    {"", "v1", "events", "event", "Event", "ev", API_KIND_EVENT, true, false, false},
    {"", "v1", "configmaps", "configmap", "ConfigMap", "cm", API_KIND_CONFIG_MAP, true, false,
     false},
    {"", "v1", "secrets", "secret", "Secret", "", API_KIND_SECRET, true, false, false},
    {"", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", "pv", API_KIND_VOLUME,
     false, true, false},
    {"", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
     API_KIND_CLAIM, true, true, false},
    {"", "v1", "resourcequotas", "resourcequota", "ResourceQuota", "quota", API_KIND_QUOTA, true,
     true, false},
    {"storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass", "sc",
     API_KIND_STORAGE_CLASS, false, false, false},
    {"cdi.kubevirt.io", "v1beta1", "storageprofiles", "storageprofile", "StorageProfile", "",
     API_KIND_STORAGE_PROFILE, false, true, false, true},
    {"k8s.cni.cncf.io", "v1", "network-attachment-definitions", "network-attachment-definition",
     "NetworkAttachmentDefinition", "net-attach-def", API_KIND_NETWORK, true, false, false, true},
    {"coordination.k8s.io", "v1", "leases", "lease", "Lease", "", API_KIND_LEASE, true, false,
     false},
    {KV, "virtualmachineinstances", "virtualmachineinstance", "VirtualMachineInstance", "vmi,vmis",
     API_KIND_VMI, true, false, true},
    {KV, "virtualmachineinstancemigrations", "virtualmachineinstancemigration",
     "VirtualMachineInstanceMigration", "vmim,vmims", API_KIND_MIGRATION, true, true, false},
    {KV, "virtualmachines", "virtualmachine", "VirtualMachine", "vm,vms", API_KIND_VM, true, true,
     false},
    {KV, "kubevirts", "kubevirt", "KubeVirt", "kv,kvs", API_KIND_KUBEVIRT, true, true, false},
    {"migrations.kubevirt.io", "v1alpha1", "migrationpolicies", "migrationpolicy",
     "MigrationPolicy", "", API_KIND_POLICY, false, true, false},
    {SIZES, "virtualmachineinstancetypes", "virtualmachineinstancetype",
     "VirtualMachineInstancetype", "vminstancetype,vminstancetypes,vmf,vmfs", API_KIND_NONE, true,
     false, false},
    {SIZES, "virtualmachineclusterinstancetypes", "virtualmachineclusterinstancetype",
     "VirtualMachineClusterInstancetype", "vmclusterinstancetype,vmclusterinstancetypes,vmcf,vmcfs",
     API_KIND_NONE, false, false, false},
    {SIZES, "virtualmachinepreferences", "virtualmachinepreference", "VirtualMachinePreference",
     "vmpref,vmprefs,vmp,vmps", API_KIND_NONE, true, false, false},
    {SIZES, "virtualmachineclusterpreferences", "virtualmachineclusterpreference",
     "VirtualMachineClusterPreference", "vmcp,vmcps", API_KIND_NONE, false, false, false},
    {"apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", "",
     API_KIND_NONE, true, false, false},
    /* There are none of these: their definitions refuse each, and say what there is instead. */
    {KV, "virtualmachineinstancereplicasets", "virtualmachineinstancereplicaset",
     "VirtualMachineInstanceReplicaSet", "vmirs,vmirss", API_KIND_NONE, true, false, false},
    {KV, "virtualmachineinstancepresets", "virtualmachineinstancepreset",
     "VirtualMachineInstancePreset", "vmipreset,vmipresets", API_KIND_NONE, true, false, false},
    {"pool.kubevirt.io", "v1beta1", "virtualmachinepools", "virtualmachinepool",
     "VirtualMachinePool", "vmpool,vmpools", API_KIND_NONE, true, false, false},
    {"pool.kubevirt.io", "v1alpha1", "virtualmachinepools", "virtualmachinepool",
     "VirtualMachinePool", "vmpool,vmpools", API_KIND_NONE, true, false, false},
    {RBAC, "roles", "role", "Role", "", API_KIND_NONE, true, false, false},
    {RBAC, "clusterroles", "clusterrole", "ClusterRole", "", API_KIND_NONE, false, false, false},
    {RBAC, "rolebindings", "rolebinding", "RoleBinding", "", API_KIND_NONE, true, false, false},
    {RBAC, "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding", "", API_KIND_NONE,
     false, false, false},
    {.plural = NULL},
};

const struct api_resource *api_resources(void)
{
    return resources;
}

const struct api_resource *api_resource_of_kind(enum api_kind kind)
{
    for (const struct api_resource *r = resources; kind != API_KIND_NONE && r->plural; r++) {
        if (r->kind == kind) {
            return r;
        }
    }
    return NULL;
}

const struct api_resource *api_resource_find(const char *group, const char *version,
                                             const char *plural)
{
    for (const struct api_resource *r = resources; r->plural; r++) {
        if (ferry_streq(r->group, group) && ferry_streq(r->version, version) &&
            ferry_streq(r->plural, plural)) {
            return r;
        }
    }
    return NULL;
}

/* "vmi", "virtualmachineinstances": what people type instead of the kind. */
static bool is_called(const struct api_resource *r, const char *word)
{
    ferry_cleanup_free char *names = ferry_strdup(r->short_names);
    char *rest = NULL;

    if (strcasecmp(word, r->plural) == 0 || strcasecmp(word, r->singular) == 0) {
        return true;
    }
    for (char *n = strtok_r(names, ",", &rest); n; n = strtok_r(NULL, ",", &rest)) {
        if (strcasecmp(word, n) == 0) {
            return true;
        }
    }
    return false;
}

/* The kind that was meant, or NULL. */
static const struct api_resource *nearest(const char *kind)
{
    const char *names[FERRY_COUNT(resources)];
    size_t n = 0;

    for (const struct api_resource *r = resources; r->plural; r++) {
        if (is_called(r, kind)) {
            return r;
        }
        names[n++] = r->kind_name;
    }
    const char *near = ferry_suggest(kind, names, n);
    for (const struct api_resource *r = resources; near && r->plural; r++) {
        if (r->kind_name == near) {
            return r;
        }
    }
    return NULL;
}

static bool has_version(const struct api_resource *r, const char *api_version)
{
    size_t n = strlen(r->group);

    return n == 0 ? ferry_streq(api_version, r->version)
                  : strncmp(api_version, r->group, n) == 0 && api_version[n] == '/' &&
                        ferry_streq(api_version + n + 1, r->version);
}

int api_resource_of_manifest(const yyjson_val *root, const struct api_resource **ret,
                             struct ferry_error *err)
{
    const char *kind = api_json_str(root, "/kind");
    const char *version = api_json_str(root, "/apiVersion");

    if (ferry_str_empty(kind) || ferry_str_empty(version)) {
        return ferry_fail(err, FERRY_INVALID, "%s: required",
                          ferry_str_empty(kind) ? "kind" : "apiVersion");
    }
    for (const struct api_resource *r = resources; r->plural; r++) {
        if (strcmp(r->kind_name, kind) == 0 && has_version(r, version)) {
            *ret = r;
            return 0;
        }
    }
    const struct api_resource *r = nearest(kind);
    const char *slash = r && *r->group ? "/" : "";
    if (r && strcmp(r->kind_name, kind) == 0) {
        return ferry_fail(err, FERRY_INVALID, "apiVersion: %s is in %s%s%s, not in %.100s", kind,
                          r->group, slash, r->version, version);
    }
    if (r) {
        return ferry_fail(err, FERRY_INVALID,
                          "kind: there is no %.100s in %.100s; did you mean %s (%s%s%s)?", kind,
                          version, r->kind_name, r->group, slash, r->version);
    }
    return ferry_fail(err, FERRY_INVALID, "kind: there is no %.100s in %.100s", kind, version);
}

static void put_segment(struct ferry_buf *b, const char *s)
{
    ferry_buf_puts(b, "/");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (isalnum(c) || strchr("-._~", c)) {
            ferry_buf_append(b, s, 1);
        } else {
            ferry_buf_printf(b, "%%%02X", c);
        }
    }
}

char *api_path(const struct api_resource *r, const char *ns, const char *name,
               const char *subresource)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, *r->group ? "/apis" : "/api");
    if (*r->group) {
        put_segment(&b, r->group);
    }
    put_segment(&b, r->version);
    if (r->namespaced && ns) {
        ferry_buf_puts(&b, "/namespaces");
        put_segment(&b, ns);
    }
    put_segment(&b, r->plural);
    if (name) {
        put_segment(&b, name);
    }
    if (name && subresource) {
        put_segment(&b, subresource);
    }
    return ferry_buf_take(&b);
}
