/* What a node may say of itself, how much of it, and which certificates of one that was removed are
 * refused: tables over pure functions. */
#include "lib/unit.h"

#include "api/json.h"
#include "apiserver/access/budget.h"
#include "apiserver/access/node_rules.h"
#include "base/str.h"
#include "tls/denial.h"
#include "tls/pki.h"

/* ---- denials -----------------------------------------------------------------------------------
 */

static void denials(void **state)
{
    static const struct {
        struct tls_denial d;
        const char *generation;
        int64_t begin_s; /* as the certificate says: it is younger by PKI_BACKDATE_S */
        bool hit;
    } cases[] = {
        /* removed: nothing is good, whenever it was signed */
        {{.node = "n"}, NULL, 0, true},
        {{.node = "n"}, "", 1000000, true},
        {{.node = "n"}, "g1", 1000000, true},
        {{.node = "n", .generation = ""}, "", 1000000, true},
        /* joined again: what was signed for that is good, and nothing else */
        {{.node = "n", .generation = "g1"}, "g1", 0, false},
        {{.node = "n", .generation = "g1"}, "g2", 1000000, true},
        {{.node = "n", .generation = "g1"}, "g", 1000000, true},
        {{.node = "n", .generation = "g1"}, "", 1000000, true},
        {{.node = "n", .generation = "g1"}, NULL, 1000000, true},
        /* by an older version: what is younger is good */
        {{.node = "n", .before_s = 5000}, NULL, 5000 - PKI_BACKDATE_S, true},
        {{.node = "n", .before_s = 5000}, NULL, 5001 - PKI_BACKDATE_S, false},
        {{.node = "n", .before_s = 5000}, "", 0, true},
        {{.node = "n", .before_s = 5000, .generation = "g1"}, NULL, 1000000, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (tls_denial_hits(&cases[i].d, cases[i].generation, cases[i].begin_s) != cases[i].hit) {
            fail_msg("case %zu", i);
        }
    }
}

/* ---- budgets -----------------------------------------------------------------------------------
 */

static void buckets(void **state)
{
    static const struct budget_limit limit = {.per_s = 10, .burst = 100};
    static const struct {
        int64_t at_ms, cost, wait_ms; /* taken when there is nothing to wait for */
    } steps[] = {
        {1000, 60, 0},     {1000, 40, 0},        {1000, 1, 100}, /* full; ten a second leave */
        {1099, 1, 1},      {1100, 1, 0},         {1100, 50, 5000},
        {900, 1, 100},    /* a clock that went back */
        {11100, 100, 0},  /* empty again */
        {21100, 1000, 0}, /* more than ever fits, into an empty one */
        {21100, 1, 90100}, {1000000000, 100, 0},
    };
    struct budget_bucket b = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        int64_t wait = budget_wait_ms(&b, &limit, steps[i].cost, steps[i].at_ms);

        if (wait != steps[i].wait_ms) {
            fail_msg("step %zu: %lld", i, (long long)wait);
        }
        if (wait == 0) {
            budget_take(&b, &limit, steps[i].cost, steps[i].at_ms);
        }
    }
}

/* How many writes of that size go through in `seconds`, tried as fast as a node can. */
static long count(bool events, int64_t bytes, int seconds, int64_t step_ms)
{
    struct budget b = {0};
    long done = 0;

    for (int64_t ms = 0; ms < seconds * 1000L; ms += step_ms) {
        for (int i = 0; i < 100; i++) {
            done += budget_write(&b, events, bytes, 50000 + ms) == 0;
        }
    }
    return done;
}

static void nodes_budget(void **state)
{
    struct budget b = {0};

    (void)state;
    assert_in_range(count(true, 1000, 2, 10), 2000, 2012);
    assert_in_range(count(true, 8 << 10, 2, 10) * (8 << 10), 4 << 20, (4 << 20) + (32 << 10));
    assert_in_range(count(false, 100, 2, 10), 5000, 6010);
    assert_in_range(count(false, 512 << 10, 2, 10) * (512L << 10), 16 << 20, 21 << 20);
    /* In an hour, which is how long an event lives: what a node can have stored. */
    assert_in_range(count(true, 1600, 3600, 1000), 15000, 21000);
    /* A drain of a hundred guests: both ends of each say ten things, and each move's progress is
     * told every second, ten moves at a time. */
    for (int s = 0; s < 200; s++) {
        for (int i = 0; i < 10; i++) {
            assert_int_equal(budget_write(&b, true, 1200, s * 1000 + 1), 0);
        }
        for (int i = 0; i < 40; i++) {
            assert_int_equal(budget_write(&b, false, 4000, s * 1000 + 1), 0);
        }
    }
    /* Events do not keep it from what matters. */
    while (budget_write(&b, true, 1000, 200001) == 0) {
    }
    assert_int_equal(budget_write(&b, false, 1000, 200001), 0);
}

/* ---- rules -------------------------------------------------------------------------------------
 */

#define NODE(labels, annotations)                                                                  \
    "{\"metadata\":{\"name\":\"n1\",\"labels\":{" labels "},\"annotations\":{" annotations "}}}"
#define HOST "\"kubernetes.io/hostname\":\"n1\""
#define ZONE "\"topology.kubernetes.io/zone\":\"z1\""
#define CAPACITY(values) "{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":{" values "}}}"
#define ALLOCATABLE(values)                                                                        \
    "{\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{" values "}}}"
#define ADDRESSES(list) "{\"metadata\":{\"name\":\"n1\"},\"status\":{\"addresses\":[" list "]}}"
#define EVENT(rest) "{\"metadata\":{\"name\":\"e\"}" rest "}"
#define OF_N1                                                                                      \
    ",\"source\":{\"component\":\"ferry-handler\",\"host\":\"n1\"},\"reportingInstance\":\"n1\""
#define OF_N2 ",\"source\":{\"host\":\"n2\"},\"reportingInstance\":\"n2\""

static const struct rules_case {
    const char *plural, *old, *now; /* old NULL: it is new */
    int code;
    const char *words;
} rules_cases[] = {
    {"nodes", NULL, NODE(HOST ",\"kubernetes.io/os\":\"linux\"", ""), 0, ""},
    {"nodes", NULL, NODE("\"kubernetes.io/hostname\":\"n2\"", ""), 422, "not a value"},
    {"nodes", NODE(HOST, ""), NODE("\"kubernetes.io/hostname\":\"n2\"", ""), 422, "not a value"},
    {"nodes", NULL, NODE(ZONE, ""), 403, "may not set the label"},
    {"nodes", NODE(ZONE, ""), NODE(ZONE "," HOST, ""), 0, ""}, /* an admin's, and it stays */
    {"nodes", NODE(ZONE, ""), NODE(HOST, ""), 403, "may not remove the label"},
    {"nodes", NODE(ZONE, ""), NODE("\"topology.kubernetes.io/zone\":\"z2\"", ""), 403,
     "may not set the label"},
    {"nodes", NODE("", ""), NODE("\"node-role.kubernetes.io/control-plane\":\"\"", ""), 403,
     "may not set"},
    {"nodes", NODE("", ""), NODE("\"node-restriction.kubernetes.io/secret\":\"yes\"", ""), 403,
     "may not set"},
    {"nodes", NODE("", ""), NODE("\"cpu-model.node.kubevirt.io/Haswell\":\"true\"", ""), 0, ""},
    {"nodes", NODE("\"cpu-model.node.kubevirt.io/Haswell\":\"true\"", ""), NODE("", ""), 0, ""},
    {"nodes", NODE("", ""), NODE("\"cpu-model.node.kubevirt.io/Haswell\":\"maybe\"", ""), 422,
     "not a value"},
    {"nodes", NODE("", ""), NODE("\"machine-type.node.kubevirt.io/pc-q35-9.2\":\"true\"", ""), 0,
     ""},
    {"nodes", NODE("", ""), NODE("\"machine-type.node.kubevirt.io/q35\":\"true\"", ""), 422,
     "not a value"},
    {"nodes", NODE("", ""), NODE("\"machine-type.node.kubevirt.io/evil\":\"true\"", ""), 422,
     "not a value"},
    {"nodes", NODE("", ""), NODE("\"kubevirt.io/schedulable\":\"false\"", ""), 0, ""},
    {"nodes", NODE("", ""), NODE("\"kubevirt.io/schedulable\":\"now\"", ""), 422, "not a value"},
    {"nodes", NODE("", ""), NODE("", "\"kubevirt.io/heartbeat\":\"2026-01-01T00:00:00Z\""), 0, ""},
    {"nodes", NODE("", ""), NODE("", "\"ferry.io/migration-address\":\"fd00::1\""), 0, ""},
    {"nodes", NODE("", ""), NODE("", "\"ferry.io/migration-address\":\"\""), 0, ""},
    {"nodes", NODE("", ""), NODE("", "\"ferry.io/migration-address\":\"evil.example\""), 422,
     "not a value"},
    {"nodes", NODE("", ""), NODE("", "\"ferry.io/parallelInboundMigrationsPerNode\":\"99\""), 403,
     "may not set the annotation"},
    {"nodes", NODE("", "\"people\":\"wrote\""), NODE("", ""), 403, "may not remove the annotation"},

    {"nodes", NULL, CAPACITY("\"cpu\":\"8\",\"memory\":\"256Gi\",\"pods\":\"110\""), 0, ""},
    {"nodes", NULL, CAPACITY("\"cpu\":64,\"devices.kubevirt.io/kvm\":\"1k\""), 0, ""},
    {"nodes", NULL, CAPACITY("\"memory\":\"64Ti\",\"cpu\":\"8192\""), 0, ""},
    {"nodes", NULL, CAPACITY("\"memory\":\"65Ti\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"memory\":\"1e30\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"memory\":\"-1Gi\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"memory\":\"much\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"cpu\":\"8193\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"pods\":\"1000000\""), 422, "not an amount"},
    {"nodes", NULL, CAPACITY("\"example.com/gpu\":\"9999999999\""), 422, "not an amount"},
    {"nodes", NULL, ALLOCATABLE("\"memory\":\"1e30\""), 422, "status.allocatable"},
    /* what was there is not what it does now */
    {"nodes", CAPACITY("\"memory\":\"1e30\""), CAPACITY("\"memory\":\"1e30\""), 0, ""},
    {"nodes", NULL,
     ADDRESSES("{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"},"
               "{\"type\":\"Hostname\",\"address\":\"n1\"}"),
     0, ""},
    {"nodes", NULL, ADDRESSES("{\"type\":\"InternalIP\",\"address\":\"db.internal\"}"), 422,
     "must be a numeric address"},

    {"events", NULL, EVENT(OF_N1), 0, ""},
    {"events", NULL, EVENT(OF_N2), 403, "must say so"},
    {"events", NULL, EVENT(""), 403, "must say so"},
    {"events", EVENT(OF_N1), EVENT(OF_N1 ",\"count\":2"), 0, ""},
    {"events", EVENT(OF_N2), EVENT(OF_N2 ",\"count\":2"), 403, "is not node \"n1\"'s"},
    {"events", EVENT(OF_N2), EVENT(OF_N1), 403, "is not node \"n1\"'s"},
    {"events", EVENT(OF_N1), EVENT(OF_N2), 403, "must say so"},
    {"configmaps", NULL, "{\"metadata\":{\"name\":\"c\"}}", 0, ""},
};

static int check(const char *plural, const char *old, const char *now, struct status *st)
{
    const struct api_resource *r = api_resources();
    api_cleanup_doc yyjson_doc *a = old ? yyjson_read(old, strlen(old), 0) : NULL;
    api_cleanup_doc yyjson_doc *b = yyjson_read(now, strlen(now), 0);

    while (!ferry_streq(r->plural, plural)) {
        r++;
    }
    assert_true(b && (a || !old));
    *st = (struct status){0};
    return node_rules_check(r, "n1", old ? yyjson_doc_get_root(a) : NULL, yyjson_doc_get_root(b),
                            st);
}

static void rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rules_cases); i++) {
        const struct rules_case *c = &rules_cases[i];
        struct status st;
        int rc = check(c->plural, c->old, c->now, &st);

        if ((rc < 0) != (c->code != 0) || st.code != c->code || !strstr(st.message, c->words)) {
            fail_msg("case %zu: %s: %d '%s'", i, c->now, st.code, st.message);
        }
    }
}

static char *with_filler(const char *format, size_t bytes)
{
    ferry_cleanup_free char *filler = ferry_xcalloc(bytes + 1, 1);

    memset(filler, 'x', bytes);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return ferry_asprintf(format, filler);
#pragma GCC diagnostic pop
}

static void sizes(void **state)
{
    static const struct {
        const char *plural, *format;
        size_t was, now; /* bytes of filler; was 0: it is new */
        int code;
    } cases[] = {
        {"events", EVENT(OF_N1 ",\"message\":\"%s\""), 0, 7000, 0},
        {"events", EVENT(OF_N1 ",\"message\":\"%s\""), 0, 9000, 413},
        {"events", EVENT(OF_N1 ",\"message\":\"%s\""), 0, 1 << 20, 413},
        {"pods", "{\"status\":{\"message\":\"%s\"}}", 10, 15000, 0},
        {"pods", "{\"status\":{\"message\":\"%s\"}}", 10, 17000, 413},
        {"pods", "{\"spec\":{\"x\":\"%s\"}}", 10, 17000, 0},
        {"virtualmachineinstances", "{\"status\":{\"x\":\"%s\"}}", 10, 100000, 0},
        {"virtualmachineinstances", "{\"status\":{\"x\":\"%s\"}}", 10, 1 << 20, 413},
        /* an admin's doing: it may stay, and shrink */
        {"virtualmachineinstances", "{\"status\":{\"x\":\"%s\"}}", 200000, 200000, 0},
        {"virtualmachineinstances", "{\"status\":{\"x\":\"%s\"}}", 200000, 190000, 0},
        {"virtualmachineinstances", "{\"status\":{\"x\":\"%s\"}}", 200000, 200001, 413},
        {"virtualmachineinstances", "{\"metadata\":{\"annotations\":{\"a\":\"%s\"}}}", 10, 70000,
         413},
        {"leases", "{\"spec\":{\"x\":\"%s\"}}", 0, 5000, 413},
        {"nodes", "{\"status\":{\"x\":\"%s\"}}", 10, 300000, 413},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *old =
            cases[i].was ? with_filler(cases[i].format, cases[i].was) : NULL;
        ferry_cleanup_free char *now = with_filler(cases[i].format, cases[i].now);
        struct status st;

        check(cases[i].plural, old, now, &st);
        if (st.code != cases[i].code) {
            fail_msg("case %zu: %d %s", i, st.code, st.message);
        }
    }
}

static void too_many_labels(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct status st;

    (void)state;
    ferry_buf_puts(&b, "{\"metadata\":{\"labels\":{");
    for (int i = 0; i < 2001; i++) {
        ferry_buf_printf(&b, "%s\"cpu-feature.node.kubevirt.io/f%d\":\"true\"", i ? "," : "", i);
    }
    ferry_buf_puts(&b, "}}}");
    assert_int_equal(check("nodes", NULL, b.data, &st), -1);
    assert_non_null(strstr(st.message, "Too many"));
    assert_int_equal(check("nodes", b.data, b.data, &st), 0);
}

static void claims(void **state)
{
    static const char *const configs[] = {
        "nonsense",
        "{\"type\":\"macvlan\",\"master\":\"eth0\",\"ipam\":{\"type\":\"whereabouts\",\"range\":"
        "\"10.1.1.0/24\",\"exclude\":[\"10.1.1.9/32\"],\"gateway\":\"10.1.1.1\"}}",
    };
    static const struct {
        const char *name;
        size_t n, held; /* addresses, of a network of before */
        int code;
        const char *one; /* of this network */
    } cases[] = {
        {"ferry-address-10.1.1.5", 2, 0, 0},
        {"ferry-address-10.1.1.5", 2, 7, 0},
        {"ferry-address-10.1.1.5", 2, 8, 403},
        {"ferry-address-10.1.1.5", 2, 1, 403, "10.1.1.6"},
        {"ferry-address-10.1.1.5", 2, 1, 0, "10.1.1.9"}, /* left out since */
        {"ferry-address-10.1.1.5", 2, 1, 0, "10.1.2.6"},
        {"ferry-address-10.1.1.5", 1, 0, 403}, /* no network that can be read */
        {"ferry-address-10.1.1.5", 0, 0, 403}, /* none at all */
        {"ferry-address-10.1.1.1", 2, 0, 403}, /* the gateway */
        {"ferry-address-10.1.1.9", 2, 0, 403}, /* left out */
        {"ferry-address-10.1.1.0", 2, 0, 403},
        {"ferry-address-10.1.2.5", 2, 0, 403},
        {"ferry-address-fd00--5-v6", 2, 0, 403},
        {"ferry-controller", 2, 0, 403},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct status st = {0};
        struct api_ip held[8];

        for (size_t k = 0; k < cases[i].held; k++) {
            assert_true(api_ip_parse(cases[i].one ? cases[i].one : "192.0.2.7", &held[k]));
        }
        node_rules_claim(api_resource_of_kind(API_KIND_LEASE), cases[i].name,
                         &(struct node_rules_claims){configs, cases[i].n, held, cases[i].held},
                         &st);
        if (st.code != cases[i].code) {
            fail_msg("case %zu: %d %s", i, st.code, st.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denials), cmocka_unit_test(buckets), cmocka_unit_test(nodes_budget),
        cmocka_unit_test(rules),   cmocka_unit_test(sizes),   cmocka_unit_test(too_many_labels),
        cmocka_unit_test(claims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
