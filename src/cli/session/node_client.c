#include "cli/session/node_client.h"

enum { DOOR_TIMEOUT_MS = 45000, DOOR_REPLY_MAX = 8 << 20 };

static int call(struct session *s, const char *method, const char *node, const char *path,
                const char *body, size_t len, struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *whole = node_client_path(node, path);
    ferry_cleanup_free char *what = ferry_asprintf("asking node %s", node);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(kube_client_http(s->client),
                              &(struct http_call){.method = method,
                                                  .path = whole,
                                                  .body = body,
                                                  .body_len = len,
                                                  .timeout_ms = DOOR_TIMEOUT_MS,
                                                  .max_reply = DOOR_REPLY_MAX},
                              &reply, err);

    if (rc == 0 && reply.status != 200) {
        rc = kube_status_error(reply.status, reply.body.data, reply.body.len, what, err);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    *ret = reply;
    reply = (struct http_reply){0};
    return 0;
}

char *node_client_path(const char *node, const char *path)
{
    ferry_cleanup_free char *escaped = http_escape(node);

    return ferry_asprintf("/api/v1/nodes/%s/proxy%s", escaped, path);
}

int node_client_get(struct session *s, const char *node, const char *path, struct http_reply *ret,
                    struct ferry_error *err)
{
    return call(s, "GET", node, path, NULL, 0, ret, err);
}

int node_client_post(struct session *s, const char *node, const char *path, const char *body,
                     size_t len, struct http_reply *ret, struct ferry_error *err)
{
    return call(s, "POST", node, path, body, len, ret, err);
}
