/* What the scheduler and the loops look things up in. */
#include "lib/objects.h"

#include "base/clock.h"
#include "control/loops/pending_writes.h"
#include "control/schedule/label_index.h"
#include "control/schedule/schedule_index.h"
#include "control/schedule/schedule_match.h"

/* ---- labels ----------------------------------------------------------------------------------
 */

/* Which of `members` are found, by their numbers. */
static void assert_found(struct label_index *x, const char *key, const char *value,
                         const struct label_member *members, const size_t *want, size_t n_want)
{
    size_t n = 0;
    struct label_member *const *found = label_index_find(x, key, value, &n);

    assert_int_equal(n, n_want);
    for (size_t i = 0; i < n_want; i++) {
        size_t k = 0;

        while (k < n && found[k] != &members[want[i]]) {
            k++;
        }
        assert_true(k < n);
    }
}

static void test_labels(void **state)
{
    struct label_index *x = label_index_new();
    struct label_member m[5] = {0};
    (void)state;

    assert_found(x, "app", "web", m, NULL, 0);
    label_index_add(x, "app", "web", &m[3]);
    label_index_add(x, "app", "db", &m[4]);
    label_index_add(x, "app", "web", &m[1]);
    label_index_add(x, "ap", "pweb", &m[0]);
    assert_found(x, "app", "web", m, (size_t[]){3, 1}, 2);
    assert_found(x, "app", "db", m, (size_t[]){4}, 1);
    assert_found(x, "ap", "pweb", m, (size_t[]){0}, 1);
    assert_found(x, "app", "", m, NULL, 0);
    assert_found(x, "web", "app", m, NULL, 0);
    label_index_remove(x, &m[3]);
    label_index_remove(x, &m[3]); /* is in none any more */
    label_index_remove(x, &m[2]); /* never was */
    assert_found(x, "app", "web", m, (size_t[]){1}, 1);
    label_index_remove(x, &m[1]);
    assert_found(x, "app", "web", m, NULL, 0);
    assert_found(x, "app", "db", m, (size_t[]){4}, 1);
    label_index_free(x);
    label_index_free(NULL);
}

static void test_many_labels(void **state)
{
    enum { VALUES = 500, EACH = 7 };
    struct label_index *x = label_index_new();
    static struct label_member m[VALUES * EACH];
    char value[8];
    (void)state;

    for (size_t i = 0; i < VALUES * EACH; i++) {
        snprintf(value, sizeof(value), "%zu", i % VALUES);
        label_index_add(x, "k", value, &m[i]);
    }
    for (size_t i = 0; i < VALUES; i++) { /* one of each goes, another every time */
        label_index_remove(x, &m[i % EACH * VALUES + i]);
    }
    for (size_t i = 0; i < VALUES; i++) {
        size_t want[EACH], n = 0;

        for (size_t k = 0; k < EACH; k++) {
            if (k != i % EACH) {
                want[n++] = k * VALUES + i;
            }
        }
        snprintf(value, sizeof(value), "%zu", i);
        assert_found(x, "k", value, m, want, n);
    }
    label_index_free(x);
}

/* ---- an index that is kept, against one made anew, and against looking at every pod -----------
 */

enum { NODES = 6, PODS = 40, STEPS = 1500 };

/* What there is, without any index. */
struct site {
    struct api_object *nodes[NODES], *pods[PODS]; /* or NULL */
    const char *assumed[PODS];                    /* or NULL */
};

static struct api_object *random_node(int i, unsigned *seed)
{
    static const char *const zones[] = {"", ",'labels':{'zone':'odd'}", ",'labels':{'zone':'even'}",
                                        ",'labels':{'zone':'odd','disk':'fast'}"};
    char json[320];

    snprintf(json, sizeof(json),
             "{'metadata':{'name':'n%d'%s},'status':{'allocatable':{'cpu':'4','memory':'%dGi',"
             "'pods':'9','v.com/gpu':'2'},'conditions':[{'type':'Ready','status':'%s'}]}}",
             i, zones[rand_r(seed) % 4], 4 + rand_r(seed) % 8, rand_r(seed) % 8 ? "True" : "False");
    return make_object(API_KIND_NODE, json, NULL);
}

static struct api_object *random_pod(int i, unsigned *seed)
{
    static const char *const selectors[] = {
        "'matchLabels':{'app':'a','tier':'x'}", "'matchLabels':{'app':'c'}",
        "'matchExpressions':[{'key':'app','operator':'In','values':['b']}]", ""};
    static const char *const topologies[] = {"zone", "kubernetes.io/hostname"};
    char json[1024], where[32] = "";

    if (rand_r(seed) % 3 == 0) {
        snprintf(where, sizeof(where), "'nodeName':'n%d',", rand_r(seed) % NODES);
    }
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'p%d','namespace':'%s','uid':'u%d','labels':{'app':'%c','tier':"
             "'%c'}},'spec':{%s'containers':[{'name':'compute','resources':{'requests':{'cpu':"
             "'%dm','memory':'%dMi'%s}}}],'affinity':{'podAntiAffinity':{"
             "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'%s',"
             "'labelSelector':{%s}}]}}},'status':{'phase':'%s'}}",
             i, rand_r(seed) % 4 ? "ns" : "other", i, 'a' + rand_r(seed) % 4,
             'x' + rand_r(seed) % 2, where, 100 * (rand_r(seed) % 9), 100 * (rand_r(seed) % 9),
             rand_r(seed) % 4 ? "" : ",'v.com/gpu':'1'", topologies[rand_r(seed) % 2],
             selectors[rand_r(seed) % 4], rand_r(seed) % 6 ? "Running" : "Failed");
    return make_object(API_KIND_POD, json, NULL);
}

/* One change, told to the index as the caches would. */
static void change_site(struct site *s, struct schedule_index *x, unsigned *seed)
{
    static const char *const names[NODES] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    int what = rand_r(seed) % 10, node = rand_r(seed) % NODES, pod = rand_r(seed) % PODS;
    char uid[8];

    snprintf(uid, sizeof(uid), "u%d", pod);
    if (what == 0) {
        schedule_index_drop_node(x, names[node]);
        s->nodes[node] = api_object_unref(s->nodes[node]);
    } else if (what < 3) {
        api_object_unref(s->nodes[node]);
        s->nodes[node] = random_node(node, seed);
        schedule_index_put_node(x, s->nodes[node]);
    } else if (what == 3) {
        schedule_index_drop_pod(x, uid);
        s->pods[pod] = api_object_unref(s->pods[pod]);
        s->assumed[pod] = NULL;
    } else if (what < 6 && s->pods[pod]) {
        bool says = s->pods[pod]->u.pod.node_name != NULL;
        const char *to = rand_r(seed) % 3 ? names[node] : NULL;

        schedule_index_assume(x, uid, to);
        s->assumed[pod] = says ? NULL : to;
    } else {
        api_object_unref(s->pods[pod]);
        s->pods[pod] = random_pod(pod, seed);
        schedule_index_put_pod(x, s->pods[pod]);
        s->assumed[pod] = s->pods[pod]->u.pod.node_name ? NULL : s->assumed[pod];
    }
}

/* In another order: pods first. */
static struct schedule_index *made_anew(const struct site *s)
{
    struct schedule_index *x = schedule_index_new();

    for (size_t i = PODS; i-- > 0;) {
        if (s->pods[i]) {
            schedule_index_put_pod(x, s->pods[i]);
            schedule_index_assume(x, s->pods[i]->meta->uid, s->assumed[i]);
        }
    }
    for (size_t i = NODES; i-- > 0;) {
        if (s->nodes[i]) {
            schedule_index_put_node(x, s->nodes[i]);
        }
    }
    return x;
}

static const char *where_is(const struct site *s, size_t pod)
{
    const struct api_object *o = s->pods[pod];

    return !o || ferry_streq(o->u.pod.phase, "Failed") ? NULL
           : o->u.pod.node_name                        ? o->u.pod.node_name
                                                       : s->assumed[pod];
}

static const struct api_object *home_of(const struct site *s, size_t pod)
{
    const char *name = where_is(s, pod);

    return name ? s->nodes[name[1] - '0'] : NULL;
}

static bool about_any(const void *rule, const struct api_pod *other)
{
    return schedule_selects(rule, &other->meta.labels);
}

static size_t slow_count(const struct site *s, const struct api_object *node,
                         const struct api_pod *asks, const struct api_label_selector *sel)
{
    const char *zone = schedule_node_label(&node->u.node, "zone");
    size_t n = 0;

    for (size_t i = 0; zone && i < PODS; i++) {
        const struct api_object *home = home_of(s, i);

        n += home && ferry_streq(schedule_node_label(&home->u.node, "zone"), zone) &&
             schedule_selects(sel, &s->pods[i]->meta->labels) &&
             !ferry_streq(s->pods[i]->meta->uid, asks->meta.uid);
    }
    return n;
}

static size_t slow_apart(const struct site *s, const struct api_pod *asks)
{
    size_t n = 0;

    for (size_t i = 0; i < PODS; i++) {
        n += home_of(s, i) &&
             schedule_selects(&s->pods[i]->u.pod.placement.affinity.anti.required[0].selector,
                              &asks->meta.labels);
    }
    return n;
}

struct apart_count {
    const struct api_pod *asks;
    size_t n;
};

static void count_apart(void *ctx, const struct schedule_apart *a)
{
    struct apart_count *c = ctx;

    c->n += schedule_selects(&a->term->selector, &c->asks->meta.labels);
}

static void check_questions(const struct site *s, struct schedule_index *x,
                            const struct api_pod *asks, int step)
{
    struct schedule_view v = {.pod = asks, .index = x};
    const struct api_label_selector *sel = &asks->placement.affinity.anti.required[0].selector;
    ferry_cleanup_free size_t *counts = schedule_count(
        &v, &(struct schedule_question){
                .topology = "zone", .selector = sel, .about = about_any, .rule = sel});
    struct apart_count apart = {asks, 0};

    for (size_t i = 0; i < x->n_nodes; i++) {
        size_t want = slow_count(s, x->nodes[i]->node, asks, sel);

        if (counts[i] != want) {
            fail_msg("step %d, node %zu: %zu, expected %zu", step, i, counts[i], want);
        }
    }
    schedule_each_apart(&v, count_apart, &apart);
    assert_int_equal(apart.n, slow_apart(s, asks));
}

static void check_nodes(const struct site *s, const struct schedule_index *x, int step)
{
    size_t n = 0;

    for (size_t i = 0; i < NODES; i++) {
        int64_t cpu = 0, memory = 0, pods = 0;

        if (!s->nodes[i]) {
            continue;
        }
        for (size_t k = 0; k < PODS; k++) {
            if (home_of(s, k) == s->nodes[i]) {
                cpu += s->pods[k]->u.pod.cpu_milli;
                memory += s->pods[k]->u.pod.memory_bytes;
                pods++;
            }
        }
        const struct schedule_node *node = x->nodes[n++];
        if (node->node != s->nodes[i] || node->at != n - 1 || node->cpu_milli != cpu ||
            node->memory_bytes != memory || node->pods != pods) {
            fail_msg("step %d, node %zu: %d pods, expected %d", step, i, (int)node->pods,
                     (int)pods);
        }
    }
    assert_int_equal(x->n_nodes, n);
}

/* Whatever is asked, one that followed every change answers as one that was made of the result. */
static void test_index_is_kept(void **state)
{
    struct schedule_index *kept = schedule_index_new();
    struct site s = {0};
    unsigned seed = 11;
    size_t placed = 0, refused = 0;
    (void)state;

    for (int step = 0; step < STEPS; step++) {
        change_site(&s, kept, &seed);
        check_nodes(&s, kept, step);
        struct schedule_index *anew = made_anew(&s);
        api_cleanup_object struct api_object *other = random_pod(PODS, &seed);
        size_t own = (size_t)rand_r(&seed) % PODS;
        const struct api_object *asks = s.pods[own] ? s.pods[own] : other;
        struct schedule_answer a, b;

        check_questions(&s, kept, &asks->u.pod, step);
        schedule_pick(&(struct schedule_view){.pod = &asks->u.pod, .index = kept}, &a);
        schedule_pick(&(struct schedule_view){.pod = &asks->u.pod, .index = anew}, &b);
        if (a.node != b.node || strcmp(a.message, b.message) != 0) {
            fail_msg("step %d: %s '%s', made anew %s '%s'", step, a.node ? a.node->meta.name : "-",
                     a.message, b.node ? b.node->meta.name : "-", b.message);
        }
        placed += a.node != NULL;
        refused += a.node == NULL;
        schedule_index_free(anew);
    }
    assert_true(placed > STEPS / 10 && refused > STEPS / 10);
    schedule_index_free(kept);
    for (int i = 0; i < NODES; i++) {
        api_object_unref(s.nodes[i]);
    }
    for (int i = 0; i < PODS; i++) {
        api_object_unref(s.pods[i]);
    }
}

/* Keys are the pods' to choose: past some they are not learned, and answers stay right. */
static void test_many_keys(void **state)
{
    struct schedule_index *x = schedule_index_new();
    api_cleanup_object struct api_object *node =
        make_object(API_KIND_NODE, "{'metadata':{'name':'n'}}", NULL);
    (void)state;

    schedule_index_put_node(x, node);
    for (int i = 0; i < 100; i++) {
        char json[320];

        snprintf(json, sizeof(json),
                 "{'metadata':{'name':'p%d','uid':'u%d','labels':{'k%d':'v'}},'spec':{'nodeName':"
                 "'n','affinity':{'podAntiAffinity':{"
                 "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'t%d',"
                 "'labelSelector':{'matchLabels':{'k%d':'v'}}}]}}}}",
                 i, i, i, i, i);
        api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, json, NULL);
        schedule_index_put_pod(x, pod);
        api_cleanup_object struct api_object *asks =
            make_object(API_KIND_POD, json, "{'metadata':{'uid':'other'}}");
        const struct api_label_selector *sel =
            &asks->u.pod.placement.affinity.anti.required[0].selector;
        struct schedule_view v = {.pod = &asks->u.pod, .index = x};
        ferry_cleanup_free size_t *counts =
            schedule_count(&v, &(struct schedule_question){.topology = "kubernetes.io/hostname",
                                                           .selector = sel,
                                                           .about = about_any,
                                                           .rule = sel});
        ferry_cleanup_free size_t *none = schedule_count(
            &v, &(struct schedule_question){
                    .topology = asks->u.pod.placement.affinity.anti.required[0].topology_key,
                    .selector = sel,
                    .about = about_any,
                    .rule = sel});

        assert_int_equal(counts[0], 1);
        assert_int_equal(none[0], 0);
    }
    assert_true(x->n_keys < 100 && x->n_topologies < 100);
    schedule_index_free(x);
    schedule_index_free(NULL);
}

/* What was chosen counts until the pod says itself where it is, is gone, or it is taken back. */
static void test_assumed(void **state)
{
    static const char ONE[] = "{'metadata':{'name':'p','namespace':'ns','uid':'u1'}}";
    struct schedule_index *x = schedule_index_new();
    api_cleanup_object struct api_object *node =
        make_object(API_KIND_NODE, "{'metadata':{'name':'n1'}}", NULL);
    api_cleanup_object struct api_object *pod = make_object(API_KIND_POD, ONE, NULL);
    api_cleanup_object struct api_object *bound =
        make_object(API_KIND_POD, ONE, "{'spec':{'nodeName':'n2'}}");
    const char *where = "";
    (void)state;

    schedule_index_put_node(x, node);
    schedule_index_assume(x, "u1", "n1"); /* nobody of that name */
    assert_null(schedule_index_pod(x, "u1", &where));
    assert_null(where);
    schedule_index_put_pod(x, pod);
    assert_ptr_equal(schedule_index_pod(x, "u1", &where), pod);
    assert_null(where);
    schedule_index_assume(x, "u1", "n1");
    schedule_index_pod(x, "u1", &where);
    assert_string_equal(where, "n1");
    assert_int_equal(x->nodes[0]->pods, 1);
    schedule_index_put_pod(x, pod); /* the cache lags */
    schedule_index_pod(x, "u1", &where);
    assert_string_equal(where, "n1");
    schedule_index_assume(x, "u1", NULL); /* could not be bound */
    schedule_index_pod(x, "u1", &where);
    assert_null(where);
    assert_int_equal(x->nodes[0]->pods, 0);
    schedule_index_assume(x, "u1", "n1");
    schedule_index_put_pod(x, bound); /* elsewhere, by somebody else */
    schedule_index_pod(x, "u1", &where);
    assert_string_equal(where, "n2");
    schedule_index_assume(x, "u1", "n1"); /* too late */
    schedule_index_pod(x, "u1", &where);
    assert_string_equal(where, "n2");
    assert_int_equal(x->nodes[0]->pods, 0);
    schedule_index_drop_pod(x, "u1");
    schedule_index_put_pod(x, pod); /* nothing of before is left */
    schedule_index_pod(x, "u1", &where);
    assert_null(where);
    schedule_index_free(x);
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
        struct pending_writes *w = pending_writes_new();

        snprintf(merge, sizeof(merge), "{'metadata':{'resourceVersion':'%s'%s}}", rows[i].version,
                 rows[i].deleted ? ",'deletionTimestamp':'2026-01-01T00:00:00Z'" : "");
        api_cleanup_object struct api_object *seen = make_object(API_KIND_POD, POD, merge);
        pending_writes_note(w, rows[i].uid ? rows[i].uid : "u1", rows[i].noted, FERRY_NS_PER_S);
        bool ahead =
            pending_writes_is_ahead(w, seen, FERRY_NS_PER_S + rows[i].after_ms * FERRY_NS_PER_MS);
        if (ahead != rows[i].ahead) {
            fail_msg("%s: %d", rows[i].name, ahead);
        }
        assert_int_equal(pending_writes_count(w), ahead || rows[i].uid ? 1 : 0);
        assert_false(pending_writes_is_ahead(w, NULL, FERRY_NS_PER_S));
        pending_writes_free(w);
    }
    pending_writes_free(NULL);
}

static void test_written_forgets(void **state)
{
    struct pending_writes *w = pending_writes_new();
    (void)state;

    for (int i = 0; i < 100; i++) {
        char uid[8];

        snprintf(uid, sizeof(uid), "u%d", i % 50); /* the later of two counts */
        pending_writes_note(w, uid, "5", i * 100 * FERRY_NS_PER_MS);
    }
    assert_int_equal(pending_writes_count(w), 50);
    pending_writes_note(w, "last", "5", (INT64_C(9900) + 2500) * FERRY_NS_PER_MS);
    assert_int_equal(pending_writes_count(w),
                     50 - 24 + 1); /* of 5,000 to 9,900 ms, those from 7,400 */
    pending_writes_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),        cmocka_unit_test(test_many_labels),
        cmocka_unit_test(test_index_is_kept), cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_written),       cmocka_unit_test(test_written_forgets),
        cmocka_unit_test(test_assumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
