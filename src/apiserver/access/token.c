#include "apiserver/access/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "api/base64.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/access/deny.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

static const char home[] = "kube-system";
enum { ID_BYTES = 5, SECRET_BYTES = 20, HASH_HEX = 65 };

static void to_hex(const unsigned char *b, size_t n, char *hex)
{
    for (size_t i = 0; i < n; i++) {
        snprintf(hex + 2 * i, 3, "%02x", b[i]);
    }
}

static bool hash(const char *text, char hex[HASH_HEX])
{
    unsigned char digest[32];

    if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL) != 1) {
        return false;
    }
    to_hex(digest, sizeof(digest), hex);
    return true;
}

/* ---- checking ----------------------------------------------------------------------------------
 */

/* A value of the secret's data, which is base64. */
static bool read_value(const yyjson_val *secret, const char *key, char *ret, size_t size)
{
    const char *text =
        yyjson_get_str(yyjson_obj_get(yyjson_obj_get((yyjson_val *)secret, "data"), key));
    ferry_cleanup_free char *value = NULL;
    size_t n = 0;

    if (ferry_str_empty(text) || !api_base64_decode(text, strlen(text), &value, &n) || n >= size) {
        return false;
    }
    memcpy(ret, value, n + 1);
    return true;
}

/* The stored secret of a good token; a reference, or NULL. */
static struct entry *find(struct store *store, const char *authorization, yyjson_doc **ret)
{
    char id[2 * ID_BYTES + 1], secret[2 * SECRET_BYTES + 1], digest[HASH_HEX], stored[HASH_HEX];
    char end[64];
    int64_t end_ms = 0;

    if (!authorization ||
        sscanf(authorization, "Bearer ferry.%10[0-9a-f].%40[0-9a-f]", id, secret) != 2 ||
        strlen(secret) != sizeof(secret) - 1) {
        return NULL;
    }
    ferry_cleanup_free char *name = ferry_asprintf("ferry-token.%s", id);
    cleanup_entry struct entry *e =
        store_get(store, api_resource_find("", "v1", "secrets"), home, name);
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    const yyjson_val *root = yyjson_doc_get_root(doc);
    if (!doc || !ferry_streq(api_json_str(root, "/type"), TYPE_TOKEN) ||
        !read_value(root, "hash", stored, sizeof(stored)) || !hash(secret, digest) ||
        CRYPTO_memcmp(stored, digest, sizeof(digest)) != 0) {
        return NULL;
    }
    if (read_value(root, "end", end, sizeof(end)) &&
        (api_time_parse(end, &end_ms, NULL) < 0 || end_ms < ferry_now_unix_ms())) {
        return NULL;
    }
    *ret = ferry_take_ptr(doc);
    return ferry_take_ptr(e);
}

bool token_identify(struct store *store, const char *authorization, struct auth_who *ret)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    cleanup_entry struct entry *e = find(store, authorization, &doc);
    struct http_peer peer = {.certificate = true};

    /* A joining token opens the door to joining, and no other. */
    if (!e ||
        !read_value(yyjson_doc_get_root(doc), "user", peer.common_name, sizeof(peer.common_name))) {
        return false;
    }
    if (read_value(yyjson_doc_get_root(doc), "group", peer.groups[0], sizeof(peer.groups[0]))) {
        peer.n_groups = 1;
    }
    auth_identify(&peer, ret);
    return true;
}

bool token_is_for(struct store *store, const char *authorization, const char *node)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    cleanup_entry struct entry *e = find(store, authorization, &doc);
    char wanted[HTTP_NAME_MAX];

    return e && read_value(yyjson_doc_get_root(doc), "node", wanted, sizeof(wanted)) &&
           (!node || ferry_streq(wanted, node));
}

bool token_join(struct store *store, const char *authorization, const char *node,
                char generation[TLS_GENERATION_SIZE])
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    char wanted[HTTP_NAME_MAX];

    store_begin(store);
    cleanup_entry struct entry *e = find(store, authorization, &doc);
    if (!e || !read_value(yyjson_doc_get_root(doc), "node", wanted, sizeof(wanted)) ||
        !ferry_streq(wanted, node)) {
        store_abort(store, NULL);
        return false;
    }
    api_cleanup_mut_doc yyjson_mut_doc *last = json_doc_copy(doc);
    if (deny_lift(store, node, generation, NULL) < 0 || store_remove(store, e, last, NULL) < 0) {
        store_abort(store, NULL);
        return false;
    }
    return store_commit(store, NULL, NULL) == 0;
}
