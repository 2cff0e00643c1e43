/* A move from its creation to its success, and what it waits for. Numbers of cases are items of
 * docs/conformance.md. */
#include "move_case.h"

static const struct move_row rows[] = {
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
    {"80: scheduling: running pod without its container is not ready", "{" PHASE("Scheduling") "}",
     PLAIN, "{'status':{'containerStatuses':null}}", .rule = "target-pod-pending",
     .reason = "TargetPodPending", .own_patch = "the target pod is starting"},
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
     .rule = "vmi-deleted", .phase = "Failed", .reason = "SourceLost",
     .own_patch = "is being deleted", .deletes_target = true, .confirm = true},
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
    {"ready: the source says what it cannot do: at once, with the same deadline",
     "{" PHASE_SINCE("TargetReady", "2025-12-31T23:59:59Z") "}",
     TROUBLED("source", "mig-1", "RelayTrouble", "'targetNodeAddress':'10.0.0.2'"), PLAIN,
     .rule = "not-started", .reason = "RelayTrouble",
     .own_patch =
         "\"type\":\"migrationNodeTrouble\",\"status\":\"True\",\"reason\":\"RelayTrouble\","
         "\"message\":\"the source node a: no way\"",
     .again_s = 119},
    {"ready: it is in the note, too", "{" PHASE_SINCE("TargetReady", "2025-12-31T23:59:59Z") "}",
     TROUBLED("source", "mig-1", "LauncherTrouble", "'targetNodeAddress':'10.0.0.2'"), PLAIN,
     .rule = "not-started", .reason = "LauncherTrouble",
     .own_patch =
         "\\\"reason\\\":\\\"LauncherTrouble\\\",\\\"message\\\":\\\"the source node a: no "
         "way\\\",\\\"blocker\\\":\\\"a\\\""},
    {"preparing: the target says what it cannot do",
     "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:59Z") "}",
     TROUBLED("target", "mig-1", "NetworkTrouble", "'targetPod':'x'"), PLAIN, .rule = "not-started",
     .reason = "NetworkTrouble", .own_patch = "the target node b: no way"},
    {"preparing: said of another move",
     "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:59Z") "}",
     TROUBLED("target", "mig-0", "RelayTrouble", "'targetPod':'x'"), PLAIN, .rule = "not-started",
     .again_s = 1},
    {"preparing: a reason that is none",
     "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:59Z") "}",
     TROUBLED("target", "mig-1", "Succeeded", "'targetPod':'x'"), PLAIN, .rule = "not-started",
     .again_s = 1},
    {"preparing: not even JSON", "{" PHASE_SINCE("PreparingTarget", "2025-12-31T23:59:59Z") "}",
     "{'metadata':{'annotations':{'ferry.io/target-trouble':'{'}},'status':{'migrationState':{"
     "'migrationUid':'mig-1','sourceNode':'a','targetNode':'b','targetPod':'x'}}}",
     PLAIN, .rule = "not-started", .again_s = 1},
    {"preparing: the trouble has passed",
     "{'status':{'phase':'PreparingTarget'," TROUBLE_CONDITION
     ",'phaseTransitionTimestamps':[{'phase':'PreparingTarget','phaseTransitionTimestamp':"
     "'2025-12-31T23:59:59Z'}]}}",
     STATE("'targetPod':'x'"), PLAIN, .rule = "not-started",
     .own_patch = "\"remove\",\"path\":\"/status/conditions/0\"", .again_s = 1},
    {"ready: started: what the condition said is past",
     "{'status':{'phase':'TargetReady'," TROUBLE_CONDITION "}}",
     STATE("'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN, .rule = "phase", .phase = "Running",
     .own_patch = "\"path\":\"/status/conditions\",\"value\":[]"},
    {"running: trouble does not end it", "{" PHASE_SINCE("Running", "2025-12-31T23:59:00Z") "}",
     TROUBLED("source", "mig-1", "RelayTrouble", "'startTimestamp':'2025-12-31T23:59:59Z'"), PLAIN,
     .rule = "phase", .reason = "RelayTrouble", .own_patch = "migrationNodeTrouble"},
    {"failed by a node: the condition says why", "{" PHASE("TargetReady") "}",
     TROUBLED(
         "source", "mig-1", "RelayTrouble",
         "'completed':true,'failed':true,'failureReason':'RelayTrouble: by the source: no way'"),
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "RelayTrouble",
     .own_patch = "\"type\":\"migrationNodeTrouble\"", .event = "FailedMigration"},
    {"cancelled meanwhile: that is what is said", "{" DELETING "," PHASE("TargetReady") "}",
     TROUBLED(
         "source", "mig-1", "RelayTrouble",
         "'completed':true,'failed':true,'failureReason':'RelayTrouble: by the source: no way'"),
     PLAIN, .rule = "failed-on-nodes", .phase = "Failed", .reason = "RelayTrouble",
     .own_patch = "migrationAbortRequested", .unwanted = "migrationNodeTrouble"},
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
    /* waiting */
    {"scheduled: the target node takes no more", "{" PHASE("Scheduled") "}", PLAIN, PLAIN,
     .enter_reason = "InboundLimit", .rule = "phase", .reason = "InboundLimit",
     .own_patch = "InboundLimit", .again_s = 5},
    {"132: a failed evacuation holds the next one back",
     "{'metadata':{'annotations':{'kubevirt.io/evacuationMigration':'a'}}," PHASE("Pending") "}",
     PLAIN, .sibling = AUTOMATIC("evacuationMigration", "Failed"), .rule = "phase",
     .reason = "BackOff", .own_patch = "BackOff", .again_s = 10, .event = "MigrationBackoff"},
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
};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_hand_off_is_guarded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
