/* From method and path to what is asked. Pure. */
#pragma once

#include <stdbool.h>

#include "api/object.h"
#include "apiserver/message/status.h"

enum route_verb {
    ROUTE_GET,
    ROUTE_LIST,
    ROUTE_WATCH,
    ROUTE_CREATE,
    ROUTE_UPDATE,
    ROUTE_PATCH,
    ROUTE_DELETE,
    ROUTE_DELETE_COLLECTION,
    ROUTE_VERB_COUNT
};
const char *route_verb_name(enum route_verb v);
bool route_verb_reads(enum route_verb v);
/* "list"; ROUTE_VERB_COUNT for a word that is no verb. */
enum route_verb route_verb_of(const char *name);

enum { ROUTE_PART_MAX = 256 };

/* A call on objects. Empty strings where there is none. */
struct route {
    const struct api_resource *resource;
    enum route_verb verb;
    char ns[ROUTE_PART_MAX], name[ROUTE_PART_MAX];
    char subresource[ROUTE_PART_MAX]; /* "", "status", "binding" or "eviction" */
};

/* `path` is percent-decoded; `watch` says that the query asks for one. */
int route_parse(const char *method, const char *path, bool watch, struct route *ret,
                struct status *st);
bool route_knows_subresource(const struct api_resource *r, const char *subresource);
/* The path belongs to objects: "/api/v1/..." or "/apis/GROUP/VERSION/...". */
bool route_is_object_path(const char *path);
