/* Which kinds are served, where. */
#include <ctype.h>
#include <string.h>

#include "api/object.h"
#include "base/str.h"

#define KV "kubevirt.io", "v1"
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
