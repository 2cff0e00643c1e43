#include "relay/common/metrics.h"

#include "base/count.h"
#include "base/prom.h"
#include "relay/common/spec.h"

#define RELAY "ferry_relay_"

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

void relay_metrics_render(const struct relay_figures figures[2], uint64_t rate_limit, bool draining,
                          struct ferry_buf *out)
{
    static const struct {
        const char *name, *type, *help;
        size_t at;
    } rows[] = {
#define ROW(field) offsetof(struct relay_figures, field)
        {RELAY "moves", "gauge", "Moves that this relay serves.", ROW(moves)},
        {RELAY "streams_open", "gauge", "Streams that carry bytes.", ROW(open)},
        {RELAY "streams_away", "gauge", "Streams whose connection is gone and whose ends are held.",
         ROW(away)},
        {RELAY "received_bytes_per_second", "gauge",
         "Bytes delivered to unix sockets, last second.", ROW(rate_in)},
        {RELAY "sent_bytes_per_second", "gauge", "Bytes that peers have delivered, last second.",
         ROW(rate_out)},
        {RELAY "streams_total", "counter", "Connections accepted.", ROW(streams)},
        {RELAY "received_bytes_total", "counter", "Bytes from peers, delivered to unix sockets.",
         ROW(bytes_in)},
        {RELAY "sent_bytes_total", "counter", "Bytes read from unix sockets, for peers.",
         ROW(bytes_out)},
        {RELAY "replayed_bytes_total", "counter", "Bytes sent more than once.", ROW(replayed)},
        {RELAY "stream_resumes_total", "counter", "Connections that took over a running stream.",
         ROW(resumes)},
#undef ROW
    };
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        ferry_prom_head(out, rows[i].name, rows[i].type, rows[i].help);
        for (enum relay_role role = RELAY_TARGET; role <= RELAY_SOURCE; role++) {
            const uint64_t *value = (const uint64_t *)((const char *)&figures[role] + rows[i].at);

            ferry_prom_sample(out, rows[i].name, FERRY_LABELS({"role", relay_role_name(role)}),
                              (double)*value);
        }
    }
    ferry_prom_head(out, RELAY "rate_limit_bytes_per_second", "gauge",
                    "Limit for all moves, 0 is none.");
    ferry_prom_sample(out, RELAY "rate_limit_bytes_per_second", NULL, (double)rate_limit);
    ferry_prom_head(out, RELAY "draining", "gauge", "Whether new moves are refused.");
    ferry_prom_sample(out, RELAY "draining", NULL, draining);
}
