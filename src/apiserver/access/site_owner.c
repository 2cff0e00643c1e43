/* Theory of operation. Root changes owners in a directory to which the server's user may write:
 * that user, were the server taken over, would put a link to somebody else's file there and wait.
 * So everything is opened through the directory's descriptor, links are not followed (but the one
 * that root made for secrets.key), and only a regular file of root's with one name is given away.
 */
#include "apiserver/access/site_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

enum { DATA_MODE = 01771, MODE_AS_IT_IS = -1 };

void site_owner(const char *data, struct ferry_user *ret)
{
    static const char *const places[] = {"/api.db", "/ca", ""};
    struct stat st;

    *ret = (struct ferry_user){0};
    for (size_t i = 0; i < FERRY_COUNT(places); i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s%s", data, places[i]);

        if (lstat(path, &st) == 0) {
            *ret = (struct ferry_user){.uid = st.st_uid, .gid = st.st_gid};
            return;
        }
    }
}

int site_check_user(const char *data, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/api.db", data);
    struct ferry_user owner;

    site_owner(data, &owner);
    if (geteuid() == 0 || geteuid() == owner.uid || access(path, F_OK) < 0 ||
        access(path, R_OK | W_OK) == 0) {
        return 0;
    }
    return ferry_fail(
        err, FERRY_DENIED,
        "the site in %s belongs to uid %u, and this is uid %u: run it as that user or "
        "as root",
        data, owner.uid, geteuid());
}

bool site_holds(const char *data, const char *file)
{
    const char *slash = strrchr(file, '/');
    ferry_cleanup_free char *dir =
        slash ? ferry_strndup(file, (size_t)(slash - file) + 1) : ferry_strdup(".");
    struct stat a, b;

    return stat(dir, &a) == 0 && stat(data, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* ---- giving ------------------------------------------------------------------------------------
 */

struct gift {
    struct ferry_user to;
    int mode;
};

static bool made_by_root(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
           st.st_uid == 0;
}

static int left_alone(const char *name, const char *why)
{
    ferry_warn("file of the site left alone", F_STR("name", name), F_STR("why", why));
    return 0;
}

static int give(int dir, const char *name, const struct gift *g, struct ferry_error *err)
{
    int follow = made_by_root(dir, name) ? 0 : O_NOFOLLOW;
    ferry_cleanup_fd int fd =
        openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | follow);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ELOOP)) {
        return errno == ENOENT ? 0 : left_alone(name, "a link that root did not make");
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ferry_fail_errno(err, errno, "giving %s to uid %u", name, g->to.uid);
    }
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || (st.st_uid != 0 && st.st_uid != g->to.uid)) {
        return left_alone(name, "not one file of root's");
    }
    if ((st.st_uid == g->to.uid && st.st_gid == g->to.gid) ||
        fchown(fd, g->to.uid, g->to.gid) == 0) {
        return g->mode == MODE_AS_IT_IS || fchmod(fd, (mode_t)g->mode) == 0
                   ? 0
                   : ferry_fail_errno(err, errno, "setting the mode of %s", name);
    }
    return ferry_fail_errno(err, errno, "giving %s to uid %u", name, g->to.uid);
}

static int give_ca(int data, const struct ferry_user *to, struct ferry_error *err)
{
    const struct gift g = {.to = *to, .mode = MODE_AS_IT_IS};
    int fd = openat(data, "ca", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int rc = 0;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
        return errno == ENOENT ? 0 : left_alone("ca", "no directory");
    }
    if (!d || fchown(fd, to->uid, to->gid) < 0) {
        rc = ferry_fail_errno(err, errno, "giving the CA to uid %u", to->uid);
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (e->d_name[0] != '.' || e->d_type == DT_REG) {
            rc = give(fd, e->d_name, &g, err);
        }
    }
    if (d) {
        closedir(d);
    } else {
        ferry_closep(&fd);
    }
    return rc;
}

/* What a node's programs, which are root, keep under these names on the same host is root's before
 * somebody else can make it. */
static int keep_for_node(int dir, struct ferry_error *err)
{
    static const struct {
        const char *name;
        mode_t mode;
    } places[] = {{"pki", 0711}, {"records", 0700}, {"disks", 0755}, {"libvirt-cache", 0755}};

    for (size_t i = 0; i < FERRY_COUNT(places); i++) {
        if (mkdirat(dir, places[i].name, places[i].mode) == 0
                ? fchmodat(dir, places[i].name, places[i].mode, 0) < 0
                : errno != EEXIST) {
            return ferry_fail_errno(err, errno, "making directory %s", places[i].name);
        }
    }
    return 0;
}

int site_give(const char *data, const struct ferry_user *to, gid_t controller,
              struct ferry_error *err)
{
    static const char *const closed[] = {"api.db",         "api.db-wal",  "api.db-shm",
                                         "api.db-journal", "secrets.key", "admin.kubeconfig"};
    const struct gift file = {.to = *to, .mode = 0600};
    const struct gift shared = {.to = {.uid = to->uid, .gid = controller}, .mode = 0640};
    int rc = ferry_mkdir_p(data, 0711, err);
    ferry_cleanup_fd int dir = rc < 0 ? -1 : open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (rc == 0 && (dir < 0 || fstat(dir, &st) < 0)) {
        rc = ferry_fail_errno(err, errno, "opening %s", data);
    }
    if (rc == 0 && st.st_uid == 0) {
        rc = keep_for_node(dir, err);
        if (rc == 0 && (fchown(dir, 0, to->gid) < 0 || fchmod(dir, DATA_MODE) < 0)) {
            rc = ferry_fail_errno(err, errno, "opening %s for uid %u", data, to->uid);
        }
    }
    for (size_t i = 0; rc == 0 && i < FERRY_COUNT(closed); i++) {
        rc = give(dir, closed[i], &file, err);
    }
    rc = rc < 0 ? rc : give(dir, "controller.kubeconfig", &shared, err);
    return rc < 0 ? rc : give_ca(dir, to, err);
}
