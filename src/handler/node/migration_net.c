#include "handler/node/migration_net.h"

#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "handler/node/migration_link.h"
#include "handler/node/node_report.h"
#include "kube/addresses.h"
#include "kube/informer.h"

enum { WORDS_MAX = 16 };

struct migration_net {
    struct migration_net_config cfg;
    struct kube_informer *sites, *networks;
    pthread_mutex_t lock; /* guards what follows */
    bool followed;
    char network[MIGRATION_NET_TEXT], trouble[MIGRATION_NET_TEXT];
};

/* ---- iproute2 ---------------------------------------------------------------------------------
 */

static int run_line(char *line, struct ferry_error *err)
{
    const char *argv[WORDS_MAX + 2] = {"ip"};
    size_t n = 1;
    char *save = NULL;

    for (char *w = strtok_r(line, " ", &save); w && n <= WORDS_MAX;
         w = strtok_r(NULL, " ", &save)) {
        argv[n++] = w;
    }
    return ferry_run(argv, NULL, err);
}

static int look_at_link(const char *name, struct migration_link_seen *ret, struct ferry_error *err)
{
    const char *const argv[] = {"ip", "-json", "-details", "addr", "show", "dev", name, NULL};
    ferry_cleanup_buf struct ferry_buf out = {0};

    *ret = (struct migration_link_seen){0};
    if (if_nametoindex(name) == 0) {
        return 0;
    }
    int rc = ferry_run(argv, &out, err);
    return rc < 0 ? rc : migration_link_parse(out.data, out.len, ret, err);
}

static int apply(const struct migration_link_seen *seen, const struct migration_link_wanted *wanted,
                 struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf lines = {0};
    char *save = NULL;

    migration_link_plan(seen, wanted, &lines);
    for (char *l = lines.data ? strtok_r(lines.data, "\n", &save) : NULL; l;
         l = strtok_r(NULL, "\n", &save)) {
        ferry_info("migration network", F_STR("ip", l));
        if (run_line(l, err) < 0) {
            return ferry_wrap(err, "interface %s", wanted->name);
        }
    }
    return 0;
}

/* ---- what is configured -----------------------------------------------------------------------
 */

/* The network that the site names, as "NAMESPACE/NAME"; "" when there is none. */
static void configured(struct migration_net *m, char ret[MIGRATION_NET_TEXT])
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(m->sites);

    ret[0] = '\0';
    for (size_t i = 0; i < all.n && !ret[0]; i++) {
        const struct api_object *o = all.items[i];
        const char *name = o->u.kubevirt.migrations.network;

        if (!ferry_str_empty(name)) {
            snprintf(ret, MIGRATION_NET_TEXT, "%s%s%s",
                     strchr(name, '/') ? "" : o->meta->namespace_, strchr(name, '/') ? "" : "/",
                     name);
        }
    }
}

bool migration_net_site_emulates(struct migration_net *m)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(m->sites);

    return all.n > 0 && all.items[0]->u.kubevirt.use_emulation;
}

static int definition(struct migration_net *m, const char *network, struct api_nad *ret,
                      struct ferry_error *err)
{
    const char *slash = strchr(network, '/');
    ferry_cleanup_free char *ns = ferry_strndup(network, (size_t)(slash - network));
    api_cleanup_object struct api_object *nad = kube_informer_get(m->networks, ns, slash + 1);

    if (!nad) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no NetworkAttachmentDefinition %s",
                          network);
    }
    int rc = api_nad_parse(nad->u.network.config, ret, err);
    if (rc == 0) {
        rc = migration_link_check(ret, err);
    }
    return rc < 0 ? ferry_wrap(err, "NetworkAttachmentDefinition %s", network) : 0;
}

/* ---- following --------------------------------------------------------------------------------
 */

static int attach(struct migration_net *m, const struct api_object *node, const char *network,
                  const struct migration_link_seen *seen, struct ferry_error *err)
{
    struct api_nad nad;
    struct api_ip_net addresses[API_NAD_POOLS];
    int rc = definition(m, network, &nad, err);

    if (rc == 0) {
        rc = kube_addresses_hold(m->cfg.client, &nad, m->cfg.node, node, addresses, err);
        /* As on Kubernetes, where others make the interface. */
        if (rc == -FERRY_DENIED) {
            return ferry_wrap(err,
                              "this node has no interface %s for the network %s, and may not "
                              "take an address for one",
                              m->cfg.interface, network);
        }
    }
    if (rc == 0) {
        const struct migration_link_wanted wanted = {.name = m->cfg.interface,
                                                     .nad = &nad,
                                                     .addresses = addresses,
                                                     .n = nad.n_pools,
                                                     .bridge_exists =
                                                         if_nametoindex(nad.link) != 0};

        rc = apply(seen, &wanted, err);
    }
    return rc < 0 ? rc
                  : kube_addresses_trim(m->cfg.client, m->cfg.node, addresses, nad.n_pools, err);
}

static int detach(struct migration_net *m, const struct migration_link_seen *seen,
                  struct ferry_error *err)
{
    int rc = apply(seen, &(struct migration_link_wanted){.name = m->cfg.interface}, err);

    return rc < 0 || !seen->exists ? rc
                                   : kube_addresses_trim(m->cfg.client, m->cfg.node, NULL, 0, err);
}

static int follow(struct migration_net *m, const char *network, struct ferry_error *err)
{
    api_cleanup_object struct api_object *node = NULL;
    struct migration_link_seen seen;
    int rc = look_at_link(m->cfg.interface, &seen, err);

    if (rc < 0 || (seen.exists && !seen.ours) || (!network[0] && !seen.exists)) {
        return rc;
    }
    rc = kube_client_get(m->cfg.client, kube_ref(API_KIND_NODE, NULL, m->cfg.node), &node, err);
    if (rc < 0) {
        return rc;
    }
    if (!node_report_is_ours(node)) {
        return network[0] ? ferry_fail(err, FERRY_RETRY,
                                       "this node has no interface %s for the network %s",
                                       m->cfg.interface, network)
                          : 0;
    }
    return network[0] ? attach(m, node, network, &seen, err) : detach(m, &seen, err);
}

int migration_net_follow(struct migration_net *m, struct ferry_error *err)
{
    char network[MIGRATION_NET_TEXT];

    if (ferry_str_empty(m->cfg.interface) || !kube_informer_synced(m->sites) ||
        !kube_informer_synced(m->networks)) {
        return 0;
    }
    configured(m, network);
    int rc = follow(m, network, err);
    pthread_mutex_lock(&m->lock);
    m->followed = true;
    snprintf(m->network, sizeof(m->network), "%s", network);
    snprintf(m->trouble, sizeof(m->trouble), "%.*s", MIGRATION_NET_TEXT - 1,
             rc < 0 ? err->msg : "");
    pthread_mutex_unlock(&m->lock);
    return rc;
}

void migration_net_tell(struct migration_net *m, char ret_network[MIGRATION_NET_TEXT],
                        char ret_trouble[MIGRATION_NET_TEXT])
{
    pthread_mutex_lock(&m->lock);
    memcpy(ret_network, m->network, MIGRATION_NET_TEXT);
    memcpy(ret_trouble, m->trouble, MIGRATION_NET_TEXT);
    pthread_mutex_unlock(&m->lock);
}

int migration_net_address(struct migration_net *m, char ret[ADDRESS_SIZE], struct ferry_error *err)
{
    char network[MIGRATION_NET_TEXT], trouble[MIGRATION_NET_TEXT];
    bool there = !ferry_str_empty(m->cfg.interface) && if_nametoindex(m->cfg.interface) != 0;

    migration_net_tell(m, network, trouble);
    pthread_mutex_lock(&m->lock);
    bool followed = m->followed || ferry_str_empty(m->cfg.interface);
    pthread_mutex_unlock(&m->lock);
    if (!there && !followed) {
        return ferry_fail(err, FERRY_RETRY, "the site's migration network is not known yet");
    }
    if (!there && network[0]) {
        return ferry_fail(err, FERRY_RETRY, "not on the migration network %s: %s", network,
                          trouble[0] ? trouble : "its interface is gone");
    }
    return address_for_migration(m->cfg.interface, m->cfg.address, ret, err);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void on_change(void *ctx, struct api_object *old, struct api_object *now)
{
    struct migration_net *m = ctx;

    (void)old;
    (void)now;
    m->cfg.wake(m->cfg.ctx);
}

int migration_net_start(const struct migration_net_config *cfg, struct migration_net **ret,
                        struct ferry_error *err)
{
    struct migration_net *m = ferry_xcalloc(1, sizeof(*m));
    struct kube_informer_config c = {
        .client = cfg->client, .kind = API_KIND_KUBEVIRT, .on_delta = on_change, .ctx = m};

    m->cfg = *cfg;
    pthread_mutex_init(&m->lock, NULL);
    int rc = kube_informer_start(&c, &m->sites, err);
    if (rc == 0) {
        c.kind = API_KIND_NETWORK;
        rc = kube_informer_start(&c, &m->networks, err);
    }
    if (rc < 0) {
        migration_net_stop(m);
        return rc;
    }
    *ret = m;
    return 0;
}

void migration_net_stop(struct migration_net *m)
{
    if (!m) {
        return;
    }
    struct kube_informer *all[] = {m->sites, m->networks};
    for (size_t i = 0; i < 2; i++) {
        if (all[i]) {
            kube_informer_cancel(all[i]);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        kube_informer_stop(all[i]);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}
