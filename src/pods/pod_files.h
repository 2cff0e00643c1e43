/* The files of a volume that shows a ConfigMap or a Secret. Pure.
 *
 * As kubelets do: one file per key, or those that `items` names; what is missing is waited for
 * unless it is optional. Unlike there a file lies in the volume itself, never deeper, its mode is
 * always the same, and what changes later is not followed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "pods/pod_volumes.h"

enum { POD_FILES_MAX = 256, POD_FILES_BYTES = 1 << 20 };

struct pod_file {
    const char *name; /* points into the object or the pod */
    char *data;       /* owned; may hold a secret */
    size_t n;
};

struct pod_files {
    struct pod_file *list;
    size_t n, bytes;
};

/* True for what may be used as the name of a file: no slash, not ".", nothing with ".." first. */
bool pod_files_is_name(const char *name);

/* `object` is the ConfigMap or Secret that `v` names, NULL when there is none. RETRY when something
 * is missing that is not optional; INVALID when it cannot be files. Errors never quote values. */
int pod_files_plan(const struct pod_volume *v, const yyjson_val *object, struct pod_files *ret,
                   struct ferry_error *err);
/* Overwrites the data first. */
void pod_files_done(struct pod_files *f);
#define pod_files_cleanup ferry_cleanup(pod_files_done)
