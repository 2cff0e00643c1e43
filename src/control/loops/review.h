/* AdmissionReview (admission.k8s.io/v1), as Kubernetes sends it to a webhook and wants it back.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "api/object.h"
#include "api/wire/wire_error.h"
#include "base/error.h"

/* What is asked. Strings live as long as `doc`. */
struct review {
    yyjson_doc *doc;
    const char *uid, *ns, *name, *kind;
    const yyjson_val *object; /* as it would be stored */
    const yyjson_val *old;    /* as it is; NULL: it is new */
    bool dry_run;             /* nothing may be changed */
};
int review_parse(const char *body, size_t len, struct review *ret, struct ferry_error *err);
void review_done(struct review *r);
#define review_cleanup ferry_cleanup(review_done)

/* What answers are made of: `doc` becomes one, of which this is the part to fill. */
yyjson_mut_val *review_response(yyjson_mut_doc *doc, const struct review *r, bool allowed);
void review_add_patch(yyjson_mut_doc *doc, yyjson_mut_val *response, const char *patch);

/* The answers, owned by the caller. */
char *review_allow(const struct review *r);
/* Allowed, with a change: `patch` is a JSON patch. */
char *review_patch(const struct review *r, const char *patch);
char *review_deny(const struct review *r, int code, enum wire_error reason, const char *why);

/* The patch that labels a migration with its VMI, as KubeVirt does; NULL when it is labelled, or
 * when the name is none for a label. Owned by the caller. */
char *review_label(const yyjson_val *migration);
/* The patch that asks a VMI to leave the node; fails when it was asked meanwhile. Owned by the
 * caller. */
char *review_mark(const struct api_object *vmi, const char *node, bool by_descheduler);
