/* Tables: the taps of a pod, and how they are attached to the host's bridges. */
#include "lib/unit.h"

#include "pods/pod_net_plan.h"

static void annotations(void **state)
{
    static const struct {
        const char *text, *answer; /* "tapN=NS/NAME ..."; NULL = refused */
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"{}", ""},
        {"{\"tap0\":\"default/lan\"}", "tap0=default/lan "},
        {"{\"tap0\":\"default/lan\",\"tap3\":\"other/wan.x\"}",
         "tap0=default/lan tap3=other/wan.x "},
        {"{", NULL},
        {"{\"eth0\":\"default/lan\"}", NULL},
        {"{\"tap8\":\"default/lan\"}", NULL},
        {"{\"tap-1\":\"default/lan\"}", NULL},
        {"{\"tap0\":\"lan\"}", NULL},
        {"{\"tap0\":\"../lan\"}", NULL},
        {"{\"tap0\":\"default/../x\"}", NULL},
        {"{\"tap0\":\"Default/lan\"}", NULL},
        {"{\"tap0\":7}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_networks nets;
        ferry_cleanup_buf struct ferry_buf out = {0};
        struct ferry_error err = {0};
        int rc = wire_networks_read(cases[i].text, &nets, &err);

        if ((rc == 0) != (cases[i].answer != NULL)) {
            fail_msg("%s: %d %s", cases[i].text, rc, err.msg);
        }
        for (size_t k = 0; k < nets.n; k++) {
            ferry_buf_printf(&out, "tap%u=%s/%s ", nets.list[k].tap, nets.list[k].ns,
                             nets.list[k].name);
        }
        assert_true(rc < 0 || strcmp(out.data ? out.data : "", cases[i].answer) == 0);
    }
}

#define ATTACH_HOST                                                                                \
    "link add name %s type veth peer name net1 netns 77\n"                                         \
    "link set dev %s addrgenmode none master br-lan up\n"

static void plans(void **state)
{
    const struct wire_network net = {.tap = 1, .ns = "default", .name = "lan"};
    struct pod_net_place place = {
        .pod_uid = "pod", .pid = 77, .uid = 107, .gid = 108, .bridge_exists = true};
    ferry_cleanup_buf struct ferry_buf host = {0}, pod = {0}, bare = {0}, rest = {0};
    char port[API_NAD_LINK_NAME], other[API_NAD_LINK_NAME];
    struct ferry_error err;
    struct api_nad nad;

    (void)state;
    pod_net_port("pod", 1, port);
    pod_net_port("dop", 1, other);
    assert_string_not_equal(port, other);
    assert_int_equal(
        api_nad_parse("{\"type\":\"bridge\",\"bridge\":\"br-lan\",\"mtu\":9000}", &nad, NULL), 0);
    assert_int_equal(pod_net_plan(&net, &nad, &place, &host, &pod, &err), 0);
    ferry_cleanup_free char *want = ferry_asprintf(ATTACH_HOST, port, port);
    assert_string_equal(host.data, want);
    assert_string_equal(pod.data, "link add name br1 type bridge mcast_snooping 0\n"
                                  "tuntap add dev tap1 mode tap user 107 group 108\n"
                                  "link set dev br1 mtu 9000\n"
                                  "link set dev br1 addrgenmode none up\n"
                                  "link set dev net1 mtu 9000\n"
                                  "link set dev net1 addrgenmode none master br1 up\n"
                                  "link set dev tap1 mtu 9000\n"
                                  "link set dev tap1 addrgenmode none master br1 up\n");
    place.bridge_exists = false;
    assert_int_equal(pod_net_plan(&net, &nad, &place, &bare, &rest, &err), 0);
    ferry_cleanup_free char *made = ferry_asprintf(
        "link add name br-lan type bridge\nlink set dev br-lan up\n" ATTACH_HOST, port, port);
    assert_string_equal(bare.data, made);

    assert_int_equal(api_nad_parse("{\"type\":\"macvlan\",\"master\":\"eth1\"}", &nad, NULL), 0);
    assert_int_equal(pod_net_plan(&net, &nad, &place, &bare, &rest, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "default/lan: a guest can only be attached to a bridge"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(annotations),
        cmocka_unit_test(plans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
