/* Each link of the chain broken on purpose: exactly that one is named, with a remedy. */
#include "why_case.h"

#define QUEUE(reason)                                                                              \
    ",\"annotations\":{\"ferry.io/queue\":\"{\\\"reason\\\":\\\"" reason                           \
    "\\\",\\\"message\\\":\\\"because\\\",\\\"position\\\":2}\"}"
#define SINCE(phase, s)                                                                            \
    ",\"phaseTransitionTimestamps\":[{\"phase\":\"" phase                                          \
    "\",\"phaseTransitionTimestamp\":\"" AT(s) "\"}]"
#define VMI(phase, status)                                                                         \
    "{\"metadata\":{\"name\":\"demo\",\"namespace\":\"default\",\"uid\":\"v1\"},\"status\":{"      \
    "\"phase\":\"" phase "\",\"nodeName\":\"node1\"" status "}}"
#define STATE(uid, more)                                                                           \
    ",\"migrationState\":{\"migrationUid\":\"" uid                                                 \
    "\",\"sourceNode\":\"node1\",\"targetNode\":\"node2\"" more "}"
#define CHECK(name, ok, message) "{'name':'" name "','ok':" ok ",'message':'" message "'}"
#define TROUBLED(side, uid, reason, status)                                                        \
    "{\"metadata\":{\"name\":\"demo\",\"namespace\":\"default\",\"uid\":\"v1\",\"annotations\":{"  \
    "\"ferry.io/" side "-trouble\":\"{\\\"uid\\\":\\\"" uid "\\\",\\\"reason\\\":\\\"" reason      \
    "\\\",\\\"message\\\":\\\"no way\\\"}\"}},\"status\":{\"phase\":\"Running\",\"nodeName\":"     \
    "\"node1\"" status "}}"
#define ADDRESS ",\"targetNodeAddress\":\"10.0.0.2\""
#define PORTS ",\"targetDirectMigrationNodePorts\":{\"40001\":0,\"40002\":49152}"
#define STARTED ",\"startTimestamp\":\"" AT("10") "\""
#define POD(phase, node, created, more)                                                            \
    "{\"metadata\":{\"name\":\"pod\",\"creationTimestamp\":\"" created                             \
    "\"},\"spec\":{\"nodeName\":\"" node "\"},\"status\":{\"phase\":\"" phase "\"" more "}}"
#define POD_OK POD("Running", "node2", AT("01"), "")
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
    struct wire_progress samples[2];
    size_t n_samples;
    const char *node2; /* readiness; NULL = "True" */
    const char *lease; /* NULL = fresh; "" = none */
    /* expected */
    const char *link; /* NULL = all hold */
    enum why_state state;
    const char *says, *advice; /* parts of the texts */
    /* more that was read */
    const char *notes;           /* annotations of node2; NULL = none */
    const char *target, *source; /* checks of the nodes; "!": it does not answer */
    int64_t mode_since_ms;       /* 0 = not known */
};

static const struct why_report *report(const char *checks, struct why_report *ret)
{
    struct ferry_error err = {0};
    ferry_cleanup_free char *json = NULL;

    if (!checks) {
        return NULL;
    }
    if (checks[0] == '!') {
        *ret = (struct why_report){.error = "no route to host"};
        return ret;
    }
    json = ferry_asprintf("{\"checks\":[%s]}", checks);
    for (char *c = json; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    if (why_report_parse(json, strlen(json), ret, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return ret;
}

static void check(size_t i, const struct row *c)
{
    struct why_report target, source;

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
        .target = report(c->target, &target),
        .source = report(c->source, &source),
        .mode_since_ms = c->mode_since_ms ? c->mode_since_ms : -1,
    };
    struct why_answer answer;
    ferry_cleanup_buf struct ferry_buf text = {0};

    memcpy(view.samples, c->samples, sizeof(view.samples));
    assert_int_equal(api_time_parse(AT("50"), &view.now_ms, NULL), 0);
    if (m) {
        why_walk(&view, &answer);
    } else {
        why_walk_vm(&view, &answer);
    }
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

/* Of a target pod that no other node can take. */
#define LACKING(what)                                                                              \
    .migration = MIGRATION("Scheduling",                                                           \
                           ",\"annotations\":{\"ferry.io/queue\":\"{\\\"reason\\\":"               \
                           "\\\"NeverSchedulable\\\",\\\"message\\\":\\\"0/2 nodes; no other "     \
                           "node has " what "\\\"}\"}",                                            \
                           ""),                                                                    \
    .vmi = RUNS,                                                                                   \
    .pod = POD("Pending", "", AT("01"),                                                            \
               ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","                 \
               "\"message\":\"0/2 nodes are available\"}]"),                                       \
    .link = "target-pod", .state = WHY_BROKEN, .says = "no other node has " what

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
        {.migration = MIGRATION("", QUEUE("Quota"), ""),
         .vmi = RUNS,
         .link = "quota",
         .state = WHY_BROKEN,
         .says = "Quota: because; place 2"},
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
        {LACKING("its CPU: node2 lacks x"), .advice = "with that CPU"},
        {LACKING("its machine type: node2 lacks x"), .advice = "whose QEMU has that machine type"},
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
        {.migration = MIGRATION("TargetReady", QUEUE("SourceBusy"), SINCE("TargetReady", "05")),
         .vmi = VMI("Running", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "connected",
         .state = WHY_BROKEN,
         .advice = "ferry-handler on node1"},
        /* what a node says itself, at once */
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "45")),
         .vmi = TROUBLED("target", "u1", "RelayTrouble", STATE("u1", "")),
         .pod = POD_OK,
         .link = "target-prepared",
         .state = WHY_BROKEN,
         .says = "the target node node2 cannot begin: RelayTrouble: no way",
         .advice = "see to what is named on node2"},
        {.migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "45")),
         .vmi = TROUBLED("target", "u0", "RelayTrouble", STATE("u1", "")),
         .pod = POD_OK,
         .link = "target-prepared",
         .state = WHY_WAITS},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = TROUBLED("target", "u1", "RelayTrouble", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "listeners",
         .state = WHY_BROKEN,
         .says = "RelayTrouble: no way"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = TROUBLED("source", "u1", "RelayTrouble", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "sockets",
         .state = WHY_BROKEN,
         .says = "the source node node1 cannot begin: RelayTrouble: no way",
         .advice = "see to what is named on node1"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "45")),
         .vmi = TROUBLED("source", "u1", "LauncherTrouble", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .link = "connected",
         .state = WHY_BROKEN,
         .says = "LauncherTrouble: no way"},
        {.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "05")),
         .vmi = TROUBLED("source", "u1", "LauncherTrouble", STATE("u1", ADDRESS PORTS)),
         .pod = POD_OK,
         .source = CHECK("relay", "true", "answers") "," CHECK("sockets", "false", "no source"),
         .link = "connected",
         .state = WHY_BROKEN,
         .says = "LauncherTrouble: no way"},
        {.migration = RUNNING,
         .vmi = TROUBLED("source", "u1", "RelayTrouble", STATE("u1", ADDRESS PORTS STARTED)),
         .pod = POD_OK,
         .link = "sockets",
         .state = WHY_BROKEN,
         .says = "the source node node1 cannot go on: RelayTrouble: no way"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(i, &rows[i]);
    }
}

#define ON(name, channel, ok, message)                                                             \
    "{'name':'" name "','channel':" channel ",'ok':" ok ",'message':'" message "'}"
#define RELAY CHECK("relay", "true", "answers") ","
#define T_OPEN                                                                                     \
    RELAY CHECK("listeners", "true", "open") "," ON("listener", "0", "true", "port 40001") "," ON( \
        "listener", "49152", "true", "port 40002") "," CHECK("port map", "true", "as") ","
#define T_GOOD                                                                                     \
    T_OPEN CHECK("network", "true", "10.0.0.2") "," CHECK("certificate", "true",                   \
                                                          "names node node2, good until then")
#define S_SOCKETS RELAY CHECK("sockets", "true", "open") "," ON("socket", "0", "true", "/m/x") ","
#define S_MAP S_SOCKETS CHECK("port map", "true", "as") ","
#define S_GOOD                                                                                     \
    S_MAP ON("reach", "0", "true", "done") "," ON("mtu", "0", "true",                              \
                                                  "done") "," ON("handshake", "0", "true", "done")
#define READY MIGRATION("TargetReady", "", SINCE("TargetReady", "20"))
#define PUBLISHED VMI("Running", STATE("u1", ADDRESS PORTS))

/* What only the nodes can see. */
static void between_the_nodes(void **state)
{
    static const struct {
        const char *target, *source, *link, *says, *advice;
    } rows[] = {
        {T_GOOD, S_GOOD, "connected", "has not begun", "ferry-handler on node1"},
        {NULL, NULL, "connected", "has not begun", NULL},
        {T_GOOD, NULL, "connected", "has not begun", NULL},
        {"!", S_GOOD, "listeners", "node2 does not answer: no route", "ferry-handler running"},
        {CHECK("relay", "false", "no answer"), S_GOOD, "listeners", "node2: no answer",
         "ferry-relay running on node2"},
        {RELAY CHECK("listeners", "false", "does not know the move"), S_GOOD, "listeners",
         "node2: does not know the move", "node2"},
        {RELAY ON("listener", "49152", "false", "port 40002: nobody listens"), S_GOOD, "listeners",
         "node2: memory channel: port 40002: nobody listens", "logs"},
        {RELAY ON("listener", "49153", "false", "port 1: nobody listens"), S_GOOD, "listeners",
         "disk channel: port 1", "logs"},
        {T_GOOD, "!", "sockets", "node1 does not answer", "ferry-handler running on node1"},
        {T_GOOD, CHECK("relay", "false", "no answer"), "sockets", "node1: no answer",
         "ferry-relay running on node1"},
        {T_GOOD, RELAY ON("socket", "0", "false", "missing: /m/x"), "sockets",
         "node1: control channel: missing: /m/x", "node1"},
        {T_OPEN CHECK("port map", "false", "other ports than the VMI"), S_GOOD, "port-map",
         "node2: other ports", "cancel m"},
        {T_GOOD, S_SOCKETS CHECK("port map", "false", "other ports"), "port-map",
         "node1: other ports", NULL},
        {T_OPEN CHECK("network", "false", "interface migration0 has no usable address"), S_GOOD,
         "network", "node2: interface migration0", "ip address"},
        {T_GOOD, S_MAP ON("reach", "0", "false", "timed out"), "reach",
         "node1: control channel: timed out", "between node1 and node2"},
        {T_GOOD, S_MAP ON("reach", "0", "true", "") "," ON("mtu", "0", "false", "packets get lost"),
         "mtu", "packets get lost", "one MTU"},
        {T_OPEN CHECK("certificate", "false", "has expired (at 2020)"), S_GOOD, "certificates",
         "node2: has expired", "clock"},
        {T_GOOD, S_GOOD "," CHECK("certificate", "false", "names the wrong node"), "certificates",
         "node1: names the wrong node", "ferry join"},
        {T_GOOD, S_MAP ON("handshake", "49152", "false", "unknown CA"), "tls",
         "node1: memory channel: unknown CA", "one CA"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check(i, &(struct row){.migration = READY,
                               .vmi = PUBLISHED,
                               .pod = POD_OK,
                               .link = rows[i].link,
                               .state = WHY_BROKEN,
                               .says = rows[i].says,
                               .advice = rows[i].advice,
                               .target = rows[i].target,
                               .source = rows[i].source});
    }
    /* What has only just begun may still be on its way. */
    check(100, &(struct row){.migration = MIGRATION("TargetReady", "", SINCE("TargetReady", "47")),
                             .vmi = PUBLISHED,
                             .pod = POD_OK,
                             .link = "sockets",
                             .state = WHY_WAITS,
                             .target = T_GOOD,
                             .source = RELAY CHECK("sockets", "false", "not yet")});
    /* A target that is not ready says itself what it waits for. */
    check(101, &(struct row){
                   .migration = MIGRATION("PreparingTarget", "", SINCE("PreparingTarget", "10")),
                   .vmi = VMI("Running", STATE("u1", "")),
                   .pod = POD_OK,
                   .link = "target-prepared",
                   .state = WHY_BROKEN,
                   .says = "; relay: no answer",
                   .target = CHECK("pod", "true", "") "," CHECK("relay", "false", "no answer")});
}

static void who_is_asked(void **state)
{
    static const struct {
        const char *migration, *vmi;
        const char *mode;
        bool expected;
    } rows[] = {
        {MIGRATION("Pending", "", ""), RUNS, NULL, false},
        {MIGRATION("Scheduled", "", ""), VMI("Running", STATE("u1", "")), NULL, false},
        {MIGRATION("PreparingTarget", "", ""), VMI("Running", STATE("u1", "")), NULL, true},
        {READY, PUBLISHED, NULL, true},
        {READY, VMI("Running", STATE("u0", "")), NULL, false},
        {RUNNING, MOVING, "PreCopy", true},
        {RUNNING, MOVING, "PostCopy", false},
        {RUNNING, VMI("Running", STATE("u1", ",\"completed\":true")), NULL, false},
        {FAILED("Stuck: x"), MOVING, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *m = object(API_KIND_MIGRATION, rows[i].migration);
        api_cleanup_object struct api_object *v = object(API_KIND_VMI, rows[i].vmi);
        struct why_view view = {.migration = &m->u.migration, .vmi = &v->u.vmi};

        if (rows[i].mode) {
            view.n_samples = 1;
            snprintf(view.samples[0].mode, sizeof(view.samples[0].mode), "%s", rows[i].mode);
        }
        if (why_needs_nodes(&view) != rows[i].expected) {
            fail_msg("case %zu", i);
        }
    }
}

static void reports_are_read(void **state)
{
    static const char *const bad[] = {"", "[]", "{}", "{\"checks\":1}", "{\"checks\":[}"};
    struct why_report r;
    struct ferry_error err = {0};
    ferry_cleanup_buf struct ferry_buf many = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_true(why_report_parse(bad[i], strlen(bad[i]), &r, &err) < 0);
    }
    ferry_buf_puts(&many, "{\"checks\":[1,{\"ok\":true}");
    for (int i = 0; i < 2 * WHY_CHECKS; i++) {
        ferry_buf_puts(&many, ",{\"name\":\"a name that is longer than any that is known\"}");
    }
    ferry_buf_puts(&many, "]}");
    assert_int_equal(why_report_parse(many.data, many.len, &r, &err), 0);
    assert_int_equal(r.n, WHY_CHECKS);
    assert_false(r.checks[0].ok);
    assert_int_equal(r.checks[0].channel, WHY_NO_CHANNEL);
}

#define POSTCOPY(meta)                                                                             \
    "{\"metadata\":{\"name\":\"demo\",\"namespace\":\"default\",\"uid\":\"v1\"" meta               \
    "},\"status\":{\"phase\":\"Running\",\"nodeName\":\"node1\"" STATE(                            \
        "u1", ADDRESS PORTS STARTED ",\"mode\":\"PostCopy\"") "}}"
#define LATE                                                                                       \
    {                                                                                              \
        .mode = "PostCopy", .elapsed_ms = 1000, .total_bytes = MIB, .remaining_bytes = 9           \
    }
#define LATER                                                                                      \
    {                                                                                              \
        .mode = "PostCopy", .elapsed_ms = 3000, .total_bytes = MIB, .processed_bytes = 9,          \
        .remaining_bytes = 5                                                                       \
    }

static void in_post_copy(void **state)
{
    static const struct row rows[] = {
        {.vmi = POSTCOPY(""),
         .link = "end",
         .state = WHY_WAITS,
         .says = "PostCopy since 2.5 s after the start",
         .mode_since_ms = 2500},
        {.vmi = POSTCOPY(""), .link = "end", .state = WHY_WAITS, .says = "the way between the"},
        {.vmi = POSTCOPY(",\"annotations\":{\"ferry.io/recover\":\"u1/2\"}"),
         .link = "post-copy",
         .state = WHY_BROKEN,
         .says = "the guest waits on node2 for memory that is still on node1",
         .advice = "keep both up"},
        {.vmi = POSTCOPY(",\"annotations\":{\"ferry.io/recover\":\"u1/1\","
                         "\"ferry.io/ports-generation\":\"u1/1\"}"),
         .link = "end",
         .state = WHY_WAITS,
         .says = "recovered over fresh streams, 1 time"},
        {.vmi = POSTCOPY(",\"annotations\":{\"ferry.io/recover\":\"u0/7\"}"),
         .link = "end",
         .state = WHY_WAITS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct row r = rows[i];

        r.migration = RUNNING;
        r.pod = POD_OK;
        r.samples[0] = (struct wire_progress)LATE;
        r.samples[1] = (struct wire_progress)LATER;
        r.n_samples = 2;
        check(i, &r);
    }
    struct row away = {.migration = RUNNING,
                       .vmi = POSTCOPY(""),
                       .pod = POD_OK,
                       .samples = {LATE, LATER},
                       .n_samples = 2,
                       .link = "post-copy",
                       .state = WHY_BROKEN,
                       .says = "is away"};
    away.samples[1].path_away = true;
    check(200, &away);
    /* Nothing moves meanwhile, and that is not what is broken. */
    away.samples[1].processed_bytes = away.samples[0].processed_bytes;
    check(201, &away);
    away.samples[1].elapsed_ms = away.samples[0].elapsed_ms;
    check(202, &away);
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
        /* whatever its figures say, or when there are none */
        {MIGRATION("Running", ",\"deletionTimestamp\":\"" AT("40") "\"", ""),
         MOVING,
         POD_OK,
         {{.mode = ""}},
         0,
         NULL,
         NULL,
         "cancel",
         WHY_WAITS,
         "being cancelled",
         NULL},
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
        {FAILED("Refused: x"), "target-prepared"},
        {FAILED("RelayTrouble: x"), "sockets"},
        {FAILED("TLSFailed: x"), "tls"},
        {FAILED("Stuck: x"), "transfer"},
        {FAILED("NotConverging: x"), "transfer"},
        {FAILED("Aborted: x"), "cancel"},
        {FAILED("DestinationTooSmall: x"), "volumes"},
        {FAILED("CPUIncompatible: x"), "migratable"},
        {FAILED("DeviceNotMigratable: x"), "migratable"},
        {FAILED("TargetLost: x"), "path"},
        {FAILED("ControlRefused: x"), "target-prepared"},
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
        cmocka_unit_test(before_the_transfer), cmocka_unit_test(in_the_transfer),
        cmocka_unit_test(between_the_nodes),   cmocka_unit_test(who_is_asked),
        cmocka_unit_test(reports_are_read),    cmocka_unit_test(in_post_copy),
        cmocka_unit_test(afterwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
