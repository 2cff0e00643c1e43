#include "control/migration/pending_reason.h"

#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/str.h"

enum kind { NOTHING, SHORT, NEVER, VOLUME };

/* The first that occurs in a clause says what it is about. kube-scheduler (tried: 1.36) has no code
 * for it: the condition's reason is Unschedulable whatever it is; schedule_pick.c uses its words. A
 * clause in other words counts as a shortage, which is waited for. */
static const struct {
    const char *words;
    enum kind kind;
} table[] = {
    /* The rule against the VM's own node holds for that node always: it says nothing. */
    {"didn't match pod anti-affinity rules", NOTHING},
    {"PersistentVolumeClaim", VOLUME},
    {"persistentvolumeclaim", VOLUME},
    {"persistent volume", VOLUME},
    {"volume", VOLUME},
    {"node affinity/selector", NEVER},
    {"node selector", NEVER},
    {"node affinity", NEVER},
};

static enum kind judge(const char *clause, size_t len)
{
    ferry_cleanup_free char *text = ferry_strndup(clause, len);

    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (strstr(text, table[i].words)) {
            return table[i].kind;
        }
    }
    return SHORT;
}

enum wire_reason pending_reason(const char *message)
{
    const char *colon = strchr(message, ':');
    const char *at = colon ? colon + 1 : message;
    const char *end = strstr(at, ". preemption:"); /* kube-scheduler: what it tried besides */
    size_t left = end ? (size_t)(end - at) : strlen(at);
    size_t n[VOLUME + 1] = {0};

    while (left > 0) {
        const char *comma = memchr(at, ',', left);
        size_t len = comma ? (size_t)(comma - at) : left;

        n[judge(at, len)]++;
        at += len + (comma ? 1 : 0);
        left -= len + (comma ? 1 : 0);
    }
    if (n[SHORT] == 0 && n[VOLUME] > 0) {
        return REASON_VOLUME_NOT_READY;
    }
    return n[SHORT] == 0 && n[NEVER] > 0 ? REASON_NEVER_SCHEDULABLE : REASON_UNSCHEDULABLE;
}

static bool is_of_cpu(const struct api_pair *wanted)
{
    return ferry_str_starts(wanted->key, LABEL_CPU_MIGRATION) ||
           ferry_str_starts(wanted->key, LABEL_CPU_FEATURE);
}

static bool has_cpu(const struct api_pod *pod, const struct api_map *labels)
{
    for (size_t i = 0; i < pod->node_selector.n; i++) {
        const struct api_pair *wanted = &pod->node_selector.items[i];

        if (is_of_cpu(wanted) && !ferry_streq(api_map_get(labels, wanted->key), wanted->value)) {
            return false;
        }
    }
    return true;
}

bool pending_lacks_cpu(const struct api_pod *pod, const struct api_object *const *nodes, size_t n,
                       const char *but)
{
    bool asks = false;

    for (size_t i = 0; i < pod->node_selector.n; i++) {
        asks = asks || is_of_cpu(&pod->node_selector.items[i]);
    }
    for (size_t i = 0; asks && i < n; i++) {
        if (!ferry_streq(nodes[i]->meta->name, but) && has_cpu(pod, &nodes[i]->meta->labels)) {
            return false;
        }
    }
    return asks;
}
