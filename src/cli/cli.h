/* The command line `ferry`: verbs and what they share. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "cli/views/outcome.h"

/* Exit codes beyond those that every program shares. */
enum {
    CLI_EXIT_CANCELLED = 3,     /* the move was cancelled */
    CLI_EXIT_BROKEN = 4,        /* why: a link of the chain is broken */
    CLI_EXIT_INTERRUPTED = 130, /* by Ctrl-C */
};

/* A verb gets the arguments from its own name on. Returns an exit code, or a negative class with
 * `err` set: the caller prints it and chooses the code. */
struct cli_verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv, struct ferry_error *err);
    bool hidden;
    const char *completes;      /* what its arguments name: "vms", "moves vms", "nodes", ... */
    const struct cli_verb *sub; /* the verbs below it, or NULL */
};
extern const struct cli_verb cli_verbs[], vm_verbs[], policy_verbs[], node_verbs[],
    verb_token_verbs[];

/* Runs the verb that argv names; returns the exit code of the program. */
int cli_main(int argc, char **argv);

/* As cli_main for the verbs below a verb ("vm create"): picks and runs one of `verbs`, a list that
 * ends with a NULL name. */
int cli_dispatch(const char *prefix, const char *about, const struct cli_verb *verbs, int argc,
                 char **argv, struct ferry_error *err);

/* Exit code for an error: 2 when the call itself was wrong, 130 when interrupted, else 1. Pure. */
int cli_exit_code(const struct ferry_error *err);

/* No positional arguments are left, or an error that names the first of them. */
int cli_no_more(const char *verb, int argc, char **argv, int first, struct ferry_error *err);

/* Parses the options of a verb that takes one name and nothing else; `what` says which in words
 * ("the name of a node"). */
int cli_one_name(const struct ferry_command *cmd, int argc, char **argv, const char *what,
                 const char **ret, struct ferry_error *err);

/* How a verb that takes one name or none begins. */
struct cli_call {
    const struct ferry_command *command;
    const struct session_options *session; /* how it reaches the API; NULL = it does not */
    const char *what;          /* the name in words, "the name of a node"; NULL = none */
    bool may_miss;             /* the name */
    const char *const *output; /* what -o said, which goes to `format`; or NULL */
    enum output_format *format;
};
/* Options, the name (NULL where it is missing and may), the format. */
int cli_parse(const struct cli_call *call, int argc, char **argv, const char **ret_name,
              struct ferry_error *err);
/* The same, and then the API; for a verb that has nothing to check between. */
int cli_begin(const struct cli_call *call, int argc, char **argv, const char **ret_name,
              struct session *ret, struct ferry_error *err);

/* The virtual machine of that name in the session's namespace, or an error that says so. */
int cli_get_vm(struct session *s, const char *name, struct api_object **ret,
               struct ferry_error *err);

/* Its user made it stand still (or its disks did), as its node says. */
bool cli_vm_paused(const struct api_vmi *vm);

/* The move that `word` names: itself, or of the VM of that name the one under way, else the latest.
 * NOT_FOUND, with an error that says so, when there is none. */
int cli_get_move(struct session *s, const char *word, struct api_object **ret,
                 struct ferry_error *err);

/* Exit code of a verb that waited for a move. Pure. */
int cli_outcome_code(enum outcome outcome);

int verb_up(int argc, char **argv, struct ferry_error *err);
int verb_down(int argc, char **argv, struct ferry_error *err);
int verb_supervise(int argc, char **argv, struct ferry_error *err);
int verb_vm(int argc, char **argv, struct ferry_error *err);
int verb_migrate(int argc, char **argv, struct ferry_error *err);
int verb_list(int argc, char **argv, struct ferry_error *err);
int verb_cancel(int argc, char **argv, struct ferry_error *err);
int verb_watch(int argc, char **argv, struct ferry_error *err);
int verb_why(int argc, char **argv, struct ferry_error *err);
int verb_show(int argc, char **argv, struct ferry_error *err);
int verb_drain(int argc, char **argv, struct ferry_error *err);
int verb_undrain(int argc, char **argv, struct ferry_error *err);
int verb_node(int argc, char **argv, struct ferry_error *err);
int verb_policy(int argc, char **argv, struct ferry_error *err);
int verb_completion(int argc, char **argv, struct ferry_error *err);
int verb_join(int argc, char **argv, struct ferry_error *err);
int verb_token(int argc, char **argv, struct ferry_error *err);
int verb_node_remove(int argc, char **argv, struct ferry_error *err);
int verb_plan(int argc, char **argv, struct ferry_error *err);
int verb_vm_create(int argc, char **argv, struct ferry_error *err);
int verb_vm_console(int argc, char **argv, struct ferry_error *err);
int verb_events(int argc, char **argv, struct ferry_error *err);
