#include "apiserver/request/node_guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/address_name.h"
#include "api/json.h"
#include "apiserver/access/budget.h"
#include "apiserver/access/deny.h"
#include "apiserver/access/node_rules.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

/* ---- budgets -----------------------------------------------------------------------------------
 */

enum { TELL_MS = 60000 };

struct caller {
    struct caller *next;
    char *node;
    struct budget budget;
    int64_t told_ms; /* when its excess was logged last */
};

/* One per node that has a certificate: as many as the site has, and had, since the start. */
struct node_budgets {
    pthread_mutex_t lock;
    struct caller *callers; /* the latest first */
};

struct node_budgets *node_guard_budgets_new(void)
{
    struct node_budgets *b = ferry_xcalloc(1, sizeof(*b));

    pthread_mutex_init(&b->lock, NULL);
    return b;
}

void node_guard_budgets_free(struct node_budgets *b)
{
    for (struct caller *c = b ? b->callers : NULL, *next; c; c = next) {
        next = c->next;
        free(c->node);
        free(c);
    }
    if (b) {
        pthread_mutex_destroy(&b->lock);
        free(b);
    }
}

static struct caller *find_locked(struct node_budgets *b, const char *node)
{
    struct caller **at = &b->callers;

    while (*at && !ferry_streq((*at)->node, node)) {
        at = &(*at)->next;
    }
    struct caller *c = *at;
    if (c) {
        *at = c->next;
    } else {
        c = ferry_xcalloc(1, sizeof(*c));
        c->node = ferry_strdup(node);
        c->told_ms = -TELL_MS;
    }
    c->next = b->callers;
    b->callers = c;
    return c;
}

/* How long it has to wait; 0 = it need not. `*ret_news` says that it did not have to for a while.
 */
static int64_t spend(struct node_budgets *b, const char *node, bool is_event, size_t bytes,
                     bool *ret_news)
{
    int64_t now_ms = ferry_now_ns() / FERRY_NS_PER_MS;

    pthread_mutex_lock(&b->lock);
    struct caller *c = find_locked(b, node);
    int64_t wait_ms = budget_write(&c->budget, is_event, (int64_t)bytes, now_ms);
    *ret_news = wait_ms > 0 && now_ms - c->told_ms >= TELL_MS;
    if (*ret_news) {
        c->told_ms = now_ms;
    }
    pthread_mutex_unlock(&b->lock);
    return wait_ms;
}

int node_guard_admit(struct request *r, struct node_budgets *b)
{
    bool is_event = r->route.resource->kind == API_KIND_EVENT, news = false;
    char seconds[24];
    size_t bytes = 0;

    if (r->who.role != AUTH_NODE || route_verb_reads(r->route.verb)) {
        return 0;
    }
    http_body(r->x, &bytes);
    if (bytes > NODE_RULES_BODY) {
        return status_fail(&r->st, 413, "a node's request may have at most %d bytes",
                           NODE_RULES_BODY);
    }
    int64_t wait_ms = spend(b, r->who.node, is_event, bytes, &news);
    if (wait_ms == 0) {
        return 0;
    }
    if (news) {
        ferry_warn("a node writes too much, and has to wait", F_STR("node", r->who.node),
                   F_STR("resource", r->route.resource->plural));
    }
    snprintf(seconds, sizeof(seconds), "%lld", (long long)(wait_ms + 999) / 1000);
    http_add_header(r->x, "Retry-After", seconds);
    return status_fail(&r->st, 429, "node \"%s\" writes too much: try again in %s s", r->who.node,
                       seconds);
}

/* ---- rules -------------------------------------------------------------------------------------
 */

/* It was a node of the site when the call came in; what it writes now is written after that. */
static int check_still_there(struct request *r)
{
    const struct http_peer *peer = http_peer(r->x);
    bool denied = peer->certificate ? deny_check(r->store, peer)
                                    : deny_check_node(r->store, r->who.node, "", 0);

    return denied ? status_fail(&r->st, 401,
                                "Unauthorized: the node of this certificate was "
                                "removed: join again")
                  : 0;
}

/* The NetworkAttachmentDefinition that a KubeVirt object names for moves, or NULL. */
static struct entry *network_of(struct request *r, const yyjson_val *site)
{
    const char *named = api_json_str(site, "/spec/configuration/migrations/network");
    const char *slash = named ? strchr(named, '/') : NULL;
    const char *home = api_json_str(site, "/metadata/namespace");

    if (ferry_str_empty(named) || !home) {
        return NULL;
    }
    ferry_cleanup_free char *ns =
        slash ? ferry_strndup(named, (size_t)(slash - named)) : ferry_strdup(home);
    return store_get(r->store, api_resource_of_kind(API_KIND_NETWORK), ns,
                     slash ? slash + 1 : named);
}

struct networks {
    char **configs;
    size_t n;
};

static void networks_done(struct networks *n)
{
    for (size_t i = 0; i < n->n; i++) {
        free(n->configs[i]);
    }
    free(n->configs);
}
#define cleanup_networks ferry_cleanup(networks_done)

static void find_networks(struct request *r, struct networks *ret)
{
    cleanup_entry_list struct entry_list sites = {0};

    store_list(r->store, api_resource_of_kind(API_KIND_KUBEVIRT), NULL, &sites);
    ret->configs = ferry_xcalloc(sites.n + 1, sizeof(*ret->configs));
    for (size_t i = 0; i < sites.n; i++) {
        api_cleanup_doc yyjson_doc *site = entry_doc(sites.items[i]);
        cleanup_entry struct entry *e = network_of(r, yyjson_doc_get_root(site));
        api_cleanup_doc yyjson_doc *doc = entry_doc(e);
        const char *config = api_json_str(yyjson_doc_get_root(doc), "/spec/config");

        if (config) {
            ret->configs[ret->n++] = ferry_strdup(config);
        }
    }
}

/* The addresses that the node has. */
static struct api_ip *find_held(struct request *r, size_t *ret_n)
{
    cleanup_entry_list struct entry_list all = {0};

    store_list(r->store, r->route.resource, API_ADDRESS_NAMESPACE, &all);
    struct api_ip *held = ferry_xcalloc(all.n + 1, sizeof(*held));
    for (size_t i = *ret_n = 0; i < all.n; i++) {
        if (api_address_of_name(all.items[i]->name, &held[*ret_n])) {
            api_cleanup_doc yyjson_doc *doc = entry_doc(all.items[i]);

            *ret_n += ferry_streq(api_json_str(yyjson_doc_get_root(doc), "/spec/holderIdentity"),
                                  r->who.node);
        }
    }
    return held;
}

static int check_claim(struct request *r)
{
    cleanup_networks struct networks networks = {0};
    size_t n = 0;
    ferry_cleanup_free struct api_ip *held = find_held(r, &n);

    find_networks(r, &networks);
    return node_rules_claim(
        r->route.resource, r->route.name,
        &(struct node_rules_claims){(const char *const *)networks.configs, networks.n, held, n},
        &r->st);
}

int node_guard_new(struct request *r, const yyjson_val *object)
{
    if (r->who.role != AUTH_NODE) {
        return 0;
    }
    if (check_still_there(r) < 0 ||
        node_rules_check(r->route.resource, r->who.node, NULL, object, &r->st) < 0) {
        return -1;
    }
    return r->route.resource->kind == API_KIND_LEASE &&
                   ferry_streq(r->route.ns, API_ADDRESS_NAMESPACE)
               ? check_claim(r)
               : 0;
}

int node_guard_change(struct request *r, const yyjson_val *old, const yyjson_val *object)
{
    if (r->who.role != AUTH_NODE) {
        return 0;
    }
    return check_still_there(r) < 0
               ? -1
               : node_rules_check(r->route.resource, r->who.node, old, object, &r->st);
}
