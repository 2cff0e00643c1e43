/* What the relay is asked for: parsing, comparison, names. */
#include "lib/unit.h"

#include "base/str.h"
#include "relay/common/spec.h"

#define KEY "5f0e9b1c-1111-4222-8333-444455556666"

/* A good target with one field replaced. */
#define T_MOVE "\"move\":\"m1\""
#define T_GEN "\"generation\":1"
#define T_NODE "\"sourceNode\":\"node-a\""
#define T_BIND "\"bind\":\"127.0.0.1\""
#define T_TLS "\"tls\":\"raw\""
#define T_CHANNELS                                                                                 \
    "\"channels\":[{\"logical\":0,\"unix\":\"/r/libvirt-sock\"},"                                  \
    "{\"logical\":49152,\"unix\":\"/r/m.sock\"}]"
#define TARGET "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS "," T_CHANNELS "}"

#define S_NODE "\"targetNode\":\"node-b\""
#define S_ADDRESS "\"address\":\"fd00::1\""
#define S_PORTS "\"ports\":{\"4001\":0,\"4002\":49152}"
#define S_DIR "\"dir\":\"/run/ferry/pods/x/m\""
#define S_HEAD T_MOVE "," T_GEN "," S_NODE "," T_TLS ","
#define SOURCE "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"owner\":64055}"

static struct relay_spec *parse(enum relay_role role, const char *json)
{
    struct relay_spec *s = NULL;
    struct ferry_error err;

    if (relay_spec_parse(role, KEY, json, strlen(json), &s, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return s;
}

static void test_good_target(void **state)
{
    struct relay_spec *s = parse(RELAY_TARGET, TARGET);

    (void)state;
    assert_string_equal(s->key, KEY);
    assert_string_equal(s->move, "m1");
    assert_int_equal(s->generation, 1);
    assert_string_equal(s->peer_node, "node-a");
    assert_string_equal(s->address, "127.0.0.1");
    assert_int_equal(s->n_channels, 2);
    assert_int_equal(s->channels[0].logical, FERRY_CHANNEL_CONTROL);
    assert_string_equal(s->channels[0].unix_path, "/r/libvirt-sock");
    assert_int_equal(s->channels[1].logical, FERRY_CHANNEL_MEMORY);
    relay_spec_free(s);
}

static void test_good_source(void **state)
{
    struct relay_spec *s = parse(RELAY_SOURCE, SOURCE);

    (void)state;
    assert_string_equal(s->peer_node, "node-b");
    assert_string_equal(s->address, "fd00::1");
    assert_string_equal(s->dir, "/run/ferry/pods/x/m");
    assert_true(s->has_owner);
    assert_int_equal(s->owner, 64055);
    assert_int_equal(s->channels[1].port, 4002);
    assert_int_equal(s->channels[1].logical, FERRY_CHANNEL_MEMORY);
    relay_spec_free(s);
    /* The owner is optional, unknown fields are ignored. */
    s = parse(RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"later\":{\"a\":[1]}}");
    assert_false(s->has_owner);
    relay_spec_free(s);
}

static void test_bad_bodies(void **state)
{
    static const struct {
        enum relay_role role;
        const char *json, *says;
    } rows[] = {
        {RELAY_TARGET, "", "not JSON"},
        {RELAY_TARGET, "{", "not JSON"},
        {RELAY_TARGET, "[]", "must be an object"},
        {RELAY_TARGET, "{}", "move: missing"},
        {RELAY_TARGET, "{\"move\":7}", "move: must be a string"},
        {RELAY_TARGET, "{\"move\":\"\"}", "move: must have 1 to 64"},
        {RELAY_TARGET, "{\"move\":\"a/b\"}", "move: must have 1 to 64"},
        {RELAY_TARGET, "{\"move\":\"a\\u0000b\"}", "move: must be a string"},
        {RELAY_TARGET, "{" T_MOVE "," T_MOVE "}", "move: given twice"},
        {RELAY_TARGET, "{" T_MOVE "}", "generation: missing"},
        {RELAY_TARGET, "{" T_MOVE ",\"generation\":-1}", "generation: must be a whole number"},
        {RELAY_TARGET, "{" T_MOVE ",\"generation\":1.5}", "generation: must be a whole number"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "}", "sourceNode: missing"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "}", "bind: missing"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE ",\"bind\":\"localhost\"}",
         "bind: 'localhost' is not a numeric"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE ",\"bind\":\"127.0.0.1%lo\"}",
         "is not a numeric"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "}", "tls: missing"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND ",\"tls\":\"none\"}",
         "tls: 'none' is not one of"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND ",\"tls\":\"plain\"}",
         "sourceAddress: missing"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS ",\"resumeWindowS\":241}",
         "resumeWindowS: must be a whole number from 0 to 240"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS ",\"rateBytesPerS\":\"1G\"}",
         "rateBytesPerS: must be a whole number"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS "}",
         "channels: must be a list"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS ",\"channels\":[]}",
         "channels: must be a list"},
        {RELAY_TARGET, "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS ",\"channels\":[1]}",
         "channels[0]: must be an object"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":1,\"unix\":\"/a\"}]}",
         "channels[0]: logical: must be 0, 49152 or 49153"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":0,\"unix\":\"a\"}]}",
         "channels[0]: unix: must be an absolute path"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":0,\"unix\":\"/a/../b\"}]}",
         "without '..'"},
        {RELAY_TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":0,\"unix\":\"/a\"},{\"logical\":0,\"unix\":\"/b\"}]}",
         "channels: channel 0 is there twice"},
        {RELAY_SOURCE, TARGET, "targetNode: missing"},
        {RELAY_SOURCE, "{" S_HEAD S_PORTS "," S_DIR "}", "address: missing"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "}", "dir: missing"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS ",\"dir\":\"m\"}",
         "dir: must be an absolute"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR "}", "ports: must map 1 to 3"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{}}", "ports: must map 1 to 3"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"0\":0}}",
         "ports: '0' is not a port"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"70000\":0}}",
         "ports: '70000' is not a port"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"a\":0}}",
         "ports: 'a' is not a port"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"1\":\"0\"}}",
         "ports: must be 0, 49152 or 49153"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"1\":0,\"2\":0}}",
         "ports: channel 0 is there twice"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_DIR ",\"ports\":{\"1\":0,\"1\":49152}}",
         "ports: port 1 is there twice"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"owner\":\"qemu\"}",
         "owner: must be a whole number"},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"owner\":4294967295}",
         "owner: must be a whole number"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct relay_spec *s = NULL;
        struct ferry_error err;
        int rc = relay_spec_parse(rows[i].role, KEY, rows[i].json, strlen(rows[i].json), &s, &err);

        if (rc != -FERRY_INVALID || !strstr(err.msg, rows[i].says)) {
            fail_msg("row %zu %s: %d '%s', expected '%s'", i, rows[i].json, rc,
                     rc < 0 ? err.msg : "", rows[i].says);
        }
        assert_null(s);
    }
}

static void test_keys(void **state)
{
    static const struct {
        const char *key;
        bool valid;
    } rows[] = {
        {KEY, true},
        {"a", true},
        {"a.b_c-D9", true},
        {"", false},
        {".", false},
        {"..", false},
        {".hidden", false},
        {"a/b", false},
        {"a b", false},
        {"a\n", false},
        {"01234567890123456789012345678901234567890123456789012345", true},
        {"012345678901234567890123456789012345678901234567890123456", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (relay_spec_key_valid(rows[i].key) != rows[i].valid) {
            fail_msg("'%s'", rows[i].key);
        }
    }
}

static void test_replace_or_keep(void **state)
{
    static const struct {
        enum relay_role role;
        const char *old, *wanted;
        bool draining;
        enum relay_change expect;
    } rows[] = {
        {RELAY_TARGET, NULL, TARGET, false, RELAY_CREATE},
        {RELAY_TARGET, NULL, TARGET, true, RELAY_REFUSE},
        {RELAY_TARGET, TARGET, TARGET, false, RELAY_KEEP},
        {RELAY_TARGET, TARGET, TARGET, true, RELAY_KEEP},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR "}",
         "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"rateBytesPerS\":1000}", false,
         RELAY_ADJUST},
        {RELAY_SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR "}",
         "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"resumeWindowS\":20}", false, RELAY_REPLACE},
        /* the order of channels and of fields makes no difference */
        {RELAY_TARGET, TARGET,
         "{\"channels\":[{\"unix\":\"/r/m.sock\",\"logical\":49152},"
         "{\"logical\":0,\"unix\":\"/r/libvirt-sock\"}]," T_TLS "," T_BIND "," T_NODE "," T_GEN
         "," T_MOVE "}",
         false, RELAY_KEEP},
        {RELAY_TARGET, TARGET,
         "{\"move\":\"m2\"," T_GEN "," T_NODE "," T_BIND "," T_TLS "," T_CHANNELS "}", false,
         RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{\"move\":\"m2\"," T_GEN "," T_NODE "," T_BIND "," T_TLS "," T_CHANNELS "}", true,
         RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{" T_MOVE ",\"generation\":2," T_NODE "," T_BIND "," T_TLS "," T_CHANNELS "}", false,
         RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{" T_MOVE "," T_GEN ",\"sourceNode\":\"node-c\"," T_BIND "," T_TLS "," T_CHANNELS "}",
         false, RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE ",\"bind\":\"127.0.0.2\"," T_TLS "," T_CHANNELS "}", false,
         RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":0,\"unix\":\"/r/libvirt-sock\"}]}",
         false, RELAY_REPLACE},
        {RELAY_TARGET, TARGET,
         "{" T_MOVE "," T_GEN "," T_NODE "," T_BIND "," T_TLS
         ",\"channels\":[{\"logical\":0,\"unix\":\"/r/libvirt-sock\"},"
         "{\"logical\":49152,\"unix\":\"/r/other.sock\"}]}",
         false, RELAY_REPLACE},
        {RELAY_SOURCE, SOURCE, SOURCE, false, RELAY_KEEP},
        {RELAY_SOURCE, SOURCE,
         "{" S_HEAD S_ADDRESS ",\"ports\":{\"4001\":0,\"4003\":49152}," S_DIR ",\"owner\":64055}",
         false, RELAY_REPLACE},
        {RELAY_SOURCE, SOURCE,
         "{" S_HEAD S_ADDRESS "," S_PORTS ",\"dir\":\"/run/other\",\"owner\":64055}", false,
         RELAY_REPLACE},
        {RELAY_SOURCE, SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR "}", false,
         RELAY_REPLACE},
        {RELAY_SOURCE, SOURCE, "{" S_HEAD S_ADDRESS "," S_PORTS "," S_DIR ",\"owner\":0}", false,
         RELAY_REPLACE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct relay_spec *old = rows[i].old ? parse(rows[i].role, rows[i].old) : NULL;
        struct relay_spec *wanted = parse(rows[i].role, rows[i].wanted);
        enum relay_change got = relay_spec_decide(old, wanted, rows[i].draining);

        if (got != rows[i].expect) {
            fail_msg("row %zu: %d, expected %d", i, (int)got, (int)rows[i].expect);
        }
        relay_spec_free(old);
        relay_spec_free(wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_target),     cmocka_unit_test(test_good_source),
        cmocka_unit_test(test_bad_bodies),      cmocka_unit_test(test_keys),
        cmocka_unit_test(test_replace_or_keep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
