/* A conversation with the API server: where it is, whose credentials, which namespace. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/options.h"
#include "kube/client.h"

/* Options that every verb which talks to the API has; put the rows into its table. */
struct session_options {
    const char *kubeconfig, *ns;
};
#define SESSION_OPTION_ROWS(so)                                                                    \
    {"namespace", 'n',         FERRY_OPTION_STRING,                                                \
     &(so)->ns,   "NAMESPACE", "namespace to work in (that of the kubeconfig)"},                   \
    {                                                                                              \
        "kubeconfig", 0, FERRY_OPTION_STRING, &(so)->kubeconfig, "FILE",                           \
            "the API ($KUBECONFIG, a site on this machine, ~/.kube/config)"                        \
    }

struct session {
    struct kube_client *client;
    char *ns;
};

int session_open(const struct session_options *so, struct session *ret, struct ferry_error *err);
void session_done(struct session *s);
#define session_cleanup ferry_cleanup(session_done)

/* Adds to an error from a call what the user can do about it; returns -err->cls. */
int session_explain(struct ferry_error *err);

/* Where the kubeconfig may be, best first. Pure but for `exists`. */
struct session_places {
    const char *option;      /* --kubeconfig, or NULL */
    const char *environment; /* $KUBECONFIG: paths with colons between, or NULL */
    const char *site;        /* of the default site on this machine */
    const char *home;        /* $HOME, or NULL */
};
/* The path to use (owned), or NULL with `err` set. A path that was asked for is returned whether it
 * exists or not. */
char *session_pick(const struct session_places *places, bool (*exists)(const char *path),
                   struct ferry_error *err);
