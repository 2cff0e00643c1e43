/* Table: whether another node has the CPU that a moving VM needs. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/objects.h"

#include "control/migration/cpu_fit.h"

#define MIGRATION "cpu-model-migration.node.kubevirt.io/"
#define FEATURE "cpu-feature.node.kubevirt.io/"
#define MACHINE "machine-type.node.kubevirt.io/"
#define WANTS "'" MIGRATION "EPYC':'true','" FEATURE "avx2':'true','kubevirt.io/schedulable':'true'"
#define HAS "'" MIGRATION "EPYC':'true','" FEATURE "avx2':'true'"

/* 610: who lacks what */
static void trouble(void **state)
{
    static const struct {
        const char *name, *selector;
        const char *labels[5]; /* of nodes a (the source), b, c, ... */
        const char *says;      /* NULL = nothing */
    } rows[] = {
        {"610: no CPU asked for", "'kubevirt.io/schedulable':'true'", {"", ""}, NULL},
        {"610: the other node has it all", WANTS, {"", HAS}, NULL},
        {"610: one of the others has it", WANTS, {HAS, "", HAS}, NULL},
        {"610: only the source has it",
         WANTS,
         {HAS, ""},
         "no other node has its CPU: b lacks " MIGRATION "EPYC and 1 more"},
        {"610: a feature is missing",
         WANTS,
         {HAS, "'" MIGRATION "EPYC':'true'"},
         "no other node has its CPU: b lacks " FEATURE "avx2"},
        {"610: another value is not it",
         WANTS,
         {HAS, "'" MIGRATION "EPYC':'true','" FEATURE "avx2':'false'"},
         "no other node has its CPU: b lacks " FEATURE "avx2"},
        {"610: the first three are named",
         "'" FEATURE "x':'true'",
         {"", "", "", "", ""},
         "no other node has its CPU: b lacks " FEATURE "x, c lacks " FEATURE "x, d lacks " FEATURE
         "x, and so on for 1 more"},
        {"the other node lacks the machine type",
         "'" MACHINE "pc-i440fx-10.1':'true'",
         {"'" MACHINE "pc-i440fx-10.1':'true'", "'" MACHINE "pc-i440fx-10.0':'true'"},
         "no other node has its machine type: b lacks " MACHINE "pc-i440fx-10.1"},
        {"one of the others has the machine type",
         "'" MACHINE "pc-i440fx-10.1':'true'",
         {"", "", "'" MACHINE "pc-i440fx-10.1':'true'"},
         NULL},
        {"610: there is no other node", WANTS, {""}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *wants =
            ferry_asprintf("{'spec':{'nodeSelector':{%s}}}", rows[i].selector);
        api_cleanup_object struct api_object *pod =
            make_object(API_KIND_POD, "{'metadata':{'name':'p'}}", wants);
        const struct api_object *nodes[COUNT_OF(rows[i].labels)];
        size_t n = 0;

        for (; n < COUNT_OF(rows[i].labels) && rows[i].labels[n]; n++) {
            ferry_cleanup_free char *node = ferry_asprintf(
                "{'metadata':{'name':'%c','labels':{%s}}}", (char)('a' + n), rows[i].labels[n]);

            nodes[n] = make_object(API_KIND_NODE, node, NULL);
        }
        enum wire_lack lack;
        ferry_cleanup_free char *says = cpu_fit_trouble(&pod->u.pod, nodes, n, "a", &lack);
        if (!ferry_streq(says, rows[i].says)) {
            fail_msg("%s: %s", rows[i].name, says ? says : "nothing");
        }
        for (size_t k = 0; k < n; k++) {
            api_object_unref((struct api_object *)nodes[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trouble)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
