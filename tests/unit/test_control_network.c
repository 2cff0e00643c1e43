#include "lib/objects.h"

#include "control/network/network_decide.h"

/* Numbers in names are those of the checklist of KubeVirt's behaviours (docs/conformance.md). */

/* 2026-01-01T00:00:00Z */
#define NOW_MS INT64_C(1767225600000)

static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'spec':{"
    "'domain':{}},'status':{'phase':'Running','nodeName':'a'}}";

#define SPEC(interface, network)                                                                   \
    "'spec':{'networks':[{'name':'default','pod':{}},{'name':'blue','multus':{'networkName':"      \
    "'" network "'}}],'domain':{'devices':{'interfaces':[{'name':'default','bridge':{}},{'name':"  \
    "'blue'," interface "}]}}}"
#define SEEN(more) "'status':{'interfaces':[{'name':'default'},{'name':'blue'" more "}]}"
#define NOT_SEEN "'status':{'interfaces':[{'name':'default'}]}"
#define SINCE(status, time)                                                                        \
    "'status':{'interfaces':[{'name':'default'}],'conditions':[{'type':'MigrationRequired',"       \
    "'status':'" status "','lastTransitionTime':'" time "'}]}"

static const struct row {
    const char *name, *vmi,
        *networks; /* networks: the pod's annotation (an object: ours), or NULL */
    enum network_answer want;
} rows[] = {
    {"388: no networks", "{}", NULL, NETWORK_UNKNOWN},
    {"390: absent, but still in the domain",
     "{" SPEC("'bridge':{},'state':'absent'",
              "n") "," SEEN(",'infoSource':'domain, multus-status'") "}",
     NULL, NETWORK_UNKNOWN},
    {"391: a plugged bridge waits for others", "{" SPEC("'bridge':{}", "n") "," NOT_SEEN "}", NULL,
     NETWORK_PENDING},
    {"392: unplugged and gone from the domain",
     "{" SPEC("'bridge':{},'state':'absent'", "n") "," SEEN(",'infoSource':'multus-status'") "}",
     NULL, NETWORK_PENDING},
    {"393: plugged SR-IOV", "{" SPEC("'sriov':{}", "n") "," NOT_SEEN "}", NULL, NETWORK_MOVE},
    {"394: waited less than 15 s",
     "{" SPEC("'bridge':{}", "n") "," SINCE("False", "2025-12-31T23:59:50Z") "}", NULL,
     NETWORK_PENDING},
    {"394: waited exactly 15 s",
     "{" SPEC("'bridge':{}", "n") "," SINCE("False", "2025-12-31T23:59:45Z") "}", NULL,
     NETWORK_PENDING},
    {"3.14: waited more than 15 s",
     "{" SPEC("'bridge':{}", "n") "," SINCE("False", "2025-12-31T23:59:44Z") "}", NULL,
     NETWORK_MOVE},
    {"3.14: True stays", "{" SPEC("'bridge':{}", "n") "," SINCE("True", "2025-12-31T23:59:59Z") "}",
     NULL, NETWORK_MOVE},
    {"396: the same attachment, namespace implied",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'net1'") "}",
     "[{'name':'ns/n','interface':'net1'}]", NETWORK_UNKNOWN},
    {"397: another attachment",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'net1'") "}",
     "[{'name':'ns/old','interface':'net1'}]", NETWORK_MOVE},
    {"397: another attachment than ferry-pods was told",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'tap0'") "}", "{'tap0':'ns/old'}",
     NETWORK_MOVE},
    {"396: as ferry-pods was told",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'tap0'") "}",
     "{'tap0':'ns/n','tap1':'ns/old'}", NETWORK_UNKNOWN},
    {"398: the same name in another namespace",
     "{" SPEC("'bridge':{}", "other/n") "," SEEN(",'podInterfaceName':'net1'") "}",
     "[{'name':'x','interface':'net0'},{'name':'ns/n','interface':'net1'}]", NETWORK_MOVE},
    {"399: no pod interface name", "{" SPEC("'bridge':{}", "n") "," SEEN("") "}",
     "[{'name':'ns/old','interface':'net1'}]", NETWORK_UNKNOWN},
    {"399: no network status",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'net1'") "}", NULL,
     NETWORK_UNKNOWN},
    {"399: a network status that is no JSON",
     "{" SPEC("'bridge':{}", "n") "," SEEN(",'podInterfaceName':'net1'") "}", "what",
     NETWORK_UNKNOWN},
};

static struct api_object *make_pod(const char *networks)
{
    static const char POD[] =
        "{'metadata':{'name':'p','namespace':'ns','uid':'p','resourceVersion':"
        "'1','annotations':{}}}";
    struct api_object *plain = make_object(API_KIND_POD, POD, NULL);
    ferry_cleanup_free char *text = networks ? unquote(networks) : NULL;
    struct api_patch *p = api_patch_new();

    if (!text) {
        api_patch_free(p);
        return plain;
    }
    api_patch_add_str(p,
                      text[0] == '{' ? "/metadata/annotations/ferry.io~1networks"
                                     : "/metadata/annotations/k8s.v1.cni.cncf.io~1network-status",
                      text);
    ferry_cleanup_free char *patch = api_patch_take(p);
    struct api_object *with = patched_object(plain, patch, false);
    api_object_unref(plain);
    return with;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, rows[i].vmi);
        api_cleanup_object struct api_object *pod = make_pod(rows[i].networks);
        enum network_answer a = network_evaluate(&vmi->u.vmi, &pod->u.pod, NOW_MS);
        plan_cleanup struct plan p = {0};

        if (a != rows[i].want) {
            fail_msg("%s: %d, expected %d", rows[i].name, a, rows[i].want);
        }
        network_decide(vmi, pod, NOW_MS, &p);
        for (size_t k = 0; k < p.n; k++) {
            struct api_object *after = patched_object(vmi, p.actions[k].body, false);
            bool required = api_condition_true(&after->u.vmi.conditions, "MigrationRequired");

            assert_int_equal(required, a == NETWORK_MOVE);
            api_object_unref(after);
        }
        assert_int_equal(p.again_ms > 0, a == NETWORK_PENDING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
