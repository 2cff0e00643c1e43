/* Tables for the decisions of the pods agent. */
#include "lib/unit.h"

#include "api/object.h"
#include "base/str.h"
#include "pods/pod_decide.h"
#include "pods/pod_dialect.h"
#include "pods/pod_status.h"
#include "pods/sandbox.h"

#define NOW 1000000

/* How a container ended, as its status says it. */
static void ends(void **state)
{
    static const struct {
        struct sandbox_probe probe;
        const char *phase, *reason;
        int exit_code;
    } cases[] = {
        {{SANDBOX_ENDED, .exit_code = 0, .started_ms = 5, .ended_ms = 9},
         "Succeeded",
         "Completed",
         0},
        {{SANDBOX_ENDED, .exit_code = 127}, "Failed", "Error", 127},
        {{SANDBOX_ENDED, .exit_code = 137}, "Failed", "Error", 137},
        {{SANDBOX_ENDED, .exit_code = 137, .kills = 1}, "Failed", "OOMKilled", 137},
        /* QEMU was killed, the launcher cleaned up and left */
        {{SANDBOX_ENDED, .exit_code = 0, .kills = 2}, "Failed", "OOMKilled", 137},
        {{SANDBOX_NONE}, "Failed", "ContainerStatusUnknown", 137},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_pod pod = {.phase = "Running"};
        const struct pod_local local = {.sandbox = cases[i].probe};
        struct pod_report r = pod_decide(&pod, 30, &local, NOW).report;

        print_message("  %zu\n", i);
        assert_true(r.terminated);
        assert_string_equal(wire_phase_text(r.phase), cases[i].phase);
        assert_string_equal(r.end_reason, cases[i].reason);
        assert_int_equal(r.exit_code, cases[i].exit_code);
        assert_int_equal(r.started_ms, cases[i].probe.started_ms);
        assert_int_equal(r.ended_ms, cases[i].probe.ended_ms);
    }
}

static void decisions(void **state)
{
    static const struct {
        const char *name;
        /* the object; phase "-" = gone */
        const char *phase;
        bool deleting;
        int64_t grace_s;
        struct pod_local local;
        /* expected */
        enum pod_action action;
        const char *report; /* phase, NULL = none */
        const char *reason;
        int64_t again_ms;
    } cases[] = {
        /* ordinary life */
        {"new pod", NULL, false, 30, {{SANDBOX_NONE}}, POD_START, NULL},
        {"pending pod", "Pending", false, 30, {{SANDBOX_NONE}}, POD_START, NULL},
        {"start failed just now",
         "Pending",
         false,
         30,
         {{SANDBOX_NONE}, .start_error = "no bwrap", .retry_ms = NOW + 500},
         POD_NOTHING,
         "Pending",
         NULL,
         NOW + 500},
        {"start failed a while ago",
         "Pending",
         false,
         30,
         {{SANDBOX_NONE}, .start_error = "no bwrap", .retry_ms = NOW},
         POD_START,
         NULL},
        {"runs",
         "Pending",
         false,
         30,
         {{SANDBOX_RUNNING, .started_ms = 5}},
         POD_NOTHING,
         "Running"},
        {"still runs", "Running", false, 30, {{SANDBOX_RUNNING}}, POD_NOTHING, "Running"},
        {"exit 0",
         "Running",
         false,
         30,
         {{SANDBOX_ENDED, .exit_code = 0}},
         POD_NOTHING,
         "Succeeded"},
        {"exit 127",
         "Running",
         false,
         30,
         {{SANDBOX_ENDED, .exit_code = 127}},
         POD_NOTHING,
         "Failed"},
        {"killed before Running was said",
         "Pending",
         false,
         30,
         {{SANDBOX_ENDED, .exit_code = 137}},
         POD_NOTHING,
         "Failed"},
        {"unsupported",
         NULL,
         false,
         30,
         {{SANDBOX_NONE}, .unsupported = "two containers"},
         POD_NOTHING,
         "Failed",
         "UnsupportedPod"},
        {"became unsupported while running",
         "Running",
         false,
         30,
         {{SANDBOX_RUNNING}, .unsupported = "x"},
         POD_NOTHING,
         "Running"},
        {"ran before the host was restarted",
         "Running",
         false,
         30,
         {{SANDBOX_NONE}},
         POD_NOTHING,
         "Failed",
         "SandboxLost"},
        {"over", "Succeeded", false, 30, {{SANDBOX_ENDED}}, POD_NOTHING, NULL},
        {"failed and never started", "Failed", false, 30, {{SANDBOX_NONE}}, POD_NOTHING, NULL},
        {"declared over while it runs",
         "Failed",
         false,
         30,
         {{SANDBOX_RUNNING}},
         POD_STOP,
         NULL,
         NULL,
         NOW + 30000},
        /* deletion */
        {"deleted, never started", NULL, true, 30, {{SANDBOX_NONE}}, POD_DELETE, NULL},
        {"deleted, runs",
         "Running",
         true,
         30,
         {{SANDBOX_RUNNING}},
         POD_STOP,
         NULL,
         NULL,
         NOW + 30000},
        {"deleted, stopping",
         "Running",
         true,
         30,
         {{SANDBOX_RUNNING, .stop_ms = NOW - 10000}},
         POD_NOTHING,
         NULL,
         NULL,
         NOW + 20000},
        {"deleted, grace made shorter meanwhile",
         "Running",
         true,
         5,
         {{SANDBOX_RUNNING, .stop_ms = NOW - 10000}},
         POD_KILL,
         NULL},
        {"deleted, grace over",
         "Running",
         true,
         30,
         {{SANDBOX_RUNNING, .stop_ms = NOW - 30000}},
         POD_KILL,
         NULL},
        {"deleted with no grace", "Running", true, 0, {{SANDBOX_RUNNING}}, POD_KILL, NULL},
        {"deleted, ended",
         "Running",
         true,
         30,
         {{SANDBOX_ENDED, .exit_code = 0}},
         POD_DELETE,
         "Succeeded"},
        {"deleted, ended and told", "Succeeded", true, 30, {{SANDBOX_ENDED}}, POD_DELETE, NULL},
        {"deleted, unsupported",
         "Failed",
         true,
         30,
         {{SANDBOX_NONE}, .unsupported = "x"},
         POD_DELETE,
         NULL},
        {"deleted, host was restarted", "Running", true, 30, {{SANDBOX_NONE}}, POD_DELETE, NULL},
        /* the object is gone */
        {"orphan runs", "-", false, 0, {{SANDBOX_RUNNING}}, POD_STOP, NULL, NULL, NOW + 30000},
        {"orphan stopping",
         "-",
         false,
         0,
         {{SANDBOX_RUNNING, .stop_ms = NOW - 1000}},
         POD_NOTHING,
         NULL,
         NULL,
         NOW + 29000},
        {"orphan does not stop",
         "-",
         false,
         0,
         {{SANDBOX_RUNNING, .stop_ms = NOW - 30000}},
         POD_KILL,
         NULL},
        {"orphan ended", "-", false, 0, {{SANDBOX_ENDED}}, POD_REMOVE, NULL},
        {"nothing left", "-", false, 0, {{SANDBOX_NONE}}, POD_REMOVE, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_pod pod = {.phase = cases[i].phase, .node_name = "a"};

        pod.meta.deleted_ms = cases[i].deleting ? NOW : 0;
        struct pod_decision d = pod_decide(ferry_streq(cases[i].phase, "-") ? NULL : &pod,
                                           cases[i].grace_s, &cases[i].local, NOW);
        print_message("  %s\n", cases[i].name);
        assert_int_equal(d.action, cases[i].action);
        assert_string_equal(wire_phase_text(d.report.phase),
                            cases[i].report ? cases[i].report : "");
        assert_true(ferry_streq(d.report.reason, cases[i].reason));
        assert_int_equal(d.again_ms, cases[i].again_ms);
    }
}

/* What is said of a container that does not run. */
static void waits(void **state)
{
    static const struct {
        struct pod_local local;
        const char *reason, *message;
    } cases[] = {
        {{.retry_ms = NOW + 1}, "ContainerCreating", NULL},
        {{.start_error = "no bwrap", .retry_ms = NOW + 1}, "CreateContainerError", "no bwrap"},
        {{.unsupported = "two containers"}, "UnsupportedPod", "two containers"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_pod pod = {.phase = "Pending"};
        struct pod_report r = pod_decide(&pod, 30, &cases[i].local, NOW).report;

        assert_string_equal(r.waiting_reason, cases[i].reason);
        assert_true(ferry_streq(r.message, cases[i].message));
    }
}

#define COMPUTE(more) "{\"containers\":[{\"name\":\"compute\",\"image\":\"x\"," more "}]}"
#define LAUNCHER "\"command\":[\"ferry-launcher\",\"--name\",\"a\"]"

static void dialect(void **state)
{
    static const struct {
        const char *spec;
        int n;             /* arguments, or -1 */
        const char *words; /* in the message */
    } cases[] = {
        {COMPUTE(LAUNCHER), 2, NULL},
        {COMPUTE(LAUNCHER ",\"args\":[\"--x\"]"), 3, NULL},
        {COMPUTE(LAUNCHER ",\"env\":[],\"resources\":{\"requests\":{\"cpu\":\"1\"}}"), 2, NULL},
        {"{}", -1, "spec.containers"},
        {"{\"containers\":[]}", -1, "exactly one"},
        {"{\"containers\":[{},{}]}", -1, "exactly one"},
        {"{\"containers\":{}}", -1, "exactly one"},
        {"{\"containers\":[{\"name\":\"web\"}]}", -1, "'compute'"},
        {COMPUTE("\"command\":[\"sh\"]"), -1, "only 'ferry-launcher'"},
        {COMPUTE("\"command\":[]"), -1, "only 'ferry-launcher'"},
        {COMPUTE("\"args\":[\"x\"]"), -1, "only 'ferry-launcher'"},
        {COMPUTE("\"command\":\"ferry-launcher\""), -1, "must be a list"},
        {COMPUTE("\"command\":[\"ferry-launcher\",7]"), -1, "command[1]"},
        {COMPUTE(LAUNCHER ",\"env\":[{\"name\":\"a\"}]"), -1, "spec.containers[0].env"},
        {COMPUTE(LAUNCHER ",\"volumeMounts\":[{\"name\":\"a\"}]"), -1, "volumeMounts"},
        {COMPUTE(LAUNCHER ",\"volumeMounts\":{}"), -1, "must be a list"},
        {COMPUTE(LAUNCHER ",\"livenessProbe\":{\"exec\":{}}"), -1, "livenessProbe"},
        {"{\"hostNetwork\":true," LAUNCHER "}", -1, "spec.hostNetwork"},
        {"{\"hostNetwork\":false,\"initContainers\":[{}]}", -1, "spec.initContainers"},
        {"{\"restartPolicy\":\"Always\"}", -1, "restartPolicy"},
        {"{\"activeDeadlineSeconds\":5}", -1, "spec.activeDeadlineSeconds"},
        {COMPUTE(LAUNCHER ",\"resources\":{\"limits\":{\"memory\":\"1 GB\"}}"), -1,
         "resources/limits/memory"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pod_command cmd = {.n = 99};
        struct ferry_error err = {0};
        yyjson_doc *doc = yyjson_read(cases[i].spec, strlen(cases[i].spec), 0);

        assert_non_null(doc);
        int rc = pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err);
        print_message("  %s\n", cases[i].spec);
        if (cases[i].n >= 0) {
            assert_int_equal(rc, 0);
            assert_int_equal(cmd.n, cases[i].n);
            assert_string_equal(cmd.args[0], "--name");
        } else {
            assert_int_equal(rc, -FERRY_INVALID);
            assert_non_null(strstr(err.msg, cases[i].words));
        }
        yyjson_doc_free(doc);
    }
}

/* Each of them would be ignored, so each is refused by its name; what says "no" is no wish. */
static void not_supported(void **state)
{
    static const char *const of_pods[] = {
        "initContainers", "ephemeralContainers", "hostNetwork",           "hostPID",
        "hostIPC",        "hostAliases",         "shareProcessNamespace", "activeDeadlineSeconds"};
    static const char *const of_containers[] = {
        "env",       "envFrom", "livenessProbe", "readinessProbe", "startupProbe",
        "lifecycle", "ports",   "workingDir",    "stdin",          "tty"};
    static const char *const no[] = {"null", "false", "[]", "{}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(of_pods) + COUNT_OF(of_containers); i++) {
        bool pod = i < COUNT_OF(of_pods);
        const char *name = pod ? of_pods[i] : of_containers[i - COUNT_OF(of_pods)];

        for (size_t k = 0; k <= COUNT_OF(no); k++) {
            const char *value = k < COUNT_OF(no) ? no[k] : "[{\"x\":1}]";
            ferry_cleanup_free char *spec = ferry_asprintf(
                "{%s%s%s%s%s\"containers\":[{\"name\":\"compute\",%s%s%s%s%s" LAUNCHER "}]}",
                pod ? "\"" : "", pod ? name : "", pod ? "\":" : "", pod ? value : "",
                pod ? "," : "", pod ? "" : "\"", pod ? "" : name,
                pod ? "" : "\":", pod ? "" : value, pod ? "" : ",");
            yyjson_doc *doc = yyjson_read(spec, strlen(spec), 0);
            struct pod_command cmd;
            struct ferry_error err = {0};

            print_message("  %s\n", spec);
            assert_non_null(doc);
            int rc = pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err);
            assert_int_equal(rc, k < COUNT_OF(no) ? 0 : -FERRY_INVALID);
            assert_true(k < COUNT_OF(no) || strstr(err.msg, name));
            yyjson_doc_free(doc);
        }
    }
}

static void a_long_word(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        ferry_cleanup_free char *word = ferry_xcalloc(1, POD_ARG_BYTES + more + 1);

        memset(word, 'x', POD_ARG_BYTES + more);
        ferry_cleanup_free char *spec =
            ferry_asprintf(COMPUTE(LAUNCHER ",\"args\":[\"%s\"]"), word);
        yyjson_doc *doc = yyjson_read(spec, strlen(spec), 0);
        struct pod_command cmd;
        struct ferry_error err;
        assert_int_equal(pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err),
                         more ? -FERRY_INVALID : 0);
        yyjson_doc_free(doc);
    }
}

static void too_many_words(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct pod_command cmd;
    struct ferry_error err;

    (void)state;
    ferry_buf_puts(&b, "{\"containers\":[{\"name\":\"compute\",\"command\":[\"ferry-launcher\"");
    for (int i = 0; i < POD_ARGS_MAX; i++) {
        ferry_buf_puts(&b, ",\"x\"");
    }
    ferry_buf_puts(&b, "]}]}");
    yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
    assert_int_equal(pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err), -FERRY_INVALID);
    yyjson_doc_free(doc);
}

static struct api_object *pod_object(const char *status)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","
        "\"uid\":\"u\"},\"spec\":{\"containers\":[{\"name\":\"compute\",\"image\":\"i\"}]}%s%s}",
        status ? ",\"status\":" : "", status ? status : "");
    struct api_object *o = NULL;
    struct ferry_error err;

    if (api_object_parse(API_KIND_POD, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return o;
}

static char *patch_text(const struct api_object *o, const struct pod_report *r, const char *ip)
{
    struct api_patch *p = pod_status_patch(o, r, ip, 1700000000000);

    return p ? api_patch_take(p) : NULL;
}

static void status_of_a_running_pod(void **state)
{
    const struct pod_report running = {
        .phase = PHASE_RUNNING, .running = true, .ready = true, .started_ms = 1700000001000};
    api_cleanup_object struct api_object *fresh = pod_object(NULL);
    ferry_cleanup_free char *first = patch_text(fresh, &running, "10.0.0.1");

    (void)state;
    assert_non_null(first);
    assert_non_null(strstr(first, "/metadata/uid"));
    assert_non_null(strstr(first, "\"path\":\"/status\",\"value\":{}"));
    assert_non_null(strstr(first, "\"startedAt\":\"2023-11-14T22:13:21Z\""));
    assert_non_null(strstr(first, "PodScheduled"));
    assert_non_null(strstr(first, "/status/podIPs"));

    /* What it wrote, read back, needs no further writing. */
    const char *done =
        "{\"phase\":\"Running\",\"startTime\":\"2023-11-14T22:13:20Z\",\"hostIP\":\"10.0.0.1\","
        "\"podIP\":\"10.0.0.1\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"containerStatuses\":[{"
        "\"name\":"
        "\"compute\",\"image\":\"i\",\"imageID\":\"\",\"ready\":true,\"started\":true,"
        "\"restartCount\":0,\"containerID\":\"ferry://u\",\"state\":{\"running\":{\"startedAt\":"
        "\"2023-11-14T22:13:21Z\"}}}],\"conditions\":["
        "{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":\"2023-11-14T22:13:"
        "00Z\"},{\"type\":\"Custom\",\"status\":\"False\"},"
        "{\"type\":\"Initialized\",\"status\":\"True\",\"lastTransitionTime\":\"2023-11-14T22:13:"
        "20Z\"},{\"type\":\"ContainersReady\",\"status\":\"True\",\"lastTransitionTime\":\"2023-11-"
        "14T22:13:20Z\"},{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2023-11-"
        "14T22:13:20Z\"}]}";
    api_cleanup_object struct api_object *same = pod_object(done);
    ferry_cleanup_free char *none = patch_text(same, &running, "10.0.0.1");
    assert_null(none);

    /* It runs and does not answer. */
    struct pod_report busy = running;
    busy.ready = false;
    ferry_cleanup_free char *unready = patch_text(same, &busy, NULL);
    assert_non_null(strstr(unready, "\"ready\":false,\"started\":true"));
    assert_non_null(strstr(unready, "\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
                                    "\"ContainersNotReady\""));
    assert_null(strstr(unready, "/status/phase"));

    /* The end: other writers' conditions stay, transitions get a new time. */
    const struct pod_report over = {.phase = PHASE_FAILED,
                                    .terminated = true,
                                    .end_reason = "OOMKilled",
                                    .exit_code = 137,
                                    .started_ms = 1700000001000,
                                    .ended_ms = 1700000002000};
    ferry_cleanup_free char *last = patch_text(same, &over, NULL);
    assert_non_null(last);
    assert_non_null(strstr(last, "\"exitCode\":137,\"reason\":\"OOMKilled\""));
    assert_non_null(strstr(last, "\"Custom\""));
    assert_non_null(strstr(last, "\"PodFailed\""));
    assert_null(strstr(last, "podIP"));
}

static void status_of_a_waiting_pod(void **state)
{
    const struct pod_report refused = {.phase = PHASE_FAILED,
                                       .reason = "UnsupportedPod",
                                       .message = "two \"containers\"",
                                       .waiting_reason = "UnsupportedPod"};
    const struct pod_report fine = {.phase = PHASE_RUNNING, .running = true};
    api_cleanup_object struct api_object *o = pod_object("{}");
    api_cleanup_object struct api_object *bad =
        pod_object("{\"phase\":\"Pending\",\"message\":\"no bwrap\"}");
    ferry_cleanup_free char *text = patch_text(o, &refused, NULL);
    ferry_cleanup_free char *cleared = patch_text(bad, &fine, NULL);

    (void)state;
    assert_non_null(strstr(text, "\"waiting\":{\"reason\":\"UnsupportedPod\""));
    assert_non_null(strstr(text, "two \\\"containers\\\""));
    assert_null(strstr(text, "containerID"));
    assert_non_null(strstr(cleared, "\"op\":\"remove\",\"path\":\"/status/message\""));
}

/* ---- volumes ----------------------------------------------------------------------------------
 */

#define VOLUME(source) "{\"name\":\"d\"," source "}"
#define AT(path) "\"volumeMounts\":[{\"name\":\"d\",\"mountPath\":\"" path "\"}]"
#define DISK "/var/run/kubevirt-private/vmi-disks/d"
#define DEVICE "\"volumeDevices\":[{\"name\":\"d\",\"devicePath\":\"" DISK "\"}]"

static void volumes(void **state)
{
    static const struct {
        const char *volume, *mounts;
        int kind; /* -1 = refused */
        const char *source;
        const char *words;
        bool create, device, readonly;
    } cases[] = {
        {VOLUME("\"emptyDir\":{}"), AT(DISK), POD_VOLUME_EMPTY, NULL, NULL, .create = false},
        {VOLUME("\"emptyDir\":{\"medium\":\"HugePages\"}"), AT("/dev/hugepages"),
         POD_VOLUME_HUGEPAGES, NULL, NULL, .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/data/d\"}"), AT(DISK), POD_VOLUME_HOST_PATH, "/data/d",
         NULL, .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/data/d\",\"type\":\"DirectoryOrCreate\"}"), AT(DISK),
         POD_VOLUME_HOST_PATH, "/data/d", NULL, .create = true},
        {VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"c\"}"), AT(DISK), POD_VOLUME_CLAIM, "c",
         NULL, .create = false},
        {VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"c\",\"readOnly\":true}"), AT(DISK),
         POD_VOLUME_CLAIM, "c", NULL, .readonly = true},
        {VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"c\"}"), DEVICE, POD_VOLUME_CLAIM, "c",
         NULL, .device = true},
        {VOLUME("\"emptyDir\":{}"),
         "\"volumeMounts\":[{\"name\":\"d\",\"readOnly\":true,\"mountPath\":\"" DISK "\"}]",
         POD_VOLUME_EMPTY, NULL, NULL, .readonly = true},
        {VOLUME("\"configMap\":{\"name\":\"m.x\"}"), AT("/var/run/kubevirt-private/config-map/d"),
         POD_VOLUME_CONFIG_MAP, "m.x", NULL, .readonly = true},
        {VOLUME("\"secret\":{\"secretName\":\"s\",\"defaultMode\":420,\"items\":[{\"key\":\"a\","
                "\"path\":\"b\"}]}"),
         AT("/var/run/kubevirt-private/secret/d"), POD_VOLUME_SECRET, "s", NULL, .readonly = true},
        {VOLUME("\"secret\":{\"secretName\":\"s\"}"), AT(DISK), -1, NULL,
         "can only be at /var/run/kubevirt-private/secret/d", .create = false},
        {VOLUME("\"secret\":{\"secretName\":\"s\"}"), DEVICE, -1, NULL, "can only be at",
         .create = false},
        {VOLUME("\"secret\":{}"), AT(DISK), -1, NULL, "secret.secretName", .create = false},
        {VOLUME("\"configMap\":{\"name\":\"../x\"}"), AT(DISK), -1, NULL, "configMap.name",
         .create = false},
        {VOLUME("\"secret\":{\"secretName\":\"s\",\"items\":[{\"key\":\"a\",\"path\":\"b/c\"}]}"),
         AT(DISK), -1, NULL, "without directories", .create = false},
        {VOLUME("\"secret\":{\"secretName\":\"s\",\"items\":[{\"key\":\"a\",\"path\":\"..\"}]}"),
         AT(DISK), -1, NULL, "without directories", .create = false},
        {VOLUME("\"secret\":{\"secretName\":\"s\",\"items\":[{\"path\":\"b\"}]}"), AT(DISK), -1,
         NULL, "without directories", .create = false},
        {VOLUME("\"emptyDir\":{}"),
         "\"volumeMounts\":[{\"name\":\"d\",\"subPath\":\"x\",\"mountPath\":\"" DISK "\"}]", -1,
         NULL, "subPath", .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/dev/vfio/12\",\"type\":\"CharDevice\"}"),
         AT("/dev/vfio/12"), POD_VOLUME_VFIO, "/dev/vfio/12", NULL, .device = true},
        {VOLUME("\"hostPath\":{\"path\":\"/dev/vfio/12\",\"type\":\"CharDevice\"}"),
         AT("/dev/vfio/13"), -1, NULL, "can only be at /dev/vfio/12", .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/dev/vfio/vfio\",\"type\":\"CharDevice\"}"),
         AT("/dev/vfio/vfio"), -1, NULL, "'CharDevice'", .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/dev/mem\",\"type\":\"CharDevice\"}"), AT("/dev/mem"), -1,
         NULL, "'CharDevice'", .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/dev/vfio/../mem\",\"type\":\"CharDevice\"}"),
         AT("/dev/mem"), -1, NULL, "absolute", .create = false},
        {"{\"name\":\"../d\",\"emptyDir\":{}}",
         "\"volumeMounts\":[{\"name\":\"../d\",\"mountPath\":"
         "\"/var/run/kubevirt-private/vmi-disks/../d\"}]",
         -1, NULL, "no volume '../d'", .create = false},
        {VOLUME("\"persistentVolumeClaim\":{}"), AT(DISK), -1, NULL, "only emptyDir",
         .create = false},
        {VOLUME("\"nfs\":{\"server\":\"s\"}"), AT(DISK), -1, NULL, "only emptyDir",
         .create = false},
        {VOLUME("\"emptyDir\":{}"), DEVICE, -1, NULL, "not a device", .create = false},
        {VOLUME("\"emptyDir\":{}"), AT("/etc"), -1, NULL, "can only be at " DISK, .create = false},
        {VOLUME("\"emptyDir\":{}"), AT("/var/run/kubevirt-private/vmi-disks/../x"), -1, NULL,
         "can only be at", .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"data\"}"), AT(DISK), -1, NULL, "absolute",
         .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/a/../b\"}"), AT(DISK), -1, NULL, "absolute",
         .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/a/..\"}"), AT(DISK), -1, NULL, "absolute",
         .create = false},
        {VOLUME("\"hostPath\":{\"path\":\"/a\",\"type\":\"Socket\"}"), AT(DISK), -1, NULL,
         "'Socket'", .create = false},
        {"{\"name\":\"x\",\"emptyDir\":{}}", AT(DISK), -1, NULL, "no volume 'd'", .create = false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *spec = ferry_asprintf(
            "{\"volumes\":[%s],\"containers\":[{\"name\":\"compute\"," LAUNCHER ",%s}]}",
            cases[i].volume, cases[i].mounts);
        struct pod_command cmd = {0};
        struct ferry_error err = {0};
        yyjson_doc *doc = yyjson_read(spec, strlen(spec), 0);
        int rc = pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err);

        print_message("  %s\n", spec);
        if (cases[i].kind < 0) {
            assert_int_equal(rc, -FERRY_INVALID);
            assert_non_null(strstr(err.msg, cases[i].words));
        } else {
            const struct pod_volume *v = &cmd.volumes.list[0];

            assert_int_equal(rc, 0);
            assert_int_equal(cmd.volumes.n, 1);
            assert_int_equal(v->kind, cases[i].kind);
            assert_true(ferry_streq(v->source, cases[i].source));
            assert_int_equal(v->create, cases[i].create);
            assert_int_equal(v->device, cases[i].device);
            assert_int_equal(v->readonly, cases[i].readonly);
        }
        yyjson_doc_free(doc);
    }
}

/* One of the guests' users with its group, said for the pod or for the container; no other. */
static void users(void **state)
{
    static const struct {
        const char *pod, *container; /* securityContext */
        int64_t user;                /* -1: refused */
    } cases[] = {
        {"{}", "{}", 0},
        {"{\"runAsUser\":1879048192,\"runAsGroup\":1879048192,\"runAsNonRoot\":true}", "{}",
         1879048192},
        {"{}", "{\"runAsUser\":1879113727}", 1879113727},
        {"{\"runAsUser\":0}", "{}", -1},
        {"{\"runAsUser\":61201}", "{}", -1},
        {"{\"runAsUser\":1879048191}", "{}", -1},
        {"{\"runAsUser\":1879113728}", "{}", -1},
        {"{\"runAsUser\":-1}", "{}", -1},
        {"{\"runAsUser\":\"1879048192\"}", "{}", -1},
        {"{\"runAsUser\":1879048192,\"runAsGroup\":0}", "{}", -1},
        {"{\"runAsGroup\":1879048192}", "{}", -1},
        {"{\"runAsUser\":1879048192}", "{\"runAsUser\":0}", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *spec = ferry_asprintf(
            "{\"securityContext\":%s,\"containers\":[{\"name\":\"compute\",\"securityContext\":%s,"
            "\"command\":[\"ferry-launcher\"]}]}",
            cases[i].pod, cases[i].container);
        yyjson_doc *doc = yyjson_read(spec, strlen(spec), 0);
        struct pod_command cmd = {.n = 0};
        struct ferry_error err = {0};
        int rc = pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err);

        print_message("  %s %s\n", cases[i].pod, cases[i].container);
        assert_int_equal(rc, cases[i].user < 0 ? -FERRY_INVALID : 0);
        if (rc == 0) {
            assert_int_equal(cmd.user, cases[i].user);
        } else {
            assert_non_null(strstr(err.msg, "runAsUser"));
        }
        yyjson_doc_free(doc);
    }
}

/* A node that was told one user for all runs nobody as another. */
static void the_node_of_a_pod(void **state)
{
    const struct sandbox_host host = {.vm_uid = 5, .vm_gid = 6};
    struct sandbox_host one = host;

    (void)state;
    one.one_user = true;
    assert_int_equal(sandbox_host_for(&host, 0).vm_uid, 5);
    assert_int_equal(sandbox_host_for(&host, 0).vm_gid, 6);
    assert_int_equal(sandbox_host_for(&host, 1879048192).vm_uid, 1879048192);
    assert_int_equal(sandbox_host_for(&host, 1879048192).vm_gid, 1879048192);
    assert_int_equal(sandbox_host_for(&one, 1879048192).vm_uid, 5);
    assert_int_equal(sandbox_host_for(&one, 1879048192).vm_gid, 6);
}

static void devices(void **state)
{
    static const struct {
        const char *limits;
        bool vhost_net, kvm;
    } cases[] = {
        {"{}", false, false},
        {"{\"devices.kubevirt.io/vhost-net\":\"1\"}", true, false},
        {"{\"devices.kubevirt.io/vhost-net\":\"0\"}", false, false},
        {"{\"devices.kubevirt.io/kvm\":\"1\"}", false, true},
        {"{\"devices.kubevirt.io/kvm\":\"0\",\"devices.kubevirt.io/vhost-net\":1}", true, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *spec = ferry_asprintf(
            "{\"containers\":[{\"name\":\"compute\"," LAUNCHER ",\"resources\":{\"limits\":%s}}]}",
            cases[i].limits);
        yyjson_doc *doc = yyjson_read(spec, strlen(spec), 0);
        struct pod_command cmd = {0};

        assert_int_equal(pod_dialect_read(yyjson_doc_get_root(doc), &cmd, NULL), 0);
        assert_int_equal(cmd.vhost_net, cases[i].vhost_net);
        assert_int_equal(cmd.kvm, cases[i].kvm);
        yyjson_doc_free(doc);
    }
}

static void too_many_volumes(void **state)
{
    (void)state;
    for (int n = POD_VOLUMES_MAX; n <= POD_VOLUMES_MAX + 1; n++) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        struct pod_command cmd;
        struct ferry_error err = {0};

        ferry_buf_puts(&b, "{\"volumes\":[" VOLUME("\"emptyDir\":{}") "],\"containers\":[{\"name\":"
                                                                      "\"compute\"," LAUNCHER
                                                                      ",\"volumeMounts\":[");
        for (int i = 0; i < n; i++) {
            ferry_buf_printf(&b, "%s{\"name\":\"d\",\"mountPath\":\"" DISK "\"}", i ? "," : "");
        }
        ferry_buf_puts(&b, "]}]}");
        yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
        assert_int_equal(pod_dialect_read(yyjson_doc_get_root(doc), &cmd, &err),
                         n > POD_VOLUMES_MAX ? -FERRY_INVALID : 0);
        assert_true(n <= POD_VOLUMES_MAX || strstr(err.msg, "more than"));
        yyjson_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions),
        cmocka_unit_test(ends),
        cmocka_unit_test(waits),
        cmocka_unit_test(dialect),
        cmocka_unit_test(not_supported),
        cmocka_unit_test(a_long_word),
        cmocka_unit_test(too_many_words),
        cmocka_unit_test(status_of_a_running_pod),
        cmocka_unit_test(status_of_a_waiting_pod),
        cmocka_unit_test(volumes),
        cmocka_unit_test(devices),
        cmocka_unit_test(users),
        cmocka_unit_test(the_node_of_a_pod),
        cmocka_unit_test(too_many_volumes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
