/* The instance type and the preference that a VirtualMachine names (KubeVirt's InstancetypeMatcher
 * and PreferenceMatcher), and the copies of them that its status says it was given. Pure. */
#pragma once

#include "api/object.h"

enum matcher_of { MATCHER_INSTANCETYPE, MATCHER_PREFERENCE, MATCHER_COUNT };

struct matcher { /* points into the VM */
    enum matcher_of of;
    const char *name;
    /* Of what is named; the cluster's where the VM names no kind. NULL: it names another one. */
    const struct api_resource *resource;
    /* The ControllerRevision with the copy: what the VM asks for itself, or else what its status
     * has for this name and kind; NULL: none yet. */
    const char *revision;
    bool asked;    /* the VM asks for that revision */
    bool recorded; /* the status has this name, kind and revision */
};

/* False when `vm` names none. */
bool matcher_read(const yyjson_val *vm, enum matcher_of of, struct matcher *ret);

/* Whether what is named could be there at all, as KubeVirt asks; `old` is the VM before a change,
 * or NULL. -FERRY_INVALID about the field. */
int matcher_check(const yyjson_val *vm, const yyjson_val *old, struct ferry_error *err);

/* What the revision is called that keeps a copy of `object` for `vm`; owned by the caller. */
char *matcher_revision_name(const yyjson_val *vm, const struct matcher *m,
                            const yyjson_val *object);
/* The revision as a manifest, owned by the caller. */
char *matcher_revision(const yyjson_val *vm, const struct matcher *m, const yyjson_val *object);
/* The spec that `object` has: an instance type or preference itself, or a revision with one of the
 * kind that `m` is about. NULL: it is neither. */
const yyjson_val *matcher_spec(const struct matcher *m, const yyjson_val *object);
/* What the status is to say of it: {"name":...,"kind":...,"controllerRevisionRef":{...}}; owned by
 * the caller. */
char *matcher_status(const struct matcher *m, const char *revision);
/* "status.instancetypeRef" as a JSON pointer. */
const char *matcher_status_path(enum matcher_of of);
