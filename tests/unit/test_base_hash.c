/* Tables for src/base/hash.c. */
#include "lib/unit.h"

#include "base/hash.h"
#include "base/str.h"

/* Some of these stand in objects that are kept: they never change. */
static void hashes_stay(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } cases[] = {
        {"", UINT64_C(0xcbf29ce484222325)},
        {"a", UINT64_C(0xaf63dc4c8601ec8c)},
        {"foobar", UINT64_C(0x85944171f73967e8)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(ferry_hash(FERRY_HASH_BASIS, cases[i].text, strlen(cases[i].text)) ==
                    cases[i].hash);
    }
    assert_true(ferry_hash_text(ferry_hash_text(1, "a"), "bc") !=
                ferry_hash_text(ferry_hash_text(1, "ab"), "c"));
    assert_true(ferry_map_seed() == ferry_map_seed());
}

struct item {
    struct ferry_link link;
    int key;
};

static size_t freed;

static void item_free(struct ferry_link *l)
{
    free(l);
    freed++;
}

static struct item *find(const struct ferry_map *m, int key, uint64_t hash)
{
    for (struct ferry_link *l = ferry_map_first(m, hash); l; l = ferry_map_next(l)) {
        if (((struct item *)l)->key == key) {
            return (struct item *)l;
        }
    }
    return NULL;
}

static uint64_t spread(int key)
{
    return ferry_hash(ferry_map_seed(), &key, sizeof(key));
}

static uint64_t all_alike(int key)
{
    (void)key;
    return 7;
}

/* However hashes fall, what was added and not removed is found, and nothing else. */
static void found_is_what_was_added(void **state)
{
    static uint64_t (*const hashes[])(int) = {spread, all_alike};
    enum { N = 500 };

    (void)state;
    for (size_t h = 0; h < COUNT_OF(hashes); h++) {
        struct ferry_map m = {0};

        assert_null(find(&m, 0, hashes[h](0)));
        for (int i = 0; i < N; i++) {
            struct item *it = ferry_xcalloc(1, sizeof(*it));

            it->key = i;
            ferry_map_add(&m, &it->link, hashes[h](i));
        }
        for (int i = 0; i < N; i += 3) {
            struct item *it = find(&m, i, hashes[h](i));

            ferry_map_remove(&m, &it->link);
            free(it);
        }
        for (int i = 0; i < N + 10; i++) {
            assert_true((find(&m, i, hashes[h](i)) != NULL) == (i < N && i % 3 != 0));
        }
        freed = 0;
        size_t left = m.n;
        ferry_map_done(&m, item_free);
        assert_int_equal(freed, left);
        assert_int_equal(m.n, 0);
        assert_null(find(&m, 1, hashes[h](1)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_stay),
        cmocka_unit_test(found_is_what_was_added),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
