#include "handler/node/renewal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/node/cert_files.h"
#include "http/client.h"
#include "tls/pki.h"
#include "json/doc.h"

enum { PEM_MAX = 1 << 20, REPLY_MAX = 1 << 20, RETRY_MS = 60000 };

FERRY_DEFINE_CLEANUP(char *, pki_key_free)
#define cleanup_key ferry_cleanup(pki_key_freep)

int64_t renewal_due_s(int64_t begin_s, int64_t end_s, int percent)
{
    int64_t life = end_s > begin_s ? end_s - begin_s : 0;

    return begin_s + life * percent / 100;
}

/* False also when there is no certificate: then there is nothing to renew it with. */
static bool is_due(const struct renewal *r, int64_t now_ms)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/node.crt", r->pki_dir);
    ferry_cleanup_buf struct ferry_buf pem = {0};
    int64_t begin_s, end_s;
    struct ferry_error err;

    if (now_ms < r->again_ms || ferry_read_file(path, PEM_MAX, &pem, NULL) < 0 || !pem.data) {
        return false;
    }
    if (pki_lifetime(pem.data, &begin_s, &end_s, &err) < 0) {
        ferry_debug("cannot see when the node's certificate ends", F_ERR(&err));
        return false;
    }
    return now_ms / 1000 >= renewal_due_s(begin_s, end_s, r->percent);
}

static char *request_body(const char *node, const char *node_request, const char *relay_request)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "node", node);
    yyjson_mut_obj_add_str(doc, root, "nodeRequest", node_request);
    yyjson_mut_obj_add_str(doc, root, "relayRequest", relay_request);
    return json_doc_text(doc, 0, NULL);
}

static int ask(const struct renewal *r, const char *body, yyjson_doc **ret, struct ferry_error *err)
{
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(kube_client_http(r->client),
                              &(struct http_call){.method = "POST",
                                                  .path = "/ferry/v1/renew",
                                                  .content_type = "application/json",
                                                  .body = body,
                                                  .body_len = strlen(body),
                                                  .max_reply = REPLY_MAX},
                              &reply, err);

    if (rc == 0 && reply.status != 200) {
        rc = kube_status_error(reply.status, reply.body.data, reply.body.len,
                               "renewing certificates", err);
    }
    return rc < 0 ? rc : api_json_parse(reply.body.data, reply.body.len, ret, err);
}

char *renewal_kubeconfig(const char *text)
{
    static const struct {
        const char *had, *names;
    } fields[] = {{"client-certificate-data:", "client-certificate: pki/node.crt"},
                  {"client-key-data:", "client-key: pki/node.key"}};
    struct ferry_buf b = {0};

    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), indent = strspn(line, " ");
        const char *names = NULL;

        for (size_t i = 0; i < FERRY_COUNT(fields); i++) {
            names = ferry_str_starts(line + indent, fields[i].had) ? fields[i].names : names;
        }
        ferry_buf_append(&b, line, names ? indent : n);
        ferry_buf_puts(&b, names ? names : "");
        ferry_buf_puts(&b, "\n");
        line += n + (line[n] ? 1 : 0);
    }
    return ferry_buf_take(&b);
}

/* Of the node's own kubeconfig: the text that it had, or NULL; one that lies elsewhere is somebody
 * else's. */
static char *own_kubeconfig(const char *pki_dir, const char *kubeconfig)
{
    ferry_cleanup_free char *beside = ferry_asprintf("%s/../node.kubeconfig", pki_dir);
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct stat ours, named;

    if (stat(beside, &ours) < 0 || stat(kubeconfig, &named) < 0 || ours.st_ino != named.st_ino ||
        ours.st_dev != named.st_dev || ferry_read_file(kubeconfig, PEM_MAX, &text, NULL) < 0 ||
        !text.data) {
        return NULL;
    }
    return ferry_buf_take(&text);
}

/* Has it name the files in place of their contents. */
static int name_files(const char *pki_dir, const char *kubeconfig, struct ferry_error *err)
{
    ferry_cleanup_free char *had = own_kubeconfig(pki_dir, kubeconfig);
    ferry_cleanup_free char *now = had ? renewal_kubeconfig(had) : NULL;

    return !now || ferry_streq(had, now)
               ? 0
               : ferry_write_file(kubeconfig, now, strlen(now), 0600, err);
}

/* Written anew as it is: that is what tells the programs. */
static int tell(const char *pki_dir, const char *kubeconfig, struct ferry_error *err)
{
    ferry_cleanup_free char *text = own_kubeconfig(pki_dir, kubeconfig);

    return text ? ferry_write_file(kubeconfig, text, strlen(text), 0600, err) : 0;
}

static bool is_newer(const char *path, const char *than)
{
    struct stat a, b;

    return stat(path, &a) == 0 && stat(than, &b) == 0 &&
           (a.st_mtim.tv_sec > b.st_mtim.tv_sec ||
            (a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec > b.st_mtim.tv_nsec));
}

static int settle_files(const char *pki_dir, struct ferry_error *err)
{
    int rc = cert_files_settle(pki_dir, "relay", err);

    if (rc >= 0) {
        rc = cert_files_settle(pki_dir, "node", err);
    }
    return rc < 0 ? rc : 0;
}

int renewal_settle(const char *pki_dir, const char *kubeconfig, struct ferry_error *err)
{
    ferry_cleanup_free char *crt = ferry_asprintf("%s/node.crt", pki_dir);
    int rc = settle_files(pki_dir, err);

    return rc == 0 && is_newer(crt, kubeconfig) ? tell(pki_dir, kubeconfig, err) : rc;
}

static int renew(const struct renewal *r, struct ferry_error *err)
{
    ferry_cleanup_free char *node_request = NULL, *relay_request = NULL;
    cleanup_key char *node_key = NULL, *relay_key = NULL;
    api_cleanup_doc yyjson_doc *doc = NULL;
    ferry_cleanup_free char *node_name = ferry_asprintf("system:node:%s", r->node);
    ferry_cleanup_free char *relay_name = ferry_asprintf("ferry-relay:%s", r->node);
    int rc = pki_request(node_name, &node_request, &node_key, err);

    if (rc == 0) {
        rc = pki_request(relay_name, &relay_request, &relay_key, err);
    }
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *body = request_body(r->node, node_request, relay_request);
    rc = ask(r, body, &doc, err);
    if (rc < 0) {
        return rc;
    }
    const yyjson_val *answer = yyjson_doc_get_root(doc);
    const char *node = api_json_str(answer, "/node"), *relay = api_json_str(answer, "/relay");
    if (ferry_str_empty(node) || ferry_str_empty(relay)) {
        return ferry_fail(err, FERRY_PEER, "renewing certificates: the answer has no %s",
                          ferry_str_empty(node) ? "node.crt" : "relay.crt");
    }
    /* A kubeconfig with the old certificate in it would outlast the old files. */
    rc = name_files(r->pki_dir, r->kubeconfig, err);
    if (rc == 0) {
        rc = cert_files_stage(r->pki_dir, "relay", relay_key, relay, err);
    }
    /* The node's last: its certificate says that all of it was done. */
    if (rc == 0) {
        rc = cert_files_stage(r->pki_dir, "node", node_key, node, err);
    }
    if (rc == 0) {
        rc = settle_files(r->pki_dir, err);
    }
    return rc < 0 ? rc : tell(r->pki_dir, r->kubeconfig, err);
}

int renewal_look(struct renewal *r, int64_t now_ms, struct ferry_error *err)
{
    if (!is_due(r, now_ms)) {
        return 0;
    }
    int rc = renew(r, err);
    if (rc < 0) {
        r->again_ms = now_ms + RETRY_MS;
        return rc;
    }
    ferry_info("certificates renewed", F_STR("node", r->node));
    return 1;
}
