#include "cli/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/str.h"
#include "cli/site/site_plan.h"

char *session_pick(const struct session_places *places, bool (*exists)(const char *path),
                   struct ferry_error *err)
{
    if (!ferry_str_empty(places->option)) {
        return ferry_strdup(places->option);
    }
    if (!ferry_str_empty(places->environment)) {
        ferry_cleanup_free char *list = ferry_strdup(places->environment);
        char *save = NULL, *first = strtok_r(list, ":", &save);

        for (char *p = first; p; p = strtok_r(NULL, ":", &save)) {
            if (exists(p)) {
                return ferry_strdup(p);
            }
        }
        if (first) {
            return ferry_strdup(first);
        }
    }
    if (exists(places->site)) {
        return ferry_strdup(places->site);
    }
    if (!ferry_str_empty(places->home)) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/.kube/config", places->home);

        if (exists(path)) {
            return ferry_take_ptr(path);
        }
    }
    ferry_fail(err, FERRY_NOT_FOUND,
               "no API server is known: start a site with 'ferry up', or name a kubeconfig with "
               "--kubeconfig or $KUBECONFIG");
    return NULL;
}

#define NOT_YOURS                                                                                  \
    "may not be read by this user: run ferry as root, for example with sudo, or name another "     \
    "kubeconfig with --kubeconfig"

static bool readable(const char *path)
{
    return access(path, R_OK) == 0;
}

/* As kubectl does it. */
static void print_warning(const char *text)
{
    ferry_cleanup_free char *line = ferry_printable_dup(text);

    fprintf(stderr, "Warning: %s\n", line);
}

int session_open(const struct session_options *so, struct session *ret, struct ferry_error *err)
{
    struct session_places places = {
        .option = so->kubeconfig,
        .environment = getenv("KUBECONFIG"),
        .site = SITE_DEFAULT_ROOT "/api/var/lib/ferry/admin.kubeconfig",
        .home = getenv("HOME"),
    };
    ferry_cleanup_free char *path = session_pick(&places, readable, err);

    if (!path && access(places.site, R_OK) < 0 && errno == EACCES) {
        return ferry_fail(err, FERRY_DENIED, "the kubeconfig of the site on this machine, %s, %s",
                          places.site, NOT_YOURS);
    }
    if (!path) {
        return -FERRY_NOT_FOUND;
    }
    int rc = kube_client_open(path, &ret->client, err);
    if (rc < 0 && access(path, R_OK) < 0 && errno == EACCES) {
        return ferry_fail(err, FERRY_DENIED, "the kubeconfig %s %s", path, NOT_YOURS);
    }
    if (rc < 0) {
        if (err->cls == FERRY_INVALID) { /* of the file; the call itself is right */
            err->cls = FERRY_FATAL;
        }
        return -(int)err->cls;
    }
    kube_client_on_warning(ret->client, print_warning);
    ret->ns = ferry_strdup(so->ns ? so->ns : kube_client_namespace(ret->client));
    return 0;
}

void session_done(struct session *s)
{
    kube_client_free(s->client);
    free(s->ns);
    *s = (struct session){0};
}

int session_explain(struct ferry_error *err)
{
    struct ferry_error was = *err;
    int http = was.http;

    if (was.cls == FERRY_RETRY && http == 0) {
        ferry_fail(err, was.cls,
                   "%s; does the API server run? ('ferry up' starts one on this machine, "
                   "--kubeconfig names another)",
                   was.msg);
    } else if (was.cls == FERRY_DENIED && http == 0) { /* no server said so */
        ferry_fail(err, was.cls,
                   "%s; the certificates of kubeconfig and server do not fit: is it the kubeconfig "
                   "of another site, or of one that was set up anew?",
                   was.msg);
    } else if (was.cls == FERRY_DENIED) {
        ferry_fail(err, was.cls, "%s; the kubeconfig's user may not do this, or is not known there",
                   was.msg);
    }
    err->http = http;
    return -(int)err->cls;
}
