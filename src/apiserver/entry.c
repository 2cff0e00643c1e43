#include "apiserver/entry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct holder {
    struct entry entry; /* first */
    atomic_uint refs;
    char text[];
};

struct entry *entry_new(const struct api_resource *resource, uint64_t version, const char *ns,
                        const char *name, const char *json, size_t json_len)
{
    size_t n_ns = strlen(ns) + 1, n_name = strlen(name) + 1;
    struct holder *h = ferry_xcalloc(1, sizeof(*h) + n_ns + n_name + json_len + 1);

    memcpy(h->text, ns, n_ns);
    memcpy(h->text + n_ns, name, n_name);
    memcpy(h->text + n_ns + n_name, json, json_len);
    h->entry = (struct entry){.resource = resource,
                              .version = version,
                              .ns = h->text,
                              .name = h->text + n_ns,
                              .json = h->text + n_ns + n_name,
                              .json_len = json_len};
    atomic_init(&h->refs, 1);
    return &h->entry;
}

struct entry *entry_ref(struct entry *e)
{
    atomic_fetch_add_explicit(&((struct holder *)e)->refs, 1, memory_order_relaxed);
    return e;
}

void entry_unref(struct entry *e)
{
    struct holder *h = (struct holder *)e;

    if (h && atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1) {
        free(h);
    }
}

void entry_list_done(struct entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        entry_unref(list->items[i]);
    }
    free(list->items);
    *list = (struct entry_list){0};
}
