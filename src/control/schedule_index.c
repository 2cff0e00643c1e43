#include "control/schedule_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "control/facts.h"
#include "control/names.h"
#include "control/schedule_match.h"

static const char *node_name(const struct schedule_view *v, size_t i)
{
    return v->nodes[i]->meta->name;
}

static int by_name(const void *a, const void *b, void *ctx)
{
    return strcmp(node_name(ctx, *(const size_t *)a), node_name(ctx, *(const size_t *)b));
}

static size_t find_node(const struct schedule_index *x, const struct schedule_view *v,
                        const char *name)
{
    size_t low = 0, high = x->n_nodes;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, node_name(v, x->by_name[mid]));

        if (order == 0) {
            return x->by_name[mid];
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return SIZE_MAX;
}

static void add_pod(struct schedule_index *x, const struct schedule_view *v, size_t i)
{
    const struct schedule_pod *p = &v->pods[i];
    bool counts = p->node && !pod_is_down(p->pod);

    if (x->n_pods == x->cap) {
        x->cap = x->cap ? x->cap * 2 : v->n_pods + 16;
        x->home = ferry_xrealloc(x->home, x->cap, sizeof(*x->home));
        x->apart = ferry_xrealloc(x->apart, x->cap, sizeof(*x->apart));
    }
    size_t home = counts ? find_node(x, v, p->node) : SIZE_MAX;
    x->home[x->n_pods++] = home;
    if (home == SIZE_MAX) {
        return;
    }
    struct schedule_use *u = &x->use[home];
    u->cpu_milli += p->pod->cpu_milli;
    u->memory_bytes += p->pod->memory_bytes;
    u->hugepages_2mi += p->pod->hugepages_2mi_bytes;
    u->hugepages_1gi += p->pod->hugepages_1gi_bytes;
    u->pods++;
    if (p->pod->placement.affinity.anti.n_required > 0) {
        x->apart[x->n_apart++] = i;
    }
}

struct schedule_index *schedule_index_new(const struct schedule_view *view)
{
    struct schedule_index *x = ferry_xcalloc(1, sizeof(*x));

    x->n_nodes = view->n_nodes;
    x->by_name = ferry_xcalloc(view->n_nodes + 1, sizeof(*x->by_name));
    x->use = ferry_xcalloc(view->n_nodes + 1, sizeof(*x->use));
    for (size_t i = 0; i < view->n_nodes; i++) {
        x->by_name[i] = i;
    }
    qsort_r(x->by_name, view->n_nodes, sizeof(*x->by_name), by_name,
            (struct schedule_view *)(uintptr_t)view);
    for (size_t i = 0; i < view->n_pods; i++) {
        add_pod(x, view, i);
    }
    return x;
}

void schedule_index_add(struct schedule_index *x, const struct schedule_view *view)
{
    add_pod(x, view, view->n_pods - 1);
}

void schedule_index_free(struct schedule_index *x)
{
    if (x) {
        free(x->by_name);
        free(x->home);
        free(x->use);
        free(x->apart);
        free(x);
    }
}

static const char *domain_of(const struct schedule_view *v, size_t node, const char *topology)
{
    return schedule_node_label(&v->nodes[node]->u.node, topology);
}

/* Sums over the nodes of each domain; a host name is a domain of its own. */
static size_t *by_domain(const struct schedule_view *v, const char *topology, size_t *by_node_take)
{
    size_t n = v->n_nodes;
    size_t *sums = ferry_xcalloc(n + 1, sizeof(*sums));

    for (size_t i = 0; i < n; i++) {
        const char *domain = by_node_take[i] ? domain_of(v, i, topology) : NULL;

        for (size_t k = 0; domain && k < n; k++) {
            if (k == i || ferry_streq(domain_of(v, k, topology), domain)) {
                sums[k] += by_node_take[i];
            }
        }
    }
    free(by_node_take);
    return sums;
}

size_t *schedule_count(const struct schedule_view *v, const char *topology,
                       bool (*about)(const void *rule, const struct api_pod *other),
                       const void *rule)
{
    const struct schedule_index *x = v->index;
    size_t *by_node = ferry_xcalloc(v->n_nodes + 1, sizeof(*by_node));

    for (size_t i = 0; i < v->n_pods; i++) {
        const struct api_pod *other = v->pods[i].pod;

        if (x->home[i] != SIZE_MAX && about(rule, other) &&
            !ferry_streq(other->meta.uid, v->pod->meta.uid)) {
            by_node[x->home[i]]++;
        }
    }
    return by_domain(v, topology, by_node);
}
