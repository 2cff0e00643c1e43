/* Tables: what is said of a guest's network interfaces. */
#include "handler_case.h"

#include "api/guest_nic.h"
#include "handler/owner/guest_interfaces.h"

#define ONE "{\"name\":\"lan\",\"bridge\":{},\"macAddress\":\"02:00:00:00:00:01\"}"
#define SPEC                                                                                       \
    "\"domain\":{\"devices\":{\"interfaces\":[" ONE ",{\"name\":\"vf\",\"sriov\":{}},"             \
    "{\"name\":\"pod\",\"masquerade\":{}}]}},\"networks\":[{\"name\":\"lan\",\"multus\":{"         \
    "\"networkName\":\"x/net\"}},{\"name\":\"pod\",\"pod\":{}}]"
#define GIVEN(list)                                                                                \
    "\"uid\":\"u\",\"annotations\":{\"ferry.io/addresses\":\"{\\\"lan\\\":[" list "]}\"}"
#define LAN(more)                                                                                  \
    "{\"name\":\"lan\",\"mac\":\"02:00:00:00:00:01\",\"infoSource\":\"domain, "                    \
    "multus-status\",\"podInterfaceName\":\"tap0\"" more "}"
#define AT ",\"ipAddress\":\"10.1.1.5\",\"ipAddresses\":[\"10.1.1.5\",\"fd00::5\"]"

static struct api_object *vmi(const char *meta, const char *spec, const char *status)
{
    struct api_object *o = NULL;
    ferry_cleanup_free char *json =
        ferry_asprintf("{\"metadata\":{\"name\":\"v\",\"namespace\":\"default\",%s},\"spec\":{%s},"
                       "\"status\":{%s}}",
                       meta, spec, status);
    struct ferry_error err;

    if (api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

static void nics(void **state)
{
    api_cleanup_object struct api_object *o = vmi("\"uid\":\"u\"", SPEC, "");
    struct api_guest_nic list[API_GUEST_NICS];
    char again[API_MAC_TEXT];

    (void)state;
    assert_int_equal(api_guest_nics(&o->u.vmi, list), 2);
    assert_string_equal(list[0].name, "lan");
    assert_string_equal(list[0].network, "x/net");
    assert_string_equal(list[0].mac, "02:00:00:00:00:01");
    assert_int_equal(list[0].tap, 0);
    assert_string_equal(list[1].name, "pod");
    assert_null(list[1].network);
    assert_int_equal(list[1].tap, 1);
    api_guest_mac("u", "pod", again);
    assert_string_equal(list[1].mac, again);
    api_guest_mac("other", "pod", again);
    assert_string_not_equal(list[1].mac, again);
    assert_memory_equal(again, "02:", 3);
}

static void names(void **state)
{
    static const char *const cases[][3] = {{"lan", "default", "lan"},
                                           {"other/lan", "other", "lan"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *ns = NULL, *name = NULL;

        api_guest_network(cases[i][0], "default", &ns, &name);
        assert_string_equal(ns, cases[i][1]);
        assert_string_equal(name, cases[i][2]);
    }
}

static void statuses(void **state)
{
    static const struct {
        const char *name, *meta, *status;
        const char *part; /* of the answer; NULL = nothing is to be written */
    } cases[] = {
        {"not said yet", GIVEN("\\\"10.1.1.5/24\\\",\\\"fd00::5/64\\\""), "", LAN(AT)},
        {"no addresses", "\"uid\":\"u\"", "", LAN("")},
        {"said", GIVEN("\\\"10.1.1.5/24\\\",\\\"fd00::5/64\\\""),
         "\"interfaces\":[" LAN(AT) ",{\"name\":\"pod\",\"mac\":\"@\",\"infoSource\":\"domain\"}]",
         NULL},
        {"what others say stays", GIVEN("\\\"10.1.1.5/24\\\""),
         "\"interfaces\":[{\"name\":\"lan\",\"linkState\":\"up\",\"infoSource\":\"domain, "
         "guest-agent\"}]",
         "\"linkState\":\"up\",\"infoSource\":\"domain, guest-agent\",\"mac\":"
         "\"02:00:00:00:00:01\",\"podInterfaceName\":\"tap0\",\"ipAddress\":\"10.1.1.5\""},
        {"nonsense is left alone", "\"uid\":\"u\",\"annotations\":{\"ferry.io/addresses\":\"x\"}",
         "", NULL},
    };
    char mac[API_MAC_TEXT];

    (void)state;
    api_guest_mac("u", "pod", mac);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *at = strchr(cases[i].status, '@');
        ferry_cleanup_free char *status =
            at ? ferry_asprintf("%.*s%s%s", (int)(at - cases[i].status), cases[i].status, mac,
                                at + 1)
               : ferry_strdup(cases[i].status);
        api_cleanup_object struct api_object *o = vmi(cases[i].meta, SPEC, status);
        ferry_cleanup_free char *json = guest_interfaces(&o->u.vmi);

        print_message("  %s\n", cases[i].name);
        if ((json != NULL) != (cases[i].part != NULL) || (json && !strstr(json, cases[i].part))) {
            fail_msg("%s", json ? json : "nothing");
        }
    }
    api_cleanup_object struct api_object *plain = vmi("\"uid\":\"u\"", "\"domain\":{}", "");
    assert_null(guest_interfaces(&plain->u.vmi));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nics),
        cmocka_unit_test(names),
        cmocka_unit_test(statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
