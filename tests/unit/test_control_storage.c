/* Tables: claims, volumes, and whether a move may rely on them. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/objects.h"

#include "control/plan/storage.h"
#include "control/vm/vmi_decide.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'spec':{"
    "'domain':{'memory':{'guest':'64Mi'}},'volumes':[{'name':'data','persistentVolumeClaim':{"
    "'claimName':'one'}}]},'status':{'phase':'Running','nodeName':'a'}}";
static const char CLAIM[] =
    "{'metadata':{'name':'one','namespace':'ns'},'spec':{'storageClassName':'fast','accessModes':["
    "'ReadWriteMany'],'resources':{'requests':{'storage':'1Gi'}}},'status':{'phase':'Bound',"
    "'accessModes':['ReadWriteMany'],'capacity':{'storage':'2Gi'}}}";
static const char CLASS[] = "{'metadata':{'name':'fast'},'provisioner':'x'}";
static const char PROFILE[] = "{'metadata':{'name':'fast'},'status':{'claimPropertySets':[{"
                              "'accessModes':['ReadWriteMany'],'volumeMode':'Block'}]}}";

#define RWO "{'spec':{'accessModes':['ReadWriteOnce']},'status':{'accessModes':['ReadWriteOnce']}}"
#define UNBOUND "{'status':{'phase':'Pending','accessModes':null,'capacity':null}}"
#define COPIED(bytes)                                                                              \
    "{'status':{'migratedVolumes':[{'volumeName':'data','sourcePVCInfo':{'claimName':'zero',"      \
    "'capacity':{'storage':'" bytes "'}},'destinationPVCInfo':{'claimName':'one'}}]}}"
#define SLOW "{'volumeBindingMode':'WaitForFirstConsumer'}"

static const struct row {
    const char *name, *vmi;
    const char *claim; /* merge; NULL = there is none */
    const char *class, *profile;
    const char *reason, *message;
    bool final;
} rows[] = {
    {"shared and bound", "{}", "{}"},
    {"no claims at all", "{'spec':{'volumes':null}}", NULL},
    {"volumes of other kinds do not matter", "{'spec':{'volumes':[{'name':'x','emptyDisk':{}}]}}",
     NULL},
    {"502: a claim that one node alone can have", "{}", RWO, .reason = "DeviceNotMigratable",
     .final = true, .message = "claim one of volume data is not ReadWriteMany"},
    {"its class could do better", "{}", RWO, .profile = "{}", .reason = "DeviceNotMigratable",
     .final = true, .message = "which its storage class does offer"},
    {"the class could not", "{}", RWO, .profile = "{'status':{'claimPropertySets':[]}}",
     .reason = "DeviceNotMigratable", .final = true},
    {"what it was given counts, not what it asked for", "{}",
     "{'spec':{'accessModes':['ReadWriteMany','ReadWriteOnce']},'status':{'accessModes':["
     "'ReadWriteOnce']}}",
     .reason = "DeviceNotMigratable", .final = true},
    {"not bound yet", "{}", UNBOUND, .reason = "VolumeNotReady", .message = "one is not bound"},
    {"not there", "{}", NULL, .reason = "VolumeNotReady", .message = "there is no claim one"},
    {"its content is copied: need not be shared", COPIED("2Gi"), RWO},
    {"copied to a larger one", COPIED("1Gi"), RWO},
    {"copied to one that is too small", COPIED("3Gi"), RWO, .reason = "DestinationTooSmall",
     .final = true, .message = "claim one has 2147483648 bytes, volume data has 3221225472"},
    {"copied to one that asks for too little", COPIED("3Gi"),
     "{'spec':{'accessModes':['ReadWriteOnce']},'status':null}", .reason = "DestinationTooSmall",
     .final = true, .message = "has 1073741824 bytes"},
    {"copied to one that is not bound", COPIED("1Gi"), UNBOUND, .reason = "VolumeNotReady"},
    {"copied to one that is bound with its pod", COPIED("1Gi"), UNBOUND, .class = SLOW},
    {"what cannot be comes before what is not yet",
     "{'spec':{'volumes':[{'name':'new','persistentVolumeClaim':{'claimName':'nowhere'}},{'name':"
     "'data','persistentVolumeClaim':{'claimName':'one'}}]}}",
     RWO, .reason = "DeviceNotMigratable", .final = true},
};

struct world {
    struct api_object *vmi, *claim, *class, *profile;
    struct storage_view view;
};

static void world_make(struct world *w, const struct row *r)
{
    *w = (struct world){.vmi = make_object(API_KIND_VMI, VMI, r->vmi),
                        .class = make_object(API_KIND_STORAGE_CLASS, CLASS, r->class)};
    w->view = (struct storage_view){.classes = (const struct api_object *const *)&w->class,
                                    .n_classes = 1};
    if (r->claim) {
        w->claim = make_object(API_KIND_CLAIM, CLAIM, r->claim);
        w->view.claims = (const struct api_object *const *)&w->claim;
        w->view.n_claims = 1;
    }
    if (r->profile) {
        w->profile = make_object(API_KIND_STORAGE_PROFILE, PROFILE, r->profile);
        w->view.profiles = (const struct api_object *const *)&w->profile;
        w->view.n_profiles = 1;
    }
}

static void world_done(struct world *w)
{
    api_object_unref(w->vmi);
    api_object_unref(w->claim);
    api_object_unref(w->class);
    api_object_unref(w->profile);
}

static void test_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *r = &rows[i];
        struct world w;

        world_make(&w, r);
        struct storage_verdict v = storage_check(&w.vmi->u.vmi, &w.view);
        if (!ferry_streq(wire_reason_text(v.reason), r->reason) || v.final != r->final ||
            (r->message && !strstr(v.message, r->message))) {
            fail_msg("%s: %s %d '%s'", r->name, v.reason ? wire_reason_text(v.reason) : "-",
                     v.final, v.message);
        }
        world_done(&w);
    }
}

/* The status follows the claims, and is written once. */
static void test_volume_status(void **state)
{
    struct world w;

    (void)state;
    world_make(
        &w, &(struct row){.vmi = "{'status':{'volumeStatus':[{'name':'other'}]}}", .claim = "{}"});
    ferry_cleanup_free char *json = storage_volume_status(&w.vmi->u.vmi, &w.view);
    assert_string_equal(
        json, "[{\"name\":\"other\"},{\"name\":\"data\",\"target\":\"\","
              "\"persistentVolumeClaimInfo\":{\"accessModes\":[\"ReadWriteMany\"],\"capacity\":{"
              "\"storage\":\"2147483648\"},\"claimName\":\"one\",\"requests\":{\"storage\":"
              "\"1073741824\"},\"volumeMode\":\"Filesystem\"}}]");
    ferry_cleanup_free char *patch =
        ferry_asprintf("[{\"op\":\"add\",\"path\":\"/status/volumeStatus\",\"value\":%s}]", json);
    api_cleanup_object struct api_object *after = patched_object(w.vmi, patch, false);
    assert_null(storage_volume_status(&after->u.vmi, &w.view));
    assert_int_equal(after->u.vmi.volumes[1].claim.capacity_bytes, INT64_C(2) << 30);
    world_done(&w);
}

/* A VM waits for a claim that is not there, and says so once. */
static void test_vmi_waits(void **state)
{
    struct world w;
    plan_cleanup struct plan p = {0}, again = {0}, after_claim = {0};

    (void)state;
    world_make(&w, &(struct row){.vmi = "{'status':null}"});
    struct vmi_view view = {.vmi = w.vmi, .storage = w.view, .pod = {.launcher_image = "x"}};
    vmi_decide(&view, NOW_MS, &p);
    assert_string_equal(p.rule, "wait-for-claim");
    assert_string_equal(p.phase, "Pending");
    assert_null(plan_find(&p, PLAN_CREATE, API_KIND_POD));
    const struct plan_action *a = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
    assert_non_null(strstr(a->body, "PVC ns/one does not exist"));
    api_cleanup_object struct api_object *waiting = patched_object(w.vmi, a->body, false);
    view.vmi = waiting;
    vmi_decide(&view, NOW_MS, &again);
    assert_string_equal(again.rule, "wait-for-claim");
    assert_int_equal(again.n, 0);
    api_cleanup_object struct api_object *claim = make_object(API_KIND_CLAIM, CLAIM, NULL);
    const struct api_object *claims[] = {claim};
    view.storage.claims = claims;
    view.storage.n_claims = 1;
    vmi_decide(&view, NOW_MS, &after_claim);
    assert_string_equal(after_claim.rule, "create-pod");
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_volume_status),
        cmocka_unit_test(test_vmi_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
