#include "pods/host_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/wire/wire_user.h"
#include "base/fd.h"
#include "base/str.h"

/* The user of all guests of sites before each had its own. */
enum { COMMON_USER = 61201 };

/* The next name of a path; NULL at its end. "." and empty ones are none. */
static const char *next_name(const char *at, size_t *ret_n)
{
    for (;;) {
        at += strspn(at, "/");
        *ret_n = strcspn(at, "/");
        if (*ret_n == 0) {
            return NULL;
        }
        if (!(*ret_n == 1 && *at == '.')) {
            return at;
        }
        at += 1;
    }
}

static bool has_parent(const char *path)
{
    size_t n;

    for (const char *at = path; (at = next_name(at, &n)); at += n) {
        if (n == 2 && memcmp(at, "..", 2) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the path begins with all names of the root. */
static bool is_below(const char *root, const char *path)
{
    size_t n, m;

    while ((root = next_name(root, &n))) {
        path = next_name(path, &m);
        if (!path || n != m || memcmp(root, path, n) != 0) {
            return false;
        }
        root += n;
        path += m;
    }
    return true;
}

size_t host_path_root(const char *roots, const char *path, const char **ret_at)
{
    if (!path || *path != '/' || has_parent(path)) {
        return 0;
    }
    while (roots && *roots) {
        size_t n = strcspn(roots, ":");
        ferry_cleanup_free char *root = ferry_strndup(roots, n);

        if (*root == '/' && !has_parent(root) && is_below(root, path)) {
            *ret_at = roots;
            return n;
        }
        roots += n + (roots[n] == ':');
    }
    return 0;
}

/* ---- the walk ---------------------------------------------------------------------------------
 */

static bool is_guest(unsigned id)
{
    return id == COMMON_USER || wire_user_is_guest(id);
}

static bool guest_writes(const struct stat *st)
{
    return is_guest(st->st_uid) || (is_guest(st->st_gid) && st->st_mode & S_IWGRP) ||
           st->st_mode & S_IWOTH;
}

static int open_next(int at, const char *name, bool make)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT && make && (mkdirat(at, name, 0755) == 0 || errno == EEXIST)) {
        fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    return fd;
}

/* What the walk came upon: a name that is not there is somebody else's to tell. */
static int stopped(int fd, const char *name, const char *path, struct ferry_error *err)
{
    struct stat st;
    int saved = errno;

    if (saved == ENOENT) {
        return 0;
    }
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
        return ferry_fail(err, FERRY_DENIED, "%s: '%s' is a link; name what it leads to", path,
                          name);
    }
    return saved == ENOTDIR ? 0 : ferry_fail_errno(err, saved, "opening '%s' of %s", name, path);
}

/* From the root on, one name after the other. The last one may belong to a guest. */
static int walk(int root, const char *path, const char *rest, enum host_path_kind kind,
                struct ferry_error *err)
{
    ferry_cleanup_fd int fd = root;
    size_t n, after;

    for (const char *at = rest; (at = next_name(at, &n)); at += n) {
        ferry_cleanup_free char *name = ferry_strndup(at, n);
        bool last = !next_name(at + n, &after);
        struct stat st;

        if (fstat(fd, &st) < 0 || guest_writes(&st)) {
            return ferry_fail(err, FERRY_DENIED,
                              "%s: '%s' is in a directory that a guest may write to", path, name);
        }
        if (last && kind == HOST_PATH_DEVICE) {
            return 0;
        }
        int next = open_next(fd, name, kind == HOST_PATH_MADE && !last);
        if (next < 0) {
            return stopped(fd, name, path, err);
        }
        ferry_closep(&fd);
        fd = next;
    }
    return 0;
}

int host_path_check(const char *prefix, const char *roots, const char *path,
                    enum host_path_kind kind, struct ferry_error *err)
{
    const char *at = NULL;
    size_t n = host_path_root(roots ? roots : HOST_PATH_ROOTS, path, &at);

    if (n == 0) {
        return ferry_fail(err, FERRY_DENIED,
                          "%s is not below a directory that this node allows for volumes (%s); its "
                          "administrator sets them by ferry-pods --host-path-roots",
                          path, roots ? roots : HOST_PATH_ROOTS);
    }
    ferry_cleanup_free char *root = ferry_asprintf("%s%.*s", prefix ? prefix : "", (int)n, at);
    if (kind == HOST_PATH_MADE && ferry_mkdir_p(root, 0755, err) < 0) {
        return -(int)err->cls;
    }
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : ferry_fail_errno(err, errno, "opening %s", root);
    }
    /* Past the names of the root, however many slashes are between them. */
    const char *rest = path;
    size_t skip, len;
    for (const char *r = at; r < at + n && (r = next_name(r, &skip)) && r < at + n; r += skip) {
        skip = skip < (size_t)(at + n - r) ? skip : (size_t)(at + n - r);
        rest = next_name(rest, &len) + len;
    }
    return walk(fd, path, rest, kind, err);
}
