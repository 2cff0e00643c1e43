#include "lib/objects.h"

#include "control/evacuate/evacuation_decide.h"

/* Numbers in names are those of the checklist of KubeVirt's behaviours (docs/conformance.md). */

#define NOW_MS INT64_C(1767225600000)

static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'spec':{"
    "'evictionStrategy':'LiveMigrate'},'status':{'phase':'Running','nodeName':'a','conditions':[{"
    "'type':'LiveMigratable','status':'True'}]}}";
static const char MIGRATION[] =
    "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7'},'spec':{"
    "'vmiName':'web'}}";
static const char POD[] =
    "{'metadata':{'name':'pod','namespace':'ns','uid':'p','resourceVersion':'7'},'spec':{'nodeName'"
    ":'a'},'status':{'phase':'Running'}}";

#define MARKED "{'status':{'evacuationNodeName':'a'}}"
#define NOT_MIGRATABLE "'conditions':[{'type':'LiveMigratable','status':'False'}]"

static const struct row {
    const char *name, *vmi;
    bool again, drain;
    const char *migration; /* merge, or NULL = none */
    size_t pods;           /* 0 = one */
    const char *cluster;   /* strategy of the cluster */
    /* expected */
    bool creates;
    const char *has;   /* text of the created object */
    const char *patch; /* text in a patch of the VMI */
} rows[] = {
    {"435: annotation, priority, name", MARKED, .creates = true,
     .has = "'annotations':{'kubevirt.io/evacuationMigration':'a'}},'spec':{'vmiName':'web',"
            "'priority':'system-critical'}"},
    {"435: name", MARKED, .creates = true, .has = "'name':'kubevirt-evacuation-"},
    {"435: the descheduler's are less urgent",
     "{'metadata':{'annotations':{'kubevirt.io/eviction-source':'descheduler'}},'status':{"
     "'evacuationNodeName':'a'}}",
     .creates = true, .has = "'priority':'system-maintenance'"},
    {"436: no taint and no mark: nothing", "{}"},
    {"3.11: drain taint takes all", "{}", .drain = true, .creates = true},
    {"438: not migratable: ignored", "{'status':{" NOT_MIGRATABLE "}}", .drain = true},
    {"438: not known to be migratable: ignored", "{'status':{'conditions':null}}", .drain = true},
    {"439, 445: moves of others do not count", "{}", .drain = true, .creates = true},
    {"440: a mark makes a move", MARKED, .creates = true},
    {"441: one that is not over is enough", MARKED, .migration = "{'status':{'phase':'Pending'}}"},
    {"441: one without a phase, too", MARKED, .migration = "{}"},
    {"441: one that is over does not count", MARKED, .migration = "{'status':{'phase':'Failed'}}",
     .creates = true},
    {"442: a running one is enough", MARKED, .migration = "{'status':{'phase':'Running'}}"},
    {"444: strategy of the cluster",
     "{'spec':{'evictionStrategy':null},'status':{'evacuationNodeName':'a'}}",
     .cluster = "LiveMigrate", .creates = true},
    {"444: the VMI opts out",
     "{'spec':{'evictionStrategy':'None'},'status':{'evacuationNodeName':'a'}}",
     .cluster = "LiveMigrate"},
    {"1.6: no strategy at all: LiveMigrate", "{'spec':{'evictionStrategy':null}}", .drain = true,
     .creates = true},
    {"1.6: the cluster says None", "{'spec':{'evictionStrategy':null}}", .drain = true,
     .cluster = "None"},
    {"1.6: the VMI says None", "{'spec':{'evictionStrategy':'None'}}", .drain = true},
    {"1.6: if possible, and it is", "{'spec':{'evictionStrategy':'LiveMigrateIfPossible'}}",
     .drain = true, .creates = true},
    {"1.6: if possible, and it is not",
     "{'spec':{'evictionStrategy':'LiveMigrateIfPossible'},'status':{" NOT_MIGRATABLE "}}",
     .drain = true},
    {"3.11: External is somebody else's",
     "{'spec':{'evictionStrategy':'External'},'status':{'evacuationNodeName':'a'}}"},
    {"3.11: finished", "{'status':{'phase':'Succeeded'}}", .drain = true},
    {"3.11: being deleted", "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}}",
     .drain = true},
    {"3.11: two pods", "{}", .drain = true, .pods = 2, .again = true},
    {"607: after a failure, as long as the target pod is there", MARKED, .pods = 2,
     .migration = "{'status':{'phase':'Failed'}}", .again = true},
    {"3.11: marked, and on its way", "{'status':{'evacuationNodeName':'a','migrationState':{"
                                     "'migrationUid':'x'}}}"},
    {"a mark of a node that was left goes", "{'status':{'evacuationNodeName':'b'}}",
     .patch = "remove"},
    {"but not while it moves",
     "{'status':{'evacuationNodeName':'b','migrationState':{'migrationUid':'x'}}}"},
    {"another node's VMI", "{'status':{'nodeName':'c'}}", .drain = true},
};

static char *evacuate(const struct row *r, struct plan *p)
{
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, r->vmi);
    api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, POD, NULL);
    api_cleanup_object struct api_object *m =
        r->migration ? make_object(API_KIND_MIGRATION, MIGRATION, r->migration) : NULL;
    const struct api_object *pods[] = {pod, pod};
    const struct api_object *moves[] = {m};
    struct evacuation_view view = {.node = "a",
                                   .drain = r->drain,
                                   .cluster_strategy = r->cluster,
                                   .vmi = vmi,
                                   .pods = pods,
                                   .n_pods = r->pods ? r->pods : 1,
                                   .migrations = moves,
                                   .n_migrations = m ? 1 : 0};

    evacuation_decide(&view, NOW_MS, p);
    const struct plan_action *a = plan_find(p, PLAN_CREATE, API_KIND_MIGRATION);
    return a ? ferry_strdup(a->name) : NULL;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        plan_cleanup struct plan p = {0};

        free(evacuate(r, &p));
        const struct plan_action *a = plan_find(&p, PLAN_CREATE, API_KIND_MIGRATION);
        const struct plan_action *patch = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
        ferry_cleanup_free char *has = r->has ? unquote(r->has) : NULL;

        if (r->again != (p.again_ms > 0)) {
            fail_msg("%s: again after %lld ms", r->name, (long long)p.again_ms);
        }
        if (r->creates != (a != NULL) || (has && !strstr(a->body, has))) {
            fail_msg("%s: %s", r->name, a ? a->body : "nothing is created");
        }
        if ((r->patch != NULL) != (patch != NULL) || (patch && !strstr(patch->body, r->patch))) {
            fail_msg("%s: patch %s", r->name, patch ? patch->body : "none");
        }
    }
}

/* Twice for the same reason is one object; after a failure it is another. */
static void test_names(void **state)
{
    static const struct row first = {"", MARKED}, after = {"", MARKED,
                                                           .migration = "{'status':{"
                                                                        "'phase':'Failed'}}"};
    plan_cleanup struct plan p = {0}, q = {0}, r = {0};
    (void)state;
    ferry_cleanup_free char *a = evacuate(&first, &p), *b = evacuate(&first, &q),
                            *c = evacuate(&after, &r);

    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
}

static void test_taint(void **state)
{
    static const char NODE[] = "{'metadata':{'name':'a','uid':'a','resourceVersion':'1'}}";
    static const struct {
        const char *node, *key;
        bool drained;
    } cases[] = {
        {"{}", NULL, false},
        {"{'spec':{'taints':[{'key':'kubevirt.io/drain','effect':'NoSchedule'}]}}", NULL, true},
        {"{'spec':{'taints':[{'key':'kubevirt.io/drain','effect':'NoExecute'}]}}", NULL, false},
        {"{'spec':{'taints':[{'key':'x','effect':'NoSchedule'}]}}", NULL, false},
        {"{'spec':{'taints':[{'key':'x','effect':'NoSchedule'}]}}", "x", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *n = make_object(API_KIND_NODE, NODE, cases[i].node);

        assert_int_equal(evacuation_is_drained(n, cases[i].key), cases[i].drained);
    }
    assert_false(evacuation_is_drained(NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_taint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
