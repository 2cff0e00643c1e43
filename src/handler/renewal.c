#include "handler/renewal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "api/object.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"
#include "tls/pki.h"

enum { PEM_MAX = 1 << 20, REPLY_MAX = 1 << 20, RETRY_MS = 60000 };

FERRY_DEFINE_CLEANUP(char *, pki_key_free)
#define cleanup_key ferry_cleanup(pki_key_freep)

int64_t renewal_due_s(int64_t begin_s, int64_t end_s, int percent)
{
    int64_t life = end_s > begin_s ? end_s - begin_s : 0;

    return begin_s + life * percent / 100;
}

static char *path_of(const struct renewal *r, const char *name)
{
    return ferry_asprintf("%s/%s", r->pki_dir, name);
}

/* False also when there is no certificate: then there is nothing to renew it with. */
static bool is_due(const struct renewal *r, int64_t now_ms)
{
    ferry_cleanup_free char *path = path_of(r, "node.crt");
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
    api_cleanup_mut_doc yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "node", node);
    yyjson_mut_obj_add_str(doc, root, "nodeRequest", node_request);
    yyjson_mut_obj_add_str(doc, root, "relayRequest", relay_request);
    return yyjson_mut_write(doc, 0, NULL);
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

/* In place of what is there, for its owner: the relay is a user of its own. */
static int replace(const struct renewal *r, const char *name, const char *pem, mode_t mode,
                   struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_of(r, name);
    struct stat st;
    bool was = stat(path, &st) == 0;

    if (ferry_str_empty(pem)) {
        return ferry_fail(err, FERRY_PEER, "renewing certificates: the answer has no %s", name);
    }
    int rc = ferry_write_file(path, pem, strlen(pem), mode, err);
    if (rc == 0 && was && chown(path, st.st_uid, st.st_gid) < 0) {
        return ferry_fail_errno(err, errno, "giving %s back to its owner", path);
    }
    return rc;
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

        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            names = ferry_str_starts(line + indent, fields[i].had) ? fields[i].names : names;
        }
        ferry_buf_append(&b, line, names ? indent : n);
        ferry_buf_puts(&b, names ? names : "");
        ferry_buf_puts(&b, "\n");
        line += n + (line[n] ? 1 : 0);
    }
    return ferry_buf_take(&b);
}

/* Written anew even if it is the same: that is what tells the programs. */
static int rewrite_kubeconfig(const struct renewal *r, struct ferry_error *err)
{
    ferry_cleanup_free char *beside = ferry_asprintf("%s/../node.kubeconfig", r->pki_dir);
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct stat ours, named;

    /* One that lies elsewhere is somebody else's. */
    if (stat(beside, &ours) < 0 || stat(r->kubeconfig, &named) < 0 || ours.st_ino != named.st_ino ||
        ours.st_dev != named.st_dev) {
        return 0;
    }
    int rc = ferry_read_file(r->kubeconfig, PEM_MAX, &text, err);
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *now = renewal_kubeconfig(text.data ? text.data : "");
    return ferry_write_file(r->kubeconfig, now, strlen(now), 0600, err);
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
    const yyjson_val *answer = yyjson_doc_get_root(doc);
    /* Each key before its certificate: readers keep what they have while the two do not fit. The
     * node's certificate last: it says that all of it was done. */
    const struct {
        const char *name, *pem;
        mode_t mode;
    } files[] = {
        {"relay.key", relay_key, 0600},
        {"relay.crt", api_json_str(answer, "/relay"), 0644},
        {"node.key", node_key, 0600},
        {"node.crt", api_json_str(answer, "/node"), 0644},
    };
    for (size_t i = 0; rc == 0 && i < sizeof(files) / sizeof(files[0]); i++) {
        rc = replace(r, files[i].name, files[i].pem, files[i].mode, err);
    }
    return rc < 0 ? rc : rewrite_kubeconfig(r, err);
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
