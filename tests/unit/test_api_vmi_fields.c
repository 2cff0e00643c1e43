/* The table of fields of a machine, and what admission makes of it: rows of an object (before and
 * after) and what is found in it. */
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/spec/vmi_defaults.h"
#include "api/spec/vmi_field_check.h"
#include "api/spec/vmi_rules.h"
#include "base/str.h"

/* ---- the table ---------------------------------------------------------------------------------
 */

static bool has_text(const char *s)
{
    return s && *s;
}

/* The field that one is in; "" at the top. */
static void parent_of(const char *path, char ret[256])
{
    const char *dot = strrchr(path, '.');

    snprintf(ret, 256, "%.*s", dot ? (int)(dot - path) : 0, path);
}

static void check_row(enum vmi_fields_of of, const struct vmi_field *f,
                      const struct vmi_field *before)
{
    char parent[256];
    const struct vmi_field *in;

    parent_of(f->path, parent);
    in = *parent ? vmi_fields_find(of, parent) : NULL;
    bool said = f->verdict == VMI_FIELD_BELOW || has_text(f->text);
    bool instead = (f->verdict != VMI_FIELD_REFUSED && !f->values) || has_text(f->todo);
    bool who = f->verdict != VMI_FIELD_HONOURED || has_text(f->by);
    bool hangs = !*parent || in;
    bool judged = f->verdict != VMI_FIELD_BELOW ||
                  (in && in->verdict != VMI_FIELD_PARTS && in->verdict != VMI_FIELD_HONOURED);
    bool reached = f->verdict == VMI_FIELD_BELOW || !in || in->verdict == VMI_FIELD_PARTS ||
                   in->verdict == VMI_FIELD_HONOURED;

    if (!said || !instead || !who || !hangs || !judged || !has_text(f->type)) {
        fail_msg("%s: says %d, instead %d, who %d, hangs on a row %d, judged %d", f->path, said,
                 instead, who, hangs, judged);
    }
    if (!reached) {
        fail_msg("%s: nobody asks, because %s is judged with all that is in it", f->path, parent);
    }
    if (before && strcmp(before->path, f->path) >= 0) {
        fail_msg("%s: comes after %s", f->path, before->path);
    }
    assert_ptr_equal(vmi_fields_find(of, f->path), f);
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (const struct vmi_fields *const *t = vmi_fields_of_vmi(); *t; t++) {
        for (size_t i = 0; i < (*t)->n; i++) {
            check_row(VMI_FIELDS_OF_VMI, &(*t)->rows[i], i ? &(*t)->rows[i - 1] : NULL);
        }
    }
    for (size_t i = 0; i < vmi_fields_vm.n; i++) {
        check_row(VMI_FIELDS_OF_VM, &vmi_fields_vm.rows[i], i ? &vmi_fields_vm.rows[i - 1] : NULL);
    }
    assert_null(vmi_fields_find(VMI_FIELDS_OF_VMI, "domain.memmory"));
    assert_null(vmi_fields_find(VMI_FIELDS_OF_VMI, ""));
    assert_non_null(vmi_fields_find(VMI_FIELDS_OF_VM, "template.spec.domain.cpu.cores"));
}

/* ---- what is found -----------------------------------------------------------------------------
 */

/* "FIELD: Word: why" of each, a line each. */
static char *findings_text(const struct vmi_findings *f)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, "");
    for (size_t i = 0; i < f->n; i++) {
        const char *word = vmi_finding_word(f->list[i].kind);

        ferry_buf_printf(&b, "%s%s: %s: %s", i ? "\n" : "", f->list[i].field,
                         word ? word : "no effect", f->list[i].why);
    }
    return b.data ? ferry_buf_take(&b) : ferry_strdup("");
}

static char *findings_of(enum vmi_fields_of of, const char *spec, const char *before)
{
    ferry_cleanup_free char *text = ferry_asprintf("{\"spec\":%s}", spec);
    ferry_cleanup_free char *old = ferry_asprintf("{\"spec\":%s}", before ? before : "{}");
    api_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    api_cleanup_doc yyjson_doc *old_doc = yyjson_read(old, strlen(old), 0);
    struct vmi_findings found;

    if (!doc || !old_doc) {
        fail_msg("no JSON: %s", text);
    }
    vmi_field_check(of, yyjson_doc_get_root(doc), before ? yyjson_doc_get_root(old_doc) : NULL,
                    &found);
    return findings_text(&found);
}

struct row {
    const char *spec, *found; /* the beginning of what is found, NULL = nothing */
};

static void check_rows(enum vmi_fields_of of, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ferry_cleanup_free char *text = findings_of(of, rows[i].spec, NULL);

        if (rows[i].found ? !ferry_str_starts(text, rows[i].found) : *text != '\0') {
            fail_msg("%s:\n%s\nwanted: %s", rows[i].spec, text,
                     rows[i].found ? rows[i].found : "nothing");
        }
    }
}

#define DOMAIN(rest) "{\"domain\":{" rest "}}"
#define DEVICES(rest) DOMAIN("\"devices\":{" rest "}")
#define FORBIDDEN(field) "spec." field ": Forbidden: "
#define VOLUME(source) ",\"volumes\":[{\"name\":\"a\"," source "}]}"
#define CLAIM VOLUME("\"persistentVolumeClaim\":{\"claimName\":\"c\"}")
#define DISK(rest) "{\"domain\":{\"devices\":{\"disks\":[{\"name\":\"a\"" rest "}]}}" CLAIM
#define SHOWN(source) "{\"domain\":{\"devices\":{\"disks\":[{\"name\":\"a\"}]}}" VOLUME(source)
#define NIC(rest)                                                                                  \
    "{\"domain\":{\"devices\":{\"interfaces\":[{\"name\":\"n\"" rest "}]}},"                       \
    "\"networks\":[{\"name\":\"n\",\"multus\":{\"networkName\":\"x\"}}]}"

static void single_fields(void **state)
{
    static const struct row rows[] = {
        {DOMAIN(""), NULL},
        {DOMAIN("\"cpu\":{\"cores\":2,\"sockets\":1,\"threads\":1,\"model\":\"host-model\"}"),
         NULL},
        {DOMAIN("\"cpu\":{\"features\":[{\"name\":\"a\",\"policy\":\"require\"}]}"), NULL},
        {DOMAIN("\"cpu\":{\"dedicatedCpuPlacement\":true}"),
         FORBIDDEN("domain.cpu.dedicatedCpuPlacement") "virtual CPUs are not pinned"},
        {DOMAIN("\"cpu\":{\"dedicatedCpuPlacement\":false}"), NULL},
        {DOMAIN("\"cpu\":{\"realtime\":{}}"), FORBIDDEN("domain.cpu.realtime")},
        {DOMAIN("\"cpu\":{\"maxSockets\":4}"), "spec.domain.cpu.maxSockets: no effect: "},
        {DOMAIN("\"memory\":{\"guest\":\"64Mi\",\"hugepages\":{\"pageSize\":\"2Mi\"}}"), NULL},
        {DOMAIN("\"memory\":{\"hugepages\":{\"pageSize\":\"4Mi\"}}"),
         "spec.domain.memory.hugepages.pageSize: Unsupported value: \"4Mi\": choose one of these; "
         "supported: 2Mi 1Gi"},
        {DOMAIN("\"resources\":{\"requests\":{\"memory\":\"1Gi\",\"cpu\":1}}"), NULL},
        {DOMAIN("\"resources\":{\"limits\":{\"example.com/x\":1}}"),
         "spec.domain.resources.limits: Unsupported value: \"example.com/x\": "},
        {DOMAIN("\"firmware\":{\"bootloader\":{\"efi\":{}}}"),
         FORBIDDEN("domain.firmware.bootloader.efi")},
        {DOMAIN("\"firmware\":{\"bootloader\":{\"bios\":{}}}"), NULL},
        {DOMAIN("\"features\":{\"smm\":{\"enabled\":false}}"), NULL},
        {DOMAIN("\"features\":{\"smm\":{}}"), FORBIDDEN("domain.features.smm")},
        {DOMAIN("\"features\":{\"pvspinlock\":{\"enabled\":false}}"),
         FORBIDDEN("domain.features.pvspinlock")},
        {DOMAIN("\"features\":{\"apic\":{\"enabled\":false}}"),
         "spec.domain.features.apic.enabled: Unsupported value: \"false\": "},
        {DOMAIN("\"clock\":{\"utc\":{}}"), NULL},
        {DOMAIN("\"clock\":{\"utc\":{\"offsetSeconds\":0}}"), NULL},
        {DOMAIN("\"clock\":{\"utc\":{\"offsetSeconds\":60}}"),
         FORBIDDEN("domain.clock.utc.offsetSeconds")},
        {DOMAIN("\"clock\":{\"timer\":{\"hpet\":{\"present\":false}}}"),
         FORBIDDEN("domain.clock.timer")},
        {DEVICES("\"tpm\":{\"enabled\":false}"), NULL},
        {DEVICES("\"tpm\":{}"), FORBIDDEN("domain.devices.tpm")},
        {DEVICES("\"tpm\":null"), NULL},
        {DEVICES("\"gpus\":[]"), NULL},
        {DEVICES("\"gpus\":[{\"name\":\"a\"},{\"name\":\"b\"}]"), FORBIDDEN("domain.devices.gpus")},
        {DEVICES("\"rng\":{}"), FORBIDDEN("domain.devices.rng")},
        {DEVICES("\"autoattachGraphicsDevice\":false"), NULL},
        {DEVICES("\"autoattachGraphicsDevice\":true"),
         "spec.domain.devices.autoattachGraphicsDevice: Unsupported value: \"true\": "},
        {DEVICES("\"hostDevices\":[{\"name\":\"a\",\"deviceName\":\"b/c\"}]"), NULL},
        {DEVICES("\"memmory\":{}"), NULL}, /* the schema's business */
        {DISK(",\"serial\":\"x\""), "spec.domain.devices.disks[0].serial: Forbidden: "},
        {DISK(",\"serial\":\"\""), NULL},
        {DISK(",\"disk\":{\"bus\":\"virtio\",\"readonly\":true},\"cache\":\"none\","
              "\"bootOrder\":1"),
         NULL},
        {DISK(",\"disk\":{\"bus\":\"scsi\"}"),
         "spec.domain.devices.disks[0].disk.bus: Unsupported value: \"scsi\": choose one of these; "
         "supported: virtio sata"},
        {DISK(",\"lun\":{}"), FORBIDDEN("domain.devices.disks[0].lun")},
        {NIC(",\"bridge\":{}"), NULL},
        {NIC(",\"masquerade\":{}"), FORBIDDEN("domain.devices.interfaces[0].masquerade")},
        {NIC(",\"bridge\":{},\"ports\":[{\"port\":80}]"),
         "spec.domain.devices.interfaces[0].ports: no effect: "},
        {SHOWN("\"containerDisk\":{\"image\":\"x\"}"), FORBIDDEN("volumes[0].containerDisk")},
        {SHOWN("\"cloudInitNoCloud\":{\"userData\":\"x\"}"), NULL},
        {SHOWN("\"hostDisk\":{\"path\":\"/x\",\"type\":\"Block\"}"),
         "spec.volumes[0].hostDisk.type: Unsupported value: \"Block\""},
        {"{\"architecture\":\"amd64\"}", NULL},
        {"{\"architecture\":\"arm64\"}",
         "spec.architecture: Unsupported value: \"arm64\": guests run on x86-64 hosts only; "
         "supported: amd64"},
        {"{\"architecture\":\"amd\"}", "spec.architecture: Unsupported value"},
        {"{\"architecture\":\"\"}", NULL},
        {"{\"startStrategy\":\"Paused\"}", FORBIDDEN("startStrategy")},
        {"{\"livenessProbe\":{\"tcpSocket\":{\"port\":1}}}", FORBIDDEN("livenessProbe")},
        {"{\"affinity\":{\"nodeAffinity\":{}},\"tolerations\":[{\"key\":\"a\"}]}", NULL},
        {"{\"accessCredentials\":[{}]}", FORBIDDEN("accessCredentials")},
        {"{\"architecture\":5}", "spec.architecture: Unsupported value"}, /* never past a schema */
        {"{\"domain\":[]}", NULL},
        {"[]", NULL},
    };

    (void)state;
    check_rows(VMI_FIELDS_OF_VMI, rows, COUNT_OF(rows));
}

static void machines(void **state)
{
    static const struct row rows[] = {
        {"{\"runStrategy\":\"Always\",\"template\":{\"spec\":{\"domain\":{}}}}", NULL},
        {"{\"runStrategy\":\"WaitAsReceiver\"}", "spec.runStrategy: Unsupported value"},
        {"{\"running\":true,\"runStrategy\":\"Always\"}", "spec.running: Invalid value: "},
        {"{\"dataVolumeTemplates\":[{}]}", FORBIDDEN("dataVolumeTemplates")},
        {"{\"instancetype\":{\"name\":\"u1\",\"kind\":\"k\"},\"preference\":{\"name\":\"p\"}}",
         NULL},
        {"{\"instancetype\":{\"inferFromVolume\":\"v\"}}",
         FORBIDDEN("instancetype.inferFromVolume")},
        {"{\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"},\"creationTimestamp\":null}}}",
         NULL},
        {"{\"template\":{\"metadata\":{\"annotations\":{\"hooks.kubevirt.io/"
         "hookSidecars\":\"[]\"}}}}",
         "spec.template.metadata.annotations[hooks.kubevirt.io/hookSidecars]: Forbidden: programs"},
        {"{\"template\":{\"metadata\":{\"name\":\"x\"}}}",
         "spec.template.metadata.name: no effect"},
        {"{\"template\":{\"spec\":{\"domain\":{\"devices\":{\"tpm\":{}}}}}}",
         FORBIDDEN("template.spec.domain.devices.tpm")},
        /* an instance gets the disk when it is made */
        {"{\"template\":{\"spec\":{\"domain\":{},\"volumes\":[{\"name\":\"v\",\"emptyDisk\":"
         "{\"capacity\":\"1Gi\"}}]}}}",
         NULL},
        {"{\"template\":{\"spec\":{\"domain\":{\"devices\":{\"disks\":[{\"name\":\"d\"}]}}}}}",
         "spec.template.spec.domain.devices.disks[0].name: Invalid value: \"d\": there is no "
         "volume"},
    };

    (void)state;
    check_rows(VMI_FIELDS_OF_VM, rows, COUNT_OF(rows));
}

/* ---- the parts of a machine --------------------------------------------------------------------
 */

#define PVC(n) "{\"name\":\"" n "\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}"
#define ON(n) "{\"name\":\"" n "\",\"multus\":{\"networkName\":\"x\"}}"
#define WITH(disks, volumes)                                                                       \
    "{\"domain\":{\"devices\":{\"disks\":[" disks "]}},\"volumes\":[" volumes "]}"
#define WITH_NICS(interfaces, networks)                                                            \
    "{\"domain\":{\"devices\":{\"interfaces\":[" interfaces "]}},\"networks\":[" networks "]}"

static void parts(void **state)
{
    static const struct row rows[] = {
        {WITH("{\"name\":\"a\"}", PVC("a")), NULL},
        {WITH("{\"name\":\"a\"}", ""), "spec.domain.devices.disks[0].name: Invalid value: \"a\": "
                                       "there is no volume of this name"},
        {WITH("{\"name\":\"a\",\"cdrom\":{}}", ""), "spec.domain.devices.disks[0].name: Invalid"},
        {WITH("", PVC("a")),
         "spec.volumes[0].name: Invalid value: \"a\": no disk has this name: list one"},
        {WITH("{\"name\":\"a\"},{\"name\":\"a\"}", PVC("a")),
         "spec.domain.devices.disks[1].name: Duplicate value: \"a\""},
        {WITH("{\"name\":\"a\"}", PVC("a") "," PVC("a")), "spec.volumes[1].name: Duplicate value"},
        {WITH("{\"name\":\"a\",\"bootOrder\":1},{\"name\":\"b\",\"bootOrder\":2}",
              PVC("a") "," PVC("b")),
         NULL},
        {WITH("{\"name\":\"a\",\"bootOrder\":1},{\"name\":\"b\",\"bootOrder\":1}",
              PVC("a") "," PVC("b")),
         "spec.domain.devices.disks[1].bootOrder: Duplicate value: 1: another disk or interface "
         "has "
         "this place already"},
        {WITH("{\"name\":\"a\",\"bootOrder\":0}", PVC("a")),
         "spec.domain.devices.disks[0].bootOrder: Invalid value: 0: must be greater than 0"},
        {"{\"domain\":{\"devices\":{\"disks\":[{\"name\":\"a\",\"bootOrder\":1}],\"interfaces\":"
         "[{\"name\":\"n\",\"bridge\":{},\"bootOrder\":1}]}},\"volumes\":[" PVC(
             "a") "],"
                  "\"networks\":[" ON("n") "]}",
         "spec.domain.devices.interfaces[0].bootOrder: Duplicate value: 1"},
        {WITH("{\"name\":\"a\",\"disk\":{},\"cdrom\":{}}", PVC("a")),
         "spec.domain.devices.disks[0]: Invalid value: may only be of one kind"},
        {WITH("{\"name\":\"a\"}", "{\"name\":\"a\"}"), "spec.volumes[0]: Required value: "},
        {WITH("{\"name\":\"a\"}", "{\"name\":\"a\",\"emptyDisk\":{\"capacity\":1},\"hostDisk\":{"
                                  "\"path\":\"/x\",\"type\":"
                                  "\"Disk\"}}"),
         "spec.volumes[0]: Invalid value: may only be of one kind"},
        {WITH("{\"name\":\"a\",\"io\":\"native\",\"cache\":\"none\"}", PVC("a")), NULL},
        {WITH("{\"name\":\"a\",\"io\":\"native\",\"cache\":\"writeback\"}", PVC("a")),
         "spec.domain.devices.disks[0].io: Invalid value: \"native\": needs cache none"},
        {DOMAIN("\"cpu\":{\"sockets\":16,\"cores\":16}"),
         "spec.domain.cpu: Invalid value: 256: a guest has at most 255 CPUs"},
        {DOMAIN("\"cpu\":{\"sockets\":9223372036854775807,\"cores\":9223372036854775807}"),
         "spec.domain.cpu: Invalid value: "},
        {DOMAIN("\"memory\":{\"guest\":\"1023Ki\"}"), "spec.domain.memory.guest: Invalid value"},
        {DOMAIN("\"memory\":{\"guest\":\"1Mi\"}"), NULL},
        {WITH("{\"name\":\"a\"}", "{\"name\":\"a\",\"cloudInitNoCloud\":{}}"),
         "spec.volumes[0].cloudInitNoCloud: Required value: "},
        {WITH("{\"name\":\"a\"}", "{\"name\":\"a\",\"cloudInitNoCloud\":{\"userData\":\"x\","
                                  "\"secretRef\":{\"name\":\"s\"}}}"),
         "spec.volumes[0].cloudInitNoCloud: Invalid value: may have one of userData"},
        {WITH("{\"name\":\"a\"}", "{\"name\":\"a\",\"cloudInitNoCloud\":{\"userData\":\"x\","
                                  "\"networkData\":\"y\"}}"),
         NULL},
        {WITH_NICS("{\"name\":\"n\",\"bridge\":{}}", ON("n")), NULL},
        {WITH_NICS("{\"name\":\"n\",\"bridge\":{}}", ""),
         "spec.domain.devices.interfaces[0].name: Invalid value: \"n\": there is no network"},
        {WITH_NICS("", ON("n")), "spec.networks[0].name: Invalid value: \"n\": no interface"},
        {WITH_NICS("{\"name\":\"n\"}", ON("n")),
         "spec.domain.devices.interfaces[0]: Required value: bridge or sriov"},
        {WITH_NICS("{\"name\":\"n\",\"bridge\":{}}", "{\"name\":\"n\"}"),
         "spec.networks[0]: Required value: multus"},
    };

    (void)state;
    check_rows(VMI_FIELDS_OF_VMI, rows, COUNT_OF(rows));
}

/* ---- what was there before ---------------------------------------------------------------------
 */

static void changes(void **state)
{
#define TPM DEVICES("\"tpm\":{}")
    static const struct {
        const char *before, *after, *found;
    } rows[] = {
        {TPM, TPM, NULL},
        {TPM, DOMAIN("\"devices\":{\"tpm\":{}},\"cpu\":{\"cores\":2}"), NULL},
        {TPM, DOMAIN("\"devices\":{\"tpm\":{},\"rng\":{}}"), FORBIDDEN("domain.devices.rng")},
        {TPM, DEVICES("\"tpm\":{\"persistent\":true}"), FORBIDDEN("domain.devices.tpm")},
        {DOMAIN(""), TPM, FORBIDDEN("domain.devices.tpm")},
        /* an item that moves in its list is the same */
        {SHOWN("\"containerDisk\":{\"image\":\"x\"}"),
         WITH("{\"name\":\"b\"},{\"name\":\"a\"}",
              PVC("b") ",{\"name\":\"a\",\"containerDisk\":{\"image\":\"x\"}}"),
         NULL},
        {WITH("{\"name\":\"a\"}", ""), WITH("{\"name\":\"b\"},{\"name\":\"a\"}", PVC("b")), NULL},
        {WITH("{\"name\":\"a\"}", ""), WITH("{\"name\":\"b\"}", ""),
         "spec.domain.devices.disks[0].name: Invalid value: \"b\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *text =
            findings_of(VMI_FIELDS_OF_VMI, rows[i].after, rows[i].before);

        if (rows[i].found ? !ferry_str_starts(text, rows[i].found) : *text != '\0') {
            fail_msg("%s to %s:\n%s", rows[i].before, rows[i].after, text);
        }
    }
}

/* Several at once are all named; of very many, the first. What peers send costs what it is worth.
 */
static void many(void **state)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct vmi_findings found;

    (void)state;
    ferry_cleanup_free char *two = findings_of(
        VMI_FIELDS_OF_VMI, DEVICES("\"tpm\":{},\"rng\":{},\"blockMultiQueue\":true"), NULL);
    assert_non_null(strstr(two, "devices.tpm"));
    assert_non_null(strstr(two, "devices.rng"));
    assert_non_null(strstr(two, "blockMultiQueue: no effect"));

    ferry_buf_puts(&b, "{\"spec\":{\"domain\":{\"devices\":{\"blockMultiQueue\":true,\"disks\":[");
    for (int i = 0; i < 50000; i++) {
        ferry_buf_printf(&b, "%s{\"name\":\"d%d\",\"serial\":\"x\"}", i ? "," : "", i);
    }
    ferry_buf_puts(&b, "]}}}}");
    api_cleanup_doc yyjson_doc *doc = yyjson_read(b.data, b.len, 0);
    vmi_field_check(VMI_FIELDS_OF_VMI, yyjson_doc_get_root(doc), NULL, &found);
    assert_int_equal(found.n, VMI_FINDINGS_MAX);
    assert_true(found.more);
    assert_true(vmi_findings_refuse(&found));
}

/* The largest machine, and one more of each. */
static void lengths(void **state)
{
    static const struct {
        const char *list, *item, *field;
        int most;
    } rows[] = {
        {"disks", "{\"name\":\"i%d\"}", "spec.domain.devices.disks: Too many", VMI_DISKS_MAX},
        {"hostDevices", "{\"name\":\"i%d\",\"deviceName\":\"a\"}",
         "spec.domain.devices.hostDevices: Too many", VMI_HOST_DEVICES_MAX},
        {"interfaces", "{\"name\":\"i%d\",\"bridge\":{}}",
         "spec.domain.devices.interfaces: Too many: at most 8", 8},
        {"interfaces", "{\"name\":\"i%d\",\"sriov\":{}}",
         "spec.domain.devices.interfaces: Too many", VMI_HOST_DEVICES_MAX},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        int n = rows[i / 2].most + (int)(i % 2);
        ferry_cleanup_buf struct ferry_buf b = {0};

        ferry_buf_printf(&b, "{\"domain\":{\"devices\":{\"%s\":[", rows[i / 2].list);
        for (int k = 0; k < n; k++) {
            ferry_buf_puts(&b, k ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            ferry_buf_printf(&b, rows[i / 2].item, k);
#pragma GCC diagnostic pop
        }
        ferry_buf_puts(&b, "]}}}");
        ferry_cleanup_free char *text = findings_of(VMI_FIELDS_OF_VMI, b.data, NULL);
        if ((strstr(text, rows[i / 2].field) != NULL) != (i % 2 == 1)) {
            fail_msg("%d of %s:\n%s", n, rows[i / 2].list, text);
        }
    }
}

/* ---- defaults ----------------------------------------------------------------------------------
 */

static void defaults(void **state)
{
#define SATA(n) "{\"name\":\"" n "\",\"disk\":{\"bus\":\"sata\"}}"
    static const struct {
        const char *spec, *after; /* NULL = as it was */
    } rows[] = {
        {WITH("", PVC("a")), WITH(SATA("a"), PVC("a"))},
        {WITH("{\"name\":\"b\"}", PVC("a") "," PVC("b")),
         WITH("{\"name\":\"b\"}," SATA("a"), PVC("a") "," PVC("b"))},
        {"{\"domain\":{},\"volumes\":[" PVC("a") "]}",
         "{\"domain\":{\"devices\":{\"disks\":[" SATA("a") "]}},\"volumes\":[" PVC("a") "]}"},
        {WITH("{\"name\":\"a\"}", PVC("a")), NULL},
        {"{\"domain\":{\"devices\":{\"filesystems\":[{\"name\":\"a\"}]}},\"volumes\":[" PVC(
             "a") "]}",
         NULL},
        {"{\"domain\":{},\"volumes\":[{\"name\":\"a\",\"memoryDump\":{}}]}",
         "{\"domain\":{\"devices\":{}},\"volumes\":[{\"name\":\"a\",\"memoryDump\":{}}]}"},
        {"{\"domain\":{}}", NULL},
        {"{\"volumes\":[" PVC("a") "]}", NULL},
        {"{\"domain\":{\"devices\":3},\"volumes\":[" PVC("a") "]}", NULL},
        {"{\"domain\":{\"devices\":{\"disks\":3}},\"volumes\":[" PVC("a") "]}", NULL},
        {"[]", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *text = ferry_asprintf("{\"spec\":%s}", rows[i].spec);
        ferry_cleanup_free char *wanted =
            ferry_asprintf("{\"spec\":%s}", rows[i].after ? rows[i].after : rows[i].spec);
        api_cleanup_doc yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
        api_cleanup_mut_doc yyjson_mut_doc *mut = yyjson_doc_mut_copy(doc, NULL);
        (void)vmi_defaults(mut, yyjson_mut_doc_get_root(mut));
        ferry_cleanup_free char *got = yyjson_mut_write(mut, 0, NULL);

        assert_string_equal(got, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole), cmocka_unit_test(single_fields),
        cmocka_unit_test(machines),       cmocka_unit_test(parts),
        cmocka_unit_test(changes),        cmocka_unit_test(many),
        cmocka_unit_test(lengths),        cmocka_unit_test(defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
