/* Tables: names of machine types, and which one a guest that starts gets; whether hardware runs it.
 */
#include "api/wire/wire_keys.h"
#include "lib/objects.h"

#include "api/machine_type.h"
#include "control/pod/accelerator_pick.h"
#include "control/pod/machine_pick.h"

static void names(void **state)
{
    static const struct {
        const char *type;
        bool known, pinned, of_pc, of_q35;
    } rows[] = {
        {"pc", .known = true},
        {"q35", .known = true},
        {"pc-i440fx-10.0", true, true, true, false},
        {"pc-q35-9.2", true, true, false, true},
        {"pc-q35-4.0.1", true, true, false, true},
        {"pc-q35-rhel9.6.0", true, true, false, true},
        {"pc-i440fx-noble", true, true, false, false},  /* whose number nobody can tell */
        {"pc-q35-noble-hpb", true, true, false, false}, /* likewise */
        {"pc-q35-1.2.3.4.5", true, true, false, false}, /* no QEMU has that */
        {"pc-q35-1234567.0", true, true, false, false}, /* likewise */
        {"pc-q35-10.", .known = false},                 /* no label may end so */
        {"pc-q35-", .known = false},
        {"pc-q35-10.0,accel=tcg", .known = false},
        {"pc-q35-1/0", .known = false},
        {"microvm", .known = false},
        {"", .known = false},
        {NULL, .known = false},
        {"pc-q35-0123456789012345678901234567890123456789012345678901234567", .known = false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        print_message("  %s\n", rows[i].type ? rows[i].type : "none");
        assert_int_equal(api_machine_is_known(rows[i].type), rows[i].known);
        assert_int_equal(api_machine_is_pinned(rows[i].type), rows[i].pinned);
        assert_int_equal(api_machine_is_of(rows[i].type, "pc"), rows[i].of_pc);
        assert_int_equal(api_machine_is_of(rows[i].type, NULL), rows[i].of_pc);
        assert_int_equal(api_machine_is_of(rows[i].type, "q35"), rows[i].of_q35);
        assert_false(api_machine_is_of(rows[i].type, "microvm"));
    }
}

static void ages(void **state)
{
    /* Each is newer than the one before it. */
    static const char *const order[] = {"pc-q35-rhel8.6.0", "pc-q35-rhel9.6.0", "pc-q35-2.9",
                                        "pc-q35-2.12",      "pc-q35-4.0",       "pc-q35-4.0.1",
                                        "pc-q35-9.2",       "pc-q35-10.0",      "pc-q35-10.1"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        for (size_t k = 0; k < COUNT_OF(order); k++) {
            int want = i < k ? -1 : i > k;
            int got = api_machine_compare(order[i], order[k]);

            assert_int_equal(got < 0 ? -1 : got > 0, want);
        }
    }
}

#define NODES 4

static void picks(void **state)
{
    static const struct {
        const char *name, *asked;
        /* Words: machine types; "off" cordoned, "foreign" not for guests, "lost" not ready. NULL
         * ends. */
        const char *nodes[NODES];
        const char *gets;
    } rows[] = {
        {"no nodes", NULL, {NULL}, NULL},
        {"none reports yet", NULL, {"", ""}, NULL},
        {"one node: its newest",
         NULL,
         {"pc-i440fx-9.2 pc-i440fx-10.0 pc-q35-10.1"},
         "pc-i440fx-10.0"},
        {"numbers, not texts",
         NULL,
         {"pc-i440fx-9.2 pc-i440fx-10.0 pc-i440fx-2.12"},
         "pc-i440fx-10.0"},
        {"mixed: what both have",
         NULL,
         {"pc-i440fx-10.1 pc-i440fx-10.0 pc-i440fx-9.2", "pc-i440fx-9.2 pc-i440fx-10.0"},
         "pc-i440fx-10.0"},
        {"mixed: though it is deprecated on one",
         NULL,
         {"pc-i440fx-10.1 pc-i440fx-6.2", "pc-i440fx-6.2 pc-i440fx-6.1"},
         "pc-i440fx-6.2"},
        {"nothing in common", NULL, {"pc-i440fx-10.1", "pc-i440fx-rhel9.6.0"}, NULL},
        {"a distribution's own", "q35", {"pc-q35-rhel9.4.0 pc-q35-rhel9.6.0"}, "pc-q35-rhel9.6.0"},
        {"QEMU's rather than a distribution's",
         "q35",
         {"pc-q35-rhel9.6.0 pc-q35-9.2", "pc-q35-rhel9.6.0 pc-q35-9.2"},
         "pc-q35-9.2"},
        {"names without a number are not chosen",
         NULL,
         {"pc-i440fx-noble pc-i440fx-8.2"},
         "pc-i440fx-8.2"},
        {"the alias pc", "pc", {"pc-i440fx-9.2 pc-q35-10.0"}, "pc-i440fx-9.2"},
        {"the alias q35", "q35", {"pc-i440fx-10.0 pc-q35-9.2"}, "pc-q35-9.2"},
        {"an empty type is none", "", {"pc-i440fx-9.2"}, "pc-i440fx-9.2"},
        {"named with its version", "pc-q35-8.2", {"pc-q35-9.2 pc-q35-8.2"}, "pc-q35-8.2"},
        {"named, and nowhere: it finds no node", "pc-q35-8.2", {"pc-q35-9.2"}, "pc-q35-8.2"},
        {"named, and nobody reports: the launcher sees", "pc-q35-8.2", {""}, NULL},
        {"named, and nothing of QEMU", "vax", {"pc-q35-9.2"}, NULL},
        {"a cordoned node does not count",
         NULL,
         {"off pc-i440fx-9.2", "pc-i440fx-10.0 pc-i440fx-9.2"},
         "pc-i440fx-10.0"},
        {"all are cordoned", NULL, {"off pc-i440fx-9.2"}, NULL},
        {"a node that takes no guests does not count",
         NULL,
         {"foreign pc-i440fx-9.2", "pc-i440fx-10.0 pc-i440fx-9.2"},
         "pc-i440fx-10.0"},
        {"a node that is lost for a while does",
         NULL,
         {"lost pc-i440fx-9.2", "pc-i440fx-10.0 pc-i440fx-9.2"},
         "pc-i440fx-9.2"},
        {"a node that reports nothing does not count",
         NULL,
         {"", "pc-i440fx-10.0 pc-i440fx-9.2", "pc-i440fx-9.2"},
         "pc-i440fx-9.2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct api_object *nodes[NODES];
        size_t n = 0;

        for (; n < NODES && rows[i].nodes[n]; n++) {
            ferry_cleanup_free char *words = ferry_strdup(rows[i].nodes[n]);
            ferry_cleanup_buf struct ferry_buf labels = {0};
            char *save = NULL;
            bool off = false, foreign = false, lost = false;

            for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                off = off || ferry_streq(w, "off");
                foreign = foreign || ferry_streq(w, "foreign");
                lost = lost || ferry_streq(w, "lost");
                if (api_machine_is_pinned(w)) {
                    ferry_buf_printf(&labels, "'" LABEL_MACHINE_TYPE "%s':'true',", w);
                }
            }
            ferry_cleanup_free char *json = ferry_asprintf(
                "{'metadata':{'name':'%zu','labels':{%s'kubevirt.io/schedulable':'%s'}},'spec':{"
                "'unschedulable':%s},'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                n, labels.data ? labels.data : "", foreign ? "false" : "true",
                off ? "true" : "false", lost ? "Unknown" : "True");
            nodes[n] = make_object(API_KIND_NODE, json, NULL);
        }
        ferry_cleanup_free char *got = machine_pick(rows[i].asked, nodes, n);
        if (!ferry_streq(got ? got : "", rows[i].gets ? rows[i].gets : "")) {
            fail_msg("%s: %s", rows[i].name, got ? got : "nothing");
        }
        for (size_t k = 0; k < n; k++) {
            api_object_unref((struct api_object *)nodes[k]);
        }
    }
}

#define EMULATION(value)                                                                           \
    "{'spec':{'configuration':{'developerConfiguration':{'useEmulation':" value "}}}}"

static void accelerators(void **state)
{
    static const struct {
        const char *name, *site;
        const char *nodes[NODES]; /* what each offers of KVM; a leading "off": cordoned, "foreign":
                                     not for guests */
        enum wire_accelerator gets;
    } rows[] = {
        {"no nodes yet", NULL, {NULL}, ACCELERATOR_TCG},
        {"a site that says nothing, no hardware", "{}", {"", ""}, ACCELERATOR_TCG},
        {"one node has it", "{}", {"", "1000"}, ACCELERATOR_KVM},
        {"there is no KubeVirt object", NULL, {"1000"}, ACCELERATOR_KVM},
        {"a node that has none of it left to give", "{}", {"0"}, ACCELERATOR_TCG},
        {"what is no quantity is nothing", "{}", {"many"}, ACCELERATOR_TCG},
        {"the one that has it is cordoned", "{}", {"off1000", ""}, ACCELERATOR_TCG},
        {"the one that has it takes no guests", "{}", {"foreign1000", ""}, ACCELERATOR_TCG},
        {"emulation is asked for", EMULATION("true"), {"1000"}, ACCELERATOR_TCG},
        {"hardware is asked for, and nobody has it", EMULATION("false"), {""}, ACCELERATOR_KVM},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct api_object *nodes[NODES];
        size_t n = 0;

        for (; n < NODES && rows[i].nodes[n]; n++) {
            const char *offers = rows[i].nodes[n];
            bool off = ferry_str_starts(offers, "off"),
                 foreign = ferry_str_starts(offers, "foreign");

            offers += off ? 3 : foreign ? 7 : 0;
            ferry_cleanup_free char *kvm =
                *offers ? ferry_asprintf("'" RESOURCE_KVM "':'%s'", offers) : ferry_strdup("");
            ferry_cleanup_free char *json = ferry_asprintf(
                "{'metadata':{'name':'%zu','labels':{'kubevirt.io/schedulable':'%s'}},'spec':{"
                "'unschedulable':%s},'status':{'allocatable':{%s}}}",
                n, foreign ? "false" : "true", off ? "true" : "false", kvm);
            nodes[n] = make_object(API_KIND_NODE, json, NULL);
        }
        api_cleanup_object struct api_object *site =
            rows[i].site ? make_object(API_KIND_KUBEVIRT,
                                       "{'metadata':{'name':'k','namespace':'n'}}", rows[i].site)
                         : NULL;
        if (accelerator_pick(site ? &site->u.kubevirt : NULL, nodes, n) != rows[i].gets) {
            fail_msg("%s", rows[i].name);
        }
        for (size_t k = 0; k < n; k++) {
            api_object_unref((struct api_object *)nodes[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(ages),
                                       cmocka_unit_test(picks), cmocka_unit_test(accelerators)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
