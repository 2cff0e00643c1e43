/* The verbs of ferry-apiserver, and what they share. */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/user.h"

#define PROGRAM "ferry-apiserver"

/* Where a site is, and what is said of it. */
struct site_options {
    const char *root, *data;
    struct ferry_log_options log;
};
/* DATA, or ROOT/var/lib/ferry. Owned by the caller. */
char *apiserver_site_dir(const struct site_options *o);
#define SITE_OPTION_ROWS(o, what)                                                                  \
    {"root", 0, FERRY_OPTION_STRING, &(o)->root, "DIR", "prefix of all paths"},                    \
        {"data", 0, FERRY_OPTION_STRING, &(o)->data, "DIR", what " (default ROOT/var/lib/ferry)"}, \
        FERRY_LOG_OPTION_ROWS(&(o)->log)

/* Parses, sets logging up; the first word that is no option, or -1 with `err`. */
int apiserver_site_parse(const struct ferry_command *command, const struct site_options *o,
                         int argc, char **argv, struct ferry_error *err);
/* For verbs that root calls on a site of the server's user: acts as that user from now on (until
 * ferry_user_return(), where `for_good` is false). Refuses, by name, a user whose site it is not.
 */
int apiserver_be_owner(const char *data, bool for_good, struct ferry_error *err);
/* The group that reads the controller's kubeconfig: `gid`, or 0 for that of the controller's user.
 */
gid_t apiserver_controller_group(int gid);
#define CONTROLLER_GID_ROW(to)                                                                     \
    {                                                                                              \
        "controller-gid", 0, FERRY_OPTION_INT, (to), "GID",                                        \
            "group of the controller, which may read its kubeconfig (default: that of user "       \
            "ferry-controller, or 61203)"                                                          \
    }
/* Says what is wrong; the exit status. */
int apiserver_misused(const struct ferry_error *err);
int apiserver_failed(const struct ferry_error *err);

/* `argv[0]` is the verb. They return the exit status. */
int apiserver_verb_serve(int argc, char **argv);
int apiserver_verb_pki(int argc, char **argv);
int apiserver_verb_token(int argc, char **argv);
int apiserver_verb_backup(int argc, char **argv);
int apiserver_verb_restore(int argc, char **argv);
