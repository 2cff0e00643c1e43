/* The cache against a plain model: random puts, drops and lists. */
#include "lib/unit.h"

#include "base/str.h"
#include "kube/cache.h"

enum { NAMES = 40, NAMESPACES = 3, STEPS = 20000 };

static struct api_object *make(int ns, int name, int version)
{
    char json[256];
    struct api_object *o = NULL;
    struct ferry_error err;

    /* namespaces "a", "a-b", "b": an order by the joined key would be another one */
    static const char *const namespaces[NAMESPACES] = {"a", "a-b", "b"};
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"n%d\",\"namespace\":\"%s\",\"uid\":\"u\","
             "\"resourceVersion\":\"%d\"},\"status\":{\"nodeName\":\"node-%d\"}}",
             name, namespaces[ns], version, version % 5);
    assert_int_equal(api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err), 0);
    return o;
}

static char *by_node(const struct api_object *o)
{
    return ferry_strdup(o->u.vmi.node_name);
}

/* What the cache must hold: version by name, 0 = not there. */
struct model {
    int version[NAMESPACES][NAMES];
};

static void check(const struct kube_cache *c, const struct model *m)
{
    size_t n = 0, indexed[5] = {0};

    for (size_t i = 1; i < c->n; i++) {
        const struct api_meta *a = c->items[i - 1].object->meta, *b = c->items[i].object->meta;
        int d = strcmp(a->namespace_, b->namespace_);

        assert_true(d < 0 || (d == 0 && strcmp(a->name, b->name) < 0));
    }
    for (int ns = 0; ns < NAMESPACES; ns++) {
        for (int i = 0; i < NAMES; i++) {
            n += m->version[ns][i] != 0;
            indexed[m->version[ns][i] % 5] += m->version[ns][i] != 0;
        }
    }
    assert_int_equal(c->n, n);
    for (int i = 0; i < 5; i++) {
        char key[16];
        size_t found;

        snprintf(key, sizeof(key), "node-%d", i);
        kube_index_find(&c->by_index, key, &found);
        assert_int_equal(found, indexed[i]);
    }
}

static void put(struct kube_cache *c, struct model *m, int ns, int name, int version)
{
    api_cleanup_object struct api_object *o = make(ns, name, version);
    api_cleanup_object struct api_object *old = NULL;
    int was = m->version[ns][name];

    assert_int_equal(kube_cache_put(c, o, &old), was != version);
    assert_int_equal(old ? atoi(old->meta->resource_version) : 0, was == version ? 0 : was);
    m->version[ns][name] = version;
    assert_string_equal(
        kube_cache_get(c, o->meta->namespace_, o->meta->name)->meta->resource_version,
        o->meta->resource_version);
}

static void drop(struct kube_cache *c, struct model *m, int ns, int name)
{
    api_cleanup_object struct api_object *key = make(ns, name, 1);
    api_cleanup_object struct api_object *old =
        kube_cache_drop(c, key->meta->namespace_, key->meta->name);

    assert_int_equal(old ? atoi(old->meta->resource_version) : 0, m->version[ns][name]);
    m->version[ns][name] = 0;
    assert_null(kube_cache_get(c, key->meta->namespace_, key->meta->name));
}

/* A list of every third object and some new ones; the others must come out as gone. */
static void list(struct kube_cache *c, struct model *m, int version)
{
    size_t gone = 0, want = 0;

    kube_cache_begin_round(c);
    for (int ns = 0; ns < NAMESPACES; ns++) {
        for (int i = 0; i < NAMES; i++) {
            if ((ns + i + version) % 3 == 0) {
                put(c, m, ns, i, version);
            } else {
                want += m->version[ns][i] != 0;
                m->version[ns][i] = 0;
            }
        }
    }
    struct api_object **objects = kube_cache_end_round(c, &gone);
    assert_int_equal(gone, want);
    for (size_t i = 0; i < gone; i++) {
        api_object_unref(objects[i]);
    }
    free(objects);
}

static void as_a_model(void **state)
{
    struct kube_cache c = {.index = by_node};
    struct model m = {0};
    unsigned seed = 7;

    (void)state;
    for (int step = 1; step <= STEPS; step++) {
        int ns = (int)(rand_r(&seed) % NAMESPACES), name = (int)(rand_r(&seed) % NAMES);

        switch (rand_r(&seed) % 8) {
        case 0:
        case 1:
            drop(&c, &m, ns, name);
            break;
        case 2: /* the same version again */
            put(&c, &m, ns, name, m.version[ns][name] ? m.version[ns][name] : step);
            break;
        default:
            put(&c, &m, ns, name, step);
        }
        if (step % 500 == 0) {
            list(&c, &m, step);
        }
        if (step % 50 == 0) {
            check(&c, &m);
        }
    }
    check(&c, &m);
    kube_cache_done(&c);
    kube_cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
