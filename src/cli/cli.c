#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/log.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/session/sink.h"

enum { MAX_VERBS = 32 };

const struct cli_verb cli_verbs[] = {
    {"up", "start a site on this machine: an API server and a few nodes", verb_up},
    {"down", "end the site and remove everything it made", verb_down},
    {"vm", "create, list, start, stop and delete virtual machines", verb_vm, .sub = vm_verbs},
    {"migrate", "move a virtual machine to another node", verb_migrate, .completes = "vms"},
    {"plan", "predict a move without making it", verb_plan, .completes = "vms"},
    {"list", "list moves", verb_list},
    {"watch", "show how moves go", verb_watch, .completes = "moves vms"},
    {"show", "show all that is known of a move", verb_show, .completes = "moves vms"},
    {"why", "say why a move does not go on, and what to do", verb_why, .completes = "moves vms"},
    {"cancel", "cancel a move", verb_cancel, .completes = "moves vms"},
    {"node", "list and remove nodes", verb_node, .sub = node_verbs},
    {"token", "tokens with which hosts join", verb_token, .sub = verb_token_verbs},
    {"join", "make this host a node of a site", verb_join},
    {"drain", "empty a node", verb_drain, .completes = "nodes"},
    {"undrain", "let a node take virtual machines again", verb_undrain, .completes = "nodes"},
    {"policy", "settings for the moves of some virtual machines", verb_policy, .sub = policy_verbs},
    {"events", "list what happened", verb_events, .completes = "moves vms"},
    {"completion", "print a script that completes words in a shell", verb_completion,
     .completes = "shells"},
    {"supervise", "keep a site's programs running", verb_supervise, .hidden = true},
    {0},
};

static void print_verbs(const char *prefix, const char *about, const struct cli_verb *list)
{
    printf("Usage: %s VERB [OPTION]... [ARGUMENT]...\n\n%s\n\nVerbs:\n", prefix, about);
    for (const struct cli_verb *v = list; v->name; v++) {
        if (!v->hidden) {
            printf("  %-10s %s\n", v->name, v->summary);
        }
    }
    printf("\n'%s VERB --help' tells more about one of them.\n", prefix);
}

static int unknown_verb(const char *prefix, const struct cli_verb *list, const char *word,
                        struct ferry_error *err)
{
    const char *names[MAX_VERBS];
    size_t n = 0;

    for (const struct cli_verb *v = list; v->name && n < MAX_VERBS; v++) {
        if (!v->hidden) {
            names[n++] = v->name;
        }
    }
    const char *near = ferry_suggest(word, names, n);
    if (near) {
        return ferry_fail(err, FERRY_INVALID, "'%s' has no verb '%s'; did you mean '%s %s'?",
                          prefix, word, prefix, near);
    }
    return ferry_fail(err, FERRY_INVALID, "'%s' has no verb '%s'; see '%s --help'", prefix, word,
                      prefix);
}

int cli_dispatch(const char *prefix, const char *about, const struct cli_verb *list, int argc,
                 char **argv, struct ferry_error *err)
{
    if (argc < 2) {
        return ferry_fail(err, FERRY_INVALID, "'%s' needs a verb; see '%s --help'", prefix, prefix);
    }
    if (ferry_streq(argv[1], "--help") || ferry_streq(argv[1], "-h") ||
        ferry_streq(argv[1], "help")) {
        print_verbs(prefix, about, list);
        return FERRY_EXIT_OK;
    }
    if (ferry_streq(argv[1], "--version")) {
        /* The option parser knows the version; this prints it and exits. */
        return ferry_options_parse(&(struct ferry_command){.name = "ferry"}, argc, argv, err);
    }
    for (const struct cli_verb *v = list; v->name; v++) {
        if (ferry_streq(v->name, argv[1])) {
            return v->run(argc - 1, argv + 1, err);
        }
    }
    return unknown_verb(prefix, list, argv[1], err);
}

int cli_no_more(const char *verb, int argc, char **argv, int first, struct ferry_error *err)
{
    if (first >= argc) {
        return 0;
    }
    return ferry_fail(err, FERRY_INVALID, "'%s' is one argument too many (see %s --help)",
                      argv[first], verb);
}

int cli_one_name(const struct ferry_command *cmd, int argc, char **argv, const char *what,
                 const char **ret, struct ferry_error *err)
{
    int first = ferry_options_parse(cmd, argc, argv, err);

    if (first < 0) {
        return first;
    }
    if (first == argc) {
        return ferry_fail(err, FERRY_INVALID, "%s is missing (see %s --help)", what, cmd->name);
    }
    *ret = argv[first];
    return cli_no_more(cmd->name, argc, argv, first + 1, err);
}

int cli_parse(const struct cli_call *call, int argc, char **argv, const char **ret_name,
              struct ferry_error *err)
{
    const char *command = call->command->name;
    int first = ferry_options_parse(call->command, argc, argv, err);

    if (first < 0) {
        return first;
    }
    const char *name = call->what && first < argc ? argv[first++] : NULL;
    if (call->what && !name && !call->may_miss) {
        return ferry_fail(err, FERRY_INVALID, "%s is missing (see %s --help)", call->what, command);
    }
    int rc = cli_no_more(command, argc, argv, first, err);
    if (rc == 0 && call->format) {
        rc = output_parse(*call->output, call->format, err);
    }
    if (rc == 0 && ret_name) {
        *ret_name = name;
    }
    return rc;
}

int cli_begin(const struct cli_call *call, int argc, char **argv, const char **ret_name,
              struct session *ret, struct ferry_error *err)
{
    int rc = cli_parse(call, argc, argv, ret_name, err);

    return rc < 0 ? rc : session_open(call->session, ret, err);
}

/* There is none, or it is not running. */
static int explain_no_instance(struct session *s, const char *name, struct ferry_error *err)
{
    api_cleanup_object struct api_object *vm = NULL;

    if (kube_client_get(s->client, kube_ref(API_KIND_VM, s->ns, name), &vm, err) == 0) {
        const char *state = vm->u.vm.printable_status;

        return ferry_fail(err, FERRY_NOT_FOUND,
                          "virtual machine '%s' does not run: it is %s; 'ferry vm start %s' starts "
                          "it",
                          name, ferry_str_empty(state) ? "Stopped" : state, name);
    }
    return ferry_fail(err, FERRY_NOT_FOUND,
                      "there is no virtual machine '%s' in namespace '%s'; 'ferry vm list' shows "
                      "them",
                      name, s->ns);
}

int cli_get_vm(struct session *s, const char *name, struct api_object **ret,
               struct ferry_error *err)
{
    int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, s->ns, name), ret, err);

    if (rc == -FERRY_NOT_FOUND) {
        return explain_no_instance(s, name, err);
    }
    return rc < 0 ? session_explain(err) : 0;
}

bool cli_vm_paused(const struct api_vmi *vm)
{
    return api_condition_true(&vm->conditions, CONDITION_PAUSED);
}

/* Whether `a` is rather meant than `b`. */
static bool more_likely(const struct api_migration *a, const struct api_migration *b)
{
    if (wire_migration_is_over(a) != wire_migration_is_over(b)) {
        return wire_migration_is_over(b);
    }
    return a->meta.created_ms >= b->meta.created_ms;
}

int cli_get_move(struct session *s, const char *word, struct api_object **ret,
                 struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0};
    int rc = kube_client_get(s->client, kube_ref(API_KIND_MIGRATION, s->ns, word), ret, err);

    if (rc == 0) {
        return 0;
    }
    if (rc != -FERRY_NOT_FOUND ||
        kube_client_list(s->client, kube_ref(API_KIND_MIGRATION, s->ns, NULL), NULL, &list, err) <
            0) {
        return session_explain(err);
    }
    struct api_object *best = NULL;
    for (size_t i = 0; i < list.n; i++) {
        const struct api_migration *m = &list.items[i]->u.migration;

        if (ferry_streq(m->vmi_name, word) && (!best || more_likely(m, &best->u.migration))) {
            best = list.items[i];
        }
    }
    if (!best) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "there is no move called '%s' nor of a virtual machine of that name in "
                          "namespace '%s'; 'ferry list' shows moves, and 'ferry events %s' what is "
                          "left of one that was cancelled",
                          word, s->ns, word);
    }
    *ret = api_object_ref(best);
    return 0;
}

int cli_outcome_code(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_SUCCEEDED:
        return FERRY_EXIT_OK;
    case OUTCOME_CANCELLED:
        return CLI_EXIT_CANCELLED;
    case OUTCOME_GOING:
    case OUTCOME_FAILED:
        break;
    }
    return FERRY_EXIT_FAILED;
}

int cli_exit_code(const struct ferry_error *err)
{
    if (err->cls == FERRY_CANCELLED) {
        return CLI_EXIT_INTERRUPTED;
    }
    /* What a server refused was a correct call of this program. */
    return err->cls == FERRY_INVALID && !err->http ? FERRY_EXIT_USAGE : FERRY_EXIT_FAILED;
}

/* What could not be written was not said: a full disk must not look like success, whichever verb it
 * was and however it ends. */
static void close_output(void)
{
    int code = sink_close();

    if (code) {
        _exit(code);
    }
}

int cli_main(int argc, char **argv)
{
    struct ferry_error err = {0};

    sink_open();
    atexit(close_output);
    ferry_log_init("ferry", FERRY_LOG_WARN, FERRY_LOG_TEXT);
    int rc = cli_dispatch("ferry",
                          "Moves running virtual machines between hosts: a site to try it on, "
                          "virtual\nmachines, and their migrations.",
                          cli_verbs, argc, argv, &err);

    return rc < 0 ? ferry_die("ferry", cli_exit_code(&err), &err) : rc;
}
