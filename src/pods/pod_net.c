#include "pods/pod_net.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/guest_nic.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_networks.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "pods/pod_net_plan.h"
#include "pods/pod_netns.h"

enum { COMMANDS_S = 20 };

static char *file_of(const struct sandbox_host *h, const char *uid, const char *name)
{
    return ferry_asprintf("%s/%s/%s", h->pods_dir, uid, name);
}

/* Runs the lines by one `ip`, in the network namespace at `netns` (NULL: here). */
static int run_batch(const struct sandbox_host *h, const char *uid, const struct ferry_buf *lines,
                     const char *netns, struct ferry_error *err)
{
    ferry_cleanup_free char *batch = file_of(h, uid, "net.batch");
    ferry_cleanup_free char *said = file_of(h, uid, "net.log");
    const char *const argv[] = {"ip", "-batch", batch, NULL};
    ferry_cleanup_fd int out = open(said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_t pid = 0;
    int code = 0;
    int rc = out < 0 ? ferry_fail(err, FERRY_RETRY, "cannot write %s", said)
                     : ferry_write_file(batch, lines->data, lines->len, 0600, err);

    if (rc == 0) {
        rc = ferry_spawn(&(struct ferry_spawn){.argv = argv, .out_fd = out, .netns = netns}, &pid,
                         err);
    }
    if (rc == 0) {
        rc = ferry_wait_child(pid, ferry_now_ns() + COMMANDS_S * FERRY_NS_PER_S, &code, err);
    }
    if (rc == 0 && code != 0) {
        ferry_cleanup_buf struct ferry_buf text = {0};

        ferry_read_file(said, 4096, &text, NULL);
        rc = ferry_fail(err, FERRY_RETRY, "ip ended with %d: %.200s", code,
                        text.data ? text.data : "");
    }
    unlink(batch);
    return rc;
}

static int definition(struct kube_client *client, const struct wire_network *net,
                      struct api_nad *ret, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    int rc = kube_client_get(client, kube_ref(API_KIND_NETWORK, net->ns, net->name), &o, err);

    rc = rc < 0 ? rc : api_nad_parse(o->u.network.config, ret, err);
    return rc < 0 ? ferry_wrap(err, "NetworkAttachmentDefinition %s/%s", net->ns, net->name) : 0;
}

/* An attempt that ended in the middle leaves the pair, and perhaps more. */
static void undo(const struct sandbox_host *h, const char *uid, const char *netns,
                 const struct wire_network *net)
{
    char port[API_NAD_LINK_NAME];
    ferry_cleanup_buf struct ferry_buf pair = {0}, bridge = {0}, tap = {0};

    pod_net_port(uid, net->tap, port);
    if (if_nametoindex(port) == 0) {
        return;
    }
    ferry_buf_printf(&pair, "link del dev %s\n", port);
    ferry_buf_printf(&bridge, "link del dev br%u\n", net->tap);
    ferry_buf_printf(&tap, "link del dev tap%u\n", net->tap);
    run_batch(h, uid, &pair, NULL, NULL);
    run_batch(h, uid, &bridge, netns, NULL);
    run_batch(h, uid, &tap, netns, NULL);
}

static int attach_one(struct kube_client *client, const struct sandbox_host *h, const char *uid,
                      pid_t pid, const struct wire_network *net, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf on_host = {0}, in_pod = {0};
    ferry_cleanup_free char *dir = file_of(h, uid, "");
    ferry_cleanup_free char *netns = pod_netns_path(dir);
    struct api_nad nad;
    int rc = definition(client, net, &nad, err);

    if (rc < 0) {
        return rc;
    }
    if (!netns) { /* of an older version, whose agent was replaced at that moment */
        netns = ferry_asprintf("/proc/%d/ns/net", (int)pid);
    }
    const struct pod_net_place place = {.pod_uid = uid,
                                        .pid = pid,
                                        .uid = h->vm_uid,
                                        .gid = h->vm_gid,
                                        .bridge_exists = if_nametoindex(nad.link) != 0};
    undo(h, uid, netns, net);
    rc = pod_net_plan(net, &nad, &place, &on_host, &in_pod, err);
    rc = rc < 0 ? rc : run_batch(h, uid, &on_host, NULL, err);
    rc = rc < 0 ? rc : run_batch(h, uid, &in_pod, netns, err);
    if (rc == 0) {
        ferry_info("guest network attached", F_STR("pod", uid), F_INT("tap", net->tap),
                   F_STR("bridge", nad.link));
    }
    return rc;
}

int pod_net_attach(struct kube_client *client, const struct sandbox_host *host,
                   const struct api_object *pod, struct ferry_error *err)
{
    const char *uid = pod->meta->uid;
    struct wire_networks nets;
    int rc =
        wire_networks_read(api_map_get(&pod->meta->annotations, ANNOTATION_NETWORKS), &nets, err);

    for (size_t i = 0; rc == 0 && i < nets.n; i++) {
        ferry_cleanup_free char *name = ferry_asprintf("net%u", nets.list[i].tap);
        ferry_cleanup_free char *mark = file_of(host, uid, name);
        pid_t pid = sandbox_pid(host, uid);

        if (access(mark, F_OK) == 0) {
            continue;
        }
        rc = pid ? attach_one(client, host, uid, pid, &nets.list[i], err)
                 : ferry_fail(err, FERRY_RETRY, "the sandbox of pod %s is not there", uid);
        rc = rc < 0 ? rc : ferry_write_file(mark, "", 0, 0600, err);
    }
    return rc;
}
