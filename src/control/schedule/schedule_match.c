#include "control/schedule/schedule_match.h"

#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

const char *schedule_node_label(const struct api_node *node, const char *key)
{
    const char *value = api_map_get(&node->meta.labels, key);

    return value || !ferry_streq(key, LABEL_HOSTNAME) ? value : node->meta.name;
}

/* ---- expressions -----------------------------------------------------------------------------
 */

static bool compares(const char *value, const char *op, const struct api_strings *values)
{
    long long had = 0, wanted = 0;

    return values->n == 1 && ferry_parse_int(value, INT64_MIN, INT64_MAX, &had, NULL) == 0 &&
           ferry_parse_int(values->items[0], INT64_MIN, INT64_MAX, &wanted, NULL) == 0 &&
           (strcmp(op, "Gt") == 0 ? had > wanted : had < wanted);
}

static bool holds(const struct api_expression *e, const char *value)
{
    const char *op = e->op ? e->op : "";

    if (strcmp(op, "Exists") == 0) {
        return value != NULL;
    }
    if (strcmp(op, "DoesNotExist") == 0) {
        return !value;
    }
    if (strcmp(op, "NotIn") == 0) {
        return !value || !api_strings_have(&e->values, value);
    }
    if (!value) {
        return false;
    }
    if (strcmp(op, "In") == 0) {
        return api_strings_have(&e->values, value);
    }
    return (strcmp(op, "Gt") == 0 || strcmp(op, "Lt") == 0) && compares(value, op, &e->values);
}

bool schedule_selects(const struct api_label_selector *s, const struct api_map *labels)
{
    if (!s->present) {
        return false;
    }
    for (size_t i = 0; i < s->match_labels.n; i++) {
        const struct api_pair *want = &s->match_labels.items[i];

        if (!ferry_streq(api_map_get(labels, want->key), want->value)) {
            return false;
        }
    }
    for (size_t i = 0; i < s->n_expressions; i++) {
        if (!holds(&s->expressions[i], api_map_get(labels, s->expressions[i].key))) {
            return false;
        }
    }
    return true;
}

/* ---- nodes -----------------------------------------------------------------------------------
 */

bool schedule_term_holds(const struct api_node_term *term, const struct api_node *node)
{
    if (term->n_expressions == 0 && term->n_fields == 0) {
        return false; /* an empty term selects nothing */
    }
    for (size_t i = 0; i < term->n_expressions; i++) {
        const struct api_expression *e = &term->expressions[i];

        if (!holds(e, schedule_node_label(node, e->key))) {
            return false;
        }
    }
    for (size_t i = 0; i < term->n_fields; i++) {
        const struct api_expression *e = &term->fields[i];

        if (!ferry_streq(e->key, "metadata.name") || !holds(e, node->meta.name)) {
            return false;
        }
    }
    return true;
}

bool schedule_terms_hold(const struct api_node_term *terms, size_t n, const struct api_node *node)
{
    for (size_t i = 0; i < n; i++) {
        if (schedule_term_holds(&terms[i], node)) {
            return true;
        }
    }
    return n == 0;
}

bool schedule_wants_node(const struct api_pod *pod, const struct api_node *node)
{
    const struct api_affinity *a = &pod->placement.affinity;

    for (size_t i = 0; i < pod->node_selector.n; i++) {
        const struct api_pair *want = &pod->node_selector.items[i];

        if (!ferry_streq(schedule_node_label(node, want->key), want->value)) {
            return false;
        }
    }
    return schedule_terms_hold(a->node_required, a->n_node_required, node);
}

static bool tolerates(const struct api_toleration *t, const struct api_taint *taint)
{
    bool any_value = ferry_streq(t->op, "Exists");

    if (!ferry_str_empty(t->effect) && !ferry_streq(t->effect, taint->effect)) {
        return false;
    }
    if (ferry_str_empty(t->key)) {
        return any_value;
    }
    const char *wanted = t->value ? t->value : "", *had = taint->value ? taint->value : "";
    return ferry_streq(t->key, taint->key) && (any_value || strcmp(wanted, had) == 0);
}

bool schedule_tolerates(const struct api_pod *pod, const struct api_node *node, size_t *soft)
{
    const struct api_placement *p = &pod->placement;
    bool all = true;

    *soft = 0;
    for (size_t i = 0; i < node->n_taints; i++) {
        bool fine = false;

        for (size_t k = 0; k < p->n_tolerations; k++) {
            fine = fine || tolerates(&p->tolerations[k], &node->taints[i]);
        }
        if (!fine && ferry_streq(node->taints[i].effect, "PreferNoSchedule")) {
            (*soft)++;
        } else if (!fine) {
            all = false;
        }
    }
    return all;
}

/* ---- pods ------------------------------------------------------------------------------------
 */

bool schedule_term_is_about(const struct api_pod_term *term, const struct api_pod *pod,
                            const struct api_pod *other)
{
    bool in_namespace = term->namespaces.n > 0
                            ? api_strings_have(&term->namespaces, other->meta.namespace_)
                            : ferry_streq(other->meta.namespace_, pod->meta.namespace_);

    return in_namespace && schedule_selects(&term->selector, &other->meta.labels);
}

static bool has_unknown_operator(const struct api_expression *list, size_t n)
{
    static const char *const known[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};

    for (size_t i = 0; i < n; i++) {
        bool found = false;

        for (size_t k = 0; k < FERRY_COUNT(known); k++) {
            found = found || ferry_streq(list[i].op, known[k]);
        }
        if (!found) {
            return true;
        }
    }
    return false;
}

static bool terms_unknown(const struct api_pod_terms *t)
{
    for (size_t i = 0; i < t->n_required; i++) {
        if (ferry_str_empty(t->required[i].topology_key) ||
            has_unknown_operator(t->required[i].selector.expressions,
                                 t->required[i].selector.n_expressions)) {
            return true;
        }
    }
    return false;
}

/* Namespaces by their labels: nobody here looks at those. */
static bool selects_namespaces(const struct api_pod *pod, const char *what)
{
    yyjson_val *rules = yyjson_obj_get((yyjson_val *)pod->affinity, what), *term;
    yyjson_val *list = yyjson_obj_get(rules, "requiredDuringSchedulingIgnoredDuringExecution");
    size_t i, max;

    yyjson_arr_foreach(list, i, max, term)
    {
        if (yyjson_obj_get(term, "namespaceSelector")) {
            return true;
        }
    }
    return false;
}

bool schedule_is_unknown(const struct api_pod *pod)
{
    const struct api_affinity *a = &pod->placement.affinity;

    for (size_t i = 0; i < a->n_node_required; i++) {
        if (has_unknown_operator(a->node_required[i].expressions,
                                 a->node_required[i].n_expressions)) {
            return true;
        }
    }
    return terms_unknown(&a->pods) || terms_unknown(&a->anti) ||
           selects_namespaces(pod, "podAffinity") || selects_namespaces(pod, "podAntiAffinity");
}
