#include "handler/serve/node_metrics.h"

#include "api/json.h"
#include "base/count.h"
#include "handler/move/node_role.h"

void node_metrics_begin(struct ferry_buf *out, const struct node_metrics *m)
{
    ferry_buf_printf(out,
                     "# HELP ferry_handler_info Version of the node agent.\n"
                     "# TYPE ferry_handler_info gauge\n"
                     "ferry_handler_info{node=\"%s\",version=\"%s\"} 1\n"
                     "# HELP ferry_handler_vmis VMIs that this node has a part in.\n"
                     "# TYPE ferry_handler_vmis gauge\n",
                     m->node, m->version);
    for (int role = NODE_ROLE_OWNER; role <= NODE_ROLE_TARGET; role++) {
        ferry_buf_printf(out, "ferry_handler_vmis{node=\"%s\",role=\"%s\"} %zu\n", m->node,
                         node_role_name((enum node_role)role), m->roles[role]);
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
        {"data_bytes_total", "totalBytes", "counter", "Guest memory and disks to be moved."},
        {"data_remaining_bytes", "remainingBytes", "gauge", "What is still to be sent."},
        {"data_processed_bytes", "processedBytes", "gauge", "What was sent."},
        {"dirty_memory_rate_bytes", "dirtyBytesPerS", "gauge",
         "Memory written by the guest per second."},
        {"memory_transfer_rate_bytes", "bytesPerS", "gauge", "Bytes sent per second."},
    };

    for (size_t row = 0; row < FERRY_COUNT(rows); row++) {
        ferry_buf_printf(
            out, "# HELP kubevirt_vmi_migration_%s %s\n# TYPE kubevirt_vmi_migration_%s %s\n",
            rows[row].name, rows[row].help, rows[row].name, rows[row].type);
        for (size_t i = 0; i < n; i++) {
            const struct launcher_migration *m = running(&vms[i]);
            int64_t value;

            if (m && api_json_get_int(yyjson_obj_get((yyjson_val *)m->sample, rows[row].field),
                                      &value)) {
                ferry_buf_printf(out,
                                 "kubevirt_vmi_migration_%s{namespace=\"%s\",name=\"%s\",node=\"%s"
                                 "\"} %lld\n",
                                 rows[row].name, vms[i].ns, vms[i].name, node, (long long)value);
            }
        }
    }
}
