#include "kube/config.h"

#include <stdlib.h>
#include <string.h>

#include "api/base64.h"
#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"

enum { CONFIG_MAX = 1 << 20, PEM_MAX = 1 << 20, TOKEN_MAX = 1 << 16, NAMESPACE_MAX = 64 };

static void secret_free(char *s)
{
    if (s) {
        explicit_bzero(s, strlen(s));
    }
    free(s);
}

void kube_config_done(struct kube_config *c)
{
    free(c->server);
    free(c->ca_pem);
    free(c->cert_pem);
    secret_free(c->key_pem);
    secret_free(c->token);
    free(c->token_file);
    free(c->namespace_);
    *c = (struct kube_config){0};
}

static int decode_base64(const char *text, char **ret, struct ferry_error *err)
{
    size_t len = strlen(text), n;

    while (len > 0 && strchr(" \r\n\t", text[len - 1])) {
        len--;
    }
    return len <= PEM_MAX && api_base64_decode(text, len, ret, &n)
               ? 0
               : ferry_fail(err, FERRY_INVALID, "not base64");
}

/* A file that the kubeconfig names. */
static char *beside(const char *config_path, const char *file)
{
    const char *slash = strrchr(config_path, '/');

    return file[0] == '/' || !slash
               ? ferry_strdup(file)
               : ferry_asprintf("%.*s/%s", (int)(slash - config_path), config_path, file);
}

/* The first line of a file. */
static int read_line(const char *path, size_t max, char **ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(path, max, &text, err);

    if (rc < 0) {
        return rc;
    }
    *ret = ferry_buf_take(&text);
    (*ret)[strcspn(*ret, "\r\n")] = '\0';
    return 0;
}

/* Field `name` of the section, in the file itself (name + "-data") or in a file it names. */
static int load_pem(const char *config_path, const yyjson_val *section, const char *name,
                    char **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *data_pointer = ferry_asprintf("/%s-data", name);
    ferry_cleanup_free char *file_pointer = ferry_asprintf("/%s", name);
    const char *data = api_json_str(section, data_pointer);
    const char *file = api_json_str(section, file_pointer);

    if (!ferry_str_empty(data)) {
        int rc = decode_base64(data, ret, err);

        return rc < 0 ? ferry_wrap(err, "%s: %s-data", config_path, name) : 0;
    }
    if (ferry_str_empty(file)) {
        return 0;
    }
    ferry_cleanup_free char *path = beside(config_path, file);
    ferry_cleanup_buf struct ferry_buf pem = {0};

    if (ferry_read_file(path, PEM_MAX, &pem, err) < 0) {
        return ferry_wrap(err, "%s: %s", config_path, name);
    }
    *ret = ferry_buf_take(&pem);
    return 0;
}

/* The `member` of the entry called `name` in the list at `list`. */
static const yyjson_val *named_entry(const yyjson_val *root, const char *list, const char *name,
                                     const char *member)
{
    yyjson_val *items = yyjson_obj_get((yyjson_val *)root, list), *item;
    yyjson_arr_iter it;

    yyjson_arr_iter_init(items, &it);
    while ((item = yyjson_arr_iter_next(&it))) {
        if (ferry_streq(api_json_str(item, "/name"), name)) {
            return yyjson_obj_get(item, member);
        }
    }
    return NULL;
}

static int load_user(const char *path, const yyjson_val *user, struct kube_config *c,
                     struct ferry_error *err)
{
    const char *token = api_json_str(user, "/token"), *file = api_json_str(user, "/tokenFile");
    int rc = load_pem(path, user, "client-certificate", &c->cert_pem, err);

    if (rc < 0) {
        return rc;
    }
    rc = load_pem(path, user, "client-key", &c->key_pem, err);
    if (rc < 0) {
        return rc;
    }
    if (!c->cert_pem != !c->key_pem) {
        return ferry_fail(err, FERRY_INVALID, "%s: client-certificate and client-key go together",
                          path);
    }
    if (!ferry_str_empty(token)) {
        c->token = ferry_strdup(token);
    } else if (!ferry_str_empty(file)) {
        c->token_file = beside(path, file);
        rc = read_line(c->token_file, TOKEN_MAX, &c->token, err);
        if (rc < 0) {
            return ferry_wrap(err, "%s: tokenFile", path);
        }
    }
    return 0;
}

struct load {
    const char *path;
    struct kube_config *config;
    unsigned documents;
};

static int load_document(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    struct load *load = ctx;
    struct kube_config *c = load->config;
    yyjson_doc *doc = NULL;

    if (load->documents++ > 0) {
        return ferry_fail(err, FERRY_INVALID, "more than one document");
    }
    int rc = api_json_parse(json, len, &doc, err);
    if (rc < 0) {
        return rc;
    }
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const char *current = api_json_str(root, "/current-context");
    const yyjson_val *context = current ? named_entry(root, "contexts", current, "context") : NULL;
    const yyjson_val *cluster =
        named_entry(root, "clusters", api_json_str(context, "/cluster"), "cluster");
    const yyjson_val *user = named_entry(root, "users", api_json_str(context, "/user"), "user");
    const char *server = api_json_str(cluster, "/server");

    if (!context) {
        rc = ferry_fail(err, FERRY_INVALID, "current-context names no context");
    } else if (ferry_str_empty(server)) {
        rc = ferry_fail(err, FERRY_INVALID, "context '%s' has no cluster with a server", current);
    } else {
        c->server = ferry_strdup(server);
        while (ferry_str_ends(c->server, "/")) {
            c->server[strlen(c->server) - 1] = '\0';
        }
        c->namespace_ = ferry_strdup(api_json_str(context, "/namespace"));
        rc = load_pem(load->path, cluster, "certificate-authority", &c->ca_pem, err);
        if (rc == 0 && user) {
            rc = load_user(load->path, user, c, err);
        }
    }
    yyjson_doc_free(doc);
    return rc;
}

int kube_config_parse(const char *path, const char *text, size_t len, struct kube_config *ret,
                      struct ferry_error *err)
{
    kube_cleanup_config struct kube_config config = {0};
    struct load load = {.path = path, .config = &config};
    int rc = api_yaml_each(text, len, load_document, &load, err);

    if (rc < 0) {
        return ferry_wrap(err, "kubeconfig %s", path);
    }
    if (!config.server) {
        return ferry_fail(err, FERRY_INVALID, "kubeconfig %s is empty", path);
    }
    *ret = config;
    config = (struct kube_config){0};
    return 0;
}

int kube_config_load(const char *path, struct kube_config *ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(path, CONFIG_MAX, &text, err);

    if (rc < 0) {
        return ferry_wrap(err, "kubeconfig");
    }
    rc = kube_config_parse(path, text.data ? text.data : "", text.len, ret, err);
    if (text.data) {
        explicit_bzero(text.data, text.len);
    }
    return rc;
}

int kube_config_in_cluster(const char *dir, struct kube_config *ret, struct ferry_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    ferry_cleanup_free char *ca_path = ferry_asprintf("%s/ca.crt", dir);
    ferry_cleanup_free char *namespace_path = ferry_asprintf("%s/namespace", dir);
    ferry_cleanup_buf struct ferry_buf ca = {0};
    kube_cleanup_config struct kube_config c = {0};

    if (ferry_str_empty(host) || ferry_str_empty(port)) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                          "not in the environment");
    }
    c.server = strchr(host, ':') ? ferry_asprintf("https://[%s]:%s", host, port)
                                 : ferry_asprintf("https://%s:%s", host, port);
    c.token_file = ferry_asprintf("%s/token", dir);
    int rc = read_line(c.token_file, TOKEN_MAX, &c.token, err);
    rc = rc < 0 ? rc : ferry_read_file(ca_path, PEM_MAX, &ca, err);
    if (rc < 0) {
        return ferry_wrap(err, "service account of this pod");
    }
    c.ca_pem = ferry_buf_take(&ca);
    /* without one, the default namespace */
    read_line(namespace_path, NAMESPACE_MAX, &c.namespace_, NULL);
    *ret = c;
    c = (struct kube_config){0};
    return 0;
}
