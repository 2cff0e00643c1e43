#include "control/schedule/schedule_pick.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "control/schedule/schedule_index.h"
#include "control/schedule/schedule_match.h"
#include "control/schedule/schedule_volumes.h"

enum { DEFAULT_PODS = 110, REASON = 128, SHARE_POINTS = 1000 };

/* ---- why nodes do not fit --------------------------------------------------------------------
 */

struct reasons {
    struct {
        char text[REASON];
        size_t count;
    } * items;
    size_t n;
};

static void note(struct reasons *r, const char *text)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strncmp(r->items[i].text, text, REASON - 1) == 0) {
            r->items[i].count++;
            return;
        }
    }
    r->items = ferry_xrealloc(r->items, r->n + 1, sizeof(*r->items));
    snprintf(r->items[r->n].text, REASON, "%s", text);
    r->items[r->n++].count = 1;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* kube-scheduler sorts "COUNT TEXT" as text. */
static void explain(const struct reasons *r, size_t n_nodes, const char *why_none, char *ret,
                    size_t size)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    ferry_cleanup_free char **lines = ferry_xcalloc(r->n + 1, sizeof(char *));

    if (n_nodes == 0) {
        snprintf(ret, size, "no nodes available to schedule pods");
        return;
    }
    ferry_buf_printf(&b, "0/%zu nodes are available:%s%s", n_nodes, *why_none ? " " : "", why_none);
    for (size_t i = 0; i < r->n; i++) {
        lines[i] = ferry_asprintf("%zu %s", r->items[i].count, r->items[i].text);
    }
    qsort(lines, r->n, sizeof(char *), by_text);
    for (size_t i = 0; i < r->n; i++) {
        ferry_buf_printf(&b, "%s%s", i ? ", " : " ", lines[i]);
        free(lines[i]);
    }
    snprintf(ret, size, "%s.", b.data);
}

/* ---- resources -------------------------------------------------------------------------------
 */

static int64_t asks_for(const struct api_pod *pod, const char *resource)
{
    yyjson_val *c;
    int64_t sum = 0, n = 0;
    size_t i, max;

    yyjson_arr_foreach((yyjson_val *)pod->containers, i, max, c)
    {
        yyjson_val *v = yyjson_obj_get(yyjson_ptr_get(c, "/resources/requests"), resource);

        sum += v && api_quantity_val(v, 1, &n, NULL) == 0 && n > 0 ? n : 0;
    }
    return sum;
}

/* Devices and the like, "vendor.com/name", that a pod asks for. */
struct extended {
    const char *name; /* in the pod */
    int64_t amount;
};

struct extended_list {
    struct extended *items;
    size_t n;
};

static bool has_extended(const struct extended_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static struct extended_list list_extended(const struct api_pod *pod)
{
    struct extended_list l = {0};
    yyjson_val *container, *key, *value;
    size_t i, max, k, n;

    yyjson_arr_foreach((yyjson_val *)pod->containers, i, max, container)
    {
        yyjson_obj_foreach(yyjson_ptr_get(container, "/resources/requests"), k, n, key, value)
        {
            const char *name = yyjson_get_str(key);
            int64_t amount = strchr(name, '/') ? asks_for(pod, name) : 0;

            if (amount > 0 && !has_extended(&l, name)) {
                l.items = ferry_xrealloc(l.items, l.n + 1, sizeof(*l.items));
                l.items[l.n++] = (struct extended){name, amount};
            }
        }
    }
    return l;
}

/* Notes what is short, and how much of it. */
static size_t check_extended(const struct extended_list *wanted, const struct schedule_node *n,
                             struct reasons *r)
{
    size_t found = 0;

    for (size_t i = 0; i < wanted->n; i++) {
        const struct extended *w = &wanted->items[i];
        yyjson_val *had = yyjson_obj_get((yyjson_val *)n->node->u.node.allocatable, w->name);
        int64_t there = 0, used = 0;
        char text[REASON];

        for (const struct schedule_entry *e = n->first; e; e = e->next) {
            used += asks_for(&e->pod->u.pod, w->name);
        }
        if (!had || api_quantity_val(had, 1, &there, NULL) < 0 || used + w->amount > there) {
            snprintf(text, sizeof(text), "Insufficient %.100s", w->name);
            note(r, text);
            found++;
        }
    }
    return found;
}

/* Notes all that is short; false when anything is. */
static bool has_room(const struct api_pod *pod, const struct extended_list *extended,
                     const struct schedule_node *u, struct reasons *r)
{
    const struct api_node *node = &u->node->u.node;
    const struct {
        bool is_short;
        const char *text;
    } checks[] = {
        {u->pods + 1 > (node->pods ? node->pods : DEFAULT_PODS), "Too many pods"},
        {u->cpu_milli + pod->cpu_milli > node->cpu_milli, "Insufficient cpu"},
        {u->memory_bytes + pod->memory_bytes > node->memory_bytes, "Insufficient memory"},
        {pod->hugepages_2mi_bytes &&
             u->hugepages_2mi + pod->hugepages_2mi_bytes > node->hugepages_2mi_bytes,
         "Insufficient hugepages-2Mi"},
        {pod->hugepages_1gi_bytes &&
             u->hugepages_1gi + pod->hugepages_1gi_bytes > node->hugepages_1gi_bytes,
         "Insufficient hugepages-1Gi"},
    };
    size_t counted = 0;

    for (size_t k = 0; k < FERRY_COUNT(checks); k++) {
        if (checks[k].is_short) {
            note(r, checks[k].text);
            counted++;
        }
    }
    return counted + check_extended(extended, u, r) == 0;
}

/* ---- the choice ------------------------------------------------------------------------------
 */

struct choice {
    const struct schedule_view *view;
    struct schedule_claims claims;
    struct extended_list extended;
    struct schedule_rules *rules;
    bool unknown;
    struct reasons reasons;
};

/* NULL, or the one reason of the first filter that the node does not pass; resources may have
 * several, which are noted already: then "". */
static const char *filter(struct choice *c, size_t i, size_t *soft_taints)
{
    const struct api_node *node = schedule_node_at(c->view, i);
    const struct api_pod *pod = c->view->pod;
    const char *why = NULL;

    if (node->unschedulable) {
        return "node(s) were unschedulable";
    }
    if (!api_condition_true(&node->conditions, CONDITION_READY)) {
        return "node(s) were not ready";
    }
    if (!schedule_tolerates(pod, node, soft_taints)) {
        return "node(s) had untolerated taint(s)";
    }
    if (c->unknown) {
        return "node(s) refused affinity rules that this scheduler does not know";
    }
    if (!schedule_wants_node(pod, node)) {
        return "node(s) didn't match Pod's node affinity/selector";
    }
    if (!has_room(pod, &c->extended, c->view->index->nodes[i], &c->reasons)) {
        return "";
    }
    why = schedule_claims_check(&c->claims, c->view, node);
    return why ? why : schedule_rules_check(c->rules, i);
}

/* What is preferred first, then room: a share of the memory in thousandths. */
static int64_t score(const struct choice *c, size_t i, size_t soft_taints)
{
    const struct api_node *node = schedule_node_at(c->view, i);
    int64_t memory = node->memory_bytes ? node->memory_bytes : 1;
    int64_t used = c->view->index->nodes[i]->memory_bytes + c->view->pod->memory_bytes;
    int64_t share = (int64_t)((double)used / (double)memory * SHARE_POINTS * SHARE_POINTS);

    return (schedule_rules_score(c->rules, i) - (int64_t)soft_taints) * SHARE_POINTS *
               SHARE_POINTS * 2 -
           share;
}

static void keep_volumes(const struct choice *c, struct schedule_answer *ret)
{
    ferry_cleanup_free const struct api_object **volumes =
        ferry_xcalloc(c->claims.n + 1, sizeof(struct api_object *));

    schedule_claims_assign(&c->claims, c->view, ret->node, volumes);
    for (size_t i = 0; i < c->claims.n && ret->n_keep < SCHEDULE_CLAIMS; i++) {
        if (volumes[i]) {
            ret->keep[ret->n_keep].claim = c->claims.items[i].claim;
            ret->keep[ret->n_keep++].volume = volumes[i];
        }
    }
}

static void choose(struct choice *c, struct schedule_answer *ret)
{
    int64_t best = 0;

    for (size_t i = 0; i < c->view->index->n_nodes; i++) {
        size_t soft = 0;
        const char *why = filter(c, i, &soft);

        if (why && *why) {
            note(&c->reasons, why);
        }
        if (why) {
            continue;
        }
        int64_t points = score(c, i, soft);
        if (!ret->node || points > best) {
            ret->node = schedule_node_at(c->view, i);
            best = points;
        }
    }
    if (ret->node) {
        keep_volumes(c, ret);
    }
}

void schedule_pick(const struct schedule_view *view, struct schedule_answer *ret)
{
    struct choice c = {.view = view,
                       .extended = list_extended(view->pod),
                       .unknown = schedule_is_unknown(view->pod)};

    *ret = (struct schedule_answer){0};
    schedule_claims_make(&c.claims, view);
    if (!c.claims.why[0]) {
        c.rules = schedule_rules_make(view);
        choose(&c, ret);
        schedule_rules_free(c.rules);
    }
    if (!ret->node) {
        explain(&c.reasons, view->index->n_nodes, c.claims.why, ret->message, sizeof(ret->message));
    }
    free(c.reasons.items);
    free(c.extended.items);
    schedule_claims_done(&c.claims);
}
