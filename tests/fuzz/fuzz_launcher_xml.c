/* What libvirt says, and with it what a QEMU of a hostile guest made it say; and the launcher's own
 * files after an accident. */
#include "fuzz.h"

#include "launcher/domain/cpu_report.h"
#include "launcher/domain/disks.h"
#include "launcher/domain/hostdevs.h"
#include "launcher/move/preflight.h"
#include "launcher/report/state.h"

static void devices(const char *text)
{
    struct hostdevs h, back;
    struct ferry_error err;

    hostdevs_others(text);
    if (hostdevs_find(text, &h, &err) == 0) {
        ferry_cleanup_free char *json = hostdevs_encode(&h);

        must(hostdevs_decode(json, strlen(json), &back, &err) == 0 && back.n == h.n);
        hostdevs_done(&back);
        hostdevs_done(&h);
    }
    if (hostdevs_decode(text, strlen(text), &back, &err) == 0) {
        hostdevs_done(&back);
    }
}

static void state(const char *text)
{
    struct state_values v, again;
    struct ferry_error err;

    if (state_decode(text, strlen(text), &v, &err) == 0) {
        ferry_cleanup_free char *json = state_encode(&v);

        must(state_decode(json, strlen(json), &again, &err) == 0);
        ferry_cleanup_free char *twice = state_encode(&again);
        must(strcmp(json, twice) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct disk disk = {.name = "data", .dev = "vda", .block_there = true};
    static const struct disks_edit edit = {&disk, 1 << 20};
    ferry_cleanup_free char *text = fuzz_text(data, size);
    ferry_cleanup_free char *model = NULL, *report = NULL, *machines = NULL, *edited = NULL;
    struct ferry_error err;

    devices(text);
    state(text);
    free(preflight_host(text));
    free(preflight_cpu(text));
    cpu_report_host(text, &model, &err);
    cpu_report(text, NULL, "<capabilities/>", &report, &err);
    cpu_report("<domainCapabilities/>", NULL, text, &machines, &err);
    disks_edit_xml(text, "/disks", &edit, 1, &edited, &err);
    return 0;
}
