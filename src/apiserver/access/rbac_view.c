/* Theory of operation. A view has the four kinds as they stand in the store, each object parsed
 * once: the next view takes over what has not changed. A binding knows its role, a ClusterRole the
 * lists of rules that it stands for: its own or, when it is aggregated, those of the roles that its
 * selectors find, and of the ones that these find. So what a role is made of holds as soon as it is
 * stored; that the gathered rules are also written into the object is for those who read it.
 *
 * Whether a view is still true is seen by the version of the last change of any of the four kinds.
 * It is asked for before the lists are, so that a change in between makes the next one new. */
#include "apiserver/access/rbac_view.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/count.h"

enum kind { ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS, KINDS };
static const char *const plurals[] = {"roles", "clusterroles", "rolebindings",
                                      "clusterrolebindings"};
_Static_assert(FERRY_COUNT(plurals) == KINDS, "one for each");

/* One stored object; shared by views. */
struct item {
    atomic_uint refs;
    struct entry *entry;
    yyjson_doc *doc;
};

/* What a view knows of one object beside it. */
struct slot {
    struct item *item;
    struct rbac_rules rules; /* of a role */
    const struct slot *role; /* of a binding, or NULL: there is none of that name */
    bool visited;            /* while rules are gathered */
};

struct set {
    struct slot *slots; /* in the order of namespace and name */
    size_t n;
};

struct rbac_view {
    atomic_uint refs;
    uint64_t version;
    struct set sets[KINDS];
};

struct rbac {
    struct store *store;
    const struct api_resource *resources[KINDS];
    pthread_mutex_t lock; /* what follows */
    struct rbac_view *now;
};

/* ---- objects -----------------------------------------------------------------------------------
 */

static struct item *item_new(struct entry *e)
{
    struct item *it = ferry_xcalloc(1, sizeof(*it));

    atomic_init(&it->refs, 1);
    it->entry = entry_ref(e);
    it->doc = entry_doc(e);
    return it;
}

static void item_unref(struct item *it)
{
    if (it && atomic_fetch_sub(&it->refs, 1) == 1) {
        entry_unref(it->entry);
        yyjson_doc_free(it->doc);
        free(it);
    }
}

static const yyjson_val *root_of(const struct slot *s)
{
    return yyjson_doc_get_root(s->item->doc);
}

static int compare(const struct slot *s, const char *ns, const char *name)
{
    int by_ns = strcmp(s->item->entry->ns, ns);

    return by_ns ? by_ns : strcmp(s->item->entry->name, name);
}

/* The first that does not come before. */
static size_t lower(const struct set *set, const char *ns, const char *name)
{
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&set->slots[middle], ns, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct slot *find(const struct set *set, const char *ns, const char *name)
{
    size_t i = lower(set, ns, name);

    return i < set->n && compare(&set->slots[i], ns, name) == 0 ? &set->slots[i] : NULL;
}

/* ---- making a view -----------------------------------------------------------------------------
 */

/* Both lists are in order: what is the same in both goes on to be used. */
static void fill(struct set *set, const struct entry_list *list, const struct set *before)
{
    size_t old = 0;

    set->slots = ferry_xcalloc(list->n + 1, sizeof(*set->slots));
    set->n = list->n;
    for (size_t i = 0; i < list->n; i++) {
        struct entry *e = list->items[i];

        while (before && old < before->n && compare(&before->slots[old], e->ns, e->name) < 0) {
            old++;
        }
        struct item *kept =
            before && old < before->n && before->slots[old].item->entry->version == e->version
                ? before->slots[old].item
                : NULL;
        if (kept) {
            atomic_fetch_add(&kept->refs, 1);
        }
        set->slots[i].item = kept ? kept : item_new(e);
    }
}

static struct ferry_span label_of(const void *e, const char *key)
{
    return entry_label(e, key);
}

static yyjson_val *selectors_of(const struct slot *s)
{
    return yyjson_ptr_get((yyjson_val *)root_of(s), "/aggregationRule/clusterRoleSelectors");
}

static bool is_aggregated(const struct slot *s)
{
    return yyjson_is_obj(yyjson_obj_get((yyjson_val *)root_of(s), "aggregationRule"));
}

/* A role that selects itself, or one that selects it, is met once. */
static void gather(struct set *roles, struct slot *s, struct rbac_rules *ret)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(selectors_of(s));

    if (s->visited) {
        return;
    }
    s->visited = true;
    if (!is_aggregated(s)) {
        rbac_rules_add(ret, yyjson_obj_get((yyjson_val *)root_of(s), "rules"));
        return;
    }
    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        for (size_t i = 0; i < roles->n; i++) {
            if (rbac_selects(v, label_of, roles->slots[i].item->entry)) {
                gather(roles, &roles->slots[i], ret);
            }
        }
    }
}

static void gather_all(struct set *roles)
{
    for (size_t i = 0; i < roles->n; i++) {
        gather(roles, &roles->slots[i], &roles->slots[i].rules);
        for (size_t k = 0; k < roles->n; k++) {
            roles->slots[k].visited = false;
        }
    }
}

static const struct slot *role_of(const struct rbac_view *v, const char *kind, const char *ns,
                                  const char *name)
{
    if (ferry_streq(kind, "ClusterRole")) {
        return find(&v->sets[CLUSTER_ROLES], "", name);
    }
    return ferry_streq(kind, "Role") && *ns ? find(&v->sets[ROLES], ns, name) : NULL;
}

static void resolve(struct rbac_view *v, struct set *bindings)
{
    for (size_t i = 0; i < bindings->n; i++) {
        struct slot *s = &bindings->slots[i];
        const char *kind = api_json_str(root_of(s), "/roleRef/kind");
        const char *name = api_json_str(root_of(s), "/roleRef/name");

        s->role = kind && name ? role_of(v, kind, s->item->entry->ns, name) : NULL;
    }
}

static struct rbac_view *view_new(const struct rbac *r, uint64_t version)
{
    struct rbac_view *v = ferry_xcalloc(1, sizeof(*v));

    atomic_init(&v->refs, 1);
    v->version = version;
    for (size_t k = 0; k < KINDS; k++) {
        cleanup_entry_list struct entry_list list = {0};

        store_list(r->store, r->resources[k], NULL, &list);
        fill(&v->sets[k], &list, r->now ? &r->now->sets[k] : NULL);
    }
    for (size_t i = 0; i < v->sets[ROLES].n; i++) {
        struct slot *s = &v->sets[ROLES].slots[i];

        rbac_rules_add(&s->rules, yyjson_obj_get((yyjson_val *)root_of(s), "rules"));
    }
    gather_all(&v->sets[CLUSTER_ROLES]);
    resolve(v, &v->sets[BINDINGS]);
    resolve(v, &v->sets[CLUSTER_BINDINGS]);
    return v;
}

void rbac_view_unref(struct rbac_view *v)
{
    if (!v || atomic_fetch_sub(&v->refs, 1) != 1) {
        return;
    }
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < v->sets[k].n; i++) {
            item_unref(v->sets[k].slots[i].item);
            rbac_rules_done(&v->sets[k].slots[i].rules);
        }
        free(v->sets[k].slots);
    }
    free(v);
}

struct rbac_view *rbac_view_take(struct rbac *r)
{
    pthread_mutex_lock(&r->lock);
    uint64_t version = store_changed(r->store, r->resources, KINDS);
    if (!r->now || r->now->version != version) {
        struct rbac_view *v = view_new(r, version);

        rbac_view_unref(r->now);
        r->now = v;
    }
    struct rbac_view *v = r->now;
    atomic_fetch_add(&v->refs, 1);
    pthread_mutex_unlock(&r->lock);
    return v;
}

struct rbac *rbac_new(struct store *store)
{
    struct rbac *r = ferry_xcalloc(1, sizeof(*r));

    r->store = store;
    pthread_mutex_init(&r->lock, NULL);
    for (size_t k = 0; k < KINDS; k++) {
        r->resources[k] = api_resource_find(RBAC_GROUP, "v1", plurals[k]);
    }
    return r;
}

void rbac_free(struct rbac *r)
{
    if (r) {
        rbac_view_unref(r->now);
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
}

/* ---- asking ------------------------------------------------------------------------------------
 */

static bool is_bound(const struct slot *binding, const struct rbac_user *user)
{
    yyjson_arr_iter it =
        yyjson_arr_iter_with(yyjson_obj_get((yyjson_val *)root_of(binding), "subjects"));

    for (yyjson_val *v; binding->role && (v = yyjson_arr_iter_next(&it));) {
        if (rbac_subject_is(v, binding->item->entry->ns, user)) {
            return true;
        }
    }
    return false;
}

static bool rules_allow(const struct rbac_rules *rules, const struct rbac_ask *ask)
{
    for (size_t i = 0; i < rules->n; i++) {
        yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)rules->lists[i]);

        for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
            if (rbac_rule_allows(rule, ask)) {
                return true;
            }
        }
    }
    return false;
}

/* Bindings of the cluster, then those of the namespace. */
struct walk {
    const struct rbac_view *v;
    const char *ns;
    bool inside; /* the namespace's */
    size_t i;
};

static const struct slot *next(struct walk *w)
{
    const struct set *cluster = &w->v->sets[CLUSTER_BINDINGS], *set = &w->v->sets[BINDINGS];

    if (!w->inside && w->i < cluster->n) {
        return &cluster->slots[w->i++];
    }
    if (!w->inside) {
        w->inside = true;
        w->i = *w->ns ? lower(set, w->ns, "") : set->n;
    }
    return w->i < set->n && ferry_streq(set->slots[w->i].item->entry->ns, w->ns)
               ? &set->slots[w->i++]
               : NULL;
}

bool rbac_view_allows(const struct rbac_view *v, const struct rbac_user *user,
                      const struct rbac_ask *ask, struct rbac_grant *ret)
{
    struct walk w = {.v = v, .ns = ask->path ? "" : ask->ns};

    for (const struct slot *s; v && (s = next(&w));) {
        if (!is_bound(s, user) || !rules_allow(&s->role->rules, ask)) {
            continue;
        }
        if (ret) {
            *ret = (struct rbac_grant){.kind = s->item->entry->resource->kind_name,
                                       .ns = s->item->entry->ns,
                                       .name = s->item->entry->name,
                                       .role_kind = s->role->item->entry->resource->kind_name,
                                       .role = s->role->item->entry->name};
        }
        return true;
    }
    return false;
}

void rbac_view_rules(const struct rbac_view *v, const struct rbac_user *user, const char *ns,
                     struct rbac_rules *ret)
{
    struct walk w = {.v = v, .ns = ns};

    for (const struct slot *s; v && (s = next(&w));) {
        for (size_t i = 0; is_bound(s, user) && i < s->role->rules.n; i++) {
            rbac_rules_add(ret, s->role->rules.lists[i]);
        }
    }
}

bool rbac_view_role(const struct rbac_view *v, const char *kind, const char *ns, const char *name,
                    struct rbac_rules *ret)
{
    const struct slot *s = role_of(v, kind, ns, name);

    for (size_t i = 0; s && i < s->rules.n; i++) {
        rbac_rules_add(ret, s->rules.lists[i]);
    }
    return s != NULL;
}

/* ---- what an aggregated role shows -------------------------------------------------------------
 */

static bool is_there(const yyjson_mut_val *list, const yyjson_mut_val *rule)
{
    size_t i, max;
    yyjson_mut_val *v;

    yyjson_mut_arr_foreach((yyjson_mut_val *)list, i, max, v)
    {
        if (yyjson_mut_equals(v, (yyjson_mut_val *)rule)) {
            return true;
        }
    }
    return false;
}

char *rbac_view_aggregate(const struct rbac_view *v, const char *name)
{
    const struct slot *s = find(&v->sets[CLUSTER_ROLES], "", name);

    if (!s || !is_aggregated(s)) {
        return NULL;
    }
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < s->rules.n; i++) {
        yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)s->rules.lists[i]);

        for (yyjson_val *rule; (rule = yyjson_arr_iter_next(&it));) {
            yyjson_mut_val *copy = yyjson_val_mut_copy(doc, rule);

            if (!is_there(list, copy)) {
                yyjson_mut_arr_append(list, copy);
            }
        }
    }
    return json_doc_text(doc, 0, NULL);
}
