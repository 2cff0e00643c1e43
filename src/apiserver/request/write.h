/* Create, update and patch. Each answers the exchange and returns 0, or fills r->st and returns -1.
 * What is answered with success is on disk. */
#pragma once

#include "apiserver/request/request.h"

int write_create(struct request *r);
/* The same with a document of the server's own; `code` is answered on success. */
int write_create_document(struct request *r, const yyjson_mut_doc *doc, bool dry_run, int code);
int write_update(struct request *r);
int write_patch(struct request *r);

/* For the server's own use: makes a cluster-scoped object of this name unless it is there. */
int write_ensure(struct store *store, const struct api_resource *resource, const char *name,
                 struct ferry_error *err);
