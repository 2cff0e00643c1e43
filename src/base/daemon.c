#include "base/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

int ferry_daemon_parse(const struct ferry_daemon *d, int argc, char **argv, struct ferry_error *err)
{
    int first = ferry_options_parse(d->command, argc, argv, err);

    if (first < 0) {
        return first;
    }
    if (first < argc) {
        return ferry_fail(err, FERRY_INVALID, "unexpected argument '%s' (see %s --help)",
                          argv[first], d->command->name);
    }
    int rc = ferry_log_options_apply(d->program, d->log, err);
    return rc == 0 && d->check ? d->check(d->ctx, err) : rc;
}

int ferry_daemon_main(const struct ferry_daemon *d, int argc, char **argv)
{
    struct ferry_error err = {0};

    if (ferry_daemon_parse(d, argc, argv, &err) < 0) {
        return ferry_die(d->program, FERRY_EXIT_USAGE, &err);
    }
    if (d->root_for && geteuid() != 0) {
        ferry_fail(&err, FERRY_DENIED, "needs root: %s", d->root_for);
        return ferry_die(d->program, FERRY_EXIT_FAILED, &err);
    }
    if (d->signal) {
        ferry_signals_block_also(d->signal);
    } else {
        ferry_signals_block();
    }
    int rc = d->run(d->ctx, &err);
    return rc < 0 && rc != -FERRY_CANCELLED ? ferry_die(d->program, FERRY_EXIT_FAILED, &err)
                                            : FERRY_EXIT_OK;
}

bool ferry_daemon_stopping(void)
{
    static bool told;

    told = told || ferry_signals_wait(0) != 0;
    return told;
}

/* ---- places --------------------------------------------------------------------------------- */

int ferry_daemon_lock(const char *root, const char *file, const char *program,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *dir = ferry_asprintf("%s/run/ferry", root);
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, file);
    int rc = ferry_mkdir_p(dir, 0711, err);

    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening %s", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return ferry_fail(err, FERRY_CONFLICT, "another %s works on %s already", program,
                          *root ? root : "this host");
    }
    return ferry_take_fd(&fd);
}

int ferry_daemon_check_root(const char *root, struct ferry_error *err)
{
    return !*root || *root == '/'
               ? 0
               : ferry_fail(err, FERRY_INVALID, "--root: '%s' is not an absolute path", root);
}

char *ferry_daemon_beside(const char *path)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0) {
        return NULL;
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    return slash ? ferry_asprintf("%.*s/%s", (int)(slash - self), self, path) : NULL;
}

void ferry_daemon_raise_fds(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}
