/* How a write ends: shared by create, change, delete and bind. */
#pragma once

#include "apiserver/request/request.h"

/* Begins a transaction on the object that the call names: its entry, its document and a copy to be
 * changed. 0, or -1 with r->st set: the caller ends the transaction either way. */
int finish_begin(struct request *r, struct entry **ret_entry, yyjson_doc **ret_old,
                 yyjson_mut_doc **ret_copy);
/* Storing did not work; returns -1. */
int finish_failed(struct request *r, const struct ferry_error *err);
/* Ends the transaction without a change. `rc` is what was decided in it, with r->st set when it is
 * -1; the answer to 0 is `doc`, or the caller's. What was decided by something that then could not
 * be stored is not answered: -1. */
int finish_unchanged(struct request *r, int rc, int code, yyjson_mut_doc *doc);
/* Commits and answers with what was written. */
int finish_commit(struct request *r, int code);
/* Where the caller may only touch its own things (AUTH_IF_OWN): is this one? `object` is what it
 * shall become, NULL for a deletion. */
int finish_check_own(struct request *r, const yyjson_val *old, const yyjson_val *object);
