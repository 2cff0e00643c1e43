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

/* ---- pods ------------------------------------------------------------------------------------
 */

static void add_labels(struct schedule_index *x, const char *key, size_t i,
                       const struct schedule_view *v)
{
    const char *value = api_map_get(&v->pods[i].pod->meta.labels, key);

    if (value) {
        label_index_add(x->labels, key, value, i);
    }
}

static void add_apart(struct schedule_index *x, const struct schedule_view *v, size_t i)
{
    const struct api_pod_terms *anti = &v->pods[i].pod->placement.affinity.anti;

    for (size_t k = 0; k < anti->n_required; k++) {
        const struct api_pod_term *t = &anti->required[k];
        const struct api_map *named = &t->selector.match_labels;
        size_t number = x->n_apart++;

        x->apart = ferry_xrealloc(x->apart, x->n_apart, sizeof(*x->apart));
        x->apart[number] = (struct schedule_apart){i, t};
        if (named->n > 0) {
            label_index_add(x->apart_by, named->items[0].key, named->items[0].value, number);
        } else {
            x->apart_any = ferry_xrealloc(x->apart_any, x->n_apart_any + 1, sizeof(*x->apart_any));
            x->apart_any[x->n_apart_any++] = number;
        }
    }
}

static void add_use(struct schedule_use *u, const struct api_pod *pod)
{
    u->cpu_milli += pod->cpu_milli;
    u->memory_bytes += pod->memory_bytes;
    u->hugepages_2mi += pod->hugepages_2mi_bytes;
    u->hugepages_1gi += pod->hugepages_1gi_bytes;
    u->pods++;
}

static void add_pod(struct schedule_index *x, const struct schedule_view *v, size_t i)
{
    const struct schedule_pod *p = &v->pods[i];
    bool counts = p->node && !pod_is_down(p->pod);

    if (x->n_pods == x->cap) {
        x->cap = x->cap ? x->cap * 2 : v->n_pods + 16;
        x->home = ferry_xrealloc(x->home, x->cap, sizeof(*x->home));
        x->next = ferry_xrealloc(x->next, x->cap, sizeof(*x->next));
    }
    size_t home = counts ? find_node(x, v, p->node) : SIZE_MAX;
    x->home[x->n_pods] = home;
    x->next[x->n_pods++] = SIZE_MAX;
    if (home == SIZE_MAX) {
        return;
    }
    x->next[i] = x->use[home].first;
    x->use[home].first = i;
    add_use(&x->use[home], p->pod);
    for (size_t k = 0; k < x->n_keys; k++) {
        add_labels(x, x->keys[k], i, v);
    }
    add_apart(x, v, i);
}

struct schedule_index *schedule_index_new(const struct schedule_view *view)
{
    struct schedule_index *x = ferry_xcalloc(1, sizeof(*x));

    x->n_nodes = view->n_nodes;
    x->by_name = ferry_xcalloc(view->n_nodes + 1, sizeof(*x->by_name));
    x->use = ferry_xcalloc(view->n_nodes + 1, sizeof(*x->use));
    x->labels = label_index_new();
    x->apart_by = label_index_new();
    for (size_t i = 0; i < view->n_nodes; i++) {
        x->by_name[i] = i;
        x->use[i].first = SIZE_MAX;
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
        free(x->next);
        for (size_t i = 0; i < x->n_keys; i++) {
            free(x->keys[i]);
        }
        free(x->keys);
        free(x->apart);
        free(x->apart_any);
        label_index_free(x->labels);
        label_index_free(x->apart_by);
        free(x);
    }
}

/* ---- domains ---------------------------------------------------------------------------------
 */

struct domain {
    const char *name;
    size_t node;
};

static int by_domain_name(const void *a, const void *b)
{
    return strcmp(((const struct domain *)a)->name, ((const struct domain *)b)->name);
}

/* Sums over the nodes of each domain; a host name is a domain of its own. */
static size_t *by_domain(const struct schedule_view *v, const char *topology, const size_t *by_node)
{
    size_t *sums = ferry_xcalloc(v->n_nodes + 1, sizeof(*sums)), n = 0;
    ferry_cleanup_free struct domain *domains = ferry_xcalloc(v->n_nodes + 1, sizeof(*domains));

    for (size_t i = 0; i < v->n_nodes; i++) {
        const char *name = schedule_node_label(&v->nodes[i]->u.node, topology);

        if (name) {
            domains[n++] = (struct domain){name, i};
        }
    }
    qsort(domains, n, sizeof(*domains), by_domain_name);
    for (size_t from = 0, to = 0; from < n; from = to) {
        size_t sum = 0;

        for (; to < n && strcmp(domains[to].name, domains[from].name) == 0; to++) {
            sum += by_node[domains[to].node];
        }
        for (size_t i = from; i < to; i++) {
            sums[domains[i].node] = sum;
        }
    }
    return sums;
}

/* ---- questions -------------------------------------------------------------------------------
 */

static void know_key(struct schedule_index *x, const struct schedule_view *v, const char *key)
{
    for (size_t k = 0; k < x->n_keys; k++) {
        if (strcmp(x->keys[k], key) == 0) {
            return;
        }
    }
    x->keys = ferry_xrealloc(x->keys, x->n_keys + 1, sizeof(*x->keys));
    x->keys[x->n_keys++] = ferry_strdup(key); /* the pod that asks may go before the index */
    key = x->keys[x->n_keys - 1];
    for (size_t i = 0; i < x->n_pods; i++) {
        if (x->home[i] != SIZE_MAX) {
            add_labels(x, key, i, v);
        }
    }
}

/* The pods that may be meant: those of the rarest label that must be there. False when the selector
 * names none, and all have to be looked at. */
static bool shortlist(const struct schedule_view *v, const struct api_label_selector *s,
                      const size_t **ret, size_t *ret_n)
{
    *ret = NULL;
    *ret_n = SIZE_MAX;
    for (size_t i = 0; i < s->match_labels.n; i++) {
        const struct api_pair *want = &s->match_labels.items[i];
        size_t n = 0;

        know_key(v->index, v, want->key);
        const size_t *found = label_index_find(v->index->labels, want->key, want->value, &n);
        if (n < *ret_n) {
            *ret = found;
            *ret_n = n;
        }
    }
    return *ret_n != SIZE_MAX;
}

size_t *schedule_count(const struct schedule_view *v, const struct schedule_question *q)
{
    const struct schedule_index *x = v->index;
    ferry_cleanup_free size_t *by_node = ferry_xcalloc(v->n_nodes + 1, sizeof(*by_node));
    const size_t *some = NULL;
    size_t n = 0;
    bool few = shortlist(v, q->selector, &some, &n);

    n = few ? n : v->n_pods;
    for (size_t k = 0; k < n; k++) {
        size_t i = few ? some[k] : k;
        const struct api_pod *other = v->pods[i].pod;

        if (x->home[i] != SIZE_MAX && q->about(q->rule, other) &&
            !ferry_streq(other->meta.uid, v->pod->meta.uid)) {
            by_node[x->home[i]]++;
        }
    }
    return by_domain(v, q->topology, by_node);
}

void schedule_each_apart(const struct schedule_view *v,
                         void (*each)(void *ctx, const struct schedule_apart *a), void *ctx)
{
    const struct schedule_index *x = v->index;
    const struct api_map *labels = &v->pod->meta.labels;

    for (size_t i = 0; i < labels->n; i++) {
        size_t n = 0;
        const size_t *found =
            label_index_find(x->apart_by, labels->items[i].key, labels->items[i].value, &n);

        for (size_t k = 0; k < n; k++) {
            each(ctx, &x->apart[found[k]]);
        }
    }
    for (size_t i = 0; i < x->n_apart_any; i++) {
        each(ctx, &x->apart[x->apart_any[i]]);
    }
}
