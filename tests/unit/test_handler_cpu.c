/* The CPUs of a node: reports to labels (golden files), labels to patches of the Node. */
#include "handler_case.h"

#include "base/fd.h"
#include "handler/node/node_cpu.h"
#include "handler/node/node_report.h"

/* Reports of test_launcher_cpu, and the labels that they come to. */
static void golden_labels(void **state)
{
    static const char *const names[] = {"tcg", "epyc", "no-host-model"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ferry_cleanup_free char *from = ferry_asprintf("%s/cpu/%s.json", GOLDEN_DIR, names[i]);
        ferry_cleanup_free char *to = ferry_asprintf("%s/cpu/%s.labels", GOLDEN_DIR, names[i]);
        ferry_cleanup_buf struct ferry_buf json = {0}, want = {0}, text = {0};
        node_cpu_cleanup struct node_cpu *cpu = NULL;
        struct ferry_error err = {0};

        print_message("  %s\n", names[i]);
        assert_int_equal(ferry_read_file(from, 1 << 20, &json, &err), 0);
        if (node_cpu_parse(json.data, json.len, &cpu, &err) < 0) {
            fail_msg("%s", err.msg);
        }
        for (size_t k = 0; k < cpu->n; k++) {
            ferry_buf_printf(&text, "%s\n", cpu->labels[k]);
            assert_true(node_cpu_is_kind(cpu->labels[k]));
            assert_true(node_cpu_has(cpu, cpu->labels[k]));
        }
        if (getenv("FERRY_GOLDEN_WRITE")) {
            assert_int_equal(ferry_write_file(to, text.data, text.len, 0644, &err), 0);
        }
        assert_int_equal(ferry_read_file(to, 1 << 20, &want, &err), 0);
        assert_string_equal(text.data, want.data);
    }
}

static void reports(void **state)
{
    static const struct {
        const char *name, *json;
        const char *labels; /* words, as case_check_words() takes them; NULL = refused */
        bool host_model;
    } cases[] = {
        {"nothing", "", NULL, false},
        {"no object", "[]", NULL, false},
        {"no models", "{}", NULL, false},
        {"models of another type", "{\"models\":\"EPYC\"}", NULL, false},
        {"a model for guests, and for those that come", "{\"models\":[\"EPYC\"]}",
         "cpu-model.node.kubevirt.io/EPYC |cpu-model-migration.node.kubevirt.io/EPYC |!host-model",
         false},
        {"the host's model is for those that come alone",
         "{\"models\":[],\"hostModel\":\"Milan\",\"vendor\":\"AMD\"}",
         "host-model-cpu.node.kubevirt.io/Milan |cpu-model-migration.node.kubevirt.io/Milan "
         "|cpu-vendor.node.kubevirt.io/AMD |!cpu-model.node",
         true},
        {"what the host's model needs, the node has",
         "{\"models\":[],\"hostModel\":\"Milan\",\"requiredFeatures\":[\"vaes\"],\"features\":["
         "\"aes\"]}",
         "host-model-required-features.node.kubevirt.io/vaes |cpu-feature.node.kubevirt.io/vaes "
         "|cpu-feature.node.kubevirt.io/aes |!required-features.node.kubevirt.io/aes",
         true},
        {"without the host's model, no vendor and nothing needed",
         "{\"models\":[\"a\"],\"vendor\":\"AMD\",\"requiredFeatures\":[\"x\"]}",
         "cpu-model|!vendor|!required", false},
        {"names that no label can have",
         "{\"models\":[\"-a\",\"b/c\",\"\",7,\"d\\n\",\"ok\"],\"hostModel\":\"x y\"}",
         "cpu-model.node.kubevirt.io/ok |!-a|!b/c|!io/d|!host-model", false},
        {"machines that its QEMU has",
         "{\"models\":[],\"machines\":[\"pc-i440fx-10.0\",\"pc-q35-9.2\",7,\"a/b\"]}",
         "machine-type.node.kubevirt.io/pc-i440fx-10.0 |machine-type.node.kubevirt.io/pc-q35-9.2 "
         "|!a/b",
         false},
        {"each once", "{\"models\":[\"a\",\"a\"]}",
         "cpu-model-migration.node.kubevirt.io/a cpu-model.node.kubevirt.io/a |!io/a cpu-model-m",
         false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        node_cpu_cleanup struct node_cpu *cpu = NULL;
        ferry_cleanup_buf struct ferry_buf text = {0};
        struct ferry_error err;
        int rc = node_cpu_parse(cases[i].json, strlen(cases[i].json), &cpu, &err);

        print_message("  %s\n", cases[i].name);
        assert_int_equal(rc == 0, cases[i].labels != NULL);
        ferry_buf_puts(&text, "");
        for (size_t k = 0; rc == 0 && k < cpu->n; k++) {
            ferry_buf_printf(&text, "%s ", cpu->labels[k]);
        }
        if (rc == 0) {
            case_check_words(cases[i].name, text.data, cases[i].labels);
            assert_int_equal(cpu->host_model, cases[i].host_model);
        }
    }
}

#define OLD "cpu-feature.node.kubevirt.io/old"

static void patches(void **state)
{
    static const char report[] = "{\"models\":[\"new\",\"kept\"]}";
    static const struct {
        const char *name, *labels;
        bool known;
        const char *words;
    } cases[] = {
        {"first", "", true,
         "cpu-model.node.kubevirt.io~1new\",\"value\":\"true|cpu-model-migration.node.kubevirt.io"
         "~1kept"},
        {"not known yet: what is said stays", "\"" OLD "\":\"true\"", false, "!cpu-"},
        {"another CPU now", "\"" OLD "\":\"true\",\"mine\":\"x\"", true,
         "\"op\":\"remove\",\"path\":\"/metadata/labels/cpu-feature.node.kubevirt.io~1old\"|"
         "cpu-model.node.kubevirt.io~1new|!mine"},
        {"another QEMU now", "\"machine-type.node.kubevirt.io/pc-q35-2.4\":\"true\"", true,
         "\"op\":\"remove\",\"path\":\"/metadata/labels/machine-type.node.kubevirt.io~1pc-q35-2.4"},
        {"what is right is not written",
         "\"cpu-model.node.kubevirt.io/kept\":\"true\",\"cpu-model.node.kubevirt.io/new\":\"no\"",
         true, "!cpu-model.node.kubevirt.io~1kept|cpu-model.node.kubevirt.io~1new"},
    };
    node_cpu_cleanup struct node_cpu *cpu = NULL;

    (void)state;
    assert_int_equal(node_cpu_parse(report, strlen(report), &cpu, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *json = ferry_asprintf(
            "{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":"
            "\"1\",\"labels\":{%s}}}",
            cases[i].labels);
        api_cleanup_object struct api_object *o = NULL;
        struct node_facts facts = {
            .name = "a", .address = "10.0.0.1", .cpu = cases[i].known ? cpu : NULL};

        assert_int_equal(api_object_parse(API_KIND_NODE, json, strlen(json), &o, NULL), 0);
        ferry_cleanup_free char *meta = case_patch(node_report_metadata(o, &facts, NOW));
        case_check_words(cases[i].name, meta, cases[i].words);
    }
}

static void identity(void **state)
{
    static const char cpuinfo[] =
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: "
        "AMD EPYC\nstepping\t: 1\nmicrocode\t: 0x1\ncpu MHz\t\t: 2596.130\nflags\t\t: fpu vme\n"
        "bogomips\t: 5192.26\n\nprocessor\t: 1\nvendor_id\t: Other\n";
    ferry_cleanup_free char *text = node_cpu_identity(cpuinfo);
    ferry_cleanup_free char *none = node_cpu_identity("");

    (void)state;
    assert_string_equal(text, "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel "
                              "name\t: AMD EPYC\nstepping\t: 1\nmicrocode\t: 0x1\nflags\t\t: fpu "
                              "vme\n");
    assert_string_equal(none, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_labels),
        cmocka_unit_test(reports),
        cmocka_unit_test(patches),
        cmocka_unit_test(identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
