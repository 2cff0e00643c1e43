/* Rules for single kinds (KubeVirt's webhooks). Pure: what they look up is given to them. */
#pragma once

#include <stddef.h>
#include <yyjson.h>

#include "api/instancetype/matcher.h"
#include "apiserver/access/auth.h"
#include "apiserver/message/status.h"

struct admission_view {
    enum auth_role role;
    const struct api_object *vmi;         /* the VMI that a migration names, or NULL */
    struct api_object *const *migrations; /* all migrations of the namespace */
    size_t n_migrations;
    const yyjson_val *named[MATCHER_COUNT]; /* by a VirtualMachine: sizing_check.h */
    const yyjson_val *gates; /* featureGates of the site's KubeVirt object; NULL = it names none,
                                and everything that Ferry can do is on */
};

/* `object` as it shall be, prepared (prepare.h). */
int admission_create(const struct api_resource *r, const yyjson_val *object,
                     const struct admission_view *view, struct status *st);
/* Says, for each risky option that is on, what the risk is, and of fields of a machine that have no
 * effect. `old` NULL: the object is new. */
void admission_warn(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                    void (*say)(void *ctx, const char *text), void *ctx);
/* Not called for writes through "status". */
int admission_update(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                     const struct admission_view *view, struct status *st);
