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

static struct usage usage_of(const struct schedule_view *v, const struct api_node *node)
{
    struct usage u = {0};

    for (size_t i = 0; i < v->n_pods; i++) {
        if (counts(&v->pods[i]) && ferry_streq(v->pods[i].node, node->meta.name)) {
            u.cpu_milli += v->pods[i].pod->cpu_milli;
            u.memory_bytes += v->pods[i].pod->memory_bytes;
            u.pods++;
        }
    }
    return u;
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

static const struct api_node *node_named(const struct schedule_view *v, const char *name)
{
    for (size_t i = 0; i < v->n_nodes; i++) {
        if (ferry_streq(v->nodes[i]->meta->name, name)) {
            return &v->nodes[i]->u.node;
        }
    }
    return NULL;
}

/* Whether a pod that the term is against is in the node's domain of `topology`. */
static bool domain_has_match(const struct schedule_view *v, const struct api_node *node,
                             const char *topology, const struct api_selector *against)
{
    const char *domain = node_label(node, topology);

    for (size_t i = 0; domain && i < v->n_pods; i++) {
        const struct schedule_pod *p = &v->pods[i];
        const struct api_node *home = counts(p) ? node_named(v, p->node) : NULL;

        if (home && ferry_streq(p->pod->meta.namespace_, v->pod->meta.namespace_) &&
            !ferry_streq(p->pod->meta.uid, v->pod->meta.uid) &&
            ferry_streq(node_label(home, topology), domain) &&
            api_selector_matches_labels(against, &p->pod->meta.labels)) {
            return true;
        }
    }
    return false;
}

struct term {
    const char *topology;
    struct api_selector *against;
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
            why[ANTI_AFFINITY] =
                why[ANTI_AFFINITY] ||
                domain_has_match(v, node, t->items[i].topology, t->items[i].against);
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
    struct terms terms = read_terms(view->pod);
    size_t count[REASONS] = {0};
    double best_share = 0;

    *ret = (struct schedule_answer){0};
    for (size_t i = 0; i < view->n_nodes; i++) {
        const struct api_node *node = &view->nodes[i]->u.node;
        struct usage used = usage_of(view, node);
        bool why[REASONS];

        if (fits(view, view->nodes[i], &terms, &used, why)) {
            double share = (double)(used.memory_bytes + view->pod->memory_bytes) /
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
}
