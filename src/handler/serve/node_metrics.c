#include "handler/serve/node_metrics.h"

#include <stddef.h>
#include <string.h>

#include "base/count.h"
#include "base/prom.h"
#include "handler/move/node_role.h"

#define MOVE "kubevirt_vmi_migration_"

void node_metrics_begin(struct ferry_buf *out, const struct node_metrics *m)
{
    ferry_prom_head(out, "ferry_handler_info", "gauge", "Version of the node agent.");
    ferry_prom_sample(out, "ferry_handler_info",
                      FERRY_LABELS({"node", m->node}, {"version", m->version}), 1);
    ferry_prom_head(out, "ferry_handler_vmis", "gauge", "VMIs that this node has a part in.");
    for (int role = NODE_ROLE_OWNER; role <= NODE_ROLE_TARGET; role++) {
        ferry_prom_sample(
            out, "ferry_handler_vmis",
            FERRY_LABELS({"node", m->node}, {"role", node_role_name((enum node_role)role)}),
            (double)m->roles[role]);
    }
}

static const struct launcher_migration *running(const struct node_metrics_vm *vm)
{
    const struct launcher_status *s = vm->status;

    return s->migration.role == LAUNCHER_ROLE_SOURCE && s->migration.phase == LAUNCHER_RUNNING &&
                   s->migration.sample.present
               ? &s->migration
               : NULL;
}

void node_metrics_moves(struct ferry_buf *out, const char *node, const struct node_metrics_vm *vms,
                        size_t n)
{
    static const struct {
        const char *name, *type, *help;
        size_t figure; /* where it is in a sample */
    } rows[] = {
        {MOVE "data_bytes_total", "counter", "Guest memory and disks to be moved.",
         offsetof(struct launcher_sample, total_bytes)},
        {MOVE "data_remaining_bytes", "gauge", "What is still to be sent.",
         offsetof(struct launcher_sample, remaining_bytes)},
        {MOVE "data_processed_bytes", "gauge", "What was sent.",
         offsetof(struct launcher_sample, processed_bytes)},
        {MOVE "dirty_memory_rate_bytes", "gauge", "Memory written by the guest per second.",
         offsetof(struct launcher_sample, dirty_bytes_per_s)},
        {MOVE "memory_transfer_rate_bytes", "gauge", "Bytes sent per second.",
         offsetof(struct launcher_sample, bytes_per_s)},
    };

    for (size_t row = 0; row < FERRY_COUNT(rows); row++) {
        ferry_prom_head(out, rows[row].name, rows[row].type, rows[row].help);
        for (size_t i = 0; i < n; i++) {
            const struct launcher_migration *m = running(&vms[i]);
            int64_t value = -1;

            if (m) {
                memcpy(&value, (const char *)&m->sample + rows[row].figure, sizeof(value));
            }
            if (value >= 0) {
                ferry_prom_sample(
                    out, rows[row].name,
                    FERRY_LABELS({"namespace", vms[i].ns}, {"name", vms[i].name}, {"node", node}),
                    (double)value);
            }
        }
    }
}
