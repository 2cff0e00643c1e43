/* One call to a control API on this node: HTTP/JSON over a unix socket. Blocking, any thread. */
#pragma once

#include "base/error.h"
#include "http/client.h"

struct node_call {
    const char *socket; /* path of any length */
    const char *method, *path;
    const char *body; /* JSON, or NULL */
    int timeout_ms;
    size_t max_reply; /* 0 = 1 MiB */
};

/* An answer other than 2xx is an error: words and reason are the answer's own, the class follows
 * from the status (404 NOT_FOUND, 409 CONFLICT, 400 INVALID, 403 DENIED, else RETRY). No answer is
 * RETRY. */
int node_call(const struct node_call *call, struct http_reply *ret, struct ferry_error *err);
