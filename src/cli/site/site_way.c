#include "cli/site/site_way.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "cli/site/site_plan.h"

const struct site_step *site_way_stop(const struct site_step *steps, size_t n, uid_t uid, gid_t gid)
{
    for (size_t i = 0; i < n; i++) {
        const struct site_step *s = &steps[i];
        /* The first that fits decides, as in the kernel: an owner does not fall back to "others".
         */
        mode_t pass = uid == s->uid ? S_IXUSR : gid == s->gid ? S_IXGRP : S_IXOTH;

        if (uid != 0 && !s->listed && !(s->mode & pass)) {
            return s;
        }
    }
    return NULL;
}

/* What there is of a path, without links in it; the caller's. Empty when even / cannot be read. */
static char *existing_part(const char *path)
{
    ferry_cleanup_free char *p = ferry_strdup(path);
    char real[PATH_MAX];

    while (!realpath(p, real)) {
        char *slash = strrchr(p, '/');

        if (!slash || slash == p) {
            return ferry_strdup("/");
        }
        *slash = '\0';
    }
    return ferry_strdup(real);
}

static int look(const char *path, struct site_step *ret, struct ferry_error *err)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        return ferry_fail_errno(err, errno, "looking at directory %s", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return ferry_fail(err, FERRY_INVALID, "%s is not a directory; choose another --root", path);
    }
    *ret = (struct site_step){.path = ferry_strdup(path),
                              .mode = st.st_mode & 07777,
                              .uid = st.st_uid,
                              .gid = st.st_gid,
                              .listed = getxattr(path, "system.posix_acl_access", NULL, 0) > 0};
    return 0;
}

static int judge(const struct site_step *steps, size_t n, struct ferry_error *err)
{
    const struct site_step *s = site_way_stop(steps, n, SITE_RELAY_ID, SITE_RELAY_ID);

    return !s ? 0
              : ferry_fail(err, FERRY_INVALID,
                           "the relays run as uid %d, which may not pass directory %s (mode %04o): "
                           "VMs would run here, but none could be moved; let others pass it "
                           "('chmod o+x %s') or choose another --root",
                           SITE_RELAY_ID, s->path, (unsigned)s->mode, s->path);
}

int site_way_check(const char *root, struct ferry_error *err)
{
    ferry_cleanup_free char *path = existing_part(root);
    struct site_step steps[PATH_MAX / 2];
    size_t n = 0;
    int rc = look("/", &steps[0], err);

    n += rc == 0;
    for (char *at = path + 1; rc == 0 && *at; at++) {
        if (at[1] != '/' && at[1]) {
            continue;
        }
        char after = at[1];

        at[1] = '\0';
        rc = look(path, &steps[n], err);
        n += rc == 0;
        at[1] = after;
    }
    rc = rc < 0 ? rc : judge(steps, n, err);
    while (n > 0) {
        free(steps[--n].path);
    }
    return rc;
}
