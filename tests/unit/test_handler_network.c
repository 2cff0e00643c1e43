/* Tables: the interface of the migration network, from what is there and what shall be. */
#include "lib/unit.h"

#include "handler/node/migration_link.h"

#define SEEN(alias, flags, addresses)                                                              \
    "[{\"ifname\":\"migration0\",\"flags\":[" flags "],\"ifalias\":\"" alias                       \
    "\",\"addr_info\":[" addresses "]}]"
#define AT(ip) "{\"local\":\"" ip "\",\"prefixlen\":24,\"scope\":\"global\"}"
#define LINK_LOCAL "{\"local\":\"fe80::1\",\"prefixlen\":64,\"scope\":\"link\"}"
#define UP "\"BROADCAST\",\"UP\""
#define OURS "ferry:macvlan:eth1:bridge:0:0"

#define MACVLAN "{\"type\":\"macvlan\",\"master\":\"eth1\"}"
#define BRIDGE "{\"type\":\"bridge\",\"bridge\":\"br1\",\"mtu\":9000}"
#define MAKE_MACVLAN                                                                               \
    "link add link eth1 name migration0 type macvlan mode bridge\n"                                \
    "link set dev migration0 alias " OURS "\n"

/* One by the range's gateway, one by its own, one of a family without any. */
#define ROUTED                                                                                     \
    "{\"type\":\"macvlan\",\"master\":\"eth1\",\"ipam\":{\"type\":\"whereabouts\",\"range\":"      \
    "\"10.1.1.0/24\",\"gateway\":\"10.1.1.1\",\"routes\":[{\"dst\":\"10.2.7.7/16\"},{\"dst\":"     \
    "\"10.3.0.0/16\",\"gw\":\"10.1.1.9\"},{\"dst\":\"fd00::/64\"}]}}"
#define ROUTES                                                                                     \
    "route replace 10.2.0.0/16 via 10.1.1.1 dev migration0\n"                                      \
    "route replace 10.3.0.0/16 via 10.1.1.9 dev migration0\n"                                      \
    "route replace fd00::/64 dev migration0\n"
#define ROUTED_ALIAS OURS ":59d94d1b"

static void plans(void **state)
{
    static const struct {
        const char *name, *seen, *config, *address;
        bool bridge_exists;
        const char *plan;
    } cases[] = {
        {"nothing is asked for, nothing is there", "[]", NULL, NULL, false, ""},
        {"made", "[]", MACVLAN, "10.1.1.5/24", false,
         MAKE_MACVLAN "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n"},
        {"made, IPv6", "[]", MACVLAN, "fd00::5/64", false,
         MAKE_MACVLAN "addr add fd00::5/64 dev migration0 nodad\nlink set dev migration0 up\n"},
        {"as it shall be", SEEN(OURS, UP, AT("10.1.1.5") "," LINK_LOCAL), MACVLAN, "10.1.1.5/24",
         false, ""},
        {"down", SEEN(OURS, "\"BROADCAST\"", AT("10.1.1.5")), MACVLAN, "10.1.1.5/24", false,
         "link set dev migration0 up\n"},
        {"another address", SEEN(OURS, UP, AT("10.1.1.5")), MACVLAN, "10.1.1.6/24", false,
         "addr add 10.1.1.6/24 dev migration0\naddr del 10.1.1.5/24 dev migration0\n"
         "addr replace 10.1.1.6/24 dev migration0\n"},
        {"one of another network", SEEN(OURS, UP, AT("10.1.1.5")), MACVLAN, "10.1.2.5/24", false,
         "addr add 10.1.2.5/24 dev migration0\naddr del 10.1.1.5/24 dev migration0\n"},
        {"another network mask", SEEN(OURS, UP, AT("10.1.1.5")), MACVLAN, "10.1.1.5/25", false,
         "addr add 10.1.1.5/25 dev migration0\naddr del 10.1.1.5/24 dev migration0\n"},
        {"somebody else's is used as it is", SEEN("", UP, AT("10.9.9.9")), MACVLAN, "10.1.1.5/24",
         false, ""},
        {"somebody else's stays", SEEN("", UP, AT("10.9.9.9")), NULL, NULL, false, ""},
        {"a VLAN", "[]", "{\"type\":\"vlan\",\"master\":\"eth1\",\"vlanId\":100}", "10.1.1.5/24",
         false,
         "link add link eth1 name migration0 type vlan id 100\n"
         "link set dev migration0 alias ferry:vlan:eth1::0:100\n"
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n"},
        {"another VLAN", SEEN("ferry:vlan:eth1::0:100", UP, AT("10.1.1.5")),
         "{\"type\":\"vlan\",\"master\":\"eth1\",\"vlanId\":101}", "10.1.1.5/24", false,
         "link del dev migration0\nlink add link eth1 name migration0 type vlan id 101\n"
         "link set dev migration0 alias ferry:vlan:eth1::0:101\n"
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n"},
        {"routes, after the address and the link", "[]", ROUTED, "10.1.1.5/24", false,
         "link add link eth1 name migration0 type macvlan mode bridge\n"
         "link set dev migration0 alias " ROUTED_ALIAS "\n"
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n" ROUTES},
        {"routes that are there", SEEN(ROUTED_ALIAS, UP, AT("10.1.1.5")), ROUTED, "10.1.1.5/24",
         false, ""},
        {"routes go with an address", SEEN(ROUTED_ALIAS, UP, AT("10.1.1.5")), ROUTED, "10.1.1.6/24",
         false,
         "addr add 10.1.1.6/24 dev migration0\naddr del 10.1.1.5/24 dev migration0\n"
         "addr replace 10.1.1.6/24 dev migration0\n" ROUTES},
        {"other routes, another link", SEEN(OURS, UP, AT("10.1.1.5")), ROUTED, "10.1.1.5/24", false,
         "link del dev migration0\nlink add link eth1 name migration0 type macvlan mode bridge\n"
         "link set dev migration0 alias " ROUTED_ALIAS "\n"
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n" ROUTES},
        {"no longer asked for", SEEN(OURS, UP, AT("10.1.1.5")), NULL, NULL, false,
         "link del dev migration0\n"},
        {"made from something else", SEEN("ferry:macvlan:eth2:bridge:0:0", UP, AT("10.1.1.5")),
         MACVLAN, "10.1.1.5/24", false,
         "link del dev migration0\n" MAKE_MACVLAN
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n"},
        {"a bridge", "[]", BRIDGE, "10.1.1.5/24", true,
         "link add name migration0 type veth peer name migration0-up\n"
         "link set dev migration0-up master br1 up\n"
         "link set dev migration0 alias ferry:bridge:br1::9000:0\n"
         "link set dev migration0 mtu 9000\n"
         "addr add 10.1.1.5/24 dev migration0\nlink set dev migration0 up\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct migration_link_seen seen;
        struct api_nad nad;
        struct api_ip_net at;
        ferry_cleanup_buf struct ferry_buf out = {0};

        print_message("  %s\n", cases[i].name);
        assert_int_equal(migration_link_parse(cases[i].seen, strlen(cases[i].seen), &seen, NULL),
                         0);
        if (cases[i].config) {
            assert_int_equal(api_nad_parse(cases[i].config, &nad, NULL), 0);
            assert_true(api_ip_parse_net(cases[i].address, &at));
        }
        const struct migration_link_wanted wanted = {.name = "migration0",
                                                     .nad = cases[i].config ? &nad : NULL,
                                                     .addresses = &at,
                                                     .n = cases[i].config ? 1 : 0,
                                                     .bridge_exists = cases[i].bridge_exists};
        migration_link_plan(&seen, &wanted, &out);
        assert_string_equal(out.data ? out.data : "", cases[i].plan);
    }
}

/* What would do harm on a node, though it may be right for a guest. */
static void checks(void **state)
{
    static const char *const cases[][2] = {
        {"{\"type\":\"bridge\"}", "ipam is missing"},
        {"{\"type\":\"bridge\",\"ipam\":{\"type\":\"whereabouts\",\"range\":\"10.1.1.0/"
         "24\",\"routes\":["
         "{\"dst\":\"0.0.0.0/0\"}]}}",
         "default route"},
        {"{\"type\":\"bridge\",\"ipam\":{\"type\":\"whereabouts\",\"range\":\"10.1.1.0/"
         "24\",\"routes\":["
         "{\"dst\":\"::/0\",\"gw\":\"fd00::1\"}]}}",
         "default route"},
        {ROUTED, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        struct api_nad nad;

        assert_int_equal(api_nad_parse(cases[i][0], &nad, NULL), 0);
        int rc = migration_link_check(&nad, &err);
        assert_int_equal(rc == 0, cases[i][1] == NULL);
        assert_true(rc == 0 || strstr(err.msg, cases[i][1]));
    }
}

static void no_bridge_yet(void **state)
{
    ferry_cleanup_buf struct ferry_buf out = {0};
    const struct migration_link_seen seen = {0};
    struct api_nad nad;

    (void)state;
    assert_int_equal(api_nad_parse(BRIDGE, &nad, NULL), 0);
    migration_link_plan(&seen, &(struct migration_link_wanted){.name = "migration0", .nad = &nad},
                        &out);
    assert_non_null(out.data);
    assert_memory_equal(out.data, "link add name br1 type bridge\nlink set dev br1 up\n", 50);
}

static void nonsense(void **state)
{
    struct migration_link_seen seen;
    struct ferry_error err;

    (void)state;
    assert_true(migration_link_parse("{", 1, &seen, &err) < 0);
    assert_int_equal(migration_link_parse("[{}]", 4, &seen, &err), 0);
    assert_true(seen.exists && !seen.ours && !seen.up && seen.n == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(checks),
        cmocka_unit_test(no_bridge_yet),
        cmocka_unit_test(nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
