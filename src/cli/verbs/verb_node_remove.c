/* node remove: a host is no node of the site any more. */
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/session.h"
#include "cli/verbs/verbs.h"

enum { POD_END_S = 60 };

/* How many VMs are on the node. */
static int count_vms(struct session *s, const char *node, size_t *ret, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list vmis = {0};

    if (kube_client_list(s->client, kube_ref(API_KIND_VMI, NULL, NULL), NULL, &vmis, err) < 0) {
        return session_explain(err);
    }
    *ret = 0;
    for (size_t i = 0; i < vmis.n; i++) {
        const struct api_vmi *v = &vmis.items[i]->u.vmi;
        bool over = wire_vmi_is_over(v);

        *ret += !over && ferry_streq(v->node_name, node);
    }
    return 0;
}

static int count_pods(struct session *s, const char *node, size_t *ret, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list pods = {0};

    if (kube_client_list(s->client, kube_ref(API_KIND_POD, NULL, NULL), NULL, &pods, err) < 0) {
        return session_explain(err);
    }
    *ret = 0;
    for (size_t i = 0; i < pods.n; i++) {
        const struct api_pod *p = &pods.items[i]->u.pod;
        bool over = wire_pod_is_over(p);

        *ret += ferry_streq(p->node_name, node) && (p->meta.deleted_ms || !over);
    }
    return 0;
}

/* A pod that ends needs its node to say so: without it, it and its VM would be there for ever. */
static int wait_for_pods(struct session *s, const char *node, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + POD_END_S * FERRY_NS_PER_S;

    for (;;) {
        size_t n = 0;
        int rc = count_pods(s, node, &n, err);

        if (rc < 0 || n == 0) {
            return rc;
        }
        if (ferry_signals_wait(ferry_now_ns() + FERRY_NS_PER_S / 5)) {
            return ferry_fail(err, FERRY_CANCELLED, "interrupted: %s is still a node", node);
        }
        if (ferry_ms_left(deadline) == 0) {
            return ferry_fail(err, FERRY_CONFLICT,
                              "%zu pod%s on %s did not end: 'kubectl get pods -A -o wide' shows "
                              "them; --force if the host is gone",
                              n, n == 1 ? "" : "s", node);
        }
    }
}

int verb_node_remove(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    bool force = false;
    const struct ferry_option options[] = {
        {"force", 0, FERRY_OPTION_FLAG, &force, NULL,
         "also while virtual machines or pods are on it"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry node remove",
        .usage = "[OPTION]... NODE",
        .summary =
            "Takes a node out of the site: its object goes, and all its certificates end at\n"
            "once. Drain it first. It can join again with a new token.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "a node"};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    size_t vms = 0;
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0 || (rc = count_vms(&s, name, &vms, err)) < 0) {
        return rc;
    }
    if (vms && !force) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "%zu virtual machine%s on %s: 'ferry drain %s' first, or --force", vms,
                          vms == 1 ? " is" : "s are", name, name);
    }
    ferry_signals_block();
    if (!force && (rc = wait_for_pods(&s, name, err)) < 0) {
        return rc;
    }
    rc = kube_client_delete(s.client, kube_ref(API_KIND_NODE, NULL, name), NULL, err);
    if (rc == -FERRY_NOT_FOUND) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "there is no node '%s'; 'ferry node list' shows them", name);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    printf("node %s is removed; its certificates are worth nothing any more\n", name);
    return FERRY_EXIT_OK;
}
