/* Who may stay at a server's door and how long, what bodies count, and that doors do what was
 * decided. */
#include "lib/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/body_budget.h"
#include "http/server_doors.h"

#define MIB (UINT64_C(1) << 20)

static void who_makes_room(void **state)
{
    static const struct doors_limits limits = {.share = 10, .per_address = 4};
    static const struct {
        struct doors_crowd crowd;
        enum doors_verdict verdict;
    } cases[] = {
        {{0, 0}, DOORS_LET_IN},
        {{9, 3}, DOORS_LET_IN},
        {{10, 0}, DOORS_END_OLDEST},
        {{10, 3}, DOORS_END_OLDEST},
        {{4, 4}, DOORS_END_OLDEST_OF_ADDRESS},
        {{10, 4}, DOORS_END_OLDEST_OF_ADDRESS}, /* it alone pays for itself */
        {{25, 25}, DOORS_END_OLDEST_OF_ADDRESS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(doors_decide(&limits, &cases[i].crowd), cases[i].verdict);
    }
}

static void limits_have_defaults(void **state)
{
    static const struct {
        unsigned places;
        size_t share, per_address; /* as set */
        size_t then_share, then_per_address;
    } cases[] = {
        {2048, 0, 0, 1024, 512},    {2048, 100, 0, 100, 50}, {2048, 100, 7, 100, 7},
        {2048, 5000, 0, 1024, 512}, /* half of the places is never a stranger's */
        {2048, 0, 5000, 1024, 512}, {4, 0, 0, 8, 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct doors_limits set = {.share = cases[i].share, .per_address = cases[i].per_address};
        struct doors_limits l = doors_limits_of(cases[i].places, &set);

        assert_int_equal(l.share, cases[i].then_share);
        assert_int_equal(l.per_address, cases[i].then_per_address);
        assert_int_equal(l.headers_ms, 10000);
        assert_int_equal(l.body_ms, 60000);
    }
}

static void how_long(void **state)
{
    static const struct doors_limits limits = {
        .headers_ms = 1, .body_ms = 2, .answer_ms = 3, .idle_ms = 4};
    static const struct {
        enum doors_phase phase;
        int stranger_ms, known_ms;
    } cases[] = {
        {DOORS_ARRIVED, 1, 1},
        {DOORS_BODY, 2, 2},
        {DOORS_ANSWERING, 3, 0}, /* a watch, a console */
        {DOORS_IDLE, 4, 0},
    };

    (void)state;
    assert_int_equal(COUNT_OF(cases), DOORS_PHASE_COUNT);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(doors_patience_ns(&limits, cases[i].phase, false),
                         cases[i].stranger_ms * FERRY_NS_PER_MS);
        assert_int_equal(doors_patience_ns(&limits, cases[i].phase, true),
                         cases[i].known_ms * FERRY_NS_PER_MS);
    }
}

static struct doors_address address(const char *text)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        return doors_address_of((struct sockaddr *)&four);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return doors_address_of((struct sockaddr *)&six);
}

static void which_address(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"2001:db8::1", "2001:db8::ffff:1", true}, /* one host's own network */
        {"2001:db8::1", "2001:db8:0:1::1", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct doors_address a = address(cases[i].a), b = address(cases[i].b);

        assert_int_equal(doors_same_address(&a, &b), cases[i].same);
    }
}

static void what_fits(void **state)
{
    static const struct {
        uint64_t used, want;
        bool fits[BODY_RANK_COUNT];
    } cases[] = {
        {0, 1, {true, true, true, true}},
        {0, 10 * MIB, {true, true, true, true}},
        {0, 11 * MIB, {false, true, true, true}},
        {10 * MIB, 1, {false, true, true, true}},
        {10 * MIB, 30 * MIB, {false, true, true, true}},
        {40 * MIB, 1, {false, false, true, true}},
        {60 * MIB, 1, {false, false, false, true}},
        {60 * MIB, 20 * MIB, {false, false, false, true}},
        {80 * MIB, 1, {false, false, false, false}},
        {UINT64_MAX, UINT64_MAX, {false, false, false, false}},
        {0, UINT64_MAX, {false, false, false, false}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int rank = 0; rank < BODY_RANK_COUNT; rank++) {
            assert_int_equal(body_budget_fits(80 * MIB, cases[i].used, (size_t)cases[i].want,
                                              (enum body_rank)rank),
                             cases[i].fits[rank]);
        }
    }
}

static void what_is_held(void **state)
{
    struct body_budget *b = body_budget_new(80 * MIB);
    size_t person = 0, admin = 0;

    (void)state;
    assert_true(body_budget_hold(b, BODY_PERSON, 40 * MIB, &person));
    assert_false(body_budget_hold(b, BODY_PERSON, 40 * MIB + 1, &person));
    assert_int_equal(person, 40 * MIB);
    assert_true(body_budget_hold(b, BODY_OPERATOR, 40 * MIB, &admin));
    assert_true(body_budget_hold(b, BODY_PERSON, MIB, &person)); /* less always fits */
    assert_int_equal(body_budget_used(b), 41 * MIB);
    assert_true(body_budget_hold(b, BODY_PERSON, 0, &person));
    assert_true(body_budget_hold(b, BODY_OPERATOR, 0, &admin));
    assert_int_equal(body_budget_used(b), 0);
    body_budget_free(b);
}

/* However many come at once: one of them gets through, then the next. */
static void who_begins_can_end(void **state)
{
    struct body_budget *b = body_budget_new(200 * MIB);
    size_t held[32] = {0}, begun = 0, len = 3 * MIB;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        if (body_budget_begin(b, BODY_PERSON, len, &held[i])) {
            assert_int_equal(i, begun++);
            assert_int_equal(held[i], body_budget_reading(len));
        }
    }
    assert_in_range(begun, 2, COUNT_OF(held) - 1);
    for (size_t i = 0; i < begun; i++) {
        assert_true(body_budget_hold(b, BODY_PERSON, body_budget_working(len), &held[i]));
        assert_true(body_budget_hold(b, BODY_PERSON, 0, &held[i]));
    }
    assert_int_equal(body_budget_used(b), 0);
    body_budget_free(b);
}

/* ---- at work -----------------------------------------------------------------------------------
 */

/* Whether the other end was shut down within that time. */
static bool is_ended(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&p, 1, ms) == 1 && read(fd, &byte, 1) == 0;
}

enum { CALLERS = 6, DEADLINE_MS = 20000, NOT_YET_MS = 100 };

struct callers {
    struct doors *doors;
    struct visitor visitors[CALLERS];
    int pairs[CALLERS][2];
};

static void call_from(struct callers *c, int i, const char *from)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(from)};

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->pairs[i]), 0);
    doors_enter(c->doors, &c->visitors[i], c->pairs[i][0], (struct sockaddr *)&sa);
}

static void leave_all(struct callers *c, int n)
{
    for (int i = 0; i < n; i++) {
        doors_leave(c->doors, &c->visitors[i]);
        doors_leave(c->doors, &c->visitors[i]);
        close(c->pairs[i][0]);
        close(c->pairs[i][1]);
    }
    doors_free(c->doors);
}

static void the_oldest_goes_first(void **state)
{
    struct doors_limits limits = {.share = 3, .per_address = 2, .headers_ms = 600000};
    struct callers c = {.doors = doors_new("test", &limits)};

    (void)state;
    call_from(&c, 0, "10.0.0.1");
    call_from(&c, 1, "10.0.0.2");
    doors_set_known(c.doors, &c.visitors[0], true);
    call_from(&c, 2, "10.0.0.2");
    call_from(&c, 3, "10.0.0.2"); /* a third from there: its own oldest */
    assert_true(is_ended(c.pairs[1][1], DEADLINE_MS));
    call_from(&c, 4, "10.0.0.3");
    assert_false(is_ended(c.pairs[2][1], NOT_YET_MS)); /* three strangers fit */
    call_from(&c, 5, "10.0.0.4");
    assert_true(is_ended(c.pairs[2][1], DEADLINE_MS));
    assert_false(is_ended(c.pairs[0][1], NOT_YET_MS)); /* it is known */
    assert_false(is_ended(c.pairs[3][1], 0));
    assert_false(is_ended(c.pairs[5][1], 0));
    leave_all(&c, 6);
}

static void time_is_up(void **state)
{
    enum { SILENT, IN_BODY, WATCHING, VOUCHED, KINDS };
    struct doors_limits limits = {
        .share = 100, .per_address = 100, .headers_ms = 300, .body_ms = 300, .idle_ms = 300};
    struct callers c = {.doors = doors_new("test", &limits)};

    (void)state;
    for (int i = 0; i < KINDS; i++) {
        call_from(&c, i, "10.0.0.1");
    }
    for (int i = IN_BODY; i < KINDS; i++) {
        doors_set_known(c.doors, &c.visitors[i], true);
        doors_set_phase(c.doors, &c.visitors[i], i == IN_BODY ? DOORS_BODY : DOORS_ANSWERING);
    }
    assert_true(is_ended(c.pairs[SILENT][1], DEADLINE_MS));
    assert_true(is_ended(c.pairs[IN_BODY][1], DEADLINE_MS)); /* who is known has a deadline, too */
    assert_false(is_ended(c.pairs[WATCHING][1], 10 * NOT_YET_MS));
    assert_false(is_ended(c.pairs[VOUCHED][1], 0));
    doors_set_known(c.doors, &c.visitors[VOUCHED], false); /* its request is over */
    doors_set_phase(c.doors, &c.visitors[VOUCHED], DOORS_IDLE);
    assert_true(is_ended(c.pairs[VOUCHED][1], DEADLINE_MS));
    leave_all(&c, KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_makes_room),     cmocka_unit_test(limits_have_defaults),
        cmocka_unit_test(how_long),           cmocka_unit_test(which_address),
        cmocka_unit_test(what_fits),          cmocka_unit_test(what_is_held),
        cmocka_unit_test(who_begins_can_end), cmocka_unit_test(the_oldest_goes_first),
        cmocka_unit_test(time_is_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
