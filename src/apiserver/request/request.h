/* One call on objects, as its handlers see it. Lives on the connection's thread. */
#pragma once

#include <yyjson.h>

#include "apiserver/access/auth.h"
#include "apiserver/access/rbac_view.h"
#include "apiserver/kinds/table.h"
#include "apiserver/message/route.h"
#include "apiserver/message/status.h"
#include "apiserver/store/store.h"
#include "http/server.h"

struct request {
    struct http_exchange *x;
    struct store *store;
    int bookmark_s; /* how often a watcher is told how far it is */
    struct route route;
    struct auth_who who;
    struct rbac *rbac;
    struct rbac_view *view; /* what bindings give while this call lasts; by rights_view() */
    enum auth_answer auth;
    bool denied;       /* the certificate was good once */
    struct status st;  /* what went wrong, when a handler returns -1 */
    int code;          /* what was answered, for the audit line */
    bool keeps_answer; /* the audit wants to know it */
    struct ferry_buf answer;
};

/* The body, parsed: JSON, YAML or protobuf, by its content type. */
int request_body(struct request *r, yyjson_doc **ret);
/* A query parameter that is a flag: "", "1" and "true" are true. */
bool request_flag(const struct request *r, const char *name);
/* dryRun=All */
int request_dry_run(struct request *r, bool *ret);
/* The same in the options of a body, which may be NULL; leaves `dry_run` alone when it is not asked
 * for. */
int request_dry_run_of(struct request *r, const yyjson_val *options, bool *dry_run);
/* The client wants a Table; `include` says what of each object goes with its row. */
bool request_wants_table(const struct request *r, enum table_include *ret_include);

/* Sends a Warning header along, as kubectl shows it to its user. */
void request_warn(struct request *r, const char *text);

/* What its VMI knows of a migration; empty for other kinds. */
struct table_move request_move(struct store *store, const struct api_resource *resource,
                               const yyjson_val *object);

/* Keeps what is answered when that is wanted; a long one's length alone. */
void request_keep(struct request *r, const char *text, size_t len);
/* Answer with an object, as a table when that is wanted: with one that is stored, and with one that
 * was not (or not yet) stored. */
void request_answer_entry(struct request *r, int code, const struct entry *e);
void request_answer_document(struct request *r, int code, yyjson_mut_doc *doc);
void request_answer_status(struct request *r, const struct status *st);
