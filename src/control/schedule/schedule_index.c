/* Theory of operation.
 *
 * A pod that counts is one with a node that is there, and that has not ended. It is *settled*: in
 * the list and the sums of its node, under its labels, and with the terms by which it keeps others
 * off. Whatever changes unsettles it first and settles it after, so that there is one way in and
 * one way out. One whose node is not there is a stray, and settled when the node comes. */
#include "control/schedule/schedule_index.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/plan/facts.h"

/* What pods name in their rules is theirs to choose: past so many keys they are not learned, and
 * rules over them cost a look at all pods. */
enum { KEYS_MAX = 32 };

/* ---- nodes -----------------------------------------------------------------------------------
 */

static const char *name_of(const struct schedule_node *n)
{
    return n->node->meta->name;
}

/* Where a node of that name is or would be. */
static size_t place_of(const struct schedule_index *x, const char *name, bool *ret_found)
{
    size_t low = 0, high = x->n_nodes;

    *ret_found = false;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, name_of(x->nodes[mid]));

        if (order == 0) {
            *ret_found = true;
            return mid;
        }
        if (order < 0) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

static struct schedule_node *find_node(const struct schedule_index *x, const char *name)
{
    bool found;
    size_t at = place_of(x, name, &found);

    return found ? x->nodes[at] : NULL;
}

static void number_nodes(struct schedule_index *x, size_t from)
{
    for (size_t i = from; i < x->n_nodes; i++) {
        x->nodes[i]->at = i;
    }
    x->shape++;
}

static bool same_labels(const struct api_map *a, const struct api_map *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++) {
        same = strcmp(a->items[i].key, b->items[i].key) == 0 &&
               strcmp(a->items[i].value, b->items[i].value) == 0;
    }
    return same;
}

/* ---- settling --------------------------------------------------------------------------------
 */

static const char *node_of(const struct schedule_entry *e)
{
    const char *own = e->pod->u.pod.node_name;

    return ferry_str_empty(own) ? e->assumed : own;
}

static void link_entry(struct schedule_entry **list, struct schedule_entry *e)
{
    e->prev = NULL;
    e->next = *list;
    if (*list) {
        (*list)->prev = e;
    }
    *list = e;
}

static void unlink_entry(struct schedule_entry **list, struct schedule_entry *e)
{
    *(e->prev ? &e->prev->next : list) = e->next;
    if (e->next) {
        e->next->prev = e->prev;
    }
    e->prev = e->next = NULL;
}

static void count_use(struct schedule_node *n, const struct api_pod *pod, int64_t sign)
{
    n->cpu_milli += sign * pod->cpu_milli;
    n->memory_bytes += sign * pod->memory_bytes;
    n->hugepages_2mi += sign * pod->hugepages_2mi_bytes;
    n->hugepages_1gi += sign * pod->hugepages_1gi_bytes;
    n->pods += sign;
}

static void add_label(struct schedule_index *x, struct schedule_entry *e, const char *key)
{
    const char *value = api_map_get(&e->pod->meta->labels, key);

    if (value) {
        struct schedule_label *l = ferry_xcalloc(1, sizeof(*l));

        l->by.thing = e;
        l->next = e->labels;
        e->labels = l;
        label_index_add(x->labels, key, value, &l->by);
    }
}

static void add_apart(struct schedule_index *x, struct schedule_entry *e)
{
    const struct api_pod_terms *anti = &e->pod->u.pod.placement.affinity.anti;

    e->n_apart = anti->n_required;
    e->apart = e->n_apart ? ferry_xcalloc(e->n_apart, sizeof(*e->apart)) : NULL;
    for (size_t i = 0; i < e->n_apart; i++) {
        struct schedule_apart *a = &e->apart[i];
        const struct api_map *named = &anti->required[i].selector.match_labels;

        *a = (struct schedule_apart){.pod = e, .term = &anti->required[i], .by.thing = a};
        label_index_add(x->apart_by, named->n ? named->items[0].key : "",
                        named->n ? named->items[0].value : "", &a->by);
    }
}

static void settle(struct schedule_index *x, struct schedule_entry *e)
{
    const char *name = node_of(e);

    if (!name || wire_pod_is_over(&e->pod->u.pod)) {
        return;
    }
    e->home = find_node(x, name);
    e->stray = !e->home;
    link_entry(e->home ? &e->home->first : &x->strays, e);
    if (e->home) {
        count_use(e->home, &e->pod->u.pod, 1);
        for (size_t i = 0; i < x->n_keys; i++) {
            add_label(x, e, x->keys[i]);
        }
        add_apart(x, e);
    }
}

static void unsettle(struct schedule_index *x, struct schedule_entry *e)
{
    if (e->stray) {
        unlink_entry(&x->strays, e);
        e->stray = false;
    }
    if (!e->home) {
        return;
    }
    unlink_entry(&e->home->first, e);
    count_use(e->home, &e->pod->u.pod, -1);
    e->home = NULL;
    for (struct schedule_label *next; e->labels; e->labels = next) {
        next = e->labels->next;
        label_index_remove(x->labels, &e->labels->by);
        free(e->labels);
    }
    for (size_t i = 0; i < e->n_apart; i++) {
        label_index_remove(x->apart_by, &e->apart[i].by);
    }
    free(e->apart);
    e->apart = NULL;
    e->n_apart = 0;
}

/* ---- changes ---------------------------------------------------------------------------------
 */

static int by_uid(const void *a, const void *b)
{
    return strcmp(((const struct schedule_entry *)a)->pod->meta->uid,
                  ((const struct schedule_entry *)b)->pod->meta->uid);
}

static int uid_of(const void *uid, const void *entry)
{
    return strcmp(uid, ((const struct schedule_entry *)entry)->pod->meta->uid);
}

static struct schedule_entry *find_pod(const struct schedule_index *x, const char *uid)
{
    struct schedule_entry **slot = uid ? tfind(uid, &x->pods, uid_of) : NULL;

    return slot ? *slot : NULL;
}

static struct api_object *referenced(const struct api_object *o)
{
    return api_object_ref((struct api_object *)(uintptr_t)o);
}

void schedule_index_put_pod(struct schedule_index *x, const struct api_object *pod)
{
    struct schedule_entry *e = find_pod(x, pod->meta->uid);
    struct api_object *old = e ? e->pod : NULL;

    if (ferry_str_empty(pod->meta->uid)) {
        return; /* nothing that an API server has written */
    }
    if (e) {
        unsettle(x, e);
        e->pod = referenced(pod);
    } else {
        e = ferry_xcalloc(1, sizeof(*e));
        e->pod = referenced(pod);
        if (!tsearch(e, &x->pods, by_uid)) {
            abort(); /* out of memory */
        }
    }
    if (!ferry_str_empty(pod->u.pod.node_name)) {
        free(e->assumed);
        e->assumed = NULL;
    }
    settle(x, e);
    api_object_unref(old);
}

static void entry_free(void *p)
{
    struct schedule_entry *e = p;

    api_object_unref(e->pod);
    free(e->assumed);
    free(e);
}

void schedule_index_drop_pod(struct schedule_index *x, const char *uid)
{
    struct schedule_entry *e = find_pod(x, uid);

    if (e) {
        unsettle(x, e);
        tdelete(e, &x->pods, by_uid);
        entry_free(e);
    }
}

void schedule_index_assume(struct schedule_index *x, const char *uid, const char *node)
{
    struct schedule_entry *e = find_pod(x, uid);

    if (e && ferry_str_empty(e->pod->u.pod.node_name)) {
        unsettle(x, e);
        free(e->assumed);
        e->assumed = ferry_strdup(node);
        settle(x, e);
    }
}

const struct api_object *schedule_index_pod(const struct schedule_index *x, const char *uid,
                                            const char **ret_node)
{
    const struct schedule_entry *e = find_pod(x, uid);

    *ret_node = e ? node_of(e) : NULL;
    return e ? e->pod : NULL;
}

static struct schedule_node *add_node(struct schedule_index *x, const struct api_object *node,
                                      size_t at)
{
    struct schedule_node *n = ferry_xcalloc(1, sizeof(*n));

    if (x->n_nodes == x->cap_nodes) {
        x->cap_nodes = x->cap_nodes ? 2 * x->cap_nodes : 16;
        x->nodes = ferry_xrealloc(x->nodes, x->cap_nodes, sizeof(struct schedule_node *));
    }
    memmove(&x->nodes[at + 1], &x->nodes[at], (x->n_nodes - at) * sizeof(struct schedule_node *));
    x->nodes[at] = n;
    x->n_nodes++;
    n->node = referenced(node);
    number_nodes(x, at);
    return n;
}

/* Those that wait for the node, by its name. */
static void take_strays(struct schedule_index *x, const char *name)
{
    for (struct schedule_entry *e = x->strays, *next; e; e = next) {
        next = e->next;
        if (strcmp(node_of(e), name) == 0) {
            unsettle(x, e);
            settle(x, e);
        }
    }
}

void schedule_index_put_node(struct schedule_index *x, const struct api_object *node)
{
    bool found;
    size_t at = place_of(x, node->meta->name, &found);

    if (!found) {
        add_node(x, node, at);
        take_strays(x, node->meta->name);
        return;
    }
    struct api_object *old = x->nodes[at]->node;
    x->nodes[at]->node = referenced(node);
    x->shape += !same_labels(&old->meta->labels, &node->meta->labels);
    api_object_unref(old);
}

void schedule_index_drop_node(struct schedule_index *x, const char *name)
{
    bool found;
    size_t at = place_of(x, name, &found);

    if (!found) {
        return;
    }
    struct schedule_node *n = x->nodes[at];
    x->n_nodes--;
    memmove(&x->nodes[at], &x->nodes[at + 1], (x->n_nodes - at) * sizeof(struct schedule_node *));
    number_nodes(x, at);
    while (n->first) {
        struct schedule_entry *e = n->first;

        unsettle(x, e);
        settle(x, e); /* a stray now */
    }
    api_object_unref(n->node);
    free(n);
}

bool schedule_index_learn(struct schedule_index *x, const char *key)
{
    for (size_t i = 0; i < x->n_keys; i++) {
        if (strcmp(x->keys[i], key) == 0) {
            return true;
        }
    }
    if (x->n_keys == KEYS_MAX) {
        return false;
    }
    x->keys = ferry_xrealloc(x->keys, x->n_keys + 1, sizeof(*x->keys));
    x->keys[x->n_keys++] = ferry_strdup(key);
    for (size_t i = 0; i < x->n_nodes; i++) {
        for (struct schedule_entry *e = x->nodes[i]->first; e; e = e->next) {
            add_label(x, e, key);
        }
    }
    return true;
}

/* ---- the whole -------------------------------------------------------------------------------
 */

struct schedule_index *schedule_index_new(void)
{
    struct schedule_index *x = ferry_xcalloc(1, sizeof(*x));

    x->labels = label_index_new();
    x->apart_by = label_index_new();
    return x;
}

void schedule_index_free(struct schedule_index *x)
{
    if (!x) {
        return;
    }
    for (size_t i = 0; i < x->n_nodes; i++) {
        while (x->nodes[i]->first) {
            unsettle(x, x->nodes[i]->first);
        }
        api_object_unref(x->nodes[i]->node);
        free(x->nodes[i]);
    }
    free(x->nodes);
    tdestroy(x->pods, entry_free);
    for (size_t i = 0; i < x->n_keys; i++) {
        free(x->keys[i]);
    }
    free(x->keys);
    for (size_t i = 0; i < x->n_topologies; i++) {
        free(x->topologies[i].key);
        free(x->topologies[i].domain);
    }
    free(x->topologies);
    label_index_free(x->labels);
    label_index_free(x->apart_by);
    free(x);
}
