#include "cli/door.h"

enum { DOOR_TIMEOUT_MS = 30000, DOOR_REPLY_MAX = 8 << 20 };

int door_get(struct session *s, const char *node, const char *path, struct http_reply *ret,
             struct ferry_error *err)
{
    ferry_cleanup_free char *escaped = http_escape(node);
    ferry_cleanup_free char *whole = ferry_asprintf("/api/v1/nodes/%s/proxy%s", escaped, path);
    ferry_cleanup_free char *what = ferry_asprintf("asking node %s", node);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(kube_client_http(s->client),
                              &(struct http_call){.method = "GET",
                                                  .path = whole,
                                                  .timeout_ms = DOOR_TIMEOUT_MS,
                                                  .max_reply = DOOR_REPLY_MAX},
                              &reply, err);

    if (rc < 0) {
        return rc;
    }
    if (reply.status != 200) {
        return kube_status_error(reply.status, reply.body.data, reply.body.len, what, err);
    }
    *ret = reply;
    reply = (struct http_reply){0};
    return 0;
}
