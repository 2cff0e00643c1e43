/* How a verb is called, and what it was called about. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/session/output.h"
#include "cli/session/session.h"

/* Exit codes beyond those that every program shares. */
enum {
    CLI_EXIT_CANCELLED = 3,     /* the move was cancelled */
    CLI_EXIT_BROKEN = 4,        /* why: a link of the chain is broken */
    CLI_EXIT_INTERRUPTED = 130, /* by Ctrl-C */
};

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
