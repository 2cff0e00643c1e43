#include "cli/site/site_down.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/site/site_net.h"
#include "cli/site/site_plan.h"
#include "cli/site/site_state.h"
#include "cli/site/site_sweep.h"

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

/* Whatever else is in the directory is somebody else's. */
static const char *const parts[] = {"log",   "api",   "node1", "node2", "node3",
                                    "node4", "node5", "node6", "node7", "node8"};
enum { N_PARTS = FERRY_COUNT(parts) };
static_assert(N_PARTS == SITE_MAX_NODES + 2, "all that a site puts into its directory");

bool site_down_unmounts(const char *root, const char *point)
{
    size_t len = strlen(root);

    for (size_t i = 0; i < N_PARTS; i++) {
        size_t n = strlen(parts[i]);

        if (strncmp(point, root, len) == 0 && point[len] == '/' &&
            strncmp(point + len + 1, parts[i], n) == 0 &&
            (point[len + 1 + n] == '/' || !point[len + 1 + n])) {
            return true;
        }
    }
    return false;
}

static void add_word(char ***list, size_t *n, const char *word)
{
    *list = ferry_xrealloc(*list, *n + 2, sizeof(**list));
    (*list)[(*n)++] = ferry_strdup(word);
    (*list)[*n] = NULL;
}

/* What somebody mounted in what is about to be removed: the files in it are not the site's. Later
 * lines are mounted on earlier ones. */
static int remove_mounts(const char *root, struct ferry_error *err)
{
    char real[PATH_MAX], text[8192];
    FILE *f = setmntent("/proc/self/mounts", "re");
    site_cleanup_strings char **points = NULL;
    struct mntent m;
    size_t n = 0;

    if (!f || !realpath(root, real)) {
        int saved = errno;

        if (f) {
            endmntent(f);
        }
        return ferry_fail_errno(err, saved, "looking for mounts below %s", root);
    }
    while (getmntent_r(f, &m, text, sizeof(text))) {
        if (site_down_unmounts(real, m.mnt_dir)) {
            add_word(&points, &n, m.mnt_dir);
        }
    }
    endmntent(f);
    for (size_t i = n; i-- > 0;) {
        if (umount2(points[i], MNT_DETACH | UMOUNT_NOFOLLOW) < 0) {
            return ferry_fail_errno(err, errno, "unmounting %s", points[i]);
        }
    }
    return (int)n;
}

/* Only what a site puts there: a directory given by mistake loses nothing else. */
static int remove_directory(const char *root, bool made, const char **ret_stays,
                            struct ferry_error *err)
{
    ferry_cleanup_free char *state = ferry_asprintf("%s/site.json", root);
    ferry_cleanup_free char *lock = ferry_asprintf("%s/lock", root);

    for (size_t i = 0; i < N_PARTS; i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", root, parts[i]);
        int rc = ferry_remove_tree(path, err);

        if (rc < 0) {
            return rc;
        }
    }
    unlink(state);
    unlink(lock);
    if (!made) {
        *ret_stays = "it was there before the site";
    } else if (rmdir(root) < 0 && errno == ENOTEMPTY) {
        *ret_stays = "something else is in it";
    } else if (access(root, F_OK) == 0) {
        *ret_stays = "it is in use"; /* a mount point, say */
    }
    return 0;
}

int site_down(const char *root, bool keep_data, struct site_removed *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *file = ferry_asprintf("%s/site.json", root);
    site_cleanup_state struct site_state *state = NULL;
    bool has_state = access(file, F_OK) == 0;
    struct site_removed r = {0};

    /* What cannot be read does not say that the directory may go. */
    struct site_made made = {0};
    if (site_state_read(file, &state, NULL) == 0) {
        made = state->made;
    }

    count_processes(root, &r);
    int rc = end_supervisor(root, err);
    if (rc == 0) {
        rc = end_leftovers(root, err);
    }
    if (rc == 0) {
        rc = r.namespaces = site_net_remove(root, made.netns, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (has_state && !keep_data) {
        rc = r.mounts = remove_mounts(root, err);
        rc = rc < 0 ? rc : remove_directory(root, made.root, &r.stays, err);
        if (rc < 0) {
            return rc;
        }
        r.directory = true;
    }
    *ret = r;
    return 0;
}
