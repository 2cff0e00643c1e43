#include "cli/site_down.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/site_net.h"
#include "cli/site_plan.h"
#include "cli/site_state.h"
#include "cli/site_sweep.h"

enum {
    SUPERVISOR_GRACE_MS = 15000, /* it ends the others in this time */
    GRACE_MS = 3000,
    SWEEPS = 20, /* a process that forks while we look is found by the next look */
};

static size_t count_processes(const char *root, struct site_removed *r)
{
    size_t n;
    ferry_cleanup_free struct site_found *found = site_sweep(root, &n);

    for (size_t i = 0; i < n; i++) {
        if (found[i].sandbox) {
            r->sandboxes++;
        } else {
            r->processes++;
        }
    }
    return n;
}

static int end_supervisor(const char *root, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/site.json", root);
    site_cleanup_state struct site_state *state = NULL;

    /* Unreadable state is no reason to stop: the sweep finds the supervisor as well. */
    if (site_state_read(path, &state, NULL) < 0 || !site_process_alive(&state->supervisor)) {
        return 0;
    }
    return ferry_proc_end(state->supervisor.pid, state->supervisor.start_time, SUPERVISOR_GRACE_MS,
                          err);
}

/* Sandboxes hold virtual machines whose site is going away: no shutdown is waited for. */
static int end_leftovers(const char *root, struct ferry_error *err)
{
    for (int round = 0; round < SWEEPS; round++) {
        size_t n;
        ferry_cleanup_free struct site_found *found = site_sweep(root, &n);

        if (n == 0) {
            return 0;
        }
        for (size_t i = 0; i < n; i++) {
            kill(found[i].pid, found[i].sandbox || round > 0 ? SIGKILL : SIGTERM);
        }
        for (size_t i = 0; i < n; i++) {
            int rc = ferry_proc_end(found[i].pid, found[i].start_time, GRACE_MS, err);

            if (rc < 0) {
                return ferry_wrap(err, "ending %s", found[i].name);
            }
        }
    }
    return ferry_fail(err, FERRY_FATAL, "processes of the site at %s appear faster than they end",
                      root);
}

/* Mount points at or below `root`, deepest first: later lines of mountinfo are mounted on earlier
 * ones. */
static int remove_mounts(const char *root)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    ferry_cleanup_free char **points = NULL;
    size_t n = 0, len = strlen(root);
    char *save = NULL;
    int removed = 0;

    if (ferry_read_file("/proc/self/mountinfo", 1 << 24, &b, NULL) < 0 || !b.data) {
        return 0;
    }
    for (char *line = strtok_r(b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char point[4096];

        if (sscanf(line, "%*d %*d %*s %*s %4095s", point) == 1 && strncmp(point, root, len) == 0 &&
            (point[len] == '/' || !point[len])) {
            points = ferry_xrealloc(points, n + 1, sizeof(*points));
            points[n++] = ferry_strdup(point);
        }
    }
    while (n-- > 0) {
        removed += umount2(points[n], MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
        free(points[n]);
    }
    return removed;
}

/* Only what a site puts there: a directory given by mistake loses nothing else. */
static int remove_directory(const char *root, struct ferry_error *err)
{
    static const char *const parts[] = {"log", "api", NULL};

    for (int i = 0; i < SITE_MAX_NODES; i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/node%d", root, i + 1);
        int rc = ferry_remove_tree(path, err);

        if (rc < 0) {
            return rc;
        }
    }
    for (const char *const *p = parts; *p; p++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", root, *p);
        int rc = ferry_remove_tree(path, err);

        if (rc < 0) {
            return rc;
        }
    }
    ferry_cleanup_free char *state = ferry_asprintf("%s/site.json", root);
    ferry_cleanup_free char *lock = ferry_asprintf("%s/lock", root);
    unlink(state);
    unlink(lock);
    if (rmdir(root) < 0 && errno != ENOTEMPTY && errno != ENOENT) {
        return ferry_fail_errno(err, errno, "removing %s", root);
    }
    return 0;
}

int site_down(const char *root, bool keep_data, struct site_removed *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *state = ferry_asprintf("%s/site.json", root);
    bool has_state = access(state, F_OK) == 0;
    struct site_removed r = {0};

    count_processes(root, &r);
    int rc = end_supervisor(root, err);
    if (rc == 0) {
        rc = end_leftovers(root, err);
    }
    if (rc == 0) {
        rc = r.namespaces = site_net_remove(root, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (has_state) {
        r.mounts = remove_mounts(root);
    }
    if (has_state && !keep_data) {
        rc = remove_directory(root, err);
        if (rc < 0) {
            return rc;
        }
        r.directory = true;
    }
    *ret = r;
    return 0;
}
