/* Amounts and selectors that Kubernetes would not take either. */
#include "lib/unit.h"

#include <string.h>

#include "api/json.h"
#include "apiserver/object/spec_check.h"

#define HARD(what, amount) "{\"spec\":{\"hard\":{\"" what "\":" amount "}}}"
#define RESOURCES(list, map, amount)                                                               \
    "{\"spec\":{\"" list "\":[{},{\"resources\":{\"" map "\":{\"cpu\":" amount "}}}]}}"
#define SELECT(name, key, value) "{\"spec\":{\"" name "\":{\"" key "\":\"" value "\"}}}"
#define POLICY(name, key, value)                                                                   \
    "{\"spec\":{\"selectors\":{\"" name "\":{\"" key "\":\"" value "\"}}}}"
#define LONG "a123456789b123456789c123456789d123456789e123456789f123456789g1234"

static void specs(void **state)
{
    static const struct {
        const char *plural, *json, *field, *why; /* field NULL: taken */
    } cases[] = {
        {"resourcequotas", HARD("cpu", "\"2\""), NULL, NULL},
        {"resourcequotas", HARD("cpu", "2"), NULL, NULL},
        {"resourcequotas", HARD("cpu", "\"0\""), NULL, NULL},
        {"resourcequotas", HARD("limits.memory", "\"1.5Gi\""), NULL, NULL},
        {"resourcequotas", HARD("requests.storage", "\"100Pi\""), NULL, NULL},
        {"resourcequotas", HARD("cpu", "\"-1\""), "spec.hard[cpu]", "greater than or equal to 0"},
        {"resourcequotas", HARD("memory", "-5"), "spec.hard[memory]", "greater than or equal to 0"},
        {"resourcequotas", HARD("cpu", "\"-1m\""), "spec.hard[cpu]", "greater than or equal to 0"},
        {"resourcequotas", HARD("cpu", "\"many\""), "spec.hard[cpu]", "must be a quantity"},
        {"resourcequotas", HARD("cpu", "\"\""), "spec.hard[cpu]", "must be a quantity"},
        {"resourcequotas", HARD("pods", "\"1500m\""), "spec.hard[pods]", "must be an integer"},
        {"resourcequotas", HARD("count/x.y", "\"0.5\""), "spec.hard[count/x.y]", "an integer"},
        {"resourcequotas", "{}", NULL, NULL},
        {"persistentvolumes", "{\"spec\":{\"capacity\":{\"storage\":\"-1Gi\"}}}",
         "spec.capacity[storage]", "greater"},
        {"persistentvolumeclaims", "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"-1\"}}}}",
         "spec.resources.requests[storage]", "greater"},
        {"pods", RESOURCES("containers", "requests", "\"-1\""),
         "spec.containers[1].resources.requests[cpu]", "greater"},
        {"pods", RESOURCES("initContainers", "limits", "\"-1\""),
         "spec.initContainers[1].resources.limits[cpu]", "greater"},
        {"pods", RESOURCES("containers", "limits", "\"100m\""), NULL, NULL},
        {"pods", SELECT("nodeSelector", "a b", "c"), "spec.nodeSelector", "label key"},
        {"virtualmachineinstances", SELECT("nodeSelector", "zone", "a/b"), "spec.nodeSelector",
         "valid label"},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", "x.io/zone", "a"), NULL,
         NULL},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", "zone", ""), NULL, NULL},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", "", "a"),
         "spec.addedNodeSelector", "label key"},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", "/zone", "a"),
         "spec.addedNodeSelector", "label key"},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", LONG, "a"),
         "spec.addedNodeSelector", "label key"},
        {"virtualmachineinstancemigrations", SELECT("addedNodeSelector", "zone", LONG),
         "spec.addedNodeSelector", "valid label"},
        {"migrationpolicies", POLICY("namespaceSelector", "team", "red"), NULL, NULL},
        {"migrationpolicies", POLICY("namespaceSelector", "te am", "red"),
         "spec.selectors.namespaceSelector", "label key"},
        {"migrationpolicies", POLICY("virtualMachineInstanceSelector", "team", "-red"),
         "spec.selectors.virtualMachineInstanceSelector", "valid label"},
        {"configmaps", SELECT("nodeSelector", "a b", "c"), NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *doc = yyjson_read(cases[i].json, strlen(cases[i].json), 0);
        const struct api_resource *r = api_resources();
        struct status st = {0};

        while (strcmp(r->plural, cases[i].plural) != 0) {
            r++;
        }
        int rc = spec_check(r, "x", yyjson_doc_get_root(doc), &st);
        if ((rc < 0) != (cases[i].field != NULL) ||
            (rc < 0 && (st.code != 422 || strcmp(st.field, cases[i].field) != 0 ||
                        !strstr(st.message, cases[i].why)))) {
            fail_msg("%s %s: %d '%s' %s", cases[i].plural, cases[i].json, rc, st.field, st.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(specs)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
