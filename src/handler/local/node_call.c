#include "handler/local/node_call.h"

#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_error.h"
#include "base/str.h"

static const size_t REPLY_MAX = 1 << 20;

FERRY_DEFINE_CLEANUP(struct http_client *, http_client_free)

static enum ferry_class class_of(int status)
{
    switch (status) {
    case 400:
    case 413:
    case 422:
        return FERRY_INVALID;
    case 403:
        return FERRY_DENIED;
    case 404:
        return FERRY_NOT_FOUND;
    case 409:
        return FERRY_CONFLICT;
    default:
        return FERRY_RETRY;
    }
}

static int refused(const struct node_call *call, const struct http_reply *r,
                   struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;

    if (r->body.len) {
        (void)api_json_parse(r->body.data, r->body.len, &doc, NULL);
    }
    int rc = wire_error_read(class_of(r->status), r->status, yyjson_doc_get_root(doc), err);
    ferry_wrap_about(err, "%s %s", call->method, call->path);
    return rc;
}

int node_call(const struct node_call *call, struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup(http_client_freep) struct http_client *client = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_new(
        &(struct http_client_config){.base_url = "http://localhost", .unix_socket = call->socket},
        &client, err);

    if (rc == 0) {
        rc = http_client_call(
            client,
            &(struct http_call){.method = call->method,
                                .path = call->path,
                                .body = call->body,
                                .body_len = call->body ? strlen(call->body) : 0,
                                .timeout_ms = call->timeout_ms,
                                .max_reply = call->max_reply ? call->max_reply : REPLY_MAX},
            &reply, err);
    }
    if (rc < 0) {
        ferry_fail(err, FERRY_RETRY, "no answer at %s", call->socket);
        ferry_wrap_about(err, "%s %s", call->method, call->path);
        return -FERRY_RETRY;
    }
    if (reply.status < 200 || reply.status > 299) {
        return refused(call, &reply, err);
    }
    if (ret) {
        *ret = reply;
        reply = (struct http_reply){0};
    }
    return 0;
}
