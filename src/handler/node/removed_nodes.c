#include "handler/node/removed_nodes.h"

#include "api/json.h"
#include "base/log.h"
#include "handler/local/relay_client.h"
#include "http/client.h"

enum { REPLY_MAX = 2 << 20, TIMEOUT_MS = 10000 };

/* The answer as it came, once it is seen to be JSON. */
static int ask(const struct removed_nodes *r, struct http_reply *reply, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = http_client_call(kube_client_http(r->client),
                              &(struct http_call){.method = "GET",
                                                  .path = "/ferry/v1/denied",
                                                  .accept = "application/json",
                                                  .timeout_ms = TIMEOUT_MS,
                                                  .max_reply = REPLY_MAX},
                              reply, err);

    if (rc == 0 && reply->status != 200) {
        return kube_status_error(reply->status, reply->body.data, reply->body.len,
                                 "asking which nodes were removed", err);
    }
    return rc < 0 ? rc : api_json_parse(reply->body.data, reply->body.len, &doc, err);
}

/* An older one, or Kubernetes, where nodes are not Ferry's to remove. */
static int not_known(struct removed_nodes *r, const char *who, const struct ferry_error *err)
{
    if (!r->unknown) {
        ferry_info("removed nodes are not kept out by this relay", F_STR("becauseOf", who),
                   F_ERR(err));
    }
    r->unknown = true;
    return 0;
}

int removed_nodes_tell(struct removed_nodes *r, struct ferry_error *err)
{
    http_cleanup_reply struct http_reply reply = {0};
    int rc = ask(r, &reply, err);

    if (rc == -FERRY_NOT_FOUND || rc == -FERRY_DENIED) {
        return not_known(r, "API server", err);
    }
    rc = rc < 0 ? rc : relay_put_denied(r->relay_socket, reply.body.data, err);
    if (rc == -FERRY_NOT_FOUND) {
        return not_known(r, "relay", err);
    }
    if (rc == 0) {
        r->unknown = false;
    }
    return rc;
}
