#include "relay/common/metrics.h"

#include "base/count.h"
#include "relay/common/spec.h"

static void settle(uint64_t *now, uint64_t *shown)
{
    *now = *now > *shown ? *now : *shown;
    *shown = *now;
}

void relay_figures_settle(struct relay_figures *now, struct relay_figures *shown)
{
    settle(&now->streams, &shown->streams);
    settle(&now->bytes_in, &shown->bytes_in);
    settle(&now->bytes_out, &shown->bytes_out);
    settle(&now->replayed, &shown->replayed);
    settle(&now->resumes, &shown->resumes);
}

static void head(struct ferry_buf *out, const char *name, const char *type, const char *help)
{
    ferry_buf_printf(out, "# HELP ferry_relay_%s %s\n# TYPE ferry_relay_%s %s\n", name, help, name,
                     type);
}

void relay_metrics_render(const struct relay_figures figures[2], uint64_t rate_limit, bool draining,
                          struct ferry_buf *out)
{
    static const struct {
        const char *name, *type, *help;
        size_t at;
    } rows[] = {
#define ROW(field) offsetof(struct relay_figures, field)
        {"moves", "gauge", "Moves that this relay serves.", ROW(moves)},
        {"streams_open", "gauge", "Streams that carry bytes.", ROW(open)},
        {"streams_away", "gauge", "Streams whose connection is gone and whose ends are held.",
         ROW(away)},
        {"received_bytes_per_second", "gauge", "Bytes delivered to unix sockets, last second.",
         ROW(rate_in)},
        {"sent_bytes_per_second", "gauge", "Bytes that peers have delivered, last second.",
         ROW(rate_out)},
        {"streams_total", "counter", "Connections accepted.", ROW(streams)},
        {"received_bytes_total", "counter", "Bytes from peers, delivered to unix sockets.",
         ROW(bytes_in)},
        {"sent_bytes_total", "counter", "Bytes read from unix sockets, for peers.", ROW(bytes_out)},
        {"replayed_bytes_total", "counter", "Bytes sent more than once.", ROW(replayed)},
        {"stream_resumes_total", "counter", "Connections that took over a running stream.",
         ROW(resumes)},
#undef ROW
    };
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        head(out, rows[i].name, rows[i].type, rows[i].help);
        for (enum relay_role role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
            const uint64_t *value = (const uint64_t *)((const char *)&figures[role] + rows[i].at);

            ferry_buf_printf(out, "ferry_relay_%s{role=\"%s\"} %llu\n", rows[i].name,
                             relay_role_name(role), (unsigned long long)*value);
        }
    }
    head(out, "rate_limit_bytes_per_second", "gauge", "Limit for all moves, 0 is none.");
    ferry_buf_printf(out, "ferry_relay_rate_limit_bytes_per_second %llu\n",
                     (unsigned long long)rate_limit);
    head(out, "draining", "gauge", "Whether new moves are refused.");
    ferry_buf_printf(out, "ferry_relay_draining %d\n", draining);
}
