/* Rules that look at other objects: rows of KubeVirt's eviction webhook, and of its migrations'. */
#include "lib/unit.h"

#include <string.h>

#include "api/admit.h"
#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_error.h"

#define POD(phase, node)                                                                           \
    "{\"metadata\":{\"labels\":{\"kubevirt.io\":\"virt-launcher\"},\"annotations\":{"              \
    "\"kubevirt.io/domain\":\"v\"}},\"spec\":{\"nodeName\":\"" node                                \
    "\"},\"status\":{\"phase\":\"" phase "\"}}"
#define VMI(strategy, migratable, more)                                                            \
    "{\"spec\":{" strategy "},\"status\":{\"nodeName\":\"n1\",\"conditions\":[{\"type\":"          \
    "\"LiveMigratable\",\"status\":\"" migratable "\"}]" more "}}"
#define STRATEGY(s) "\"evictionStrategy\":\"" s "\""
#define MARKED ",\"evacuationNodeName\":\"n1\""

static void evictions(void **state)
{
    static const struct {
        const char *pod, *vmi, *cluster;
        enum api_eviction answer;
        const char *why;
    } cases[] = {
        {"{\"metadata\":{\"name\":\"p\"}}", NULL, NULL, API_EVICTION_ALLOW, ""},
        {"{\"metadata\":{\"labels\":{\"kubevirt.io\":\"virt-launcher\"}}}", NULL, NULL,
         API_EVICTION_ALLOW, ""},
        {"{\"metadata\":{\"annotations\":{\"kubevirt.io/domain\":\"v\"}}}", NULL, NULL,
         API_EVICTION_ALLOW, ""},
        {POD("Succeeded", "n1"), NULL, NULL, API_EVICTION_ALLOW, ""},
        {POD("Failed", "n1"), NULL, NULL, API_EVICTION_ALLOW, ""},
        {POD("Running", "n1"), NULL, NULL, API_EVICTION_DENY, "failed getting the vmi"},
        {POD("Running", "n1"), VMI("", "True", ""), NULL, API_EVICTION_MARK, "triggered"},
        {POD("Running", "n1"), VMI("", "True", ""), "", API_EVICTION_MARK, "triggered"},
        {POD("Running", "n1"), VMI(STRATEGY(""), "True", ""), NULL, API_EVICTION_MARK, "triggered"},
        {POD("Running", "n1"), VMI("", "False", ""), NULL, API_EVICTION_DENY,
         "VMI \"v\" names no eviction strategy, which means LiveMigrate, but is not "
         "live-migratable"},
        {POD("Running", "n1"), VMI("", "False", ""), "LiveMigrate", API_EVICTION_DENY,
         "is configured with an eviction strategy but is not live-migratable"},
        {POD("Running", "n1"), VMI("", "True", ""), "None", API_EVICTION_ALLOW, ""},
        {POD("Running", "n1"), VMI("", "False", ""), "LiveMigrateIfPossible", API_EVICTION_ALLOW,
         ""},
        {POD("Running", "n1"), VMI(STRATEGY("None"), "True", ""), NULL, API_EVICTION_ALLOW, ""},
        {POD("Running", "n1"), VMI("", "True", ""), "LiveMigrate", API_EVICTION_MARK, "triggered"},
        {POD("Running", "n1"), VMI(STRATEGY("None"), "True", ""), "LiveMigrate", API_EVICTION_ALLOW,
         ""},
        {POD("Running", "n1"), VMI(STRATEGY("LiveMigrate"), "True", ""), NULL, API_EVICTION_MARK,
         "Eviction triggered evacuation of VMI \"v\""},
        {POD("Running", "n1"), VMI(STRATEGY("LiveMigrate"), "False", ""), NULL, API_EVICTION_DENY,
         "not live-migratable"},
        {POD("Running", "n1"), VMI(STRATEGY("LiveMigrateIfPossible"), "False", ""), NULL,
         API_EVICTION_ALLOW, ""},
        {POD("Running", "n1"), VMI(STRATEGY("LiveMigrateIfPossible"), "True", ""), NULL,
         API_EVICTION_MARK, "triggered"},
        {POD("Running", "n1"), VMI(STRATEGY("External"), "False", ""), NULL, API_EVICTION_MARK,
         "triggered"},
        {POD("Running", "n1"), VMI(STRATEGY("LiveMigrate"), "True", MARKED), NULL,
         API_EVICTION_DENY, "Evacuation in progress: Eviction triggered evacuation"},
        {POD("Running", "n2"), VMI(STRATEGY("LiveMigrate"), "True", ""), NULL, API_EVICTION_DENY,
         "target Pod"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_doc yyjson_doc *pod = yyjson_read(cases[i].pod, strlen(cases[i].pod), 0);
        api_cleanup_doc yyjson_doc *vmi =
            cases[i].vmi ? yyjson_read(cases[i].vmi, strlen(cases[i].vmi), 0) : NULL;
        char why[FERRY_ERROR_TEXT] = "";
        enum api_eviction got = api_admit_eviction(
            yyjson_doc_get_root(pod), yyjson_doc_get_root(vmi), cases[i].cluster, why, sizeof(why));

        if (got != cases[i].answer || !strstr(why, cases[i].why) || !*why != !*cases[i].why) {
            fail_msg("%zu: %d '%s'", i, got, why);
        }
    }
}

static struct api_object *object(enum api_kind kind, const char *json)
{
    struct api_object *o = NULL;
    struct ferry_error err;

    if (json && api_object_parse(kind, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

#define META(name) "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\"}"
#define MACHINE(status) "{" META("v") ",\"spec\":{\"domain\":{}},\"status\":{" status "}}"
#define MOVE(of, phase)                                                                            \
    "{" META("m") ",\"spec\":{\"vmiName\":\"" of "\"},\"status\":{\"phase\":\"" phase "\"}}"
#define CONDITION(s)                                                                               \
    "\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"" s                                 \
    "\",\"reason\":\"R\",\"message\":\"M\"}]"

static void moves(void **state)
{
    static const struct {
        const char *vmi, *other, *why; /* why NULL: it may */
    } cases[] = {
        {NULL, NULL, "the VMI \"v\" does not exist"},
        {MACHINE(""), NULL, NULL},
        {MACHINE("\"phase\":\"Running\"," CONDITION("True")), NULL, NULL},
        {MACHINE("\"phase\":\"Failed\""), NULL, "in finalized state (Failed)"},
        {MACHINE("\"phase\":\"Succeeded\""), NULL, "in finalized state (Succeeded)"},
        {MACHINE(CONDITION("False")), NULL, "Reason: R, Message: M"},
        {MACHINE(""), MOVE("v", "Running"), "Active migration job (m)"},
        {MACHINE(""), MOVE("v", ""), "in-flight"},
        {MACHINE(""), MOVE("v", "Failed"), NULL},
        {MACHINE(""), MOVE("v", "Succeeded"), NULL},
        {MACHINE(""), MOVE("w", "Running"), NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vmi = object(API_KIND_VMI, cases[i].vmi);
        api_cleanup_object struct api_object *other = object(API_KIND_MIGRATION, cases[i].other);
        struct ferry_error err = {0};
        bool may = api_admit_move("v", vmi, &other, other != NULL, &err) == 0;
        bool in_flight = cases[i].why && cases[i].other;

        if (may != !cases[i].why || (cases[i].why && !strstr(err.msg, cases[i].why)) ||
            wire_error_is(&err, WIRE_ERROR_MOVE_IN_FLIGHT) != in_flight) {
            fail_msg("%zu: %d '%s' '%s'", i, may, err.msg, err.reason);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(evictions), cmocka_unit_test(moves)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
