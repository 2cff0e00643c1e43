/* One look at a running migration. Decoding libvirt's job statistics is pure. */
#pragma once

#include <libvirt/libvirt.h>
#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct sample {
    bool present; /* memory figures are there; libvirt has none before the first byte */
    bool active;  /* an unfinished outgoing migration */
    int64_t elapsed_ms;
    int64_t total_bytes, processed_bytes, remaining_bytes; /* memory and disks */
    int64_t disk_total_bytes, disk_remaining_bytes;        /* of these, disks */
    int64_t bytes_per_s, dirty_bytes_per_s;
    int64_t iteration, postcopy_requests;
    int64_t downtime_ms; /* expected while active, real afterwards; -1 when not known */
    int64_t throttle_percent;
};

/* `job_type` is a virDomainJobType, the parameters those of virDomainGetJobStats() or of the job
 * completed event. */
void sample_decode(int job_type, virTypedParameterPtr params, int n_params, struct sample *ret);

/* The object of docs/contracts/launcher.md, "Status". */
yyjson_mut_val *sample_json(yyjson_mut_doc *doc, const struct sample *s);
