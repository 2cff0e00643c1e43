#include "lib/objects.h"

#include "api/json.h"
#include "control/evacuate/update_decide.h"

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
    {"451: a change of one that cannot move: untouched",
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

#define IMAGE "ferry.io/ferry-launcher:2"
static const char POD[] =
    "{'metadata':{'name':'pod','namespace':'ns','uid':'pod-1','resourceVersion':'1'},'spec':{"
    "'nodeName':'a','containers':[{'name':'compute','image':'" IMAGE "'}]}}";
#define OLD_IMAGE "{'spec':{'containers':[{'name':'compute','image':'ferry.io/ferry-launcher:1'}]}}"
#define MIGRATABLE "{'status':{'conditions':[{'type':'LiveMigratable','status':'True'}]}}"
#define METHODS(list) "{'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':[" list "]}}}"

static size_t count_of(const struct plan *p, enum plan_op op)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        n += p->actions[i].op == op;
    }
    return n;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        bool none = r->kubevirt && strcmp(r->kubevirt, "-") == 0;
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, r->vmi);
        api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, POD, NULL);
        api_cleanup_object struct api_object *kubevirt =
            none ? NULL : make_object(API_KIND_NONE, KUBEVIRT, r->kubevirt);
        api_cleanup_object struct api_object *move =
            r->move ? make_object(API_KIND_MIGRATION, MOVE, r->move) : NULL;
        const struct api_object *moves[] = {move};
        const struct update_vm vm = {
            .vmi = vmi, .pod = pod, .migrations = moves, .n_migrations = move ? 1 : 0};
        struct update_result result;
        plan_cleanup struct plan p = {0};

        update_decide(
            &(struct update_view){
                .kubevirt = kubevirt, .launcher_image = IMAGE, .vms = &vm, .n = 1, .room = 5},
            1000, &p, &result);
        const struct plan_action *a = plan_find(&p, PLAN_CREATE, API_KIND_MIGRATION);
        bool deletes = plan_find(&p, PLAN_DELETE, API_KIND_MIGRATION) != NULL;

        if (r->creates != (a != NULL) || r->deletes != deletes ||
            (a && !strstr(a->body, "\"priority\":\"user-triggered\"")) ||
            count_of(&p, PLAN_EVICT) > 0) {
            fail_msg("%s: creates %d, deletes %d", r->name, a != NULL, deletes);
        }
    }
}

/* Launchers of an older image. */
static const struct image_row {
    const char *name;
    const char *kubevirt; /* merge */
    const char *vmis[4];  /* merges, one VM each */
    const char *pods[4];
    const char *move; /* of the first VM, or NULL */
    size_t room;      /* 0 = 5; NO_ROOM = none */
    int64_t last_eviction_ms;
    /* expected; `now` is 100 s */
    size_t moves, evictions, outdated;
    bool again;
} image_rows[] = {
    {"446: an outdated one that can move",
     METHODS("'LiveMigrate'"),
     {MIGRATABLE},
     {OLD_IMAGE},
     .moves = 1,
     .outdated = 1},
    {"446: one of the current image", METHODS("'LiveMigrate'"), {MIGRATABLE}, {"{}"}},
    {"446: what the VMI says of its image counts first",
     METHODS("'LiveMigrate'"),
     {"{'status':{'launcherContainerImageVersion':'" IMAGE "'}}"},
     {OLD_IMAGE}},
    {"447: the deployment is being updated",
     "{'status':{'phase':'Deploying'}}",
     {MIGRATABLE},
     {OLD_IMAGE}},
    {"447: another deployment is wanted",
     "{'status':{'phase':'Deployed','observedDeploymentID':'1','targetDeploymentID':'2'}}",
     {MIGRATABLE},
     {OLD_IMAGE}},
    {"447: deployed",
     "{'status':{'phase':'Deployed','observedDeploymentID':'1',"
     "'targetDeploymentID':'1'}}",
     {MIGRATABLE},
     {OLD_IMAGE},
     .moves = 1,
     .outdated = 1},
    {"450: only what is left of the limit",
     METHODS("'LiveMigrate'"),
     {MIGRATABLE, MIGRATABLE, MIGRATABLE},
     {OLD_IMAGE, OLD_IMAGE, OLD_IMAGE},
     .room = 2,
     .moves = 2,
     .outdated = 3,
     .again = true},
    {"450: nothing is left",
     METHODS("'LiveMigrate'"),
     {MIGRATABLE},
     {OLD_IMAGE},
     .room = SIZE_MAX,
     .outdated = 1,
     .again = true},
    {"451: those that can move, the others are evicted, current ones stay",
     METHODS("'LiveMigrate','Evict'"),
     {MIGRATABLE, "{}", MIGRATABLE, "{}"},
     {OLD_IMAGE, OLD_IMAGE, "{}", "{}"},
     .moves = 1,
     .evictions = 1,
     .outdated = 2},
    {"451: one that cannot move, and may not be evicted",
     METHODS("'LiveMigrate'"),
     {"{}"},
     {OLD_IMAGE},
     .outdated = 1},
    {"452: no method", METHODS(""), {MIGRATABLE}, {OLD_IMAGE}, .outdated = 1},
    {"452: only Evict",
     METHODS("'Evict'"),
     {MIGRATABLE, "{}"},
     {OLD_IMAGE, OLD_IMAGE},
     .evictions = 2,
     .outdated = 2},
    {"453: not evicted while it is moved",
     METHODS("'Evict'"),
     {"{}"},
     {OLD_IMAGE},
     .move = RUNNING,
     .outdated = 1},
    {"454: no more than the batch",
     "{'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':['Evict'],'batchEvictionSize':2}}"
     "}",
     {"{}", "{}", "{}"},
     {OLD_IMAGE, OLD_IMAGE, OLD_IMAGE},
     .evictions = 2,
     .outdated = 3,
     .again = true},
    {"454: not before the interval is over",
     METHODS("'Evict'"),
     {"{}"},
     {OLD_IMAGE},
     .last_eviction_ms = 41000,
     .outdated = 1,
     .again = true},
    {"454: the interval is over",
     METHODS("'Evict'"),
     {"{}"},
     {OLD_IMAGE},
     .last_eviction_ms = 40000,
     .evictions = 1,
     .outdated = 1},
    {"454: an interval of its own",
     "{'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':['Evict'],"
     "'batchEvictionInterval':'1m30s'}}}",
     {"{}"},
     {OLD_IMAGE},
     .last_eviction_ms = 11000,
     .outdated = 1,
     .again = true},
    {"454: an interval of its own is over",
     "{'spec':{'workloadUpdateStrategy':{'workloadUpdateMethods':['Evict'],"
     "'batchEvictionInterval':'1m30s'}}}",
     {"{}"},
     {OLD_IMAGE},
     .last_eviction_ms = 10000,
     .evictions = 1,
     .outdated = 1},
};

static void check_image_row(const struct image_row *r)
{
    api_cleanup_object struct api_object *kubevirt =
        make_object(API_KIND_NONE, KUBEVIRT, r->kubevirt);
    api_cleanup_object struct api_object *move =
        r->move ? make_object(API_KIND_MIGRATION, MOVE, r->move) : NULL;
    const struct api_object *moves[] = {move};
    struct update_vm vms[4] = {0};
    struct update_result result;
    plan_cleanup struct plan p = {0};
    size_t n = 0;

    for (; n < 4 && r->vmis[n]; n++) {
        vms[n] = (struct update_vm){.vmi = make_object(API_KIND_VMI, VMI, r->vmis[n]),
                                    .pod = make_object(API_KIND_POD, POD, r->pods[n])};
    }
    vms[0].migrations = moves;
    vms[0].n_migrations = move ? 1 : 0;
    update_decide(&(struct update_view){.kubevirt = kubevirt,
                                        .launcher_image = IMAGE,
                                        .vms = vms,
                                        .n = n,
                                        .room = r->room == SIZE_MAX ? 0
                                                : r->room           ? r->room
                                                                    : 5,
                                        .last_eviction_ms = r->last_eviction_ms},
                  100000, &p, &result);
    const struct plan_action *a = plan_find(&p, PLAN_CREATE, API_KIND_MIGRATION);
    if (count_of(&p, PLAN_CREATE) != r->moves || count_of(&p, PLAN_EVICT) != r->evictions ||
        result.outdated != r->outdated || (p.again_ms > 0) != r->again ||
        result.evicts != (r->evictions > 0)) {
        fail_msg("%s: %zu moves, %zu evictions, %zu outdated, again %d", r->name,
                 count_of(&p, PLAN_CREATE), count_of(&p, PLAN_EVICT), result.outdated,
                 p.again_ms > 0);
    }
    if (a && !strstr(a->body, "\"priority\":\"system-critical\"")) {
        fail_msg("%s: 462: an upgrade is critical: %s", r->name, a->body);
    }
    for (size_t i = 0; i < n; i++) {
        api_object_unref((struct api_object *)vms[i].vmi);
        api_object_unref((struct api_object *)vms[i].pod);
    }
}

static void test_images(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(image_rows); i++) {
        check_image_row(&image_rows[i]);
    }
}

/* 448: how many are outdated is written to the KubeVirt object, once */
static void test_outdated_is_reported(void **state)
{
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, NULL);
    api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, POD, OLD_IMAGE);
    api_cleanup_object struct api_object *kubevirt = make_object(API_KIND_NONE, KUBEVIRT, NULL);
    const struct update_vm vm = {.vmi = vmi, .pod = pod};
    struct update_view view = {
        .kubevirt = kubevirt, .launcher_image = IMAGE, .vms = &vm, .n = 1, .room = 5};
    struct update_result result;
    plan_cleanup struct plan p = {0}, again = {0}, current = {0};
    (void)state;

    update_decide(&view, 1000, &p, &result);
    const struct plan_action *a = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_NONE);
    assert_non_null(a);
    assert_string_equal(a->resource->plural, "kubevirts");
    api_cleanup_object struct api_object *told = patched_object(kubevirt, a->body, false);
    assert_int_equal(
        api_json_int(told->root, "/status/outdatedVirtualMachineInstanceWorkloads", -1), 1);
    view.kubevirt = told;
    update_decide(&view, 1000, &again, &result);
    assert_int_equal(count_of(&again, PLAN_PATCH_STATUS), 0);
    view.launcher_image = "ferry.io/ferry-launcher:1";
    update_decide(&view, 1000, &current, &result);
    a = plan_find(&current, PLAN_PATCH_STATUS, API_KIND_NONE);
    assert_non_null(a);
    assert_non_null(strstr(a->body, "\"value\":0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_images),
                                       cmocka_unit_test(test_outdated_is_reported)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
