/* The gate: a lock driver that libvirtd loads (lock_manager = "ferry").
 *
 * libvirtd asks its lock driver whenever it is about to let a guest's vCPUs run: at the start, at a
 * resume, when a guest has come in, and also when it believes that a move failed and wants the
 * source to go on. The last is a guess whenever the target's answer was lost, and a wrong one when
 * the target runs. So the answer here is the launcher's, by two files in the directory that
 * FERRY_GATE_DIR names (launcher/move/gate.h):
 *
 *   closed   made by the launcher: no vCPU may be started
 *   started  made here: the launcher finds that the guest was let run
 *
 * Here "started" is made first and "closed" looked for then; the launcher that closes the gate does
 * it in the opposite order. So one of the two sees the other, whatever the timing: either nothing
 * starts, or it is known.
 *
 * The interface is libvirt's, version 1.0 since 2011, which installs no header for it: only what is
 * used of it is declared below. This file is loaded into libvirtd: nothing of Ferry is linked to
 * it, and it is built without sanitizers. */
#include <errno.h>
#include <fcntl.h>
#include <libvirt/virterror.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1000000, VERSION_MAJOR = VERSION / 1000000, REGISTER_ONLY = 1 << 0 };

struct manager;
struct parameter;

struct driver {
    unsigned version, flags;
    int (*init)(unsigned version, const char *config_file, unsigned flags);
    int (*deinit)(void);
    int (*new_)(struct manager *m, unsigned type, size_t n, struct parameter *p, unsigned flags);
    void (*free_)(struct manager *m);
    int (*add_resource)(struct manager *m, unsigned type, const char *name, size_t n,
                        struct parameter *p, unsigned flags);
    int (*acquire)(struct manager *m, const char *state, unsigned flags, int action, int *fd);
    int (*release)(struct manager *m, char **state, unsigned flags);
    int (*inquire)(struct manager *m, char **state, unsigned flags);
};

/* libvirt's own; absent when this is loaded by something else. */
extern void virReportErrorHelper(int domain, int code, const char *file, const char *function,
                                 size_t line, const char *fmt, ...)
    __attribute__((weak, format(printf, 6, 7)));

static int refuse(const char *why)
{
    if (virReportErrorHelper) {
        virReportErrorHelper(VIR_FROM_LOCKING, VIR_ERR_OPERATION_DENIED, __FILE__, __func__,
                             __LINE__, "%s", why);
    }
    return -1;
}

static int open_directory(void)
{
    const char *path = getenv("FERRY_GATE_DIR");

    return path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int pass(int dir)
{
    int fd = openat(dir, "started", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool made = fd >= 0;

    if (!made && errno != EEXIST) {
        return refuse("Ferry's gate cannot be written to");
    }
    if (made) {
        close(fd);
    }
    if (faccessat(dir, "closed", F_OK, 0) < 0 && errno == ENOENT) {
        return 0;
    }
    if (made) {
        unlinkat(dir, "started", 0);
    }
    return refuse("the guest is being moved, and it is not settled yet where it runs");
}

static int gate_init(unsigned version, const char *config_file, unsigned flags)
{
    int dir = open_directory();

    (void)config_file;
    (void)flags;
    if (version / 1000000 != VERSION_MAJOR) {
        return refuse("Ferry's gate does not know this version of lock drivers");
    }
    if (dir < 0) {
        return refuse("FERRY_GATE_DIR does not name a directory");
    }
    close(dir);
    return 0;
}

static int gate_deinit(void)
{
    return 0;
}

static int gate_new(struct manager *m, unsigned type, size_t n, struct parameter *p, unsigned flags)
{
    (void)m;
    (void)type;
    (void)n;
    (void)p;
    (void)flags;
    return 0;
}

static void gate_free(struct manager *m)
{
    (void)m;
}

static int gate_add_resource(struct manager *m, unsigned type, const char *name, size_t n,
                             struct parameter *p, unsigned flags)
{
    (void)name;
    return gate_new(m, type, n, p, flags);
}

static int gate_acquire(struct manager *m, const char *state, unsigned flags, int action, int *fd)
{
    (void)m;
    (void)state;
    (void)action;
    if (fd) {
        *fd = -1;
    }
    if (flags & REGISTER_ONLY) {
        return 0;
    }
    int dir = open_directory();
    int rc = dir < 0 ? refuse("Ferry's gate is not there") : pass(dir);
    if (dir >= 0) {
        close(dir);
    }
    return rc;
}

static int gate_no_state(struct manager *m, char **state, unsigned flags)
{
    (void)m;
    (void)flags;
    if (state) {
        *state = NULL;
    }
    return 0;
}

extern struct driver virLockDriverImpl;
__attribute__((visibility("default"))) struct driver virLockDriverImpl = {
    .version = VERSION,
    .init = gate_init,
    .deinit = gate_deinit,
    .new_ = gate_new,
    .free_ = gate_free,
    .add_resource = gate_add_resource,
    .acquire = gate_acquire,
    .release = gate_no_state,
    .inquire = gate_no_state,
};
