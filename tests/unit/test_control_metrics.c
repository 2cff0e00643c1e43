#include "lib/objects.h"

#include "control/loops/control_metrics.h"

/* Numbers in names are those of the checklist of KubeVirt's behaviours (docs/conformance.md). */

static const char MOVE[] =
    "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1','resourceVersion':'7',"
    "'creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{'vmiName':'web'}}";
static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'5'},'spec':{"
    "'evictionStrategy':'LiveMigrate'},'status':{'phase':'Running','nodeName':'a'}}";

#define PHASE(p) "{'status':{'phase':'" p "'}}"
#define GAUGE(name, n) "\nkubevirt_vmi_migrations_in_" name "_phase " n "\n"

static char *text_of(struct control_metrics *m, const struct control_metrics_view *view)
{
    struct ferry_buf b = {0};
    struct control_metrics *own = m ? NULL : control_metrics_new();

    control_metrics_write(m ? m : own, view, &b);
    control_metrics_free(own);
    return ferry_buf_take(&b);
}

static void test_gauges(void **state)
{
    static const struct {
        const char *name, *moves[2], *words[3];
    } rows[] = {
        {"495: no migrations: all zero",
         {NULL},
         {GAUGE("pending", "0"), GAUGE("running", "0"), GAUGE("unset", "0")}},
        {"495: unset", {"{}"}, {GAUGE("unset", "1"), GAUGE("pending", "0")}},
        {"495: pending", {PHASE("Pending")}, {GAUGE("pending", "1"), GAUGE("running", "0")}},
        {"495: scheduling", {PHASE("Scheduling")}, {GAUGE("scheduling", "1")}},
        {"495: scheduled", {PHASE("Scheduled")}, {GAUGE("running", "1")}},
        {"495: preparing", {PHASE("PreparingTarget")}, {GAUGE("running", "1")}},
        {"495: ready", {PHASE("TargetReady")}, {GAUGE("running", "1")}},
        {"495: running", {PHASE("Running")}, {GAUGE("running", "1"), GAUGE("pending", "0")}},
        {"495: succeeded and pending",
         {PHASE("Succeeded"), PHASE("Pending")},
         {"kubevirt_vmi_migration_succeeded{vmi=\"web\",vmim=\"move\",namespace=\"ns\"} 1\n",
          GAUGE("pending", "1"), GAUGE("running", "0")}},
        {"495: failed",
         {PHASE("Failed")},
         {"kubevirt_vmi_migration_failed{vmi=\"web\",vmim=\"move\",namespace=\"ns\"} 1\n"}},
        {"waiting, by reason",
         {"{'metadata':{'annotations':{'ferry.io/queue':'{\\'reason\\':\\'Quota\\'}'}},'status':{"
          "'phase':'Pending'}}",
          "{'metadata':{'annotations':{'ferry.io/queue':'{\\'reason\\':\\'x{}\\'}'}},'status':{"
          "'phase':'Pending'}}"},
         {"ferry_migrations_waiting{reason=\"Quota\"} 1\n",
          "ferry_migrations_waiting{reason=\"BackOff\"} 0\n"}},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct api_object *moves[2] = {0};
        size_t n = 0;

        for (; n < 2 && rows[i].moves[n]; n++) {
            moves[n] = make_object(API_KIND_MIGRATION, MOVE, rows[i].moves[n]);
        }
        ferry_cleanup_free char *text = text_of(
            NULL, &(struct control_metrics_view){
                      .migrations = (const struct api_object *const *)moves, .n_migrations = n});
        for (size_t k = 0; k < 3 && rows[i].words[k]; k++) {
            if (!strstr(text, rows[i].words[k])) {
                fail_msg("%s: no '%s' in %s", rows[i].name, rows[i].words[k], text);
            }
        }
        for (size_t k = 0; k < n; k++) {
            api_object_unref(moves[k]);
        }
    }
}

#define TIMES(list) "{'status':{'phaseTransitionTimestamps':[" list "]}}"
#define AT(phase, time)                                                                            \
    "{'phase':'" phase "','phaseTransitionTimestamp':'2026-01-01T00:00:" time "Z'}"
#define NAME "kubevirt_vmi_migration_phase_transition_time_from_creation_seconds"

/* 494: seconds since creation, fractions too, each phase once */
static void test_histogram(void **state)
{
    api_cleanup_object struct api_object *fresh = make_object(API_KIND_MIGRATION, MOVE, NULL);
    api_cleanup_object struct api_object *pending =
        make_object(API_KIND_MIGRATION, MOVE, TIMES(AT("Pending", "01")));
    api_cleanup_object struct api_object *running = make_object(
        API_KIND_MIGRATION, MOVE, TIMES(AT("Pending", "01") "," AT("Running", "15.500")));
    struct control_metrics *m = control_metrics_new();
    (void)state;

    control_metrics_seen(m, NULL, pending); /* was there before: not news */
    control_metrics_seen(m, fresh, pending);
    control_metrics_seen(m, pending, pending);
    control_metrics_seen(m, pending, running);
    control_metrics_seen(m, running, NULL);
    ferry_cleanup_free char *text = text_of(m, &(struct control_metrics_view){0});
    static const char *const words[] = {
        NAME "_bucket{phase=\"Pending\",le=\"0.5\"} 0\n",
        NAME "_bucket{phase=\"Pending\",le=\"1\"} 1\n",
        NAME "_bucket{phase=\"Running\",le=\"10\"} 0\n",
        NAME "_bucket{phase=\"Running\",le=\"20\"} 1\n",
        NAME "_bucket{phase=\"Running\",le=\"+Inf\"} 1\n",
        NAME "_sum{phase=\"Running\"} 15.5\n",
        NAME "_count{phase=\"Pending\"} 1\n",
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!strstr(text, words[i])) {
            fail_msg("no '%s' in %s", words[i], text);
        }
    }
    control_metrics_free(m);
}

static void test_vmis(void **state)
{
    static const struct {
        const char *name, *vmi, *strategy, *word;
    } rows[] = {
        {"asked to move, cannot", "{}", NULL,
         "kubevirt_vmi_non_evictable{node=\"a\",namespace=\"ns\",name=\"web\"} 1\n"},
        {"asked to move, can",
         "{'status':{'conditions':[{'type':'LiveMigratable','status':'True'}]}}", NULL,
         "name=\"web\"} 0\n"},
        {"not asked to", "{'spec':{'evictionStrategy':'None'}}", "LiveMigrate",
         "name=\"web\"} 0\n"},
        {"nobody says anything: asked", "{'spec':{'evictionStrategy':null}}", NULL,
         "name=\"web\"} 1\n"},
        {"the cluster does not ask", "{'spec':{'evictionStrategy':null}}", "None",
         "name=\"web\"} 0\n"},
        {"the cluster asks", "{'spec':{'evictionStrategy':null}}", "LiveMigrate",
         "name=\"web\"} 1\n"},
        {"when its move began",
         "{'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a','startTimestamp':"
         "'2026-01-01T00:00:05Z'}}}",
         NULL,
         "kubevirt_vmi_migration_start_time_seconds{node=\"a\",namespace=\"ns\",name=\"web\","
         "migration_name=\"move\"} 1767225605.000\n"},
        {"how it ended",
         "{'status':{'migrationState':{'migrationUid':'mig-1','sourceNode':'a','failed':true,"
         "'endTimestamp':'2026-01-01T00:00:06Z'}}}",
         NULL, "migration_name=\"move\",status=\"failed\"} 1767225606.000\n"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, rows[i].vmi);
        api_cleanup_object struct api_object *move = make_object(API_KIND_MIGRATION, MOVE, NULL);
        const struct api_object *vmis[] = {vmi}, *moves[] = {move};
        ferry_cleanup_free char *text =
            text_of(NULL, &(struct control_metrics_view){.vmis = vmis,
                                                         .n_vmis = 1,
                                                         .migrations = moves,
                                                         .n_migrations = 1,
                                                         .cluster_strategy = rows[i].strategy});

        if (!strstr(text, rows[i].word)) {
            fail_msg("%s: no '%s' in %s", rows[i].name, rows[i].word, text);
        }
    }
}

static void test_vms(void **state)
{
    static const char VM[] = "{'metadata':{'name':'web','namespace':'ns','uid':'vm-1'},'spec':{"
                             "'template':{}},'status':{'printableStatus':'Migrating'}}";
    static const char NAME_OF[] = "kubevirt_vm_migrating_status_last_transition_timestamp_seconds{";
    static const struct {
        const char *name, *vm, *vmi, *word; /* NULL = no sample */
    } rows[] = {
        {"is being moved", "{}",
         "{'status':{'migrationState':{'migrationUid':'m','startTimestamp':"
         "'2026-01-01T00:00:05Z'}}}",
         "{name=\"web\",namespace=\"ns\"} 1767225605.000\n"},
        {"not begun", "{}", "{'status':{'migrationState':{'migrationUid':'m'}}}", NULL},
        {"runs", "{'status':{'printableStatus':'Running'}}",
         "{'status':{'migrationState':{'migrationUid':'m','startTimestamp':"
         "'2026-01-01T00:00:05Z'}}}",
         NULL},
        {"another's", "{'metadata':{'namespace':'other'}}",
         "{'status':{'migrationState':{'migrationUid':'m','startTimestamp':"
         "'2026-01-01T00:00:05Z'}}}",
         NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, rows[i].vm);
        api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, rows[i].vmi);
        const struct api_object *vmis[] = {vmi}, *vms[] = {vm};
        ferry_cleanup_free char *text = text_of(
            NULL,
            &(struct control_metrics_view){.vmis = vmis, .n_vmis = 1, .vms = vms, .n_vms = 1});
        const char *found = strstr(text, NAME_OF);

        if (rows[i].word ? !found || !strstr(found, rows[i].word) : found != NULL) {
            fail_msg("%s: %s", rows[i].name, text);
        }
    }
}

static void test_queues(void **state)
{
    const struct queue_metrics queues[] = {
        {"one",
         {.depth = 3,
          .adds = 7,
          .retries = 2,
          .unfinished_s = 1.5,
          .longest_s = 0.5,
          .waited = {.buckets = {0, 0, 0, 0, 0, 0, 1, 2, 2, 2}, .count = 4, .sum_s = 31},
          .worked = {.buckets = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, .count = 1, .sum_s = 0.001}}},
        {"two", {.depth = 9}},
    };
    static const char *const words[] = {
        "depth{name=\"one\"} 3\n",
        "depth{name=\"two\"} 9\n",
        "adds_total{name=\"one\"} 7\n",
        "retries_total{name=\"one\"} 2\n",
        "unfinished_work_seconds{name=\"one\"} 1.5\n",
        "longest_running_processor_seconds{name=\"one\"} 0.5\n",
        "queue_duration_seconds_bucket{name=\"one\",le=\"0.001\"} 0\n",
        "queue_duration_seconds_bucket{name=\"one\",le=\"0.01\"} 1\n",
        "queue_duration_seconds_bucket{name=\"one\",le=\"10\"} 2\n",
        "queue_duration_seconds_bucket{name=\"one\",le=\"+Inf\"} 4\n",
        "queue_duration_seconds_sum{name=\"one\"} 31\n",
        "work_duration_seconds_bucket{name=\"one\",le=\"0.001\"} 1\n",
        "work_duration_seconds_count{name=\"one\"} 1\n",
        "# TYPE kubevirt_workqueue_adds_total counter\n",
        "# TYPE kubevirt_workqueue_work_duration_seconds histogram\n",
    };
    ferry_cleanup_free char *text =
        text_of(NULL, &(struct control_metrics_view){.queues = queues, .n_queues = 2});
    (void)state;

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!strstr(text, words[i])) {
            fail_msg("no '%s' in %s", words[i], text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gauges), cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_vmis), cmocka_unit_test(test_vms), cmocka_unit_test(test_queues)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
