/* What an instance type and a preference make of a virtual machine, by KubeVirt's rules: the type
 * adds what the machine must not say itself, the preference fills in what it leaves out. Both
 * engines' admission and the controller ask here. Pure. */
#pragma once

#include "api/object.h"
#include "base/str.h"

/* The specs of both; either may be NULL. */
struct instancetype_pair {
    const yyjson_val *type, *preference;
};

/* Changes `spec` (of a VirtualMachineInstance) and the annotations of `metadata`, both of `doc`.
 * The fields in which the machine says what the type says are added to `conflicts`, ", " between
 * them, each as a path from `base` on; with any, nothing was changed. Returns how many. */
size_t instancetype_apply(yyjson_mut_doc *doc, yyjson_mut_val *spec, yyjson_mut_val *metadata,
                          const struct instancetype_pair *given, const char *base,
                          struct ferry_buf *conflicts);

/* May a VirtualMachine that names these be: no conflicts, vCPUs that can be spread as is preferred,
 * and all that the preference requires. -FERRY_INVALID about the first field. */
int instancetype_admit(const yyjson_val *vm, const struct instancetype_pair *given,
                       struct ferry_error *err);

/* May there be this instance type or preference, beyond what its schema says? -FERRY_INVALID about
 * the field. */
int instancetype_check(const struct api_resource *r, const yyjson_val *object,
                       struct ferry_error *err);
