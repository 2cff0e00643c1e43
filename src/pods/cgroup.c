#include "pods/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/oom_kills.h"
#include "base/str.h"

#define PARENT "ferry-pods"
#define PODS_DIR_ATTRIBUTE "trusted.ferry.pods"

enum { TEXT_MAX = 1 << 20, BUSY_TRIES = 50, BUSY_MS = 10 };

static char *group_of(const struct cgroup_layout *l, enum cgroup_controller c, const char *uid)
{
    return ferry_asprintf("%s/" PARENT "/%s/%s", l->of[c].mount, l->node, uid);
}

/* True for the first of the controllers that share a mount: a group is made and left once. */
static bool is_first(const struct cgroup_layout *l, enum cgroup_controller c)
{
    for (enum cgroup_controller i = 0; i < c; i++) {
        if (ferry_streq(l->of[i].mount, l->of[c].mount)) {
            return false;
        }
    }
    return l->of[c].mount != NULL;
}

/* Not ferry_write_file(): these files are not replaced, they are written to. */
static int write_value(const char *dir, const char *file, const char *value,
                       struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, file);
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, value, strlen(value)) < 0) {
        return ferry_fail_errno(err, errno, "writing '%s' to %s", value, path);
    }
    return 0;
}

static int make_group(const char *path, struct ferry_error *err)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST
               ? 0
               : ferry_fail_errno(err, errno, "making control group %s", path);
}

/* ---- the host ---------------------------------------------------------------------------------
 */

/* In the unified hierarchy a group has the controllers that its parent hands down. */
static int hand_down(const struct cgroup_layout *l, enum cgroup_controller c,
                     struct ferry_error *err)
{
    const char *mount = l->of[c].mount;
    ferry_cleanup_free char *word = ferry_asprintf("+%s", cgroup_controller_name(c));
    ferry_cleanup_free char *parent = ferry_asprintf("%s/" PARENT, mount);
    ferry_cleanup_free char *node = ferry_asprintf("%s/%s", parent, l->node);
    int rc = write_value(mount, "cgroup.subtree_control", word, err);

    rc = rc < 0 ? rc : write_value(parent, "cgroup.subtree_control", word, err);
    return rc < 0 ? rc : write_value(node, "cgroup.subtree_control", word, err);
}

/* Whether the group that was opened is still the one of that path. */
static bool is_there(int fd, const char *path)
{
    struct stat opened, there;

    return fstat(fd, &opened) == 0 && stat(path, &there) == 0 && opened.st_dev == there.st_dev &&
           opened.st_ino == there.st_ino;
}

/* A group that nobody has taken for one of the dead by the time it is ours; its descriptor. */
static int make_and_lock(const char *path, struct ferry_error *err)
{
    for (int i = 0; i < BUSY_TRIES; i++) {
        if (make_group(path, err) < 0) {
            return -(int)err->cls;
        }
        ferry_cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_SH) == 0 && is_there(fd, path)) {
            return ferry_take_fd(&fd);
        }
    }
    return ferry_fail(err, FERRY_RETRY, "control group %s goes away again and again", path);
}

static void remove_left(const char *path)
{
    if (rmdir(path) == 0) {
        ferry_info("removed a control group that no pod has", F_STR("group", path));
    }
}

/* Calls `look` for each sub-directory of `path`. */
static void sweep(const char *path, void (*look)(const char *path, const char *name, void *ctx),
                  void *ctx)
{
    DIR *d = opendir(path);

    for (struct dirent *e; d && (e = readdir(d));) {
        ferry_cleanup_free char *child = ferry_asprintf("%s/%s", path, e->d_name);

        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            look(child, e->d_name, ctx);
        }
    }
    if (d) {
        closedir(d);
    }
}

static void remove_empty(const char *path, const char *name, void *ctx)
{
    (void)name, (void)ctx;
    remove_left(path);
}

static void remove_without_pod(const char *path, const char *name, void *pods_dir)
{
    ferry_cleanup_free char *pod = ferry_asprintf("%s/%s", (const char *)pods_dir, name);

    if (access(pod, F_OK) < 0 && errno == ENOENT) {
        remove_left(path);
    }
}

/* The same for each start of a node's agent, another for other nodes, which may see their pods at
 * the same path. NULL when the directory is not there. */
static char *name_of(const char *pods_dir)
{
    struct stat st;

    return stat(pods_dir, &st) < 0 ? NULL
                                   : ferry_asprintf("node-%llx-%llx", (unsigned long long)st.st_dev,
                                                    (unsigned long long)st.st_ino);
}

/* The directory of pods that a node's group was made for, as far as it is seen from here. */
static char *pods_dir_of(int fd, const char *name)
{
    char path[PATH_MAX] = "";
    ssize_t n = fgetxattr(fd, PODS_DIR_ATTRIBUTE, path, sizeof(path) - 1);
    ferry_cleanup_free char *there = n > 0 ? name_of(path) : NULL;

    return ferry_streq(there, name) ? ferry_strdup(path) : NULL;
}

/* A node's group whose agent is no more: what is empty in it goes, and then it. It is removed under
 * the lock: one who locks it next sees that it is gone. The agent may also just be away for a
 * moment: where its pods can be seen, the groups of those stay, which tell how they ended. */
static void remove_dead(const char *path, const char *name, void *own)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!ferry_streq(name, own) && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        is_there(fd, path)) {
        ferry_cleanup_free char *pods_dir = pods_dir_of(fd, name);

        sweep(path, pods_dir ? remove_without_pod : remove_empty, pods_dir);
        remove_left(path);
    }
}

static int open_place(const char *pods_dir, struct cgroup_layout *l, enum cgroup_controller c,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *parent = ferry_asprintf("%s/" PARENT, l->of[c].mount);
    ferry_cleanup_free char *node = ferry_asprintf("%s/%s", parent, l->node);
    int rc = make_group(parent, err);

    if (rc == 0 && is_first(l, c)) {
        sweep(parent, remove_dead, l->node);
        rc = make_and_lock(node, err);
        if (rc >= 0) {
            l->locks[l->n_locks++] = rc;
            (void)fsetxattr(rc, PODS_DIR_ATTRIBUTE, pods_dir, strlen(pods_dir), 0);
            sweep(node, remove_without_pod, (void *)(uintptr_t)pods_dir);
        }
    }
    return rc < 0 || !l->of[c].unified ? rc < 0 ? rc : 0 : hand_down(l, c, err);
}

static char *node_name(const char *pods_dir)
{
    char *name = ferry_mkdir_p(pods_dir, 0711, NULL) < 0 ? NULL : name_of(pods_dir);

    if (!name) {
        ferry_warn("cannot read the directory of pods", F_STR("path", pods_dir));
    }
    return name ? name : ferry_strdup("node-0-0");
}

void cgroup_detect(const char *pods_dir, struct cgroup_layout *ret)
{
    ferry_cleanup_buf struct ferry_buf mounts = {0}, controllers = {0};
    struct ferry_error err;

    *ret = (struct cgroup_layout){0};
    if (ferry_read_file("/proc/self/mountinfo", TEXT_MAX, &mounts, &err) < 0 || !mounts.data) {
        ferry_warn("cannot read the mount table: pods run without limits", F_ERR(&err));
        return;
    }
    ferry_cleanup_free char *unified = cgroup_unified_mount(mounts.data);
    ferry_cleanup_free char *list = ferry_asprintf("%s/cgroup.controllers", unified ? unified : "");
    bool known = unified && ferry_read_file(list, TEXT_MAX, &controllers, NULL) == 0;
    cgroup_layout_read(mounts.data, known && controllers.data ? controllers.data : "", ret);
    ret->node = node_name(pods_dir);
    for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!ret->of[c].mount) {
            ferry_info("control groups are not available",
                       F_STR("controller", cgroup_controller_name(c)));
        } else if (open_place(pods_dir, ret, c, &err) < 0) {
            ferry_warn("pods run without control group limits",
                       F_STR("controller", cgroup_controller_name(c)), F_ERR(&err));
            free(ret->of[c].mount);
            ret->of[c] = (struct cgroup_place){0};
        }
    }
}

/* ---- a pod ------------------------------------------------------------------------------------
 */

void cgroup_joins_done(struct cgroup_joins *j)
{
    for (char **f = j->files; *f; f++) {
        free(*f);
    }
    *j = (struct cgroup_joins){0};
}

static int write_plan(const struct cgroup_layout *l, const char *uid,
                      const struct cgroup_limits *limits, struct ferry_error *err)
{
    struct cgroup_write writes[CGROUP_WRITES_MAX];
    size_t n = cgroup_plan(limits, l, writes);

    for (size_t i = 0; i < n; i++) {
        ferry_cleanup_free char *group = group_of(l, writes[i].controller, uid);
        int rc = write_value(group, writes[i].file, writes[i].value, err);

        if (rc < 0 && !writes[i].may_miss) {
            return rc;
        }
    }
    return 0;
}

/* The node's groups are there from the start on, but whoever tidies up a host may take empty ones
 * away. */
static int make_again(const struct cgroup_layout *l, const char *mount, const char *group,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *parent = ferry_asprintf("%s/" PARENT, mount);
    ferry_cleanup_free char *node = ferry_asprintf("%s/%s", parent, l->node);
    int rc = make_group(parent, err);

    rc = rc < 0 ? rc : make_group(node, err);
    for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLERS && rc == 0; c++) {
        if (l->of[c].unified && ferry_streq(l->of[c].mount, mount)) {
            rc = hand_down(l, c, err);
        }
    }
    return rc < 0 ? rc : make_group(group, err);
}

int cgroup_make(const struct cgroup_layout *l, const char *uid, const struct cgroup_limits *limits,
                struct cgroup_joins *ret, struct ferry_error *err)
{
    size_t n = 0;

    for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!is_first(l, c)) {
            continue;
        }
        ferry_cleanup_free char *group = group_of(l, c, uid);
        int rc = make_group(group, err);

        if (rc < 0 && err->sys == ENOENT) {
            rc = make_again(l, l->of[c].mount, group, err);
        }
        if (rc < 0) {
            return rc;
        }
        ret->files[n++] = ferry_asprintf("%s/cgroup.procs", group);
    }
    return write_plan(l, uid, limits, err);
}

int cgroup_remove(const struct cgroup_layout *l, const char *uid, struct ferry_error *err)
{
    for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLERS; c++) {
        ferry_cleanup_free char *group = is_first(l, c) ? group_of(l, c, uid) : NULL;
        int rc = group ? rmdir(group) : 0;

        for (int i = 0; rc < 0 && errno == EBUSY && i < BUSY_TRIES; i++) {
            ferry_sleep_ms(BUSY_MS);
            rc = rmdir(group);
        }
        if (rc < 0 && errno != ENOENT) {
            return ferry_fail_errno(err, errno, "removing control group %s", group);
        }
    }
    return 0;
}

char *cgroup_kills_path(const struct cgroup_layout *l, const char *uid)
{
    if (!l->of[CGROUP_MEMORY].mount) {
        return NULL;
    }
    ferry_cleanup_free char *group = group_of(l, CGROUP_MEMORY, uid);
    return ferry_asprintf("%s/%s", group, cgroup_kills_file(l));
}

int64_t cgroup_kills(const struct cgroup_layout *l, const char *uid)
{
    ferry_cleanup_free char *path = cgroup_kills_path(l, uid);
    ferry_cleanup_buf struct ferry_buf text = {0};

    return path && ferry_read_file(path, TEXT_MAX, &text, NULL) == 0 && text.data
               ? ferry_oom_kills(text.data)
               : 0;
}
