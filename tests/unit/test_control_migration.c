#include "lib/objects.h"

#include "base/clock.h"
#include "control/migration_decide.h"
#include "control/names.h"

/* 2026-01-01T00:00:00Z; objects are made a minute earlier. */
#define NOW_MS INT64_C(1767225600000)

static const char MIGRATION[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstanceMigration','metadata':{"
    "'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7',"
    "'creationTimestamp':'2025-12-31T23:59:00Z','labels':{'kubevirt.io/vmi-name':'web'},"
    "'finalizers':['kubevirt.io/migrationJobFinalize']},'spec':{'vmiName':'web'}}";

static const char VMI[] =
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'web',"
    "'namespace':'ns','uid':'vmi-1','resourceVersion':'5','labels':{'kubevirt.io/nodeName':'a'}},"
    "'spec':{'domain':{'memory':{'guest':'64Mi'}}},'status':{'phase':'Running','nodeName':'a'}}";

static const char SOURCE[] =
    "{'metadata':{'name':'virt-launcher-web-src','namespace':'ns','uid':'pod-a',"
    "'resourceVersion':'3','labels':{'kubevirt.io/created-by':'vmi-1'}},'spec':{'nodeName':'a'},"
    "'status':{'phase':'Running','containerStatuses':[{'name':'compute','ready':true,'state':{"
    "'running':{}}}]}}";

static const char TARGET[] =
    "{'metadata':{'name':'virt-launcher-web-dst','namespace':'ns','uid':'pod-b',"
    "'resourceVersion':'4','creationTimestamp':'2025-12-31T23:59:00Z','labels':{"
    "'kubevirt.io/created-by':'vmi-1','kubevirt.io/migrationJobUID':'mig-1'}},'spec':{'nodeName':"
    "'b'},'status':{'phase':'Running','containerStatuses':[{'name':'compute','ready':true,'state':"
    "{'running':{}}}]}}";

/* Pieces of merges. */
#define PHASE(p) "'status':{'phase':'" p "'}"
#define PHASE_SINCE(p, t)                                                                          \
    "'status':{'phase':'" p "','phaseTransitionTimestamps':[{'phase':'" p                          \
    "','phaseTransitionTimestamp':'" t "'}]}"
#define DELETING "'metadata':{'deletionTimestamp':'2025-12-31T23:59:58Z'}"
#define DELETING_LONG "'metadata':{'deletionTimestamp':'2025-12-31T23:59:00Z'}"
#define STATE(more)                                                                                \
    "{'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a','targetNode':'b'," more  \
    "}}}"
#define OTHER_STATE(more) "{'status':{'migrationState':{'migrationUid':'mig-0'" more "}}}"
#define HOMELESS                                                                                   \
    "{'spec':{'nodeName':null},'status':{'phase':'Pending','containerStatuses':null,'conditions':" \
    "[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'0/1 nodes'}]}}"
#define STARTING "{'status':{'phase':'Pending','containerStatuses':null}}"
#define AGED(time, pod) "{'metadata':{'creationTimestamp':'2025-12-31T" time "Z'}," pod "}"
#define NO_NODE                                                                                    \
    "'spec':{'nodeName':null},'status':{'phase':'Pending','conditions':[{'type':'PodScheduled',"   \
    "'status':'False','message':'0/1 nodes'}]}"
#define ALLOWED(what, seconds)                                                                     \
    "'metadata':{'annotations':{'kubevirt.io/migration" what "TimeoutSeconds':'" seconds "'}}"
#define OLD(pod) "{'metadata':{'creationTimestamp':'2025-12-31T23:40:00Z'}," pod
#define OLDISH(pod) "{'metadata':{'creationTimestamp':'2025-12-31T23:54:00Z'}," pod

/* An older, automatic one that ended 10 s ago. */
#define AUTOMATIC(annotation, phase)                                                               \
    "{'metadata':{'uid':'mig-0','creationTimestamp':'2025-12-31T23:58:00Z','annotations':{"        \
    "'kubevirt.io/" annotation "':'a'}},'status':{'phase':'" phase                                 \
    "','phaseTransitionTimestamps':[{'phase':'" phase "','phaseTransitionTimestamp':"              \
    "'2025-12-31T23:59:50Z'}]}}"

#define DONE_WITH(condition)                                                                       \
    "{'status':{'conditions':[" condition "],'migrationState':{'migrationUid':'mig-1',"            \
    "'completed':true,'endTimestamp':'2025-12-31T23:59:50Z'}}}"

#define GONE "-"
#define PLAIN "{}"

static const struct migration_case_row {
    const char *name;
    const char *migration, *vmi, *target; /* merges; NULL target = no pod */
    const char *sibling;                  /* merge on a second migration, or NULL */
    const char *source;                   /* NULL = there; GONE = none */
    bool full;                            /* the limits say no */
    bool source_gone, target_gone;        /* the Node objects */
    const char *enter_reason;             /* why the target node takes no more */
    int source_silent_s, target_silent_s; /* how long the nodes have not reported; 0 = they do */
    int clock_set_s;                      /* by how much the clock was set, a second ago */
    /* expected */
    const char *rule, *phase, *reason;
    const char *vmi_patch, *own_patch; /* text in a patch of VMI, of the migration; NULL = none */
    bool creates, deletes_target, confirm;
    int64_t again_s;      /* 0 = do not care */
    const char *event;    /* one that must be there, or NULL */
    const char *unwanted; /* text that no patch has, or NULL */
} rows[] = {
    /* life */
    {"new: finalizer and label first", "{'metadata':{'finalizers':null,'labels':null}}", PLAIN,
     .rule = "phase", .own_patch = "migrationJobFinalize"},
    {"new: need not wait", PLAIN, PLAIN, .rule = "phase", .creates = true},
    {"new: becomes Pending when it has to wait", PLAIN, PLAIN, .full = true, .rule = "phase",
     .phase = "Pending", .own_patch = "phaseTransitionTimestamps"},
    {"new: its pod starts", PLAIN, PLAIN, STARTING, .rule = "phase", .phase = "Scheduling",
     .own_patch = "{\"phase\":\"Pending\""},
    {"new: its pod is ready: handed over at once", PLAIN, PLAIN, PLAIN, .rule = "phase",
     .vmi_patch = "\"migrationUid\":\"mig-1\""},
    {"new: all was over before it was looked at: every phase is written down", PLAIN,
     STATE("'completed':true"), PLAIN, .rule = "phase", .phase = "Succeeded",
     .own_patch = "{\"phase\":\"PreparingTarget\""},
    {"new: another one is under way", PLAIN, OTHER_STATE(),
     .sibling = "{'metadata':{'uid':'mig-0'},'status':{'phase':'Running'}}", .rule = "phase",
     .phase = "Failed", .reason = "SourceBusy", .own_patch = "another migration"},
    {"new: the other one is over", PLAIN, OTHER_STATE(),
     .sibling = "{'metadata':{'uid':'mig-0'},'status':{'phase':'Failed'}}", .rule = "phase",
     .phase = "Pending", .own_patch = "Pending"},
    {"new: the other one does not exist any more, but its state is not completed", PLAIN,
     OTHER_STATE(), .rule = "phase", .phase = "Pending", .own_patch = "Pending"},
    {"pending: makes the target pod", "{" PHASE("Pending") "}", PLAIN, .rule = "phase",
     .creates = true},
    {"pending: the note of waiting stays until the pod is there",
     "{'metadata':{'annotations':{'ferry.io/queue':'x'}}," PHASE("Pending") "}", PLAIN,
     .rule = "phase", .creates = true},
    {"141: pending: limits full", "{" PHASE("Pending") "}", PLAIN, .full = true, .rule = "phase",
     .reason = "ClusterLimit", .own_patch = "ClusterLimit", .again_s = 5},
    {"pending: limits full, user's priority looks sooner",
     "{'spec':{'priority':'user-triggered'}," PHASE("Pending") "}", PLAIN, .full = true,
     .rule = "phase", .reason = "ClusterLimit", .own_patch = "ClusterLimit", .again_s = 3},
    {"pending: limits full, critical looks soonest",
     "{'spec':{'priority':'system-critical'}," PHASE("Pending") "}", PLAIN, .full = true,
     .rule = "phase", .reason = "ClusterLimit", .own_patch = "ClusterLimit", .again_s = 1},
    {"pending: the same note is not written again",
     "{'metadata':{'annotations':{'ferry.io/queue':'{\\'reason\\':\\'SourceBusy\\',\\'message\\':"
     "\\'the VM does not run\\',\\'blocker\\':\\'web\\',\\'position\\':0}'}}," PHASE("Pending") "}",
     "{'status':{'phase':'Scheduled'}}", .rule = "phase", .reason = "SourceBusy"},
    {"pending: the VM does not run yet", "{" PHASE("Pending") "}",
     "{'status':{'phase':'Scheduled'}}", .rule = "phase", .reason = "SourceBusy",
     .own_patch = "does not run"},
    {"pending: no pod of the VM", "{" PHASE("Pending") "}", PLAIN, .source = GONE, .rule = "phase",
     .reason = "SourceBusy", .own_patch = "not known"},
    {"pending: an older one first", "{" PHASE("Pending") "}", PLAIN,
     .sibling = "{'metadata':{'uid':'mig-0','creationTimestamp':'2025-12-31T23:00:00Z'},"
                "'status':{'phase':'Pending'}}",
     .rule = "phase", .reason = "SourceBusy", .own_patch = "older"},
    {"pending: a younger one that already runs goes first", "{" PHASE("Pending") "}", PLAIN,
     .sibling = "{'metadata':{'uid':'mig-2','creationTimestamp':'2025-12-31T23:59:30Z'},"
                "'status':{'phase':'Scheduling'}}",
     .rule = "phase", .reason = "SourceBusy", .own_patch = "older"},
    {"pending: a younger one waits", "{" PHASE("Pending") "}", PLAIN,
     .sibling = "{'metadata':{'uid':'mig-2','creationTimestamp':'2025-12-31T23:59:30Z'},"
                "'status':{'phase':'Pending'}}",
     .rule = "phase", .creates = true},
    {"pending: the VM cannot move", "{" PHASE("Pending") "}",
     "{'status':{'conditions':[{'type':'LiveMigratable','status':'False','reason':"
     "'DisksNotLiveMigratable','message':'local disk'}]}}",
     .rule = "phase", .phase = "Failed", .reason = "DeviceNotMigratable",
     .own_patch = "DisksNotLiveMigratable: local disk"},
    {"26: pending: with a pod becomes Scheduling", "{" PHASE("Pending") "}", PLAIN, STARTING,
     .rule = "phase", .phase = "Scheduling", .own_patch = "virt-launcher-web-src"},
    {"33: scheduling: the pod has no node", "{" PHASE("Scheduling") "}", PLAIN, HOMELESS,
     .rule = "target-pod-pending", .reason = "Unschedulable", .own_patch = "0/1 nodes",
     .again_s = 240},
    {"40: scheduling: the pod starts", "{" PHASE("Scheduling") "}", PLAIN, STARTING,
     .rule = "target-pod-pending", .reason = "TargetPodPending", .own_patch = "starting",
     .again_s = 840},
    {"scheduling: pod ready: handed over at once", "{" PHASE("Scheduling") "}", PLAIN, PLAIN,
     .rule = "phase", .vmi_patch = "\"migrationUid\":\"mig-1\""},
    {"scheduling: pod ready, the target node takes no more", "{" PHASE("Scheduling") "}", PLAIN,
     PLAIN, .enter_reason = "InboundLimit", .rule = "phase", .phase = "Scheduled",
     .own_patch = "Scheduled"},
    {"scheduling: pod ready, the VM does not run", "{" PHASE("Scheduling") "}",
     "{'status':{'phase':'Scheduled'}}", PLAIN, .rule = "phase", .phase = "Scheduled",
     .own_patch = "Scheduled"},
    {"scheduling: handed over", "{" PHASE("Scheduling") "}", STATE("'targetPod':'x'"), PLAIN,
     .rule = "phase", .phase = "PreparingTarget", .own_patch = "{\"phase\":\"Scheduled\""},
    {"scheduling: handed over, and the target pod is gone", "{" PHASE("Scheduling") "}",
     STATE("'targetPod':'x'"), .rule = "target-lost", .reason = "TargetLost",
     .vmi_patch = "TargetLost", .confirm = true},
    {"scheduling: pod being deleted is not ready", "{" PHASE("Scheduling") "}", PLAIN,
     "{'metadata':{'deletionTimestamp':'2025-12-31T23:59:59Z'}}", .rule = "phase"},
    {"80: scheduling: running pod without its container is not ready", "{" PHASE("Scheduling") "}",
     PLAIN, "{'status':{'containerStatuses':null}}", .rule = "phase"},
    {"scheduled: hands over", "{" PHASE_SINCE("Scheduled", "2025-12-31T23:59:50Z") "}", PLAIN,
     PLAIN, .rule = "phase", .vmi_patch = "\"migrationUid\":\"mig-1\""},
    {"84: scheduled: hands over with the configuration frozen", "{" PHASE("Scheduled") "}",
     OTHER_STATE(",'completed':true"), PLAIN, .rule = "phase",
     .vmi_patch = "\"completionTimeoutPerGiB\":150"},
    {"scheduled: labels for the target's handler", "{" PHASE("Scheduled") "}", PLAIN, PLAIN,
     .rule = "phase", .vmi_patch = "/metadata/labels/kubevirt.io~1migrationTargetNodeName"},
    {"scheduled: labels also where an older move has left its label", "{" PHASE("Scheduled") "}",
     "{'metadata':{'labels':{'kubevirt.io/migrationTargetNodeName':'b'}}}", PLAIN, .rule = "phase",
     .vmi_patch = "/metadata/labels/kubevirt.io~1migrationTargetNodeName"},
    {"scheduled: the state is tested as a whole", "{" PHASE("Scheduled") "}",
     OTHER_STATE(",'completed':true"), PLAIN, .rule = "phase",
     .vmi_patch = "{\"op\":\"test\",\"path\":\"/status/migrationState\",\"value\":{"
                  "\"migrationUid\":\"mig-0\",\"completed\":true}}"},
    {"scheduled: not while the VM is not running", "{" PHASE("Scheduled") "}",
     "{'status':{'phase':'Scheduled'}}", PLAIN, .rule = "phase", .reason = "SourceBusy",
     .own_patch = "cannot be handed over"},
    {"scheduled: not while it is deleted", "{" PHASE("Scheduled") "}", "{" DELETING "}", PLAIN,
     .rule = "phase", .reason = "SourceBusy", .own_patch = "cannot be handed over"},
    {"scheduled: not onto its own node", "{" PHASE("Scheduled") "}", PLAIN,
     "{'spec':{'nodeName':'a'}}", .rule = "phase", .phase = "Failed", .reason = "Unschedulable",
     .deletes_target = true, .own_patch = "own node"},
    {"scheduled: does not wait for ever", "{" PHASE_SINCE("Scheduled", "2025-12-31T23:40:00Z") "}",
     PLAIN, PLAIN, .rule = "phase", .phase = "Failed", .reason = "PendingTimeout",
     .deletes_target = true, .own_patch = "handed over"},
    {"85, 87: scheduled: handed over", "{" PHASE("Scheduled") "}", STATE("'targetPod':'x'"), PLAIN,
     .rule = "phase", .phase = "PreparingTarget", .own_patch = "PreparingTarget"},
    {"preparing: waits with a deadline",
     "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:40Z") "}", STATE("'targetPod':'x'"),
     PLAIN, .rule = "not-started", .reason = "TargetPreparing", .own_patch = "TargetPreparing",
     .again_s = 100},
    {"preparing: a short wait is not written down",
     "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:59Z") "}", STATE("'targetPod':'x'"),
     PLAIN, .rule = "not-started", .again_s = 1},
    {"88: preparing: address published", "{" PHASE("PreparingTarget") "}",
     STATE("'targetNodeAddress':'10.0.0.2'"), PLAIN, .rule = "phase", .phase = "TargetReady",
     .own_patch = "TargetReady"},
    {"ready: waits with a deadline", "{" PHASE_SINCE("TargetReady", "2025-12-31T23:59:00Z") "}",
     STATE("'targetNodeAddress':'10.0.0.2'"), PLAIN, .rule = "not-started", .reason = "SourceBusy",
     .own_patch = "\\\"blocker\\\":\\\"a\\\"", .again_s = 60},
    {"ready: started", "{" PHASE("TargetReady") "}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .rule = "phase", .phase = "Running",
     .own_patch = "Running"},
    {"ready: over before the start was seen", "{" PHASE("TargetReady") "}",
     STATE("'completed':true"), PLAIN, .rule = "phase", .phase = "Succeeded",
     .own_patch = "{\"phase\":\"Running\""},
    {"running: the target publishes anew: it stays Running", "{" PHASE("Running") "}",
     STATE("'targetNodeAddress':'x'"), PLAIN, .rule = "phase"},
    {"running: goes on", "{" PHASE("Running") "}", STATE("'startTimestamp':'2025-12-31T23:59:59Z'"),
     PLAIN, .rule = "phase"},
    {"90: running: completed", "{" PHASE("Running") "}", STATE("'completed':true,'mode':'PreCopy'"),
     PLAIN, .rule = "phase", .phase = "Succeeded", .own_patch = "\"mode\":\"PreCopy\""},
    {"86: scheduled: the state is another's",
     "{" PHASE_SINCE("Scheduled", "2025-12-31T23:59:00Z") "}", OTHER_STATE(",'targetNode':'b'"),
     PLAIN, .rule = "phase", .reason = "SourceBusy", .own_patch = "cannot be handed over"},
    {"9: running: completed, memory could not be plugged", "{" PHASE("Running") "}",
     DONE_WITH("{'type':'HotMemoryChange','status':'False','reason':'x'}"), PLAIN, .rule = "phase",
     .phase = "Succeeded", .own_patch = "Succeeded"},
    {"92: running: completed, the CPU change is not in effect", "{" PHASE("Running") "}",
     DONE_WITH("{'type':'HotVCPUChange','status':'True'}"), PLAIN, .rule = "phase", .again_s = 110},
    {"93: running: completed, the memory change is not in effect", "{" PHASE("Running") "}",
     DONE_WITH("{'type':'HotMemoryChange','status':'True'}"), PLAIN, .rule = "phase",
     .again_s = 110},
    {"94: running: completed, neither is in effect", "{" PHASE("Running") "}",
     DONE_WITH("{'type':'HotVCPUChange','status':'True'},{'type':'HotMemoryChange',"
               "'status':'True'}"),
     PLAIN, .rule = "phase", .again_s = 110},
    {"running: completed, the networks are not in order yet", "{" PHASE("Running") "}",
     DONE_WITH("{'type':'MigrationRequired','status':'True'}"), PLAIN, .rule = "phase",
     .again_s = 110},
    {"running: completed long ago, the change will not come", "{" PHASE("Running") "}",
     "{'status':{'conditions':[{'type':'HotVCPUChange','status':'True'}],'migrationState':{"
     "'migrationUid':'mig-1','completed':true,'endTimestamp':'2025-12-31T23:57:59Z'}}}",
     PLAIN, .rule = "phase", .phase = "Succeeded", .own_patch = "Succeeded"},
    {"running: completed, and the guest ended right after", "{" PHASE("Running") "}",
     "{'status':{'phase':'Succeeded','migrationState':{'migrationUid':'mig-1','completed':true}}}",
     "{'status':{'phase':'Succeeded'}}", .rule = "phase", .phase = "Succeeded",
     .own_patch = "Succeeded"},
    {"a phase of somebody else is left alone", "{" PHASE("Synchronizing") "}", PLAIN,
     .target = PLAIN, .rule = ""},

    /* endings */
    {"VMI gone", "{" PHASE("Running") "}", GONE, .rule = "vmi-gone", .phase = "Failed",
     .reason = "SourceLost", .own_patch = "'web'", .confirm = true},
    {"VMI ended", "{" PHASE("Running") "}", "{" PHASE("Failed") "}", PLAIN, .rule = "vmi-finished",
     .phase = "Failed", .reason = "SourceLost", .own_patch = "ended"},
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
    {"target pod gone before hand-off", "{" PHASE("Scheduling") "}", PLAIN, .rule = "target-lost",
     .phase = "Failed", .reason = "TargetLost", .own_patch = "is gone", .confirm = true},
    {"target pod ended before hand-off", "{" PHASE("Scheduling") "}", PLAIN,
     "{'status':{'phase':'Failed','message':'no bwrap'}}", .rule = "target-lost", .phase = "Failed",
     .reason = "TargetLost", .own_patch = "ended: no bwrap", .confirm = true},
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

    /* waiting */
    {"scheduled: the target node takes no more", "{" PHASE("Scheduled") "}", PLAIN, PLAIN,
     .enter_reason = "InboundLimit", .rule = "phase", .reason = "InboundLimit",
     .own_patch = "InboundLimit", .again_s = 5},
    {"132: a failed evacuation holds the next one back",
     "{'metadata':{'annotations':{'kubevirt.io/evacuationMigration':'a'}}," PHASE("Pending") "}",
     PLAIN, .sibling = AUTOMATIC("evacuationMigration", "Failed"), .rule = "phase",
     .reason = "BackOff", .own_patch = "BackOff", .again_s = 10},
    {"133: a failed workload update holds the next one back",
     "{'metadata':{'annotations':{'kubevirt.io/workloadUpdateMigration':''}}," PHASE("Pending") "}",
     PLAIN, .sibling = AUTOMATIC("workloadUpdateMigration", "Failed"), .rule = "phase",
     .reason = "BackOff", .own_patch = "BackOff", .again_s = 10},
    {"134: not a user's move after a failed evacuation", "{" PHASE("Pending") "}", PLAIN,
     .sibling = AUTOMATIC("evacuationMigration", "Failed"), .rule = "phase", .creates = true},
    {"135: not a user's move after a failed workload update", "{" PHASE("Pending") "}", PLAIN,
     .sibling = AUTOMATIC("workloadUpdateMigration", "Failed"), .rule = "phase", .creates = true},
    {"136: not after a success",
     "{'metadata':{'annotations':{'kubevirt.io/evacuationMigration':'a'}}," PHASE("Pending") "}",
     PLAIN, .sibling = AUTOMATIC("evacuationMigration", "Succeeded"), .rule = "phase",
     .creates = true},

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

    /* finished */
    {"succeeded: clean-up", "{" PHASE("Succeeded") "}", STATE("'completed':true"), PLAIN,
     .rule = "finished", .own_patch = "ferry.io~1result"},
    {"failed: the target pod goes", "{" PHASE("Failed") "}", PLAIN, PLAIN, .rule = "finished",
     .deletes_target = true, .own_patch = "/metadata/finalizers"},
    {"100: failed, but the nodes do not know", "{" PHASE("Failed") "}", STATE("'targetPod':'x'"),
     PLAIN, .rule = "finished", .deletes_target = true, .own_patch = "/metadata/finalizers",
     .vmi_patch = "\"/status/migrationState/failed\""},
    {"failed, but the VM is there", "{" PHASE("Failed") "}", "{'status':{'nodeName':'b'}}", PLAIN,
     .rule = "finished", .own_patch = "/metadata/finalizers"},
    {"failed without VMI: the target pod goes", "{" PHASE("Failed") "}", GONE, PLAIN,
     .rule = "finished", .deletes_target = true, .own_patch = "/metadata/finalizers"},
    {"finished and cleaned: nothing", "{'metadata':{'finalizers':null}," PHASE("Succeeded") "}",
     STATE("'completed':true"), PLAIN, .rule = "finished"},
    {"cancelled after its end: only the finalizer goes", "{" DELETING "," PHASE("Succeeded") "}",
     STATE("'completed':true"), PLAIN, .rule = "finished", .own_patch = "/metadata/finalizers"},
};

struct objects {
    struct api_object *migration, *vmi, *target, *source, *sibling;
};

static void objects_done(struct objects *o)
{
    api_object_unref(o->migration);
    api_object_unref(o->vmi);
    api_object_unref(o->target);
    api_object_unref(o->source);
    api_object_unref(o->sibling);
}

/* The text of all patches of a kind in one. */
static char *patches_of(const struct plan *p, enum api_kind kind)
{
    struct ferry_buf b = {0};

    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if ((a->op == PLAN_PATCH || a->op == PLAN_PATCH_STATUS) && a->kind == kind) {
            ferry_buf_puts(&b, a->body);
        }
    }
    return ferry_buf_take(&b);
}

static void check_patch(const char *name, const struct plan *p, const struct api_object *o,
                        enum api_kind kind, const char *want)
{
    ferry_cleanup_free char *text = patches_of(p, kind);

    if ((want && !strstr(text, want)) || (!want && text[0])) {
        fail_msg("%s: patch of kind %d is %s, expected '%s'", name, kind, text[0] ? text : "none",
                 want ? want : "none");
    }
    /* Each patch applies to the object that it was decided on, one after the other. */
    api_cleanup_object struct api_object *now = o ? api_object_ref((struct api_object *)o) : NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if ((a->op == PLAN_PATCH || a->op == PLAN_PATCH_STATUS) && a->kind == kind) {
            struct api_object *next = patched_object(now, a->body, false);

            api_object_unref(now);
            now = next;
        }
    }
}

static bool has_event(const struct plan *p, const char *reason)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->actions[i].op == PLAN_EVENT && strcmp(p->actions[i].event_reason, reason) == 0) {
            return true;
        }
    }
    return false;
}

static void check_row(const struct migration_case_row *r)
{
    bool vmi_gone = strcmp(r->vmi, GONE) == 0;
    struct objects o = {
        .migration = make_object(API_KIND_MIGRATION, MIGRATION, r->migration),
        .vmi = vmi_gone ? NULL : make_object(API_KIND_VMI, VMI, r->vmi),
        .target = r->target ? make_object(API_KIND_POD, TARGET, r->target) : NULL,
        .source = r->source ? NULL : make_object(API_KIND_POD, SOURCE, NULL),
        .sibling = r->sibling ? make_object(API_KIND_MIGRATION, MIGRATION, r->sibling) : NULL,
    };
    const struct api_object *all[] = {o.migration, o.sibling};
    struct migration_view view = {
        .migration = o.migration,
        .vmi = o.vmi,
        .target_pod = o.target,
        .source_pod = o.source,
        .migrations = all,
        .n_migrations = r->sibling ? 2 : 1,
        .limits = {.start = !r->full,
                   .enter = true,
                   .reason = r->full ? "ClusterLimit" : NULL,
                   .position = 1},
        .source_node_gone = r->source_gone,
        .target_node_gone = r->target_gone,
        .source_silent_ms = r->source_silent_s ? NOW_MS - r->source_silent_s * 1000 : 0,
        .target_silent_ms = r->target_silent_s ? NOW_MS - r->target_silent_s * 1000 : 0,
        .settings = &migration_default_settings,
    };
    plan_cleanup struct plan p = {0};

    if (r->enter_reason) {
        view.limits.enter = false;
        view.limits.enter_reason = r->enter_reason;
    }
    if (r->clock_set_s) {
        int64_t by_ms = r->clock_set_s * INT64_C(1000);

        view.steady.steps[view.steady.n_steps++] =
            (struct steady_step){.before_ms = NOW_MS - 1000 - by_ms, .by_ms = by_ms};
    }
    migration_decide(&view, NOW_MS, &p);
    const struct plan_action *deleted = plan_find(&p, PLAN_DELETE, API_KIND_POD);
    if (!ferry_streq(p.rule, r->rule) || !ferry_streq(p.phase, r->phase) ||
        !ferry_streq(p.reason, r->reason)) {
        fail_msg("%s: rule '%s' phase '%s' reason '%s', expected '%s' '%s' '%s'", r->name, p.rule,
                 p.phase ? p.phase : "-", p.reason ? p.reason : "-", r->rule,
                 r->phase ? r->phase : "-", r->reason ? r->reason : "-");
    }
    bool creates = plan_find(&p, PLAN_CREATE, API_KIND_POD) != NULL;
    if (r->creates != creates || r->deletes_target != (deleted != NULL) ||
        r->confirm != p.confirm) {
        fail_msg("%s: creates %d, deletes %d, confirm %d", r->name, creates, deleted != NULL,
                 p.confirm);
    }
    if (deleted) {
        assert_string_equal(deleted->uid, "pod-b");
    }
    if (r->again_s && p.again_ms != r->again_s * 1000) {
        fail_msg("%s: again after %lld ms", r->name, (long long)p.again_ms);
    }
    if (r->event && !has_event(&p, r->event)) {
        fail_msg("%s: no event %s", r->name, r->event);
    }
    for (size_t i = 0; r->unwanted && i < p.n; i++) {
        if (p.actions[i].op != PLAN_EVENT && p.actions[i].body &&
            strstr(p.actions[i].body, r->unwanted)) {
            fail_msg("%s: %s in %s", r->name, r->unwanted, p.actions[i].body);
        }
    }
    check_patch(r->name, &p, o.vmi, API_KIND_VMI, r->vmi_patch);
    check_patch(r->name, &p, o.migration, API_KIND_MIGRATION, r->own_patch);
    objects_done(&o);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

/* A hand-off decided on an old view of the VMI must not go through. */
static void test_hand_off_is_guarded(void **state)
{
    static const char *const changes[] = {
        "{'status':{'nodeName':'c'}}",
        "{'status':{'phase':'Failed'}}",
        "{'metadata':{'uid':'vmi-2'}}",
        "{'metadata':{'resourceVersion':'6'}}",
        "{'metadata':{'resourceVersion':'6'},'status':{'migrationState':{'migrationUid':'mig-9'}}}",
    };
    (void)state;
    struct objects o = {
        .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Scheduled") "}"),
        .vmi = make_object(API_KIND_VMI, VMI, NULL),
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
                                  .limits = {.enter = true},
                                  .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    migration_decide(&view, NOW_MS, &p);
    const struct plan_action *patch = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_VMI);
    assert_non_null(patch);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        api_cleanup_object struct api_object *changed = make_object(API_KIND_VMI, VMI, changes[i]);

        if (patched_object(changed, patch->body, true)) {
            fail_msg("hand-off went through after %s", changes[i]);
        }
    }
    objects_done(&o);
}

static void test_quota(void **state)
{
    (void)state;
    struct objects o = {
        .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Pending") "}"),
        .vmi = make_object(API_KIND_VMI, VMI, NULL),
        .source = make_object(API_KIND_POD, SOURCE, NULL),
    };
    const struct api_object *all[] = {o.migration};
    struct migration_view view = {.migration = o.migration,
                                  .vmi = o.vmi,
                                  .source_pod = o.source,
                                  .migrations = all,
                                  .n_migrations = 1,
                                  .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0}, q = {0};

    assert_false(
        migration_decide_refused(&view, "create pods ns/x: violates PodSecurity", NOW_MS, &q));
    assert_true(
        migration_decide_refused(&view, "pods x is forbidden: exceeded quota: q", NOW_MS, &p));
    ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
    assert_non_null(strstr(text, "migrationRejectedByResourceQuota"));
    assert_non_null(strstr(text, "\\\"reason\\\":\\\"Quota\\\""));
    assert_int_equal(p.again_ms, 30000);
    assert_true(migration_ledger_row(&view, "k", NOW_MS).ready);

    /* Once refused it takes what is left over only. */
    struct api_object *refused = patched_object(
        o.migration, plan_find(&p, PLAN_PATCH_STATUS, API_KIND_MIGRATION)->body, false);
    all[0] = view.migration = refused;
    assert_false(migration_ledger_row(&view, "k", NOW_MS).ready);
    plan_cleanup struct plan waits = {0}, goes = {0};
    migration_decide(&view, NOW_MS, &waits);
    assert_null(plan_find(&waits, PLAN_CREATE, API_KIND_POD));
    view.limits.room = true;
    migration_decide(&view, NOW_MS, &goes);
    assert_non_null(plan_find(&goes, PLAN_CREATE, API_KIND_POD));
    api_object_unref(refused);
    objects_done(&o);
}

/* 15: one that waits and has a target pod has a place */
static void test_pending_with_a_pod_counts(void **state)
{
    static const char *const pods[] = {NULL, STARTING, PLAIN, "{'status':{'phase':'Failed'}}"};
    static const bool active[] = {false, true, true, false};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(pods); i++) {
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Pending") "}"),
            .vmi = make_object(API_KIND_VMI, VMI, NULL),
            .target = pods[i] ? make_object(API_KIND_POD, TARGET, pods[i]) : NULL,
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

        assert_int_equal(migration_ledger_row(&view, "k", NOW_MS).active, active[i]);
        objects_done(&o);
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
        if (!ferry_streq(p.reason, cases[i].reason) ||
            (!on_vmi && !ferry_streq(p.phase, "Failed"))) {
            fail_msg("%s: rule %s phase %s reason %s", cases[i].name, p.rule,
                     p.phase ? p.phase : "-", p.reason ? p.reason : "-");
        }
        objects_done(&o);
    }
}

/* 51, 52, 54, 55, 56: nothing is collected by one that is not over */
static void test_only_finished_ones_collect(void **state)
{
    static const char *const phases[] = {"", "Pending", "PreparingTarget", "TargetReady",
                                         "Running"};
    struct api_object *old[8];
    (void)state;

    for (int i = 0; i < (int)COUNT_OF(old); i++) {
        char merge[160];

        snprintf(merge, sizeof(merge),
                 "{'metadata':{'name':'o%d','uid':'o%d'},'status':{'phase':'Failed'}}", i, i);
        old[i] = make_object(API_KIND_MIGRATION, MIGRATION, merge);
    }
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        char merge[128];

        snprintf(merge, sizeof(merge), "{'status':{'phase':'%s'}}", phases[i]);
        api_cleanup_object struct api_object *m =
            make_object(API_KIND_MIGRATION, MIGRATION, phases[i][0] ? merge : "{}");
        api_cleanup_object struct api_object *vmi =
            make_object(API_KIND_VMI, VMI, STATE("'targetNodeAddress':'x'"));
        api_cleanup_object struct api_object *target = make_object(API_KIND_POD, TARGET, NULL);
        struct migration_view view = {.migration = m,
                                      .vmi = vmi,
                                      .target_pod = target,
                                      .migrations = (const struct api_object *const *)old,
                                      .n_migrations = COUNT_OF(old),
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        migration_decide(&view, NOW_MS, &p);
        assert_null(plan_find(&p, PLAN_DELETE, API_KIND_MIGRATION));
    }
    for (size_t i = 0; i < COUNT_OF(old); i++) {
        api_object_unref(old[i]);
    }
}

/* 49, 50: five that are over stay, and all that are not */
static void test_old_ones_are_collected(void **state)
{
    (void)state;
    const struct api_object *all[9];
    struct migration_view view = {
        .migrations = all, .n_migrations = COUNT_OF(all), .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    for (int i = 0; i < (int)COUNT_OF(all); i++) {
        char merge[256];

        snprintf(merge, sizeof(merge),
                 "{'metadata':{'name':'m%d','uid':'u%d','finalizers':null,'creationTimestamp':"
                 "'2025-12-31T23:%02d:00Z'},'status':{'phase':'%s'}}",
                 i, i, 50 - i,
                 i == 8  ? "Running"
                 : i % 2 ? "Failed"
                         : "Succeeded");
        all[i] = make_object(API_KIND_MIGRATION, MIGRATION, merge);
    }
    view.migration = all[0];
    migration_decide(&view, NOW_MS, &p);
    /* Eight are finished; the three oldest (created first) go, never the running one. */
    assert_int_equal(p.n, 3);
    for (size_t i = 0; i < p.n; i++) {
        static const char *const names[] = {"m7", "m6", "m5"};

        assert_int_equal(p.actions[i].op, PLAN_DELETE);
        assert_string_equal(p.actions[i].name, names[i]);
    }
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        api_object_unref((struct api_object *)all[i]);
    }
}

static void test_result_text(void **state)
{
    (void)state;
    struct objects o = {
        .migration = make_object(
            API_KIND_MIGRATION, MIGRATION,
            "{'status':{'phase':'Succeeded','migrationState':{'startTimestamp':"
            "'2025-12-31T23:59:00Z','endTimestamp':'2025-12-31T23:59:07Z','completed':true}}}"),
        .vmi = make_object(API_KIND_VMI, VMI, NULL),
    };
    const char *progress = "[{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{"
                           "\"ferry.io/progress\":\"{\\\"uid\\\":\\\"mig-1\\\",\\\"downtimeMs\\\":"
                           "42,\\\"processedBytes\\\":1000}\"}}]";
    struct api_object *with = patched_object(o.vmi, progress, false);
    struct migration_view view = {
        .migration = o.migration, .vmi = with, .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    migration_decide(&view, NOW_MS, &p);
    ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
    assert_non_null(strstr(text, "\\\"totalMs\\\":7000"));
    assert_non_null(strstr(text, "\\\"downtimeMs\\\":42"));
    assert_non_null(strstr(text, "\\\"transferredBytes\\\":1000"));
    api_object_unref(with);
    objects_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_hand_off_is_guarded),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_pending_with_a_pod_counts),
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_only_finished_ones_collect),
        cmocka_unit_test(test_old_ones_are_collected),
        cmocka_unit_test(test_result_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
