/* Tables: exchanged volumes of a running VM. Numbers of cases are items of docs/conformance.md. */
#include "lib/objects.h"

#include "api/wire/wire_keys.h"
#include "control/vm/vm_decide.h"
#include "control/vm/volume_decide.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

#define CLAIM_VOLUME(name, claim)                                                                  \
    "{'name':'" name "','persistentVolumeClaim':{'claimName':'" claim "'}}"
#define TEMPLATE(volumes) "{'spec':{'template':{'spec':{'volumes':[" volumes "]}}}}"
#define VOLUMES(volumes, more) "{'spec':{'volumes':[" volumes "]}" more "}"

static const char VM[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vm-1','resourceVersion':'5','finalizers':["
    "'kubevirt.io/virtualMachineControllerFinalize']},'spec':{'runStrategy':'Always',"
    "'updateVolumesStrategy':'Migration','template':{'spec':{'domain':{'memory':{'guest':'64Mi'}},"
    "'volumes':[{'name':'data','persistentVolumeClaim':{'claimName':'new'}}]}}}}";
static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'9',"
    "'ownerReferences':[{'uid':'vm-1','kind':'VirtualMachine','name':'web','controller':true}]},"
    "'spec':{'domain':{'memory':{'guest':'64Mi'}},'volumes':[{'name':'data',"
    "'persistentVolumeClaim':{'claimName':'old'}}]},'status':{'phase':'Running'}}";

#define CLAIM(name, mode, phase)                                                                   \
    "{'metadata':{'name':'" name "','namespace':'ns'},'spec':{'accessModes':['" mode               \
    "'],'resources':{'requests':{'storage':'1Gi'}}},'status':{'phase':'" phase                     \
    "','accessModes':['" mode "'],'capacity':{'storage':'2Gi'}}}"
static const char *const claims[] = {
    CLAIM("old", "ReadWriteOnce", "Bound"),     CLAIM("new", "ReadWriteOnce", "Bound"),
    CLAIM("other", "ReadWriteOnce", "Bound"),   CLAIM("shared", "ReadWriteMany", "Bound"),
    CLAIM("empty", "ReadWriteOnce", "Pending"),
};

/* Under way since a minute ago, with the new claim in the instance. */
#define UNDER_WAY(more)                                                                            \
    "{'spec':{'volumes':[" CLAIM_VOLUME("data",                                                    \
                                        "new") "]},'status':{'migratedVolumes':[{"                 \
                                               "'volumeName':'data','sourcePVCInfo':{'claimName':" \
                                               "'old'},'destinationPVCInfo':{'claimName':"         \
                                               "'new'}}],'conditions':[{'type':'VolumesChange','"  \
                                               "status':'True','lastTransitionTime':"              \
                                               "'2025-12-31T23:59:00Z'}]" more "}}"
#define MOVED(start, more)                                                                         \
    ",'migrationState':{'migrationUid':'m','startTimestamp':'" start "'" more "}"
#define DISK(more) "{'spec':{'domain':{'devices':{'disks':[{'name':'data'" more "}]}}}}"
#define BACK TEMPLATE(CLAIM_VOLUME("data", "old"))

static const struct row {
    const char *name, *vm, *vmi;
    bool moves_open;
    enum volume_answer answer;
    const char *message;
    const char *patch; /* text in the patch of the VMI; NULL = none */
} rows[] = {
    {"463, 466: no changed volume", BACK, "{}", .answer = VOLUMES_SAME},
    {"463, 468: a changed claim", "{}", "{}", .answer = VOLUMES_UPDATE,
     .patch = "\"/status/migratedVolumes\",\"value\":[{\"volumeName\":\"data\",\"sourcePVCInfo\":{"
              "\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"2147483648\"},"
              "\"claimName\":\"old\""},
    {"470: the instance gets the new claims", "{}", "{}", .answer = VOLUMES_UPDATE,
     .patch = "\"/spec/volumes\",\"value\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
              "\"claimName\":\"new\"}}]"},
    {"470: without a difference nothing is patched", "{}", UNDER_WAY(""), .answer = VOLUMES_SAME},
    {"468: several, and only those",
     TEMPLATE(CLAIM_VOLUME("data", "new") "," CLAIM_VOLUME("log", "shared") "," CLAIM_VOLUME(
         "db", "other")),
     VOLUMES(CLAIM_VOLUME("data", "old") "," CLAIM_VOLUME("log", "shared") "," CLAIM_VOLUME("db",
                                                                                            "old"),
             ""),
     .answer = VOLUMES_UPDATE, .patch = "\"volumeName\":\"db\""},
    {"another strategy needs a restart", "{'spec':{'updateVolumesStrategy':'Replacement'}}", "{}",
     .answer = VOLUMES_REFUSED, .message = "updateVolumesStrategy"},
    {"no strategy needs a restart", "{'spec':{'updateVolumesStrategy':null}}", "{}",
     .answer = VOLUMES_REFUSED, .message = "updateVolumesStrategy"},
    {"an added volume needs a restart",
     TEMPLATE(CLAIM_VOLUME("data", "old") "," CLAIM_VOLUME("more", "new")), "{}",
     .answer = VOLUMES_REFUSED, .message = "volume more was added"},
    {"a removed one, too", "{'spec':{'template':{'spec':{'volumes':null}}}}", "{}",
     .answer = VOLUMES_REFUSED, .message = "removed"},
    {"464: a LUN", "{}", DISK(",'lun':{}"), .answer = VOLUMES_REFUSED, .message = "is a LUN"},
    {"464: a shareable disk", "{}", DISK(",'shareable':true"), .answer = VOLUMES_REFUSED,
     .message = "is shareable"},
    {"464: a filesystem", "{}",
     "{'spec':{'domain':{'devices':{'filesystems':[{'name':'data','virtiofs':{}}]}}}}",
     .answer = VOLUMES_REFUSED, .message = "filesystem"},
    {"464: a hotplugged volume may be",
     TEMPLATE("{'name':'data','persistentVolumeClaim':{'claimName':'new','hotpluggable':true}}"),
     "{}", .answer = VOLUMES_UPDATE, .patch = "hotpluggable"},
    {"465: a claim that does not exist", TEMPLATE(CLAIM_VOLUME("data", "nowhere")), "{}",
     .answer = VOLUMES_REFUSED, .message = "does not exist"},
    {"465: a data volume that is filled", TEMPLATE("{'name':'data','dataVolume':{'name':'new'}}"),
     "{}", .answer = VOLUMES_UPDATE, .patch = "dataVolume"},
    {"465: one that is not", TEMPLATE("{'name':'data','dataVolume':{'name':'empty'}}"), "{}",
     .answer = VOLUMES_REFUSED, .message = "not ready"},
    {"the same claim as a data volume is no change",
     TEMPLATE("{'name':'data','dataVolume':{'name':'old'}}"), "{}", .answer = VOLUMES_SAME},
    {"not to something else", TEMPLATE("{'name':'data','emptyDisk':{'capacity':'1Gi'}}"), "{}",
     .answer = VOLUMES_REFUSED, .message = "is no claim"},
    {"469: another volume that one node alone can have",
     TEMPLATE(CLAIM_VOLUME("data", "new") "," CLAIM_VOLUME("db", "other")),
     VOLUMES(CLAIM_VOLUME("data", "old") "," CLAIM_VOLUME("db", "other"), ""),
     .answer = VOLUMES_REFUSED, .message = "volume db is not ReadWriteMany"},
    {"469: otherwise not movable", "{}",
     "{'status':{'conditions':[{'type':'LiveMigratable','status':'False','reason':"
     "'HostDeviceNotLiveMigratable'}]}}",
     .answer = VOLUMES_REFUSED, .message = "HostDeviceNotLiveMigratable"},
    {"469: not movable because of these disks alone", "{}",
     "{'status':{'conditions':[{'type':'LiveMigratable','status':'False','reason':"
     "'DisksNotLiveMigratable'}]}}",
     .answer = VOLUMES_UPDATE, .patch = "VolumesChange"},
    {"a move of it is open: after that", "{}", "{}", .moves_open = true, .answer = VOLUMES_WAIT},
    {"not while it does not run", "{}", "{'status':{'phase':'Scheduling'}}",
     .answer = VOLUMES_WAIT},

    {"466: all set back: called off", BACK, UNDER_WAY(""), .answer = VOLUMES_CANCEL,
     .patch = "{\"op\":\"remove\",\"path\":\"/status/migratedVolumes\"}"},
    {"466: all set back: the instance has the old claims again", BACK, UNDER_WAY(""),
     .answer = VOLUMES_CANCEL, .patch = "\"claimName\":\"old\""},
    {"466: all set back while a move is open: that ends first", BACK, UNDER_WAY(""),
     .moves_open = true, .answer = VOLUMES_CANCEL, .patch = "VolumesChangeCancellation"},
    {"466: another change", TEMPLATE(CLAIM_VOLUME("data", "other")), UNDER_WAY(""),
     .answer = VOLUMES_REFUSED, .message = "only all be set back"},
    {"466: half of it", TEMPLATE(CLAIM_VOLUME("data", "old") "," CLAIM_VOLUME("db", "new")),
     "{'spec':{'volumes':[" CLAIM_VOLUME("data", "new") "," CLAIM_VOLUME(
         "db", "new") "]},'status':{'migratedVolumes':[{'volumeName':'data','sourcePVCInfo':{'"
                      "claimName':'old'}},{"
                      "'volumeName':'db','sourcePVCInfo':{'claimName':'other'}}]}}",
     .answer = VOLUMES_REFUSED, .message = "only all be set back"},
    {"a move has copied them", "{}", UNDER_WAY(MOVED("2025-12-31T23:59:30Z", ",'completed':true")),
     .answer = VOLUMES_DONE, .patch = "{\"op\":\"remove\",\"path\":\"/status/migratedVolumes\"}"},
    {"one that failed has not", "{}",
     UNDER_WAY(MOVED("2025-12-31T23:59:30Z", ",'completed':true,'failed':true")),
     .answer = VOLUMES_SAME},
    {"nor one from before the change", "{}",
     UNDER_WAY(MOVED("2025-12-31T23:58:30Z", ",'completed':true")), .answer = VOLUMES_SAME},
};

struct world {
    struct api_object *vm, *vmi, *claims[COUNT_OF(claims)];
    struct storage_view storage;
};

static void world_make(struct world *w, const char *vm, const char *vmi)
{
    *w = (struct world){.vm = make_object(API_KIND_VM, VM, vm),
                        .vmi = vmi ? make_object(API_KIND_VMI, VMI, vmi) : NULL};
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        w->claims[i] = make_object(API_KIND_CLAIM, claims[i], NULL);
    }
    w->storage = (struct storage_view){.claims = (const struct api_object *const *)w->claims,
                                       .n_claims = COUNT_OF(claims)};
}

static void world_done(struct world *w)
{
    api_object_unref(w->vm);
    api_object_unref(w->vmi);
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        api_object_unref(w->claims[i]);
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        struct world w;
        plan_cleanup struct plan p = {0};

        world_make(&w, r->vm, r->vmi);
        const struct volume_view view = {w.vm, w.vmi, &w.storage, r->moves_open};
        struct volume_verdict v = volume_judge(&view);
        volume_decide(&view, &v, NOW_MS, &p);
        const struct plan_action *a = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
        if (v.answer != r->answer || (r->message && !strstr(v.message, r->message))) {
            fail_msg("%s: %d '%s'", r->name, v.answer, v.message);
        }
        if (r->patch ? !a || !strstr(a->body, r->patch) : a != NULL) {
            fail_msg("%s: %s", r->name, a ? a->body : "no patch");
        }
        if (a) {
            api_cleanup_object struct api_object *after = patched_object(w.vmi, a->body, false);

            assert_non_null(after);
        }
        world_done(&w);
    }
}

/* An instance that ends in between leaves the question which copy is good: nothing is started until
 * the volumes are set back. */
static void test_recovery_by_hand(void **state)
{
    struct world w;
    plan_cleanup struct plan seen = {0}, over = {0}, back = {0};

    (void)state;
    world_make(&w, "{}", UNDER_WAY(""));
    vm_decide(&(struct vm_view){.vm = w.vm, .vmi = w.vmi, .storage = w.storage}, NOW_MS, &seen);
    api_cleanup_object struct api_object *vm =
        patched_object(w.vm, plan_find(&seen, PLAN_PATCH_STATUS, API_KIND_VM)->body, false);
    assert_int_equal(vm->u.vm.n_migrated_volumes, 1);
    vm_decide(&(struct vm_view){.vm = vm, .storage = w.storage}, NOW_MS, &over);
    assert_null(plan_find(&over, PLAN_CREATE, API_KIND_VMI));
    api_cleanup_object struct api_object *stopped =
        patched_object(vm, plan_find(&over, PLAN_PATCH_STATUS, API_KIND_VM)->body, false);
    assert_true(api_condition_true(&stopped->u.vm.conditions, CONDITION_MANUAL_RECOVERY));
    api_cleanup_object struct api_object *reverted = patched_object(
        stopped,
        "[{\"op\":\"add\",\"path\":\"/spec/template/spec/volumes/0/persistentVolumeClaim/"
        "claimName\",\"value\":\"old\"}]",
        false);
    vm_decide(&(struct vm_view){.vm = reverted, .storage = w.storage}, NOW_MS, &back);
    assert_non_null(plan_find(&back, PLAN_CREATE, API_KIND_VMI));
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_recovery_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
