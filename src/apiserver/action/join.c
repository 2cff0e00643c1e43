#include "apiserver/action/join.h"

#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "apiserver/access/deny.h"
#include "apiserver/access/site.h"
#include "apiserver/access/token.h"
#include "base/clock.h"
#include "base/str.h"

static const char join_path[] = "/ferry/v1/join", renew_path[] = "/ferry/v1/renew";
static const char ca_path[] = "/ferry/v1/ca";
enum { NODE_NAME_MAX = 52 };

bool join_is_path(const char *path)
{
    return ferry_streq(path, join_path) || ferry_streq(path, renew_path) ||
           ferry_streq(path, ca_path);
}

/* What this caller, or anybody, could do with the certificates is decided by the denial of the node
 * at the time (deny.h). Whoever was removed while they were signed is told at once. */
static int check_still_there(struct request *r, const char *node, const char *generation)
{
    int64_t begin_s = ferry_now_unix_ms() / 1000 - PKI_BACKDATE_S;
    struct ferry_error err;

    store_begin(r->store);
    bool denied = deny_check_node(r->store, node, generation, begin_s);
    if (store_abort(r->store, &err) < 0) {
        return status_of_error(&r->st, &err);
    }
    return denied ? status_fail(&r->st, 401,
                                "Unauthorized: the node was removed meanwhile: join again")
                  : 0;
}

static int refuse_token(struct request *r)
{
    return status_fail(&r->st, 401, "Unauthorized: the token is not good for joining as this node");
}

/* `node` may be NULL: a token for any is good. */
static int check_token(struct request *r, const char *node)
{
    if (!token_is_for(r->store, http_header(r->x, "Authorization"), node)) {
        return refuse_token(r);
    }
    http_vouch(r->x);
    return 0;
}

int join_check(struct request *r)
{
    const char *type = http_header(r->x, "Content-Type");

    if (ferry_streq(http_path(r->x), ca_path) || !ferry_streq(http_method(r->x), "POST")) {
        return status_fail(&r->st, 405, "the server does not allow this method here");
    }
    if (type && !ferry_str_starts(type, "application/json")) {
        return status_fail(&r->st, 415, "a request to join is application/json");
    }
    if (ferry_streq(http_path(r->x), join_path)) {
        return check_token(r, NULL);
    }
    return r->who.role == AUTH_NODE
               ? 0
               : status_fail(&r->st, 403, "forbidden: only a node renews its certificates");
}

static int sign_both(struct request *r, const struct pki_ca *ca, const char *node,
                     const char *generation, const yyjson_val *body)
{
    const char *node_request = api_json_str(body, "/nodeRequest");
    const char *relay_request = api_json_str(body, "/relayRequest");
    ferry_cleanup_free char *node_cert = NULL, *relay_cert = NULL;
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct ferry_error err;

    if (!node_request || !relay_request) {
        return status_fail(&r->st, 400, "nodeRequest and relayRequest: Required value");
    }
    if (site_sign_node(ca, node, generation, node_request, &node_cert, &err) < 0 ||
        pki_sign_relay(ca, node, generation, relay_request, &relay_cert, &err) < 0) {
        return status_of_error(&r->st, &err);
    }
    if (check_still_there(r, node, generation) < 0) {
        return -1;
    }
    ferry_buf_puts(&b, "{\"ca\":");
    ferry_buf_json(&b, pki_ca_pem(ca));
    ferry_buf_puts(&b, ",\"node\":");
    ferry_buf_json(&b, node_cert);
    ferry_buf_puts(&b, ",\"relay\":");
    ferry_buf_json(&b, relay_cert);
    ferry_buf_puts(&b, "}");
    r->code = 200;
    http_answer(r->x, 200, "application/json", b.data, b.len);
    return 0;
}

/* The requests are checked before the token is used up: a slip of the pen costs no token. */
static int check_requests(struct request *r, const yyjson_val *body)
{
    static const char *const fields[] = {"/nodeRequest", "/relayRequest"};
    struct ferry_error err;

    for (size_t i = 0; i < 2; i++) {
        const char *text = api_json_str(body, fields[i]);

        if (!text) {
            return status_fail(&r->st, 400, "%s: Required value", fields[i] + 1);
        }
        if (pki_check_request(text, &err) < 0) {
            return status_fail(&r->st, 400, "%s: %s", fields[i] + 1, err.msg);
        }
    }
    return 0;
}

/* To anybody: it is no secret, and who asks knows its fingerprint. */
static int serve_ca(struct request *r, const struct pki_ca *ca)
{
    const char *pem = pki_ca_pem(ca);

    if (!ferry_streq(http_method(r->x), "GET")) {
        return status_fail(&r->st, 405, "the server does not allow this method here");
    }
    r->code = 200;
    http_answer(r->x, 200, "application/x-pem-file", pem, strlen(pem));
    return 0;
}

int join_serve(struct request *r, const struct pki_ca *ca)
{
    api_cleanup_doc yyjson_doc *given = NULL;
    char generation[TLS_GENERATION_SIZE];

    if (ferry_streq(http_path(r->x), ca_path)) {
        return serve_ca(r, ca);
    }
    if (join_check(r) < 0 || request_body(r, &given) < 0) {
        return -1;
    }
    const yyjson_val *body = yyjson_doc_get_root(given);
    const char *node = api_json_str(body, "/node");
    if (ferry_streq(http_path(r->x), renew_path)) {
        if (r->who.role != AUTH_NODE) {
            return status_fail(&r->st, 403, "forbidden: only a node renews its certificates");
        }
        return check_requests(r, body) < 0
                   ? -1
                   : sign_both(r, ca, r->who.node, http_peer(r->x)->generation, body);
    }
    if (!node || !api_name_is_dns_subdomain(node) || strlen(node) > NODE_NAME_MAX) {
        return status_fail(&r->st, 400, "node: Invalid value: not a name for a node");
    }
    if (check_token(r, node) < 0 || check_requests(r, body) < 0) {
        return -1;
    }
    if (!token_join(r->store, http_header(r->x, "Authorization"), node, generation)) {
        return refuse_token(r);
    }
    return sign_both(r, ca, node, generation, body);
}
