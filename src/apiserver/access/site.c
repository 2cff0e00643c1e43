#include "apiserver/access/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "api/names.h"
#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"

enum { KUBECONFIG_MAX = 1 << 20 };
enum { SANS_MAX = 64, NODE_NAME_MAX = 52 }; /* "system:node:" and the name fit in a CN of 64 */

static void key_free(char **key)
{
    pki_key_free(*key);
}
#define cleanup_key ferry_cleanup(key_free)

static void secret_buf_done(struct ferry_buf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->cap);
    }
    ferry_buf_done(b);
}
#define cleanup_secret_buf ferry_cleanup(secret_buf_done)

int site_open(const char *data, struct pki_ca **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *dir = ferry_asprintf("%s/ca", data);
    int rc = ferry_mkdir_p(data, 0700, err);

    return rc < 0 ? rc : pki_ca_open(dir, true, ret, err);
}

int site_serving(const struct pki_ca *ca, const char *const *sans, size_t n_sans,
                 int64_t lifetime_s, char **ret_cert_pem, char **ret_key_pem,
                 struct ferry_error *err)
{
    const char *names[SANS_MAX + 2] = {"localhost"};
    const char *addresses[SANS_MAX + 3] = {"127.0.0.1", "::1"};
    size_t n_names = 1, n_addresses = 2;

    if (n_sans > SANS_MAX) {
        return ferry_fail(err, FERRY_INVALID, "more than %d names for one certificate", SANS_MAX);
    }
    for (size_t i = 0; i < n_sans; i++) {
        unsigned char bytes[16];

        if (inet_pton(AF_INET, sans[i], bytes) == 1 || inet_pton(AF_INET6, sans[i], bytes) == 1) {
            addresses[n_addresses++] = sans[i];
        } else {
            names[n_names++] = sans[i];
        }
    }
    return pki_issue(ca,
                     &(struct pki_leaf){.common_name = "ferry-apiserver",
                                        .dns_names = names,
                                        .addresses = addresses,
                                        .server = true,
                                        .lifetime_s = lifetime_s},
                     ret_cert_pem, ret_key_pem, err);
}

/* ---- kubeconfig --------------------------------------------------------------------------------
 */

static void put_base64(struct ferry_buf *b, const char *key, const char *text)
{
    size_t len = strlen(text);
    size_t room = (len + 2) / 3 * 4 + 1;

    ferry_buf_printf(b, "    %s: ", key);
    ferry_buf_reserve(b, room);
    b->len += (size_t)EVP_EncodeBlock((unsigned char *)b->data + b->len,
                                      (const unsigned char *)text, (int)len);
    ferry_buf_puts(b, "\n");
}

/* A kubeconfig that is to be, and whose: as in site_controller_kubeconfig(). */
struct place {
    const char *path;
    uid_t uid;
    gid_t reader;
};
#define PRIVATE(path) (&(const struct place){(path), (uid_t)-1, FERRY_NO_GROUP})

static int write_kubeconfig(const struct pki_ca *ca, const char *user, const char *server,
                            const char *cert_pem, const char *key_pem, const struct place *place,
                            struct ferry_error *err)
{
    cleanup_secret_buf struct ferry_buf b = {0};

    /* One allocation: growing would leave copies of the key behind. */
    ferry_buf_reserve(&b, (size_t)16 << 10);
    ferry_buf_puts(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: ferry\n  cluster:\n");
    ferry_buf_printf(&b, "    server: %s\n", server);
    put_base64(&b, "certificate-authority-data", pki_ca_pem(ca));
    ferry_buf_printf(&b, "users:\n- name: %s\n  user:\n", user);
    put_base64(&b, "client-certificate-data", cert_pem);
    put_base64(&b, "client-key-data", key_pem);
    ferry_buf_printf(&b,
                     "contexts:\n- name: ferry\n  context:\n    cluster: ferry\n    user: %s\n"
                     "current-context: ferry\n",
                     user);
    return ferry_write_file_of(place->path, b.data, b.len,
                               place->reader == FERRY_NO_GROUP ? 0600 : 0640, place->uid,
                               place->reader, err);
}

static int check_server(const char *server, struct ferry_error *err)
{
    if (!ferry_str_starts(server, "https://") || strpbrk(server, " \t\r\n\"'#")) {
        return ferry_fail(err, FERRY_INVALID, "'%.100s' is not an https:// URL", server);
    }
    return 0;
}

static int issue_kubeconfig(const struct pki_ca *ca, const struct pki_leaf *leaf,
                            const char *server, const struct place *place, struct ferry_error *err)
{
    ferry_cleanup_free char *cert = NULL;
    cleanup_key char *key = NULL;
    int rc = check_server(server, err);

    if (rc == 0) {
        rc = pki_issue(ca, leaf, &cert, &key, err);
    }
    return rc < 0 ? rc : write_kubeconfig(ca, leaf->common_name, server, cert, key, place, err);
}

int site_admin_kubeconfig(const struct pki_ca *ca, const char *server, int64_t lifetime_s,
                          const char *path, struct ferry_error *err)
{
    static const char *const groups[] = {"ferry:admins", NULL};

    return issue_kubeconfig(ca,
                            &(struct pki_leaf){.common_name = "ferry-admin",
                                               .organizations = groups,
                                               .client = true,
                                               .lifetime_s = lifetime_s},
                            server, PRIVATE(path), err);
}

int site_controller_kubeconfig(const struct pki_ca *ca, const char *server, int64_t lifetime_s,
                               const char *path, uid_t uid, gid_t reader, struct ferry_error *err)
{
    const struct place place = {.path = path, .uid = uid, .reader = reader};

    return issue_kubeconfig(ca,
                            &(struct pki_leaf){.common_name = "system:ferry-controller",
                                               .client = true,
                                               .lifetime_s = lifetime_s},
                            server, &place, err);
}

static int read_server(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    char **ret = ctx;
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);

    if (rc == 0 && !*ret) {
        *ret = ferry_strdup(api_json_str(yyjson_doc_get_root(doc), "/clusters/0/cluster/server"));
    }
    return rc;
}

int site_renew_controller(const struct pki_ca *ca, int64_t lifetime_s, const char *path,
                          struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    ferry_cleanup_free char *server = NULL;
    struct stat st;

    if (stat(path, &st) < 0) {
        return errno == ENOENT ? 0 : ferry_fail_errno(err, errno, "renewing %s", path);
    }
    int rc = ferry_read_file(path, KUBECONFIG_MAX, &text, err);
    if (rc == 0) {
        rc = api_yaml_each(text.data ? text.data : "", text.len, read_server, &server, err);
    }
    if (rc < 0) {
        return ferry_wrap(err, "renewing %s", path);
    }
    if (!server) {
        return ferry_fail(err, FERRY_INVALID, "renewing %s: it names no server", path);
    }
    return site_controller_kubeconfig(ca, server, lifetime_s, path,
                                      geteuid() == 0 ? st.st_uid : (uid_t)-1,
                                      st.st_mode & 040 ? st.st_gid : FERRY_NO_GROUP, err);
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

static int write_relay(const struct pki_ca *ca, const struct site_node *node, const char *pki,
                       struct ferry_error *err)
{
    ferry_cleanup_free char *cert = ferry_asprintf("%s/relay.crt", pki);
    ferry_cleanup_free char *key = ferry_asprintf("%s/relay.key", pki);
    int rc = pki_issue_relay_files(ca, node->name, cert, key, err);

    if (rc == 0 && node->relay_uid != (uid_t)-1 &&
        chown(key, node->relay_uid, node->relay_gid) < 0) {
        return ferry_fail_errno(err, errno, "giving %s to the relay's user", key);
    }
    return rc;
}

int site_sign_node(const struct pki_ca *ca, const char *node, const char *generation,
                   const char *request_pem, char **ret_cert_pem, struct ferry_error *err)
{
    static const char *const groups[] = {"system:nodes", NULL};
    ferry_cleanup_free char *name = ferry_asprintf("system:node:%s", node);
    const char *const names[] = {node, NULL};

    return pki_sign(ca,
                    &(struct pki_leaf){.common_name = name,
                                       .generation = generation,
                                       .organizations = groups,
                                       .dns_names = names,
                                       .client = true,
                                       .server = true},
                    request_pem, ret_cert_pem, err);
}

static int write_node(const struct pki_ca *ca, const struct site_node *node, const char *pki,
                      struct ferry_error *err)
{
    static const char *const groups[] = {"system:nodes", NULL};
    ferry_cleanup_free char *name = ferry_asprintf("system:node:%s", node->name);
    ferry_cleanup_free char *cert_path = ferry_asprintf("%s/node.crt", pki);
    ferry_cleanup_free char *key_path = ferry_asprintf("%s/node.key", pki);
    ferry_cleanup_free char *config = ferry_asprintf("%s/node.kubeconfig", node->dir);
    ferry_cleanup_free char *cert = NULL;
    cleanup_key char *key = NULL;
    /* Also what the node's own API is served with: whoever calls it knows the node by its name. */
    const char *const names[] = {node->name, NULL};
    int rc = pki_issue(ca,
                       &(struct pki_leaf){.common_name = name,
                                          .organizations = groups,
                                          .dns_names = names,
                                          .client = true,
                                          .server = true},
                       &cert, &key, err);

    if (rc == 0) {
        rc = ferry_write_file(key_path, key, strlen(key), 0600, err);
    }
    if (rc == 0) {
        rc = ferry_write_file(cert_path, cert, strlen(cert), 0644, err);
    }
    return rc < 0 ? rc : write_kubeconfig(ca, name, node->server, cert, key, PRIVATE(config), err);
}

int site_node(const struct pki_ca *ca, const struct site_node *node, struct ferry_error *err)
{
    ferry_cleanup_free char *pki = ferry_asprintf("%s/pki", node->dir);
    ferry_cleanup_free char *ca_path = ferry_asprintf("%s/ca.crt", pki);

    if (!api_name_is_dns_subdomain(node->name) || strlen(node->name) > NODE_NAME_MAX) {
        return ferry_fail(err, FERRY_INVALID,
                          "'%.100s' is not a node name: lower case letters, digits, '-' and '.', "
                          "at most %d",
                          node->name, NODE_NAME_MAX);
    }
    int rc = check_server(node->server, err);
    if (rc == 0) {
        rc = ferry_mkdir_p(node->dir, 0711, err);
    }
    if (rc == 0) {
        rc = ferry_mkdir_p(pki, 0711, err);
    }
    if (rc == 0 && chmod(pki, 0711) < 0) { /* the relay's user passes through */
        rc = ferry_fail_errno(err, errno, "opening %s to the relay's user", pki);
    }
    if (rc == 0) {
        rc = ferry_write_file(ca_path, pki_ca_pem(ca), strlen(pki_ca_pem(ca)), 0644, err);
    }
    rc = rc < 0 ? rc : write_relay(ca, node, pki, err);
    return rc < 0 ? rc : write_node(ca, node, pki, err);
}
