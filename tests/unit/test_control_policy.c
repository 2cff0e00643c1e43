#include "lib/objects.h"

#include "api/json.h"
#include "api/policy.h"
#include "control/migration/limits_settings.h"

/* Numbers in names are those of the checklist of KubeVirt's behaviours (docs/conformance.md). */

static const char KUBEVIRT[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'KubeVirt','metadata':{'name':'kubevirt','namespace':"
    "'kubevirt','uid':'kv','resourceVersion':'1'}}";
static const char POLICY[] =
    "{'apiVersion':'migrations.kubevirt.io/v1alpha1','kind':'MigrationPolicy','metadata':{'name':"
    "'p','uid':'p','resourceVersion':'1'}}";
static const char LABELLED[] =
    "{'metadata':{'name':'x','uid':'x','resourceVersion':'1','labels':{'app':'web','tier':'gold',"
    "'zone':'z1'}}}";
static const char BARE[] = "{'metadata':{'name':'x','uid':'x','resourceVersion':'1'}}";

#define NAMED(n, spec) "{'metadata':{'name':'" n "'},'spec':" spec "}"
#define VMI_ALL "{'selectors':{'virtualMachineInstanceSelector':{'app':'web'}}"
#define CLUSTER(config) "{'spec':{'configuration':{'migrations':" config "}}}"

static const struct row {
    const char *name;
    const char *kubevirt;    /* merge; NULL = there is none */
    const char *policies[3]; /* merges */
    const char *vmi, *ns;    /* NULL = with labels */
    /* expected */
    const char *policy; /* name, or NULL */
    const char *has[4]; /* texts in the configuration */
    const char *hasnt;  /* a text that is not */
    const char *error;  /* text of the error; then there is no configuration */
} rows[] = {
    {"108: more labels in total win",
     NULL,
     {NAMED("one", VMI_ALL "}"),
      NAMED("two", "{'selectors':{'virtualMachineInstanceSelector':{'app':'web','tier':'gold'}}}")},
     .policy = "two"},
    {"108: namespace labels count as well",
     NULL,
     {NAMED("one", VMI_ALL "}"),
      NAMED("two", "{'selectors':{'namespaceSelector':{'app':'web','tier':'gold'}}}")},
     .policy = "two"},
    {"3.10: equal sum, more labels of the VMI win",
     NULL,
     {NAMED("a-ns", "{'selectors':{'namespaceSelector':{'app':'web'}}}"),
      NAMED("z-vmi", VMI_ALL "}")},
     .policy = "z-vmi"},
    {"109: equal detail, aa before zz",
     NULL,
     {NAMED("aa", VMI_ALL "}"), NAMED("zz", VMI_ALL "}")},
     .policy = "aa"},
    {"110: equal detail, zz then aa",
     NULL,
     {NAMED("zz", VMI_ALL "}"), NAMED("aa", VMI_ALL "}")},
     .policy = "aa"},
    {"111: one label that does not fit",
     NULL,
     {NAMED("p", "{'selectors':{'virtualMachineInstanceSelector':{'app':'web','tier':'tin'}}}")},
     .policy = NULL},
    {"111: a namespace label that does not fit",
     NULL,
     {NAMED("p", "{'selectors':{'virtualMachineInstanceSelector':{'app':'web'},"
                 "'namespaceSelector':{'app':'other'}}}")},
     .policy = NULL},
    {"112: no policies", NULL, {NULL}, .policy = NULL},
    {"3.10: without selectors it never matches",
     NULL,
     {NAMED("p", "{'allowPostCopy':true}")},
     .policy = NULL},
    {"3.10: empty selectors match everything",
     NULL,
     {NAMED("p", "{'selectors':{}}")},
     .policy = "p"},
    {"9.5: a VMI without labels is matched by no VMI selector",
     NULL,
     {NAMED("p", VMI_ALL "}")},
     .vmi = BARE,
     .policy = NULL},
    {"9.5: a VMI without labels is matched by its namespace",
     NULL,
     {NAMED("p", "{'selectors':{'namespaceSelector':{'app':'web'}}}")},
     .vmi = BARE,
     .policy = "p"},
    {"a policy that is being deleted does not count",
     NULL,
     {"{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'selectors':{}}}"},
     .policy = NULL},
    {"114: policy allows auto-converge",
     NULL,
     {NAMED("p", VMI_ALL ",'allowAutoConverge':true}")},
     .policy = "p",
     .has = {"'allowAutoConverge':true"}},
    {"115: policy denies auto-converge",
     CLUSTER("{'allowAutoConverge':true}"),
     {NAMED("p", VMI_ALL ",'allowAutoConverge':false}")},
     .policy = "p",
     .has = {"'allowAutoConverge':false"}},
    {"116: policy bandwidth",
     NULL,
     {NAMED("p", VMI_ALL ",'bandwidthPerMigration':'64Mi'}")},
     .policy = "p",
     .has = {"'bandwidthPerMigration':'64Mi'"}},
    {"117: policy completion timeout",
     NULL,
     {NAMED("p", VMI_ALL ",'completionTimeoutPerGiB':7}")},
     .policy = "p",
     .has = {"'completionTimeoutPerGiB':7"}},
    {"118: policy allows workload disruption",
     NULL,
     {NAMED("p", VMI_ALL ",'allowWorkloadDisruption':true}")},
     .policy = "p",
     .has = {"'allowWorkloadDisruption':true", "'allowPostCopy':false"}},
    {"120: policy without settings",
     CLUSTER("{'progressTimeout':11}"),
     {NAMED("p", VMI_ALL "}")},
     .policy = "p",
     .has = {"'progressTimeout':11", "'completionTimeoutPerGiB':150"}},
    {"121: policy over built-in values",
     NULL,
     {NAMED("p", VMI_ALL ",'maxDowntimeMs':300}")},
     .policy = "p",
     .has = {"'maxDowntimeMs':300", "'progressTimeout':150"}},
    {"122: cluster values without a policy",
     CLUSTER("{'bandwidthPerMigration':'1Gi','disableTLS':true,'network':'migration-net',"
             "'matchSELinuxLevelOnMigration':false}"),
     {NULL},
     .policy = NULL,
     .has = {"'bandwidthPerMigration':'1Gi'", "'disableTLS':true", "'network':'migration-net'",
             "'matchSELinuxLevelOnMigration':false"}},
    {"123: neither: what is built in",
     NULL,
     {NULL},
     .policy = NULL,
     .has = {"{'nodeDrainTaintKey':'kubevirt.io/drain','parallelOutboundMigrationsPerNode':2,"
             "'parallelMigrationsPerCluster':5,'allowAutoConverge':false,"
             "'bandwidthPerMigration':'0','completionTimeoutPerGiB':150,'progressTimeout':150,"
             "'maxDowntimeMs':900,'utilityVolumesTimeout':150,'unsafeMigrationOverride':false,"
             "'allowPostCopy':false,'disableTLS':false,'allowWorkloadDisruption':false}"}},
    {"124: both: field by field",
     CLUSTER("{'completionTimeoutPerGiB':20,'progressTimeout':30,'allowAutoConverge':true}"),
     {NAMED("p", VMI_ALL ",'completionTimeoutPerGiB':10}")},
     .policy = "p",
     .has = {"'completionTimeoutPerGiB':10", "'progressTimeout':30", "'allowAutoConverge':true"}},
    {"152: every field that a policy has",
     NULL,
     {NAMED("p", VMI_ALL ",'allowAutoConverge':true,'bandwidthPerMigration':'5Mi',"
                         "'completionTimeoutPerGiB':1,'maxDowntimeMs':2,'allowPostCopy':true,"
                         "'allowWorkloadDisruption':false,'experimental':{'stallDetector':{"
                         "'stallMargin':5},'compression':'zstd'}}")},
     .policy = "p",
     .has = {"'allowAutoConverge':true,'bandwidthPerMigration':'5Mi','completionTimeoutPerGiB':1",
             "'maxDowntimeMs':2", "'allowPostCopy':true,",
             "'experimental':{'stallDetector':{'stallMargin':5},'compression':'zstd'}"},
     .hasnt = "'allowWorkloadDisruption':true"},
    {"152: what a policy may not set stays",
     NULL,
     {NAMED("p", VMI_ALL ",'progressTimeout':1,'disableTLS':true,'unsafeMigrationOverride':true,"
                         "'parallelMigrationsPerCluster':99,'network':'x'}")},
     .policy = "p",
     .has = {"'progressTimeout':150", "'disableTLS':false", "'unsafeMigrationOverride':false",
             "'parallelMigrationsPerCluster':5"},
     .hasnt = "'network'"},
    {"153: post-copy without a word on disruption: both",
     CLUSTER("{'allowWorkloadDisruption':false}"),
     {NAMED("p", VMI_ALL ",'allowPostCopy':true}")},
     .policy = "p",
     .has = {"'allowPostCopy':true", "'allowWorkloadDisruption':true"}},
    {"154: no post-copy without a word on disruption: neither",
     CLUSTER("{'allowPostCopy':true,'allowWorkloadDisruption':true}"),
     {NAMED("p", VMI_ALL ",'allowPostCopy':false}")},
     .policy = "p",
     .has = {"'allowPostCopy':false", "'allowWorkloadDisruption':false"}},
    {"1.4: disruption follows post-copy of the cluster",
     CLUSTER("{'allowPostCopy':true}"),
     {NULL},
     .policy = NULL,
     .has = {"'allowWorkloadDisruption':true"}},
    {"1.4: null is absent",
     CLUSTER("{'network':'n'}"),
     {NAMED("p", VMI_ALL ",'allowPostCopy':true}")},
     .policy = "p",
     .has = {"'network':'n'"}},
    {"156: a KubeVirt object without configuration",
     "{}",
     {NULL},
     .policy = NULL,
     .has = {"'progressTimeout':150"}},
    {"a wrong type in the policy is said",
     NULL,
     {NAMED("p", VMI_ALL ",'allowPostCopy':'yes'}")},
     .error = "allowPostCopy of 'p' must be true or false"},
    {"a negative timeout is said",
     NULL,
     {NAMED("p", VMI_ALL ",'completionTimeoutPerGiB':-1}")},
     .error = "completionTimeoutPerGiB of 'p'"},
    {"a downtime out of range is said",
     NULL,
     {NAMED("p", VMI_ALL ",'maxDowntimeMs':0}")},
     .error = "maxDowntimeMs of 'p'"},
    {"a bandwidth that is none is said",
     CLUSTER("{'bandwidthPerMigration':'fast'}"),
     {NULL},
     .error = "bandwidthPerMigration of 'kubevirt'"},
};

static void check_text(const struct row *r, const char *json)
{
    for (size_t i = 0; i < COUNT_OF(r->has) && r->has[i]; i++) {
        ferry_cleanup_free char *want = unquote(r->has[i]);

        if (!strstr(json, want)) {
            fail_msg("%s: no %s in %s", r->name, want, json);
        }
    }
    ferry_cleanup_free char *not = r->hasnt ? unquote(r->hasnt) : NULL;
    if (not &&strstr(json, not )) {
        fail_msg("%s: %s in %s", r->name, not, json);
    }
}

static void check_row(const struct row *r)
{
    struct api_object *policies[COUNT_OF(r->policies)] = {0};
    size_t n = 0;
    api_cleanup_object struct api_object *kubevirt =
        r->kubevirt ? make_object(API_KIND_NONE, KUBEVIRT, r->kubevirt) : NULL;
    api_cleanup_object struct api_object *vmi =
        make_object(API_KIND_NONE, r->vmi ? r->vmi : LABELLED, NULL);
    api_cleanup_object struct api_object *ns =
        make_object(API_KIND_NONE, r->ns ? r->ns : LABELLED, NULL);

    for (; n < COUNT_OF(r->policies) && r->policies[n]; n++) {
        policies[n] = make_object(API_KIND_NONE, POLICY, r->policies[n]);
    }
    const struct policy_sources s = {.kubevirt = kubevirt,
                                     .policies = (const struct api_object *const *)policies,
                                     .n_policies = n,
                                     .vmi_labels = &vmi->meta->labels,
                                     .ns_labels = &ns->meta->labels};
    const struct api_object *policy = NULL;
    struct ferry_error err = {0};
    ferry_cleanup_free char *json = policy_resolve(&s, &policy, &err);

    if (r->error) {
        if (json || !strstr(err.msg, r->error)) {
            fail_msg("%s: %s", r->name, json ? json : err.msg);
        }
    } else if (!json || !ferry_streq(policy ? policy->meta->name : NULL, r->policy)) {
        fail_msg("%s: policy %s, %s", r->name, policy ? policy->meta->name : "-",
                 json ? json : err.msg);
    } else {
        check_text(r, json);
    }
    for (size_t i = 0; i < n; i++) {
        api_object_unref(policies[i]);
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

static void test_limits(void **state)
{
    static const struct {
        const char *kubevirt; /* merge or NULL */
        struct migration_limits want;
        bool refused;
    } cases[] = {
        {NULL, {5, 2, 2, 0}, false},
        {"{}", {5, 2, 2, 0}, false},
        {CLUSTER("{'parallelMigrationsPerCluster':50}"), {50, 2, 2, 0}, false},
        {CLUSTER("{'parallelOutboundMigrationsPerNode':9}"), {5, 9, 2, 0}, false},
        {"{'metadata':{'annotations':{'ferry.io/parallelInboundMigrationsPerNode':'7',"
         "'ferry.io/migrationBandwidthPerNode':'100Mi'}}}",
         {5, 2, 7, 100 << 20},
         false},
        {"{'metadata':{'annotations':{'ferry.io/parallelInboundMigrationsPerNode':'x'}}}",
         {5, 2, 2, 0},
         true},
        {CLUSTER("{'parallelMigrationsPerCluster':-1}"), {5, 2, 2, 0}, true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct migration_limits l = {5, 2, 2, 0};
        struct ferry_error err = {0};
        api_cleanup_object struct api_object *kv =
            cases[i].kubevirt ? make_object(API_KIND_NONE, KUBEVIRT, cases[i].kubevirt) : NULL;

        assert_int_equal(limits_settings(kv, &l, &err) < 0, cases[i].refused);
        assert_int_equal(l.cluster, cases[i].want.cluster);
        assert_int_equal(l.outbound_per_node, cases[i].want.outbound_per_node);
        assert_int_equal(l.inbound_per_node, cases[i].want.inbound_per_node);
        assert_int_equal(l.bandwidth_per_node, cases[i].want.bandwidth_per_node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
