/* Annotations and phrases from anybody: what is read is within its bounds, and written again it
 * reads the same. */
#include "fuzz.h"

#include "api/wire/wire_addresses.h"
#include "api/wire/wire_clock.h"
#include "api/wire/wire_disks.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_networks.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "api/wire/wire_result.h"
#include "api/wire/wire_trouble.h"

static bool is_count(int64_t n)
{
    return n >= 0 && n <= WIRE_BYTES_MAX;
}

static void progress(const char *text)
{
    struct wire_progress p, again;

    if (!wire_progress_read(text, &p)) {
        return;
    }
    ferry_cleanup_free char *written = wire_progress_text(&p);
    must(is_count(p.total_bytes) && is_count(p.remaining_bytes) && is_count(p.elapsed_ms));
    must(p.downtime_ms >= -1 && p.throttle_percent >= 0 && p.throttle_percent <= 100);
    must(wire_progress_read(written, &again));
    ferry_cleanup_free char *second = wire_progress_text(&again);
    must(strcmp(written, second) == 0);
    must(wire_progress_of(text, p.uid, &again) == (p.uid[0] != '\0'));
}

static void queue(const char *text)
{
    wire_cleanup_queue struct wire_queue q = {0}, again = {0};

    if (!wire_queue_read(text, &q)) {
        return;
    }
    ferry_cleanup_free char *written = wire_queue_text(&q);
    must(q.reason < REASON_COUNT && q.position >= 0 && q.check_s >= 0);
    must(wire_queue_read(written, &again) && again.reason == q.reason);
    must(again.position == q.position && again.check_s == q.check_s);
    must(again.lack == q.lack && ferry_streq(again.lack_text, q.lack_text));
    must(ferry_str_empty(q.message) || ferry_streq(q.message, again.message));
}

static void result_and_clock(const char *text)
{
    struct wire_result r, r2;
    struct wire_clock c, c2;

    if (wire_result_read(text, &r)) {
        ferry_cleanup_free char *written = wire_result_text(&r);

        must(wire_result_read(written, &r2) && memcmp(&r, &r2, sizeof(r)) == 0);
    }
    if (wire_clock_read(text, &c)) {
        ferry_cleanup_free char *written = wire_clock_text(&c);

        must(c.n <= WIRE_CLOCK_STEPS && wire_clock_read(written, &c2));
        must(c2.n == c.n && memcmp(c.steps, c2.steps, c.n * sizeof(c.steps[0])) == 0);
    }
}

static void trouble_and_disks(const char *text)
{
    struct wire_trouble t, t2;
    struct wire_disks d, d2;

    if (wire_trouble_of(text, "m", &t)) {
        ferry_cleanup_free char *written = wire_trouble_text("m", &t);

        must(wire_reason_is_trouble(t.reason) && written && wire_trouble_of(written, "m", &t2));
        must(t2.reason == t.reason && strcmp(t2.message, t.message) == 0);
    }
    if (wire_disks_of(text, "m", &d)) {
        ferry_cleanup_free char *written = wire_disks_text("m", &d);

        must(d.n <= WIRE_DISKS && wire_disks_of(written, "m", &d2) && d2.n == d.n);
        for (size_t i = 0; i < d.n; i++) {
            must(d.list[i].name[0] && is_count(d.list[i].bytes));
            must(strcmp(d.list[i].name, d2.list[i].name) == 0);
        }
    }
}

static void networks(const char *text)
{
    wire_cleanup_addresses struct wire_addresses a = {0}, a2 = {0};
    struct wire_networks n;

    if (wire_addresses_read(text, &a)) {
        ferry_cleanup_free char *written = wire_addresses_text(&a);

        must(a.n <= API_GUEST_NICS && wire_addresses_read(written, &a2) && a2.n == a.n);
    }
    if (wire_networks_read(text, &n, NULL) == 0) {
        must(n.n <= API_GUEST_NICS);
        for (size_t i = 0; i < n.n; i++) {
            must(n.list[i].tap < API_GUEST_NICS && n.list[i].ns[0] && n.list[i].name[0]);
        }
    }
}

static void phrases(const char *text)
{
    const struct api_pair pair = {ANNOTATION_RECOVER, text};
    const struct api_vmi vmi = {.meta.annotations = {&pair, 1}, .migration = {.uid = "m"}};
    int64_t generation = wire_move_generation(&vmi, ANNOTATION_RECOVER);
    enum wire_reason failed = wire_reason_of_failure(text);

    must(generation >= 0 && generation <= INT32_MAX);
    must(!generation || strncmp(text, "m/", 2) == 0);
    must(!failed || wire_reason_is_failure(failed));
    must(wire_phase_of(text) < PHASE_COUNT && wire_reason_of(text) < REASON_COUNT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ferry_cleanup_free char *text = fuzz_text(data, size);

    progress(text);
    queue(text);
    result_and_clock(text);
    trouble_and_disks(text);
    networks(text);
    phrases(text);
    return 0;
}
