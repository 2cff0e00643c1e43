#include "handler/serve/node_pod.h"

#include <string.h>

#include "api/wire/wire_phase.h"
#include "base/str.h"

bool node_pod_runs(const struct api_object *pod)
{
    return wire_phase_is(pod->u.pod.phase, PHASE_RUNNING);
}

char *node_pod_socket(const struct node_api_config *cfg, const struct api_object *pod)
{
    return ferry_asprintf("%s/%s/launcher.sock", cfg->node->pods_dir, pod->meta->uid);
}

struct launcher_at node_pod_launcher(const char *socket, const struct api_object *pod)
{
    return (struct launcher_at){.socket = socket, .vmi = wire_pod_vmi(&pod->u.pod)};
}

static bool is_of(const struct api_object *pod, const char *ns, const char *name)
{
    const struct api_meta *m = pod->meta;

    return node_pod_runs(pod) && wire_pod_vmi(&pod->u.pod) && ferry_streq(m->namespace_, ns) &&
           ferry_streq(m->owners[0].kind, "VirtualMachineInstance") &&
           ferry_streq(m->owners[0].name, name);
}

int node_pod_of_vm(const struct node_api_config *cfg, const char *vm, struct api_object **ret,
                   struct ferry_error *err)
{
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(cfg->node->pods);
    const char *slash = strchr(vm, '/');
    ferry_cleanup_free char *ns = slash ? ferry_strndup(vm, (size_t)(slash - vm)) : NULL;

    for (size_t i = 0; slash && i < pods.n; i++) {
        if (is_of(pods.items[i], ns, slash + 1)) {
            *ret = api_object_ref(pods.items[i]);
            return 0;
        }
    }
    return ferry_fail(err, FERRY_NOT_FOUND, "no VM '%.200s' (NAMESPACE/NAME) runs on this node",
                      vm);
}
