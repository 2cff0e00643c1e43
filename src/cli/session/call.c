#include "cli/session/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"

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

int cli_exit_code(const struct ferry_error *err)
{
    if (err->cls == FERRY_CANCELLED) {
        return CLI_EXIT_INTERRUPTED;
    }
    /* What a server refused was a correct call of this program. */
    return err->cls == FERRY_INVALID && !err->http ? FERRY_EXIT_USAGE : FERRY_EXIT_FAILED;
}
