/* What pods ask of each other: affinity, anti-affinity both ways, and spread over domains. Each
 * rule is counted once over all pods and then asked per node. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "control/schedule/schedule_index.h"
#include "control/schedule/schedule_match.h"

enum rule_kind { RULE_TOGETHER, RULE_APART, RULE_APART_FROM_US, RULE_SPREAD };

struct rule {
    enum rule_kind kind;
    const char *topology;
    size_t *count;     /* by node */
    int64_t weight;    /* 0 = it must hold */
    int64_t max_skew;  /* spread: more than the least may be on a node's domain */
    size_t least, own; /* spread: in the emptiest domain; the pod itself counts */
    bool first;        /* together: there is none to be with, and the pod is one itself */
};

struct schedule_rules {
    const struct schedule_view *view;
    struct rule *items;
    size_t n;
};

static struct rule *add(struct schedule_rules *r, const struct rule *rule)
{
    r->items = ferry_xrealloc(r->items, r->n + 1, sizeof(*r->items));
    r->items[r->n] = *rule;
    return &r->items[r->n++];
}

static bool has_any(const struct schedule_view *v, const size_t *count)
{
    for (size_t i = 0; i < v->index->n_nodes; i++) {
        if (count[i]) {
            return true;
        }
    }
    return false;
}

/* ---- the pod's own terms ---------------------------------------------------------------------
 */

struct term_of {
    const struct api_pod_term *term;
    const struct api_pod *pod;
};

static bool about_term(const void *rule, const struct api_pod *other)
{
    const struct term_of *t = rule;

    return schedule_term_is_about(t->term, t->pod, other);
}

static void add_terms(struct schedule_rules *r, const struct api_pod_term *terms, size_t n,
                      enum rule_kind kind, bool preferred)
{
    const struct api_pod *pod = r->view->pod;

    for (size_t i = 0; i < n; i++) {
        struct term_of t = {&terms[i], pod};

        if (ferry_str_empty(terms[i].topology_key)) {
            continue;
        }
        struct rule *rule =
            add(r, &(struct rule){.kind = kind,
                                  .topology = terms[i].topology_key,
                                  .weight = preferred ? terms[i].weight : 0,
                                  .count = schedule_count(
                                      r->view, &(struct schedule_question){terms[i].topology_key,
                                                                           &terms[i].selector,
                                                                           about_term, &t})});
        rule->first = kind == RULE_TOGETHER && !has_any(r->view, rule->count) &&
                      schedule_term_is_about(&terms[i], pod, pod);
    }
}

/* ---- what others ask of the pod --------------------------------------------------------------
 */

/* One rule for all that ask for the same kind of domain. */
static struct rule *rule_apart_from_us(struct schedule_rules *r, const char *topology)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].kind == RULE_APART_FROM_US && strcmp(r->items[i].topology, topology) == 0) {
            return &r->items[i];
        }
    }
    return add(r,
               &(struct rule){.kind = RULE_APART_FROM_US,
                              .topology = topology,
                              .count = ferry_xcalloc(r->view->index->n_nodes + 1, sizeof(size_t))});
}

static void add_apart_from_us(void *ctx, const struct schedule_apart *a)
{
    struct schedule_rules *r = ctx;
    const struct schedule_view *v = r->view;
    const struct api_pod *other = &a->pod->pod->u.pod;
    const char *key = a->term->topology_key;

    if (ferry_streq(other->meta.uid, v->pod->meta.uid) || ferry_str_empty(key) ||
        !schedule_term_is_about(a->term, other, v->pod)) {
        return;
    }
    const struct schedule_topology *t = schedule_topology(v->index, key);
    size_t domain = t->domain[a->pod->home->at];
    struct rule *rule = rule_apart_from_us(r, key);

    for (size_t i = 0; domain != SIZE_MAX && i < v->index->n_nodes; i++) {
        rule->count[i] += t->domain[i] == domain;
    }
}

/* ---- spread ----------------------------------------------------------------------------------
 */

struct spread_of {
    const struct api_spread *spread;
    const struct api_pod *pod;
};

static bool about_spread(const void *rule, const struct api_pod *other)
{
    const struct spread_of *s = rule;

    return ferry_streq(other->meta.namespace_, s->pod->meta.namespace_) &&
           !other->meta.deleted_ms && schedule_selects(&s->spread->selector, &other->meta.labels);
}

/* In the emptiest of the domains that the pod could go to. */
static size_t least_of(const struct schedule_view *v, const struct api_spread *s,
                       const size_t *count)
{
    const struct schedule_topology *t = schedule_topology(v->index, s->topology_key);
    ferry_cleanup_free bool *seen = ferry_xcalloc(t->n_domains + 1, sizeof(*seen));
    size_t least = SIZE_MAX;
    int64_t domains = 0;

    for (size_t i = 0; i < v->index->n_nodes; i++) {
        if (t->domain[i] != SIZE_MAX && schedule_wants_node(v->pod, schedule_node_at(v, i))) {
            least = count[i] < least ? count[i] : least;
            domains += !seen[t->domain[i]];
            seen[t->domain[i]] = true;
        }
    }
    return least == SIZE_MAX || domains < s->min_domains ? 0 : least;
}

static void add_spreads(struct schedule_rules *r)
{
    const struct schedule_view *v = r->view;

    for (size_t i = 0; i < v->pod->placement.n_spreads; i++) {
        const struct api_spread *s = &v->pod->placement.spreads[i];
        struct spread_of of = {s, v->pod};

        if (ferry_str_empty(s->topology_key)) {
            continue;
        }
        struct rule *rule =
            add(r, &(struct rule){.kind = RULE_SPREAD,
                                  .topology = s->topology_key,
                                  .weight = ferry_streq(s->when_unsatisfiable, "ScheduleAnyway"),
                                  .max_skew = s->max_skew > 0 ? s->max_skew : 1,
                                  .own = schedule_selects(&s->selector, &v->pod->meta.labels),
                                  .count = schedule_count(
                                      v, &(struct schedule_question){s->topology_key, &s->selector,
                                                                     about_spread, &of})});
        rule->least = least_of(v, s, rule->count);
    }
}

/* ---- outside ---------------------------------------------------------------------------------
 */

struct schedule_rules *schedule_rules_make(const struct schedule_view *v)
{
    struct schedule_rules *r = ferry_xcalloc(1, sizeof(*r));
    const struct api_affinity *a = &v->pod->placement.affinity;

    r->view = v;
    add_terms(r, a->pods.required, a->pods.n_required, RULE_TOGETHER, false);
    add_terms(r, a->pods.preferred, a->pods.n_preferred, RULE_TOGETHER, true);
    add_terms(r, a->anti.required, a->anti.n_required, RULE_APART, false);
    add_terms(r, a->anti.preferred, a->anti.n_preferred, RULE_APART, true);
    schedule_each_apart(v, add_apart_from_us, r);
    add_spreads(r);
    return r;
}

void schedule_rules_free(struct schedule_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->items[i].count);
    }
    free(r->items);
    free(r);
}

static const char *check_rule(const struct rule *rule, size_t node, const struct api_node *n)
{
    switch (rule->kind) {
    case RULE_TOGETHER:
        return schedule_node_label(n, rule->topology) && (rule->count[node] || rule->first)
                   ? NULL
                   : "node(s) didn't match pod affinity rules";
    case RULE_APART:
        return rule->count[node] ? "node(s) didn't match pod anti-affinity rules" : NULL;
    case RULE_APART_FROM_US:
        return rule->count[node] ? "node(s) didn't satisfy existing pods anti-affinity rules"
                                 : NULL;
    case RULE_SPREAD:
        if (!schedule_node_label(n, rule->topology)) {
            return "node(s) didn't match pod topology spread constraints (missing required "
                   "label)";
        }
        return (int64_t)(rule->count[node] + rule->own) - (int64_t)rule->least > rule->max_skew
                   ? "node(s) didn't match pod topology spread constraints"
                   : NULL;
    }
    return NULL;
}

const char *schedule_rules_check(const struct schedule_rules *r, size_t node)
{
    /* kube-scheduler asks for spread first. */
    static const enum rule_kind order[] = {RULE_SPREAD, RULE_TOGETHER, RULE_APART,
                                           RULE_APART_FROM_US};
    const struct api_node *n = schedule_node_at(r->view, node);

    for (size_t k = 0; k < FERRY_COUNT(order); k++) {
        for (size_t i = 0; i < r->n; i++) {
            const struct rule *rule = &r->items[i];
            const char *why =
                rule->kind == order[k] && !rule->weight ? check_rule(rule, node, n) : NULL;

            if (why) {
                return why;
            }
        }
    }
    return NULL;
}

int64_t schedule_rules_score(const struct schedule_rules *r, size_t node)
{
    const struct schedule_view *v = r->view;
    const struct api_node *n = schedule_node_at(v, node);
    const struct api_affinity *a = &v->pod->placement.affinity;
    int64_t score = 0;

    for (size_t i = 0; i < a->n_node_preferred; i++) {
        score += schedule_term_holds(&a->node_preferred[i], n) ? a->node_preferred[i].weight : 0;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct rule *rule = &r->items[i];
        int64_t count = (int64_t)rule->count[node];

        if (!rule->weight) {
            continue;
        }
        score += rule->kind == RULE_TOGETHER ? (count ? rule->weight : 0)
                 : rule->kind == RULE_APART  ? (count ? -rule->weight : 0)
                                             : -(count - (int64_t)rule->least);
    }
    return score;
}
