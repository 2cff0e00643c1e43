/* libvirt's RPC as bytes: XDR, messages, and which calls of a source pass. */
#include "lib/unit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "rpc/rpc_call.h"
#include "rpc/rpc_judge.h"

static void put(struct ferry_buf *b, uint32_t v)
{
    const uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
                              (uint8_t)v};

    ferry_buf_append(b, bytes, 4);
}

static void put_bytes(struct ferry_buf *b, const char *s, size_t n)
{
    put(b, (uint32_t)n);
    ferry_buf_append(b, s, n);
    ferry_buf_append(b, "\0\0\0", (4 - n % 4) % 4);
}

static void put_text(struct ferry_buf *b, const char *s)
{
    put_bytes(b, s, strlen(s));
}

/* ---- XDR ---------------------------------------------------------------------------------------
 */

static struct rpc_xdr over(const void *data, size_t n)
{
    return (struct rpc_xdr){.at = data, .left = n};
}

static void xdr_numbers(void **state)
{
    static const uint8_t bytes[] = {0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe, 1, 0, 0, 0, 0, 0, 0, 3};
    struct rpc_xdr x = over(bytes, sizeof(bytes));

    (void)state;
    assert_int_equal(rpc_xdr_u32(&x), 258);
    assert_int_equal(rpc_xdr_i32(&x), -2);
    assert_true(rpc_xdr_u64(&x) == 0x0100000000000003);
    assert_true(rpc_xdr_done(&x));
    assert_int_equal(rpc_xdr_u32(&x), 0);
    assert_true(x.bad);
}

static void xdr_texts(void **state)
{
    static const struct {
        const char *bytes;
        size_t n, max;
        const char *text; /* NULL: does not fit */
    } cases[] = {
        {"\0\0\0\3abc\0", 8, 3, "abc"},
        {"\0\0\0\4abcd", 8, 4, "abcd"},
        {"\0\0\0\0", 4, 4, ""},
        {"\0\0\0\4abcd", 8, 3, NULL}, /* longer than allowed */
        {"\0\0\0\5abcd", 8, 9, NULL}, /* longer than the message */
        {"\0\0\0\3abcx", 8, 3, NULL}, /* filled up with something */
        {"\0\0\0\3abc", 7, 3, NULL},  /* not filled up */
        {"\xff\xff\xff\xff"
         "abcd",
         8, SIZE_MAX, NULL},
        {"\0\0\0", 3, 9, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rpc_xdr x = over(cases[i].bytes, cases[i].n);
        struct rpc_text t = rpc_xdr_bytes(&x, cases[i].max);

        assert_int_equal(rpc_xdr_done(&x), cases[i].text != NULL);
        assert_true(rpc_text_is(t, cases[i].text ? cases[i].text : ""));
    }
}

static void xdr_optionals(void **state)
{
    struct rpc_xdr absent = over("\0\0\0\0", 4), there = over("\0\0\0\1\0\0\0\1x\0\0\0", 12),
                   odd = over("\0\0\0\2\0\0\0\1x\0\0\0", 12);
    struct rpc_text t;

    (void)state;
    assert_false(rpc_xdr_optional(&absent, 8, &t));
    assert_true(rpc_xdr_done(&absent));
    assert_true(rpc_xdr_optional(&there, 8, &t) && rpc_text_is(t, "x"));
    assert_false(rpc_xdr_optional(&odd, 8, &t));
    assert_true(odd.bad);
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static void lengths(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool ok;
        size_t length;
    } cases[] = {
        {"", 0, true, 0},
        {"\0\0\0", 3, true, 0},
        {"\0\0\0\x1c", 4, true, RPC_SMALLEST},
        {"\0\0\0\x1b", 4, false, 0},
        {"\0\0\0\0", 4, false, 0},
        {"\0\x10\0\0", 4, true, RPC_CALL_MAX},
        {"\0\x10\0\1", 4, false, 0},
        {"\xff\xff\xff\xff", 4, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t length;
        int rc = rpc_frame_length(cases[i].bytes, cases[i].n, RPC_CALL_MAX, &length, NULL);

        assert_int_equal(rc == 0, cases[i].ok);
        assert_int_equal(length, cases[i].length);
    }
}

/* As libvirt reads it: code, domain, message, level, no domain, str1, str2, nothing else. */
static void refusal(void **state)
{
    const struct rpc_header call = {RPC_PROGRAM_REMOTE, 1, 7, RPC_TYPE_CALL, 42, 0};
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct rpc_text text;

    (void)state;
    rpc_frame_refuse(&call, RPC_REFUSED, "no", &b);
    struct rpc_xdr x = over(b.data, b.len);
    assert_int_equal(rpc_xdr_u32(&x), b.len);
    struct rpc_header h = rpc_frame_header(b.data);
    assert_int_equal(h.type, RPC_TYPE_REPLY);
    assert_int_equal(h.serial, 42);
    assert_int_equal(h.status, RPC_STATUS_ERROR);
    x = over(b.data + RPC_SMALLEST, b.len - RPC_SMALLEST);
    assert_int_equal(rpc_xdr_u32(&x), 88);
    assert_int_equal(rpc_xdr_u32(&x), 7);
    assert_true(rpc_xdr_optional(&x, 99, &text) && rpc_text_is(text, "no"));
    assert_int_equal(rpc_xdr_u32(&x), 2);
    assert_int_equal(rpc_xdr_u32(&x), 0);
    assert_true(rpc_xdr_optional(&x, 99, &text) && rpc_text_is(text, "no"));
    assert_true(rpc_xdr_optional(&x, 99, &text) && rpc_text_is(text, RPC_REFUSED));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rpc_xdr_u32(&x), 0);
    }
    assert_true(rpc_xdr_done(&x));
}

/* ---- a session ---------------------------------------------------------------------------------
 */

static struct ferry_buf golden(const char *name)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/control/%s", GOLDEN_DIR, name);
    struct ferry_buf b = {0};

    assert_int_equal(ferry_read_file(path, RPC_XML_MAX, &b, NULL), 0);
    return b;
}

static struct rpc_agreement agreement(void)
{
    ferry_cleanup_buf struct ferry_buf text = golden("agreed.xml");
    struct rpc_agreement a;
    struct ferry_error err;

    if (rpc_agreement_read(text.data, text.len, &a, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return a;
}

/* The calls of a move as they were recorded: auth list, features, open, prepare, finish, close. */
static const char *const recorded[] = {
    "call-01-66.bin",  "call-02-60.bin",  "call-03-1.bin",  "call-04-60.bin", "call-05-60.bin",
    "call-06-360.bin", "call-07-60.bin",  "call-08-60.bin", "call-09-60.bin", "call-10-303.bin",
    "call-11-306.bin", "call-12-361.bin", "call-13-2.bin",
};

static int play(struct rpc_session *s, const struct rpc_agreement *a, const char *name,
                struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf call = golden(name);

    return rpc_judge(s, a, call.data, call.len, 0, err);
}

static void recorded_move(void **state)
{
    struct rpc_agreement a = agreement();
    struct rpc_session s = {0};
    struct ferry_error err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(recorded); i++) {
        if (play(&s, &a, recorded[i], &err) < 0) {
            fail_msg("%s: %s", recorded[i], err.msg);
        }
    }
    assert_int_equal(s.state, RPC_CLOSED);
    assert_int_equal(play(&s, &a, recorded[1], &err), -FERRY_DENIED);
    rpc_agreement_done(&a);
}

/* Each call at each point: whether it may come there. */
static void order(void **state)
{
    static const struct {
        const char *call;
        bool at[RPC_CLOSED + 1]; /* new, open, prepared, finished, closed */
    } cases[] = {
        {"call-01-66.bin", {true, false, false, false, false}},
        {"call-03-1.bin", {true, false, false, false, false}},
        {"call-02-60.bin", {true, true, true, true, false}},
        {"call-06-360.bin", {false, true, true, true, false}},
        {"call-10-303.bin", {false, true, false, false, false}},
        {"call-11-306.bin", {false, false, true, false, false}},
        {"call-12-361.bin", {false, true, true, true, false}},
        {"call-13-2.bin", {false, true, true, true, false}},
    };
    struct rpc_agreement a = agreement();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int at = RPC_NEW; at <= RPC_CLOSED; at++) {
            struct rpc_session s = {.state = (enum rpc_state)at};

            assert_int_equal(play(&s, &a, cases[i].call, NULL) == 0, cases[i].at[at]);
        }
    }
    rpc_agreement_done(&a);
}

/* A source that was refused: what opens a connection passes, so that libvirt can be told at the
 * call whose error it hands on. */
static void refused_before(void **state)
{
    struct rpc_agreement a = agreement();
    struct rpc_session s = {.refused = "procedure 12"};
    struct ferry_error err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(recorded); i++) {
        int rc = play(&s, &a, recorded[i], &err);

        if (strcmp(recorded[i], "call-10-303.bin") == 0) {
            assert_int_equal(rc, -FERRY_DENIED);
            assert_non_null(strstr(err.msg, "refused before: procedure 12"));
            break;
        }
        assert_int_equal(rc, 0);
    }
    assert_int_equal(s.state, RPC_OPEN);
    assert_int_equal(play(&s, &a, "call-11-306.bin", &err), -FERRY_DENIED);
    rpc_agreement_done(&a);
}

/* A message with this header and payload. */
static int judge(enum rpc_state at, const struct rpc_header *h, const struct ferry_buf *payload,
                 struct ferry_error *err)
{
    struct rpc_agreement a = agreement();
    struct rpc_session s = {.state = at};
    ferry_cleanup_buf struct ferry_buf b = {0};

    put(&b, (uint32_t)(RPC_SMALLEST + payload->len));
    put(&b, h->program);
    put(&b, h->version);
    put(&b, (uint32_t)h->procedure);
    put(&b, h->type);
    put(&b, h->serial);
    put(&b, h->status);
    if (payload->len) {
        ferry_buf_append(&b, payload->data, payload->len);
    }
    int rc = rpc_judge(&s, &a, b.data, b.len, 0, err);
    rpc_agreement_done(&a);
    return rc;
}

static void headers(void **state)
{
    static const struct {
        struct rpc_header h;
        const char *why; /* NULL: passes */
    } cases[] = {
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_CALL, 9, 0}, NULL},
        {{RPC_PROGRAM_REMOTE, 2, 361, RPC_TYPE_CALL, 9, 0}, "procedure 361 of program 0x20008086"},
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_CALL, 9, 1}, "status 1"},
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_REPLY, 9, 0}, "type 1"},
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_MESSAGE, 9, 0}, "type 2"},
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_STREAM, 9, 0}, "type 3"},
        {{RPC_PROGRAM_REMOTE, 1, 361, RPC_TYPE_CALL_WITH_FDS, 9, 0}, "type 4"},
        {{RPC_PROGRAM_REMOTE, 1, 10, RPC_TYPE_CALL, 9, 0}, "procedure 10 of"}, /* create XML */
        {{RPC_PROGRAM_REMOTE, 1, -1, RPC_TYPE_CALL, 9, 0}, "procedure -1 of"},
        {{RPC_PROGRAM_REMOTE, 1, 214, RPC_TYPE_CALL, 9, 0}, "procedure 214 of"},  /* prepare3 */
        {{RPC_PROGRAM_QEMU, 1, 1, RPC_TYPE_CALL, 9, 0}, "of program 0x20008087"}, /* monitor */
        {{RPC_PROGRAM_QEMU, 1, 361, RPC_TYPE_CALL, 9, 0}, "of program 0x20008087"},
        {{RPC_PROGRAM_LXC, 1, 1, RPC_TYPE_CALL, 9, 0}, "of program 0x20008088"},
        {{RPC_PROGRAM_KEEPALIVE, 1, 1, RPC_TYPE_MESSAGE, 0, 0}, NULL},
        {{RPC_PROGRAM_KEEPALIVE, 1, 2, RPC_TYPE_MESSAGE, 0, 0}, NULL},
        {{RPC_PROGRAM_KEEPALIVE, 1, 3, RPC_TYPE_MESSAGE, 0, 0}, "keep-alive"},
        {{RPC_PROGRAM_KEEPALIVE, 1, 1, RPC_TYPE_CALL, 0, 0}, "keep-alive"},
    };
    static const struct ferry_buf nothing = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        int rc = judge(RPC_OPEN, &cases[i].h, &nothing, &err);

        assert_int_equal(rc, cases[i].why ? -FERRY_DENIED : 0);
        assert_true(!cases[i].why || strstr(err.msg, cases[i].why));
    }
}

static void opening(void **state)
{
    static const struct {
        const char *name; /* NULL: none */
        uint32_t flags;
        bool ok;
    } cases[] = {
        {"qemu:///session", 6, true},
        {"qemu:///session", 0, true},
        {"qemu:///session", 1, false},
        {"qemu:///session", 8, false},
        {"qemu:///system", 6, false},
        {"qemu:///embed?root=/x", 6, false},
        {"lxc:///", 6, false},
        {NULL, 6, false},
        {"", 6, false},
    };
    const struct rpc_header h = {RPC_PROGRAM_REMOTE, 1, RPC_CONNECT_OPEN, RPC_TYPE_CALL, 1, 0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        put(&b, cases[i].name != NULL);
        if (cases[i].name) {
            put_text(&b, cases[i].name);
        }
        put(&b, cases[i].flags);
        assert_int_equal(judge(RPC_NEW, &h, &b, NULL) == 0, cases[i].ok);
        put(&b, 0); /* more than it takes */
        assert_int_equal(judge(RPC_NEW, &h, &b, NULL), -FERRY_DENIED);
    }
}

/* libvirtd would run it to find out what it can. */
static void emulator_of_a_question(void **state)
{
    static const struct {
        const char *emulator;
        bool ok;
    } cases[] = {{"/usr/bin/qemu-system-x86_64", true}, {NULL, true}, {"/tmp/mine", false}};
    const struct rpc_header h = {RPC_PROGRAM_REMOTE, 1, RPC_CONNECT_COMPARE_HYPERVISOR_CPU,
                                 RPC_TYPE_CALL,      1, 0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        put(&b, cases[i].emulator != NULL);
        if (cases[i].emulator) {
            put_text(&b, cases[i].emulator);
        }
        for (int k = 0; k < 3; k++) {
            put(&b, 0);
        }
        put_text(&b, "<cpu/>");
        put(&b, 0);
        assert_int_equal(judge(RPC_OPEN, &h, &b, NULL) == 0, cases[i].ok);
    }
}

/* ---- parameters --------------------------------------------------------------------------------
 */

enum { FLAGS = 1 << 0 | 1 << 1 | 1 << 3 };

struct given {
    const char *name;
    uint32_t type;
    const char *text;
    uint64_t number;
};

static void put_param(struct ferry_buf *b, const struct given *p)
{
    put_text(b, p->name);
    put(b, p->type);
    if (p->type == RPC_PARAM_STRING) {
        put_text(b, p->text);
    } else {
        if (p->type == RPC_PARAM_ULLONG || p->type == RPC_PARAM_LLONG ||
            p->type == RPC_PARAM_DOUBLE) {
            put(b, (uint32_t)(p->number >> 32));
        }
        put(b, (uint32_t)p->number);
    }
}

/* A prepare with what is always there, and `more` besides. */
static int prepare(const struct given *more, uint32_t flags, struct ferry_error *err)
{
    const struct rpc_header h = {RPC_PROGRAM_REMOTE, 1, RPC_DOMAIN_MIGRATE_PREPARE3_PARAMS,
                                 RPC_TYPE_CALL,      1, 0};
    ferry_cleanup_buf struct ferry_buf xml = golden("prepare.xml");
    ferry_cleanup_buf struct ferry_buf cookie = golden("prepare-cookie.xml");
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct rpc_agreement a = agreement();
    const struct given usual[] = {{"destination_xml", RPC_PARAM_STRING, xml.data, 0},
                                  {"migrate_uri", RPC_PARAM_STRING, a.memory, 0}};

    put(&b, more ? 3 : 2);
    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        put_param(&b, &usual[i]);
    }
    if (more) {
        put_param(&b, more);
    }
    put_bytes(&b, cookie.data, cookie.len + 1);
    put(&b, flags);
    rpc_agreement_done(&a);
    return judge(RPC_OPEN, &h, &b, err);
}

static void parameters(void **state)
{
    static const struct {
        struct given more;
        const char *why; /* NULL: passes */
    } cases[] = {
        {{"bandwidth", RPC_PARAM_ULLONG, NULL, 100}, NULL},
        {{"bandwidth.avail.switchover", RPC_PARAM_ULLONG, NULL, 100}, NULL},
        {{"parallel.connections", RPC_PARAM_INT, NULL, 4}, NULL},
        {{"parallel.connections", RPC_PARAM_INT, NULL, 256}, "not what was agreed"},
        {{"parallel.connections", RPC_PARAM_INT, NULL, 0}, "not what was agreed"},
        {{"parallel.connections", RPC_PARAM_UINT, NULL, 4}, "wrong type"},
        {{"compression", RPC_PARAM_STRING, "zstd", 0}, NULL},
        {{"compression", RPC_PARAM_STRING, "xbzrle", 0}, "not what was agreed"},
        {{"migrate_disks", RPC_PARAM_STRING, "vda", 0}, NULL},
        {{"migrate_disks", RPC_PARAM_STRING, "vdz", 0}, "not what was agreed"},
        {{"migrate_disks_detect_zeroes", RPC_PARAM_STRING, "sda", 0}, "not what was agreed"},
        {{"disks_uri", RPC_PARAM_STRING, "unix:///tmp/mine", 0}, "not what was agreed"},
        {{"destination_name", RPC_PARAM_STRING, "another", 0}, "not what was agreed"},
        {{"migrate_uri", RPC_PARAM_STRING, "tcp://0.0.0.0:1", 0}, "there twice"},
        {{"destination_xml", RPC_PARAM_STRING, "<domain/>", 0}, "there twice"},
        {{"listen_address", RPC_PARAM_STRING, "0.0.0.0", 0}, "not part of a move"},
        {{"graphics_uri", RPC_PARAM_STRING, "spice://x:1", 0}, "not part of a move"},
        {{"disks_port", RPC_PARAM_INT, NULL, 10809}, "not part of a move"},
        {{"tls.destination", RPC_PARAM_STRING, "x", 0}, "not part of a move"},
        {{"persistent_xml", RPC_PARAM_STRING, "<domain/>", 0}, "not part of a move"},
        {{"bandwidth", RPC_PARAM_DOUBLE, NULL, 1}, "cannot be read"},
        {{"bandwidth", 99, NULL, 1}, "cannot be read"},
        {{"", RPC_PARAM_INT, NULL, 1}, "not part of a move"},
    };

    (void)state;
    assert_int_equal(prepare(NULL, FLAGS, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        int rc = prepare(&cases[i].more, FLAGS, &err);

        if ((rc == 0) != (cases[i].why == NULL) || (rc < 0 && !strstr(err.msg, cases[i].why))) {
            fail_msg("%s: %d %s", cases[i].more.name, rc, err.msg);
        }
    }
}

static void flags(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        static const unsigned allowed[] = {0, 1, 3, 5, 7, 9, 11, 13, 15, 17};
        bool ok = false;

        for (size_t i = 0; i < COUNT_OF(allowed); i++) {
            ok = ok || allowed[i] == bit;
        }
        assert_int_equal(prepare(NULL, FLAGS | 1U << bit, NULL) == 0, ok);
    }
    assert_int_equal(prepare(NULL, FLAGS & ~(1U << 3), NULL), -FERRY_DENIED);
}

/* Each prefix of a recorded message, with a length that says so, is refused or passes; none is read
 * beyond its end (ASan). */
static void truncated(void **state)
{
    ferry_cleanup_buf struct ferry_buf call = golden("call-10-303.bin");
    struct rpc_agreement a = agreement();

    (void)state;
    for (size_t n = RPC_SMALLEST; n < call.len; n += n < 200 || n + 200 > call.len ? 1 : 61) {
        struct rpc_session s = {.state = RPC_OPEN};
        char *copy = malloc(n);

        memcpy(copy, call.data, n);
        assert_int_equal(rpc_judge(&s, &a, copy, n, 0, NULL), -FERRY_DENIED);
        free(copy);
    }
    rpc_agreement_done(&a);
}

static void too_many(void **state)
{
    static const uint8_t ping[] = {0, 0, 0, 28, 0x6b, 0x65, 0x65, 0x70, 0, 0, 0, 1, 0, 0,
                                   0, 1, 0, 0,  0,    2,    0,    0,    0, 0, 0, 0, 0, 0};
    struct rpc_agreement a = agreement();
    struct rpc_session s = {0};
    int rc = 0, n = 0;

    (void)state;
    for (; rc == 0 && n < 1000; n++) {
        rc = play(&s, &a, "call-02-60.bin", NULL);
    }
    assert_int_equal(n, RPC_CALLS_MAX + 1);
    s = (struct rpc_session){0};
    for (rc = 0, n = 0; rc == 0 && n < 1000; n++) {
        rc = rpc_judge(&s, &a, ping, sizeof(ping), 5 * FERRY_NS_PER_S, NULL);
    }
    assert_int_equal(n, RPC_KEEPALIVE_MAX + 1);
    assert_int_equal(rpc_judge(&s, &a, ping, sizeof(ping), 6 * FERRY_NS_PER_S, NULL), 0);
    rpc_agreement_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xdr_numbers),
        cmocka_unit_test(xdr_texts),
        cmocka_unit_test(xdr_optionals),
        cmocka_unit_test(lengths),
        cmocka_unit_test(refusal),
        cmocka_unit_test(recorded_move),
        cmocka_unit_test(order),
        cmocka_unit_test(refused_before),
        cmocka_unit_test(headers),
        cmocka_unit_test(opening),
        cmocka_unit_test(emulator_of_a_question),
        cmocka_unit_test(parameters),
        cmocka_unit_test(flags),
        cmocka_unit_test(truncated),
        cmocka_unit_test(too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
