#include "api/wire/wire_phase.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"

static const char *const texts[] = {
    [PHASE_NONE] = "",
    [PHASE_PENDING] = "Pending",
    [PHASE_SCHEDULING] = "Scheduling",
    [PHASE_SCHEDULED] = "Scheduled",
    [PHASE_PREPARING_TARGET] = "PreparingTarget",
    [PHASE_TARGET_READY] = "TargetReady",
    [PHASE_RUNNING] = "Running",
    [PHASE_SUCCEEDED] = "Succeeded",
    [PHASE_FAILED] = "Failed",
    [PHASE_UNKNOWN] = "Unknown",
};
_Static_assert(FERRY_COUNT(texts) == PHASE_COUNT, "one text per phase");

const char *wire_phase_text(enum wire_phase phase)
{
    return texts[phase];
}

enum wire_phase wire_phase_of(const char *text)
{
    for (int p = PHASE_NONE; p < PHASE_UNKNOWN; p++) {
        if (strcmp(texts[p], text ? text : "") == 0) {
            return (enum wire_phase)p;
        }
    }
    return PHASE_UNKNOWN;
}

bool wire_phase_is(const char *text, enum wire_phase phase)
{
    return strcmp(texts[phase], text ? text : "") == 0;
}

const char *wire_phase_shown(const char *text)
{
    return text && *text ? text : texts[PHASE_PENDING];
}

bool wire_phase_is_over(const char *text)
{
    return wire_phase_is(text, PHASE_SUCCEEDED) || wire_phase_is(text, PHASE_FAILED);
}

bool wire_vmi_is_over(const struct api_vmi *vmi)
{
    return wire_phase_is_over(vmi->phase);
}

bool wire_migration_is_over(const struct api_migration *m)
{
    return wire_phase_is_over(m->phase);
}

bool wire_pod_is_over(const struct api_pod *pod)
{
    return wire_phase_is_over(pod->phase);
}

const char *wire_pod_vmi(const struct api_pod *pod)
{
    for (size_t i = 0; i < pod->meta.n_owners; i++) {
        const struct api_owner *o = &pod->meta.owners[i];

        if (o->controller && ferry_streq(o->kind, "VirtualMachineInstance")) {
            return o->uid;
        }
    }
    return NULL;
}
