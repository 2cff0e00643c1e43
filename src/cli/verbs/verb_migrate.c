/* The verb that moves a virtual machine: migrate. */
#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_error.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/preflight.h"
#include "cli/verbs/verbs.h"
#include "cli/watch/watch.h"
#include "http/client.h"

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
    if (rc < 0 && rc != -FERRY_DENIED) {
        return session_explain(err);
    }
    /* Who may not see nodes may still move what is on them. */
    return preflight_check(&o->u.vmi, rc < 0 ? NULL : nodes.items, nodes.n, to, err);
}

/* KubeVirt's words for a second move are kept; what to do about it is said with them. */
static int explain_refusal(const char *vm, struct ferry_error *err)
{
    struct ferry_error was = *err;

    if (!wire_error_is(&was, WIRE_ERROR_MOVE_IN_FLIGHT)) {
        return session_explain(err);
    }
    ferry_fail(err, was.cls, "%s; 'ferry watch %s' shows it, 'ferry cancel %s' stops it", was.msg,
               vm, vm);
    err->http = was.http;
    return -(int)err->cls;
}

/* The API server checks the object as if it were to be created, and forgets it. */
static int ask_dry(struct session *s, const char *vm, const char *json, enum output_format format,
                   struct ferry_error *err)
{
    api_cleanup_object struct api_object *would = NULL;

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
        return explain_refusal(vm, err);
    }
    if (format != OUTPUT_TABLE && format != OUTPUT_WIDE) {
        rc = api_object_parse(API_KIND_MIGRATION, reply.body.data, reply.body.len, &would, err);
        if (rc == 0) {
            output_print(would, format);
        }
        return rc;
    }
    printf(
        "%s can be moved: it runs, there is a node for it, and the API server takes the request; "
        "nothing was changed\n",
        vm);
    return FERRY_EXIT_OK;
}

struct options {
    const char *to; /* NULL = any other node */
    bool watch, dry_run;
    enum output_format format;
};

static int migrate(struct session *s, const char *vm, const struct options *w,
                   struct ferry_error *err)
{
    ferry_cleanup_free char *json = manifest_migration(vm, w->to);
    api_cleanup_object struct api_object *made = NULL;
    enum outcome outcome = OUTCOME_GOING;
    int rc = check_first(s, vm, w->to, err);

    if (rc < 0) {
        return rc;
    }
    if (w->dry_run) {
        return ask_dry(s, vm, json, w->format, err);
    }
    if (kube_client_create(s->client, kube_ref(API_KIND_MIGRATION, s->ns, NULL), json, &made, err) <
        0) {
        return explain_refusal(vm, err);
    }
    if (w->format == OUTPUT_TABLE || w->format == OUTPUT_WIDE) {
        printf("migration %s created\n", made->meta->name);
    } else {
        output_print(made, w->format);
    }
    fflush(stdout);
    if (!w->watch) {
        return FERRY_EXIT_OK;
    }
    rc = watch_migration(s, made->meta->name, (struct watch_options){0}, &outcome, err);
    return rc < 0 ? rc : cli_outcome_code(outcome);
}

int verb_migrate(int argc, char **argv, struct ferry_error *err)
{
    struct session_options so = {0};
    struct options w = {0};
    const char *output = NULL;
    const struct ferry_option options[] = {
        {"to", 0, FERRY_OPTION_STRING, &w.to, "NODE", "move it there (any other node)"},
        {"watch", 'w', FERRY_OPTION_FLAG, &w.watch, NULL, "show progress until it is over"},
        {"dry-run", 0, FERRY_OPTION_FLAG, &w.dry_run, NULL, "only say whether it could be moved"},
        OUTPUT_OPTION_ROW(&output),
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

    if (rc < 0 || (rc = output_parse(output, &w.format, err)) < 0) {
        return rc;
    }
    if (w.watch && (w.dry_run || output)) {
        return ferry_fail(err, FERRY_INVALID,
                          "--watch shows progress for people: it does not go "
                          "with --dry-run or --output");
    }
    if ((rc = session_open(&so, &s, err)) < 0) {
        return rc;
    }
    ferry_signals_block();
    return migrate(&s, name, &w, err);
}
