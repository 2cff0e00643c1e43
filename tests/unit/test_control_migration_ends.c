/* How moves end other than well: by word of the nodes, by loss, by the clock. Numbers of cases are
 * items of docs/conformance.md. */
#include "move_case.h"

static const struct move_row rows[] = {
    /* endings */
    {"VMI gone", "{" PHASE("Running") "}", GONE, .rule = "vmi-gone", .phase = "Failed",
     .reason = "SourceLost", .own_patch = "'web'", .confirm = true},
    {"VMI ended", "{" PHASE("Running") "}", "{" PHASE("Failed") "}", PLAIN, .rule = "vmi-finished",
     .phase = "Failed", .reason = "SourceLost", .own_patch = "ended"},
    {"VMI is being deleted before hand-off", "{" PHASE("Pending") "}", "{" DELETING "}",
     .rule = "vmi-deleted", .phase = "Failed", .reason = "SourceLost",
     .own_patch = "is being deleted", .confirm = true},
    {"VMI is being deleted, a target pod is there", "{" PHASE("Scheduling") "}", "{" DELETING "}",
     STARTING, .rule = "vmi-deleted", .phase = "Failed", .reason = "SourceLost",
     .own_patch = "is being deleted", .deletes_target = true, .confirm = true},
    {"VMI is being deleted after hand-off: the nodes end it", "{" PHASE("Running") "}",
     "{" DELETING ",'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a',"
     "'targetNode':'b','startTimestamp':'2025-12-31T23:59:59Z'}}}",
     PLAIN, .rule = "phase"},
    {"cancelled when new", "{" DELETING "}", PLAIN, .rule = "cancel-before-hand-off",
     .phase = "Failed", .reason = "Aborted", .own_patch = "migrationAbortRequested",
     .confirm = true},
    {"cancelled while pending", "{" DELETING "," PHASE("Pending") "}", PLAIN,
     .rule = "cancel-before-hand-off", .phase = "Failed", .reason = "Aborted",
     .own_patch = "migrationAbortRequested", .confirm = true},
    {"cancelled while scheduling", "{" DELETING "," PHASE("Scheduling") "}", PLAIN, STARTING,
     .rule = "cancel-before-hand-off", .phase = "Failed", .reason = "Aborted",
     .deletes_target = true, .own_patch = "cancelled before it began", .confirm = true},
    {"130: cancelled when scheduled", "{" DELETING "," PHASE("Scheduled") "}", PLAIN, PLAIN,
     .rule = "cancel-before-hand-off", .phase = "Failed", .reason = "Aborted",
     .deletes_target = true, .own_patch = "Aborted", .confirm = true},
    {"cancelled when scheduled, but handed over already", "{" DELETING "," PHASE("Scheduled") "}",
     STATE("'targetPod':'x'"), PLAIN, .rule = "abort", .vmi_patch = "abortRequested",
     .own_patch = "migrationAbortRequested"},
    {"cancelled while the target is prepared", "{" DELETING "," PHASE("PreparingTarget") "}",
     STATE("'targetPod':'x'"), PLAIN, .rule = "abort", .vmi_patch = "abortRequested",
     .own_patch = "migrationAbortRequested"},
    {"cancelled when the target is ready", "{" DELETING "," PHASE("TargetReady") "}",
     STATE("'targetNodeAddress':'x'"), PLAIN, .rule = "abort", .vmi_patch = "abortRequested",
     .own_patch = "migrationAbortRequested"},
    {"97: cancelled while running", "{" DELETING "," PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .rule = "abort",
     .vmi_patch = "\"/status/migrationState/migrationUid\",\"value\":\"mig-1\"",
     .own_patch = "migrationAbortRequested"},
    {"running: no sign of the source for long",
     "{" PHASE_SINCE("Running", "2025-12-31T23:40:00Z") "}",
     STATE("'startTimestamp':'2025-12-31T23:40:00Z','targetNodeAddress':'x'"), PLAIN,
     .rule = "stuck", .reason = "Stuck", .vmi_patch = "ferry.io~1unconfirmed"},
    {"running: it only seems long, because the clock was set",
     "{" PHASE_SINCE("Running", "2025-12-31T23:40:00Z") "}",
     STATE("'startTimestamp':'2025-12-31T23:40:00Z','targetNodeAddress':'x'"), PLAIN,
     .clock_set_s = 900, .rule = "phase", .again_s = 300},
    {"running: the source told of progress 3 minutes ago",
     "{" PHASE_SINCE("Running", "2025-12-31T23:40:00Z") "}",
     "{'metadata':{'annotations':{'ferry.io/progress':'{\\'uid\\':\\'mig-1\\',\\'elapsedMs\\':"
     "1020000}'}},'status':{'migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T23:40:00Z'}}}",
     PLAIN, .rule = "phase", .again_s = 420},
    {"running: progress of another move does not count",
     "{" PHASE_SINCE("Running", "2025-12-31T23:40:00Z") "}",
     "{'metadata':{'annotations':{'ferry.io/progress':'{\\'uid\\':\\'mig-0\\',\\'elapsedMs\\':"
     "1020000}'}},'status':{'migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T23:40:00Z'}}}",
     PLAIN, .rule = "stuck", .reason = "Stuck", .vmi_patch = "Stuck: "},
    {"running: post-copy has no deadline", "{" PHASE_SINCE("Running", "2025-12-31T20:00:00Z") "}",
     STATE("'startTimestamp':'2025-12-31T20:00:00Z','mode':'PostCopy'"), PLAIN, .rule = "phase"},
    {"running: the guest arrived, the target goes on cleaning up",
     "{" PHASE_SINCE("Running", "2025-12-31T20:00:00Z") "}",
     "{'status':{'nodeName':'b','migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T20:00:00Z','endTimestamp':'2025-12-31T23:59:00Z'}}}",
     PLAIN, .rule = "phase", .again_s = 60},
    {"running: the guest arrived, the target does not finish",
     "{" PHASE_SINCE("Running", "2025-12-31T20:00:00Z") "}",
     "{'status':{'nodeName':'b','migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T20:00:00Z','endTimestamp':'2025-12-31T23:57:59Z'}}}",
     PLAIN, .rule = "arrived", .vmi_patch = "\"/status/migrationState/completed\",\"value\":true",
     .unwanted = "failed"},
    {"running: the guest arrived without a word of when, the target does not finish",
     "{" PHASE_SINCE("Running", "2025-12-31T20:00:00Z") "}",
     "{'status':{'nodeName':'b','migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T20:00:00Z'}}}",
     PLAIN, .rule = "arrived", .vmi_patch = "\"/status/migrationState/completed\",\"value\":true",
     .unwanted = "failed"},
    /* nodes that do not report */
    {"silent source: the move waits for it", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','targetNodeAddress':'x'"), PLAIN,
     .source_silent_s = 60, .rule = "node-silent", .reason = "PathAway",
     .own_patch = "\\\"blocker\\\":\\\"a\\\"", .again_s = 240},
    {"silent source: given up in the end, and the target must let go of it",
     "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','targetNodeAddress':'x'"), PLAIN,
     .source_silent_s = 300, .rule = "node-silent", .reason = "SourceLost",
     .vmi_patch = "/metadata/annotations/ferry.io~1unconfirmed\",\"value\":\"mig-1\""},
    {"silent source: a post-copy is never given up", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','mode':'PostCopy'"), PLAIN,
     .source_silent_s = 90000, .target_silent_s = 5000, .rule = "node-silent", .reason = "PathAway",
     .own_patch = "until both nodes are back"},
    {"silent target: the source decides", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .target_silent_s = 1000,
     .rule = "phase", .reason = "PathAway", .own_patch = "the source decides"},
    {"silent source: the guest has arrived, nothing to wait for", "{" PHASE("Running") "}",
     "{'status':{'nodeName':'b','migrationState':{'migrationUid':'mig-1','targetNode':'b',"
     "'startTimestamp':'2025-12-31T20:00:00Z','endTimestamp':'2025-12-31T23:59:00Z'}}}",
     PLAIN, .source_silent_s = 1000, .rule = "phase"},
    {"the nodes are back: the note goes",
     "{'metadata':{'annotations':{'ferry.io/queue':'x'}}," PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .rule = "phase",
     .own_patch = "{\"op\":\"remove\",\"path\":\"/metadata/annotations/ferry.io~1queue\"}"},
    {"given up unseen: the target pod stays until its node lets go", "{" PHASE("Failed") "}",
     "{'metadata':{'labels':{'kubevirt.io/migrationTargetNodeName':'b'},'annotations':{"
     "'ferry.io/unconfirmed':'mig-1'}},'status':{'migrationState':{'migrationUid':'mig-1',"
     "'targetNode':'b','completed':true,'failed':true}}}",
     PLAIN, .rule = "finished", .own_patch = "/metadata/finalizers"},
    {"given up unseen: the node has let go", "{" PHASE("Failed") "}",
     "{'metadata':{'annotations':{'ferry.io/unconfirmed':'mig-1'}},'status':{'migrationState':{"
     "'migrationUid':'mig-1','targetNode':'b','completed':true,'failed':true}}}",
     PLAIN, .rule = "finished", .own_patch = "/metadata/finalizers", .deletes_target = true},
    {"given up unseen: no new move before the node has let go", "{" PHASE("Pending") "}",
     "{'metadata':{'labels':{'kubevirt.io/migrationTargetNodeName':'b'},'annotations':{"
     "'ferry.io/unconfirmed':'mig-0'}},'status':{'migrationState':{'migrationUid':'mig-0',"
     "'targetNode':'b','completed':true,'failed':true}}}",
     .rule = "phase", .reason = "SourceBusy", .own_patch = "\\\"blocker\\\":\\\"b\\\""},
    {"abort is asked for once", "{" DELETING "," PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','abortRequested':true"), PLAIN,
     .rule = "phase"},
    {"an abort before the start has a deadline", "{" DELETING_LONG "," PHASE("TargetReady") "}",
     STATE("'targetNodeAddress':'x','abortRequested':true"), PLAIN, .rule = "not-started",
     .reason = "Aborted", .vmi_patch = "Aborted: "},
    {"an abort that came too late", "{" DELETING "," PHASE("Running") "}",
     STATE("'completed':true,'abortRequested':true"), PLAIN, .rule = "phase", .phase = "Succeeded",
     .own_patch = "Succeeded"},
    {"aborted by the source", "{" DELETING "," PHASE("Running") "}",
     STATE("'completed':true,'failed':true,'abortRequested':true,'abortStatus':'Succeeded',"
           "'failureReason':'operation aborted'"),
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "Aborted",
     .own_patch = "operation aborted"},
    {"failed by the source", "{" PHASE("Running") "}",
     STATE("'completed':true,'failed':true,'failureReason':'no route'"), PLAIN,
     .rule = "failed-on-nodes", .phase = "Failed", .reason = "LibvirtError",
     .own_patch = "no route"},
    {"failed with a code", "{" PHASE("Running") "}",
     STATE("'completed':true,'failed':true,'failureReason':'NotConverging: too dirty'"), PLAIN,
     .rule = "failed-on-nodes", .phase = "Failed", .reason = "NotConverging",
     .own_patch = "NotConverging: too dirty"},
    {"failed, and the node says why as a code", "{" PHASE("Running") "}",
     "{'metadata':{'annotations':{'ferry.io/failure':'mig-1/TargetLost'}},'status':{"
     "'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b','completed':true,"
     "'failed':true,'failureReason':'Aborted: so it seems'}}}",
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "TargetLost",
     .own_patch = "\"type\":\"migrationFailed\",\"status\":\"True\",\"reason\":\"TargetLost\""},
    {"a code of an older move says nothing", "{" PHASE("Running") "}",
     "{'metadata':{'annotations':{'ferry.io/failure':'mig-0/TargetLost'}},'status':{"
     "'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b','completed':true,"
     "'failed':true,'failureReason':'Stuck: no bytes'}}}",
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "Stuck",
     .own_patch = "\"reason\":\"Stuck\""},
    {"a code that nobody knows is none", "{" PHASE("Running") "}",
     "{'metadata':{'annotations':{'ferry.io/failure':'mig-1/Whatever'}},'status':{"
     "'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b','completed':true,"
     "'failed':true,'failureReason':'who knows'}}}",
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "LibvirtError",
     .own_patch = "\"reason\":\"LibvirtError\""},
    {"what the controller ends on the nodes carries its code", "{" PHASE("PreparingTarget") "}",
     STATE("'targetPod':'x'"), .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "/metadata/annotations/ferry.io~1failure\",\"value\":\"mig-1/TargetLost\"",
     .confirm = true},
    {"target pod gone before hand-off", "{" PHASE("Scheduling") "}", PLAIN, .rule = "target-lost",
     .phase = "Failed", .reason = "TargetLost", .own_patch = "is gone", .confirm = true},
    {"target pod ended before hand-off", "{" PHASE("Scheduling") "}", PLAIN,
     "{'status':{'phase':'Failed','message':'no bwrap'}}", .rule = "target-lost", .phase = "Failed",
     .reason = "TargetLost", .own_patch = "ended: no bwrap", .confirm = true},
    /* A pod that is being deleted does not come back; on a dead node it is never gone either. */
    {"target pod is being deleted before hand-off", "{" PHASE("Scheduling") "}", PLAIN,
     "{" DELETING ",'status':{'phase':'Pending','containerStatuses':null}}", .rule = "target-lost",
     .phase = "Failed", .reason = "TargetLost", .own_patch = "is being deleted", .confirm = true},
    {"target pod is being deleted when scheduled", "{" PHASE("Scheduled") "}", PLAIN,
     "{" DELETING "}", .rule = "target-lost", .phase = "Failed", .reason = "TargetLost",
     .own_patch = "is being deleted", .confirm = true},
    {"target pod is being deleted after hand-off: it may still finish", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), "{" DELETING "}", .rule = "phase"},
    {"target pod runs, but not its container: the pending deadline counts",
     "{" PHASE("Scheduling") "}", PLAIN,
     OLD("'status':{'phase':'Running','containerStatuses':[{'name':'compute','state':{'waiting':{"
         "}}}]}}"),
     .rule = "target-pod-pending", .phase = "Failed", .reason = "PendingTimeout",
     .own_patch = "did not start in time", .deletes_target = true},
    {"target pod runs, its container not yet: it waits with a deadline",
     "{" PHASE("Scheduling") "}", PLAIN,
     OLDISH("'status':{'phase':'Running','containerStatuses':[{'name':'compute','state':{'waiting':"
            "{}}}]}}"),
     .rule = "target-pod-pending", .reason = "TargetPodPending",
     .own_patch = "the target pod is starting"},
    {"98: target pod gone after hand-off: the nodes are told", "{" PHASE("PreparingTarget") "}",
     STATE("'targetPod':'x'"), .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "\"/status/migrationState/failed\"", .confirm = true},
    {"target pod ended while running", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), "{'status':{'phase':'Failed'}}",
     .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "\"op\":\"test\",\"path\":\"/status/migrationState\""},
    {"102: failed before hand-off, its pod gone: only the finalizer", "{" PHASE("Failed") "}",
     PLAIN, .rule = "finished", .own_patch = "/metadata/finalizers"},
    {"103: target pod ended after the ports were published: they stay",
     "{" PHASE("TargetReady") "}",
     STATE("'targetNodeAddress':'x','targetDirectMigrationNodePorts':{'40000':0}"),
     "{'status':{'phase':'Failed'}}", .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "\"/status/migrationState/failed\"", .unwanted = "remove"},
    {"104: target pod ended after the start: the end time is added", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), "{'status':{'phase':'Failed'}}",
     .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "/status/migrationState/endTimestamp",
     .unwanted = "/status/migrationState/startTimestamp"},
    {"91: finished: a newer move's state is not copied",
     "{'status':{'phase':'Failed','migrationState':{'migrationUid':'mig-1','failureReason':"
     "'old'}}}",
     OTHER_STATE(",'mode':'PostCopy'"), .rule = "finished", .own_patch = "/metadata/finalizers",
     .unwanted = "migrationState"},
    {"target pod gone, and the source knows", "{" PHASE("Running") "}",
     STATE("'completed':true,'failed':true,'failureReason':'TargetLost: x'"),
     .rule = "failed-on-nodes", .phase = "Failed", .reason = "TargetLost",
     .own_patch = "TargetLost: x"},
    {"state cleared", "{" PHASE("Running") "}", PLAIN, PLAIN, .rule = "state-taken",
     .phase = "Failed", .reason = "Aborted", .own_patch = "cleared", .confirm = true},
    {"state taken over", "{" PHASE("TargetReady") "}", OTHER_STATE(), PLAIN, .rule = "state-taken",
     .phase = "Failed", .reason = "Aborted", .own_patch = "taken over", .confirm = true},
    /* nodes that are taken away */
    {"source node removed", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .source_gone = true,
     .rule = "node-gone", .reason = "SourceLost", .vmi_patch = "the guest is lost",
     .confirm = true},
    {"target node removed in pre-copy: the guest stays", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','mode':'PreCopy'"), PLAIN, .target_gone = true,
     .rule = "node-gone", .reason = "TargetLost", .vmi_patch = "node b was removed\"",
     .confirm = true},
    {"target node removed in post-copy", "{" PHASE("Running") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z','mode':'PostCopy'"), PLAIN, .target_gone = true,
     .rule = "node-gone", .reason = "TargetLost", .vmi_patch = "the guest is lost",
     .confirm = true},
    {"node removed after the end", "{" PHASE("Running") "}", STATE("'completed':true"), PLAIN,
     .source_gone = true, .rule = "phase", .phase = "Succeeded", .own_patch = "Succeeded"},
    /* deadlines */
    {"28: no node for too long", "{" PHASE("Scheduling") "}", PLAIN,
     OLDISH("'spec':{'nodeName':null},'status':{'phase':'Pending','conditions':[{'type':"
            "'PodScheduled','status':'False','reason':'Unschedulable','message':'0/1 nodes'}]}}"),
     .rule = "target-pod-pending", .phase = "Failed", .reason = "UnschedulableTimeout",
     .deletes_target = true, .own_patch = "0/1 nodes"},
    {"32: no node for too long, but more was allowed",
     "{'metadata':{'annotations':{'kubevirt.io/"
     "migrationUnschedulablePodTimeoutSeconds':'700'}}," PHASE("Scheduling") "}",
     PLAIN,
     OLDISH("'spec':{'nodeName':null},'status':{'phase':'Pending','conditions':[{'type':"
            "'PodScheduled','status':'False','message':'0/1 nodes'}]}}"),
     .rule = "target-pod-pending", .reason = "Unschedulable", .own_patch = "0/1 nodes",
     .again_s = 340},
    {"a timeout that is no number is not used",
     "{'metadata':{'annotations':{'kubevirt.io/"
     "migrationUnschedulablePodTimeoutSeconds':'x'}}," PHASE("Scheduling") "}",
     PLAIN, HOMELESS, .rule = "target-pod-pending", .reason = "Unschedulable",
     .own_patch = "0/1 nodes", .again_s = 240},
    {"pending for too long", "{" PHASE("Scheduling") "}", PLAIN,
     OLD("'status':{'phase':'Pending'}}"), .rule = "target-pod-pending", .phase = "Failed",
     .reason = "PendingTimeout", .deletes_target = true, .own_patch = "in time"},
    {"prepare takes too long", "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:57:59Z") "}",
     STATE("'targetPod':'x'"), PLAIN, .rule = "not-started", .reason = "PrepareTimeout",
     .vmi_patch = "PrepareTimeout: "},
    {"connecting takes too long", "{" PHASE_SINCE("TargetReady", "2025-12-31T23:57:59Z") "}",
     STATE("'targetNodeAddress':'x'"), PLAIN, .rule = "not-started", .reason = "ConnectTimeout",
     .vmi_patch = "ferry.io~1unconfirmed"},
    {"27: no node for 300 s in Pending", "{" PHASE("Pending") "}", PLAIN, AGED("23:55:00", NO_NODE),
     .rule = "target-pod-pending", .phase = "Failed", .reason = "UnschedulableTimeout",
     .deletes_target = true, .own_patch = "0/1 nodes", .event = "migrationTargetPodUnschedulable"},
    {"27: ... and the deletion is told", "{" PHASE("Pending") "}", PLAIN, AGED("23:55:00", NO_NODE),
     .rule = "target-pod-pending", .phase = "Failed", .reason = "UnschedulableTimeout",
     .deletes_target = true, .own_patch = "0/1 nodes", .event = "SuccessfulDelete"},
    {"30: no node for 290 s in Pending", "{" PHASE("Pending") "}", PLAIN, AGED("23:55:10", NO_NODE),
     .rule = "phase", .phase = "Scheduling", .own_patch = "Scheduling", .again_s = 10},
    {"31: no node for the 10 s that were allowed",
     "{" ALLOWED("UnschedulablePod", "10") "," PHASE("Pending") "}", PLAIN,
     AGED("23:59:50", NO_NODE), .rule = "target-pod-pending", .phase = "Failed",
     .reason = "UnschedulableTimeout", .deletes_target = true, .own_patch = "0/1 nodes"},
    {"32: no node for 8 s, 11 s were allowed",
     "{" ALLOWED("UnschedulablePod", "11") "," PHASE("Pending") "}", PLAIN,
     AGED("23:59:52", NO_NODE), .rule = "phase", .phase = "Scheduling", .own_patch = "Scheduling",
     .again_s = 3},
    {"34: pending for 900 s in Pending", "{" PHASE("Pending") "}", PLAIN,
     AGED("23:45:00", "'status':{'phase':'Pending'}"), .rule = "target-pod-pending",
     .phase = "Failed", .reason = "PendingTimeout", .deletes_target = true, .own_patch = "in time",
     .event = "SuccessfulDelete"},
    {"36: pending for 900 s in Scheduled", "{" PHASE_SINCE("Scheduled", "2025-12-31T23:59:00Z") "}",
     PLAIN, AGED("23:45:00", "'status':{'phase':'Pending'}"), .rule = "phase",
     .reason = "TargetPodPending", .own_patch = "not ready any more"},
    {"37: pending for 890 s in Pending", "{" PHASE("Pending") "}", PLAIN,
     AGED("23:45:10", "'status':{'phase':'Pending'}"), .rule = "phase", .phase = "Scheduling",
     .own_patch = "Scheduling", .again_s = 10},
    {"38: pending for the 10 s that were allowed",
     "{" ALLOWED("PendingPod", "10") "," PHASE("Pending") "}", PLAIN,
     AGED("23:59:50", "'status':{'phase':'Pending'}"), .rule = "target-pod-pending",
     .phase = "Failed", .reason = "PendingTimeout", .deletes_target = true, .own_patch = "in time"},
    {"39: pending for 8 s, 11 s were allowed",
     "{" ALLOWED("PendingPod", "11") "," PHASE("Pending") "}", PLAIN,
     AGED("23:59:52", "'status':{'phase':'Pending'}"), .rule = "phase", .phase = "Scheduling",
     .own_patch = "Scheduling", .again_s = 3},
    {"scheduling: no node matches at all", "{" PHASE("Scheduling") "}", PLAIN,
     AGED("23:59:50",
          "'spec':{'nodeName':null},'status':{'phase':'Pending','conditions':[{'type':"
          "'PodScheduled','status':'False','message':'0/3 nodes are available: 1 node(s) "
          "didn\\u0027t "
          "match pod anti-affinity rules, 2 node(s) didn\\u0027t match Pod\\u0027s node "
          "affinity/selector.'}]}"),
     .rule = "target-pod-pending", .reason = "NeverSchedulable", .own_patch = "affinity/selector"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

/* What ends a migration ends it in every phase. */
static void test_endings(void **state)
{
    static const struct {
        const char *name, *phase, *vmi, *target, *reason;
    } cases[] = {
        {"60: VMI ends while new", "", "{" PHASE("Succeeded") "}", NULL, "SourceLost"},
        {"61: VMI ends while Pending", "Pending", "{" PHASE("Succeeded") "}", NULL, "SourceLost"},
        {"62: VMI ends while Scheduled", "Scheduled", "{" PHASE("Failed") "}", PLAIN, "SourceLost"},
        {"63: VMI ends while Scheduling", "Scheduling", "{" PHASE("Failed") "}", PLAIN,
         "SourceLost"},
        {"64: VMI ends while TargetReady", "TargetReady", "{" PHASE("Failed") "}", PLAIN,
         "SourceLost"},
        {"66: target pod ends while new", "", PLAIN, "{" PHASE("Failed") "}", "TargetLost"},
        {"67: target pod ends while Pending", "Pending", PLAIN, "{" PHASE("Failed") "}",
         "TargetLost"},
        {"68: target pod ends while Scheduled", "Scheduled", PLAIN, "{" PHASE("Succeeded") "}",
         "TargetLost"},
        {"69: target pod ends while Scheduling", "Scheduling", PLAIN, "{" PHASE("Failed") "}",
         "TargetLost"},
        {"70, 99: target pod ends while TargetReady: said on the VMI", "TargetReady",
         STATE("'targetNodeAddress':'x'"), "{" PHASE("Failed") "}", "TargetLost"},
        {"72: failed on the VMI while new", "", STATE("'failed':true"), NULL, "LibvirtError"},
        {"73: failed on the VMI while Pending", "Pending", STATE("'failed':true"), NULL,
         "LibvirtError"},
        {"74: failed on the VMI while Scheduled", "Scheduled", STATE("'failed':true"), PLAIN,
         "LibvirtError"},
        {"75: failed on the VMI while Scheduling", "Scheduling", STATE("'failed':true"), PLAIN,
         "LibvirtError"},
        {"76: failed on the VMI while TargetReady", "TargetReady", STATE("'failed':true"), PLAIN,
         "LibvirtError"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char merge[128];

        snprintf(merge, sizeof(merge), "{'status':{'phase':'%s'}}", cases[i].phase);
        struct objects o = {
            .migration =
                make_object(API_KIND_MIGRATION, MIGRATION, cases[i].phase[0] ? merge : "{}"),
            .vmi = make_object(API_KIND_VMI, VMI, cases[i].vmi),
            .target = cases[i].target ? make_object(API_KIND_POD, TARGET, cases[i].target) : NULL,
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        const struct api_object *all[] = {o.migration};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .target_pod = o.target,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        migration_decide(&view, NOW_MS, &p);
        bool on_vmi = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI) != NULL;
        if (!has_event(&p, "FailedMigration")) {
            fail_msg("%s: no event", cases[i].name);
        }
        if (!ferry_streq(p.reason, cases[i].reason) ||
            (!on_vmi && !ferry_streq(p.phase, "Failed"))) {
            fail_msg("%s: rule %s phase %s reason %s", cases[i].name, p.rule,
                     p.phase ? p.phase : "-", p.reason ? p.reason : "-");
        }
        objects_done(&o);
    }
}

/* 610: no other node has the CPU that the guest has seen: said on the VMI */
static void test_cpu_that_no_node_has(void **state)
{
    static const char *const MODEL = "{'metadata':{'labels':{"
                                     "'cpu-model-migration.node.kubevirt.io/Milan':'true',"
                                     "'cpu-feature.node.kubevirt.io/sse':'true'}}}";
    static const struct {
        const char *name, *selector, *b, *c; /* the node selector of the pod; merges of nodes */
        bool told;
    } cases[] = {
        {"nobody", "'cpu-model-migration.node.kubevirt.io/Milan':'true'", PLAIN, PLAIN, true},
        {"another", "'cpu-model-migration.node.kubevirt.io/Milan':'true'", PLAIN, MODEL, false},
        {"the model and a feature",
         "'cpu-model-migration.node.kubevirt.io/Milan':'true','cpu-feature.node.kubevirt.io/sse':"
         "'true'",
         PLAIN, MODEL, false},
        {"the model without a feature",
         "'cpu-model-migration.node.kubevirt.io/Milan':'true','cpu-feature.node.kubevirt.io/avx':"
         "'true'",
         MODEL, MODEL, true},
        {"another value", "'cpu-feature.node.kubevirt.io/sse':'false'", MODEL, MODEL, true},
        {"no CPU is asked for", "'disk':'fast'", PLAIN, PLAIN, false},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *pod = ferry_asprintf(
            "{'spec':{'nodeName':null,'nodeSelector':{%s}},'status':{'phase':'Pending','conditions'"
            ":[{'type':'PodScheduled','status':'False','message':'0/3 nodes'}]}}",
            cases[i].selector);
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Scheduling") "}"),
            .vmi = make_object(API_KIND_VMI, VMI, NULL),
            .target = make_object(API_KIND_POD, TARGET, pod),
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        api_cleanup_object struct api_object *a =
            make_object(API_KIND_NODE, "{'metadata':{'name':'a'}}", MODEL);
        api_cleanup_object struct api_object *b =
            make_object(API_KIND_NODE, "{'metadata':{'name':'b'}}", cases[i].b);
        api_cleanup_object struct api_object *c =
            make_object(API_KIND_NODE, "{'metadata':{'name':'c'}}", cases[i].c);
        const struct api_object *all[] = {o.migration}, *nodes[] = {a, b, c};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .target_pod = o.target,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .nodes = nodes,
                                      .n_nodes = 3,
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        migration_decide(&view, NOW_MS, &p);
        assert_true(has_event(&p, "migrationTargetPodUnschedulable"));
        if (has_event(&p, "NoSuitableNodesForHostModelMigration") != cases[i].told) {
            fail_msg("%s: told %d", cases[i].name, !cases[i].told);
        }
        ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
        assert_int_equal(strstr(text, "no other node has its CPU: b lacks ") != NULL,
                         cases[i].told);
        objects_done(&o);
    }
}

/* Hours. */
#define H(h) ((h)*INT64_C(3600000))

/* The clock is set by an hour while the target prepares itself: nothing ends. */
static void test_a_set_clock_ends_nothing(void **state)
{
    static const int64_t by[] = {0, H(1), -H(1)};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(by); i++) {
        struct objects o = {
            .migration =
                make_object(API_KIND_MIGRATION, MIGRATION,
                            "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:50Z") "}"),
            .vmi = make_object(API_KIND_VMI, VMI, STATE("'targetPod':'x'")),
            .target = make_object(API_KIND_POD, TARGET, NULL),
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        const struct api_object *all[] = {o.migration};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .target_pod = o.target,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan early = {0}, late = {0};

        clock_steps_observe(&view.clock, NOW_MS, 1);
        clock_steps_observe(&view.clock, NOW_MS + by[i], 1);
        migration_decide(&view, NOW_MS + by[i], &early);
        assert_null(plan_find(&early, PLAN_PATCH_STATUS, API_KIND_VMI));
        migration_decide(&view, NOW_MS + by[i] + 111000, &late);
        assert_string_equal(late.reason, "PrepareTimeout");
        objects_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_cpu_that_no_node_has),
        cmocka_unit_test(test_a_set_clock_ends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
