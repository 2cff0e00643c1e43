/* AdmissionReviews: what is read from them, what is answered. */
#include "lib/unit.h"

#include <string.h>

#include "api/json.h"
#include "base/str.h"
#include "control/loops/review.h"
#include "control/loops/review_machine.h"

#define REVIEW(request)                                                                            \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":" request "}"

static void bodies(void **state)
{
    static const struct {
        const char *body, *ns, *name;
        bool dry_run, object;
        int rc;
    } cases[] = {
        {REVIEW("{\"uid\":\"u\",\"namespace\":\"d\",\"name\":\"p\",\"object\":{},\"dryRun\":true}"),
         "d", "p", true, true, 0},
        {REVIEW("{\"uid\":\"u\"}"), NULL, NULL, false, false, 0},
        {REVIEW("{}"), NULL, NULL, false, false, -FERRY_INVALID},
        {REVIEW("{\"uid\":1}"), NULL, NULL, false, false, -FERRY_INVALID},
        {REVIEW("[]"), NULL, NULL, false, false, -FERRY_INVALID},
        {"{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\","
         "\"request\":{\"uid\":\"u\"}}",
         NULL, NULL, false, false, -FERRY_INVALID},
        {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"Review\",\"request\":{\"uid\":\"u\"}}",
         NULL, NULL, false, false, -FERRY_INVALID},
        {"[]", NULL, NULL, false, false, -FERRY_INVALID},
        {"", NULL, NULL, false, false, -FERRY_INVALID},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        review_cleanup struct review r = {0};
        struct ferry_error err = {0};
        int rc = review_parse(cases[i].body, strlen(cases[i].body), &r, &err);

        if (rc != cases[i].rc || !ferry_streq(r.ns, cases[i].ns) ||
            !ferry_streq(r.name, cases[i].name) || r.dry_run != cases[i].dry_run ||
            (r.object != NULL) != cases[i].object) {
            fail_msg("%s: %d %s", cases[i].body, rc, rc < 0 ? err.msg : "");
        }
    }
}

#define ANSWER(rest)                                                                               \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":{"          \
    "\"uid\":\"u\",\"allowed\":" rest "}}"

static void answers(void **state)
{
    const struct review r = {.uid = "u"};
    /* all three lengths of the last group of base64 */
    static const struct {
        const char *patch, *encoded;
    } patches[] = {
        {"[1]", "WzFd"}, {"[12]", "WzEyXQ=="}, {"[123]", "WzEyM10="}, {"[~?>]", "W34/Pl0="}};

    (void)state;
    ferry_cleanup_free char *allowed = review_allow(&r);
    assert_string_equal(allowed, ANSWER("true"));
    ferry_cleanup_free char *later = review_deny(&r, 429, WIRE_ERROR_NONE, "no \"x\"");
    assert_string_equal(later, ANSWER("false,\"status\":{\"code\":429,\"message\":\"no \\\"x\\\"\","
                                      "\"reason\":\"TooManyRequests\"}"));
    ferry_cleanup_free char *never = review_deny(&r, 400, WIRE_ERROR_NONE, "");
    assert_non_null(strstr(never, "\"reason\":\"BadRequest\""));
    for (size_t i = 0; i < COUNT_OF(patches); i++) {
        ferry_cleanup_free char *text = review_patch(&r, patches[i].patch);
        ferry_cleanup_free char *wanted = ferry_asprintf(
            ANSWER("true,\"patchType\":\"JSONPatch\",\"patch\":\"%s\""), patches[i].encoded);

        assert_string_equal(text, wanted);
    }
}

static void labels(void **state)
{
#define LONG "0123456789012345678901234567890123456789012345678901234567890123"
    static const struct {
        const char *migration, *patch;
    } cases[] = {
        {"{\"spec\":{\"vmiName\":\"v\"}}",
         "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{}},{\"op\":\"add\",\"path\":"
         "\"/metadata/labels/kubevirt.io~1vmi-name\",\"value\":\"v\"}]"},
        {"{\"metadata\":{\"labels\":{\"kubevirt.io/"
         "vmi-name\":\"w\"}},\"spec\":{\"vmiName\":\"v\"}}",
         "[{\"op\":\"add\",\"path\":\"/metadata/labels/kubevirt.io~1vmi-name\",\"value\":\"v\"}]"},
        {"{\"metadata\":{\"labels\":{\"kubevirt.io/"
         "vmi-name\":\"v\"}},\"spec\":{\"vmiName\":\"v\"}}",
         NULL},
        {"{\"spec\":{\"vmiName\":\"" LONG "\"}}", NULL},
        {"{\"spec\":{}}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc =
            yyjson_read(cases[i].migration, strlen(cases[i].migration), 0);
        ferry_cleanup_free char *patch = review_label(yyjson_doc_get_root(doc));

        if (!ferry_streq(patch, cases[i].patch)) {
            fail_msg("%s: %s", cases[i].migration, patch ? patch : "none");
        }
    }
}

static void marks(void **state)
{
    static const char json[] = "{\"metadata\":{\"name\":\"v\",\"namespace\":\"d\","
                               "\"resourceVersion\":\"7\"},\"spec\":{\"domain\":{}}}";
    api_cleanup_object struct api_object *vmi = NULL;

    (void)state;
    assert_int_equal(api_object_parse(API_KIND_VMI, json, sizeof(json) - 1, &vmi, NULL), 0);
    ferry_cleanup_free char *plain = review_mark(vmi, "n1", false);
    assert_string_equal(plain,
                        "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"},"
                        "{\"op\":\"add\",\"path\":\"/status/evacuationNodeName\",\"value\":\"n1\"}"
                        "]");
    ferry_cleanup_free char *told = review_mark(vmi, "n1", true);
    assert_non_null(strstr(told, "\"/metadata/annotations/kubevirt.io~1eviction-source\",\"value\":"
                                 "\"descheduler\""));
}

/* What Kubernetes is told of a machine: the beginning of the answer's "response". */
static void machines(void **state)
{
#define OF(kind, object)                                                                           \
    REVIEW("{\"uid\":\"u\",\"name\":\"n\",\"kind\":{\"kind\":\"" kind                              \
           "\"},\"object\":{\"spec\":" object "}}")
#define CHANGE(before, object)                                                                     \
    REVIEW("{\"uid\":\"u\",\"name\":\"n\",\"kind\":{\"kind\":\"VirtualMachine\"},\"object\":{"     \
           "\"spec\":" object "},\"oldObject\":{\"spec\":" before "}}")
#define TPM(rest) "{\"template\":{\"spec\":{\"domain\":{\"devices\":{\"tpm\":{}" rest "}}}}}"
#define VMI "VirtualMachineInstance"
    static const struct {
        const char *body, *allowed, *has;
    } cases[] = {
        {OF(VMI, "{\"domain\":{}}"), "true", "\"allowed\":true}"},
        {OF(VMI, "{\"domain\":{\"devices\":{\"disableHotplug\":true}}}"), "true",
         "\"warnings\":[\"spec.domain.devices.disableHotplug has no effect: no disk is plugged"},
        {OF(VMI, "{\"startStrategy\":\"Paused\"}"), "false",
         "\"status\":{\"code\":422,\"reason\":\"Invalid\",\"message\":\"VirtualMachineInstance."
         "kubevirt.io "
         "\\\"n\\\" is invalid: spec.startStrategy: Forbidden: guests start running: leave it out"},
        {OF(VMI, "{\"startStrategy\":\"Paused\",\"architecture\":\"arm64\"}"), "false",
         "\"field\":\"spec.architecture\"}]}"},
        {OF(VMI,
            "{\"domain\":{},\"volumes\":[{\"name\":\"a\",\"emptyDisk\":{\"capacity\":\"1Gi\"}}]}"),
         "true",
         "\"patchType\":\"JSONPatch\",\"patch\":\"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvZG9tYWlu"},
        {OF("VirtualMachine", TPM("")), "false",
         "spec.template.spec.domain.devices.tpm: Forbidden"},
        {CHANGE(TPM(""), TPM(",\"blockMultiQueue\":true")), "true", "\"warnings\":["},
        {CHANGE(TPM(""), TPM("")), "true", "\"allowed\":true}"},
        {CHANGE(TPM(""), TPM(",\"rng\":{}")), "false", "spec.template.spec.domain.devices.rng"},
        {OF("Pod", "{}"), "true", "\"allowed\":true}"},
        {REVIEW("{\"uid\":\"u\",\"kind\":{\"kind\":\"" VMI "\"}}"), "true", "\"allowed\":true}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        review_cleanup struct review r = {0};

        assert_int_equal(review_parse(cases[i].body, strlen(cases[i].body), &r, NULL), 0);
        ferry_cleanup_free char *answer = review_machine(&r);
        ferry_cleanup_free char *allowed = ferry_asprintf("\"allowed\":%s", cases[i].allowed);

        if (!strstr(answer, allowed) || !strstr(answer, cases[i].has)) {
            fail_msg("%s:\n%s", cases[i].body, answer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies), cmocka_unit_test(answers),  cmocka_unit_test(labels),
        cmocka_unit_test(marks),  cmocka_unit_test(machines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
