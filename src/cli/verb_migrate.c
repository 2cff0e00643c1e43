/* Verbs for moves: migrate, list, cancel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/preflight.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "http/client.h"

/* ---- migrate ------------------------------------------------------------------------------- */

/* What can be known before the object is created is said now, in one sentence, rather than by a
 * move that waits for something that never comes. */
static int check_first(struct session *s, const char *vm, const char *to, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    kube_cleanup_list struct kube_list nodes = {0};
    int rc = cli_get_vm(s, vm, &o, err);

    if (rc < 0) {
        return rc;
    }
    rc = kube_client_list(s->client, kube_ref(API_KIND_NODE, NULL, NULL), NULL, &nodes, err);
    if (rc < 0 && rc != -(int)FERRY_DENIED) {
        return session_explain(err);
    }
    /* Who may not see nodes may still move what is on them. */
    return preflight_check(&o->u.vmi, rc < 0 ? NULL : nodes.items, nodes.n, to, err);
}

/* The API server checks the object as if it were to be created, and forgets it. */
static int ask_dry(struct session *s, const char *vm, const char *json, struct ferry_error *err)
{
    const struct api_resource *r = api_resource_of_kind(API_KIND_MIGRATION);
    ferry_cleanup_free char *path = api_path(r, s->ns, NULL, NULL);
    ferry_cleanup_free char *dry = ferry_asprintf("%s?dryRun=All", path);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = http_client_call(kube_client_http(s->client),
                              &(struct http_call){.method = "POST",
                                                  .path = dry,
                                                  .content_type = "application/json",
                                                  .accept = "application/json",
                                                  .body = json,
                                                  .body_len = strlen(json)},
                              &reply, err);

    if (rc < 0) {
        return session_explain(err);
    }
    if (reply.status < 200 || reply.status > 299) {
        kube_status_error(reply.status, reply.body.data, reply.body.len, "trying a migration", err);
        return session_explain(err);
    }
    printf(
        "%s can be moved: it runs, there is a node for it, and the API server takes the request; "
        "nothing was changed\n",
        vm);
    return FERRY_EXIT_OK;
}

static int migrate(struct session *s, const char *vm, const char *to, bool watch, bool dry_run,
                   struct ferry_error *err)
{
    ferry_cleanup_free char *json = manifest_migration(vm, to);
    api_cleanup_object struct api_object *made = NULL;
    enum outcome outcome = OUTCOME_GOING;
    int rc = check_first(s, vm, to, err);

    if (rc < 0) {
        return rc;
    }
    if (dry_run) {
        return ask_dry(s, vm, json, err);
    }
    if (kube_client_create(s->client, kube_ref(API_KIND_MIGRATION, s->ns, NULL), json, &made, err) <
        0) {
        return session_explain(err);
    }
    printf("migration %s created\n", made->meta->name);
    fflush(stdout);
    if (!watch) {
        return FERRY_EXIT_OK;
    }
    rc = watch_migration(s, made->meta->name, false, &outcome, err);
    return rc < 0 ? rc : cli_outcome_code(outcome);
}

int verb_migrate(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *to = NULL;
    bool watch = false, dry_run = false;
    const struct ferry_option options[] = {
        {"to", 0, FERRY_OPTION_STRING, &to, "NODE", "move it there (any other node)"},
        {"watch", 'w', FERRY_OPTION_FLAG, &watch, NULL, "show progress until it is over"},
        {"dry-run", 0, FERRY_OPTION_FLAG, &dry_run, NULL, "only say whether it could be moved"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry migrate",
        .usage = "[OPTION]... VM",
        .summary = "Moves a running virtual machine to another node.",
        .options = options,
        .epilogue = "Exit codes with --watch: 0 it moved, 1 it did not, 3 the move was cancelled,\n"
                    "130 the watching was interrupted (the move goes on).",
    };
    const char *name = NULL;
    int rc = cli_one_name(&cmd, argc, argv, "the name of a virtual machine", &name, err);
    session_cleanup struct session s = {0};

    if (rc < 0) {
        return rc;
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    return migrate(&s, name, to, watch, dry_run, err);
}

/* ---- list ---------------------------------------------------------------------------------- */

static void move_row(struct table *t, const struct api_migration *m, bool wide, bool all,
                     int64_t now_ms)
{
    const struct api_migration_state *s = &m->state;
    char age[PROGRESS_TEXT], took[PROGRESS_TEXT] = "";
    const char *cells[TABLE_COLUMNS];
    size_t n = 0;

    if (s->start_ms && s->end_ms) {
        progress_duration(s->end_ms - s->start_ms, took);
    }
    if (all) {
        cells[n++] = m->meta.namespace_;
    }
    cells[n++] = m->meta.name;
    cells[n++] = m->vmi_name;
    cells[n++] = m->meta.deleted_ms && !ferry_streq(m->phase, "Succeeded") &&
                         !ferry_streq(m->phase, "Failed")
                     ? "Cancelling"
                 : m->phase[0] ? m->phase
                               : "Pending";
    cells[n++] = s->source_node;
    cells[n++] = s->target_node;
    cells[n++] = progress_age(now_ms - m->meta.created_ms, age);
    if (wide) {
        cells[n++] = took;
        cells[n++] = s->mode;
        cells[n++] = s->failure_reason;
    }
    table_row(t, cells);
}

static void show_moves(const struct kube_list *list, bool wide, bool all)
{
    table_cleanup struct table t;
    ferry_cleanup_buf struct ferry_buf out = {0};
    const char *headers[TABLE_COLUMNS + 1] = {NULL};
    size_t n = 0;

    if (all) {
        headers[n++] = "NAMESPACE";
    }
    headers[n++] = "NAME";
    headers[n++] = "VM";
    headers[n++] = "PHASE";
    headers[n++] = "FROM";
    headers[n++] = "TO";
    headers[n++] = "AGE";
    if (wide) {
        headers[n++] = "TOOK";
        headers[n++] = "MODE";
        headers[n++] = "REASON";
    }
    table_init(&t, headers);
    for (size_t i = 0; i < list->n; i++) {
        move_row(&t, &list->items[i]->u.migration, wide, all, ferry_now_unix_ms());
    }
    table_render(&t, &out);
    fputs(out.data, stdout);
}

static int oldest_first(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a,
                            *y = *(struct api_object *const *)b;

    return x->meta->created_ms < y->meta->created_ms   ? -1
           : x->meta->created_ms > y->meta->created_ms ? 1
                                                       : strcmp(x->meta->name, y->meta->name);
}

int verb_list(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    const char *output = NULL;
    enum output_format format;
    bool all = false;
    const struct ferry_option options[] = {
        {"all-namespaces", 'A', FERRY_OPTION_FLAG, &all, NULL, "of every namespace"},
        OUTPUT_OPTION_ROW(&output),
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry list",
        .usage = "[OPTION]...",
        .summary = "Lists moves, the oldest first.",
        .options = options,
    };
    int rc = ferry_options_parse(&cmd, argc, argv, err);
    session_cleanup struct session s = {0};
    kube_cleanup_list struct kube_list list = {0};

    if (rc < 0 || (rc = cli_no_more(cmd.name, argc, argv, rc, err)) < 0 ||
        (rc = output_parse(output, &format, err)) < 0 || (rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    if (kube_client_list(s.client, kube_ref(API_KIND_MIGRATION, all ? NULL : s.ns, NULL), NULL,
                         &list, err) < 0) {
        return session_explain(err);
    }
    if (list.n > 1) {
        qsort(list.items, list.n, sizeof(struct api_object *), oldest_first);
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        ferry_cleanup_buf struct ferry_buf out = {0};

        output_objects(list.items, list.n, format, &out);
        fputs(out.data ? out.data : "", stdout);
    } else if (list.n == 0) {
        fprintf(stderr, "No moves%s%s; 'ferry migrate VM' starts one.\n",
                all ? "" : " in namespace ", all ? "" : s.ns);
    } else {
        show_moves(&list, format == OUTPUT_WIDE, all);
    }
    return FERRY_EXIT_OK;
}

/* ---- cancel -------------------------------------------------------------------------------- */

static bool is_final(const struct api_migration *m)
{
    return ferry_streq(m->phase, "Succeeded") || ferry_streq(m->phase, "Failed");
}

/* The move that `word` names: itself, or the VM it moves. */
static int find_move(struct session *s, const char *word, struct api_object **ret,
                     struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0};
    int rc = kube_client_get(s->client, kube_ref(API_KIND_MIGRATION, s->ns, word), ret, err);

    if (rc == 0) {
        return is_final(&(*ret)->u.migration)
                   ? ferry_fail(err, FERRY_CONFLICT, "the move %s is over already: %s", word,
                                (*ret)->u.migration.phase)
                   : 0;
    }
    if (rc != -(int)FERRY_NOT_FOUND ||
        kube_client_list(s->client, kube_ref(API_KIND_MIGRATION, s->ns, NULL), NULL, &list, err) <
            0) {
        return session_explain(err);
    }
    for (size_t i = 0; i < list.n; i++) {
        const struct api_migration *m = &list.items[i]->u.migration;

        if (ferry_streq(m->vmi_name, word) && !is_final(m)) {
            *ret = api_object_ref(list.items[i]);
            return 0;
        }
    }
    return ferry_fail(err, FERRY_NOT_FOUND,
                      "there is no running move called '%s' nor of a virtual machine of that name "
                      "in namespace '%s'; 'ferry list' shows moves",
                      word, s->ns);
}

static int cancel(struct session *s, const char *word, bool wait, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    enum outcome outcome = OUTCOME_GOING;
    int rc = find_move(s, word, &o, err);

    if (rc < 0) {
        return rc;
    }
    rc = kube_client_delete(s->client, kube_ref_of(o),
                            &(struct kube_delete_options){.uid = o->meta->uid}, err);
    if (rc < 0 && rc != -(int)FERRY_NOT_FOUND) {
        return session_explain(err);
    }
    if (!wait) {
        printf("the move %s is being cancelled\n", o->meta->name);
        return FERRY_EXIT_OK;
    }
    rc = watch_migration(s, o->meta->name, true, &outcome, err);
    if (rc == -(int)FERRY_NOT_FOUND) { /* it went at once, and with it what it could tell */
        printf("The move %s was cancelled\n", o->meta->name);
        return FERRY_EXIT_OK;
    }
    if (rc < 0) {
        return rc;
    }
    /* A move that was past its switch-over, or failed by itself, was not cancelled. */
    return outcome == OUTCOME_CANCELLED ? FERRY_EXIT_OK : FERRY_EXIT_FAILED;
}

int verb_cancel(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    bool wait = false;
    const struct ferry_option options[] = {
        {"wait", 0, FERRY_OPTION_FLAG, &wait, NULL, "return when the move is over"},
        SESSION_OPTION_ROWS(&so),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry cancel",
        .usage = "[OPTION]... MIGRATION|VM",
        .summary = "Cancels a move: the virtual machine stays where it is.",
        .options = options,
        .epilogue = "Exit codes with --wait: 0 it was cancelled, 1 it ended otherwise.",
    };
    const char *name = NULL;
    int rc =
        cli_one_name(&cmd, argc, argv, "the name of a move or of a virtual machine", &name, err);
    session_cleanup struct session s = {0};

    if (rc < 0) {
        return rc;
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    return cancel(&s, name, wait, err);
}
