/* Verbs for the site on this machine: up, down, and the hidden one that is its supervisor. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/site/site_down.h"
#include "cli/site/site_state.h"
#include "cli/site/site_up.h"
#include "cli/site/supervise.h"
#include "cli/verbs/verbs.h"

/* Absolute, without a slash at the end; links and dots are left for the plan to judge. */
static char *absolute(const char *path)
{
    char cwd[PATH_MAX];
    char *full = path[0] == '/' || !getcwd(cwd, sizeof(cwd)) ? ferry_strdup(path)
                                                             : ferry_asprintf("%s/%s", cwd, path);

    for (size_t n = strlen(full); n > 1 && full[n - 1] == '/'; n--) {
        full[n - 1] = '\0';
    }
    return full;
}

/* Directory of this program, and of the guests that are installed with it. */
static int find_program_dirs(char **ret_bin, char **ret_guest, struct ferry_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (n < 0) {
        return ferry_fail_errno(err, errno, "finding this program's directory");
    }
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    *ret_bin = ferry_strdup(path);
    *strrchr(path, '/') = '\0';
    *ret_guest = ferry_asprintf("%s/lib/ferry/guest", path);
    return 0;
}

static void say_next(const struct site_plan *p)
{
    bool other = !ferry_streq(p->root, SITE_DEFAULT_ROOT);

    printf("Try it:\n\n"
           "  export KUBECONFIG=%s\n"
           "  ferry vm create demo --dirty-rate 4 --wait\n"
           "  ferry migrate demo --watch\n"
           "  kubectl get vmi,vmim\n"
           "  ferry down%s%s\n",
           p->admin_kubeconfig, other ? " --root " : "", other ? p->root : "");
}

static int up(const struct site_settings *s, struct ferry_error *err)
{
    site_cleanup_plan struct site_plan *p = NULL;
    int64_t begin = ferry_now_ns();

    ferry_signals_block();
    int rc = site_up(s, &p, err);
    double seconds = (double)(ferry_now_ns() - begin) / 1e9;
    if (rc < 0) {
        return rc;
    }
    if (rc == SITE_UP_WAS_RUNNING) {
        printf("The site at %s is up already: %zu node%s, API at %s.\n", p->root, p->n_nodes,
               p->n_nodes == 1 ? "" : "s", p->api_url);
    } else {
        printf("\nThe site at %s is %s after %.1f s. ", p->root,
               rc == SITE_UP_RESUMED ? "up again" : "up", seconds);
    }
    say_next(p);
    return FERRY_EXIT_OK;
}

int verb_up(int argc, char **argv, struct ferry_error *err)
{
    const char *root = SITE_DEFAULT_ROOT;
    struct site_settings s = {.nodes = -1, .port = -1};
    const struct ferry_option options[] = {
        {"nodes", 0, FERRY_OPTION_INT, &s.nodes, "N", "how many nodes, 1 to 8 (2)"},
        {"root", 0, FERRY_OPTION_STRING, &root, "DIR",
         "where everything of the site is kept (" SITE_DEFAULT_ROOT ")"},
        {"port", 0, FERRY_OPTION_INT, &s.port, "P", "port of the API server on 127.0.0.1 (6443)"},
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry up",
        .usage = "[OPTION]...",
        .summary =
            "Starts a site on this machine: an API server, a controller and some nodes, each\n"
            "in a network namespace of its own. Needs root. The host's own network is not\n"
            "touched.",
        .options = options,
    };
    int rc = cli_parse(&(struct cli_call){&cmd}, argc, argv, NULL, err);

    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *dir = absolute(root);
    ferry_cleanup_free char *bin = NULL, *guest = NULL;
    rc = find_program_dirs(&bin, &guest, err);
    if (rc < 0) {
        return rc;
    }
    s.root = dir;
    s.bin_dir = bin;
    s.guest_dir = guest;
    return up(&s, err);
}

static void say_removed(const char *root, const struct site_removed *r)
{
    if (!r->processes && !r->sandboxes && !r->namespaces && !r->directory) {
        printf("There is no site at %s.\n", root);
        return;
    }
    printf("The site at %s is gone: ended %d process%s and %d VM sandbox%s, removed %d network "
           "namespace%s",
           root, r->processes, r->processes == 1 ? "" : "es", r->sandboxes,
           r->sandboxes == 1 ? "" : "es", r->namespaces, r->namespaces == 1 ? "" : "s");
    if (r->mounts) {
        printf(", %d mount%s", r->mounts, r->mounts == 1 ? "" : "s");
    }
    printf("%s.\n", r->directory ? " and its files" : "");
    if (r->stays) {
        printf("The directory %s stays: %s.\n", root, r->stays);
    }
}

int verb_down(int argc, char **argv, struct ferry_error *err)
{
    const char *root = SITE_DEFAULT_ROOT;
    const struct ferry_option options[] = {
        {"root", 0, FERRY_OPTION_STRING, &root, "DIR",
         "where the site is kept (" SITE_DEFAULT_ROOT ")"},
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry down",
        .usage = "[OPTION]...",
        .summary = "Ends the site on this machine and removes all of it: virtual machines,\n"
                   "processes, network namespaces, files. Doing it twice is fine.",
        .options = options,
    };
    int rc = cli_parse(&(struct cli_call){&cmd}, argc, argv, NULL, err);

    if (rc < 0) {
        return rc;
    }
    if (geteuid() != 0) {
        return ferry_fail(err, FERRY_DENIED,
                          "'ferry down' removes network namespaces, which only root may do; run it "
                          "as root, for example with sudo");
    }
    ferry_cleanup_free char *dir = absolute(root);
    ferry_cleanup_fd int lock = site_state_lock(dir, err);
    if (lock < 0 && lock != -FERRY_NOT_FOUND) {
        return lock;
    }
    struct site_removed removed;
    rc = site_down(dir, false, &removed, err);
    if (rc < 0) {
        return rc;
    }
    site_state_drop_lock(dir);
    say_removed(dir, &removed);
    return FERRY_EXIT_OK;
}

int verb_supervise(int argc, char **argv, struct ferry_error *err)
{
    const char *root = NULL;
    const struct ferry_option options[] = {
        {"root", 0, FERRY_OPTION_STRING, &root, "DIR", "where the site is kept"},
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry supervise",
        .usage = "--root DIR",
        .summary = "Keeps the programs of a site running; 'ferry up' starts it.",
        .options = options,
    };
    int rc = cli_parse(&(struct cli_call){&cmd}, argc, argv, NULL, err);

    if (rc < 0) {
        return rc;
    }
    if (!root) {
        return ferry_fail(err, FERRY_INVALID, "--root is missing");
    }
    ferry_log_init("ferry-supervisor", FERRY_LOG_INFO, FERRY_LOG_TEXT);
    ferry_cleanup_free char *file = ferry_asprintf("%s/site.json", root);
    site_cleanup_state struct site_state *state = NULL;
    site_cleanup_plan struct site_plan *p = NULL;
    rc = site_state_read(file, &state, err);
    if (rc == 0) {
        rc = site_plan_new(&(struct site_settings){.root = root,
                                                   .bin_dir = state->bin_dir,
                                                   .guest_dir = state->guest_dir,
                                                   .nodes = state->nodes,
                                                   .port = state->port},
                           &p, err);
    }
    return rc == 0 ? supervise_run(p, err) : rc;
}
