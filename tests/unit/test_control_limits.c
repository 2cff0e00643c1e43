/* Which moves may start, and when a node counts as lost. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/objects.h"

#include "control/loops/node_decide.h"
#include "control/migration/migration_limits.h"
#include "kube/queue.h"

/* ---- limits ----------------------------------------------------------------------------------
 */

/* Entries as text: "NAME:NODE:PRIORITY:STATE", state a(ctive), r(eady), b(locked); in order of
 * age. */
static const struct limits_row {
    const char *name, *entries[8], *self;
    bool start;
    const char *reason;
    size_t position;
} limits_rows[] = {
    {"alone", {"1:a::r"}, "1", true, NULL, 1},
    {"22: two leave the node already",
     {"1:a::a", "2:a::a", "3:a::r"},
     "3",
     false,
     "OutboundLimit",
     1},
    {"16: a second of the same node", {"1:a::a", "2:a::r"}, "2", true, NULL, 1},
    {"from another node it may", {"1:a::a", "2:a::a", "3:b::r"}, "3", true, NULL, 1},
    {"14: cluster full",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::a", "6:f::r"},
     "6",
     false,
     "ClusterLimit",
     1},
    {"13: a fifth", {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r"}, "5", true, NULL, 1},
    {"the older takes the last place",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f::r"},
     "6",
     false,
     "ClusterLimit",
     2},
    {"and the older gets it",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f::r"},
     "5",
     true,
     NULL,
     1},
    {"priority before age",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f:system-critical:r"},
     "5",
     false,
     "ClusterLimit",
     2},
    {"priority before age, the other way",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f:system-critical:r"},
     "6",
     true,
     NULL,
     1},
    {"one held back by its node does not hold back others",
     {"1:a::a", "2:a::a", "3:a::r", "4:b::r"},
     "4",
     true,
     NULL,
     2},
    {"one that is not ready does not take a place",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::b", "6:f::r"},
     "6",
     true,
     NULL,
     2},
    {"waiting ones of a node share its places",
     {"1:a::a", "2:a::r", "3:a::r"},
     "3",
     false,
     "OutboundLimit",
     2},
    {"nobody moves yet: the first of the node are in the way",
     {"1:a::r", "2:a::r", "3:a::r"},
     "3",
     false,
     "OutboundLimit",
     3},
    {"nobody moves yet: the first of all are in the way",
     {"1:a::r", "2:b::r", "3:c::r", "4:d::r", "5:e::r", "6:f::r"},
     "6",
     false,
     "ClusterLimit",
     6},
    {"unknown source counts for the cluster only", {"1:::a", "2:::a", "3:::r"}, "3", true, NULL, 1},
};

static void test_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(limits_rows); i++) {
        const struct limits_row *r = &limits_rows[i];
        struct limits_ledger *l =
            limits_ledger_new(&(struct migration_limits){.cluster = 5, .outbound_per_node = 2});

        for (size_t n = 0; n < 8 && r->entries[n]; n++) {
            const char *from = r->entries[n];
            char texts[4][32];

            for (int k = 0; k < 4; k++) {
                size_t len = strcspn(from, ":");

                snprintf(texts[k], 32, "%.*s", (int)len, from);
                from += len + (from[len] == ':');
            }
            limits_ledger_put(
                l, &(struct limits_move){.uid = texts[0],
                                         .key = texts[0],
                                         .created_ms = (int64_t)n * 1000,
                                         .priority = texts[2][0] ? KUBE_PRIORITY_CRITICAL : 0,
                                         .source_node = texts[1][0] ? texts[1] : NULL,
                                         .active = texts[3][0] == 'a',
                                         .ready = texts[3][0] == 'r'});
        }
        struct limits_answer a = limits_ledger_check(l, r->self);
        if (a.start != r->start || !ferry_streq(wire_reason_text(a.reason), r->reason) ||
            a.position != r->position) {
            fail_msg("%s: start %d reason %s position %zu", r->name, a.start,
                     a.reason ? wire_reason_text(a.reason) : "-", a.position);
        }
        if (a.reason && (!a.blocker || ferry_streq(a.blocker, r->self))) {
            fail_msg("%s: behind %s", r->name, a.blocker ? a.blocker : "nobody");
        }
        limits_ledger_free(l);
    }
}

/* A claim is one until it shows, or is given back. */
static void test_claims(void **state)
{
    struct limits_move move = {.uid = "a", .key = "a", .source_node = "n", .ready = true};
    struct limits_ledger *l =
        limits_ledger_new(&(struct migration_limits){.cluster = 9, .outbound_per_node = 1});
    (void)state;

    limits_ledger_put(l, &move);
    assert_false(limits_ledger_is_claimed(l, "a"));
    limits_ledger_claim(l, "a", false);
    assert_true(limits_ledger_is_claimed(l, "a"));
    move.ready = false; /* something else is in its way now */
    limits_ledger_put(l, &move);
    assert_true(limits_ledger_is_claimed(l, "a"));
    assert_int_equal(limits_ledger_check(l, "a").running, 1);
    limits_ledger_disclaim(l, "a");
    assert_false(limits_ledger_is_claimed(l, "a"));
    assert_int_equal(limits_ledger_check(l, "a").running, 0);
    limits_ledger_claim(l, "a", false);
    move.active = true;
    move.target_node = "m";
    limits_ledger_put(l, &move);
    assert_false(limits_ledger_is_claimed(l, "a"));
    limits_ledger_claim(l, "a", true);
    assert_true(limits_ledger_is_claimed(l, "a"));
    move.handed_off = true;
    limits_ledger_put(l, &move);
    assert_false(limits_ledger_is_claimed(l, "a"));
    assert_false(limits_ledger_is_claimed(l, "nobody"));
    limits_ledger_free(l);
}

/* What a drain makes in one second: small guests first, older or more important ones before them.
 */
static void test_small_guests_first(void **state)
{
    static const struct limits_move moves[] = {
        {.uid = "a", .key = "large", .memory = 300, .created_ms = 2000, .ready = true},
        {.uid = "b", .key = "small", .memory = 100, .created_ms = 2000, .ready = true},
        {.uid = "c", .key = "older", .memory = 900, .created_ms = 1000, .ready = true},
        {.uid = "d",
         .key = "urgent",
         .memory = 800,
         .created_ms = 3000,
         .ready = true,
         .priority = KUBE_PRIORITY_CRITICAL},
        {.uid = "e", .key = "middle", .memory = 200, .created_ms = 2000, .ready = true},
    };
    static const char *const order[] = {"urgent", "older", "small", "middle", "large"};
    struct limits_ledger *l =
        limits_ledger_new(&(struct migration_limits){.cluster = 9, .outbound_per_node = 9});
    (void)state;

    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        limits_ledger_put(l, &moves[i]);
    }
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        assert_string_equal(limits_ledger_next(l, i), order[i]);
    }
    limits_ledger_free(l);
}

/* Random changes against the answer worked out the slow way. */
enum { MOVES = 40, SITES = 4 };

static int slow_order(const void *pa, const void *pb)
{
    const struct limits_move *a = pa, *b = pb;

    return a->priority != b->priority       ? (a->priority > b->priority ? -1 : 1)
           : a->created_ms != b->created_ms ? (a->created_ms < b->created_ms ? -1 : 1)
                                            : strcmp(a->uid, b->uid);
}

static bool slow_may_start(const struct limits_move *all, size_t n, const char *uid,
                           const struct migration_limits *limits)
{
    size_t active = 0, out[SITES] = {0};

    for (size_t i = 0; i < n; i++) {
        active += all[i].active;
        out[all[i].source_node[0] - 'a'] += all[i].active;
    }
    for (size_t i = 0; i < n && active < limits->cluster; i++) {
        size_t *o = &out[all[i].source_node[0] - 'a'];

        if (!all[i].active && all[i].ready && *o < limits->outbound_per_node) {
            if (strcmp(all[i].uid, uid) == 0) {
                return true;
            }
            ++*o;
            active++;
        }
    }
    return false;
}

static void test_ledger_at_random(void **state)
{
    static const char *const nodes[SITES] = {"a", "b", "c", "d"};
    const struct migration_limits limits = {
        .cluster = 7, .outbound_per_node = 2, .inbound_per_node = 2};
    struct limits_ledger *l = limits_ledger_new(&limits);
    char uids[MOVES][8];
    struct limits_move all[MOVES];
    bool in[MOVES] = {false};
    unsigned seed = 7;
    (void)state;

    for (int i = 0; i < MOVES; i++) {
        snprintf(uids[i], sizeof(uids[i]), "u%02d", i);
    }
    for (int step = 0; step < 4000; step++) {
        int i = rand_r(&seed) % MOVES;

        if (in[i] && rand_r(&seed) % 4 == 0) {
            limits_ledger_drop(l, uids[i]);
            in[i] = false;
        } else {
            all[i] = (struct limits_move){.uid = uids[i],
                                          .key = uids[i],
                                          .source_node = nodes[rand_r(&seed) % SITES],
                                          .priority = rand_r(&seed) % 3,
                                          .created_ms = rand_r(&seed) % 5,
                                          .active = rand_r(&seed) % 8 == 0,
                                          .ready = rand_r(&seed) % 2};
            limits_ledger_put(l, &all[i]);
            in[i] = true;
        }
        struct limits_move sorted[MOVES];
        size_t n = 0, waiting = 0;
        for (int k = 0; k < MOVES; k++) {
            if (in[k]) {
                sorted[n++] = all[k];
            }
        }
        qsort(sorted, n, sizeof(sorted[0]), slow_order);
        for (size_t k = 0; k < n; k++) {
            struct limits_answer a = limits_ledger_check(l, sorted[k].uid);
            bool start = slow_may_start(sorted, n, sorted[k].uid, &limits);

            waiting += !sorted[k].active;
            if (a.start != start || a.position != (sorted[k].active ? 0 : waiting)) {
                fail_msg("step %d, %s: start %d, expected %d; position %zu of %zu", step,
                         sorted[k].uid, a.start, start, a.position, waiting);
            }
        }
    }
    limits_ledger_free(l);
}

/* A budget may be used up, and not by a byte more. */
static void test_budget_to_the_last_byte(void **state)
{
    static const struct {
        int64_t bandwidth;
        bool start;
    } rows[] = {{60, true}, {61, false}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct limits_ledger *l =
            limits_ledger_new(&(struct migration_limits){.cluster = 5,
                                                         .outbound_per_node = 5,
                                                         .inbound_per_node = 5,
                                                         .bandwidth_per_node = 100});

        limits_ledger_put(
            l, &(struct limits_move){
                   .uid = "a", .key = "a", .source_node = "n", .bandwidth = 40, .active = true});
        limits_ledger_put(l, &(struct limits_move){.uid = "b",
                                                   .key = "b",
                                                   .source_node = "n",
                                                   .bandwidth = rows[i].bandwidth,
                                                   .ready = true});
        struct limits_answer answer = limits_ledger_check(l, "b");
        assert_int_equal(answer.start, rows[i].start);
        assert_true(answer.start || answer.reason == REASON_BANDWIDTH_BUDGET);
        limits_ledger_free(l);
    }
}

static void test_ledger_of_nodes(void **state)
{
    struct limits_ledger *l = limits_ledger_new(&(struct migration_limits){
        .cluster = 10, .outbound_per_node = 9, .inbound_per_node = 1, .bandwidth_per_node = 100});
    struct limits_move one = {.uid = "1",
                              .key = "n/1",
                              .source_node = "a",
                              .target_node = "z",
                              .bandwidth = 60,
                              .active = true,
                              .handed_off = true};
    struct limits_move two = {.uid = "2",
                              .key = "n/2",
                              .source_node = "b",
                              .target_node = "z",
                              .bandwidth = 30,
                              .active = true};
    struct limits_move three = {
        .uid = "3", .key = "n/3", .source_node = "a", .bandwidth = 50, .ready = true};
    (void)state;

    limits_ledger_put(l, &one);
    limits_ledger_put(l, &two);
    limits_ledger_put(l, &three);
    struct limits_answer a = limits_ledger_check(l, "2");
    assert_false(a.enter);
    assert_int_equal(a.enter_reason, REASON_INBOUND_LIMIT);
    assert_string_equal(a.enter_blocker, "n/1");
    a = limits_ledger_check(l, "3");
    assert_false(a.start);
    assert_int_equal(a.reason, REASON_BANDWIDTH_BUDGET);
    assert_string_equal(a.blocker, "n/1");
    limits_ledger_drop(l, "1");
    assert_true(limits_ledger_check(l, "2").enter);
    assert_true(limits_ledger_check(l, "3").start);
    assert_string_equal(limits_ledger_next(l, 0), "n/3");
    /* A claim holds the place until it shows. */
    limits_ledger_claim(l, "3", false);
    assert_true(limits_ledger_check(l, "3").start);
    assert_int_equal(limits_ledger_check(l, "3").running, 2);
    assert_null(limits_ledger_next(l, 0));
    limits_ledger_disclaim(l, "3");
    assert_string_equal(limits_ledger_next(l, 0), "n/3");
    limits_ledger_free(l);
}

/* Limits that change count from then on, whichever of them it is. */
static void test_limits_change(void **state)
{
    static const struct {
        const char *name;
        struct migration_limits limits;
        const char *reason; /* of the one that waits; NULL = it may start */
        bool enter;         /* of the one that is about to be handed over */
    } rows[] = {
        {"as it was", {5, 5, 5, 100}, NULL, true},
        {"the cluster's", {2, 5, 5, 100}, "ClusterLimit", true},
        {"a node's, outbound", {5, 1, 5, 100}, "OutboundLimit", true},
        {"a node's, inbound", {5, 5, 1, 100}, NULL, false},
        {"the budget", {5, 5, 5, 30}, "BandwidthBudget", false},
        {"no budget", {5, 5, 5, 0}, NULL, true},
        {"all of them", {9, 9, 9, 900}, NULL, true},
    };
    static const struct limits_move moves[] = {
        {.uid = "1",
         .key = "1",
         .source_node = "a",
         .target_node = "z",
         .bandwidth = 20,
         .active = true,
         .handed_off = true},
        {.uid = "2",
         .key = "2",
         .source_node = "b",
         .target_node = "z",
         .bandwidth = 20,
         .active = true},
        {.uid = "3", .key = "3", .source_node = "a", .bandwidth = 20, .ready = true},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct limits_ledger *l = limits_ledger_new(&rows[0].limits);

        for (size_t k = 0; k < COUNT_OF(moves); k++) {
            limits_ledger_put(l, &moves[k]);
        }
        for (int back = 0; back < 2; back++) { /* there, and there again from the first */
            limits_ledger_set(l, &rows[i].limits);
            struct limits_answer waits = limits_ledger_check(l, "3");
            struct limits_answer enters = limits_ledger_check(l, "2");
            if (!ferry_streq(wire_reason_text(waits.reason), rows[i].reason) ||
                waits.start != !rows[i].reason || enters.enter != rows[i].enter) {
                fail_msg("%s: start %d, reason %s, enter %d", rows[i].name, waits.start,
                         waits.reason ? wire_reason_text(waits.reason) : "-", enters.enter);
            }
            limits_ledger_set(l, &rows[0].limits);
            assert_true(limits_ledger_check(l, "3").start && limits_ledger_check(l, "2").enter);
        }
        limits_ledger_free(l);
    }
}

/* ---- node_decide -----------------------------------------------------------------------------
 */

static const char NODE[] =
    "{'metadata':{'name':'n','resourceVersion':'1','labels':{'kubevirt.io/"
    "schedulable':'true'}},'status':{'allocatable':{'cpu':'4',"
    "'memory':'4Gi','pods':'10'},'conditions':[{'type':'Ready','status':'True'}]}}";

static void test_node(void **state)
{
    static const struct {
        const char *merge;
        int64_t silent_ms;
        bool patches;
        int64_t again_ms;
    } cases[] = {
        {"{}", 0, false, 40000},
        {"{}", 39999, false, 1},
        {"{}", 40000, true, 0},
        {"{'status':{'conditions':[{'type':'Ready','status':'False'}]}}", 50000, true, 0},
        {"{'status':{'conditions':null}}", 50000, true, 0},
        {"{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}", 50000, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *node =
            make_object(API_KIND_NODE, NODE, cases[i].merge);
        plan_cleanup struct plan p = {0};

        node_decide(node, cases[i].silent_ms, 1767225600000, &p);
        const struct plan_action *a = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_NODE);
        assert_int_equal(a != NULL, cases[i].patches);
        assert_int_equal(p.again_ms, cases[i].again_ms);
        if (a) {
            api_cleanup_object struct api_object *after = patched_object(node, a->body, false);
            const struct api_condition *c = api_condition_find(&after->u.node.conditions, "Ready");

            assert_string_equal(c->status, "Unknown");
            assert_int_equal(after->u.node.conditions.n, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_small_guests_first),
        cmocka_unit_test(test_ledger_at_random),
        cmocka_unit_test(test_budget_to_the_last_byte),
        cmocka_unit_test(test_ledger_of_nodes),
        cmocka_unit_test(test_limits_change),
        cmocka_unit_test(test_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
