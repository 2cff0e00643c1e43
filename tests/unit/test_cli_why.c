/* Each link of the chain broken on purpose: exactly that one is named, with a remedy. */
#include "lib/unit.h"

#include "api/object.h"
#include "base/str.h"
#include "cli/why.h"

/* All times are seconds of one minute; "now" is 12:00:50. */
#define AT(s) "2026-01-01T12:00:" s "Z"
#define MIGRATION(phase, meta, status)                                                             \
    "{\"metadata\":{\"name\":\"m\",\"namespace\":\"default\",\"uid\":\"u1\","                      \
    "\"creationTimestamp\":"                                                                       \
    "\"" AT("00") "\"" meta "},\"spec\":{\"vmiName\":\"demo\"},\"status\":{\"phase\":\"" phase     \
                  "\"" status "}}"
#define QUEUE(reason)                                                                              \
    ",\"annotations\":{\"ferry.io/queue\":\"{\\\"reason\\\":\\\"" reason                           \
    "\\\",\\\"message\\\":\\\"because\\\",\\\"position\\\":2}\"}"
#define SINCE(phase, s)                                                                            \
    ",\"phaseTransitionTimestamps\":[{\"phase\":\"" phase                                          \
    "\",\"phaseTransitionTimestamp\":\"" AT(s) "\"}]"
#define FAILED(reason)                                                                             \
    MIGRATION("Failed", "", ",\"migrationState\":{\"failureReason\":\"" reason "\"}")
#define VMI(phase, status)                                                                         \
    "{\"metadata\":{\"name\":\"demo\",\"namespace\":\"default\",\"uid\":\"v1\"},\"status\":{"      \
    "\"phase\":\"" phase "\",\"nodeName\":\"node1\"" status "}}"
#define STATE(uid, more)                                                                           \
    ",\"migrationState\":{\"migrationUid\":\"" uid                                                 \
    "\",\"sourceNode\":\"node1\",\"targetNode\":\"node2\"" more "}"
#define ADDRESS ",\"targetNodeAddress\":\"10.0.0.2\""
#define PORTS ",\"targetDirectMigrationNodePorts\":{\"40001\":0,\"40002\":49152}"
#define STARTED ",\"startTimestamp\":\"" AT("10") "\""
#define POD(phase, node, created, more)                                                            \
    "{\"metadata\":{\"name\":\"pod\",\"creationTimestamp\":\"" created                             \
    "\"},\"spec\":{\"nodeName\":\"" node "\"},\"status\":{\"phase\":\"" phase "\"" more "}}"
#define POD_OK POD("Running", "node2", AT("01"), "")
#define NODE(name, ready)                                                                          \
    "{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","       \
    "\"status\":\"" ready "\"}]}}"
#define LEASE(renewed)                                                                             \
    "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"c1\","                          \
    "\"leaseDurationSeconds\":15,\"renewTime\":\"" renewed "\"}}"

#define RUNS VMI("Running", "")
#define MOVING VMI("Running", STATE("u1", ADDRESS PORTS STARTED))
#define RUNNING MIGRATION("Running", "", SINCE("Running", "10"))

enum { MIB = 1 << 20 };
#define SAMPLE(ms, sent, rest, rate, dirty, round)                                                 \
    {                                                                                              \
        .mode = "PreCopy", .elapsed_ms = ms, .total_bytes = 256 * MIB,                             \
        .processed_bytes = (int64_t)(sent)*MIB, .remaining_bytes = (int64_t)(rest)*MIB,            \
        .bytes_per_s = (int64_t)(rate)*MIB, .dirty_bytes_per_s = (int64_t)(dirty)*MIB,             \
        .iteration = round                                                                         \
    }
#define GOOD {SAMPLE(1000, 10, 200, 50, 5, 1), SAMPLE(3500, 100, 100, 50, 5, 1)}, 2

struct row {
    const char *migration, *vmi, *pod; /* NULL = there is none */
    struct progress_sample samples[2];
    size_t n_samples;
    const char *node2; /* readiness; NULL = "True" */
    const char *lease; /* NULL = fresh; "" = none */
    /* expected */
    const char *link; /* NULL = all hold */
    enum why_state state;
    const char *says, *advice; /* parts of the texts */
    const char *notes;         /* annotations of node2; NULL = none */
};

static struct api_object *object(enum api_kind kind, const char *json)
{
    struct api_object *o = NULL;
    struct ferry_error err = {0};

    if (json && api_object_parse(kind, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

static void check(size_t i, const struct row *c)
{
    api_cleanup_object struct api_object *m = object(API_KIND_MIGRATION, c->migration);
    api_cleanup_object struct api_object *v = object(API_KIND_VMI, c->vmi);
    api_cleanup_object struct api_object *p = object(API_KIND_POD, c->pod);
    api_cleanup_object struct api_object *n1 = object(API_KIND_NODE, NODE("node1", "True"));
    ferry_cleanup_free char *json2 = ferry_asprintf(
        "{\"metadata\":{\"name\":\"node2\",\"annotations\":{%s}},\"status\":{\"conditions\":[{"
        "\"type\":\"Ready\",\"status\":\"%s\"}]}}",
        c->notes ? c->notes : "", c->node2 ? c->node2 : "True");
    api_cleanup_object struct api_object *n2 = object(API_KIND_NODE, json2);
    const char *lease = !c->lease ? LEASE(AT("45")) : c->lease[0] ? c->lease : NULL;
    api_cleanup_object struct api_object *l = object(API_KIND_LEASE, lease);
    struct api_object *nodes[] = {n1, n2};
    struct why_view view = {
        .migration = m ? &m->u.migration : NULL,
        .vmi = v ? &v->u.vmi : NULL,
        .target_pod = p ? &p->u.pod : NULL,
        .nodes = nodes,
        .n_nodes = 2,
        .lease_known = true,
        .lease = l ? &l->u.lease : NULL,
        .n_samples = c->n_samples,
    };
    struct why_answer answer;
    ferry_cleanup_buf struct ferry_buf text = {0};

    memcpy(view.samples, c->samples, sizeof(view.samples));
    assert_int_equal(api_time_parse(AT("50"), &view.now_ms, NULL), 0);
    why_walk(&view, &answer);
    why_render(&answer, &text);
    const struct why_link *first = why_first(&answer);
    if (!ferry_streq(first ? first->name : NULL, c->link) || (first && first->state != c->state)) {
        fail_msg("case %zu: not %s:\n%s", i, c->link ? c->link : "all well", text.data);
    }
    for (size_t k = 0; k + 1 < answer.n; k++) {
        assert_int_equal(answer.links[k].state, WHY_OK);
    }
    if (c->says && !strstr(text.data, c->says)) {
        fail_msg("case %zu: '%s' is not in:\n%s", i, c->says, text.data);
    }
    if (c->advice && !strstr(first->remedy, c->advice)) {
        fail_msg("case %zu: '%s' is not in: %s", i, c->advice, first->remedy);
    }
}

static void before_the_transfer(void **state)
{
    static const struct row rows[] = {
        /* the VM */
        {.migration = MIGRATION("Pending", "", ""),
         .link = "vm",
         .state = WHY_BROKEN,
         .says = "no virtual machine 'demo'",
         .advice = "ferry vm list"},
        {.migration = MIGRATION("Pending", "", ""),
         .vmi = VMI("Scheduling", ""),
         .link = "vm",
         .state = WHY_BROKEN,
         .says = "demo is Scheduling"},
        {.vmi = VMI("Running", ",\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"False\","
                               "\"reason\":\"DisksNotLiveMigratable\",\"message\":\"local\"}]"),
         .link = "migratable",
         .state = WHY_BROKEN,
         .says = "DisksNotLiveMigratable: local"},
        /* the request */
        {.vmi = RUNS, .link = "object", .state = WHY_BROKEN, .advice = "ferry migrate demo"},
        {.migration = MIGRATION("", "", ""),
         .vmi = RUNS,
         .lease = "",
         .link = "controller",
         .state = WHY_BROKEN,
         .says = "nobody holds its lease",
         .advice = "ferry-controller"},
        {.migration = MIGRATION("Pending", "", ""),
         .vmi = RUNS,
         .lease = LEASE(AT("02")),
         .link = "controller",
         .state = WHY_BROKEN,
         .says = "last heard of 48.0 s ago"},
        {.migration = MIGRATION("", "", ""),
         .vmi = RUNS,
         .link = "admitted",
         .state = WHY_BROKEN,
         .advice = "log of ferry-controller"},
        /* the queue */
        {.migration = MIGRATION("Pending", QUEUE("SourceBusy"), ""),
         .vmi = RUNS,
         .link = "turn",
         .state = WHY_WAITS,
         .says = "SourceBusy: because"},
        {.migration = MIGRATION("Pending", QUEUE("PolicyInvalid"), ""),
         .vmi = RUNS,
         .link = "policy",
         .state = WHY_BROKEN,
         .advice = "correct the policy"},
        {.migration = MIGRATION("Pending", QUEUE("ClusterLimit"), ""),
         .vmi = RUNS,
         .link = "limits",
         .state = WHY_WAITS,
         .says = "because; place 2 in the queue",
         .advice = "parallelMigrationsPerCluster"},
        {.migration = MIGRATION("Pending", QUEUE("OutboundLimit"), ""),
         .vmi = RUNS,
         .link = "limits",
         .state = WHY_WAITS,
         .advice = "parallelOutboundMigrationsPerNode"},
        {.migration = MIGRATION("Pending", QUEUE("InboundLimit"), ""),
         .vmi = RUNS,
         .link = "limits",
         .state = WHY_WAITS},
        {.migration = MIGRATION("Pending", QUEUE("BandwidthBudget"), ""),
         .vmi = RUNS,
         .link = "limits",
         .state = WHY_WAITS},
        {.migration = MIGRATION("Pending", QUEUE("BackOff"), ""),
         .vmi = RUNS,
         .link = "limits",
         .state = WHY_WAITS},
        {.migration = MIGRATION("Pending", QUEUE("Quota"), ""),
         .vmi = RUNS,
         .link = "quota",
         .state = WHY_BROKEN,
         .advice = "ResourceQuota"},
        {.migration = MIGRATION("Pending", QUEUE("VolumeNotReady"), ""),
         .vmi = RUNS,
         .link = "volumes",
         .state = WHY_BROKEN},
        /* the target pod */
        {.migration = MIGRATION("Pending", "", ""),
         .vmi = RUNS,
         .link = "target-pod",
         .state = WHY_WAITS,
         .says = "not created yet"},
        {.migration = MIGRATION("Pending", QUEUE("NeverSchedulable"), ""),
         .vmi = RUNS,
         .link = "target-pod",
         .state = WHY_BROKEN,
         .advice = "node selector"},
        {.migration = MIGRATION("Scheduling", "", ""),
         .vmi = RUNS,
         .link = "target-pod",
         .state = WHY_BROKEN,
         .says = "is gone"},
        {.migration = MIGRATION("Scheduling", QUEUE("Unschedulable"), ""),
         .vmi = RUNS,
         .pod = POD("Pending", "", AT("01"),
                    ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                    "\"message\":\"0/2 nodes are available\"}]"),
         .link = "target-pod",
         .state = WHY_BROKEN,
         .says = "0/2 nodes are available",
         .advice = "make room"},
        {.migration = MIGRATION("Scheduling", "", ""),
         .vmi = RUNS,
         .pod = POD("Pending", "node2", AT("40"), ""),
         .link = "target-pod",
         .state = WHY_WAITS,
         .says = "starting on node2 for 10.0 s"},
        {.migration = MIGRATION("Scheduling", "", ""),
         .vmi = RUNS,
         .pod = POD("Pending", "node2", "2026-01-01T11:59:00Z", ""),
         .link = "target-pod",
         .state = WHY_BROKEN,
         .advice = "log of ferry-pods on node2"},
        {.migration = MIGRATION("Scheduling", "", ""),
         .vmi = RUNS,
         .pod = POD("Pending", "node2", AT("40"), ""),
         .node2 = "Unknown",
         .link = "target-pod",
         .state = WHY_BROKEN,
         .says = "which is not ready",
         .advice = "bring node2 back"},
        {.migration = MIGRATION("Scheduling", "", ""),
         .vmi = RUNS,
         .pod = POD("Failed", "node2", AT("40"), ",\"message\":\"no such image\""),
         .link = "target-pod",
         .state = WHY_BROKEN,
         .says = "pod ended: no such image"},
        /* the nodes */
        {.migration = MIGRATION("Scheduled", "", SINCE("Scheduled", "45")),
         .vmi = RUNS,
         .pod = POD_OK,
         .link = "hand-over",
         .state = WHY_WAITS},
        {.migration = MIGRATION("Scheduled", "", SINCE("Scheduled", "05")),
         .vmi = VMI("Running", STATE("u0", "")),
         .pod = POD_OK,
         .link = "hand-over",
         .state = WHY_BROKEN,
         .advice = "another move"},
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "45")),
         .vmi = VMI("Running", STATE("u1", "")),
         .pod = POD_OK,
         .link = "target-prepared",
         .state = WHY_WAITS},
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "10")),
         .vmi = VMI("Running", STATE("u1", "")),
         .pod = POD_OK,
         .link = "target-prepared",
         .state = WHY_BROKEN,
         .advice = "ferry-handler on node2"},
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "45")),
         .vmi = VMI("Running", STATE("u1", "")),
         .pod = POD_OK,
         .node2 = "Unknown",
         .link = "target-prepared",
         .state = WHY_BROKEN,
         .says = "node node2 is not ready"},
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "45")),
         .vmi = VMI("Running", STATE("u1", "")),
         .pod = POD_OK,
         .notes = "\"ferry.io/migration-network-trouble\":\"no eth1\"",
         .link = "target-prepared",
         .state = WHY_BROKEN,
         .says = "not on the migration network: no eth1",
         .advice = "docs/migration-network.md"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = VMI("Running", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .notes = "\"ferry.io/migration-network\":\"kubevirt/moves\",\"ferry.io/"
                  "migration-address\":\"10.1.1.2\"",
         .link = "ports",
         .state = WHY_WAITS,
         .says = "its address on kubevirt/moves is 10.1.1.2"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = VMI("Running", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .notes = "\"ferry.io/migration-network\":\"kubevirt/moves\",\"ferry.io/"
                  "migration-address\":\"10.0.0.2\"",
         .link = "connected",
         .state = WHY_WAITS,
         .says = "10.0.0.2 on network kubevirt/moves"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = VMI("Running", STATE("u1", ADDRESS)),
         .pod = POD_OK,
         .link = "ports",
         .state = WHY_BROKEN,
         .says = "no port for the control channel",
         .advice = "ferry-relay"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = VMI("Running",
                    STATE("u1", ADDRESS ",\"targetDirectMigrationNodePorts\":{\"40001\":0}")),
         .pod = POD_OK,
         .link = "ports",
         .state = WHY_BROKEN,
         .says = "no port for the memory channel"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = VMI("Running", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "connected",
         .state = WHY_WAITS},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "05")),
         .vmi = VMI("Running", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "connected",
         .state = WHY_BROKEN,
         .advice = "ferry-handler on node1"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(i, &rows[i]);
    }
}

static void in_the_transfer(void **state)
{
    static const struct row rows[] = {
        {RUNNING, MOVING, POD_OK, GOOD, NULL, NULL, "end", WHY_WAITS,
         "100.0 MiB remaining and falling", NULL},
        {MIGRATION("Running", QUEUE("PathAway"), SINCE("Running", "10")), MOVING, POD_OK, GOOD,
         NULL, NULL, "path", WHY_BROKEN, "PathAway", "network between"},
        {RUNNING, MOVING, POD_OK, GOOD, "Unknown", NULL, "path", WHY_BROKEN,
         "target node node2 is not ready", NULL},
        {RUNNING,
         MOVING,
         POD_OK,
         {{.mode = ""}},
         0,
         NULL,
         NULL,
         "transfer",
         WHY_BROKEN,
         "no figures",
         "node1"},
        {RUNNING,
         MOVING,
         POD_OK,
         {SAMPLE(1000, 10, 200, 50, 5, 1), SAMPLE(1000, 10, 200, 50, 5, 1)},
         2,
         NULL,
         NULL,
         "transfer",
         WHY_BROKEN,
         "node1 stopped reporting",
         "ferry-handler"},
        {RUNNING,
         MOVING,
         POD_OK,
         {SAMPLE(1000, 10, 200, 50, 5, 1), SAMPLE(3500, 10, 200, 0, 5, 1)},
         2,
         NULL,
         NULL,
         "transfer",
         WHY_BROKEN,
         "stuck: 200.0 MiB remaining in round 1, nothing was sent for 2.5",
         "network"},
        {RUNNING,
         MOVING,
         POD_OK,
         {SAMPLE(1000, 10, 200, 50, 60, 3), SAMPLE(3500, 135, 210, 50, 60, 4)},
         2,
         NULL,
         NULL,
         "transfer",
         WHY_BROKEN,
         "not converging: round 4, 210.0 MiB remaining, 50.0 MiB/s sent, 60.0 MiB/s rewritten",
         "post-copy"},
        /* too early to tell: the first round sends at the full rate */
        {RUNNING,
         MOVING,
         POD_OK,
         {SAMPLE(1000, 10, 200, 50, 60, 1), SAMPLE(3500, 135, 75, 50, 60, 1)},
         2,
         NULL,
         NULL,
         "end",
         WHY_WAITS,
         NULL,
         NULL},
        {MIGRATION("Running", ",\"deletionTimestamp\":\"" AT("40") "\"", ""), MOVING, POD_OK, GOOD,
         NULL, NULL, "cancel", WHY_WAITS, "being cancelled", NULL},
        {MIGRATION("Running", "", ""),
         VMI("Running", STATE("u1", ADDRESS PORTS STARTED ",\"completed\":true")), POD_OK, GOOD,
         NULL, NULL, "end", WHY_WAITS, "has moved", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(i, &rows[i]);
    }
}

static void afterwards(void **state)
{
    static const struct {
        const char *migration, *link;
    } rows[] = {
        {MIGRATION("Succeeded", "", ""), NULL},
        {FAILED("UnschedulableTimeout: x"), "target-pod"},
        {FAILED("PendingTimeout: x"), "target-pod"},
        {FAILED("PrepareTimeout: x"), "target-prepared"},
        {FAILED("ConnectTimeout: x"), "connected"},
        {FAILED("TLSFailed: x"), "connected"},
        {FAILED("Stuck: x"), "transfer"},
        {FAILED("NotConverging: x"), "transfer"},
        {FAILED("Aborted: x"), "cancel"},
        {FAILED("DestinationTooSmall: x"), "volumes"},
        {FAILED("CPUIncompatible: x"), "migratable"},
        {FAILED("DeviceNotMigratable: x"), "migratable"},
        {FAILED("TargetLost: x"), "path"},
        {FAILED("SourceLost: x"), "vm"},
        {FAILED("LibvirtError: x"), "transfer"},
        {FAILED("something else"), "end"},
        {MIGRATION("Failed", "", ""), "end"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(i, &(struct row){.migration = rows[i].migration,
                               .vmi = RUNS,
                               .link = rows[i].link,
                               .state = WHY_BROKEN});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_transfer),
        cmocka_unit_test(in_the_transfer),
        cmocka_unit_test(afterwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
