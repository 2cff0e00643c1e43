/* Theory of operation.
 *
 * Two informers follow the VMIs that live here and those that are coming here, a third the pods of
 * this node. Their changes put "NAMESPACE/NAME" into the work queue, and so does what launchers
 * tell by themselves (follow.h); while something is under way a pass asks to be repeated. Each pass
 * (look.h) reads VMI, launcher and relay afresh and takes the next step. What is remembered between
 * looks may be lost without harm, so a restart at any moment changes nothing for a running move.
 *
 * The key SWEEP makes the relay forget moves that this node has no part in any more: those that
 * ended while the handler was away, and sources whose VMI has left for its new node. The key
 * NETWORK brings the migration network to what the site has configured, REMOVED the relay to which
 * nodes are no longer the site's. */
#include "handler/handler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/relay_client.h"
#include "handler/move/memory_map.h"
#include "handler/move/pass.h"
#include "handler/node/cpu_probe.h"
#include "handler/node/heartbeat.h"
#include "handler/node/migration_net.h"
#include "handler/node/removed_nodes.h"
#include "handler/node/renewal.h"
#include "handler/owner/owner_pass.h"
#include "handler/serve/node_api.h"
#include "handler/source/source_pass.h"
#include "handler/target/target_pass.h"
#include "kube/queue.h"

enum {
    WORKERS = 8,
    SWEEP_MS = 10000,
    SWEEP_BUSY_MS = 200,
    NETWORK_MS = 10000,
    NETWORK_TROUBLE_MS = 2000,
    REMOVED_MS = 5000,
    REMOVED_TROUBLE_MS = 1000,
    /* After a write the cache gets this long to show it before the old object is used again. */
    CACHE_LAG_MS = 1000,
    CACHE_LOOK_MS = 20,
};

#define SWEEP "*sweep*"
#define NETWORK "*network*"
#define REMOVED "*removed*"

struct handler {
    struct pass_node node;
    struct kube_informer *here, *coming, *pods;
    struct kube_queue *queue;
    struct kube_workers *workers;
    struct heartbeat *heartbeat;
    struct cpu_probe *cpu;
    struct migration_net *network;
    char network_told[MIGRATION_NET_TEXT]; /* its trouble; the key's worker's own */
    struct handler_config cfg;
    struct node_api *api; /* the sweeping worker's while workers run, as is `renewal` */
    struct renewal renewal;
    struct removed_nodes removed; /* its key's worker's own */
    struct memory_map *memories;
};

/* ---- what comes in ----------------------------------------------------------------------------
 */

static void enqueue(struct handler *h, const char *ns, const char *name)
{
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s", ns ? ns : "", name);

    kube_queue_add(h->queue, key, KUBE_PRIORITY_USER);
}

static void on_vmi(void *ctx, struct api_object *old, struct api_object *now)
{
    struct handler *h = ctx;
    const struct api_meta *m = now ? now->meta : old->meta;

    enqueue(h, m->namespace_, m->name);
    if (!now) {
        kube_queue_add(h->queue, SWEEP, KUBE_PRIORITY_USER);
    }
}

static void on_pod(void *ctx, struct api_object *old, struct api_object *now)
{
    const struct api_meta *m = now ? now->meta : old->meta;

    for (size_t i = 0; i < m->n_owners; i++) {
        if (ferry_streq(m->owners[i].kind, "VirtualMachineInstance")) {
            enqueue(ctx, m->namespace_, m->owners[i].name);
        }
    }
}

/* A launcher had something to say. */
static void on_launcher(void *ctx, const char *key)
{
    struct handler *h = ctx;

    kube_queue_add(h->queue, key, KUBE_PRIORITY_USER);
}

/* ---- looks ------------------------------------------------------------------------------------
 */

static unsigned long long version_of(const struct api_object *o)
{
    return o ? strtoull(o->meta->resource_version ? o->meta->resource_version : "", NULL, 10) : 0;
}

/* A pod of the VMI on this node that is not over, or NULL. */
static struct api_object *live_pod(struct handler *h, const char *ns, const char *vmi_name,
                                   const char *vmi_uid)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(h->pods);

    for (size_t i = 0; i < all.n; i++) {
        const struct api_pod *p = &all.items[i]->u.pod;
        bool ours = vmi_uid && ferry_streq(wire_pod_vmi(p), vmi_uid);

        for (size_t k = 0; k < p->meta.n_owners && !ours && vmi_name; k++) {
            ours = ferry_streq(p->meta.namespace_, ns) &&
                   ferry_streq(p->meta.owners[k].kind, "VirtualMachineInstance") &&
                   ferry_streq(p->meta.owners[k].name, vmi_name);
        }
        if (ours && wire_phase_is(p->phase, PHASE_RUNNING)) {
            return api_object_ref(all.items[i]);
        }
    }
    return NULL;
}

/* The VMI as the newer of the two caches has it. One that is in neither but still has a pod here
 * is leaving: it is asked for by name. */
static int find_vmi(struct handler *h, const char *ns, const char *name, struct api_object **ret,
                    struct ferry_error *err)
{
    api_cleanup_object struct api_object *a = kube_informer_get(h->here, ns, name);
    api_cleanup_object struct api_object *b = kube_informer_get(h->coming, ns, name);
    api_cleanup_object struct api_object *pod = a || b ? NULL : live_pod(h, ns, name, NULL);

    if (pod) {
        int rc = kube_client_get(h->node.client, kube_ref(API_KIND_VMI, ns, name), ret, err);

        return rc == -FERRY_NOT_FOUND ? 0 : rc;
    }
    *ret = version_of(b) > version_of(a) ? ferry_take_ptr(b) : ferry_take_ptr(a);
    return 0;
}

static void ask_again(struct kube_again *again, int64_t after_ms)
{
    *again = (struct kube_again){
        .wanted = true, .after_ns = after_ms * FERRY_NS_PER_MS, .priority = KUBE_PRIORITY_USER};
}

/* True when our own last write is newer than what the cache shows. */
static bool cache_lags(const struct pass *pass)
{
    const struct pass_memory *m = pass->memory;

    return ferry_streq(m->patched_version, pass->vmi->meta->resource_version) &&
           ferry_now_unix_ms() - m->patched_ms < CACHE_LAG_MS;
}

static int pass_run(struct pass *pass, struct ferry_error *err)
{
    pass_begin(pass);
    switch (pass->role) {
    case NODE_ROLE_OWNER:
        return pass_as_owner(pass, err);
    case NODE_ROLE_SOURCE:
        return pass_as_source(pass, err);
    case NODE_ROLE_TARGET:
        return pass_as_target(pass, err);
    case NODE_ROLE_NONE:
        break;
    }
    return 0;
}

static int reconcile_vmi(struct handler *h, const char *key, struct kube_again *again,
                         struct ferry_error *err)
{
    const char *slash = strchr(key, '/');
    ferry_cleanup_free char *ns = ferry_strndup(key, (size_t)(slash - key));
    api_cleanup_object struct api_object *vmi = NULL;
    int rc = find_vmi(h, ns, slash + 1, &vmi, err);

    if (rc < 0) {
        return rc;
    }
    if (!vmi || node_role_of(&vmi->u.vmi, h->node.name) == NODE_ROLE_NONE) {
        return 0;
    }
    ferry_cleanup(pass_done) struct pass pass = {.node = &h->node,
                                                 .memory =
                                                     memory_map_lend(h->memories, vmi->meta->uid),
                                                 .vmi = vmi,
                                                 .role = node_role_of(&vmi->u.vmi, h->node.name)};
    pass_memory_follow_clock(pass.memory, ferry_now_unix_ms() - ferry_now_ns() / FERRY_NS_PER_MS);
    if (cache_lags(&pass)) {
        ask_again(again, CACHE_LOOK_MS);
    } else {
        rc = pass_run(&pass, err);
    }
    memory_map_give_back(h->memories, pass.memory);
    if (rc == 0 && pass.again_ms) {
        ask_again(again, pass.again_ms);
    }
    return rc < 0 ? ferry_wrap(err, "VMI %s as %s", key, node_role_name(pass.role)) : 0;
}

/* ---- sweeping ---------------------------------------------------------------------------------
 */

static bool has_role(const struct kube_snapshot *s, const char *uid, const char *node,
                     enum node_role role)
{
    for (size_t i = 0; i < s->n; i++) {
        if (ferry_streq(s->items[i]->meta->uid, uid)) {
            return node_role_of(&s->items[i]->u.vmi, node) == role;
        }
    }
    return false;
}

/* Whether a launcher here still works on a move of the VMI, whatever the API says. */
static bool still_moving(struct handler *h, const char *uid)
{
    api_cleanup_object struct api_object *pod = live_pod(h, NULL, NULL, uid);
    struct launcher_status s;

    if (!pod) {
        return false;
    }
    ferry_cleanup_free char *socket =
        ferry_asprintf("%s/%s/launcher.sock", h->node.pods_dir, pod->meta->uid);
    return launcher_get_status(&(struct launcher_at){socket, uid}, &s, NULL) == 0 &&
           s.migration.role == LAUNCHER_ROLE_SOURCE && s.migration.phase == LAUNCHER_RUNNING;
}

/* `*busy` is set when something could not go yet. */
static int sweep_relay(struct handler *h, const char *collection, struct kube_informer *inf,
                       enum node_role role, bool *busy, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf keys = {0};
    int rc = relay_keys(h->node.relay_socket, collection, &keys, err);
    /* After the keys: a move that begins meanwhile is in the cache before it is in the relay. */
    kube_cleanup_snapshot struct kube_snapshot vmis = kube_informer_list(inf);
    char *save = NULL;

    for (char *key = rc == 0 && keys.data ? strtok_r(keys.data, "\n", &save) : NULL; key && rc == 0;
         key = strtok_r(NULL, "\n", &save)) {
        if (has_role(&vmis, key, h->node.name, role)) {
            continue;
        }
        if (role == NODE_ROLE_SOURCE && still_moving(h, key)) {
            *busy = true;
        } else {
            rc = relay_delete(h->node.relay_socket, collection, key, err);
        }
    }
    return rc;
}

static bool known_here(void *ctx, const char *uid)
{
    const struct kube_snapshot *snapshots = ctx;

    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < snapshots[i].n; k++) {
            if (ferry_streq(snapshots[i].items[k]->meta->uid, uid)) {
                return true;
            }
        }
    }
    return false;
}

/* Drops what is remembered of VMIs that are in no cache. */
static void sweep_memories(struct handler *h)
{
    struct kube_snapshot both[] = {kube_informer_list(h->here), kube_informer_list(h->coming)};

    memory_map_sweep(h->memories, known_here, both);
    kube_snapshot_done(&both[0]);
    kube_snapshot_done(&both[1]);
}

static int sweep(struct handler *h, struct kube_again *again)
{
    struct ferry_error err;
    bool busy = false;
    int rc = sweep_relay(h, "sources", h->here, NODE_ROLE_SOURCE, &busy, &err);

    if (rc == 0) {
        rc = sweep_relay(h, "targets", h->coming, NODE_ROLE_TARGET, &busy, &err);
    }
    if (rc < 0) {
        ferry_debug("cannot clean up the relay, trying on", F_ERR(&err));
    }
    sweep_memories(h);
    if (renewal_look(&h->renewal, ferry_now_unix_ms(), &err) < 0) {
        ferry_warn("cannot renew certificates, retrying", F_ERR(&err));
    }
    node_api_refresh(h->api);
    heartbeat_set_port(h->heartbeat, node_api_port(h->api));
    ask_again(again, busy ? SWEEP_BUSY_MS : SWEEP_MS);
    return 0;
}

/* ---- migration network ------------------------------------------------------------------------
 */

static void on_network(void *ctx)
{
    struct handler *h = ctx;

    kube_queue_add(h->queue, NETWORK, KUBE_PRIORITY_USER);
}

static int follow_network(struct handler *h, struct kube_again *again)
{
    char before[ADDRESS_SIZE] = "", after[ADDRESS_SIZE] = "";
    struct ferry_error err;

    migration_net_address(h->network, before, NULL);
    int rc = migration_net_follow(h->network, &err);
    const char *told = rc < 0 ? err.msg : "";
    bool news = strncmp(told, h->network_told, sizeof(h->network_told) - 1) != 0;

    if (news && rc < 0) {
        ferry_warn("cannot join the migration network, retrying", F_ERR(&err));
    }
    snprintf(h->network_told, sizeof(h->network_told), "%.*s", MIGRATION_NET_TEXT - 1, told);
    migration_net_address(h->network, after, NULL);
    if (news || !ferry_streq(before, after)) {
        heartbeat_hurry(h->heartbeat);
    }
    ask_again(again, rc < 0 ? NETWORK_TROUBLE_MS : NETWORK_MS);
    return 0;
}

/* Soon again when it did not work: a relay that was started anew is one that lets anybody in. */
static int tell_removed(struct handler *h, struct kube_again *again)
{
    struct ferry_error err;
    int rc = removed_nodes_tell(&h->removed, &err);

    if (rc < 0) {
        ferry_debug("cannot tell the relay which nodes were removed, retrying", F_ERR(&err));
    }
    ask_again(again, rc < 0 ? REMOVED_TROUBLE_MS : REMOVED_MS);
    return 0;
}

static void on_cpu(void *ctx, const struct node_cpu *cpu)
{
    struct handler *h = ctx;

    heartbeat_set_cpu(h->heartbeat, cpu);
    heartbeat_hurry(h->heartbeat);
}

/* Whether guests that start here are run by the hardware. */
static bool is_accelerated(void *ctx)
{
    struct handler *h = ctx;

    return h->cfg.kvm && !migration_net_site_emulates(h->network);
}

static int reconcile(void *ctx, const char *key, struct kube_again *again, struct ferry_error *err)
{
    return ferry_streq(key, SWEEP)     ? sweep(ctx, again)
           : ferry_streq(key, NETWORK) ? follow_network(ctx, again)
           : ferry_streq(key, REMOVED) ? tell_removed(ctx, again)
                                       : reconcile_vmi(ctx, key, again, err);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static int await_api(struct kube_informer *inf, bool (*stopping)(void), struct ferry_error *err)
{
    bool said = false;

    for (;;) {
        int rc = kube_informer_wait_synced(inf, ferry_now_ns() + FERRY_NS_PER_S, err);

        if (rc == 0) {
            return 0;
        }
        if (stopping()) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped while waiting for the API server");
        }
        if (!said) {
            ferry_warn("API server unreachable; guests keep running", F_ERR(err));
            said = true;
        }
    }
}

static int start_informers(struct handler *h, struct ferry_error *err)
{
    ferry_cleanup_free char *here = ferry_asprintf("%s=%s", LABEL_NODE_NAME, h->node.name);
    ferry_cleanup_free char *coming = ferry_asprintf("%s=%s", LABEL_TARGET_NODE_NAME, h->node.name);
    ferry_cleanup_free char *bound = ferry_asprintf("spec.nodeName=%s", h->node.name);
    struct kube_informer_config vmis = {
        .client = h->node.client, .kind = API_KIND_VMI, .on_delta = on_vmi, .ctx = h};
    struct kube_informer_config pods = {.client = h->node.client,
                                        .kind = API_KIND_POD,
                                        .field_selector = bound,
                                        .on_delta = on_pod,
                                        .ctx = h};
    int rc = kube_informer_start(&pods, &h->pods, err);

    if (rc == 0) {
        vmis.label_selector = here;
        rc = kube_informer_start(&vmis, &h->here, err);
    }
    if (rc == 0) {
        vmis.label_selector = coming;
        rc = kube_informer_start(&vmis, &h->coming, err);
    }
    h->node.pods = h->pods;
    return rc;
}

static int run(struct handler *h, bool (*stopping)(void), struct ferry_error *err)
{
    int rc =
        kube_recorder_start(h->node.client, "ferry-handler", h->node.name, &h->node.recorder, err);

    if (rc == 0) {
        rc = start_informers(h, err);
    }
    if (rc == 0) {
        rc = migration_net_start(
            &(struct migration_net_config){.client = h->node.client,
                                           .node = h->node.name,
                                           .address = h->node.address,
                                           .interface = h->cfg.migration_interface,
                                           .wake = on_network,
                                           .ctx = h},
            &h->network, err);
        h->node.network = h->network;
    }
    if (rc == 0) {
        rc = node_api_start(&(struct node_api_config){.node = &h->node,
                                                      .here = h->here,
                                                      .coming = h->coming,
                                                      .pki_dir = h->cfg.pki_dir,
                                                      .socket = h->cfg.api_socket,
                                                      .port = h->cfg.api_port},
                            &h->api, err);
    }
    if (rc == 0) {
        rc = heartbeat_start(&(struct heartbeat_config){.client = h->node.client,
                                                        .node = h->node.name,
                                                        .address = h->node.address,
                                                        .network = h->network,
                                                        .kvm = h->cfg.kvm,
                                                        .api_port = node_api_port(h->api)},
                             &h->heartbeat, err);
    }
    if (rc == 0) {
        rc = cpu_probe_start(&(struct cpu_probe_config){.launcher = h->cfg.launcher,
                                                        .cache = h->cfg.cpu_cache,
                                                        .is_accelerated = is_accelerated,
                                                        .news = on_cpu,
                                                        .ctx = h},
                             &h->cpu, err);
    }
    struct kube_informer *all[] = {h->pods, h->here, h->coming};
    for (size_t i = 0; i < 3 && rc == 0; i++) {
        rc = await_api(all[i], stopping, err);
    }
    if (rc == 0) {
        kube_queue_add(h->queue, SWEEP, KUBE_PRIORITY_USER);
        kube_queue_add(h->queue, NETWORK, KUBE_PRIORITY_USER);
        kube_queue_add(h->queue, REMOVED, KUBE_PRIORITY_USER);
        rc = kube_workers_start(&(struct kube_workers_config){.name = "handler",
                                                              .queue = h->queue,
                                                              .threads = WORKERS,
                                                              .reconcile = reconcile,
                                                              .ctx = h},
                                &h->workers, err);
    }
    return rc;
}

int handler_start(const struct handler_config *cfg, bool (*stopping)(void), struct handler **ret,
                  struct ferry_error *err)
{
    struct handler *h = ferry_xcalloc(1, sizeof(*h));

    h->node = (struct pass_node){.client = cfg->client,
                                 .name = cfg->node,
                                 .address = cfg->address,
                                 .pods_dir = cfg->pods_dir,
                                 .relay_socket = cfg->relay_socket,
                                 .records_dir = cfg->records_dir,
                                 .resume_window_s = cfg->resume_window_s};
    h->cfg = *cfg;
    h->renewal = (struct renewal){.client = cfg->client,
                                  .node = cfg->node,
                                  .pki_dir = cfg->pki_dir,
                                  .kubeconfig = cfg->kubeconfig,
                                  .percent = cfg->renew_percent};
    h->removed = (struct removed_nodes){.client = cfg->client, .relay_socket = cfg->relay_socket};
    h->memories = memory_map_new();
    h->queue = kube_queue_new(NULL);
    h->node.follow = follow_new(on_launcher, h);
    int rc = run(h, stopping, err);
    if (rc < 0) {
        handler_stop(h);
        return rc;
    }
    *ret = h;
    return 0;
}

void handler_stop(struct handler *h)
{
    if (!h) {
        return;
    }
    kube_workers_stop(h->workers);
    follow_free(h->node.follow);
    node_api_stop(h->api);
    struct kube_informer *all[] = {h->pods, h->here, h->coming};
    for (size_t i = 0; i < 3; i++) {
        if (all[i]) {
            kube_informer_cancel(all[i]);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        kube_informer_stop(all[i]);
    }
    cpu_probe_stop(h->cpu);
    heartbeat_stop(h->heartbeat);
    cpu_probe_free(h->cpu); /* after those who read it */
    migration_net_stop(h->network);
    kube_recorder_stop(h->node.recorder);
    kube_queue_free(h->queue);
    memory_map_free(h->memories);
    free(h);
}
