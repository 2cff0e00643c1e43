#include "lib/objects.h"

#include "api/guest_nic.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "control/vm/vm_decide.h"
#include "control/vm/vm_render.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static const char VM[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachine','metadata':{'name':'web','namespace':"
    "'ns','uid':'vm-1','resourceVersion':'5','generation':3,'finalizers':["
    "'kubevirt.io/virtualMachineControllerFinalize']},'spec':{'template':{'metadata':{'labels':{"
    "'app':'shop'}},'spec':{'domain':{'memory':{'guest':'64Mi'}}}}}}";

static const char VMI[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'web',"
    "'namespace':'ns','uid':'vmi-1','resourceVersion':'9','ownerReferences':[{'uid':'vm-1','kind':"
    "'VirtualMachine','name':'web','controller':true}]},'spec':{'domain':{'memory':{'guest':"
    "'64Mi'}}},'status':{'phase':'Running','phaseTransitionTimestamps':[{'phase':'Running'}]}}";

static const char UNBOUND[] =
    "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'disk','namespace':'ns',"
    "'uid':'c-1'},'spec':{'accessModes':['ReadWriteMany']},'status':{'phase':'Pending'}}";

#define STRATEGY(s) "{'spec':{'runStrategy':'" s "'}}"
#define FOLLOWED(s, more)                                                                          \
    "{'spec':{'runStrategy':'" s "'},'status':{'runStrategy':'" s "'" more "}}"
#define START ",'stateChangeRequests':[{'action':'Start'}]"
#define STOP(uid) ",'stateChangeRequests':[{'action':'Stop','uid':'" uid "'}]"
#define RESTART(uid) ",'stateChangeRequests':[{'action':'Stop','uid':'" uid "'},{'action':'Start'}]"
#define ENDED(phase) "{'status':{'phase':'" phase "'}}"
#define FAILED_EARLY "{'status':{'phase':'Failed','phaseTransitionTimestamps':null}}"
#define DELETING "{'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'}}"
#define STARTING "{'status':{'phase':'Scheduling','phaseTransitionTimestamps':null}}"

#define WAITS(phase, conditions)                                                                   \
    "{'status':{'phase':'" phase "','phaseTransitionTimestamps':null,'conditions':[{" conditions   \
    "}]}}"
#define WITH_CLAIM(s)                                                                              \
    "{'spec':{'runStrategy':'" s "','template':{'spec':{'volumes':[{'name':'d',"                   \
    "'persistentVolumeClaim':{'claimName':'disk'}}]}}}}"

static const struct row {
    const char *name, *vm;
    const char *vmi; /* merge on VMI; NULL = none */
    const char *rule;
    bool creates, deletes, confirm;
    const char *printable;           /* after the plan's patch of the status */
    const char *patch, *never_patch; /* texts in patches of the VM */
    int64_t again_s;
} rows[] = {
    {"new: the finalizer first", "{'metadata':{'finalizers':null}}", NULL, .rule = "new",
     .patch = "virtualMachineControllerFinalize"},

    {"Always: starts", STRATEGY("Always"), NULL, .rule = "strategy", .creates = true,
     .confirm = true, .printable = "Starting", .never_patch = "runStrategy"},
    {"Always: runs", STRATEGY("Always"), "{}", .rule = "strategy", .printable = "Running",
     .patch = "\"/status/ready\",\"value\":true"},
    {"Always: ended, goes to be started again", STRATEGY("Always"), ENDED("Succeeded"),
     .rule = "strategy", .deletes = true, .printable = "Stopped"},
    {"Always: failed, goes to be started again", STRATEGY("Always"), ENDED("Failed"),
     .rule = "strategy", .deletes = true, .printable = "Stopped"},
    {"Always: a restart stops first", FOLLOWED("Always", RESTART("vmi-1")), "{}",
     .rule = "strategy", .deletes = true, .printable = "Stopping"},
    {"Always: on its way out already", FOLLOWED("Always", RESTART("vmi-1")), DELETING,
     .rule = "strategy", .printable = "Stopping"},
    {"Always: then starts", FOLLOWED("Always", RESTART("vmi-1")), NULL, .rule = "strategy",
     .creates = true, .confirm = true, .printable = "Starting", .never_patch = "Stop\""},
    {"Always: a stop of an older instance is done", FOLLOWED("Always", STOP("vmi-0")), "{}",
     .rule = "strategy", .printable = "Running",
     .patch = "{\"op\":\"remove\",\"path\":\"/status/stateChangeRequests\"}"},
    {"running: true is Always", "{'spec':{'running':true}}", NULL, .rule = "strategy",
     .creates = true, .confirm = true, .printable = "Starting"},
    {"running: false is Halted", "{'spec':{'running':false}}", "{}", .rule = "strategy",
     .deletes = true, .printable = "Stopping"},
    {"neither is Halted", "{}", NULL, .rule = "strategy", .printable = "Stopped",
     .patch = "\"/status/runStrategy\",\"value\":\"Halted\""},

    {"Always: failed before it ran: later", STRATEGY("Always"), FAILED_EARLY, .rule = "strategy",
     .deletes = true, .printable = "CrashLoopBackOff", .patch = "\"consecutiveFailCount\":1"},
    {"Always: failed again: counted up",
     FOLLOWED("Always", ",'startFailure':{'consecutiveFailCount':2,'lastFailedVMIUID':'vmi-0',"
                        "'retryAfterTimestamp':'2025-12-31T23:50:00Z'}"),
     FAILED_EARLY, .rule = "strategy", .deletes = true, .printable = "CrashLoopBackOff",
     .patch = "\"consecutiveFailCount\":3"},
    {"Always: counted once",
     FOLLOWED("Always", ",'startFailure':{'consecutiveFailCount':2,'lastFailedVMIUID':'vmi-1',"
                        "'retryAfterTimestamp':'2026-01-01T00:00:30Z'}"),
     FAILED_EARLY, .rule = "strategy", .deletes = true, .printable = "CrashLoopBackOff",
     .never_patch = "startFailure"},
    {"Always: waits after failures",
     FOLLOWED("Always", ",'startFailure':{'consecutiveFailCount':2,'lastFailedVMIUID':'vmi-1',"
                        "'retryAfterTimestamp':'2026-01-01T00:00:30Z'}"),
     NULL, .rule = "strategy", .printable = "CrashLoopBackOff", .again_s = 30},
    {"Always: the wait is over",
     FOLLOWED("Always", ",'startFailure':{'consecutiveFailCount':2,'lastFailedVMIUID':'vmi-1',"
                        "'retryAfterTimestamp':'2025-12-31T23:59:30Z'}"),
     NULL, .rule = "strategy", .creates = true, .confirm = true, .printable = "Starting"},
    {"Always: one that runs clears the failures",
     FOLLOWED("Always", ",'startFailure':{'consecutiveFailCount':2,'lastFailedVMIUID':'vmi-0',"
                        "'retryAfterTimestamp':'2025-12-31T23:59:30Z'}"),
     "{}", .rule = "strategy", .printable = "Running",
     .patch = "{\"op\":\"remove\",\"path\":\"/status/startFailure\"}"},

    {"RerunOnFailure: starts when it is given", STRATEGY("RerunOnFailure"), NULL,
     .rule = "strategy", .creates = true, .confirm = true, .printable = "Starting",
     .never_patch = "runStrategy"},
    {"RerunOnFailure: not after a shutdown", FOLLOWED("RerunOnFailure", ""), NULL,
     .rule = "strategy", .printable = "Stopped"},
    {"RerunOnFailure: ended well, stays down", FOLLOWED("RerunOnFailure", ""), ENDED("Succeeded"),
     .rule = "strategy", .deletes = true, .printable = "Stopped", .never_patch = "Start\""},
    {"RerunOnFailure: failed, is started again", FOLLOWED("RerunOnFailure", ""), ENDED("Failed"),
     .rule = "strategy", .deletes = true, .printable = "Stopped",
     .patch = "\"/status/stateChangeRequests\",\"value\":[{\"action\":\"Start\"}]"},
    {"RerunOnFailure: a stop that speaks of a start is none",
     FOLLOWED("RerunOnFailure", ",'stateChangeRequests':[{'action':'Stop','uid':'vmi-1','data':{"
                                "'why':'Start'}}]"),
     ENDED("Failed"), .rule = "strategy", .deletes = true, .printable = "Stopped",
     .patch = "{\"action\":\"Start\"}"},
    {"RerunOnFailure: a restart of a failed one starts once",
     FOLLOWED("RerunOnFailure", RESTART("vmi-1")), ENDED("Failed"), .rule = "strategy",
     .deletes = true, .printable = "Stopped", .never_patch = "stateChangeRequests"},
    {"RerunOnFailure: the start that follows", FOLLOWED("RerunOnFailure", START), NULL,
     .rule = "strategy", .creates = true, .confirm = true, .printable = "Starting"},
    {"RerunOnFailure: a start request of one that runs is done", FOLLOWED("RerunOnFailure", START),
     "{}", .rule = "strategy", .printable = "Running",
     .patch = "{\"op\":\"remove\",\"path\":\"/status/stateChangeRequests\"}"},
    {"RerunOnFailure: a start waits for the failed one to go", FOLLOWED("RerunOnFailure", START),
     "{'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'},'status':{'phase':'Failed'}}",
     .rule = "strategy", .printable = "Stopped", .never_patch = "stateChangeRequests"},
    {"RerunOnFailure: stop", FOLLOWED("RerunOnFailure", STOP("vmi-1")), "{}", .rule = "strategy",
     .deletes = true, .printable = "Stopping", .never_patch = "Start\""},

    {"Manual: nothing by itself", STRATEGY("Manual"), NULL, .rule = "strategy",
     .printable = "Stopped"},
    {"Manual: start", FOLLOWED("Manual", START), NULL, .rule = "strategy", .creates = true,
     .confirm = true, .printable = "Starting"},
    {"Manual: runs", FOLLOWED("Manual", START), "{}", .rule = "strategy", .printable = "Running",
     .patch = "remove"},
    {"Manual: stop", FOLLOWED("Manual", STOP("vmi-1")), "{}", .rule = "strategy", .deletes = true,
     .printable = "Stopping"},
    {"Manual: a shutdown is left alone", FOLLOWED("Manual", ""), ENDED("Succeeded"),
     .rule = "strategy", .printable = "Stopped"},

    {"Halted: stops", STRATEGY("Halted"), "{}", .rule = "strategy", .deletes = true,
     .printable = "Stopping"},
    {"Halted: stays down", STRATEGY("Halted"), NULL, .rule = "strategy", .printable = "Stopped"},
    {"Halted: a start makes it Always", FOLLOWED("Halted", START), NULL, .rule = "strategy",
     .patch = "\"/spec/runStrategy\",\"value\":\"Always\"", .printable = "Stopped"},
    {"Once: starts", STRATEGY("Once"), NULL, .rule = "strategy", .creates = true, .confirm = true,
     .printable = "Starting"},
    {"Once: ended is ended", STRATEGY("Once"), ENDED("Failed"), .rule = "strategy",
     .printable = "Stopped"},
    {"a strategy that nobody knows", STRATEGY("Sometimes"), NULL, .rule = "strategy",
     .printable = "Stopped", .patch = "spec.runStrategy"},

    {"on its way up", STRATEGY("Always"), STARTING, .rule = "strategy", .printable = "Starting",
     .patch = "GuestNotRunning"},
    {"no node for it", STRATEGY("Always"),
     "{'status':{'phase':'Scheduling','phaseTransitionTimestamps':null,'conditions':[{'type':"
     "'PodScheduled','status':'False','reason':'Unschedulable','message':'0/1 nodes'}]}}",
     .rule = "strategy", .printable = "ErrorUnschedulable"},
    {"a claim is not there", STRATEGY("Always"),
     WAITS("Pending", "'type':'Synchronized','status':'False','reason':'FailedPvcNotFound'"),
     .rule = "strategy", .printable = "ErrorPvcNotFound", .patch = "FailedPvcNotFound"},
    {"no claim comes before no node", STRATEGY("Always"),
     WAITS("Scheduling", "'type':'Synchronized','status':'False','reason':'FailedPvcNotFound'},{"
                         "'type':'PodScheduled','status':'False','reason':'Unschedulable'"),
     .rule = "strategy", .printable = "ErrorPvcNotFound"},
    {"its image cannot be pulled", STRATEGY("Always"),
     WAITS("Scheduling", "'type':'Synchronized','status':'False','reason':'ErrImagePull'"),
     .rule = "strategy", .printable = "ErrImagePull"},
    {"its image is tried again later", STRATEGY("Always"),
     WAITS("Scheduling", "'type':'Synchronized','status':'False','reason':'ImagePullBackOff'"),
     .rule = "strategy", .printable = "ImagePullBackOff"},
    {"a claim that is not bound", WITH_CLAIM("Always"), WAITS("Scheduling", ""), .rule = "strategy",
     .printable = "WaitingForVolumeBinding", .again_s = 10},
    {"a claim that is not bound, and no node", WITH_CLAIM("Always"),
     WAITS("Scheduling", "'type':'PodScheduled','status':'False','reason':'Unschedulable'"),
     .rule = "strategy", .printable = "ErrorUnschedulable", .again_s = 10},
    {"a claim that is not bound of a VM that is to be down", WITH_CLAIM("Halted"), NULL,
     .rule = "strategy", .printable = "Stopped"},
    {"a claim that is not bound, and it runs all the same", WITH_CLAIM("Always"), "{}",
     .rule = "strategy", .printable = "Running", .again_s = 10},
    {"nobody knows where it is", STRATEGY("Always"), ENDED("Unknown"), .rule = "strategy",
     .printable = "Unknown"},
    {"being moved while it is paused", STRATEGY("Always"),
     "{'status':{'migrationState':{'migrationUid':'m'},'conditions':[{'type':'Paused','status':"
     "'True'}]}}",
     .rule = "strategy", .printable = "Migrating"},
    {"Once: failed before it ran", STRATEGY("Once"), FAILED_EARLY, .rule = "strategy",
     .printable = "CrashLoopBackOff"},
    {"what the instance says of itself, the VM says", STRATEGY("Always"),
     "{'status':{'conditions':[{'type':'GuestReset','status':'True','reason':'Reset'}]}}",
     .rule = "strategy", .printable = "Running", .patch = "GuestReset"},
    {"and no longer when it does not",
     "{'spec':{'runStrategy':'Always'},'status':{'conditions':[{'type':'GuestReset','status':"
     "'True','reason':'Reset'}]}}",
     "{}", .rule = "strategy", .printable = "Running", .never_patch = "GuestReset"},
    {"being moved", STRATEGY("Always"), "{'status':{'migrationState':{'migrationUid':'m'}}}",
     .rule = "strategy", .printable = "Migrating"},
    {"paused", STRATEGY("Always"),
     "{'status':{'conditions':[{'type':'Paused','status':'True','reason':'PausedByUser'}]}}",
     .rule = "strategy", .printable = "Paused", .patch = "PausedByUser"},
    {"whether it can be moved is shown", STRATEGY("Always"),
     "{'status':{'conditions':[{'type':'LiveMigratable','status':'False','reason':"
     "'DisksNotLiveMigratable'}]}}",
     .rule = "strategy", .printable = "Running", .patch = "DisksNotLiveMigratable"},
    {"a changed template needs a restart", STRATEGY("Always"),
     "{'metadata':{'annotations':{'ferry.io/vm-template':'another'}}}", .rule = "strategy",
     .printable = "Running", .patch = "RestartRequired"},
    {"recovery by hand comes first",
     "{'spec':{'runStrategy':'Always','template':{'spec':{'volumes':[{'name':'d',"
     "'persistentVolumeClaim':{'claimName':'new'}}]}}},'status':{'volumeUpdateState':{"
     "'volumeMigrationState':{'migratedVolumes':[{'volumeName':'d','sourcePVCInfo':{'claimName':"
     "'old'}}]}}}}",
     NULL, .rule = "strategy", .printable = "Stopped", .patch = "ManualRecoveryRequired"},
    {"an instance of somebody else", STRATEGY("Always"), "{'metadata':{'ownerReferences':null}}",
     .rule = "foreign", .printable = "Stopped", .patch = "not the VM's"},

    {"deleted: the instance first",
     "{'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'},'spec':{'runStrategy':'Always'}}",
     "{}", .rule = "deleted", .deletes = true, .printable = "Terminating"},
    {"deleted: not started again",
     "{'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'},'spec':{'runStrategy':'Always'}}",
     NULL, .rule = "deleted", .confirm = true, .patch = "/metadata/finalizers"},
};

/* The VM after the plan; texts of its patches. */
static struct api_object *apply(const struct plan *p, const struct api_object *vm,
                                struct ferry_buf *texts)
{
    struct api_object *now = api_object_ref((struct api_object *)vm);

    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if (a->kind == API_KIND_VM && (a->op == PLAN_PATCH || a->op == PLAN_PATCH_STATUS)) {
            ferry_buf_puts(texts, a->body);
            /* Each is guarded by the version that was read. */
            struct api_object *next = patched_object(vm, a->body, false);
            if (a->op == PLAN_PATCH_STATUS) {
                api_object_unref(now);
                now = next;
            } else {
                api_object_unref(next);
            }
        }
    }
    return now;
}

static void check_row(const struct row *r)
{
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, r->vm);
    api_cleanup_object struct api_object *vmi =
        r->vmi ? make_object(API_KIND_VMI, VMI, r->vmi) : NULL;
    api_cleanup_object struct api_object *claim = make_object(API_KIND_CLAIM, UNBOUND, NULL);
    ferry_cleanup_buf struct ferry_buf texts = {0};
    plan_cleanup struct plan p = {0}, again = {0};

    const struct api_object *claims[] = {claim};
    const struct storage_view storage = {.claims = claims, .n_claims = 1};
    vm_decide(&(struct vm_view){.vm = vm, .vmi = vmi, .storage = storage}, NOW_MS, &p);
    api_cleanup_object struct api_object *after = apply(&p, vm, &texts);
    bool creates = plan_find(&p, PLAN_CREATE, API_KIND_VMI) != NULL;
    bool deletes = plan_find(&p, PLAN_DELETE, API_KIND_VMI) != NULL;
    if (!ferry_streq(p.rule, r->rule) || creates != r->creates || deletes != r->deletes ||
        p.confirm != r->confirm) {
        fail_msg("%s: rule '%s' creates %d deletes %d confirm %d", r->name, p.rule, creates,
                 deletes, p.confirm);
    }
    if (r->printable && !ferry_streq(after->u.vm.printable_status, r->printable)) {
        fail_msg("%s: printableStatus is '%s'", r->name, after->u.vm.printable_status);
    }
    if ((r->patch && !(texts.data && strstr(texts.data, r->patch))) ||
        (r->never_patch && texts.data && strstr(texts.data, r->never_patch))) {
        fail_msg("%s: patches %s", r->name, texts.data ? texts.data : "none");
    }
    if (p.again_ms != r->again_s * 1000) {
        fail_msg("%s: again after %lld ms", r->name, (long long)p.again_ms);
    }
    /* What was said is not said again. */
    vm_decide(&(struct vm_view){.vm = after, .vmi = vmi, .storage = storage}, NOW_MS + 1000,
              &again);
    if (plan_find(&again, PLAN_PATCH_STATUS, API_KIND_VM)) {
        fail_msg("%s: says again: %s", r->name,
                 plan_find(&again, PLAN_PATCH_STATUS, API_KIND_VM)->body);
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

#define NICS_OF_ANOTHER                                                                            \
    "[{\"op\":\"add\",\"path\":\"/spec/template/spec/domain/devices\",\"value\":{\"interfaces\":"  \
    "[{\"name\":\"a\",\"masquerade\":{}}]}}]"

static void test_render(void **state)
{
    (void)state;
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, STRATEGY("Always"));
    ferry_cleanup_free char *json = vm_render(vm, &(struct instancetype_pair){0});
    struct ferry_error err = {0};
    struct api_object *o = NULL;

    if (api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    api_cleanup_object struct api_object *vmi = o;
    assert_string_equal(vmi->meta->name, "web");
    assert_string_equal(vmi->meta->namespace_, "ns");
    assert_string_equal(api_map_get(&vmi->meta->labels, "app"), "shop");
    assert_string_equal(api_map_get(&vmi->meta->annotations, ANNOTATION_VM_GENERATION), "3");
    assert_int_equal(vmi->meta->n_owners, 1);
    assert_string_equal(vmi->meta->owners[0].uid, "vm-1");
    assert_true(vmi->meta->owners[0].controller);
    assert_int_equal(vmi->u.vmi.memory_bytes, 64 << 20);
    /* Made from this template: no restart is asked for. */
    plan_cleanup struct plan p = {0};
    vm_decide(&(struct vm_view){.vm = vm, .vmi = vmi}, NOW_MS, &p);
    assert_null(strstr(plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VM)->body, "RestartRequired"));
}

/* Instances of one VM have the same cards, those of another VM others; what the author says counts.
 */
static void test_macs(void **state)
{
    static const char NICS[] =
        "{'spec':{'template':{'spec':{'domain':{'devices':{'interfaces':[{'name':'a','masquerade':{"
        "}"
        "},{'name':'b','bridge':{},'macAddress':'02:00:00:00:00:07'},{'name':'c','sriov':{}}]}},"
        "'networks':[{'name':'a','pod':{}},{'name':'b','multus':{'networkName':'n'}}]}}}}";
    char seen[2][API_MAC_TEXT];

    (void)state;
    for (int i = 0; i < 4; i++) { /* twice each */
        api_cleanup_object struct api_object *vm =
            make_object(API_KIND_VM, VM, i < 2 ? NICS : "{'metadata':{'uid':'vm-2'}}");
        api_cleanup_object struct api_object *with =
            i < 2 ? api_object_ref(vm) : patched_object(vm, NICS_OF_ANOTHER, false);
        ferry_cleanup_free char *json = vm_render(with, &(struct instancetype_pair){0});
        struct api_object *o = NULL;
        struct ferry_error err = {0};

        assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err), 0);
        const struct api_interface *nics = o->u.vmi.machine.interfaces;
        assert_int_equal(o->u.vmi.machine.n_interfaces, i < 2 ? 3 : 1);
        assert_int_equal(strncmp(nics[0].mac, "02:", 3), 0);
        if (i % 2) {
            assert_string_equal(nics[0].mac, seen[i / 2]);
        }
        snprintf(seen[i / 2], API_MAC_TEXT, "%s", nics[0].mac);
        if (i < 2) {
            assert_string_equal(nics[1].mac, "02:00:00:00:00:07");
            assert_true(ferry_str_empty(nics[2].mac));
        }
        api_object_unref(o);
    }
    assert_string_not_equal(seen[0], seen[1]);
}

static void test_template_tag(void **state)
{
    static const struct {
        const char *template_;
        bool same;
    } cases[] = {
        {"{'spec':{'template':{'spec':{'domain':{'memory':{'guest':'64Mi'}}}}}}", true},
        {"{'spec':{'template':{'spec':{'volumes':[{'name':'a'}]}}}}", true},
        {"{'spec':{'template':{'spec':{'networks':[{'name':'a'}]}}}}", false},
        {"{'spec':{'template':{'spec':{'domain':{'cpu':{'cores':2}}}}}}", false},
        {"{'spec':{'template':{'spec':{'domain':{'memory':{'guest':'65Mi'}}}}}}", false},
    };
    char want[VM_TEMPLATE_TAG], got[VM_TEMPLATE_TAG];
    (void)state;
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, NULL);

    vm_template_tag(vm, want);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = make_object(API_KIND_VM, VM, cases[i].template_);

        if ((strcmp(want, vm_template_tag(o, got)) == 0) != cases[i].same) {
            fail_msg("%s: %s, %s", cases[i].template_, want, got);
        }
    }
}

#define NETWORKS(a, b)                                                                             \
    "'networks':[{'name':'pod','pod':{}},{'name':'lan','multus':{'networkName':'" a                \
    "'}},{'name':'san','multus':{'networkName':'" b "'}}]"

/* An attachment that was exchanged in the template comes to the instance, and needs no restart. */
static void test_networks(void **state)
{
    static const struct {
        const char *name, *vm, *vmi, *patch;
    } cases[] = {
        {"the same", NETWORKS("red", "x"), NETWORKS("red", "x"), NULL},
        {"exchanged", NETWORKS("blue", "x"), NETWORKS("red", "x"),
         "{\"op\":\"add\",\"path\":\"/spec/networks/1/multus/networkName\",\"value\":\"blue\"}"},
        {"both", NETWORKS("blue", "y"), NETWORKS("red", "x"),
         "/spec/networks/2/multus/networkName"},
        {"one that is not in the template", "'networks':[]", NETWORKS("red", "x"), NULL},
        {"exchanged, but it is being moved", NETWORKS("blue", "x"),
         NETWORKS("red", "x") "},'status':{'migrationState':{'migrationUid':'u'}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *spec = ferry_asprintf(
            "{'spec':{'runStrategy':'Always','template':{'spec':{%s}}}}", cases[i].vm);
        ferry_cleanup_free char *has = ferry_asprintf("{'spec':{%s}}", cases[i].vmi);
        api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, spec);
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, has);
        plan_cleanup struct plan p = {0};

        vm_decide(&(struct vm_view){.vm = vm, .vmi = vmi}, NOW_MS, &p);
        const struct plan_action *a = plan_find(&p, PLAN_PATCH, API_KIND_VMI);
        if ((a != NULL) != (cases[i].patch != NULL) || (a && !strstr(a->body, cases[i].patch))) {
            fail_msg("%s: %s", cases[i].name, a ? a->body : "no patch");
        }
        if (a) {
            api_object_unref(patched_object(vmi, a->body, false));
        }
    }
    char red[VM_TEMPLATE_TAG], blue[VM_TEMPLATE_TAG];
    api_cleanup_object struct api_object *before =
        make_object(API_KIND_VM, VM, "{'spec':{'template':{'spec':{" NETWORKS("red", "x") "}}}}");
    api_cleanup_object struct api_object *after =
        make_object(API_KIND_VM, VM, "{'spec':{'template':{'spec':{" NETWORKS("blue", "x") "}}}}");
    assert_string_equal(vm_template_tag(before, red), vm_template_tag(after, blue));
}

static void test_refused(void **state)
{
    (void)state;
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, STRATEGY("Always"));
    ferry_cleanup_buf struct ferry_buf texts = {0};
    plan_cleanup struct plan p = {0}, next = {0};

    vm_decide_refused(&(struct vm_view){.vm = vm}, "spec.domain: Required", NOW_MS, &p);
    api_cleanup_object struct api_object *after = apply(&p, vm, &texts);
    const struct api_condition *c = api_condition_find(&after->u.vm.conditions, "Failure");
    assert_non_null(c);
    assert_string_equal(c->message, "spec.domain: Required");
    assert_int_equal(p.actions[p.n - 1].op, PLAN_EVENT);
    /* It stands while the next try is made. */
    vm_decide(&(struct vm_view){.vm = after}, NOW_MS, &next);
    assert_null(plan_find(&next, PLAN_PATCH_STATUS, API_KIND_VM));
    assert_non_null(plan_find(&next, PLAN_CREATE, API_KIND_VMI));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_render),
        cmocka_unit_test(test_macs),     cmocka_unit_test(test_template_tag),
        cmocka_unit_test(test_networks), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
