/* A sorted array: the API server lists in order, so filling it is appending; finding is a few
 * comparisons; walking it is what readers do most. An insertion in the middle moves pointers, which
 * is nothing beside parsing the object that is inserted. */
#include "kube/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { FIRST = 16 };

static int compare(const struct api_object *o, const char *ns, const char *name)
{
    int d = strcmp(o->meta->namespace_ ? o->meta->namespace_ : "", ns ? ns : "");

    return d ? d : strcmp(o->meta->name ? o->meta->name : "", name ? name : "");
}

/* Where it is, or would be. */
static size_t place_of(const struct kube_cache *c, const char *ns, const char *name, bool *found)
{
    size_t from = 0, to = c->n;

    /* appending, the usual case */
    if (to > 0 && compare(c->items[to - 1].object, ns, name) < 0) {
        from = to;
    }
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int d = compare(c->items[mid].object, ns, name);

        if (d == 0) {
            *found = true;
            return mid;
        }
        if (d < 0) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    *found = false;
    return from;
}

/* Out of the index with what was, in with what is; either may be NULL. */
static void reindex(struct kube_cache *c, struct api_object *old, struct api_object *now)
{
    if (!c->index) {
        return;
    }
    ferry_cleanup_free char *from = old ? c->index(old) : NULL;
    ferry_cleanup_free char *to = now ? c->index(now) : NULL;
    if (from) {
        kube_index_remove(&c->by_index, from, old);
    }
    if (to) {
        kube_index_add(&c->by_index, to, now);
    }
}

static void open_gap(struct kube_cache *c, size_t at)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : FIRST;
        c->items = ferry_xrealloc(c->items, c->cap, sizeof(*c->items));
    }
    memmove(&c->items[at + 1], &c->items[at], (c->n - at) * sizeof(*c->items));
    c->items[at] = (struct kube_cached){0};
    c->n++;
}

bool kube_cache_put(struct kube_cache *c, struct api_object *o, struct api_object **ret_old)
{
    bool found;
    size_t at = place_of(c, o->meta->namespace_, o->meta->name, &found);

    *ret_old = NULL;
    if (!found) {
        open_gap(c, at);
    }
    struct kube_cached *e = &c->items[at];
    e->round = c->round;
    if (found && ferry_streq(e->object->meta->resource_version, o->meta->resource_version) &&
        ferry_streq(e->object->meta->uid, o->meta->uid)) {
        return false;
    }
    *ret_old = e->object;
    e->object = api_object_ref(o);
    reindex(c, *ret_old, o);
    return true;
}

struct api_object *kube_cache_drop(struct kube_cache *c, const char *ns, const char *name)
{
    bool found;
    size_t at = place_of(c, ns, name, &found);

    if (!found) {
        return NULL;
    }
    struct api_object *o = c->items[at].object;

    c->n--;
    memmove(&c->items[at], &c->items[at + 1], (c->n - at) * sizeof(*c->items));
    reindex(c, o, NULL);
    return o;
}

struct api_object *kube_cache_get(const struct kube_cache *c, const char *ns, const char *name)
{
    bool found;
    size_t at = place_of(c, ns, name, &found);

    return found ? c->items[at].object : NULL;
}

void kube_cache_begin_round(struct kube_cache *c)
{
    c->round++;
}

struct api_object **kube_cache_end_round(struct kube_cache *c, size_t *ret_n)
{
    struct api_object **gone = ferry_xcalloc(c->n + 1, sizeof(struct api_object *));
    size_t kept = 0;

    *ret_n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->items[i].round == c->round) {
            c->items[kept++] = c->items[i];
        } else {
            reindex(c, c->items[i].object, NULL);
            gone[(*ret_n)++] = c->items[i].object;
        }
    }
    c->n = kept;
    return gone;
}

void kube_cache_done(struct kube_cache *c)
{
    kube_index_done(&c->by_index);
    for (size_t i = 0; i < c->n; i++) {
        api_object_unref(c->items[i].object);
    }
    free(c->items);
    *c = (struct kube_cache){0};
}
