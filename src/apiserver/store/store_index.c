#include "apiserver/store/store_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* What is looked for; `name` "" is before all of its namespace, or of what it is about. */
struct key {
    const char *ns, *name;
    struct ferry_span about;
};

static int by_name(const struct entry *e, const struct key *k)
{
    int c = strcmp(e->ns, k->ns);

    return c ? c : strcmp(e->name, k->name);
}

static int by_about(const struct entry *e, const struct key *k)
{
    int c = strcmp(e->ns, k->ns);

    c = c ? c : ferry_span_cmp(entry_about(e), k->about);
    return c ? c : strcmp(e->name, k->name);
}

/* Where it is, or where it would be. */
static size_t position(struct entry *const *items, size_t n,
                       int (*compare)(const struct entry *e, const struct key *k),
                       const struct key *k, bool *found)
{
    size_t low = 0, high = n;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare(items[middle], k);

        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(struct entry ***items, size_t *n, size_t *cap, size_t at, struct entry *e)
{
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 16;
        *items = ferry_xrealloc(*items, *cap, sizeof(struct entry *));
    }
    memmove(*items + at + 1, *items + at, (*n - at) * sizeof(struct entry *));
    (*items)[at] = e;
    (*n)++;
}

static void cut(struct entry **items, size_t *n, size_t at)
{
    (*n)--;
    memmove(items + at, items + at + 1, (*n - at) * sizeof(struct entry *));
}

static void order_put(struct store_index *s, struct entry *e)
{
    const struct key k = {e->ns, e->name, entry_about(e)};
    bool found;

    if (k.about.at) {
        size_t at = position(s->order, s->n_order, by_about, &k, &found);

        insert(&s->order, &s->n_order, &s->cap_order, at, e);
    }
}

static void order_remove(struct store_index *s, const struct entry *e)
{
    const struct key k = {e->ns, e->name, entry_about(e)};
    bool found = false;

    if (k.about.at) {
        size_t at = position(s->order, s->n_order, by_about, &k, &found);

        if (found) {
            cut(s->order, &s->n_order, at);
        }
    }
}

void store_index_put(struct store_index *s, struct entry *take)
{
    bool found;
    size_t at = position(s->items, s->n, by_name, &(struct key){take->ns, take->name}, &found);

    if (found) {
        order_remove(s, s->items[at]);
        entry_unref(s->items[at]);
        s->items[at] = take;
    } else {
        insert(&s->items, &s->n, &s->cap, at, take);
    }
    order_put(s, take);
}

void store_index_remove(struct store_index *s, const char *ns, const char *name)
{
    bool found;
    size_t at = position(s->items, s->n, by_name, &(struct key){ns, name}, &found);

    if (!found) {
        return;
    }
    order_remove(s, s->items[at]);
    entry_unref(s->items[at]);
    cut(s->items, &s->n, at);
}

struct entry *store_index_get(const struct store_index *s, const char *ns, const char *name)
{
    bool found;
    size_t at = position(s->items, s->n, by_name, &(struct key){ns, name}, &found);

    return found ? s->items[at] : NULL;
}

struct store_index_span store_index_list(const struct store_index *s, const char *ns)
{
    bool found;
    size_t from = ns ? position(s->items, s->n, by_name, &(struct key){ns, ""}, &found) : 0;
    size_t to = ns ? from : s->n;

    while (to < s->n && strcmp(s->items[to]->ns, ns) == 0) {
        to++;
    }
    return (struct store_index_span){.items = s->items + from, .n = to - from};
}

struct store_index_span store_index_find(const struct store_index *s, const char *ns,
                                         const char *about)
{
    const struct key k = {ns, "", ferry_span_of(about)};
    bool found;
    size_t from = position(s->order, s->n_order, by_about, &k, &found);
    size_t to = from;

    while (to < s->n_order && strcmp(s->order[to]->ns, ns) == 0 &&
           ferry_span_eq(entry_about(s->order[to]), k.about)) {
        to++;
    }
    return (struct store_index_span){.items = s->order + from, .n = to - from};
}

void store_index_free_order(struct store_index *s)
{
    free(s->order);
    s->order = NULL;
    s->n_order = s->cap_order = 0;
}

void store_index_done(struct store_index *s)
{
    for (size_t i = 0; i < s->n; i++) {
        entry_unref(s->items[i]);
    }
    free(s->items);
    store_index_free_order(s);
    *s = (struct store_index){0};
}
