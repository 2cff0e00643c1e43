/* Tables for the queue of keys: order, retries, alarms. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/unit.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/str.h"
#include "kube/queue.h"
#include "kube/workers.h"

/* ---- scripts over injected time ---------------------------------------------------------------
 */

static int64_t fake_now_ns;

static int64_t fake_now(void)
{
    return fake_now_ns;
}

/* One step of a script: what is done with a key. A get expects `key` (NULL: nothing ready). */
struct step {
    enum { ADD, AFTER, RETRY, FORGET, GET, DONE, TICK } op;
    const char *key;
    int priority;
    int64_t ms;
};

struct script {
    const char *name;
    struct step steps[16];
};

static const struct script scripts[] = {
    {"first come, first served", {{ADD, "a"}, {ADD, "b"}, {GET, "a"}, {GET, "b"}, {GET}}},
    {"a key waits once", {{ADD, "a"}, {ADD, "a"}, {GET, "a"}, {DONE, "a"}, {GET}}},
    {"higher priority first",
     {{ADD, "low", 0},
      {ADD, "mid", 50},
      {ADD, "top", 1000},
      {GET, "top"},
      {GET, "mid"},
      {GET, "low"}}},
    {"144: running, critical, user, maintenance, none",
     {{ADD, "none", KUBE_PRIORITY_NONE},
      {ADD, "maintenance", KUBE_PRIORITY_MAINTENANCE},
      {ADD, "running", KUBE_PRIORITY_ACTIVE},
      {ADD, "user", KUBE_PRIORITY_USER},
      {ADD, "critical", KUBE_PRIORITY_CRITICAL},
      {GET, "running"},
      {GET, "critical"},
      {GET, "user"},
      {GET, "maintenance"},
      {GET, "none"}}},
    {"140: a plain add is not below the default, and below one that runs",
     {{ADD, "default", KUBE_PRIORITY_NONE},
      {ADD, "plain", 0},
      {ADD, "running", KUBE_PRIORITY_ACTIVE},
      {GET, "running"},
      {GET, "default"},
      {GET, "plain"}}},
    {"a waiting key keeps its highest priority",
     {{ADD, "b", 50}, {ADD, "a", 0}, {ADD, "a", 100}, {ADD, "a", 20}, {GET, "a"}, {GET, "b"}}},
    {"never the same key on two workers",
     {{ADD, "a"}, {GET, "a"}, {ADD, "a"}, {GET}, {DONE, "a"}, {GET, "a"}, {DONE, "a"}, {GET}}},
    {"priority of an add while busy counts",
     {{ADD, "a"},
      {GET, "a"},
      {ADD, "a", 100},
      {ADD, "b", 50},
      {DONE, "a"},
      {GET, "a"},
      {GET, "b"}}},
    {"of several adds while busy the highest counts",
     {{ADD, "a"},
      {GET, "a"},
      {ADD, "a", 100},
      {ADD, "a", 20},
      {ADD, "b", 50},
      {DONE, "a"},
      {GET, "a"},
      {GET, "b"}}},
    {"priority of the last round does not stick",
     {{ADD, "a", 1000},
      {GET, "a"},
      {ADD, "a", 0},
      {ADD, "b", 50},
      {DONE, "a"},
      {GET, "b"},
      {GET, "a"}}},
    {"an alarm rings at its time",
     {{AFTER, "a", 0, 100}, {GET}, {TICK, .ms = 99}, {GET}, {TICK, .ms = 1}, {GET, "a"}}},
    {"the earliest alarm counts",
     {{AFTER, "a", 0, 500},
      {AFTER, "a", 0, 100},
      {AFTER, "a", 0, 300},
      {TICK, .ms = 100},
      {GET, "a"},
      {DONE, "a"},
      {TICK, .ms = 1000},
      {GET}}},
    {"an alarm does not hold back an add",
     {{AFTER, "a", 0, 100},
      {ADD, "a"},
      {GET, "a"},
      {DONE, "a"},
      {GET},
      {TICK, .ms = 100},
      {GET, "a"}}},
    {"an alarm during work comes after it",
     {{ADD, "a"},
      {GET, "a"},
      {AFTER, "a", 0, 10},
      {TICK, .ms = 20},
      {GET},
      {DONE, "a"},
      {GET, "a"}}},
    {"no delay is now", {{AFTER, "a", 0, 0}, {GET, "a"}}},
    {"alarms ring in their order",
     {{AFTER, "c", 0, 30},
      {AFTER, "a", 0, 10},
      {AFTER, "b", 0, 20},
      {TICK, .ms = 50},
      {GET, "a"},
      {GET, "b"},
      {GET, "c"}}},
    {"an alarm keeps its priority",
     {{AFTER, "a", 100, 10}, {ADD, "b", 50}, {TICK, .ms = 10}, {GET, "a"}, {GET, "b"}}},
    {"of several alarms the earliest time and the highest priority count",
     {{AFTER, "a", 100, 500},
      {AFTER, "a", 0, 10},
      {ADD, "b", 50},
      {TICK, .ms = 10},
      {GET, "a"},
      {GET, "b"}}},
    {"an alarm that rings while its key waits raises it, and never lowers it",
     {{ADD, "a", 0},
      {ADD, "b", 50},
      {ADD, "c", 70},
      {AFTER, "a", 60, 10},
      {AFTER, "c", 0, 10},
      {TICK, .ms = 10},
      {GET, "c"},
      {GET, "a"},
      {GET, "b"}}},
    {"back-off doubles",
     {{RETRY, "a"},
      {TICK, .ms = 20},
      {GET, "a"},
      {RETRY, "a"},
      {DONE, "a"},
      {TICK, .ms = 39},
      {GET},
      {TICK, .ms = 1},
      {GET, "a"}}},
    {"forget resets the back-off",
     {{RETRY, "a"},
      {TICK, .ms = 20},
      {GET, "a"},
      {FORGET, "a"},
      {RETRY, "a"},
      {DONE, "a"},
      {TICK, .ms = 20},
      {GET, "a"}}},
    {"done of an unknown key does nothing", {{DONE, "x"}, {FORGET, "x"}, {GET}}},
};

static void run_step(struct kube_queue *q, const struct script *s, size_t i)
{
    const struct step *st = &s->steps[i];

    switch (st->op) {
    case ADD:
        kube_queue_add(q, st->key, st->priority);
        break;
    case AFTER:
        kube_queue_add_after(q, st->key, st->priority, st->ms * FERRY_NS_PER_MS);
        break;
    case RETRY:
        kube_queue_retry(q, st->key, st->priority);
        break;
    case FORGET:
        kube_queue_forget(q, st->key);
        break;
    case DONE:
        kube_queue_done(q, st->key);
        break;
    case TICK:
        fake_now_ns += st->ms * FERRY_NS_PER_MS;
        break;
    case GET: {
        ferry_cleanup_free char *got = kube_queue_get(q, 0, NULL);

        if (!ferry_streq(got, st->key)) {
            fail_msg("%s, step %zu: got %s, not %s", s->name, i, got ? got : "nothing",
                     st->key ? st->key : "nothing");
        }
        break;
    }
    }
}

static void test_scripts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        struct kube_queue *q = kube_queue_new(&(struct kube_queue_config){.now_ns = fake_now});

        fake_now_ns = FERRY_NS_PER_S;
        for (size_t k = 0; k < COUNT_OF(scripts[i].steps); k++) {
            if (scripts[i].steps[k].op == ADD && !scripts[i].steps[k].key) {
                break; /* end of the script */
            }
            run_step(q, &scripts[i], k);
        }
        kube_queue_free(q);
    }
}

static void test_backoff_is_capped(void **state)
{
    (void)state;
    struct kube_queue *q = kube_queue_new(&(struct kube_queue_config){.now_ns = fake_now});

    fake_now_ns = FERRY_NS_PER_S;
    for (int i = 0; i < 200; i++) {
        kube_queue_retry(q, "a", 0);
        fake_now_ns += 30 * FERRY_NS_PER_S;
        ferry_cleanup_free char *got = kube_queue_get(q, 0, NULL);

        assert_non_null(got);
        kube_queue_done(q, got);
    }
    kube_queue_free(q);
}

/* A model that is too slow to use and too simple to be wrong, compared over random histories. */
static void test_random_order(void **state)
{
    (void)state;
    unsigned seed = 7;
    struct kube_queue *q = kube_queue_new(&(struct kube_queue_config){.now_ns = fake_now});
    int priority[64] = {0}, order[64] = {0}, next = 0;
    bool waits[64] = {0};

    for (int i = 0; i < 20000; i++) {
        char key[16];

        if (rand_r(&seed) % 2) {
            int k = rand_r(&seed) % 64, p = rand_r(&seed) % 4 * 10;

            snprintf(key, sizeof(key), "%d", k);
            kube_queue_add(q, key, p);
            if (!waits[k]) {
                waits[k] = true;
                priority[k] = p;
                order[k] = next++;
            } else if (p > priority[k]) {
                priority[k] = p;
            }
            continue;
        }
        int best = -1;
        for (int k = 0; k < 64; k++) {
            if (waits[k] && (best < 0 || priority[k] > priority[best] ||
                             (priority[k] == priority[best] && order[k] < order[best]))) {
                best = k;
            }
        }
        ferry_cleanup_free char *got = kube_queue_get(q, 0, NULL);
        if (best < 0) {
            assert_null(got);
            continue;
        }
        snprintf(key, sizeof(key), "%d", best);
        assert_string_equal(got, key);
        waits[best] = false;
        kube_queue_done(q, got);
    }
    kube_queue_free(q);
}

/* ---- threads ---------------------------------------------------------------------------------
 */

struct crowd {
    struct kube_queue *queue;
    pthread_mutex_t lock;
    bool busy[16];
    unsigned runs, overlaps, failed_once[16];
};

static int crowd_reconcile(void *ctx, const char *key, struct kube_again *again,
                           struct ferry_error *err)
{
    struct crowd *c = ctx;
    int k = atoi(key);

    pthread_mutex_lock(&c->lock);
    c->overlaps += c->busy[k];
    c->busy[k] = true;
    c->runs++;
    bool fail = c->failed_once[k]++ == 0;
    pthread_mutex_unlock(&c->lock);
    ferry_sleep_ms(1);
    pthread_mutex_lock(&c->lock);
    c->busy[k] = false;
    unsigned runs = c->failed_once[k];
    pthread_mutex_unlock(&c->lock);
    if (fail) {
        return ferry_fail(err, FERRY_RETRY, "first time");
    }
    if (runs < 4) {
        *again = (struct kube_again){.wanted = true, .after_ns = FERRY_NS_PER_MS};
    }
    return 0;
}

static void *crowd_adder(void *arg)
{
    struct crowd *c = arg;

    for (int i = 0; i < 200; i++) {
        char key[16];

        snprintf(key, sizeof(key), "%d", i % 16);
        kube_queue_add(c->queue, key, i % 3);
    }
    return NULL;
}

static void test_workers(void **state)
{
    (void)state;
    struct crowd c = {.queue = kube_queue_new(NULL), .lock = PTHREAD_MUTEX_INITIALIZER};
    struct kube_workers *w = NULL;
    struct ferry_error err = {0};
    pthread_t adders[3];

    assert_int_equal(kube_workers_start(&(struct kube_workers_config){.name = "test",
                                                                      .queue = c.queue,
                                                                      .threads = 4,
                                                                      .reconcile = crowd_reconcile,
                                                                      .ctx = &c},
                                        &w, &err),
                     0);
    for (size_t i = 0; i < COUNT_OF(adders); i++) {
        pthread_create(&adders[i], NULL, crowd_adder, &c);
    }
    for (size_t i = 0; i < COUNT_OF(adders); i++) {
        pthread_join(adders[i], NULL);
    }
    int64_t deadline = ferry_now_ns() + 20 * FERRY_NS_PER_S;
    bool enough = false;
    while (!enough && ferry_now_ns() < deadline) {
        ferry_sleep_ms(2);
        pthread_mutex_lock(&c.lock);
        enough = true;
        for (int k = 0; k < 16; k++) {
            enough = enough && c.failed_once[k] >= 4;
        }
        pthread_mutex_unlock(&c.lock);
    }
    kube_workers_stop(w);
    kube_queue_free(c.queue);
    assert_true(enough);
    assert_int_equal(c.overlaps, 0);
}

static void *getter(void *arg)
{
    return kube_queue_get(arg, INT64_MAX, NULL);
}

static void test_shutdown_wakes_waiters(void **state)
{
    (void)state;
    struct kube_queue *q = kube_queue_new(NULL);
    pthread_t threads[3];

    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_create(&threads[i], NULL, getter, q);
    }
    kube_queue_add_after(q, "late", 0, 3600 * FERRY_NS_PER_S);
    kube_queue_shutdown(q);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *got = q;

        pthread_join(threads[i], &got);
        assert_null(got);
    }
    kube_queue_free(q);
}

/* What the figures say of one key that comes, waits, fails and comes again. */
static void test_figures(void **state)
{
    struct kube_queue *q = kube_queue_new(&(struct kube_queue_config){.now_ns = fake_now});
    struct kube_queue_figures f;
    (void)state;

    fake_now_ns = FERRY_NS_PER_S;
    kube_queue_figures(q, &f);
    assert_int_equal(f.depth + f.adds + f.retries + f.waited.count + f.worked.count, 0);
    kube_queue_add(q, "a", 0);
    kube_queue_add(q, "a", 0); /* waits once */
    fake_now_ns += 5 * FERRY_NS_PER_MS;
    kube_queue_figures(q, &f);
    assert_int_equal(f.depth, 1);
    assert_int_equal(f.adds, 1);
    free(kube_queue_get(q, 0, NULL));
    fake_now_ns += 20 * FERRY_NS_PER_MS;
    kube_queue_add(q, "a", 0); /* comes back when it is done */
    kube_queue_add(q, "a", 0);
    kube_queue_add(q, "b", 0);
    free(kube_queue_get(q, 0, NULL));
    fake_now_ns += 10 * FERRY_NS_PER_MS;
    kube_queue_figures(q, &f);
    assert_int_equal(f.depth, 0);
    assert_int_equal(f.adds, 3);
    assert_int_equal(f.waited.count, 2);
    assert_int_equal(f.waited.buckets[0], 1); /* at once */
    assert_int_equal(f.waited.buckets[5], 1); /* up to 1 ms */
    assert_int_equal(f.waited.buckets[6], 2); /* up to 10 ms */
    assert_true(f.waited.sum_s > 0.0049 && f.waited.sum_s < 0.0051);
    assert_true(f.unfinished_s > 0.0399 && f.unfinished_s < 0.0401);
    assert_true(f.longest_s > 0.0299 && f.longest_s < 0.0301);
    kube_queue_retry(q, "a", 0);
    kube_queue_done(q, "a");
    kube_queue_figures(q, &f);
    assert_int_equal(f.retries, 1);
    assert_int_equal(f.adds, 3);
    assert_int_equal(f.depth, 1);
    assert_int_equal(f.worked.count, 1);
    assert_int_equal(f.worked.buckets[6], 0);
    assert_int_equal(f.worked.buckets[7], 1); /* up to 100 ms */
    assert_true(f.unfinished_s > 0.0099 && f.unfinished_s < 0.0101);
    assert_true(kube_queue_bound_s(0) < 1.1e-8 && kube_queue_bound_s(9) > 9.9);
    kube_queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),           cmocka_unit_test(test_figures),
        cmocka_unit_test(test_backoff_is_capped), cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_workers),           cmocka_unit_test(test_shutdown_wakes_waiters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
