/* Verbs for nodes: drain, undrain. */
#include <stdio.h>
#include <stdlib.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/verbs/drain_plan.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/verbs.h"
#include "cli/views/table.h"
#include "cli/watch/board.h"
#include "json/doc.h"

/* All that a plan is made from, and the plan. */
struct survey {
    struct kube_list vmis, moves, nodes;
    struct drain_item *items;
    size_t n;
};

static void survey_done(struct survey *v)
{
    kube_list_done(&v->vmis);
    kube_list_done(&v->moves);
    kube_list_done(&v->nodes);
    free(v->items);
    *v = (struct survey){0};
}
#define survey_cleanup ferry_cleanup(survey_done)

static int survey_make(struct session *s, const char *node, struct survey *v,
                       struct ferry_error *err)
{
    if (kube_client_list(s->client, kube_ref(API_KIND_VMI, NULL, NULL), NULL, &v->vmis, err) < 0 ||
        kube_client_list(s->client, kube_ref(API_KIND_MIGRATION, NULL, NULL), NULL, &v->moves,
                         err) < 0 ||
        kube_client_list(s->client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &v->nodes, err) <
            0) {
        return session_explain(err);
    }
    v->items = ferry_xcalloc(v->vmis.n + 1, sizeof(*v->items));
    v->n = drain_plan(node, v->vmis.items, v->vmis.n, v->moves.items, v->moves.n, v->nodes.items,
                      v->nodes.n, v->items);
    return 0;
}

static size_t count(const struct survey *v, enum drain_what what)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        n += v->items[i].what == what;
    }
    return n;
}

static void print_plan(const struct survey *v, bool tried)
{
    const char *const words[] = {tried ? "did not move" : "moves", "is moving", "stays"};
    const char *const headers[] = {"NAMESPACE", "VM", "PLAN", "WHY", NULL};
    cli_table_cleanup struct cli_table t = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};

    if (v->n == 0) {
        return;
    }
    cli_table_init(&t, headers);
    for (size_t i = 0; i < v->n; i++) {
        const struct drain_item *d = &v->items[i];

        cli_table_row(&t, (const char *const[]){d->vmi->meta->namespace_, d->vmi->meta->name,
                                                words[d->what], d->why});
    }
    cli_table_render(&t, &out);
    fputs(out.data, stdout);
    fflush(stdout);
}

/* The plan for programs: {node, vms: [{namespace, name, plan, why}]}; names alone of what moves. */
static void output_plan(const char *node, const struct survey *v, enum output_format format)
{
    static const char *const words[] = {"moves", "moving", "stays"};
    ferry_cleanup_buf struct ferry_buf out = {0};
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "node", node);
    yyjson_mut_obj_add_val(doc, root, "vms", list);
    for (size_t i = 0; i < v->n; i++) {
        const struct drain_item *d = &v->items[i];
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, o, "namespace", d->vmi->meta->namespace_);
        yyjson_mut_obj_add_str(doc, o, "name", d->vmi->meta->name);
        yyjson_mut_obj_add_str(doc, o, "plan", words[d->what]);
        yyjson_mut_obj_add_str(doc, o, "why", d->why);
        if (format == OUTPUT_NAME && d->what != DRAIN_STAYS) {
            ferry_buf_printf(&out, "virtualmachineinstance.kubevirt.io/%s\n", d->vmi->meta->name);
        }
    }
    if (format != OUTPUT_NAME) {
        output_document(doc, format == OUTPUT_YAML, &out);
    }
    yyjson_mut_doc_free(doc);
    fputs(out.data ? out.data : "", stdout);
}

static int set_cordon(struct session *s, const char *node, bool on, struct ferry_error *err)
{
    int rc = kube_client_patch(s->client, kube_ref(API_KIND_NODE, NULL, node), KUBE_PATCH_MERGE,
                               on ? "{\"spec\":{\"unschedulable\":true}}"
                                  : "{\"spec\":{\"unschedulable\":null}}",
                               NULL, err);

    if (rc == -FERRY_NOT_FOUND) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "there is no node '%s'; 'ferry node list' shows them", node);
    }
    return rc < 0 ? session_explain(err) : 0;
}

/* One that fails does not keep the others from moving; the last error is told. */
static int ask_for_moves(struct session *s, const char *node, struct survey *v,
                         struct ferry_error *err)
{
    int result = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct api_meta *vm = v->items[i].vmi->meta;
        ferry_cleanup_free char *json = manifest_evacuation(vm->name, node);

        if (v->items[i].what != DRAIN_MOVES) {
            continue;
        }
        int rc = kube_client_create(s->client, kube_ref(API_KIND_MIGRATION, vm->namespace_, NULL),
                                    json, NULL, err);
        if (rc < 0) {
            ferry_cleanup_free char *why = ferry_printable_dup(err->msg);

            fprintf(stderr, "ferry: asking for a move of %s: %s\n", vm->name, why);
            result = session_explain(err);
        }
    }
    return result;
}

static int finish(struct session *s, const char *node, struct ferry_error *err)
{
    survey_cleanup struct survey left = {0};
    int rc = survey_make(s, node, &left, err);

    if (rc < 0) {
        return rc;
    }
    if (left.n == 0) {
        printf("no virtual machine is on %s any more; it takes no new ones ('ferry undrain %s' "
               "changes that)\n",
               node, node);
        return FERRY_EXIT_OK;
    }
    printf("%zu virtual machine%s still on %s:\n", left.n, left.n == 1 ? " is" : "s are", node);
    print_plan(&left, true);
    return FERRY_EXIT_FAILED;
}

struct options {
    bool dry_run, no_wait;
    enum output_format format; /* of --dry-run */
};

static int drain(struct session *s, const char *node, const struct options *w,
                 struct ferry_error *err)
{
    bool dry_run = w->dry_run;
    survey_cleanup struct survey plan = {0};
    api_cleanup_object struct api_object *o = NULL;
    struct board_counts counts;
    int rc = kube_client_get(s->client, kube_ref(API_KIND_NODE, NULL, node), &o, err);

    if (rc == -FERRY_NOT_FOUND) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "there is no node '%s'; 'ferry node list' shows them", node);
    }
    if (rc < 0) {
        return session_explain(err);
    }
    /* First no new ones, then away with those that are there. */
    if ((!dry_run && (rc = set_cordon(s, node, true, err)) < 0) ||
        (rc = survey_make(s, node, &plan, err)) < 0) {
        return rc;
    }
    if (w->format != OUTPUT_TABLE && w->format != OUTPUT_WIDE) {
        output_plan(node, &plan, w->format);
        return count(&plan, DRAIN_STAYS) ? FERRY_EXIT_FAILED : FERRY_EXIT_OK;
    }
    printf("%s %s no new virtual machines; of %zu there %zu can move, %zu %s moving, %zu %s\n",
           node, dry_run ? "would take" : "takes", plan.n, count(&plan, DRAIN_MOVES),
           count(&plan, DRAIN_MOVING), count(&plan, DRAIN_MOVING) == 1 ? "is" : "are",
           count(&plan, DRAIN_STAYS), count(&plan, DRAIN_STAYS) == 1 ? "stays" : "stay");
    print_plan(&plan, false);
    if (dry_run) {
        return count(&plan, DRAIN_STAYS) ? FERRY_EXIT_FAILED : FERRY_EXIT_OK;
    }
    rc = ask_for_moves(s, node, &plan, err);
    if (w->no_wait) {
        return rc < 0 ? rc : count(&plan, DRAIN_STAYS) ? FERRY_EXIT_FAILED : FERRY_EXIT_OK;
    }
    struct board_options board = {.all_namespaces = true, .node = node, .until_idle = true};
    if ((rc = board_watch(s, &board, &counts, err)) < 0) {
        return rc;
    }
    return finish(s, node, err);
}

int verb_drain(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    struct options w = {0};
    const char *output = NULL;
    const struct ferry_option options[] = {
        {"dry-run", 0, FERRY_OPTION_FLAG, &w.dry_run, NULL, "only say what would move"},
        {"no-wait", 0, FERRY_OPTION_FLAG, &w.no_wait, NULL, "return when the moves are asked for"},
        {"output", 'o', FERRY_OPTION_STRING, &output, "FORMAT",
         "of --dry-run: json, yaml, name or wide"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry drain",
        .usage = "[OPTION]... NODE",
        .summary =
            "Empties a node: it takes no new virtual machines, and those on it move away, as many\n"
            "at a time as the limits of the cluster allow. Says which cannot, and why.",
        .options = options,
        .epilogue = "Exit codes: 0 the node is empty (--dry-run: all can move), 1 it is not,\n"
                    "130 the watching was interrupted (moves go on).",
    };
    const struct cli_call call = {&cmd, &so, "the name of a node", .output = &output,
                                  .format = &w.format};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    int rc = cli_parse(&call, argc, argv, &name, err);

    if (rc < 0) {
        return rc;
    }
    if (output && !w.dry_run) {
        return ferry_fail(err, FERRY_INVALID,
                          "--output is for --dry-run: a drain shows how its "
                          "moves go");
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    return drain(&s, name, &w, err);
}

/* Moves that the drain asked for and that did not begin are not wanted any more; the others are
 * let go on, because they cost less to finish than to undo. */
static int call_off(struct session *s, const char *node, size_t *ret, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list moves = {0};

    if (kube_client_list(s->client, kube_ref(API_KIND_MIGRATION, NULL, NULL), NULL, &moves, err) <
        0) {
        return session_explain(err);
    }
    for (size_t i = 0; i < moves.n; i++) {
        const struct api_migration *m = &moves.items[i]->u.migration;

        if (!ferry_streq(api_map_get(&m->meta.annotations, ANNOTATION_EVACUATION), node) ||
            wire_phase_of(m->phase) > PHASE_PENDING || m->meta.deleted_ms) {
            continue;
        }
        int rc = kube_client_delete(s->client, kube_ref_of(moves.items[i]),
                                    &(struct kube_delete_options){.uid = m->meta.uid}, err);
        if (rc < 0 && rc != -FERRY_NOT_FOUND) {
            return session_explain(err);
        }
        (*ret)++;
    }
    return 0;
}

int verb_undrain(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const struct ferry_option options[] = {
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry undrain",
        .usage = "[OPTION]... NODE",
        .summary = "Lets a node take virtual machines again, and cancels those moves of its drain\n"
                   "that have not begun.",
        .options = options,
    };
    const struct cli_call call = {&cmd, &so, "the name of a node"};
    const char *name = NULL;
    session_cleanup struct session s = {0};
    size_t cancelled = 0;
    int rc = cli_begin(&call, argc, argv, &name, &s, err);

    if (rc < 0 || (rc = set_cordon(&s, name, false, err)) < 0 ||
        (rc = call_off(&s, name, &cancelled, err)) < 0) {
        return rc;
    }
    printf("%s takes virtual machines again", name);
    if (cancelled > 0) {
        printf("; %zu move%s had not begun and %s cancelled", cancelled, cancelled == 1 ? "" : "s",
               cancelled == 1 ? "is" : "are");
    }
    printf("\n");
    return FERRY_EXIT_OK;
}
