/* Theory of operation. QEMU is asked through libvirt's monitor, because libvirt's own call takes
 * 512 pages a GiB, of a small guest next to none. One measurement at a time: a plan waits for what
 * a reader of metrics began, a reader of metrics never waits. */
#include "launcher/move/dirty_rate.h"

#include <libvirt/libvirt-qemu.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "launcher/libvirt/virt.h"

enum { WAIT_MS = 8000, STEP_MS = 50, SAMPLE_PAGES = 16384, LATEST_S = 1 };
#define MIB (INT64_C(1) << 20)

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static bool no_ring; /* guarded by it */

/* `*ret` (optional) gets the answer's document, whose root has the member "return". */
static int ask_qemu(virDomainPtr d, const char *command, yyjson_doc **ret, struct ferry_error *err)
{
    char *text = NULL;
    int rc = 0;

    if (virDomainQemuMonitorCommand(d, command, &text, 0) < 0) {
        return virt_fail(err, "sampling the guest's dirty rate");
    }
    yyjson_doc *doc = NULL;
    if (api_json_parse(text, strlen(text), &doc, err) < 0) {
        rc = ferry_wrap(err, "QEMU's answer");
    } else if (!yyjson_obj_get(yyjson_doc_get_root(doc), "return")) {
        rc = ferry_fail(err, FERRY_CONFLICT, "QEMU does not sample the guest's dirty rate: %s",
                        api_json_str(yyjson_doc_get_root(doc), "/error/desc"));
    }
    free(text);
    if (rc == 0 && ret) {
        *ret = doc;
    } else {
        yyjson_doc_free(doc);
    }
    return rc;
}

/* The sampled rate once it is there, else negative; `*ret_busy`: it is being measured. */
static int read_rate(virDomainPtr d, int64_t *ret, bool *ret_busy, struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = ask_qemu(d, "{\"execute\":\"query-dirty-rate\"}", &doc, err);

    *ret = -1;
    *ret_busy = false;
    if (rc == 0) {
        const yyjson_val *root = yyjson_doc_get_root(doc);

        const char *status = api_json_str(root, "/return/status");

        *ret_busy = ferry_streq(status, "measuring");
        if (ferry_streq(status, "measured")) {
            *ret = api_json_int(root, "/return/dirty-rate", 0) * MIB;
        }
        yyjson_doc_free(doc);
    }
    return rc;
}

/* By KVM's dirty ring, which counts, where the guest has one; else by a sample of its pages. */
static int begin(virDomainPtr d, int seconds, struct ferry_error *err)
{
    ferry_cleanup_free char *by_ring =
        ferry_asprintf("{\"execute\":\"calc-dirty-rate\",\"arguments\":{\"calc-time\":%d,"
                       "\"mode\":\"dirty-ring\"}}",
                       seconds);

    if (!no_ring && ask_qemu(d, by_ring, NULL, NULL) == 0) {
        return 0;
    }
    no_ring = true; /* this launcher's guest has none, and will not get one */
    ferry_cleanup_free char *command =
        ferry_asprintf("{\"execute\":\"calc-dirty-rate\",\"arguments\":{\"calc-time\":%d,"
                       "\"sample-pages\":%d}}",
                       seconds, SAMPLE_PAGES);

    return ask_qemu(d, command, NULL, err);
}

/* Waits until nothing is being measured; what was measured last is in `*ret`. Where a measurement
 * was `begun`, QEMU says for a moment that there is none yet: its thread has not started. */
static int wait_idle(virDomainPtr d, int seconds, bool begun, int64_t *ret, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + (seconds * 1000 + WAIT_MS) * FERRY_NS_PER_MS;
    bool busy;
    int rc;

    while ((rc = read_rate(d, ret, &busy, err)) == 0 && (busy || (begun && *ret < 0))) {
        if (ferry_now_ns() >= deadline) {
            return ferry_fail(err, FERRY_RETRY, "QEMU does not come to an end with sampling");
        }
        ferry_sleep_ms(STEP_MS);
    }
    return rc;
}

static int sample(virDomainPtr d, int seconds, int64_t *ret, struct ferry_error *err)
{
    int rc = wait_idle(d, LATEST_S, false, ret, err);

    if (rc < 0 || (rc = begin(d, seconds, err)) < 0 ||
        (rc = wait_idle(d, seconds, true, ret, err)) < 0) {
        return rc;
    }
    *ret *= seconds;
    return 0;
}

int dirty_rate_sample(virDomainPtr d, int seconds, int64_t *ret, struct ferry_error *err)
{
    pthread_mutex_lock(&one_at_a_time);
    int rc = sample(d, seconds, ret, err);
    pthread_mutex_unlock(&one_at_a_time);
    return rc;
}

int64_t dirty_rate_latest(virDomainPtr d)
{
    int64_t rate = -1;
    bool busy;

    if (pthread_mutex_trylock(&one_at_a_time) != 0) {
        return -1;
    }
    if (read_rate(d, &rate, &busy, NULL) == 0 && !busy) {
        begin(d, LATEST_S, NULL);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return rate;
}
