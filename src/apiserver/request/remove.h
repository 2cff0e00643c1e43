/* Deletion: a request's and the server's own. */
#pragma once

#include "apiserver/request/request.h"

/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int remove_serve(struct request *r);
/* Which object a caller looked at, NULL or "" for any: what took its name later is not it. */
struct remove_precondition {
    const char *uid, *version;
};
int remove_check_precondition(struct request *r, const struct remove_precondition *p,
                              const yyjson_val *old);
/* Everything that the selectors match, in one transaction. */
int remove_serve_collection(struct request *r);

/* Deletes as a client would, unless the object at that address is gone or another one by now.
 * `unchanged`: only as it is in `e`; 1 when it has changed since. */
int remove_entry(struct store *store, const struct entry *e, bool unchanged,
                 struct ferry_error *err);
