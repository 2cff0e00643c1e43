/* The verb that shows one move: what the API says of it, and its flight record from the node. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_result.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/node_client.h"
#include "cli/session/output.h"
#include "cli/verbs/verbs.h"
#include "cli/views/flight.h"
#include "cli/views/moveline.h"
#include "cli/watch/events.h"

static void put_field(struct ferry_buf *out, const char *name, const char *value)
{
    if (!ferry_str_empty(value)) {
        size_t begin = out->len;

        ferry_buf_printf(out, "%-10s %s", name, value);
        ferry_buf_one_line(out, begin);
        ferry_buf_puts(out, "\n");
    }
}

static void put_phases(const struct api_migration *m, struct ferry_buf *out)
{
    char when[FERRY_RFC3339_SIZE], took[PROGRESS_TEXT];

    if (m->n_phase_times > 0) {
        ferry_buf_puts(out, "\nPhases:\n");
    }
    for (size_t i = 0; i < m->n_phase_times; i++) {
        const struct api_phase_time *p = &m->phase_times[i];

        ferry_buf_printf(out, "  %s  ", ferry_rfc3339(p->at_ms, when));
        if (i + 1 == m->n_phase_times) {
            ferry_buf_puts(out, p->phase);
        } else { /* the times are whole seconds */
            int64_t ms = m->phase_times[i + 1].at_ms - p->at_ms;

            ferry_buf_printf(out, "%-16s for %s", p->phase,
                             ms < 1000 ? "under 1 s" : progress_seconds(ms / 1000, took));
        }
        ferry_buf_puts(out, "\n");
    }
}

static void put_result(const struct api_migration *m, const struct api_vmi *vmi,
                       struct ferry_buf *out)
{
    const struct wire_result r = moveline_result(m, vmi);
    char buf[PROGRESS_TEXT];

    if (r.total_ms >= 0) {
        put_field(out, "took", progress_duration(r.total_ms, buf));
    }
    if (r.downtime_ms >= 0) {
        put_field(out, "stood", progress_duration(r.downtime_ms, buf));
    }
    if (r.transferred_bytes >= 0) {
        put_field(out, "sent", progress_bytes(r.transferred_bytes, buf));
    }
}

static void put_conditions(const struct api_migration *m, struct ferry_buf *out)
{
    if (m->conditions.n > 0) {
        ferry_buf_puts(out, "\nConditions:\n");
    }
    for (size_t i = 0; i < m->conditions.n; i++) {
        const struct api_condition *c = &m->conditions.items[i];
        size_t begin = out->len;

        ferry_buf_printf(out, "  %s=%s", c->type ? c->type : "?", c->status ? c->status : "?");
        ferry_buf_printf(out, "%s%s", ferry_str_empty(c->reason) ? "" : "  ",
                         c->reason ? c->reason : "");
        ferry_buf_printf(out, "%s%s", ferry_str_empty(c->message) ? "" : ": ",
                         c->message ? c->message : "");
        ferry_buf_one_line(out, begin);
        ferry_buf_puts(out, "\n");
    }
}

static bool about_move(const struct api_object *event, const struct api_migration *m)
{
    const char *uid = api_json_str(event->root, "/involvedObject/uid");
    const char *name = api_json_str(event->root, "/involvedObject/name");
    int64_t when = events_time_ms(event);

    return ferry_streq(uid, m->meta.uid) ||
           (ferry_streq(name, m->vmi_name) && when >= m->meta.created_ms &&
            (!m->state.end_ms || when <= m->state.end_ms + 10000));
}

static void put_events(const struct api_migration *m, struct kube_list *events,
                       struct ferry_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < events->n; i++) {
        struct api_object *e = events->items[i];

        if (about_move(e, m)) {
            events->items[i] = events->items[n];
            events->items[n++] = e;
        }
    }
    if (n > 0) {
        ferry_buf_puts(out, "\nEvents:\n");
        listing_render(&events_listing, events->items, n,
                       &(struct listing_context){.now_ms = ferry_now_unix_ms()}, false, false, out);
    }
}

/* The record is on the node that the guest left; before it left, that is where it runs. Where it
 * cannot be had, that is said and the rest is shown: it is not what decides. */
static int get_record(struct session *s, const struct api_migration *m, const char *source,
                      struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("/v1/records/%s", m->meta.uid);

    if (ferry_str_empty(source)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "the move has not begun on a node");
    }
    return node_client_get(s, source, path, ret, err);
}

static enum plot_charset terminal_charset(void)
{
    setlocale(LC_CTYPE, "");
    return ferry_streq(nl_langinfo(CODESET), "UTF-8") ? PLOT_UNICODE : PLOT_ASCII;
}

static void put_flight(struct session *s, const struct api_migration *m, const char *source,
                       bool plot, struct ferry_buf *out)
{
    http_cleanup_reply struct http_reply reply = {0};
    flight_cleanup struct flight f = {0};
    struct ferry_error err;

    if (get_record(s, m, source, &reply, &err) < 0 ||
        flight_parse(reply.body.data, reply.body.len, &f, &err) < 0) {
        ferry_cleanup_free char *why = ferry_printable_dup(err.msg);

        ferry_buf_printf(out, "\nNo flight record: %s\n", why);
        return;
    }
    ferry_buf_puts(out, "\n");
    flight_render(&f, out);
    if (plot) {
        ferry_buf_puts(out, "\n");
        flight_plot(&f, moveline_terminal_width(), terminal_charset(), out);
    }
}

static int show(struct session *s, struct api_object *o, bool plot, struct ferry_error *err)
{
    const struct api_migration *m = &o->u.migration;
    api_cleanup_object struct api_object *vmi = NULL;
    kube_cleanup_list struct kube_list events = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};
    int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, s->ns, m->vmi_name), &vmi, err);

    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return session_explain(err);
    }
    if ((rc = events_list(s, s->ns, &events, err)) < 0) {
        return rc;
    }
    const struct api_vmi *v = vmi ? &vmi->u.vmi : NULL;
    const struct api_migration_state *own = outcome_state(m, v), *st = own ? own : &m->state;
    put_field(&out, "name", m->meta.name);
    put_field(&out, "vm", m->vmi_name);
    put_field(&out, "phase", wire_phase_shown(m->phase));
    put_field(&out, "from", outcome_from(m, v));
    put_field(&out, "to", outcome_to(m, v));
    put_field(&out, "mode", st->mode);
    put_field(&out, "policy", api_json_str(o->root, "/status/migrationState/migrationPolicyName"));
    put_field(&out, "failed", st->failure_reason);
    put_result(m, v, &out);
    if (outcome_of(m, false, v) == OUTCOME_GOING) {
        ferry_buf_printf(&out, "%-10s ", "now");
        moveline_put(m, v, 0, &out);
        ferry_buf_puts(&out, "\n");
    }
    put_phases(m, &out);
    put_conditions(m, &out);
    put_flight(s, m, st->source_node, plot, &out);
    put_events(m, &events, &out);
    fputs(out.data, stdout);
    return FERRY_EXIT_OK;
}

int verb_show(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    bool plot = false;
    const struct ferry_option options[] = {
        {"plot", 0, FERRY_OPTION_FLAG, &plot, NULL,
         "draw remaining bytes, bandwidth and dirty rate over time"},
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry show",
        .usage = "[OPTION]... MIGRATION|VM",
        .summary =
            "Shows all that is known of one move: where from and to, its phases with their\n"
            "times, figures, conditions, its flight record (every round, every decision with its\n"
            "reason) and events. Of a VM it shows the latest move.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "the name of a move or of a virtual machine",
                                  .output = &output, .format = &format};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    api_cleanup_object struct api_object *o = NULL;
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0 || (rc = cli_get_move(&s, name, &o, err)) < 0) {
        return rc;
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        output_print(o, format);
        return FERRY_EXIT_OK;
    }
    return show(&s, o, plot, err);
}
