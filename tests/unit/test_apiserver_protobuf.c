/* Protobuf bodies: what kubectl sends, and every way in which bytes can be wrong. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/message/protobuf.h"
#include "base/str.h"

#define BODY(s) s, sizeof(s) - 1

static void bodies(void **state)
{
    static const struct {
        const char *body;
        size_t len;
        const char *json; /* or what the error says, when rc is not 0 */
        int rc;
    } cases[] = {
        /* kubectl create namespace foo */
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x0d\x0a\x07\x0a\x03"
              "foo\x42\x00\x12\x00\x1a\x00\x1a\x00\x22\x00"),
         "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"foo\"}}", 0},
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
              "ConfigMap\x12\x16\x0a\x03\x0a\x01"
              "a\x12\x06\x0a\x01k\x12\x01v\x1a\x07\x0a\x01"
              "b\x12\x02hi"),
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":"
         "{\"k\":\"v\"},\"binaryData\":{\"b\":\"aGk=\"}}",
         0},
        {BODY("k8s\0\x0a\x13\x0a\x02v1\x12\x0d"
              "DeleteOptions\x12\x0a\x08\x05\x12\x03\x0a\x01u\x2a\x01x"),
         "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":5,"
         "\"preconditions\":{\"uid\":\"u\"},\"dryRun\":[\"x\"]}",
         0},
        /* kubectl create quota */
        {BODY("k8s\0\x0a\x13\x0a\x02v1\x12\x0dResourceQuota\x12 "
              "\x0a\x03\x0a\x01q\x12\x19\x0a\x0a\x0a\x03"
              "cpu\x12\x03\x0a\x01"
              "2\x12\x0bTerminating"),
         "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"metadata\":{\"name\":\"q\"},\"spec\":"
         "{\"hard\":{\"cpu\":\"2\"},\"scopes\":[\"Terminating\"]}}",
         0},
        /* kubectl auth can-i */
        {BODY("k8s\0\x0a"
              "2\x0a\x17"
              "authorization.k8s.io/"
              "v1\x12\x17SelfSubjectAccessReview\x12\x14\x0a\x00\x12\x10\x0a\x0e\x0a\x01"
              "d\x12\x03get*\x04pods"),
         "{\"apiVersion\":\"authorization.k8s.io/"
         "v1\",\"kind\":\"SelfSubjectAccessReview\",\"metadata\":{},\"spec\":{"
         "\"resourceAttributes\":{\"namespace\":\"d\",\"verb\":\"get\",\"resource\":\"pods\"}}}",
         0},
        {BODY("k8s\0\x0a"
              "2\x0a\x17"
              "authorization.k8s.io/"
              "v1\x12\x17SelfSubjectAccessReview\x12\x0d\x12\x0b\x12\x09\x0a\x02/x\x12\x03get"),
         "{\"apiVersion\":\"authorization.k8s.io/"
         "v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"nonResourceAttributes\":{\"path\":"
         "\"/x\",\"verb\":\"get\"}}}",
         0},
        {BODY("k8s\0\x0a"
              "1\x0a\x17"
              "authorization.k8s.io/v1\x12\x16SelfSubjectRulesReview\x12\x05\x12\x03\x0a\x01"
              "d"),
         "{\"apiVersion\":\"authorization.k8s.io/"
         "v1\",\"kind\":\"SelfSubjectRulesReview\",\"spec\":{\"namespace\":\"d\"}}",
         0},
        /* kubectl drain */
        {BODY("k8s\0\x0a\x15\x0a\x09policy/v1\x12\x08"
              "Eviction\x12\x0c\x0a\x06\x0a\x01p\x1a\x01"
              "d\x12\x02\x08\x05"),
         "{\"apiVersion\":\"policy/"
         "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},"
         "\"deleteOptions\":{\"gracePeriodSeconds\":5}}",
         0},
        /* a quantity that has more to it */
        {BODY("k8s\0\x0a\x13\x0a\x02v1\x12\x0dResourceQuota\x12\x12\x12\x10\x0a\x0e\x0a\x03"
              "cpu\x12\x07\x0a\x01"
              "2J\x02zz"),
         "{\"apiVersion\":\"v1\",\"kind\":\"ResourceQuota\",\"spec\":{\"hard\":{\"cpu\":\"2\"}}}",
         0},
        /* a quantity that is a number */
        {BODY("k8s\0\x0a\x13\x0a\x02v1\x12\x0dResourceQuota\x12\x0d\x12\x0b\x0a\x09\x0a\x03"
              "cpu\x12\x02\x08\x01"),
         "malformed", -FERRY_INVALID},
        /* an empty value of a map, an unknown field of each wire type */
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
              "ConfigMap\x12\x1c\x12\x03\x0a\x01k\xf8\x07\x01\xf9\x07"
              "12345678\xfd\x07"
              "1234\xfa\x07\x01z"),
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"k\":\"\"}}", 0},
        {BODY(""), "malformed", -FERRY_INVALID},
        {BODY("k8s"), "malformed", -FERRY_INVALID},
        {BODY("{\"kind\":1}"), "malformed", -FERRY_INVALID},
        {BODY("k8s\0"), "not understood", -FERRY_NOT_FOUND},
        {BODY("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x00"), "not understood", -FERRY_NOT_FOUND},
        {BODY("k8s\0\x0a\x7f"), "malformed", -FERRY_INVALID},
        {BODY("k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "malformed",
         -FERRY_INVALID},
        {BODY("k8s\0\x00\x00"), "malformed", -FERRY_INVALID},
        {BODY("k8s\0\x0b\x00"), "malformed", -FERRY_INVALID},
        {BODY("k8s\0\x08\x01"), "malformed", -FERRY_INVALID},
        /* metadata as a number, a name with a NUL, a name that is not UTF-8 */
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x02\x08\x01"), "malformed",
         -FERRY_INVALID},
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01\x00"), "malformed",
         -FERRY_INVALID},
        {BODY("k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01\xff"), "malformed",
         -FERRY_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_mut_doc yyjson_mut_doc *doc = NULL;
        struct ferry_error err = {0};
        /* a copy of exact size, so that reading past the end is seen */
        ferry_cleanup_free char *body = ferry_xcalloc(cases[i].len, 1);

        memcpy(body, cases[i].body, cases[i].len);
        int rc = protobuf_parse(body, cases[i].len, &doc, &err);
        ferry_cleanup_free char *json = rc == 0 ? yyjson_mut_write(doc, 0, NULL) : NULL;
        if (rc != cases[i].rc ||
            (rc == 0 ? strcmp(json, cases[i].json) != 0 : !strstr(err.msg, cases[i].json))) {
            fail_msg("case %zu: rc %d %s %s", i, rc, err.msg, json ? json : "");
        }
    }
}

static void every_cut_and_every_flip(void **state)
{
    static const char whole[] = "k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
                                "ConfigMap\x12\x16\x0a\x03\x0a\x01"
                                "a\x12\x06\x0a\x01k\x12\x01v\x1a\x07\x0a\x01"
                                "b\x12\x02hi";

    (void)state;
    for (size_t len = 0; len < sizeof(whole); len++) {
        for (size_t bit = 0; bit < len * 8; bit++) {
            ferry_cleanup_free char *body = ferry_xcalloc(len, 1);
            yyjson_mut_doc *doc = NULL;

            memcpy(body, whole, len);
            body[bit / 8] = (char)(body[bit / 8] ^ (1 << (bit % 8)));
            if (protobuf_parse(body, len, &doc, NULL) == 0) {
                yyjson_mut_doc_free(doc);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies),
        cmocka_unit_test(every_cut_and_every_flip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
