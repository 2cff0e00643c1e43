/* What the scheduler and the loops look things up in. */
#include "lib/objects.h"

#include "base/clock.h"
#include "control/assumed.h"
#include "control/label_index.h"
#include "control/schedule_index.h"
#include "control/schedule_match.h"
#include "control/written.h"

/* ---- labels ----------------------------------------------------------------------------------
 */

static void assert_found(struct label_index *x, const char *key, const char *value,
                         const size_t *want, size_t n_want)
{
    size_t n = 0;
    const size_t *found = label_index_find(x, key, value, &n);

    assert_int_equal(n, n_want);
    if (n > 0) {
        assert_memory_equal(found, want, n * sizeof(*want));
    }
}

static void test_labels(void **state)
{
    struct label_index *x = label_index_new();
    (void)state;

    assert_found(x, "app", "web", NULL, 0);
    label_index_add(x, "app", "web", 3);
    label_index_add(x, "app", "db", 4);
    label_index_add(x, "app", "web", 1);
    label_index_add(x, "ap", "pweb", 9);
    assert_found(x, "app", "web", (size_t[]){3, 1}, 2);
    assert_found(x, "app", "db", (size_t[]){4}, 1);
    assert_found(x, "ap", "pweb", (size_t[]){9}, 1);
    assert_found(x, "app", "", NULL, 0);
    assert_found(x, "web", "app", NULL, 0);
    label_index_free(x);
    label_index_free(NULL);
}

static void test_many_labels(void **state)
{
    enum { VALUES = 500, EACH = 7 };
    struct label_index *x = label_index_new();
    static char values[VALUES][8];
    (void)state;

    for (size_t i = 0; i < VALUES * EACH; i++) {
        char *value = values[i % VALUES];

        snprintf(value, sizeof(values[0]), "%zu", i % VALUES);
        label_index_add(x, "k", value, i);
    }
    for (size_t i = 0; i < VALUES; i++) {
        size_t want[EACH];

        for (size_t k = 0; k < EACH; k++) {
            want[k] = k * VALUES + i;
        }
        assert_found(x, "k", values[i], want, EACH);
    }
    label_index_free(x);
}

/* ---- what rules ask, against looking at every pod ---------------------------------------------
 */

enum { NODES = 6, PODS = 40, ROUNDS = 60 };

static struct api_object *random_pod(int i, unsigned *seed)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{'metadata':{'name':'p%d','namespace':'%s','uid':'u%d','labels':{'app':'%c','tier':"
             "'%c'}},'spec':{'affinity':{'podAntiAffinity':{"
             "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
             "'labelSelector':{%s}}]}}}}",
             i, rand_r(seed) % 4 ? "ns" : "other", i, 'a' + rand_r(seed) % 4,
             'x' + rand_r(seed) % 2,
             rand_r(seed) % 3   ? "'matchLabels':{'app':'a','tier':'x'}"
             : rand_r(seed) % 2 ? "'matchExpressions':[{'key':'app','operator':'In','values':['b'"
                                  "]}]"
                                : "");
    return make_object(API_KIND_POD, json, NULL);
}

static bool about_any(const void *rule, const struct api_pod *other)
{
    return schedule_selects(rule, &other->meta.labels);
}

static size_t slow_count(const struct schedule_view *v, size_t node,
                         const struct api_label_selector *s)
{
    const char *zone = schedule_node_label(&v->nodes[node]->u.node, "zone");
    size_t n = 0;

    for (size_t i = 0; zone && i < v->n_pods; i++) {
        for (size_t k = 0; v->pods[i].node && k < v->n_nodes; k++) {
            n += strcmp(v->nodes[k]->meta->name, v->pods[i].node) == 0 &&
                 ferry_streq(schedule_node_label(&v->nodes[k]->u.node, "zone"), zone) &&
                 schedule_selects(s, &v->pods[i].pod->meta.labels) &&
                 !ferry_streq(v->pods[i].pod->meta.uid, v->pod->meta.uid);
        }
    }
    return n;
}

static size_t slow_apart(const struct schedule_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_pods; i++) {
        n += v->pods[i].node &&
             schedule_selects(&v->pods[i].pod->placement.affinity.anti.required[0].selector,
                              &v->pod->meta.labels);
    }
    return n;
}

static void count_apart(void *ctx, const struct schedule_apart *a)
{
    struct {
        const struct schedule_view *view;
        size_t n;
    } *c = ctx;

    c->n += schedule_selects(&a->term->selector, &c->view->pod->meta.labels);
}

static void check_view(const struct schedule_view *v, int round)
{
    const struct api_label_selector *s =
        &v->pod->placement.affinity.anti.required[0].selector; /* any will do */
    ferry_cleanup_free size_t *counts =
        schedule_count(v, &(struct schedule_question){
                              .topology = "zone", .selector = s, .about = about_any, .rule = s});
    struct {
        const struct schedule_view *view;
        size_t n;
    } apart = {v, 0};

    for (size_t i = 0; i < v->n_nodes; i++) {
        if (counts[i] != slow_count(v, i, s)) {
            fail_msg("round %d, node %zu: %zu, expected %zu", round, i, counts[i],
                     slow_count(v, i, s));
        }
    }
    schedule_each_apart(v, count_apart, &apart);
    assert_int_equal(apart.n, slow_apart(v));
}

static void test_questions_at_random(void **state)
{
    struct api_object *nodes[NODES], *pods[PODS];
    struct schedule_pod placed[PODS];
    unsigned seed = 11;
    (void)state;

    for (int i = 0; i < NODES; i++) {
        char json[128];

        snprintf(json, sizeof(json), "{'metadata':{'name':'n%d'%s}}", i,
                 i == 5  ? ""
                 : i % 2 ? ",'labels':{'zone':'odd'}"
                         : ",'labels':{'zone':'even'}");
        nodes[i] = make_object(API_KIND_NODE, json, NULL);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct schedule_view v = {.nodes = (const struct api_object *const *)nodes,
                                  .n_nodes = NODES,
                                  .pods = placed,
                                  .n_pods = PODS / 2};

        for (int i = 0; i < PODS; i++) {
            pods[i] = random_pod(i, &seed);
            placed[i] = (struct schedule_pod){
                &pods[i]->u.pod,
                rand_r(&seed) % 5 ? nodes[rand_r(&seed) % NODES]->meta->name : NULL};
        }
        v.index = schedule_index_new(&v);
        for (int i = 0; i < PODS / 2; i++) { /* each asks, then is put down itself */
            v.pod = &pods[PODS / 2 + i]->u.pod;
            check_view(&v, round);
            v.n_pods++;
            schedule_index_add(v.index, &v);
        }
        schedule_index_free(v.index);
        for (int i = 0; i < PODS; i++) {
            api_object_unref(pods[i]);
        }
    }
    for (int i = 0; i < NODES; i++) {
        api_object_unref(nodes[i]);
    }
}

/* ---- what was written ------------------------------------------------------------------------
 */

static const char POD[] = "{'metadata':{'name':'p','namespace':'ns','uid':'u1'}}";

static void test_written(void **state)
{
    static const struct {
        const char *name, *noted, *version; /* noted NULL = its deletion */
        bool deleted, ahead;
        int64_t after_ms;
        const char *uid; /* of what was written; NULL = this one's */
    } rows[] = {
        {"older", "10", "9", .ahead = true},
        {"the one", "10", "10"},
        {"newer", "10", "11"},
        {"as a number, not as a text", "10", "9", .ahead = true},
        {"as a number, the other way", "9", "10"},
        {"another object", "10", "9", .uid = "u2"},
        {"not for ever", "10", "9", .after_ms = 5001},
        {"for a while", "10", "9", .after_ms = 4999, .ahead = true},
        {"a version that is no number", "ten", "9"},
        {"a deletion that does not show", NULL, "9", .ahead = true},
        {"a deletion that shows", NULL, "9", .deleted = true},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char merge[160];
        struct written *w = written_new();

        snprintf(merge, sizeof(merge), "{'metadata':{'resourceVersion':'%s'%s}}", rows[i].version,
                 rows[i].deleted ? ",'deletionTimestamp':'2026-01-01T00:00:00Z'" : "");
        api_cleanup_object struct api_object *seen = make_object(API_KIND_POD, POD, merge);
        written_note(w, rows[i].uid ? rows[i].uid : "u1", rows[i].noted, FERRY_NS_PER_S);
        bool ahead = written_is_ahead(w, seen, FERRY_NS_PER_S + rows[i].after_ms * FERRY_NS_PER_MS);
        if (ahead != rows[i].ahead) {
            fail_msg("%s: %d", rows[i].name, ahead);
        }
        assert_int_equal(written_count(w), ahead || rows[i].uid ? 1 : 0);
        assert_false(written_is_ahead(w, NULL, FERRY_NS_PER_S));
        written_free(w);
    }
    written_free(NULL);
}

static void test_written_forgets(void **state)
{
    struct written *w = written_new();
    (void)state;

    for (int i = 0; i < 100; i++) {
        char uid[8];

        snprintf(uid, sizeof(uid), "u%d", i % 50); /* the later of two counts */
        written_note(w, uid, "5", i * 100 * FERRY_NS_PER_MS);
    }
    assert_int_equal(written_count(w), 50);
    written_note(w, "last", "5", (INT64_C(9900) + 2500) * FERRY_NS_PER_MS);
    assert_int_equal(written_count(w), 50 - 24 + 1); /* of 5,000 to 9,900 ms, those from 7,400 */
    written_free(w);
}

/* ---- assumed pods ----------------------------------------------------------------------------
 */

static void test_assumed(void **state)
{
    struct assumed *a = assumed_new();
    api_cleanup_object struct api_object *one = make_object(API_KIND_POD, POD, NULL);
    api_cleanup_object struct api_object *two =
        make_object(API_KIND_POD, POD, "{'metadata':{'uid':'u2'}}");
    api_cleanup_object struct api_object *bound =
        make_object(API_KIND_POD, POD, "{'spec':{'nodeName':'n1'}}");
    ferry_cleanup_free char *node = NULL, *none = NULL;
    (void)state;

    assert_false(assumed_has(a, "u1"));
    assumed_put(a, one, "n1");
    assumed_put(a, one, "n9"); /* the first choice stands */
    assumed_put(a, two, "n2");
    api_cleanup_object struct api_object *got = assumed_get(a, "u1", &node);
    assert_ptr_equal(got, one);
    assert_string_equal(node, "n1");
    assert_null(assumed_get(a, "u3", &none));
    assert_null(none);

    assumed_settle(a, (const struct api_object *const[]){one, two}, 2); /* the cache lags */
    assert_true(assumed_has(a, "u1") && assumed_has(a, "u2"));
    assumed_settle(a, (const struct api_object *const[]){bound, two}, 2);
    assert_true(!assumed_has(a, "u1") && assumed_has(a, "u2"));
    assumed_settle(a, (const struct api_object *const[]){bound}, 1); /* it is gone */
    assert_false(assumed_has(a, "u2"));
    assumed_put(a, one, "n1");
    assumed_drop(a, "u1");
    assumed_drop(a, "u1");
    assert_false(assumed_has(a, "u1"));
    assumed_put(a, two, "n2");
    assumed_free(a);
    assumed_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_many_labels),
        cmocka_unit_test(test_questions_at_random),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_written_forgets),
        cmocka_unit_test(test_assumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
