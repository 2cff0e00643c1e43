/* One shape for the verbs that list objects: options, what is read, -o, columns, and a sentence
 * when there is nothing. */
#pragma once

#include "base/str.h"
#include "cli/session/session.h"

/* What a column may look at beside its object. */
struct listing_context {
    int64_t now_ms;
    struct api_object *const *beside;
    size_t n_beside;
};

struct listing_column {
    const char *header; /* NULL ends the table */
    /* Adds the text of the cell; none is shown as "-". NULL = the string at `pointer`. */
    void (*put)(const struct api_object *o, const struct listing_context *context,
                struct ferry_buf *out);
    bool wide; /* with -o wide alone */
    const char *pointer;
};

struct listing {
    const char *name;    /* "ferry vm list" */
    const char *summary; /* for --help */
    enum api_kind kind;
    bool namespaced; /* has -A, and a column for it */
    const struct listing_column *columns;
    const char *what;   /* "virtual machines" */
    const char *advice; /* when there are none: "'ferry vm create' makes one" */
    /* May be NULL: reads what the columns look at beside, and adds to or sorts the list. `ns` is
     * NULL with -A. */
    int (*gather)(struct session *s, const char *ns, struct kube_list *list,
                  struct kube_list *beside, struct ferry_error *err);
    /* May be NULL: adds what is no object any more, and is shown to people alone. */
    int (*recall)(struct session *s, const char *ns, struct kube_list *list,
                  const struct kube_list *beside, struct ferry_error *err);
    /* May be NULL: the verb takes a name, and lists those that this says are about it. */
    bool (*about)(const struct api_object *o, const char *name);
};

/* Runs the verb to its end. */
int listing_verb(const struct listing *l, int argc, char **argv, struct ferry_error *err);

/* The table alone. Pure. */
void listing_render(const struct listing *l, struct api_object *const *items, size_t n,
                    const struct listing_context *context, bool wide, bool all,
                    struct ferry_buf *out);

/* The object of that name among `items`, or NULL. Pure. */
struct api_object *listing_find(struct api_object *const *items, size_t n, const char *ns,
                                const char *name);

/* For `gather`: oldest first, by name where they are of one age. */
void listing_sort_by_age(struct kube_list *list);

/* Cells that many listings have. */
#define LISTING_NAME                                                                               \
    {                                                                                              \
        "NAME", .pointer = "/metadata/name"                                                        \
    }
void listing_put_age(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out);
