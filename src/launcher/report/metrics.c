#include "launcher/report/metrics.h"

#include "base/count.h"
#include "base/prom.h"

#define END_TIME "kubevirt_vmi_migration_end_time_seconds"

static void line(struct ferry_buf *b, const struct launcher_metrics *in, const char *name,
                 const char *help, double value)
{
    ferry_prom_head(b, name, "gauge", help);
    ferry_prom_sample(b, name, FERRY_LABELS({"namespace", in->namespace_}, {"name", in->name}),
                      value);
}

static void write_job(const struct launcher_metrics *in, struct ferry_buf *b)
{
    const struct launcher_sample *s = in->sample;
    const struct {
        const char *name, *help;
        int64_t value;
    } rows[] = {
        {"kubevirt_vmi_migration_data_bytes_total", "Guest data to be moved, memory and disks.",
         s->total_bytes},
        {"kubevirt_vmi_migration_data_remaining_bytes", "Guest data that still has to be sent.",
         s->remaining_bytes},
        {"kubevirt_vmi_migration_data_processed_bytes", "Guest data sent so far.",
         s->processed_bytes},
        {"kubevirt_vmi_migration_dirty_memory_rate_bytes",
         "Memory dirtied by the guest per second.", s->dirty_bytes_per_s},
        {"kubevirt_vmi_migration_memory_transfer_rate_bytes", "Memory sent per second.",
         s->bytes_per_s},
        {"ferry_migration_volumes_bytes", "Size of the volumes that are copied.",
         s->disk_total_bytes},
        {"ferry_migration_volumes_remaining_bytes", "Data of volumes that still has to be copied.",
         s->disk_remaining_bytes},
        {"ferry_migration_iteration", "Round of memory copying.", s->iteration},
        {"ferry_migration_throttle_percent", "Time that auto-converge takes from the guest.",
         s->throttle_percent},
        {"ferry_migration_postcopy_requests", "Pages that the guest waited for on the target.",
         s->postcopy_requests},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        line(b, in, rows[i].name, rows[i].help, (double)rows[i].value);
    }
    if (s->downtime_ms >= 0) {
        line(b, in, "ferry_migration_expected_downtime_seconds",
             "What the switch-over would take now, as QEMU expects.",
             (double)s->downtime_ms / 1000);
    }
}

static double mode_figure(enum wire_mode mode)
{
    return mode == MODE_POST_COPY ? 2 : mode == MODE_PAUSED ? 1 : 0;
}

static void write_result(const struct launcher_metrics *in, struct ferry_buf *b)
{
    const struct state_migration *m = in->migration;

    line(b, in, "kubevirt_vmi_migration_start_time_seconds", "When the last migration began.",
         (double)m->start_ms / 1000);
    line(b, in, "ferry_migration_mode", "0: pre-copy, 1: paused, 2: post-copy.",
         mode_figure(m->mode));
    line(b, in, "ferry_migration_postcopy", "The migration switched to post-copy.",
         m->mode == MODE_POST_COPY);
    line(b, in, "ferry_migration_paused", "The guest was paused so that the migration ends.",
         m->mode == MODE_PAUSED);
    line(b, in, "ferry_migration_recoveries", "How often a broken post-copy was recovered.",
         (double)m->recoveries);
    if (!state_migration_over(m)) {
        return;
    }
    ferry_prom_head(b, END_TIME, "gauge", "When the last migration ended.");
    ferry_prom_sample(b, END_TIME,
                      FERRY_LABELS({"namespace", in->namespace_}, {"name", in->name},
                                   {"status", wire_launcher_phase_text(m->phase)}),
                      (double)m->end_ms / 1000);
    if (m->downtime_ms >= 0) {
        line(b, in, "ferry_migration_downtime_seconds",
             "How long the guest stood still at the switch-over.", (double)m->downtime_ms / 1000);
    }
}

void launcher_metrics_write(const struct launcher_metrics *in, struct ferry_buf *ret)
{
    const struct state_migration *m = in->migration;

    if (state_migration_over(m) && in->dirty_bytes_per_s >= 0) {
        line(ret, in, "kubevirt_vmi_dirty_rate_bytes_per_second",
             "Memory dirtied by the guest per second, sampled; not during a migration.",
             (double)in->dirty_bytes_per_s);
    }
    if (m->role == LAUNCHER_ROLE_NONE) {
        return;
    }
    write_result(in, ret);
    if (m->role == LAUNCHER_ROLE_SOURCE && !state_migration_over(m) && in->sample->present) {
        write_job(in, ret);
    }
}
