/* The verbs of `ferry`. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

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

/* Of the verbs below a verb, or all ("vm create"): picks and runs one of `verbs`, a list that
 * ends with a NULL name. */
int cli_dispatch(const char *prefix, const char *about, const struct cli_verb *verbs, int argc,
                 char **argv, struct ferry_error *err);

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
