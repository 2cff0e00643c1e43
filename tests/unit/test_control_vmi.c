/* Tables: pods and phase of a VMI. Numbers of cases are items of docs/conformance.md. */
#include "lib/objects.h"

#include "api/wire/wire_user.h"
#include "base/clock.h"
#include "control/loops/guest_users.h"
#include "control/plan/facts.h"
#include "control/pod/pod_render.h"
#include "control/vm/vmi_decide.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static const char VMI[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'web',"
    "'namespace':'ns','uid':'vmi-1','resourceVersion':'5'},"
    "'spec':{'terminationGracePeriodSeconds':5,'domain':{'memory':{'guest':'64Mi'}}}}";

/* The first pod, ready on node a. */
static const char POD[] =
    "{'metadata':{'name':'p-a','namespace':'ns','uid':'pod-a','resourceVersion':'3',"
    "'creationTimestamp':'2025-12-31T23:00:00Z','labels':{'kubevirt.io/created-by':'vmi-1'}},"
    "'spec':{'nodeName':'a'},'status':{'phase':'Running','containerStatuses':[{'name':'compute',"
    "'ready':true,'state':{'running':{}}}]}}";

/* A migration target on node b. */
#define TARGET_POD(more)                                                                           \
    "{'metadata':{'name':'p-b','uid':'pod-b','creationTimestamp':'2025-12-31T23:30:00Z','labels':" \
    "{'kubevirt.io/migrationJobUID':'mig-1'}" more "},'spec':{'nodeName':'b'}}"
#define YOUNG_TARGET                                                                               \
    "{'metadata':{'name':'p-b','uid':'pod-b','creationTimestamp':'2025-12-31T23:59:50Z','labels':" \
    "{'kubevirt.io/migrationJobUID':'mig-1'}},'spec':{'nodeName':'b'}}"

static const char MIGRATION[] =
    "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7'},"
    "'spec':{'vmiName':'web'}}";

#define FINAL "'metadata':{'finalizers':['foregroundDeleteVirtualMachine']}"
#define PHASE(p) "{" FINAL ",'status':{'phase':'" p "'}}"
#define ON(node, phase) "{" FINAL ",'status':{'phase':'" phase "','nodeName':'" node "'}}"
#define MOVED(more)                                                                                \
    "{" FINAL ",'status':{'phase':'Running','nodeName':'b','migrationState':{'migrationUid':"      \
    "'mig-1','sourcePod':'p-a','targetPod':'p-b'" more "}}}"
#define STAYED(more)                                                                               \
    "{" FINAL ",'status':{'phase':'Running','nodeName':'a','migrationState':{'migrationUid':"      \
    "'mig-1','sourcePod':'p-a','targetPod':'p-b'" more "}}}"
#define DELETING(at, status)                                                                       \
    "{'metadata':{'finalizers':['foregroundDeleteVirtualMachine'],'deletionTimestamp':'" at        \
    "'},'status':{" status "}}"
#define HOMELESS                                                                                   \
    "{'spec':{'nodeName':null},'status':{'phase':'Pending','containerStatuses':null,'conditions':" \
    "[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'0/1 nodes'}]}}"

#define IN_PROGRESS                                                                                \
    "{'metadata':{'annotations':{'descheduler.alpha.kubernetes.io/eviction-in-progress':'"         \
    "kubevirt'}}}"
#define ASKED                                                                                      \
    "'conditions':[{'type':'EvictionRequested','status':'True','reason':'EvictionRequested',"      \
    "'message':'The VM was asked to leave node a'}]"

static const struct row {
    const char *name, *vmi;
    const char *pods[2];   /* merges on POD */
    const char *migration; /* merge on MIGRATION, or NULL */
    const char *rule, *phase, *reason;
    const char *patch;   /* text in a patch of the VMI; NULL = no patch */
    const char *deletes; /* names of pods deleted, in order */
    bool creates, confirm;
    int64_t again_s;
} rows[] = {
    {"new: finalizer, Pending, pod",
     "{}",
     {NULL},
     .rule = "create-pod",
     .phase = "Pending",
     .patch = "foregroundDeleteVirtualMachine",
     .creates = true},
    {"pending without pod: creates again",
     "{'metadata':{'finalizers':['foregroundDeleteVirtualMachine'],'annotations':{'ferry.io/"
     "accelerator':'tcg'}},"
     "'status':{'phase':'Pending'}}",
     {NULL},
     .rule = "create-pod",
     .creates = true},
    {"pending with pod",
     PHASE("Pending"),
     {HOMELESS},
     .rule = "scheduling",
     .phase = "Scheduling",
     .patch = "Scheduling"},
    {"new with pod: the phase was not written",
     "{}",
     {HOMELESS},
     .rule = "scheduling",
     .phase = "Scheduling",
     .patch = "foregroundDeleteVirtualMachine"},
    {"scheduling: why there is no node",
     PHASE("Scheduling"),
     {HOMELESS},
     .rule = "scheduled",
     .patch = "0/1 nodes"},
    {"scheduling: said already",
     "{" FINAL ",'status':{'phase':'Scheduling','conditions':[{'type':'PodScheduled','status':"
     "'False','reason':'Unschedulable','message':'0/1 nodes'}]}}",
     {HOMELESS},
     .rule = "scheduled"},
    {"scheduling: its image does not come",
     PHASE("Scheduling"),
     {"{'status':{'containerStatuses':[{'name':'compute','state':{'waiting':{'reason':"
      "'ErrImagePull','message':'no such image'}}}]}}"},
     .rule = "scheduled",
     .patch = "\"reason\":\"ErrImagePull\",\"message\":\"no such image\""},
    {"scheduling: nor does that of a container before it",
     PHASE("Scheduling"),
     {"{'status':{'initContainerStatuses':[{'name':'disk','state':{'waiting':{'reason':"
      "'ImagePullBackOff','message':'later'}}}],'containerStatuses':null}}"},
     .rule = "scheduled",
     .patch = "ImagePullBackOff"},
    {"scheduling: the image came",
     "{" FINAL ",'status':{'phase':'Scheduling','conditions':[{'type':'Synchronized','status':"
     "'False','reason':'ErrImagePull','message':'no such image'}]}}",
     {"{'status':{'containerStatuses':[{'name':'compute','state':{'waiting':{'reason':"
      "'ContainerCreating'}}}]}}"},
     .rule = "scheduled",
     .patch = "\"/status/conditions\",\"value\":[]"},
    {"scheduling: the container is not there yet",
     PHASE("Scheduling"),
     {"{'status':{'containerStatuses':null}}"},
     .rule = "scheduled"},
    {"scheduling: ready",
     PHASE("Scheduling"),
     {"{}"},
     .rule = "scheduled",
     .phase = "Scheduled",
     .patch = "\"/status/activePods\",\"value\":{\"pod-a\":\"a\"}"},
    {"scheduling: ready, the condition goes",
     "{" FINAL ",'status':{'phase':'Scheduling','conditions':[{'type':'PodScheduled','status':"
     "'False','reason':'Unschedulable','message':'0/1 nodes'}]}}",
     {"{}"},
     .rule = "scheduled",
     .phase = "Scheduled",
     .patch = "\"/status/conditions\",\"value\":[]"},
    {"scheduling: labelled for its handler",
     PHASE("Scheduling"),
     {"{}"},
     .rule = "scheduled",
     .phase = "Scheduled",
     .patch = "kubevirt.io~1nodeName"},
    {"scheduling: pod deleted",
     PHASE("Scheduling"),
     {NULL},
     .rule = "pod-lost-early",
     .phase = "Failed",
     .reason = "PodDeleted",
     .patch = "PodDeleted",
     .confirm = true},
    {"scheduling: pod failed",
     PHASE("Scheduling"),
     {"{'status':{'phase':'Failed','reason':'UnsupportedPod','message':'x'}}"},
     .rule = "pod-down-early",
     .phase = "Failed",
     .reason = "PodFailed",
     .patch = "PodFailed"},
    {"running", ON("a", "Running"), {"{}"}, .rule = "settled"},
    {"running: pod gone",
     ON("a", "Running"),
     {NULL},
     .rule = "pod-over",
     .phase = "Failed",
     .reason = "PodDeleted",
     .patch = "PodDeleted",
     .confirm = true},
    {"running: pod gone, but the target of a move that was given up may have the guest",
     "{'metadata':{'labels':{'kubevirt.io/migrationTargetNodeName':'b'},'annotations':{"
     "'ferry.io/unconfirmed':'m'}},'status':{'phase':'Running','nodeName':'a','migrationState':{"
     "'migrationUid':'m','targetNode':'b','completed':true,'failed':true}}}",
     {NULL},
     .rule = "settled"},
    {"running: guest shut down",
     ON("a", "Running"),
     {"{'status':{'phase':'Succeeded'}}"},
     .rule = "pod-over",
     .phase = "Succeeded",
     .patch = "Succeeded"},
    {"running: launcher failed",
     ON("a", "Running"),
     {"{'status':{'phase':'Failed'}}"},
     .rule = "pod-over",
     .phase = "Failed",
     .reason = "PodFailed",
     .patch = "PodFailed"},
    {"scheduled: launcher failed",
     ON("a", "Scheduled"),
     {"{'status':{'phase':'Failed'}}"},
     .rule = "pod-over",
     .phase = "Failed",
     .reason = "PodFailed",
     .patch = "PodFailed"},

    {"a target pod before hand-off is left alone",
     ON("a", "Running"),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Scheduling'}}",
     .rule = "settled"},
    {"a young target pod whose migration is not seen yet",
     ON("a", "Running"),
     {"{}", YOUNG_TARGET},
     .rule = "settled",
     .again_s = 60},
    {"a target pod of no migration goes",
     ON("a", "Running"),
     {"{}", TARGET_POD()},
     .rule = "settled",
     .deletes = "p-b "},
    {"a target pod of a failed migration goes",
     ON("a", "Running"),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Failed'}}",
     .rule = "settled",
     .deletes = "p-b "},
    {"during a move nothing goes",
     STAYED(),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Running'}}",
     .rule = "settled"},
    {"during a move the source's end decides nothing",
     STAYED(),
     {"{'status':{'phase':'Succeeded'}}", TARGET_POD()},
     "{'status':{'phase':'Running'}}",
     .rule = "settled"},
    {"ownership moved, not completed: both stay",
     MOVED(),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Running'}}",
     .rule = "settled"},
    {"moved: the source pod goes",
     MOVED(",'completed':true"),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Running'}}",
     .rule = "settled",
     .deletes = "p-a "},
    {"moved: the source pod is on its way out",
     MOVED(",'completed':true"),
     {"{'metadata':{'deletionTimestamp':'2025-12-31T23:59:00Z'}}", TARGET_POD()},
     "{'status':{'phase':'Succeeded'}}",
     .rule = "settled"},
    {"moved, then the guest shut down",
     MOVED(",'completed':true"),
     {"{'status':{'phase':'Succeeded'}}",
      "{'metadata':{'name':'p-b','uid':'pod-b'},'spec':{'nodeName':'b'},'status':{'phase':"
      "'Succeeded'}}"},
     .rule = "pod-over",
     .phase = "Succeeded",
     .patch = "Succeeded"},
    {"failed move: the target pod goes when the migration is over",
     STAYED(",'completed':true,'failed':true"),
     {"{}", TARGET_POD()},
     "{'status':{'phase':'Failed'}}",
     .rule = "settled",
     .deletes = "p-b "},

    {"606: asked to leave: the condition says so",
     "{" FINAL ",'status':{'phase':'Running','nodeName':'a','evacuationNodeName':'a'}}",
     {IN_PROGRESS},
     .rule = "settled",
     .patch = "\"type\":\"EvictionRequested\",\"status\":\"True\",\"reason\":"
              "\"EvictionRequested\""},
    {"602: asked to leave: so does its pod",
     "{" FINAL ",'status':{'phase':'Running','nodeName':'a','evacuationNodeName':'a'," ASKED "}}",
     {"{}"},
     .rule = "settled",
     .patch = "eviction-in-progress\",\"value\":\"kubevirt\""},
    {"607, 603: a move from there failed: both stay, and the target pod gets neither",
     "{" FINAL ",'status':{'phase':'Running','nodeName':'a','evacuationNodeName':'a'," ASKED
     ",'migrationState':{'migrationUid':'mig-1','sourcePod':'p-a','targetPod':'p-b','completed':"
     "true,'failed':true}}}",
     {IN_PROGRESS, TARGET_POD()},
     "{'status':{'phase':'Failed'}}",
     .rule = "settled",
     .deletes = "p-b "},
    {"606: it has left: the condition goes",
     "{" FINAL ",'status':{'phase':'Running','nodeName':'a'," ASKED "}}",
     {"{}"},
     .rule = "settled",
     .patch = "{\"op\":\"remove\",\"path\":\"/status/conditions/0\"}"},
    {"608: it need not leave any more: its pod's mark goes",
     ON("a", "Running"),
     {IN_PROGRESS},
     .rule = "settled",
     .patch = "{\"op\":\"remove\",\"path\":\"/metadata/annotations/descheduler.alpha.kubernetes."
              "io~1eviction-in-progress\"}"},

    {"deleting: the handler's turn",
     DELETING("2025-12-31T23:59:50Z", "'phase':'Running','nodeName':'a'"),
     {"{}"},
     .rule = "deleted",
     .again_s = 25},
    {"deleting: the handler did not",
     DELETING("2025-12-31T23:59:20Z", "'phase':'Running','nodeName':'a'"),
     {"{}"},
     .rule = "deleted",
     .deletes = "p-a "},
    {"deleting: the guest is stopped",
     DELETING("2025-12-31T23:59:50Z", "'phase':'Succeeded','nodeName':'a'"),
     {"{}"},
     .rule = "deleted",
     .deletes = "p-a "},
    {"deleting before it started",
     DELETING("2025-12-31T23:59:50Z", "'phase':'Scheduling'"),
     {"{}"},
     .rule = "deleted",
     .deletes = "p-a "},
    {"deleting during a move: both",
     DELETING("2025-12-31T23:59:00Z", "'phase':'Running','nodeName':'a'"),
     {"{}", TARGET_POD()},
     .rule = "deleted",
     .deletes = "p-a p-b "},
    {"deleting: pods on their way out",
     DELETING("2025-12-31T23:59:00Z", "'phase':'Running'"),
     {"{'metadata':{'deletionTimestamp':'2025-12-31T23:59:00Z'}}"},
     .rule = "deleted"},
    {"deleting: all gone",
     DELETING("2025-12-31T23:59:50Z", "'phase':'Running'"),
     {NULL},
     .rule = "deleted",
     .patch = "/metadata/finalizers",
     .confirm = true},
    {"deleting a new one",
     DELETING("2025-12-31T23:59:50Z", ""),
     {NULL},
     .rule = "deleted",
     .patch = "/metadata/finalizers",
     .confirm = true},

    {"finished: its pod stays to be looked at",
     ON("a", "Succeeded"),
     {"{'status':{'phase':'Succeeded'}}"},
     .rule = "finished"},
    {"finished: nothing may run", ON("a", "Failed"), {"{}"}, .rule = "finished", .deletes = "p-a "},
};

static void check_row(const struct row *r)
{
    struct api_object *vmi = make_object(API_KIND_VMI, VMI, r->vmi);
    struct api_object *pods[2] = {0}, *migration = NULL;
    struct vmi_view view = {.vmi = vmi,
                            .pods = (const struct api_object *const *)pods,
                            .migrations = (const struct api_object *const *)&migration,
                            .pod = {.launcher_image = "launcher"}};
    ferry_cleanup_buf struct ferry_buf deleted = {0}, patches = {0};
    plan_cleanup struct plan p = {0};

    for (size_t i = 0; i < COUNT_OF(pods) && r->pods[i]; i++) {
        pods[view.n_pods++] = make_object(API_KIND_POD, POD, r->pods[i]);
    }
    if (r->migration) {
        migration = make_object(API_KIND_MIGRATION, MIGRATION, r->migration);
        view.n_migrations = 1;
    }
    vmi_decide(&view, NOW_MS, &p);
    for (size_t i = 0; i < p.n; i++) {
        if (p.actions[i].op == PLAN_DELETE) {
            ferry_buf_printf(&deleted, "%s ", p.actions[i].name);
        } else if (p.actions[i].op == PLAN_PATCH || p.actions[i].op == PLAN_PATCH_STATUS) {
            bool of_pod = view.n_pods && ferry_streq(p.actions[i].name, pods[0]->meta->name);
            api_cleanup_object struct api_object *after =
                patched_object(of_pod ? pods[0] : vmi, p.actions[i].body, false);

            ferry_buf_puts(&patches, p.actions[i].body);
            assert_non_null(after);
        }
    }
    bool creates = plan_find(&p, PLAN_CREATE, API_KIND_POD) != NULL;
    if (!ferry_streq(p.rule, r->rule) || !ferry_streq(p.phase, r->phase) ||
        !ferry_streq(p.reason, r->reason) || creates != r->creates || p.confirm != r->confirm) {
        fail_msg("%s: rule '%s' phase '%s' reason '%s' creates %d confirm %d", r->name, p.rule,
                 p.phase ? p.phase : "-", p.reason ? p.reason : "-", creates, p.confirm);
    }
    if (!ferry_streq(deleted.data, r->deletes)) {
        fail_msg("%s: deletes '%s'", r->name, deleted.data ? deleted.data : "");
    }
    if ((r->patch && (!patches.data || !strstr(patches.data, r->patch))) ||
        (!r->patch && patches.data)) {
        fail_msg("%s: patches %s", r->name, patches.data ? patches.data : "none");
    }
    if (r->again_s && p.again_ms != r->again_s * 1000) {
        fail_msg("%s: again after %lld ms", r->name, (long long)p.again_ms);
    }
    api_object_unref(vmi);
    api_object_unref(pods[0]);
    api_object_unref(pods[1]);
    api_object_unref(migration);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

/* ---- the machine type ------------------------------------------------------------------------
 */

#define LABEL "machine-type.node.kubevirt.io/"

/* It is written down before the pod is made, and the pod asks for it. */
static void test_machine(void **state)
{
    static const struct {
        const char *name, *vmi;
        const char *gets;
        bool written; /* before */
    } cases[] = {
        {"new: the newest that both have", "{}", "pc-i440fx-10.0", false},
        {"new: by its alias", "{'spec':{'domain':{'machine':{'type':'q35'}}}}", "pc-q35-9.2",
         false},
        {"new: as it says", "{'spec':{'domain':{'machine':{'type':'pc-q35-8.2'}}}}", "pc-q35-8.2",
         false},
        {"pending, and not written yet", PHASE("Pending"), "pc-i440fx-10.0", false},
        {"written before, it stays",
         "{'metadata':{'finalizers':['foregroundDeleteVirtualMachine'],'annotations':{"
         "'ferry.io/accelerator':'tcg'}},'status':{'phase':'Pending','machine':{'type':"
         "'pc-i440fx-8.2'}}}",
         "pc-i440fx-8.2", true},
    };
    static const char NODE[] = "{'metadata':{'name':'n','labels':{'kubevirt.io/schedulable':'true',"
                               "'" LABEL "pc-i440fx-10.0':'true','" LABEL "pc-q35-9.2':'true'}}}";
    api_cleanup_object struct api_object *newer = make_object(
        API_KIND_NODE, NODE,
        "{'metadata':{'labels':{'" LABEL "pc-i440fx-10.1':'true','" LABEL "pc-q35-10.1':'true'}}}");
    api_cleanup_object struct api_object *older = make_object(API_KIND_NODE, NODE, NULL);
    const struct api_object *nodes[] = {newer, older};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, cases[i].vmi);
        plan_cleanup struct plan p = {0};

        vmi_decide(
            &(struct vmi_view){
                .vmi = vmi, .nodes = nodes, .n_nodes = 2, .pod = {.launcher_image = "img"}},
            NOW_MS, &p);
        const struct plan_action *patch = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
        const struct plan_action *pod = plan_find(&p, PLAN_CREATE, API_KIND_POD);
        api_cleanup_object struct api_object *after =
            patch ? patched_object(vmi, patch->body, false) : NULL;
        ferry_cleanup_free char *asks = ferry_asprintf("\"" LABEL "%s\":\"true\"", cases[i].gets);

        print_message("  %s\n", cases[i].name);
        assert_true(pod && strstr(pod->body, asks));
        assert_int_equal(patch == NULL, cases[i].written);
        if (patch) {
            assert_true(patch < pod);
            assert_string_equal(after->u.vmi.machine_type, cases[i].gets);
            assert_string_equal(after->u.vmi.phase, "Pending");
        }
    }
}

/* Whether hardware runs it is written down before the pod is made, and the pod is made for it. */
static void test_accelerator(void **state)
{
    static const struct {
        const char *name, *vmi, *site;
        const char *gets; /* "" = nothing is written */
        bool kvm;         /* the pod's */
    } cases[] = {
        {"new: a node has hardware", "{}", "{}", "kvm", true},
        {"new: the site wants emulation", "{}",
         "{'spec':{'configuration':{'developerConfiguration':{'useEmulation':true}}}}", "tcg",
         false},
        {"its author wants emulation",
         "{'metadata':{'annotations':{'ferry.io/accelerator':'tcg'}}}", "{}", "", false},
        {"its author wants what there is not",
         "{'metadata':{'annotations':{'ferry.io/accelerator':'xen'}}}", "{}", "kvm", true},
        {"written before", "{'metadata':{'annotations':{'ferry.io/accelerator':'kvm'}}}",
         "{'spec':{'configuration':{'developerConfiguration':{'useEmulation':true}}}}", "", true},
    };
    api_cleanup_object struct api_object *node = make_object(
        API_KIND_NODE,
        "{'metadata':{'name':'n','labels':{'kubevirt.io/schedulable':'true'}},'status':{"
        "'allocatable':{'devices.kubevirt.io/kvm':'1000'}}}",
        NULL);
    const struct api_object *nodes[] = {node};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, cases[i].vmi);
        api_cleanup_object struct api_object *site = make_object(
            API_KIND_KUBEVIRT, "{'metadata':{'name':'k','namespace':'n'}}", cases[i].site);
        plan_cleanup struct plan p = {0};

        vmi_decide(&(struct vmi_view){.vmi = vmi,
                                      .nodes = nodes,
                                      .n_nodes = 1,
                                      .site = &site->u.kubevirt,
                                      .pod = {.launcher_image = "img"}},
                   NOW_MS, &p);
        const struct plan_action *patch = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
        const struct plan_action *pod = plan_find(&p, PLAN_CREATE, API_KIND_POD);

        print_message("  %s\n", cases[i].name);
        assert_true(patch && pod && patch < pod);
        api_cleanup_object struct api_object *after = patched_object(vmi, patch->body, false);
        enum wire_accelerator before = wire_accelerator_of_vmi(vmi->meta);
        assert_string_equal(wire_accelerator_text(wire_accelerator_of_vmi(after->meta)),
                            *cases[i].gets ? cases[i].gets : wire_accelerator_text(before));
        assert_int_equal(strstr(pod->body, "\"--accelerator\",\"kvm\"") != NULL, cases[i].kvm);
        assert_int_equal(strstr(pod->body, "\"devices.kubevirt.io/kvm\":\"1\"") != NULL,
                         cases[i].kvm);
    }
}

/* Its own user is written down before the pod is made, and the pod runs as it; what a manifest
 * claims for itself does not count. */
static void test_user(void **state)
{
    enum { GIVEN = WIRE_USER_FIRST + 5 };
    static const struct {
        const char *name, *vmi;
        bool written;
    } cases[] = {
        {"new", "{}", false},
        {"new, and claims another's", "{'status':{'runtimeUser':1879048199}}", false},
        {"pending, and not written yet", PHASE("Pending"), false},
        {"written before",
         "{'metadata':{'finalizers':['foregroundDeleteVirtualMachine'],'annotations':{"
         "'ferry.io/accelerator':'tcg'}},'status':{'phase':'Pending','runtimeUser':1879048197}}",
         true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, cases[i].vmi);
        plan_cleanup struct plan p = {0};

        vmi_decide(&(struct vmi_view){.vmi = vmi, .user = GIVEN, .pod = {.launcher_image = "img"}},
                   NOW_MS, &p);
        const struct plan_action *patch = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
        const struct plan_action *pod = plan_find(&p, PLAN_CREATE, API_KIND_POD);

        print_message("  %s\n", cases[i].name);
        assert_true(pod && strstr(pod->body, "\"securityContext\":{\"runAsUser\":1879048197,"
                                             "\"runAsGroup\":1879048197,"));
        assert_int_equal(patch == NULL, cases[i].written);
        if (patch) {
            api_cleanup_object struct api_object *after = patched_object(vmi, patch->body, false);

            assert_true(patch < pod);
            assert_int_equal(after->u.vmi.runtime_user, GIVEN);
        }
    }
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, NULL);
    plan_cleanup struct plan p = {0};
    vmi_decide(&(struct vmi_view){.vmi = vmi, .no_user = true}, NOW_MS, &p);
    assert_string_equal(p.rule, "wait-for-user");
    assert_null(plan_find(&p, PLAN_CREATE, API_KIND_POD));
}

/* Of VMIs, which users they hold. */
static void test_users_are_given_once(void **state)
{
    struct guest_users *g = guest_users_new();
    api_cleanup_object struct api_object *one =
        make_object(API_KIND_VMI, VMI, "{'metadata':{'name':'one','uid':'u1'}}");
    api_cleanup_object struct api_object *two =
        make_object(API_KIND_VMI, VMI, "{'metadata':{'name':'two','uid':'u2'}}");
    int64_t first = guest_users_give(g, one);

    (void)state;
    assert_true(wire_user_is_guest(first));
    assert_int_equal(guest_users_give(g, one), first);
    /* what a manifest claims is somebody's already */
    ferry_cleanup_free char *claim = ferry_asprintf(
        "{'metadata':{'name':'three','uid':'u3'},'status':{'runtimeUser':%lld}}", (long long)first);
    api_cleanup_object struct api_object *three = make_object(API_KIND_VMI, VMI, claim);
    guest_users_seen(g, NULL, three);
    assert_int_not_equal(guest_users_give(g, three), first);
    guest_users_seen(g, three, three); /* an older object: what was given stays */
    assert_int_not_equal(guest_users_give(g, three), first);
    assert_int_equal(guest_users_give(g, one), first);
    assert_int_not_equal(guest_users_give(g, two), first);
    /* the same name again, when the one before is gone */
    api_cleanup_object struct api_object *again =
        make_object(API_KIND_VMI, VMI, "{'metadata':{'name':'one','uid':'u4'}}");
    assert_int_not_equal(guest_users_give(g, again), first);
    guest_users_seen(g, again, NULL);
    guest_users_seen(g, one, NULL);
    assert_int_equal(guest_users_give(g, again), first);
    /* of another life of this controller */
    ferry_cleanup_free char *held =
        ferry_asprintf("{'metadata':{'name':'five','uid':'u5'},'status':{'runtimeUser':%d}}",
                       WIRE_USER_FIRST + 77);
    api_cleanup_object struct api_object *five = make_object(API_KIND_VMI, VMI, held);
    guest_users_seen(g, NULL, five);
    assert_int_equal(guest_users_give(g, five), WIRE_USER_FIRST + 77);
    guest_users_free(g);
}

/* ---- rendering -------------------------------------------------------------------------------
 */

static void assert_at(const struct api_object *pod, const char *pointer, const char *want)
{
    const char *got = api_json_str(pod->root, pointer);

    if (!ferry_streq(got, want)) {
        fail_msg("%s is '%s', expected '%s'", pointer, got ? got : "absent",
                 want ? want : "absent");
    }
}

static struct api_object *rendered(const char *vmi_merge, const char *migration_merge)
{
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, vmi_merge);
    api_cleanup_object struct api_object *m =
        migration_merge ? make_object(API_KIND_MIGRATION, MIGRATION, migration_merge) : NULL;
    ferry_cleanup_free char *json =
        pod_render(&(struct pod_request){.vmi = &vmi->u.vmi,
                                         .migration = m ? &m->u.migration : NULL,
                                         .settings = &(struct pod_settings){"img"}});
    struct api_object *pod = NULL;
    struct ferry_error err = {0};

    if (api_object_parse(API_KIND_POD, json, strlen(json), &pod, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return pod;
}

static void test_render_pod(void **state)
{
    (void)state;
    api_cleanup_object struct api_object *pod = rendered(
        "{'metadata':{'labels':{'app':'shop','kubevirt.io/nodeName':'x'}},'spec':{'nodeSelector':"
        "{'zone':'1'},'domain':{'cpu':{'cores':2},'memory':{'guest':'1Gi'}}}}",
        NULL);
    const struct api_pod *p = &pod->u.pod;

    assert_true(ferry_str_starts(pod->meta->name, "virt-launcher-web-"));
    assert_int_equal(strlen(pod->meta->name), strlen("virt-launcher-web-") + 5);
    assert_at(pod, "/metadata/labels/kubevirt.io", "virt-launcher");
    assert_at(pod, "/metadata/labels/kubevirt.io~1created-by", "vmi-1");
    assert_at(pod, "/metadata/labels/app", "shop");
    assert_at(pod, "/metadata/labels/kubevirt.io~1nodeName", NULL);
    assert_at(pod, "/metadata/labels/kubevirt.io~1migrationJobUID", NULL);
    assert_at(pod, "/metadata/ownerReferences/0/uid", "vmi-1");
    assert_at(pod, "/spec/restartPolicy", "Never");
    assert_at(pod, "/spec/containers/0/name", "compute");
    assert_at(pod, "/spec/containers/0/command/0", "ferry-launcher");
    assert_at(pod, "/spec/containers/0/args/0", "--namespace");
    assert_at(pod, "/spec/containers/0/args/1", "ns");
    assert_at(pod, "/spec/containers/0/args/3", "web");
    assert_at(pod, "/spec/containers/0/args/5", "vmi-1");
    assert_null(p->affinity);
    assert_int_equal(p->grace_s, 20);
    assert_int_equal(p->cpu_milli, 200);
    assert_int_equal(p->memory_bytes, (INT64_C(1) << 30) + (128 + 16 + 2) * (INT64_C(1) << 20));
    assert_string_equal(api_map_get(&p->node_selector, "zone"), "1");
}

static void test_render_is_repeatable(void **state)
{
    (void)state;
    api_cleanup_object struct api_object *a = rendered(NULL, NULL), *b = rendered(NULL, NULL);
    api_cleanup_object struct api_object *other = rendered("{'metadata':{'uid':'vmi-2'}}", NULL);
    api_cleanup_object struct api_object *target = rendered(NULL, "{}");

    assert_string_equal(a->meta->name, b->meta->name);
    assert_string_not_equal(a->meta->name, other->meta->name);
    assert_string_not_equal(a->meta->name, target->meta->name);
}

/* 24, 25: rules of the VMI stay, what is added can only narrow */
static void test_render_target(void **state)
{
    static const char terms[] =
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    (void)state;
    api_cleanup_object struct api_object *pod =
        rendered("{'spec':{'nodeSelector':{'zone':'1'},'affinity':{'podAntiAffinity':{"
                 "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'rack'}]}}}}",
                 "{'spec':{'addedNodeSelector':{'zone':'2','disk':'fast'}}}");
    ferry_cleanup_free char *own = ferry_asprintf("%s/0/topologyKey", terms);
    ferry_cleanup_free char *key = ferry_asprintf("%s/1/topologyKey", terms);
    ferry_cleanup_free char *label =
        ferry_asprintf("%s/1/labelSelector/matchLabels/kubevirt.io~1created-by", terms);

    assert_at(pod, "/metadata/labels/kubevirt.io~1migrationJobUID", "mig-1");
    assert_at(pod, "/metadata/annotations/kubevirt.io~1migrationJobName", "move");
    assert_at(pod, "/spec/nodeSelector/zone", "1"); /* only narrower, never elsewhere */
    assert_at(pod, "/spec/nodeSelector/disk", "fast");
    assert_at(pod, own, "rack");
    assert_at(pod, key, "kubernetes.io/hostname");
    assert_at(pod, label, "vmi-1");
}

/* Of several pods on the VM's node; "older" and "newer" are what their clocks said. */
static void test_which_pod_has_the_vm(void **state)
{
    static const struct {
        const char *name, *vmi, *older, *newer;
        bool is_newer;
    } cases[] = {
        {"the newer of two", "{}", "{}", "{}", true},
        {"the one that has not ended", "{}", "{}", "{'status':{'phase':'Failed'}}", false},
        {"the target of the last move, whatever the clock said then",
         "{'status':{'migrationState':{'targetNode':'a','targetPod':'older'}}}", "{}", "{}", false},
        {"the target of the last move, also when it has ended",
         "{'status':{'migrationState':{'targetNode':'a','targetPod':'older'}}}",
         "{'status':{'phase':'Failed'}}", "{}", false},
        {"the source of a move that did not leave",
         "{'status':{'migrationState':{'sourceNode':'a','sourcePod':'older','targetNode':'b',"
         "'targetPod':'newer'}}}",
         "{}", "{}", false},
    };
    static const char VM[] = "{'metadata':{'name':'web'},'status':{'nodeName':'a'}}";
    static const char OLDER[] = "{'metadata':{'name':'older','creationTimestamp':"
                                "'2025-12-31T23:00:00Z'},'spec':{'nodeName':'a'}}";
    static const char NEWER[] = "{'metadata':{'name':'newer','creationTimestamp':"
                                "'2025-12-31T23:59:00Z'},'spec':{'nodeName':'a'}}";
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VM, cases[i].vmi);
        api_cleanup_object struct api_object *older =
            make_object(API_KIND_POD, OLDER, cases[i].older);
        api_cleanup_object struct api_object *newer =
            make_object(API_KIND_POD, NEWER, cases[i].newer);
        const struct api_object *orders[2][2] = {{older, newer}, {newer, older}};

        for (int k = 0; k < 2; k++) {
            const struct api_object *has = vmi_current_pod(&vmi->u.vmi, orders[k], 2);

            if (has != (cases[i].is_newer ? newer : older)) {
                fail_msg("%s: it is %s", cases[i].name, has->meta->name);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_accelerator),
        cmocka_unit_test(test_user),
        cmocka_unit_test(test_users_are_given_once),
        cmocka_unit_test(test_render_pod),
        cmocka_unit_test(test_render_is_repeatable),
        cmocka_unit_test(test_render_target),
        cmocka_unit_test(test_which_pod_has_the_vm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
