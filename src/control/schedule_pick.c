#include "control/schedule_pick.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/selector.h"
#include "base/str.h"
#include "control/facts.h"
#include "control/names.h"

enum { DEFAULT_PODS = 110 };

/* Why a node does not fit; the order is that of the answer's text. */
enum reason {
    INSUFFICIENT_CPU,
    INSUFFICIENT_MEMORY,
    TOO_MANY_PODS,
    SELECTOR,
    ANTI_AFFINITY,
    UNSUPPORTED_AFFINITY,
    NOT_READY,
    UNSCHEDULABLE,
    TAINTED,
    REASONS
};

static const char *const reason_text[] = {
    [INSUFFICIENT_CPU] = "Insufficient cpu",
    [INSUFFICIENT_MEMORY] = "Insufficient memory",
    [TOO_MANY_PODS] = "Too many pods",
    [NOT_READY] = "node(s) were not ready",
    [UNSCHEDULABLE] = "node(s) were unschedulable",
    [TAINTED] = "node(s) had untolerated taint(s)",
    [ANTI_AFFINITY] = "node(s) didn't match pod anti-affinity rules",
    [SELECTOR] = "node(s) didn't match Pod's node affinity/selector",
    [UNSUPPORTED_AFFINITY] = "node(s) refused affinity rules that this scheduler does not know",
};
_Static_assert(sizeof(reason_text) / sizeof(reason_text[0]) == REASONS, "a text per reason");

/* What a node has in use. */
struct usage {
    int64_t cpu_milli, memory_bytes, pods;
};

/* Every node has a host name, labelled or not. */
static const char *node_label(const struct api_node *node, const char *key)
{
    const char *value = api_map_get(&node->meta.labels, key);

    return value || strcmp(key, LABEL_HOSTNAME) != 0 ? value : node->meta.name;
}

static bool counts(const struct schedule_pod *p)
{
    return p->node && !pod_is_down(p->pod);
}

/* ---- index -----------------------------------------------------------------------------------
 */

enum { NOWHERE = -1 };

struct schedule_index {
    struct usage *used; /* by node */
    int *homes;         /* by pod: number of its node */
    int *buckets;       /* nodes by the hash of their names */
    int *next;          /* by node: the next in its bucket */
    size_t n_buckets;
};

static size_t bucket_of(const struct schedule_index *x, const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *name; name++) {
        h = (h ^ (unsigned char)*name) * 16777619u;
    }
    return h % x->n_buckets;
}

static int find_node(const struct schedule_index *x, const struct schedule_view *v,
                     const char *name)
{
    int i = x->buckets[bucket_of(x, name)];

    while (i >= 0 && strcmp(v->nodes[i]->meta->name, name) != 0) {
        i = x->next[i];
    }
    return i;
}

static void add_usage(struct schedule_index *x, const struct api_pod *pod, int node)
{
    x->used[node].cpu_milli += pod->cpu_milli;
    x->used[node].memory_bytes += pod->memory_bytes;
    x->used[node].pods++;
}

struct schedule_index *schedule_index_new(const struct schedule_view *v)
{
    struct schedule_index *x = ferry_xcalloc(1, sizeof(*x));

    x->n_buckets = 2 * v->n_nodes + 1;
    x->used = ferry_xcalloc(v->n_nodes + 1, sizeof(*x->used));
    x->homes = ferry_xcalloc(v->n_pods + 1, sizeof(*x->homes));
    x->next = ferry_xcalloc(v->n_nodes + 1, sizeof(*x->next));
    x->buckets = ferry_xcalloc(x->n_buckets, sizeof(*x->buckets));
    for (size_t i = 0; i < x->n_buckets; i++) {
        x->buckets[i] = NOWHERE;
    }
    for (size_t i = 0; i < v->n_nodes; i++) {
        int *bucket = &x->buckets[bucket_of(x, v->nodes[i]->meta->name)];

        x->next[i] = *bucket;
        *bucket = (int)i;
    }
    for (size_t i = 0; i < v->n_pods; i++) {
        x->homes[i] = counts(&v->pods[i]) ? find_node(x, v, v->pods[i].node) : NOWHERE;
        if (x->homes[i] >= 0) {
            add_usage(x, v->pods[i].pod, x->homes[i]);
        }
    }
    return x;
}

void schedule_index_free(struct schedule_index *x)
{
    if (x) {
        free(x->used);
        free(x->homes);
        free(x->next);
        free(x->buckets);
        free(x);
    }
}

void schedule_index_add(struct schedule_index *x, const struct schedule_view *v)
{
    size_t i = v->n_pods - 1;

    x->homes = ferry_xrealloc(x->homes, v->n_pods, sizeof(*x->homes));
    x->homes[i] = find_node(x, v, v->pods[i].node);
    if (x->homes[i] >= 0) {
        add_usage(x, v->pods[i].pod, x->homes[i]);
    }
}

static bool matches_selector(const struct api_pod *pod, const struct api_node *node)
{
    for (size_t i = 0; i < pod->node_selector.n; i++) {
        const struct api_pair *want = &pod->node_selector.items[i];

        if (!ferry_streq(node_label(node, want->key), want->value)) {
            return false;
        }
    }
    return true;
}

/* ---- anti-affinity ---------------------------------------------------------------------------
 */

static const char REQUIRED[] = "requiredDuringSchedulingIgnoredDuringExecution";

static yyjson_val *required_terms(const struct api_pod *pod, const char *what)
{
    yyjson_val *rules = yyjson_obj_get((yyjson_val *)pod->affinity, what);

    return yyjson_obj_get(rules, REQUIRED);
}

/* A metav1.LabelSelector as text for the selector parser; NULL when it says what we do not know. */
static char *selector_text(yyjson_val *selector)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    yyjson_val *expressions = yyjson_obj_get(selector, "matchExpressions"), *key, *value, *e;
    size_t i, max;

    yyjson_obj_foreach(yyjson_obj_get(selector, "matchLabels"), i, max, key, value)
    {
        ferry_buf_printf(&b, "%s%s=%s", b.len ? "," : "", yyjson_get_str(key),
                         yyjson_get_str(value) ? yyjson_get_str(value) : "");
    }
    yyjson_arr_foreach(expressions, i, max, e)
    {
        const char *name = api_json_str(e, "/key"), *op = api_json_str(e, "/operator");
        yyjson_val *values = yyjson_obj_get(e, "values"), *x;
        bool set = ferry_streq(op, "In") || ferry_streq(op, "NotIn");
        size_t k, n;

        if (!name || !(set || ferry_streq(op, "Exists") || ferry_streq(op, "DoesNotExist"))) {
            return NULL;
        }
        ferry_buf_puts(&b, b.len ? "," : "");
        if (!set) {
            ferry_buf_printf(&b, "%s%s", strcmp(op, "Exists") == 0 ? "" : "!", name);
            continue;
        }
        ferry_buf_printf(&b, "%s %s (", name, strcmp(op, "In") == 0 ? "in" : "notin");
        yyjson_arr_foreach(values, k, n, x)
        {
            ferry_buf_printf(&b, "%s%s", k ? "," : "", yyjson_get_str(x) ? yyjson_get_str(x) : "");
        }
        ferry_buf_puts(&b, ")");
    }
    return ferry_buf_take(&b);
}

struct term {
    const char *topology;
    struct api_selector *against;
    const struct api_node **homes; /* of the pods that it is against */
    size_t n_homes;
};

struct terms {
    struct term *items;
    size_t n;
    bool unsupported;
};

static void terms_done(struct terms *t)
{
    for (size_t i = 0; i < t->n; i++) {
        api_selector_free(t->items[i].against);
        free(t->items[i].homes);
    }
    free(t->items);
}

static struct terms read_terms(const struct api_pod *pod)
{
    yyjson_val *list = required_terms(pod, "podAntiAffinity"), *term;
    struct terms t = {.unsupported = required_terms(pod, "nodeAffinity") != NULL ||
                                     required_terms(pod, "podAffinity") != NULL};
    size_t i, max;

    t.items = ferry_xcalloc(yyjson_arr_size(list) + 1, sizeof(struct term));
    yyjson_arr_foreach(list, i, max, term)
    {
        ferry_cleanup_free char *text = selector_text(yyjson_obj_get(term, "labelSelector"));
        struct term *to = &t.items[t.n];

        to->topology = api_json_str(term, "/topologyKey");
        if (!text || !to->topology || yyjson_obj_get(term, "namespaceSelector") ||
            yyjson_obj_get(term, "namespaces") ||
            api_selector_parse_labels(text, &to->against, NULL) < 0) {
            t.unsupported = true;
        } else {
            t.n++;
        }
    }
    return t;
}

/* Where the pods are that the terms are against: one look at each pod serves all nodes. */
static void find_homes(const struct schedule_view *v, const struct schedule_index *x,
                       struct terms *t)
{
    for (size_t i = 0; t->n > 0 && i < v->n_pods; i++) {
        const struct api_pod *p = v->pods[i].pod;

        if (x->homes[i] < 0 || !ferry_streq(p->meta.namespace_, v->pod->meta.namespace_) ||
            ferry_streq(p->meta.uid, v->pod->meta.uid)) {
            continue;
        }
        for (size_t k = 0; k < t->n; k++) {
            struct term *term = &t->items[k];

            if (api_selector_matches_labels(term->against, &p->meta.labels)) {
                term->homes = ferry_xrealloc(term->homes, term->n_homes + 1, sizeof(*term->homes));
                term->homes[term->n_homes++] = &v->nodes[x->homes[i]]->u.node;
            }
        }
    }
}

/* Whether a pod that the term is against is in the node's domain. */
static bool domain_has_match(const struct api_node *node, const struct term *term)
{
    const char *domain = node_label(node, term->topology);

    for (size_t i = 0; domain && i < term->n_homes; i++) {
        if (ferry_streq(node_label(term->homes[i], term->topology), domain)) {
            return true;
        }
    }
    return false;
}

/* ---- the choice ------------------------------------------------------------------------------
 */

/* Launcher pods tolerate nothing: any taint that keeps pods off keeps them off. */
static bool is_tainted(const struct api_object *node)
{
    yyjson_val *taints = yyjson_ptr_get((yyjson_val *)node->root, "/spec/taints");
    yyjson_arr_iter it = yyjson_arr_iter_with(taints);

    for (yyjson_val *t; (t = yyjson_arr_iter_next(&it));) {
        if (!ferry_streq(api_json_str(t, "/effect"), "PreferNoSchedule")) {
            return true;
        }
    }
    return false;
}

/* Marks in `why` all that speaks against a node; false when there is any. */
static bool fits(const struct schedule_view *v, const struct api_object *o, const struct terms *t,
                 const struct usage *used, bool why[REASONS])
{
    const struct api_node *node = &o->u.node;
    int64_t pods = node->pods ? node->pods : DEFAULT_PODS;

    memset(why, 0, REASONS * sizeof(bool));
    if (node->unschedulable) {
        why[UNSCHEDULABLE] = true;
    } else if (!api_condition_true(&node->conditions, "Ready")) {
        why[NOT_READY] = true;
    } else if (is_tainted(o)) {
        why[TAINTED] = true;
    } else if (t->unsupported) {
        why[UNSUPPORTED_AFFINITY] = true;
    } else if (!matches_selector(v->pod, node)) {
        why[SELECTOR] = true;
    } else {
        why[INSUFFICIENT_CPU] = used->cpu_milli + v->pod->cpu_milli > node->cpu_milli;
        why[INSUFFICIENT_MEMORY] = used->memory_bytes + v->pod->memory_bytes > node->memory_bytes;
        why[TOO_MANY_PODS] = used->pods + 1 > pods;
        for (size_t i = 0; i < t->n; i++) {
            why[ANTI_AFFINITY] = why[ANTI_AFFINITY] || domain_has_match(node, &t->items[i]);
        }
    }
    for (size_t i = 0; i < REASONS; i++) {
        if (why[i]) {
            return false;
        }
    }
    return true;
}

static void explain(const struct schedule_view *v, const size_t count[REASONS],
                    struct schedule_answer *ret)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (v->n_nodes == 0) {
        snprintf(ret->message, sizeof(ret->message), "no nodes available to schedule pods");
        return;
    }
    ferry_buf_printf(&b, "0/%zu nodes are available:", v->n_nodes);
    const char *separator = " ";
    for (size_t i = 0; i < REASONS; i++) {
        if (count[i]) {
            ferry_buf_printf(&b, "%s%zu %s", separator, count[i], reason_text[i]);
            separator = ", ";
        }
    }
    snprintf(ret->message, sizeof(ret->message), "%s.", b.data);
}

void schedule_pick(const struct schedule_view *view, struct schedule_answer *ret)
{
    struct schedule_index *own = view->index ? NULL : schedule_index_new(view);
    const struct schedule_index *index = own ? own : view->index;
    struct terms terms = read_terms(view->pod);
    size_t count[REASONS] = {0};
    double best_share = 0;

    *ret = (struct schedule_answer){0};
    find_homes(view, index, &terms);
    for (size_t i = 0; i < view->n_nodes; i++) {
        const struct api_node *node = &view->nodes[i]->u.node;
        const struct usage *used = &index->used[i];
        bool why[REASONS];

        if (fits(view, view->nodes[i], &terms, used, why)) {
            double share = (double)(used->memory_bytes + view->pod->memory_bytes) /
                           (double)(node->memory_bytes ? node->memory_bytes : 1);

            if (!ret->node || share < best_share) {
                ret->node = node;
                best_share = share;
            }
            continue;
        }
        for (size_t k = 0; k < REASONS; k++) {
            count[k] += why[k];
        }
    }
    if (!ret->node) {
        explain(view, count, ret);
    }
    terms_done(&terms);
    schedule_index_free(own);
}
