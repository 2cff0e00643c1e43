/* Which settings a move gets: built-in values, under the KubeVirt object's
 * spec.configuration.migrations, under the MigrationPolicy that fits best. Pure.
 *
 * As KubeVirt resolves them, but a VMI without labels is matched by no VMI selector, and a value of
 * the wrong type is an error that names the field instead of a setting that is not there. */
#pragma once

#include <stddef.h>
#include <yyjson.h>

#include "api/object.h"

/* Where the KubeVirt object has them. */
#define POLICY_CONFIGURATION "/spec/configuration/migrations"

/* What the settings of one move are made from. */
struct policy_sources {
    const struct api_object *kubevirt;        /* or NULL */
    const struct api_object *const *policies; /* MigrationPolicies */
    size_t n_policies;
    const struct api_map *ns_labels, *vmi_labels;
};

/* The best fit: most pairs of labels named, then most of the VMI, then the first name. NULL =
 * none. */
const struct api_object *policy_match(const struct policy_sources *s);

/* The effective configuration as JSON (facts: VMIMConfigurationOptions), owned by the caller; NULL
 * with `err` naming object and field when a value cannot be used. `*ret_policy` (may be NULL) is
 * the policy that had a say, or NULL. */
char *policy_resolve(const struct policy_sources *s, const struct api_object **ret_policy,
                     struct ferry_error *err);
