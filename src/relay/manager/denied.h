/* The body of PUT /v1/denied: nodes that were removed from the site. Pure. */
#pragma once

#include <stddef.h>
#include <yyjson.h>

#include "base/error.h"
#include "tls/denial.h"

enum { RELAY_DENIED_MAX = 8192 };

struct relay_denied {
    yyjson_doc *doc; /* the strings are its */
    struct tls_denial *list;
    size_t n;
};

/* {nodes: [{node, generation, before}]}, the last two optional. */
int relay_denied_parse(const char *json, size_t len, struct relay_denied *ret,
                       struct ferry_error *err);
void relay_denied_done(struct relay_denied *d);
