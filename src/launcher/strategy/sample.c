#include "launcher/strategy/sample.h"

/* Negative: absent. */
static int64_t number(virTypedParameterPtr params, int n, const char *field)
{
    virTypedParameterPtr p = virTypedParamsGet(params, n, field);

    if (!p) {
        return -1;
    }
    switch (p->type) {
    case VIR_TYPED_PARAM_INT:
        return p->value.i;
    case VIR_TYPED_PARAM_UINT:
        return p->value.ui;
    case VIR_TYPED_PARAM_LLONG:
        return p->value.l;
    case VIR_TYPED_PARAM_ULLONG:
        return p->value.ul > INT64_MAX ? INT64_MAX : (int64_t)p->value.ul;
    default:
        return -1;
    }
}

static int64_t or_zero(int64_t v)
{
    return v < 0 ? 0 : v;
}

void sample_decode(int job_type, virTypedParameterPtr params, int n_params,
                   struct launcher_sample *ret)
{
    int64_t page = number(params, n_params, VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE);
    int64_t dirty_pages = number(params, n_params, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE);
    int64_t operation = number(params, n_params, VIR_DOMAIN_JOB_OPERATION);
    int64_t total = number(params, n_params, VIR_DOMAIN_JOB_DATA_TOTAL);

    *ret = (struct launcher_sample){
        .present = total >= 0,
        .active = (job_type == VIR_DOMAIN_JOB_UNBOUNDED || job_type == VIR_DOMAIN_JOB_BOUNDED) &&
                  (operation < 0 || operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT),
        .elapsed_ms = or_zero(number(params, n_params, VIR_DOMAIN_JOB_TIME_ELAPSED)),
        .total_bytes = or_zero(total),
        .processed_bytes = or_zero(number(params, n_params, VIR_DOMAIN_JOB_DATA_PROCESSED)),
        .remaining_bytes = or_zero(number(params, n_params, VIR_DOMAIN_JOB_DATA_REMAINING)),
        .disk_total_bytes = or_zero(number(params, n_params, VIR_DOMAIN_JOB_DISK_TOTAL)),
        .disk_remaining_bytes = or_zero(number(params, n_params, VIR_DOMAIN_JOB_DISK_REMAINING)),
        .bytes_per_s = or_zero(number(params, n_params, VIR_DOMAIN_JOB_MEMORY_BPS)),
        /* libvirt counts pages; without the page size it is x86's */
        .dirty_bytes_per_s = or_zero(dirty_pages) * (page > 0 ? page : 4096),
        .iteration = or_zero(number(params, n_params, VIR_DOMAIN_JOB_MEMORY_ITERATION)),
        .postcopy_requests = or_zero(number(params, n_params, VIR_DOMAIN_JOB_MEMORY_POSTCOPY_REQS)),
        .downtime_ms = number(params, n_params, VIR_DOMAIN_JOB_DOWNTIME),
        .throttle_percent =
            or_zero(number(params, n_params, VIR_DOMAIN_JOB_AUTO_CONVERGE_THROTTLE)),
    };
}
