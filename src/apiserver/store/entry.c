#include "apiserver/store/entry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/str.h"

struct holder {
    struct entry entry; /* first */
    atomic_uint refs;
    char text[];
};

/* Read from the object itself: a label may have any name, and its text looks like a field's. */
static char *about(const struct api_resource *resource, const char *json, size_t len)
{
    if (!resource || resource->kind != API_KIND_MIGRATION) {
        return NULL;
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, len, 0);
    const char *vmi = api_json_str(yyjson_doc_get_root(doc), "/spec/vmiName");

    return ferry_str_empty(vmi) ? NULL : ferry_strdup(vmi);
}

struct entry *entry_new(const struct api_resource *resource, uint64_t version, const char *ns,
                        const char *name, const char *json, size_t json_len)
{
    ferry_cleanup_free char *what = about(resource, json, json_len);
    size_t n_ns = strlen(ns) + 1, n_name = strlen(name) + 1, n_what = what ? strlen(what) + 1 : 0;
    struct holder *h = ferry_xcalloc(1, sizeof(*h) + n_ns + n_name + n_what + json_len + 1);
    char *rest = h->text + n_ns + n_name;

    memcpy(h->text, ns, n_ns);
    memcpy(h->text + n_ns, name, n_name);
    if (what) {
        memcpy(rest, what, n_what);
    }
    memcpy(rest + n_what, json, json_len);
    h->entry = (struct entry){.resource = resource,
                              .version = version,
                              .ns = h->text,
                              .name = h->text + n_ns,
                              .json = rest + n_what,
                              .json_len = json_len,
                              .about = what ? rest : NULL};
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

bool entry_is_ending(const struct entry *e)
{
    if (!strstr(e->json, "\"deletionTimestamp\"")) {
        return false; /* most objects: not parsed */
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);

    return api_json_str(yyjson_doc_get_root(doc), "/metadata/deletionTimestamp");
}

void entry_list_done(struct entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        entry_unref(list->items[i]);
    }
    free(list->items);
    *list = (struct entry_list){0};
}
