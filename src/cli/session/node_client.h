/* What only a node knows (flight records, checks, consoles, plans), through the API server's node
 * proxy: the command line has one door. */
#pragma once

#include "cli/session/session.h"
#include "http/client.h"

/* Where a call of the node API is at the API server; owned by the caller. */
char *node_client_path(const char *node, const char *path);

/* GET of a call of the node API ("/v1/records/UID"). An answer other than 200 is an error; its
 * class is that of kube_status_error(). */
int node_client_get(struct session *s, const char *node, const char *path, struct http_reply *ret,
                    struct ferry_error *err);
/* The same with a body. */
int node_client_post(struct session *s, const char *node, const char *path, const char *body,
                     size_t len, struct http_reply *ret, struct ferry_error *err);
