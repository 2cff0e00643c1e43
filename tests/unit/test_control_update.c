#include "lib/objects.h"

#include "control/update_decide.h"

/* Numbers in names are those of the checklist of KubeVirt's behaviours (docs/conformance.md). */

static const char KUBEVIRT[] =
    "{'metadata':{'name':'kubevirt','namespace':'kubevirt','uid':'kv','resourceVersion':'1'},"
    "'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':['LiveMigrate']}}}";
static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'status':{"
    "'phase':'Running','nodeName':'a'}}";
static const char MOVE[] =
    "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7','annotations':"
    "{'kubevirt.io/workloadUpdateMigration':''}},'spec':{'vmiName':'web'}}";

#define CONDITIONS(type, status)                                                                   \
    "'conditions':[{'type':'LiveMigratable','status':'True'},{'type':'" type "','status':'" status \
    "'}]"
#define CHANGED "{'status':{" CONDITIONS("MigrationRequired", "True") "}}"
#define RUNNING "{'status':{'phase':'Running'}}"

static const struct row {
    const char *name, *vmi;
    const char *kubevirt; /* merge; NULL = as it is, "-" = none */
    const char *move;     /* merge; NULL = none */
    bool creates, deletes;
} rows[] = {
    {"462: a change makes a move of the user's priority", CHANGED, .creates = true},
    {"452: no method: nothing", CHANGED, .kubevirt = "{'spec':{'workloadUpdateStrategy':null}}"},
    {"452: only Evict: no move", CHANGED,
     .kubevirt = "{'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':['Evict']}}}"},
    {"452: no KubeVirt object: nothing", CHANGED, .kubevirt = "-"},
    {"3.12: a pending change is none", "{'status':{" CONDITIONS("MigrationRequired", "False") "}}"},
    {"3.12: memory", "{'status':{" CONDITIONS("HotMemoryChange", "True") "}}", .creates = true},
    {"3.12: memory that failed", "{'status':{" CONDITIONS("HotMemoryChange", "False") "}}"},
    {"3.12: CPUs, whatever the status", "{'status':{" CONDITIONS("HotVCPUChange", "False") "}}",
     .creates = true},
    {"3.12: volumes", "{'status':{" CONDITIONS("VolumesChange", "True") "}}", .creates = true},
    {"451: not migratable: untouched",
     "{'status':{'conditions':[{'type':'MigrationRequired','status':'True'}]}}"},
    {"451: up to date: untouched", "{}"},
    {"453: one is under way", CHANGED, .move = RUNNING},
    {"456: the change disappeared: a running one goes", "{}", .move = RUNNING, .deletes = true},
    {"456: a failed one is left alone", "{}", .move = "{'status':{'phase':'Failed'}}"},
    {"456: a succeeded one is left alone", "{}", .move = "{'status':{'phase':'Succeeded'}}"},
    {"456: a user's one is left alone", "{}",
     .move = "{'metadata':{'annotations':null},'status':{'phase':'Running'}}"},
    {"457: the change is still there: nothing goes", CHANGED, .move = RUNNING},
    {"458: told to abort: it goes",
     "{'metadata':{'annotations':{'kubevirt.io/testWorkloadUpdateMigrationAbortion':''}},"
     "'status':{" CONDITIONS("MigrationRequired", "True") "}}",
     .move = RUNNING, .deletes = true},
    {"460: the target is ready: too late",
     "{'status':{'migrationState':{'migrationUid':'mig-1','targetNodeDomainReadyTimestamp':"
     "'2026-01-01T00:00:00Z'}}}",
     .move = RUNNING},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        bool none = r->kubevirt && strcmp(r->kubevirt, "-") == 0;
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, r->vmi);
        api_cleanup_object struct api_object *kubevirt =
            none ? NULL : make_object(API_KIND_NONE, KUBEVIRT, r->kubevirt);
        api_cleanup_object struct api_object *move =
            r->move ? make_object(API_KIND_MIGRATION, MOVE, r->move) : NULL;
        const struct api_object *moves[] = {move};
        plan_cleanup struct plan p = {0};

        update_decide(&(struct update_view){.kubevirt = kubevirt,
                                            .vmi = vmi,
                                            .migrations = moves,
                                            .n_migrations = move ? 1 : 0},
                      &p);
        const struct plan_action *a = plan_find(&p, PLAN_CREATE, API_KIND_MIGRATION);
        bool deletes = plan_find(&p, PLAN_DELETE, API_KIND_MIGRATION) != NULL;

        if (r->creates != (a != NULL) || r->deletes != deletes ||
            (a && !strstr(a->body, "\"priority\":\"user-triggered\""))) {
            fail_msg("%s: creates %d, deletes %d", r->name, a != NULL, deletes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
