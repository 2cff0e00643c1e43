/* Each link of the chain of a start broken on purpose: exactly that one is named, with a remedy. */
#include "why_case.h"

/* With ' for ". */
static struct api_object *quoted(enum api_kind kind, const char *json)
{
    ferry_cleanup_free char *copy = json ? ferry_strdup(json) : NULL;

    for (char *c = copy; c && *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return object(kind, copy);
}

/* ---- virtual machines that are not being moved ----------------------------------------------- */

#define VM(strategy, printable, more)                                                              \
    "{'metadata':{'name':'demo','namespace':'default','uid':'vm'},'spec':{'runStrategy':"          \
    "'" strategy "','template':{'spec':{}}},'status':{'printableStatus':'" printable "'" more "}}"
#define CONDITION(type, status, reason, message)                                                   \
    "{'type':'" type "','status':'" status "','reason':'" reason "','message':'" message "'}"
#define INSTANCE(phase, meta, spec, status)                                                        \
    "{'metadata':{'name':'demo','namespace':'default','uid':'v1'" meta "},'spec':{" spec           \
    "},'status':{'phase':'" phase "'" status "}}"
#define WITH(conditions) ",'conditions':[" conditions "]"
#define LAUNCHER(phase, node, status)                                                              \
    "{'metadata':{'name':'pod','creationTimestamp':'" AT("40") "'},'spec':{'nodeName':'" node      \
                                                               "'},'status':{'phase':'" phase      \
                                                               "'" status "}}"
#define POD_READY                                                                                  \
    LAUNCHER("Running", "node1",                                                                   \
             ",'containerStatuses':[{'name':'compute','ready':true,'state':{'running':{}}}]")
#define ITS_CLAIM "'volumes':[{'name':'d','persistentVolumeClaim':{'claimName':'disk'}}]"
#define CLAIM(phase)                                                                               \
    "{'metadata':{'name':'disk','namespace':'default'},'spec':{},'status':{'phase':'" phase "'}}"
#define EVENT                                                                                      \
    "{'metadata':{'name':'e','namespace':'default'},'involvedObject':{'name':'demo'},'type':"      \
    "'Warning','reason':'Stopped','message':'the disk is no disk'}"

static void starts(void **state)
{
    static const struct {
        const char *vm, *vmi, *pod, *claim, *event, *last, *lease;
        const char *node1; /* readiness; NULL = "True" */
        const char *link;
        enum why_state state;
        const char *says, *advice;
    } cases[] = {
        {NULL, .link = "vm", .state = WHY_BROKEN, .says = "no such virtual machine"},
        {VM("Manual", "Stopped", ""), .link = "vm", .state = WHY_BROKEN,
         .says = "demo is Stopped, and its run strategy is Manual",
         .advice = "ferry vm start demo"},
        {VM("Always", "Stopped", WITH(CONDITION("Failure", "True", "FailedCreate", "spec: no"))),
         .link = "vm", .state = WHY_BROKEN, .says = "no instance of demo can be made: spec: no"},
        {VM("Always", "CrashLoopBackOff", ""), .event = EVENT, .link = "vm", .state = WHY_BROKEN,
         .says = "last: the disk is no disk"},
        {VM("Always", "Stopped",
            WITH(CONDITION("ManualRecoveryRequired", "True", "x", "set them back"))),
         .link = "vm", .state = WHY_BROKEN, .says = "is not started: set them back"},
        {VM("Always", "Starting", ""), .link = "vm", .state = WHY_WAITS, .says = "about to be"},
        {.vmi = INSTANCE("Failed", "", "",
                         ",'reason':'OutOfMemory'" WITH(CONDITION(
                             "Ready", "False", "GuestNotRunning", "its pod ran out of memory"))),
         .link = "vm",
         .state = WHY_BROKEN,
         .says = "demo failed by OutOfMemory: its pod ran out of memory"},
        {.vmi = INSTANCE("Succeeded", "", "", ""),
         .link = "vm",
         .state = WHY_BROKEN,
         .says = "demo ended"},
        {.vmi = INSTANCE("Pending", "", "", ""),
         .lease = "",
         .link = "controller",
         .state = WHY_BROKEN,
         .says = "no controller is at work"},
        {.vmi = INSTANCE("Pending", "", ITS_CLAIM,
                         WITH(CONDITION("Synchronized", "False", "FailedPvcNotFound",
                                        "PVC default/disk does not exist"))),
         .link = "volumes",
         .state = WHY_BROKEN,
         .says = "PVC default/disk does not exist"},
        {.vmi = INSTANCE("Scheduling", "", ITS_CLAIM, ""),
         .link = "volumes",
         .state = WHY_BROKEN,
         .says = "there is no claim disk"},
        {.vmi = INSTANCE("Pending", "", "", ""),
         .link = "pod",
         .state = WHY_WAITS,
         .says = "not created yet"},
        {.vmi = INSTANCE("Scheduling", "", "", ""),
         .pod = LAUNCHER("Pending", "",
                         WITH(CONDITION("PodScheduled", "False", "Unschedulable",
                                        "0/2 nodes: 2 Insufficient memory"))),
         .link = "pod",
         .state = WHY_BROKEN,
         .says = "Insufficient memory",
         .advice = "make room"},
        {.vmi = INSTANCE("Scheduling", "", "", ""),
         .pod = LAUNCHER("Pending", "",
                         WITH(CONDITION("PodScheduled", "False", "Unschedulable",
                                        "0/2 nodes: 2 Insufficient devices.kubevirt.io/kvm"))),
         .link = "pod",
         .state = WHY_BROKEN,
         .says = "devices.kubevirt.io/kvm",
         .advice = "run by hardware (kvm)"},
        {.vmi = INSTANCE("Scheduling", "", "", ""),
         .pod = LAUNCHER("Pending", "node1",
                         ",'containerStatuses':[{'name':'compute','state':{'waiting':{'reason':"
                         "'ErrImagePull','message':'no such image'}}}]"),
         .link = "pod",
         .state = WHY_BROKEN,
         .says = "ErrImagePull: no such image"},
        {.vmi = INSTANCE("Scheduling", "", ITS_CLAIM, ""),
         .pod = LAUNCHER("Pending", "node1", ""),
         .claim = CLAIM("Pending"),
         .link = "pod",
         .state = WHY_WAITS,
         .says = "its claim disk, which is Pending"},
        {.vmi = INSTANCE("Scheduling", "", "", ""),
         .pod = LAUNCHER("Failed", "node1", ""),
         .link = "pod",
         .state = WHY_BROKEN,
         .says = "pod ended"},
        {.vmi = INSTANCE("Scheduling", "", "", ""),
         .pod = LAUNCHER("Pending", "node1", ""),
         .node1 = "False",
         .link = "pod",
         .state = WHY_BROKEN,
         .says = "which is not ready"},
        {.vmi = INSTANCE("Scheduled", "", "", ",'nodeName':'node1'"),
         .pod = POD_READY,
         .node1 = "False",
         .link = "node",
         .state = WHY_BROKEN,
         .says = "node node1 is not ready"},
        {.vmi = INSTANCE("Scheduled", "", "",
                         ",'nodeName':'node1'" WITH(
                             CONDITION("Synchronized", "False",
                                       "Synchronizing with the Domain failed.", "no such kernel"))),
         .pod = POD_READY,
         .link = "launcher",
         .state = WHY_BROKEN,
         .says = "no such kernel"},
        {.vmi = INSTANCE("Scheduled", "", "", ",'nodeName':'node1'"),
         .pod = POD_READY,
         .link = "launcher",
         .state = WHY_WAITS,
         .says = "is being started"},
        {.vmi = INSTANCE("Running", "", "",
                         ",'nodeName':'node1'" WITH(CONDITION("Paused", "True", "PausedIOError",
                                                              "no space is left for volume d"))),
         .pod = POD_READY,
         .link = "guest",
         .state = WHY_BROKEN,
         .says = "no space is left for volume d",
         .advice = "ferry vm unpause demo"},
        {.vmi = INSTANCE("Running", "", "", ",'nodeName':'node1'"),
         .pod = POD_READY,
         .link = "object",
         .state = WHY_BROKEN,
         .says = "no move of demo"},
        /* What a move came to is no word about now. */
        {.vmi = INSTANCE("Running", "", "", ",'nodeName':'node1'"),
         .pod = POD_READY,
         .last = FAILED("no room"),
         .says = "the last one, m, failed 50.0 s ago: no room"},
        {.vmi = INSTANCE("Running", ",'annotations':{'ferry.io/accelerator':'kvm'}", "",
                         ",'nodeName':'node1'"),
         .pod = POD_READY,
         .last = MIGRATION("Succeeded", "", ""),
         .says = "demo runs on node1, by hardware (kvm)"},
        {.vmi = INSTANCE("Running", "", "", ",'nodeName':'node1'"),
         .pod = POD_READY,
         .last = MIGRATION("Succeeded", "", ""),
         .says = "demo runs on node1, emulated (tcg)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vm = quoted(API_KIND_VM, cases[i].vm);
        api_cleanup_object struct api_object *vmi = quoted(API_KIND_VMI, cases[i].vmi);
        api_cleanup_object struct api_object *pod = quoted(API_KIND_POD, cases[i].pod);
        api_cleanup_object struct api_object *claim = quoted(API_KIND_CLAIM, cases[i].claim);
        api_cleanup_object struct api_object *event = quoted(API_KIND_EVENT, cases[i].event);
        api_cleanup_object struct api_object *last = object(API_KIND_MIGRATION, cases[i].last);
        api_cleanup_object struct api_object *lease =
            cases[i].lease ? NULL : object(API_KIND_LEASE, LEASE(AT("45")));
        api_cleanup_object struct api_object *n1 =
            object(API_KIND_NODE, cases[i].node1 ? NODE("node1", "False") : NODE("node1", "True"));
        struct api_object *nodes[] = {n1};
        struct why_view view = {
            .vm = vm ? &vm->u.vm : NULL,
            .vmi = vmi ? &vmi->u.vmi : NULL,
            .pod = pod ? &pod->u.pod : NULL,
            .claims_known = true,
            .claims = &claim,
            .n_claims = claim ? 1 : 0,
            .event = event ? &event->u.event : NULL,
            .last = last ? &last->u.migration : NULL,
            .lease_known = true,
            .lease = lease ? &lease->u.lease : NULL,
            .nodes = nodes,
            .n_nodes = 1,
        };
        struct why_answer a;
        ferry_cleanup_buf struct ferry_buf text = {0};

        assert_int_equal(api_time_parse(AT("50"), &view.now_ms, NULL), 0);
        why_walk_vm(&view, &a);
        why_render(&a, &text);
        const struct why_link *first = why_first(&a);
        print_message("  %zu %s\n", i, cases[i].says);
        if (!ferry_streq(first ? first->name : NULL, cases[i].link) ||
            (first && first->state != cases[i].state) || !strstr(text.data, cases[i].says) ||
            (cases[i].advice && !strstr(text.data, cases[i].advice))) {
            fail_msg("%zu: %s", i, text.data);
        }
        if (first && first->state == WHY_BROKEN) {
            assert_true(first->remedy[0] != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(starts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
