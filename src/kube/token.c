#include "kube/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "http/client.h"
#include "json/doc.h"

enum { ID_BYTES = 5, SECRET_BYTES = 20, DIGEST_BYTES = 32 };

static void to_hex(const unsigned char *b, size_t n, char *hex)
{
    for (size_t i = 0; i < n; i++) {
        snprintf(hex + 2 * i, 3, "%02x", b[i]);
    }
}

static char *secret_json(const struct kube_token_use *use, const char *id, const char *hash)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    ferry_cleanup_free char *name = ferry_asprintf("ferry-token.%s", id);
    char end[FERRY_RFC3339_SIZE];

    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "Secret");
    yyjson_mut_obj_add_str(doc, root, "type", TYPE_TOKEN);
    yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, root, "metadata"), "name", name);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, "stringData");
    yyjson_mut_obj_add_str(doc, data, "hash", hash);
    const char *const pairs[][2] = {
        {"node", use->node},
        {"user", use->user},
        {"group", use->group},
        {"end", use->life_s ? ferry_rfc3339(ferry_now_unix_ms() + use->life_s * 1000, end) : NULL},
    };
    for (size_t i = 0; i < FERRY_COUNT(pairs); i++) {
        if (pairs[i][1]) {
            yyjson_mut_obj_add_str(doc, data, pairs[i][0], pairs[i][1]);
        }
    }
    return json_doc_text(doc, 0, NULL);
}

static int create(struct kube_client *client, const char *json, struct ferry_error *err)
{
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(kube_client_http(client),
                              &(struct http_call){.method = "POST",
                                                  .path = "/api/v1/namespaces/kube-system/secrets",
                                                  .content_type = "application/json",
                                                  .body = json,
                                                  .body_len = strlen(json)},
                              &reply, err);

    if (rc == 0 && reply.status != 201) {
        rc =
            kube_status_error(reply.status, reply.body.data, reply.body.len, "making a token", err);
    }
    return rc;
}

int kube_token_create(struct kube_client *client, const struct kube_token_use *use,
                      char ret[KUBE_TOKEN_SIZE], struct ferry_error *err)
{
    unsigned char id[ID_BYTES], secret[SECRET_BYTES], digest[DIGEST_BYTES];
    char id_hex[2 * ID_BYTES + 1], secret_hex[2 * SECRET_BYTES + 1], hash[2 * DIGEST_BYTES + 1];

    if (RAND_bytes(id, sizeof(id)) != 1 || RAND_bytes(secret, sizeof(secret)) != 1) {
        return ferry_fail(err, FERRY_FATAL, "no random numbers");
    }
    to_hex(id, sizeof(id), id_hex);
    to_hex(secret, sizeof(secret), secret_hex);
    if (EVP_Digest(secret_hex, strlen(secret_hex), digest, NULL, EVP_sha256(), NULL) != 1) {
        return ferry_fail(err, FERRY_FATAL, "cannot hash");
    }
    to_hex(digest, sizeof(digest), hash);
    ferry_cleanup_free char *json = secret_json(use, id_hex, hash);
    int rc = create(client, json, err);
    if (rc == 0) {
        snprintf(ret, KUBE_TOKEN_SIZE, "ferry.%s.%s", id_hex, secret_hex);
    }
    OPENSSL_cleanse(secret, sizeof(secret));
    OPENSSL_cleanse(secret_hex, sizeof(secret_hex));
    return rc;
}
