/* The verb that explains why a VM does not start or a move does not go on: reads all that is known,
 * and lets the chain be walked. */
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/node_client.h"
#include "cli/session/output.h"
#include "cli/verbs/verbs.h"
#include "cli/views/flight.h"
#include "cli/views/moveline.h"
#include "cli/why/why.h"

/* A busy node may report late: silence is believed after some more looks. */
enum { SAMPLES_APART_MS = 2500, LATE_LOOKS = 6, LATE_MS = 1000 };

struct reading {
    struct api_object *migration, *vmi, *pod, *lease;
    struct api_object *vm, *last, *launcher_pod, *event; /* of a VM that is not being moved */
    struct kube_list nodes, claims;
    struct why_report target, source;
};

static void reading_done(struct reading *r)
{
    api_object_unref(r->migration);
    api_object_unref(r->vmi);
    api_object_unref(r->pod);
    api_object_unref(r->lease);
    api_object_unref(r->vm);
    api_object_unref(r->last);
    api_object_unref(r->launcher_pod);
    api_object_unref(r->event);
    kube_list_done(&r->nodes);
    kube_list_done(&r->claims);
}
#define reading_cleanup ferry_cleanup(reading_done)

static int get_vmi(struct session *s, const char *name, struct api_object **ret,
                   struct ferry_error *err)
{
    int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, s->ns, name), ret, err);

    return rc < 0 && rc != -FERRY_NOT_FOUND ? session_explain(err) : 0;
}

static int read_vm(struct session *s, const char *word, struct reading *r, struct ferry_error *err)
{
    int rc = kube_client_get(s->client, kube_ref(API_KIND_VM, s->ns, word), &r->vm, err);

    return rc < 0 && rc != -FERRY_NOT_FOUND && rc != -FERRY_DENIED ? session_explain(err)
                                                                   : get_vmi(s, word, &r->vmi, err);
}

/* Of the pods that were made for its instance that on the node which has it; none of a move's. */
static void read_launcher_pod(struct session *s, struct reading *r)
{
    ferry_cleanup_free char *selector = ferry_asprintf(LABEL_CREATED_BY "=%s", r->vmi->meta->uid);
    kube_cleanup_list struct kube_list pods = {0};

    if (kube_client_list(s->client, kube_ref(API_KIND_POD, s->ns, NULL),
                         &(struct kube_list_options){.label_selector = selector}, &pods,
                         NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < pods.n; i++) {
        const struct api_pod *p = &pods.items[i]->u.pod;
        const char *node = r->vmi->u.vmi.node_name;

        if (ferry_str_empty(node) ? !api_map_get(&p->meta.labels, LABEL_MIGRATION_JOB_UID)
                                  : ferry_streq(p->node_name, node)) {
            api_object_unref(r->launcher_pod);
            r->launcher_pod = api_object_ref(pods.items[i]);
        }
    }
}

/* The latest warning about the VM or an instance of it. */
static void read_event(struct session *s, const char *name, struct reading *r)
{
    kube_cleanup_list struct kube_list events = {0};

    if (kube_client_list(s->client, kube_ref(API_KIND_EVENT, s->ns, NULL), NULL, &events, NULL) <
        0) {
        return;
    }
    for (size_t i = 0; i < events.n; i++) {
        const struct api_event *e = &events.items[i]->u.event;

        if (ferry_streq(e->about_name, name) && ferry_streq(e->type, "Warning") &&
            (!r->event || e->last_ms >= r->event->u.event.last_ms)) {
            api_object_unref(r->event);
            r->event = api_object_ref(events.items[i]);
        }
    }
}

/* Who may not see some of it gets the rest of the answer. */
static void read_around_vm(struct session *s, const char *name, struct reading *r,
                           struct why_view *view)
{
    bool known = false;

    read_event(s, name, r);
    if (r->vmi) {
        read_launcher_pod(s, r);
        known = kube_client_list(s->client, kube_ref(API_KIND_CLAIM, s->ns, NULL), NULL, &r->claims,
                                 NULL) == 0;
    }
    view->vm = r->vm ? &r->vm->u.vm : NULL;
    view->last = r->last ? &r->last->u.migration : NULL;
    view->pod = r->launcher_pod ? &r->launcher_pod->u.pod : NULL;
    view->event = r->event ? &r->event->u.event : NULL;
    view->claims_known = known;
    view->claims = r->claims.items;
    view->n_claims = r->claims.n;
}

/* The move that `word` names, or the VM of that name when it has none that goes on. */
static int read_subject(struct session *s, const char *word, struct reading *r,
                        struct ferry_error *err)
{
    int rc = cli_get_move(s, word, &r->migration, err);

    if (rc == 0 && !ferry_streq(r->migration->meta->name, word) &&
        wire_migration_is_over(&r->migration->u.migration)) {
        r->last = ferry_take_ptr(r->migration);
        return read_vm(s, word, r, err);
    }
    if (rc == 0) {
        return get_vmi(s, r->migration->u.migration.vmi_name, &r->vmi, err);
    }
    if (rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    struct ferry_error not_there = *err;
    rc = read_vm(s, word, r, err);
    if (rc == 0 && !r->vmi && !r->vm) {
        *err = not_there;
        return -FERRY_NOT_FOUND;
    }
    return rc;
}

static int read_pod(struct session *s, struct reading *r, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list pods = {0};
    ferry_cleanup_free char *selector =
        ferry_asprintf(LABEL_MIGRATION_JOB_UID "=%s", r->migration->meta->uid);

    if (kube_client_list(s->client, kube_ref(API_KIND_POD, s->ns, NULL),
                         &(struct kube_list_options){.label_selector = selector}, &pods, err) < 0) {
        return session_explain(err);
    }
    r->pod = pods.n > 0 ? api_object_ref(pods.items[0]) : NULL;
    return 0;
}

/* The second sample, some seconds after the first: whether a transfer moves is seen by looking
 * twice. */
static int look_again(struct session *s, struct reading *r, struct why_view *view, int after_ms,
                      struct ferry_error *err)
{
    if (ferry_signals_wait(ferry_now_ns() + after_ms * FERRY_NS_PER_MS)) {
        return ferry_fail(err, FERRY_CANCELLED, "interrupted");
    }
    api_object_unref(r->vmi);
    r->vmi = NULL;
    int rc = cli_get_vm(s, r->migration->u.migration.vmi_name, &r->vmi, err);
    if (rc < 0) {
        return rc;
    }
    view->vmi = &r->vmi->u.vmi;
    view->n_samples = 1 + moveline_sample(view->migration, view->vmi, &view->samples[1]);
    return 0;
}

static int read_again(struct session *s, struct reading *r, struct why_view *view,
                      struct ferry_error *err)
{
    int rc = view->n_samples ? look_again(s, r, view, SAMPLES_APART_MS, err) : 0;

    for (int i = 0; i < LATE_LOOKS && rc == 0 && view->n_samples == 2 &&
                    view->samples[0].elapsed_ms == view->samples[1].elapsed_ms;
         i++) {
        rc = look_again(s, r, view, LATE_MS, err);
    }
    return rc;
}

static int read_all(struct session *s, const char *word, struct reading *r, struct why_view *view,
                    struct ferry_error *err)
{
    int rc = read_subject(s, word, r, err);

    if (rc < 0 || (r->migration && (rc = read_pod(s, r, err)) < 0)) {
        return rc;
    }
    /* Who may not see nodes or leases gets the rest of the answer. */
    bool nodes =
        kube_client_list(s->client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &r->nodes, err) == 0;
    rc = kube_client_get(s->client, kube_ref(API_KIND_LEASE, "kube-system", "ferry-controller"),
                         &r->lease, err);
    *view = (struct why_view){
        .migration = r->migration ? &r->migration->u.migration : NULL,
        .vmi = r->vmi ? &r->vmi->u.vmi : NULL,
        .target_pod = r->pod ? &r->pod->u.pod : NULL,
        .nodes = nodes ? r->nodes.items : NULL,
        .n_nodes = r->nodes.n,
        .lease_known = rc == 0 || rc == -FERRY_NOT_FOUND,
        .lease = r->lease ? &r->lease->u.lease : NULL,
        .now_ms = ferry_now_unix_ms(),
    };
    if (!view->migration) {
        read_around_vm(s, word, r, view);
        return 0;
    }
    view->n_samples = moveline_sample(view->migration, view->vmi, &view->samples[0]);
    return read_again(s, r, view, err);
}

/* Who may not ask a node gets the rest of the answer. */
static const struct why_report *ask_node(struct session *s, const char *node, const char *uid,
                                         struct why_report *ret)
{
    ferry_cleanup_free char *path = ferry_asprintf("/v1/checks/%s", uid);
    http_cleanup_reply struct http_reply reply = {0};
    struct ferry_error err = {0};

    if (ferry_str_empty(node)) {
        return NULL;
    }
    int rc = node_client_get(s, node, path, &reply, &err);
    if (rc == -FERRY_DENIED || rc == -FERRY_NOT_FOUND) {
        return NULL;
    }
    if (rc < 0 || why_report_parse(reply.body.data, reply.body.len, ret, &err) < 0) {
        *ret = (struct why_report){0};
        snprintf(ret->error, sizeof(ret->error), "%.250s", err.msg);
    }
    return ret;
}

static void ask_nodes(struct session *s, struct reading *r, struct why_view *view)
{
    const char *uid = view->migration->meta.uid;

    view->target = ask_node(s, view->vmi->migration.target_node, uid, &r->target);
    view->source = ask_node(s, view->vmi->migration.source_node, uid, &r->source);
}

/* When the mode was taken is in the flight record of the source; without it, it is not told. */
static int64_t mode_since(struct session *s, const struct why_view *view)
{
    const struct api_migration_state *m = &view->vmi->migration;
    ferry_cleanup_free char *path = ferry_asprintf("/v1/records/%s", view->migration->meta.uid);
    http_cleanup_reply struct http_reply reply = {0};
    flight_cleanup struct flight f = {0};
    struct ferry_error err;

    if (ferry_str_empty(m->source_node) || ferry_str_empty(m->mode) ||
        node_client_get(s, m->source_node, path, &reply, &err) < 0 ||
        flight_parse(reply.body.data, reply.body.len, &f, &err) < 0) {
        return -1;
    }
    return flight_mode_since(&f, m->mode);
}

static void print_answer(const struct why_answer *a, const struct why_view *view,
                         enum output_format format)
{
    ferry_cleanup_buf struct ferry_buf out = {0};
    const struct why_link *first = why_first(a);

    if (format == OUTPUT_JSON || format == OUTPUT_YAML) {
        why_output(a, format == OUTPUT_YAML, &out);
    } else if (format == OUTPUT_NAME) {
        ferry_buf_printf(&out, "%s\n", first ? first->name : "");
    } else {
        if (view->migration) {
            ferry_buf_printf(&out, "%s, move of %s: %s\n", view->migration->meta.name,
                             view->migration->vmi_name,
                             view->migration->phase[0] ? view->migration->phase : "new");
        }
        why_render(a, &out);
    }
    fputs(out.data, stdout);
}

int verb_why(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    const struct ferry_option options[] = {
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry why",
        .usage = "[OPTION]... MIGRATION|VM",
        .summary =
            "Says why a virtual machine does not start or a move does not go on: walks from the\n"
            "request to its end and names the first link that does not hold, with what to do\n"
            "about it.",
        .options = options,
        .epilogue = "Exit codes: 0 nothing is broken, 4 a link is.",
    };
    const struct cli_call call = {&cmd, &so, "the name of a move or of a virtual machine",
                                  .output = &output, .format = &format};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    reading_cleanup struct reading r = {0};
    struct why_view view;
    struct why_answer answer;
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0) {
        return rc;
    }
    ferry_signals_block();
    if ((rc = read_all(&s, name, &r, &view, err)) < 0) {
        return rc;
    }
    bool under_way = view.migration && view.vmi;
    if (under_way && why_needs_nodes(&view)) {
        ask_nodes(&s, &r, &view);
    }
    view.mode_since_ms = under_way && view.n_samples > 0 ? mode_since(&s, &view) : -1;
    if (view.migration) {
        why_walk(&view, &answer);
    } else {
        why_walk_vm(&view, &answer);
    }
    print_answer(&answer, &view, format);
    const struct why_link *broken = why_first(&answer);
    return broken && broken->state == WHY_BROKEN ? CLI_EXIT_BROKEN : FERRY_EXIT_OK;
}
