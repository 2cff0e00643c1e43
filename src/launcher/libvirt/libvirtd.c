/* Theory of operation. In session mode libvirtd keeps its pid in $XDG_RUNTIME_DIR/libvirt/
 * libvirtd.pid, as root we have it keep it beside its socket, locked as long as it lives; that file
 * is how a new launcher finds the daemon of its predecessor. libvirtd exits 0 when its own start
 * fails, so any end counts as a failure and the pause before the next try grows. */
#include "launcher/libvirt/libvirtd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "launcher/libvirt/daemon_config.h"
#include "launcher/libvirt/probes.h"

#define PAUSE_MIN_NS (100 * FERRY_NS_PER_MS)
#define PAUSE_MAX_NS (5 * FERRY_NS_PER_S)
#define SYSTEM_DIR "/etc/libvirt"
#define SETTLED_NS (10 * FERRY_NS_PER_S)

struct libvirtd {
    char *program, *pid_file;
    char *config; /* as root; NULL = where libvirtd looks by itself */
    pid_t pid;    /* 0 = none known */
    uint64_t start_time;
    int64_t started_ns, next_try_ns, pause_ns;
};

/* $NAME/libvirt, or `fallback`/libvirt below the home directory. */
static int libvirt_dir(const char *variable, const char *fallback, char **ret,
                       struct ferry_error *err)
{
    const char *dir = getenv(variable), *home = getenv("HOME");

    if (!ferry_str_empty(dir)) {
        *ret = ferry_asprintf("%s/libvirt", dir);
    } else if (fallback && !ferry_str_empty(home)) {
        *ret = ferry_asprintf("%s/%s/libvirt", home, fallback);
    } else {
        return ferry_fail(err, FERRY_INVALID,
                          "%s is not set: libvirtd would not know where its files are", variable);
    }
    return 0;
}

/* As root there is one place for QEMU's settings, and a host's own may be there. */
static int check_ours(const char *path, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    size_t n = strlen(DAEMON_CONFIG_MARK);

    if (ferry_read_file(path, 1 << 20, &text, NULL) == 0 && text.len &&
        (text.len < n || memcmp(text.data, DAEMON_CONFIG_MARK, n) != 0)) {
        return ferry_fail(err, FERRY_CONFLICT,
                          "%s belongs to this host: as root, run in a sandbox with an /etc/libvirt "
                          "of its own, or use the host's libvirt (--libvirt qemu:///system)",
                          path);
    }
    return 0;
}

static int settings_dir(const struct libvirtd_config *cfg, char **ret, struct ferry_error *err)
{
    if (cfg->system) {
        *ret = ferry_strdup(SYSTEM_DIR);
        return check_ours(SYSTEM_DIR "/qemu.conf", err);
    }
    return libvirt_dir("XDG_CONFIG_HOME", ".config", ret, err);
}

static int write_settings(const struct libvirtd_config *cfg, struct ferry_error *err)
{
    struct daemon_config c = {.socket_dir = cfg->socket_dir, .host_uuid = cfg->host_uuid};
    ferry_cleanup_free char *dir = NULL;

    if (settings_dir(cfg, &dir, err) < 0 || ferry_mkdir_p(dir, 0700, err) < 0) {
        return ferry_wrap(err, "settings of libvirtd");
    }
    ferry_cleanup_free char *daemon_path =
        ferry_asprintf("%s/libvirtd.conf", cfg->system ? cfg->socket_dir : dir);
    ferry_cleanup_free char *qemu_path = ferry_asprintf("%s/qemu.conf", dir);
    ferry_cleanup_free char *daemon_text = daemon_config_libvirtd(&c);
    ferry_cleanup_free char *qemu_text =
        daemon_config_qemu(cfg->system, cfg->gate_driver != NULL, cfg->disk_dir);
    if (ferry_write_file(daemon_path, daemon_text, strlen(daemon_text), 0600, err) < 0 ||
        ferry_write_file(qemu_path, qemu_text, strlen(qemu_text), 0600, err) < 0) {
        return ferry_wrap(err, "settings of libvirtd");
    }
    return 0;
}

int libvirtd_new(const struct libvirtd_config *cfg, struct libvirtd **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *run_dir = NULL;
    int rc = write_settings(cfg, err);

    if (cfg->gate_driver) { /* for libvirtd alone, which inherits them */
        setenv("LIBVIRT_LOCK_MANAGER_PLUGIN_DIR", cfg->gate_driver, 1);
        setenv("FERRY_GATE_DIR", cfg->gate_dir, 1);
    }
    if (rc < 0 ||
        (!cfg->system && (rc = libvirt_dir("XDG_RUNTIME_DIR", NULL, &run_dir, err)) < 0)) {
        return rc;
    }
    struct libvirtd *d = ferry_xcalloc(1, sizeof(*d));
    d->program = ferry_strdup(cfg->program);
    d->pid_file = ferry_asprintf("%s/libvirtd.pid", cfg->system ? cfg->socket_dir : run_dir);
    d->config = cfg->system ? ferry_asprintf("%s/libvirtd.conf", cfg->socket_dir) : NULL;
    d->pause_ns = PAUSE_MIN_NS;
    *ret = d;
    return 0;
}

void libvirtd_free(struct libvirtd *d)
{
    if (d) {
        free(d->program);
        free(d->pid_file);
        free(d->config);
        free(d);
    }
}

/* Pid of the process that holds the lock on the pid file; 0 when there is none. */
static pid_t running_daemon(const struct libvirtd *d)
{
    ferry_cleanup_fd int fd = open(d->pid_file, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK) {
        return 0;
    }
    return lock.l_pid;
}

/* What the one before left when it was killed. */
static void end_probes(void)
{
    ferry_cleanup_free char *config = NULL;
    const char *dirs[] = {"/var/lib/libvirt", NULL, NULL};

    if (libvirt_dir("XDG_CONFIG_HOME", ".config", &config, NULL) == 0) {
        dirs[1] = config;
    }
    probes_end(dirs);
}

static void start(struct libvirtd *d)
{
    const char *const argv[] = {
        d->program, d->config ? "--config" : NULL, d->config, "--pid-file", d->pid_file, NULL};
    struct ferry_error err;
    int64_t now = ferry_now_ns();

    d->started_ns = now;
    d->next_try_ns = now + d->pause_ns;
    if (ferry_spawn(&(struct ferry_spawn){.argv = argv, .out_fd = -1, .new_session = true}, &d->pid,
                    &err) < 0) {
        ferry_error("cannot start libvirtd", F_ERR(&err));
        d->pid = 0;
        return;
    }
    d->start_time = ferry_proc_start_time(d->pid);
    ferry_info("libvirtd started", F_INT("pid", d->pid));
}

bool libvirtd_tend(struct libvirtd *d)
{
    int64_t now = ferry_now_ns();

    if (d->pid) {
        waitpid(d->pid, NULL, WNOHANG); /* reaps it when it is our child */
        if (ferry_proc_start_time(d->pid) == d->start_time) {
            return true;
        }
        if (now - d->started_ns >= SETTLED_NS) {
            d->pause_ns = PAUSE_MIN_NS;
        }
        ferry_warn("libvirtd died, restarting it", F_INT("pid", d->pid),
                   F_INT("pauseMs", d->pause_ns / FERRY_NS_PER_MS));
        d->pid = 0;
        d->next_try_ns = now + d->pause_ns;
        d->pause_ns = d->pause_ns * 2 < PAUSE_MAX_NS ? d->pause_ns * 2 : PAUSE_MAX_NS;
    }
    if (now < d->next_try_ns) {
        return false;
    }
    pid_t pid = running_daemon(d);
    if (pid > 0) {
        d->pid = pid;
        d->start_time = ferry_proc_start_time(pid);
        d->started_ns = now;
        ferry_info("libvirtd adopted", F_INT("pid", pid));
    } else {
        end_probes();
        start(d);
    }
    return d->pid != 0;
}

void libvirtd_kill(struct libvirtd *d)
{
    if (d->pid && ferry_proc_start_time(d->pid) == d->start_time) {
        kill(d->pid, SIGKILL);
    }
}

void libvirtd_stop(struct libvirtd *d)
{
    struct ferry_error err;

    if (d->pid && ferry_proc_end(d->pid, d->start_time, 5000, &err) < 0) {
        ferry_warn("libvirtd does not exit", F_ERR(&err));
    }
    d->pid = 0;
}
