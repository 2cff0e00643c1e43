#include "cli/site/site_plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/user.h"

/* Host numbers in both networks: the fabric is 1, node 1 is 11. */
enum { FABRIC_HOST = 1, FIRST_NODE_HOST = 11 };
#define NODE_NETWORK "10.77.0"
#define MIGRATION_NETWORK "10.78.0"

void site_strings_free(char **list)
{
    for (char **s = list; list && *s; s++) {
        free(*s);
    }
    free(list);
}

static char **words_add_take(char **list, char *word)
{
    size_t n = 0;

    while (list && list[n]) {
        n++;
    }
    list = ferry_xrealloc(list, n + 2, sizeof(*list));
    list[n] = word;
    list[n + 1] = NULL;
    return list;
}

/* A copy of the words given; ends at the first NULL. */
static char **words(const char *const *from)
{
    char **list = NULL;

    for (; *from; from++) {
        list = words_add_take(list, ferry_strdup(*from));
    }
    return list;
}
#define WORDS(...) words((const char *const[]){__VA_ARGS__, NULL})

/* The default site has the plain names; any other one carries a number made from its directory, so
 * that sites live side by side. */
static char *site_tag(const char *root)
{
    uint32_t h = UINT32_C(2166136261);

    if (ferry_streq(root, SITE_DEFAULT_ROOT)) {
        return ferry_strdup("ferry");
    }
    for (const char *c = root; *c; c++) {
        h = (h ^ (unsigned char)*c) * UINT32_C(16777619);
    }
    return ferry_asprintf("ferry-%08x", h);
}

char *site_plan_fabric_name(const char *root)
{
    ferry_cleanup_free char *tag = site_tag(root);

    return ferry_asprintf("%s-fabric", tag);
}

char *site_plan_netns_name(const char *root, int i)
{
    ferry_cleanup_free char *tag = site_tag(root);

    return ferry_asprintf("%s-node%d", tag, i + 1);
}

char *site_plan_netns_path(const char *name)
{
    return ferry_asprintf("/run/netns/%s", name);
}

static int check(const struct site_settings *s, struct ferry_error *err)
{
    size_t len = strlen(s->root);

    if (s->root[0] != '/' || len < 2 || s->root[len - 1] == '/' || strpbrk(s->root, " \t\n") ||
        strstr(s->root, "//") || strstr(s->root, "/.")) {
        return ferry_fail(err, FERRY_INVALID,
                          "--root: '%s' cannot hold a site; give an absolute path of plain names",
                          s->root);
    }
    if (s->nodes < 1 || s->nodes > SITE_MAX_NODES) {
        return ferry_fail(err, FERRY_INVALID, "--nodes: %d is not in the range 1 to %d", s->nodes,
                          SITE_MAX_NODES);
    }
    if (s->port < 1 || s->port > 65535) {
        return ferry_fail(err, FERRY_INVALID, "--port: %d is not in the range 1 to 65535", s->port);
    }
    return 0;
}

static void plan_node(const struct site_plan *p, size_t i, struct site_node *n)
{
    n->name = ferry_asprintf("node%zu", i + 1);
    n->root = ferry_asprintf("%s/%s", p->root, n->name);
    n->netns = site_plan_netns_name(p->root, (int)i);
    n->address = ferry_asprintf(NODE_NETWORK ".%zu", FIRST_NODE_HOST + i);
    n->migration_address = ferry_asprintf(MIGRATION_NETWORK ".%zu", FIRST_NODE_HOST + i);
    n->kubeconfig = ferry_asprintf("%s/var/lib/ferry/node.kubeconfig", n->root);
}

int site_plan_new(const struct site_settings *s, struct site_plan **ret, struct ferry_error *err)
{
    int rc = check(s, err);

    if (rc < 0) {
        return rc;
    }
    struct site_plan *p = ferry_xcalloc(1, sizeof(*p));
    p->root = ferry_strdup(s->root);
    p->bin_dir = ferry_strdup(s->bin_dir);
    p->guest_dir = ferry_strdup(s->guest_dir);
    p->port = s->port;
    p->state_file = ferry_asprintf("%s/site.json", p->root);
    p->lock_file = ferry_asprintf("%s/lock", p->root);
    p->log_dir = ferry_asprintf("%s/log", p->root);
    p->fabric = site_plan_fabric_name(p->root);
    p->fabric_address = ferry_asprintf(NODE_NETWORK ".%d", FABRIC_HOST);
    p->api_root = ferry_asprintf("%s/api", p->root);
    p->api_data = ferry_asprintf("%s/var/lib/ferry", p->api_root);
    p->api_url = ferry_asprintf("https://127.0.0.1:%d", p->port);
    p->api_node_url = ferry_asprintf("https://%s:%d", p->fabric_address, p->port);
    p->admin_kubeconfig = ferry_asprintf("%s/admin.kubeconfig", p->api_data);
    p->controller_kubeconfig = ferry_asprintf("%s/controller.kubeconfig", p->api_data);
    p->n_nodes = (size_t)s->nodes;
    for (size_t i = 0; i < p->n_nodes; i++) {
        plan_node(p, i, &p->nodes[i]);
    }
    *ret = p;
    return 0;
}

void site_plan_free(struct site_plan *p)
{
    if (!p) {
        return;
    }
    for (size_t i = 0; i < p->n_nodes; i++) {
        struct site_node *n = &p->nodes[i];

        free(n->name);
        free(n->root);
        free(n->netns);
        free(n->address);
        free(n->migration_address);
        free(n->kubeconfig);
    }
    free(p->root);
    free(p->bin_dir);
    free(p->guest_dir);
    free(p->state_file);
    free(p->lock_file);
    free(p->log_dir);
    free(p->fabric);
    free(p->fabric_address);
    free(p->api_root);
    free(p->api_data);
    free(p->api_url);
    free(p->api_node_url);
    free(p->admin_kubeconfig);
    free(p->controller_kubeconfig);
    free(p);
}

/* ---- network ------------------------------------------------------------------------------- */

/* The veth pair is made in the fabric with its far end born in the node: at no time is either of
 * them in the host's namespace. */
static char **connect_node(char **list, const struct site_plan *p, size_t i, const char *bridge,
                           const char *port, const char *interface, const char *address)
{
    const char *f = p->fabric, *n = p->nodes[i].netns;

    list = words_add_take(list,
                          ferry_asprintf("ip -n %s link add %s%zu type veth peer name %s netns %s",
                                         f, port, i + 1, interface, n));
    list = words_add_take(
        list, ferry_asprintf("ip -n %s link set %s%zu master %s up", f, port, i + 1, bridge));
    list = words_add_take(list,
                          ferry_asprintf("ip -n %s addr add %s/24 dev %s", n, address, interface));
    return words_add_take(list, ferry_asprintf("ip -n %s link set %s up", n, interface));
}

char **site_plan_network(const struct site_plan *p)
{
    char **list = NULL;
    const char *f = p->fabric;

    list = words_add_take(list, ferry_asprintf("ip netns add %s", f));
    list = words_add_take(list, ferry_asprintf("ip -n %s link set lo up", f));
    list = words_add_take(list, ferry_asprintf("ip -n %s link add nodes type bridge", f));
    list = words_add_take(list, ferry_asprintf("ip -n %s link add migration type bridge", f));
    list = words_add_take(
        list, ferry_asprintf("ip -n %s addr add %s/24 dev nodes", f, p->fabric_address));
    list = words_add_take(list, ferry_asprintf("ip -n %s link set nodes up", f));
    list = words_add_take(list, ferry_asprintf("ip -n %s link set migration up", f));
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct site_node *n = &p->nodes[i];

        list = words_add_take(list, ferry_asprintf("ip netns add %s", n->netns));
        list = words_add_take(list, ferry_asprintf("ip -n %s link set lo up", n->netns));
        list = connect_node(list, p, i, "nodes", "n", "eth0", n->address);
        list = connect_node(list, p, i, "migration", "m", "migration0", n->migration_address);
    }
    return list;
}

/* ---- programs ------------------------------------------------------------------------------ */

static char *program(const struct site_plan *p, const char *name)
{
    return ferry_asprintf("%s/%s", p->bin_dir, name);
}

char **site_plan_node_pki(const struct site_plan *p, size_t i)
{
    ferry_cleanup_free char *api = program(p, "ferry-apiserver");
    ferry_cleanup_free char *out = ferry_asprintf("%s/var/lib/ferry", p->nodes[i].root);
    ferry_cleanup_free char *owner = ferry_asprintf("%d:%d", SITE_RELAY_ID, SITE_RELAY_ID);

    return WORDS(api, "pki", "node", p->nodes[i].name, "--out", out, "--server", p->api_node_url,
                 "--relay-owner", owner, "--data", p->api_data);
}

char **site_plan_controller_pki(const struct site_plan *p)
{
    ferry_cleanup_free char *api = program(p, "ferry-apiserver");
    ferry_cleanup_free char *gid = ferry_asprintf("%d", FERRY_CONTROLLER_ID);

    return WORDS(api, "pki", "controller", "--server", p->api_url, "--out",
                 p->controller_kubeconfig, "--data", p->api_data, "--controller-gid", gid);
}

static struct site_daemon *add(struct site_daemons *d, const char *node, const char *name,
                               char **argv)
{
    d->items = ferry_xrealloc(d->items, d->n + 1, sizeof(*d->items));
    struct site_daemon *new = &d->items[d->n++];

    *new = (struct site_daemon){.argv = argv};
    new->name = node ? ferry_asprintf("%s-%s", node, name) : ferry_strdup(name);
    return new;
}

static void add_node(struct site_daemons *d, const struct site_plan *p, const struct site_node *n)
{
    ferry_cleanup_free char *relay = program(p, "ferry-relay");
    ferry_cleanup_free char *pods = program(p, "ferry-pods");
    ferry_cleanup_free char *handler = program(p, "ferry-handler");
    ferry_cleanup_free char *launcher = program(p, "ferry-launcher");
    ferry_cleanup_free char *gid = ferry_asprintf("%d", SITE_RELAY_ID);
    ferry_cleanup_free char *user = ferry_asprintf("%d:%d", SITE_RELAY_ID, SITE_RELAY_ID);
    size_t first = d->n;

    add(d, n->name, "relay",
        WORDS(relay, "serve", "--root", n->root, "--node", n->name, "--user", user));
    add(d, n->name, "pods",
        WORDS(pods, "--root", n->root, "--node", n->name, "--kubeconfig", n->kubeconfig,
              "--launcher", launcher, "--guest-dir", p->guest_dir, "--relay-gid", gid));
    add(d, n->name, "handler",
        WORDS(handler, "--root", n->root, "--node", n->name, "--kubeconfig", n->kubeconfig,
              "--node-address", n->address, "--migration-interface", "migration0"));
    for (size_t i = first; i < d->n; i++) {
        d->items[i].netns = ferry_strdup(n->netns);
        d->items[i].after = ferry_strdup(n->kubeconfig);
    }
}

struct site_daemons site_plan_daemons(const struct site_plan *p)
{
    struct site_daemons d = {0};
    ferry_cleanup_free char *api = program(p, "ferry-apiserver");
    ferry_cleanup_free char *controller = program(p, "ferry-controller");
    ferry_cleanup_free char *api_user =
        ferry_asprintf("%d:%d", FERRY_APISERVER_ID, FERRY_APISERVER_ID);
    ferry_cleanup_free char *user =
        ferry_asprintf("%d:%d", FERRY_CONTROLLER_ID, FERRY_CONTROLLER_ID);
    ferry_cleanup_free char *gid = ferry_asprintf("%d", FERRY_CONTROLLER_ID);

    struct site_daemon *server =
        add(&d, NULL, "api",
            WORDS(api, "serve", "--root", p->api_root, "--data", p->api_data, "--user", api_user,
                  "--controller-gid", gid));
    server->api_sockets = true;
    server->netns = ferry_strdup(p->fabric); /* from there it reaches the nodes' own API */
    add(&d, NULL, "controller",
        /* It has no root: this host's own settings are not the site's. */
        WORDS(controller, "--config", "/dev/null", "--kubeconfig", p->controller_kubeconfig,
              "--embedded", "--user", user))
        ->after = ferry_strdup(p->controller_kubeconfig);
    for (size_t i = 0; i < p->n_nodes; i++) {
        add_node(&d, p, &p->nodes[i]);
    }
    return d;
}

void site_daemons_done(struct site_daemons *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->items[i].name);
        site_strings_free(d->items[i].argv);
        free(d->items[i].netns);
        free(d->items[i].after);
    }
    free(d->items);
    *d = (struct site_daemons){0};
}
