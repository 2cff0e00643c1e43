#include "apiserver/object/meta_check.h"

#include <ctype.h>
#include <string.h>

#include "api/names.h"
#include "base/count.h"
#include "base/str.h"

enum { ANNOTATIONS_MAX = 256 << 10 };

static int check_labels(const struct api_resource *r, const struct api_meta *meta,
                        struct status *st)
{
    for (size_t i = 0; i < meta->labels.n; i++) {
        const struct api_pair *p = &meta->labels.items[i];

        if (!api_name_is_label_key(p->key)) {
            return status_invalid(st, r, meta->name, "metadata.labels", STATUS_VALUE_INVALID,
                                  "\"%.100s\": not a label key", p->key);
        }
        if (!api_name_is_label_value(p->value)) {
            return status_invalid(st, r, meta->name, "metadata.labels", STATUS_VALUE_INVALID,
                                  "\"%.100s\": the value of label %.100s must be "
                                  "63 characters or less of letters, digits, '-', '_' and '.'",
                                  p->value, p->key);
        }
    }
    return 0;
}

/* As a label's, but capital letters may stand before the slash, too. */
static bool is_annotation_key(const char *key)
{
    ferry_cleanup_free char *lower = ferry_strdup(key);

    for (char *c = lower; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return api_name_is_label_key(lower);
}

static int check_annotations(const struct api_resource *r, const struct api_meta *meta,
                             struct status *st)
{
    size_t bytes = 0;

    for (size_t i = 0; i < meta->annotations.n; i++) {
        const struct api_pair *p = &meta->annotations.items[i];

        if (!is_annotation_key(p->key)) {
            return status_invalid(st, r, meta->name, "metadata.annotations", STATUS_VALUE_INVALID,
                                  "\"%.100s\": not an annotation key", p->key);
        }
        bytes += strlen(p->key) + strlen(p->value);
    }
    if (bytes > ANNOTATIONS_MAX) {
        return status_invalid(st, r, meta->name, "metadata.annotations", STATUS_VALUE_TOO_LONG,
                              "must have at most %d bytes", ANNOTATIONS_MAX);
    }
    return 0;
}

static int check_owners(const struct api_resource *r, const struct api_meta *meta,
                        struct status *st)
{
    size_t controllers = 0;

    for (size_t i = 0; i < meta->n_owners; i++) {
        const struct api_owner *o = &meta->owners[i];

        if (ferry_str_empty(o->uid) || ferry_str_empty(o->name) || ferry_str_empty(o->kind) ||
            ferry_str_empty(o->api_version)) {
            return status_invalid(st, r, meta->name, "metadata.ownerReferences",
                                  STATUS_VALUE_REQUIRED, "apiVersion, kind, name and uid");
        }
        controllers += o->controller;
    }
    if (controllers > 1) {
        return status_invalid(st, r, meta->name, "metadata.ownerReferences", STATUS_VALUE_INVALID,
                              "only one reference can have controller set to true");
    }
    return 0;
}

/* Names of core kinds say whose they are; those that do not are Kubernetes' own. */
static int check_finalizers(const struct api_resource *r, const struct api_meta *meta,
                            struct status *st)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};
    bool custom = strchr(r->group, '.') && !ferry_str_ends(r->group, ".k8s.io");

    for (size_t i = 0; i < meta->finalizers.n; i++) {
        const char *name = meta->finalizers.items[i];
        bool known = custom || strchr(name, '/');

        for (size_t j = 0; j < FERRY_COUNT(standard); j++) {
            known = known || strcmp(name, standard[j]) == 0;
        }
        if (!known || !api_name_is_label_key(name)) {
            return status_invalid(st, r, meta->name, "metadata.finalizers", STATUS_VALUE_INVALID,
                                  "\"%.100s\": name is neither a standard "
                                  "finalizer name nor is it fully qualified",
                                  name);
        }
    }
    return 0;
}

int meta_check(const struct api_resource *r, const struct api_meta *meta, struct status *st)
{
    if (check_labels(r, meta, st) < 0 || check_annotations(r, meta, st) < 0 ||
        check_owners(r, meta, st) < 0) {
        return -1;
    }
    return check_finalizers(r, meta, st);
}
