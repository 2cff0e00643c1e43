/* What comes on a watch: lines, each of them an event. Pure. */
#pragma once

#include <stddef.h>

#include "api/object.h"
#include "base/str.h"

/* ---- bytes to lines ---------------------------------------------------------------------------
 */

struct kube_lines {
    struct ferry_buf partial;
};

/* Calls `each` with every line that ends in `data`, together with what came before of it; empty
 * lines are left out. The line may be changed. A line over 16 MiB and what `each` returns below 0
 * end it. */
int kube_lines_feed(struct kube_lines *l, const char *data, size_t n,
                    int (*each)(void *ctx, struct ferry_buf *line, struct ferry_error *err),
                    void *ctx, struct ferry_error *err);
void kube_lines_done(struct kube_lines *l);
#define kube_cleanup_lines ferry_cleanup(kube_lines_done)

/* ---- lines to events --------------------------------------------------------------------------
 */

enum kube_change_type {
    KUBE_CHANGE_PUT,      /* ADDED or MODIFIED: `object` */
    KUBE_CHANGE_DELETED,  /* `ns`, `name` */
    KUBE_CHANGE_BOOKMARK, /* only `version` */
    KUBE_CHANGE_BROKEN, /* ADDED or MODIFIED with an object that does not decode: `name`, `problem`
                         */
    KUBE_CHANGE_ERROR,  /* the server ends the watch: `code`, `problem` */
};

struct kube_change {
    enum kube_change_type type;
    struct api_object *object;
    const char *ns, *name, *version; /* version: of the object, or NULL */
    int64_t code;
    struct ferry_error problem;
    yyjson_doc *doc; /* the strings point into it and into the line */
};

/* Reads a line, which is used up. -FERRY_INVALID: not JSON; -FERRY_PEER: no event. */
int kube_change_read(struct ferry_buf *line, const struct api_resource *resource,
                     struct kube_change *ret, struct ferry_error *err);
void kube_change_done(struct kube_change *e);
#define kube_cleanup_change ferry_cleanup(kube_change_done)
