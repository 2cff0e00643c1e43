#include "handler/serve/node_metrics.h"

#include "api/json.h"
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

    return s->has_migration && s->migration.role == LAUNCHER_ROLE_SOURCE &&
                   s->migration.phase == LAUNCHER_RUNNING && s->migration.sample
               ? &s->migration
               : NULL;
}

void node_metrics_moves(struct ferry_buf *out, const char *node, const struct node_metrics_vm *vms,
                        size_t n)
{
    static const struct {
        const char *name, *field, *type, *help;
    } rows[] = {
        {MOVE "data_bytes_total", "totalBytes", "counter", "Guest memory and disks to be moved."},
        {MOVE "data_remaining_bytes", "remainingBytes", "gauge", "What is still to be sent."},
        {MOVE "data_processed_bytes", "processedBytes", "gauge", "What was sent."},
        {MOVE "dirty_memory_rate_bytes", "dirtyBytesPerS", "gauge",
         "Memory written by the guest per second."},
        {MOVE "memory_transfer_rate_bytes", "bytesPerS", "gauge", "Bytes sent per second."},
    };

    for (size_t row = 0; row < FERRY_COUNT(rows); row++) {
        ferry_prom_head(out, rows[row].name, rows[row].type, rows[row].help);
        for (size_t i = 0; i < n; i++) {
            const struct launcher_migration *m = running(&vms[i]);
            int64_t value;

            if (m && api_json_get_int(yyjson_obj_get((yyjson_val *)m->sample, rows[row].field),
                                      &value)) {
                ferry_prom_sample(
                    out, rows[row].name,
                    FERRY_LABELS({"namespace", vms[i].ns}, {"name", vms[i].name}, {"node", node}),
                    (double)value);
            }
        }
    }
}
