/* What a person who is kept to a namespace may not put into an object, whatever the bindings say of
 * its kind: what leads out of the namespace, and what Ferry's programs tell each other through it.
 * docs/contracts/identity.md has the rules. Pure; what else the person may is asked through
 * callbacks. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "apiserver/message/status.h"

struct person_rights {
    bool host_paths; /* may make persistent volumes: who may, may name paths of hosts */
    /* may read this NetworkAttachmentDefinition */
    bool (*may_attach)(void *ctx, const char *ns, const char *name);
    void *ctx;
};

/* There are such rules for this kind. */
bool person_cares(const struct api_resource *r);
/* `old` is NULL for a new object. 403 with the reason. */
int person_check(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                 const struct person_rights *rights, struct status *st);
/* The status of a VMI, which other kinds have behind a door of its own, is not a person's: `doc`
 * gets that of `old`, or none. */
void person_keep_status(const struct api_resource *r, const yyjson_val *old, yyjson_mut_doc *doc);
