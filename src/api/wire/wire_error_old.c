#include "api/wire/wire_error_old.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"

enum wire_error wire_error_old_answer(int status, const char *message)
{
    static const struct {
        int status;
        const char *words;
        enum wire_error reason;
    } table[] = {
        {400, "in-flight migration detected", WIRE_ERROR_MOVE_IN_FLIGHT}, /* KubeVirt's, too */
        {403, "exceeded quota", WIRE_ERROR_QUOTA},                        /* Kubernetes 1.36 */
    };

    for (size_t i = 0; message && i < FERRY_COUNT(table); i++) {
        if (status == table[i].status && strstr(message, table[i].words)) {
            return table[i].reason;
        }
    }
    return WIRE_ERROR_NONE;
}

/* ---- schedulers --------------------------------------------------------------------------------
 */

enum clause { NOTHING, SHORT, NEVER, VOLUME, CLAUSE_COUNT };

/* The first that occurs in a clause says what it is about (kube-scheduler, tried: 1.36). A clause
 * in other words counts as a shortage, which is waited for. */
static enum clause judge(const char *clause, size_t len)
{
    static const struct {
        const char *words;
        enum clause about;
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
    ferry_cleanup_free char *text = ferry_strndup(clause, len);

    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (strstr(text, table[i].words)) {
            return table[i].about;
        }
    }
    return SHORT;
}

/* "0/3 nodes are available: 2 Insufficient memory, 1 node(s) ... . preemption: ..." */
enum wire_unschedulable wire_error_old_unschedulable(const char *message)
{
    const char *colon = strchr(message, ':');
    const char *at = colon ? colon + 1 : message;
    const char *end = strstr(at, ". preemption:"); /* what was tried besides */
    size_t left = end ? (size_t)(end - at) : strlen(at);
    size_t n[CLAUSE_COUNT] = {0};

    while (left > 0) {
        const char *comma = memchr(at, ',', left);
        size_t len = comma ? (size_t)(comma - at) : left;

        n[judge(at, len)]++;
        at += len + (comma ? 1 : 0);
        left -= len + (comma ? 1 : 0);
    }
    if (n[SHORT] > 0) {
        return WIRE_UNSCHEDULABLE_FOR_NOW;
    }
    return n[VOLUME] > 0  ? WIRE_UNSCHEDULABLE_VOLUME
           : n[NEVER] > 0 ? WIRE_UNSCHEDULABLE_NEVER
                          : WIRE_UNSCHEDULABLE_FOR_NOW;
}

/* ---- notes on migrations -----------------------------------------------------------------------
 */

const char *wire_error_old_lack(const char *note, enum wire_lack *ret)
{
    static const char *const words[] = {
        [WIRE_LACK_NOTHING] = NULL,
        [WIRE_LACK_CPU] = "no other node has its CPU",
        [WIRE_LACK_MACHINE] = "no other node has its machine type",
    };

    for (int i = WIRE_LACK_NOTHING + 1; note && i < WIRE_LACK_COUNT; i++) {
        const char *at = strstr(note, words[i]);

        if (at) {
            *ret = (enum wire_lack)i;
            return at;
        }
    }
    *ret = WIRE_LACK_NOTHING;
    return NULL;
}
