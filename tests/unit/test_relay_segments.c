/* What a stream keeps its bytes in, and how much may be under way. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/segments.h"
#include "relay/window.h"

#define S FERRY_NS_PER_S
#define MS FERRY_NS_PER_MS
#define T0 (100 * S)

static void segments_hold_bytes(void **state)
{
    struct segments s;
    const uint8_t *at;
    uint8_t *where;
    struct iovec vec[4];

    (void)state;
    segments_init(&s, 4096, 10000);
    assert_int_equal(segments_memory(&s), 0);
    assert_int_equal(segments_reserve(&s, 9000, true, &where), 4096);
    memset(where, 'a', 100);
    segments_commit(&s, 100);
    /* A read that may be large starts at a multiple of 64. */
    assert_int_equal(segments_reserve(&s, 9000, true, &where), 4096 - 128);
    assert_int_equal((uintptr_t)where % 64, 0);
    memset(where, 'b', 50);
    segments_commit(&s, 50);
    /* What need not be aligned makes the piece longer. */
    assert_int_equal(segments_reserve(&s, 10, false, &where), 10);
    memset(where, 'c', 10);
    segments_commit(&s, 10);
    assert_int_equal(segments_vec(&s, vec, 4), 2);
    assert_int_equal(vec[0].iov_len, 100);
    assert_int_equal(vec[1].iov_len, 60);
    assert_int_equal(segments_peek(&s, 149, &at), 11);
    assert_int_equal(at[0], 'b');
    assert_int_equal(at[1], 'c');
    assert_int_equal(segments_peek(&s, 160, &at), 0);
    segments_release(&s, 30);
    segments_release(&s, 20);
    assert_int_equal(segments_peek(&s, 29, &at), 0);
    assert_int_equal(segments_peek(&s, 30, &at), 70);
    segments_release(&s, 120);
    assert_int_equal(segments_vec(&s, vec, 4), 1);
    assert_int_equal(vec[0].iov_len, 40);
    assert_true(segments_reserve(&s, 9000, true, &where) > 0);
    assert_true(where >= (uint8_t *)vec[0].iov_base + 40);
    /* Not above the maximum, whatever is asked for. */
    for (size_t n; (n = segments_reserve(&s, SIZE_MAX / 2, true, &where)) > 0;) {
        segments_commit(&s, n);
    }
    assert_int_equal(s.end - s.begin, 10000);
    segments_release(&s, s.end);
    assert_true(segments_memory(&s) > 0);
    segments_trim(&s);
    assert_int_equal(segments_memory(&s), 0);
    segments_done(&s);
}

static void segments_are_bounded(void **state)
{
    static const size_t sizes[] = {1, 63, 64, 65, 1000, 1025, 4095, 4097};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct segments s;
        uint8_t *where;

        segments_init(&s, 8192, 300000);
        /* Full, and kept full by many small releases. */
        for (int k = 0; k < 400000 / (int)sizes[i] + 1000; k++) {
            size_t n = segments_reserve(&s, 8192, true, &where);

            if (n == 0) {
                assert_int_equal(s.end - s.begin, 300000);
                segments_release(&s, s.begin + 7 * sizes[i]);
                continue;
            }
            segments_commit(&s, n < sizes[i] ? n : sizes[i]);
            assert_true(segments_memory(&s) <= segments_memory_max(&s));
        }
        segments_done(&s);
    }
}

/* ---- window ---- */

static void windows_follow_the_path(void **state)
{
    struct window w;
    int64_t now = T0;

    (void)state;
    window_init(&w, 1 << 20, 8 << 20);
    /* 1000 MB/s over 0.2 ms: 400 KB are enough. */
    window_rtt(&w, 200000);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
    assert_true(w.rate > 0.9e9 && w.rate < 1.1e9);
    /* 1000 MB/s over 2 ms: 4 MB, reached in a few measurements. */
    window_connected(&w);
    window_rtt(&w, 2 * MS);
    for (int i = 0; i < 200; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_true(w.bytes > 3900000 && w.bytes < 4100000);
    /* A queue of our own making does not feed itself. */
    window_rtt(&w, 80 * MS);
    for (int i = 0; i < 200; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_true(w.bytes < 4100000);
    /* 1000 MB/s over 50 ms: the ceiling. */
    window_connected(&w);
    window_rtt(&w, 50 * MS);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_int_equal(w.bytes, 8 << 20);
    /* Little traffic: back to the start, slowly. */
    for (int i = 0; i < 3000; i++, now += MS) {
        window_delivered(&w, 1000, now);
    }
    assert_true(w.bytes < 8 << 20 && w.bytes > 4 << 20);
    for (int i = 0; i < 60000; i++, now += MS) {
        window_delivered(&w, 1000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
    /* Not known how far: the start. */
    window_connected(&w);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 10000000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_hold_bytes),
        cmocka_unit_test(segments_are_bounded),
        cmocka_unit_test(windows_follow_the_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
