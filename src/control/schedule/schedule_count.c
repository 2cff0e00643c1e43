/* What the scheduler asks of its index: which nodes belong together, how many pods of a kind are
 * there, and who keeps others off. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "control/schedule/schedule_index.h"
#include "control/schedule/schedule_match.h"

enum { TOPOLOGIES_MAX = 8 };

/* ---- domains ---------------------------------------------------------------------------------
 */

struct place {
    const char *domain;
    size_t node;
};

static int by_domain(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->domain, ((const struct place *)b)->domain);
}

/* Nodes with the same value of the label get the same number. */
static void find_domains(const struct schedule_index *x, struct schedule_topology *t)
{
    ferry_cleanup_free struct place *places = ferry_xcalloc(x->n_nodes + 1, sizeof(*places));
    size_t n = 0;

    t->domain = ferry_xrealloc(t->domain, x->n_nodes + 1, sizeof(*t->domain));
    t->n_domains = 0;
    t->made_for = x->shape;
    for (size_t i = 0; i < x->n_nodes; i++) {
        const char *domain = schedule_node_label(&x->nodes[i]->node->u.node, t->key);

        t->domain[i] = SIZE_MAX;
        if (domain) {
            places[n++] = (struct place){domain, i};
        }
    }
    qsort(places, n, sizeof(*places), by_domain);
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || strcmp(places[i - 1].domain, places[i].domain) != 0;

        t->n_domains += first;
        t->domain[places[i].node] = t->n_domains - 1;
    }
}

const struct schedule_topology *schedule_topology(struct schedule_index *x, const char *key)
{
    struct schedule_topology *t = NULL;

    for (size_t i = 0; !t && i < x->n_topologies; i++) {
        t = strcmp(x->topologies[i].key, key) == 0 ? &x->topologies[i] : NULL;
    }
    if (t && t->made_for == x->shape) {
        return t;
    }
    if (!t && x->n_topologies < TOPOLOGIES_MAX) {
        x->topologies = ferry_xrealloc(x->topologies, x->n_topologies + 1, sizeof(*x->topologies));
        t = &x->topologies[x->n_topologies++];
        *t = (struct schedule_topology){.key = ferry_strdup(key)};
    } else if (!t) {
        t = &x->topologies[TOPOLOGIES_MAX - 1]; /* the last makes room */
        free(t->key);
        t->key = ferry_strdup(key);
    }
    find_domains(x, t);
    return t;
}

/* ---- questions -------------------------------------------------------------------------------
 */

/* The pods that may be meant: those of the rarest label that must be there. False when the selector
 * names none that is known, and all have to be looked at. */
static bool shortlist(struct schedule_index *x, const struct api_label_selector *s,
                      struct label_member *const **ret, size_t *ret_n)
{
    *ret = NULL;
    *ret_n = SIZE_MAX;
    for (size_t i = 0; i < s->match_labels.n; i++) {
        const struct api_pair *want = &s->match_labels.items[i];
        size_t n = 0;

        if (!schedule_index_learn(x, want->key)) {
            continue;
        }
        struct label_member *const *found = label_index_find(x->labels, want->key, want->value, &n);
        if (n < *ret_n) {
            *ret = found;
            *ret_n = n;
        }
    }
    return *ret_n != SIZE_MAX;
}

struct counting {
    const struct schedule_view *view;
    const struct schedule_question *question;
    const struct schedule_topology *topology;
    size_t *by_domain;
};

static void count_entry(const struct counting *c, const struct schedule_entry *e)
{
    size_t domain = c->topology->domain[e->home->at];

    if (domain != SIZE_MAX && c->question->about(c->question->rule, &e->pod->u.pod) &&
        !ferry_streq(e->pod->meta->uid, c->view->pod->meta.uid)) {
        c->by_domain[domain]++;
    }
}

size_t *schedule_count(const struct schedule_view *v, const struct schedule_question *q)
{
    struct schedule_index *x = v->index;
    const struct schedule_topology *t = schedule_topology(x, q->topology);
    ferry_cleanup_free size_t *by_domain = ferry_xcalloc(t->n_domains + 1, sizeof(*by_domain));
    struct counting c = {v, q, t, by_domain};
    size_t *by_node = ferry_xcalloc(x->n_nodes + 1, sizeof(*by_node)), n = 0;
    struct label_member *const *some = NULL;

    if (shortlist(x, q->selector, &some, &n)) {
        for (size_t i = 0; i < n; i++) {
            count_entry(&c, some[i]->thing);
        }
    } else {
        for (size_t i = 0; i < x->n_nodes; i++) {
            for (const struct schedule_entry *e = x->nodes[i]->first; e; e = e->next) {
                count_entry(&c, e);
            }
        }
    }
    for (size_t i = 0; i < x->n_nodes; i++) {
        by_node[i] = t->domain[i] == SIZE_MAX ? 0 : by_domain[t->domain[i]];
    }
    return by_node;
}

static void each_apart_by(const struct schedule_index *x, const char *key, const char *value,
                          void (*each)(void *ctx, const struct schedule_apart *a), void *ctx)
{
    size_t n = 0;
    struct label_member *const *found = label_index_find(x->apart_by, key, value, &n);

    for (size_t i = 0; i < n; i++) {
        each(ctx, found[i]->thing);
    }
}

void schedule_each_apart(const struct schedule_view *v,
                         void (*each)(void *ctx, const struct schedule_apart *a), void *ctx)
{
    const struct api_map *labels = &v->pod->meta.labels;

    for (size_t i = 0; i < labels->n; i++) {
        each_apart_by(v->index, labels->items[i].key, labels->items[i].value, each, ctx);
    }
    each_apart_by(v->index, "", "", each, ctx);
}
