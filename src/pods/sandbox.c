#include "pods/sandbox.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/user.h"
#include "pods/cache.h"
#include "pods/pod_dir.h"
#include "pods/pod_netns.h"
#include "pods/sandbox_args.h"

/* Device nodes for sandboxes. They cannot live in the pod's directory, because /run is usually
 * mounted nodev; the directory is closed to all but root, so the nodes themselves may be open. */
#define DEVICE_DIR "/dev/ferry"

/* A directory that is being removed. */
#define GONE_PREFIX ".gone-"

enum { KILLED = 128 + SIGKILL, START_DEADLINE_S = 20 };

struct sandbox_host sandbox_host_for(const struct sandbox_host *h, int64_t user)
{
    struct sandbox_host own = *h;

    if (user && !h->one_user) {
        own.vm_uid = (uid_t)user;
        own.vm_gid = (gid_t)user;
    }
    return own;
}

bool sandbox_uid_valid(const char *uid)
{
    size_t n = uid ? strlen(uid) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)uid[i]) && uid[i] != '-') {
            return false;
        }
    }
    return n >= 1 && n <= 64;
}

static char *file_of(const struct sandbox_host *h, const char *uid, const char *name)
{
    return ferry_asprintf("%s/%s/%s", h->pods_dir, uid, name);
}

static long long mtime_ms(const struct stat *st)
{
    return (long long)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / FERRY_NS_PER_MS;
}

/* ---- what is there ----------------------------------------------------------------------------
 */

/* The pid of PID 1 as the host sees it: 1 when the file is complete, 0 when there is nothing (yet),
 * or an error. */
static int read_identity(const struct sandbox_host *h, const char *uid, pid_t *ret,
                         struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, "sandbox.json");
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = ferry_read_file(path, 65536, &text, err);

    if (rc < 0) {
        return rc == -FERRY_NOT_FOUND ? 0 : rc;
    }
    yyjson_doc *doc = text.len ? yyjson_read(text.data, text.len, 0) : NULL;
    if (!doc) {
        return 0;
    }
    *ret = (pid_t)yyjson_get_sint(yyjson_obj_get(yyjson_doc_get_root(doc), "child-pid"));
    yyjson_doc_free(doc);
    return *ret > 1 ? 1 : 0;
}

/* A sandbox that was killed could not write its exit code: that is done for it, so that the file
 * also tells when the end was noticed. */
static void note_killed(int fd)
{
    ferry_cleanup_free char *text = ferry_asprintf("%d\n", KILLED);

    if (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0) {
        ferry_write_all(fd, text, strlen(text), NULL);
    }
}

/* Whether somebody holds the lock on the exit file; reads the exit code when nobody does. */
static int probe_exit(const char *path, struct sandbox_probe *p, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    char text[16] = "";
    long long code = KILLED;

    if (fd < 0) {
        return errno == ENOENT ? 0 : ferry_fail_errno(err, errno, "opening %s", path);
    }
    if (flock(fd, LOCK_SH | LOCK_NB) < 0) {
        p->state = SANDBOX_RUNNING;
        return 0;
    }
    if (read(fd, text, sizeof(text) - 1) <= 0) {
        return 0; /* it never came up */
    }
    text[strcspn(text, "\n")] = '\0';
    if (ferry_parse_int(text, 0, 255, &code, NULL) < 0) {
        note_killed(fd);
    }
    p->state = SANDBOX_ENDED;
    p->exit_code = (int)code;
    if (fstat(fd, &st) == 0) {
        p->ended_ms = mtime_ms(&st);
    }
    return 0;
}

int sandbox_probe(const struct sandbox_host *h, const char *uid, struct sandbox_probe *ret,
                  struct ferry_error *err)
{
    ferry_cleanup_free char *exit_path = file_of(h, uid, "exit");
    ferry_cleanup_free char *info_path = file_of(h, uid, "sandbox.json");
    ferry_cleanup_free char *stop_path = file_of(h, uid, "stop");
    struct sandbox_probe p = {.state = SANDBOX_NONE};
    struct stat st;
    int rc = probe_exit(exit_path, &p, err);

    if (rc < 0) {
        return rc;
    }
    if (p.state != SANDBOX_NONE && stat(info_path, &st) == 0) {
        p.started_ms = mtime_ms(&st);
    }
    if (p.state != SANDBOX_NONE && stat(stop_path, &st) == 0) {
        p.stop_ms = mtime_ms(&st);
    }
    if (p.state == SANDBOX_ENDED && h->cgroups) {
        p.kills = cgroup_kills(h->cgroups, uid);
    }
    *ret = p;
    return 0;
}

int sandbox_list(const struct sandbox_host *h, struct ferry_buf *ret, struct ferry_error *err)
{
    DIR *d = opendir(h->pods_dir);

    if (!d) {
        return errno == ENOENT ? 0 : ferry_fail_errno(err, errno, "reading %s", h->pods_dir);
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (sandbox_uid_valid(e->d_name)) {
            ferry_buf_printf(ret, "%s\n", e->d_name);
        } else if (ferry_str_starts(e->d_name, GONE_PREFIX)) {
            ferry_buf_printf(ret, "%s\n", e->d_name + strlen(GONE_PREFIX));
        }
    }
    closedir(d);
    return 0;
}

char *sandbox_pod_key(const struct sandbox_host *h, const char *uid)
{
    ferry_cleanup_free char *path = file_of(h, uid, "pod");
    ferry_cleanup_buf struct ferry_buf text = {0};

    if (ferry_read_file(path, 1024, &text, NULL) < 0 || !text.len) {
        return NULL;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    return strchr(text.data, '/') ? ferry_strdup(text.data) : NULL;
}

/* ---- starting ---------------------------------------------------------------------------------
 */

static int make_dirs(const struct sandbox_host *h, const char *uid, struct ferry_error *err)
{
    const struct pod_dir_users users = {h->vm_uid, h->vm_gid, h->relay_gid};
    ferry_cleanup_free char *dir = file_of(h, uid, "");
    int rc = ferry_mkdir_p(h->pods_dir, 0711, err);

    return rc < 0 ? rc : pod_dir_make(dir, &users, err);
}

static int write_text(const struct sandbox_host *h, const char *uid, const char *name,
                      const char *text, struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, name);

    return ferry_write_file(path, text, strlen(text), 0644, err);
}

/* libvirtd looks up the uid of every client: each of them must be in passwd; root itself, where the
 * sandbox has a user namespace, is nobody there. As root libvirtd also looks up who QEMU would be
 * if its settings said nothing. */
static int write_files(const struct sandbox_host *h, const struct sandbox_pod *pod,
                       struct ferry_error *err)
{
    ferry_cleanup_free char *passwd =
        ferry_asprintf("root:x:0:0:root:/:/usr/sbin/nologin\n"
                       "qemu:x:%u:%u:qemu:/var/run/ferry-home:/usr/sbin/nologin\n"
                       "ferry-relay:x:%u:%u:relay:/:/usr/sbin/nologin\n%s",
                       h->vm_uid, h->vm_gid, h->relay_uid, h->relay_gid,
                       h->vm_uid ? "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
                                 : "libvirt-qemu:x:65534:65534::/:/usr/sbin/nologin\n");
    ferry_cleanup_free char *group =
        ferry_asprintf("root:x:0:\nqemu:x:%u:\nferry-relay:x:%u:\n%s", h->vm_gid, h->relay_gid,
                       h->vm_uid ? "nogroup:x:65534:\n" : "libvirt-qemu:x:65534:\nkvm:x:65534:\n");
    ferry_cleanup_free char *hosts =
        ferry_asprintf("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 %.63s\n", pod->name);
    ferry_cleanup_free char *key = ferry_asprintf("%s/%s\n", pod->ns, pod->name);
    const struct {
        const char *name, *text;
    } files[] = {
        {"pod", key},
        {"etc/passwd", passwd},
        {"etc/group", group},
        {"etc/hosts", hosts},
        {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < FERRY_COUNT(files); i++) {
        rc = write_text(h, pod->uid, files[i].name, files[i].text, err);
    }
    return rc;
}

/* The guest's output, readable by the relay's group; QEMU would make it for itself alone. */
static int make_serial_log(const struct sandbox_host *h, const char *uid, struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, "console/serial.log");
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

    if (fd < 0 || fchown(fd, h->vm_uid, h->relay_gid) < 0 || fchmod(fd, 0640) < 0) {
        return ferry_fail_errno(err, errno, "making %s", path);
    }
    return 0;
}

static void seed_cache(const struct sandbox_host *h, const char *uid)
{
    ferry_cleanup_free char *home = file_of(h, uid, "home");
    struct ferry_error err;

    if (cache_seed(h->cache_dir, home, h->vm_uid, h->vm_gid, &err) < 0) {
        ferry_warn("cannot copy the capability cache: the pod starts slower", F_STR("pod", uid),
                   F_ERR(&err));
    }
}

int sandbox_harvest(const struct sandbox_host *h, const char *uid, struct ferry_error *err)
{
    ferry_cleanup_free char *home = file_of(h, uid, "home");

    return cache_harvest(home, h->cache_dir, err);
}

/* A node like `path`, open to the sandboxes' users; NULL when the host has none. */
static const char *open_device(const char *path, const char *copy)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode)) {
        return NULL;
    }
    if ((mkdir(DEVICE_DIR, 0700) < 0 && errno != EEXIST) ||
        (mknod(copy, S_IFCHR | 0600, st.st_rdev) < 0 && errno != EEXIST) || chmod(copy, 0666) < 0) {
        return NULL;
    }
    return copy;
}

struct start_fds {
    int control, exit, info, log;
    int kills; /* -1 where nobody counts them */
};

static void start_fds_done(struct start_fds *f)
{
    ferry_closep(&f->control);
    ferry_closep(&f->exit);
    ferry_closep(&f->info);
    ferry_closep(&f->log);
    ferry_closep(&f->kills);
}

static int open_output(const struct sandbox_host *h, const char *uid, const char *name, int flags,
                       struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

    return fd < 0 ? ferry_fail_errno(err, errno, "opening %s", path) : fd;
}

static int open_fds(const struct sandbox_host *h, const char *uid, struct start_fds *f,
                    struct ferry_error *err)
{
    ferry_cleanup_free char *socket_path = file_of(h, uid, "launcher.sock");

    f->exit = open_output(h, uid, "exit", 0, err);
    if (f->exit < 0) {
        return f->exit;
    }
    if (flock(f->exit, LOCK_EX | LOCK_NB) < 0) {
        return ferry_fail(err, FERRY_CONFLICT, "the sandbox of pod %s is running already", uid);
    }
    if (ftruncate(f->exit, 0) < 0) {
        return ferry_fail_errno(err, errno, "emptying the exit file of pod %s", uid);
    }
    f->log = open_output(h, uid, "out/log", O_APPEND | O_TRUNC, err);
    if (f->log < 0) {
        return f->log;
    }
    f->info = open_output(h, uid, "sandbox.json", O_TRUNC, err);
    if (f->info < 0) {
        return f->info;
    }
    f->control = ferry_unix_listen(socket_path, 0600, 64, err);
    return f->control < 0 ? f->control : 0;
}

/* The launcher cannot see control groups, and libvirtd is not to: it gets this one file of theirs,
 * by which it knows why a QEMU died. */
static int open_kills(const struct sandbox_host *h, const char *uid)
{
    ferry_cleanup_free char *path = h->cgroups ? cgroup_kills_path(h->cgroups, uid) : NULL;

    return path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* What bubblewrap said, when it gave up. */
static int start_failed(const struct sandbox_host *h, const char *uid, int code,
                        struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, "log");
    ferry_cleanup_buf struct ferry_buf log = {0};
    const char *line = "no message";

    if (ferry_read_file(path, 1 << 20, &log, NULL) == 0 && log.len) {
        log.data[strcspn(log.data, "\n")] = '\0';
        line = log.data;
    }
    return ferry_fail(err, FERRY_RETRY, "starting the sandbox of pod %s: bwrap ended with %d: %s",
                      uid, code, line);
}

/* Until PID 1 runs and its identity is on file. */
static int await_start(const struct sandbox_host *h, const char *uid, pid_t bwrap, int exit_fd,
                       struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + START_DEADLINE_S * FERRY_NS_PER_S;
    struct stat st;
    pid_t pid;
    int status;

    for (;;) {
        if (fstat(exit_fd, &st) == 0 && st.st_size > 0 && read_identity(h, uid, &pid, NULL) == 1) {
            return 0;
        }
        if (waitpid(bwrap, &status, WNOHANG) == bwrap) {
            return start_failed(h, uid, WIFEXITED(status) ? WEXITSTATUS(status) : KILLED, err);
        }
        if (ferry_ms_left(deadline) == 0) {
            sandbox_signal(h, uid, SIGKILL, NULL);
            kill(bwrap, SIGKILL);
            waitpid(bwrap, &status, 0);
            return ferry_fail(err, FERRY_RETRY, "starting the sandbox of pod %s: not up after %d s",
                              uid, START_DEADLINE_S);
        }
        ferry_sleep_ms(2);
    }
}

int sandbox_start(const struct sandbox_host *h, const struct sandbox_pod *pod, pid_t *ret_pid,
                  struct ferry_error *err)
{
    ferry_cleanup(start_fds_done) struct start_fds fds = {-1, -1, -1, -1, -1};
    ferry_cleanup_free char *dir = ferry_asprintf("%s/%s", h->pods_dir, pod->uid);
    ferry_cleanup_free char *netns = NULL;
    int rc = make_dirs(h, pod->uid, err);

    if (rc == 0) {
        rc = write_files(h, pod, err);
    }
    if (rc == 0) {
        rc = make_serial_log(h, pod->uid, err);
    }
    if (rc == 0) {
        seed_cache(h, pod->uid);
    }
    if (rc == 0) {
        rc = open_fds(h, pod->uid, &fds, err);
    }
    rc = rc < 0 ? rc : pod_netns_make(dir, &netns, err);
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup(cgroup_joins_done) struct cgroup_joins joins = {0};
    rc = h->cgroups ? cgroup_make(h->cgroups, pod->uid, pod->limits, &joins, err) : 0;
    if (rc < 0) {
        return rc;
    }
    fds.kills = open_kills(h, pod->uid);
    const struct sandbox_spec spec = {
        .dir = dir,
        .hostname = pod->name,
        .init_path = h->init_path,
        .launcher_path = h->launcher_path,
        .guest_dir = h->guest_dir,
        .uffd_path =
            pod->incoming ? open_device("/dev/userfaultfd", DEVICE_DIR "/userfaultfd") : NULL,
        .tun_path = open_device("/dev/net/tun", DEVICE_DIR "/tun"),
        /* Where the host has it, libvirt uses it for guests that hardware runs. */
        .vhost_net_path = pod->vhost_net || pod->kvm
                              ? open_device("/dev/vhost-net", DEVICE_DIR "/vhost-net")
                              : NULL,
        .kvm_path = pod->kvm ? open_device("/dev/kvm", DEVICE_DIR "/kvm") : NULL,
        .kills = fds.kills >= 0,
        .uid = h->vm_uid,
        .gid = h->vm_gid,
        .args = pod->args,
        .n_args = pod->n_args,
        .disks = pod->disks,
    };
    sandbox_args_cleanup struct sandbox_args args;
    sandbox_args(&spec, &args);
    const int pass[] = {fds.control, fds.exit, fds.info, fds.kills};
    rc = ferry_spawn(&(struct ferry_spawn){.argv = (const char *const *)args.argv,
                                           .out_fd = fds.log,
                                           .pass_fds = pass,
                                           .n_pass_fds = spec.kills ? 4 : 3,
                                           .join_files = (const char *const *)joins.files,
                                           .netns = netns,
                                           .new_session = true},
                     ret_pid, err);
    if (rc < 0) {
        return ferry_wrap(err, "starting the sandbox of pod %s", pod->uid);
    }
    return await_start(h, pod->uid, *ret_pid, fds.exit, err);
}

/* ---- afterwards -------------------------------------------------------------------------------
 */

/* Whether the sandbox holds its lock: PID 1 lives, or has ended and was not waited for yet. */
static bool is_held(const struct sandbox_host *h, const char *uid)
{
    ferry_cleanup_free char *path = file_of(h, uid, "exit");
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* A descriptor of PID 1, or -1 when it is not there (any more). The descriptor first, the lock
 * second: as long as that is held the pid is nobody else's, so what was opened is the sandbox. */
static int open_pid(const struct sandbox_host *h, const char *uid, pid_t pid)
{
    ferry_cleanup_fd int fd = pidfd_open(pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};

    return fd >= 0 && is_held(h, uid) && poll(&ended, 1, 0) == 0 ? ferry_take_fd(&fd) : -1;
}

int sandbox_wait(const struct sandbox_host *h, const char *uid, int stop_fd,
                 struct ferry_error *err)
{
    struct sandbox_probe p = {.state = SANDBOX_RUNNING};
    int rc = 0;

    /* Normally one round: the pid is known and its end wakes us. A sandbox that was just being
     * started when an earlier agent died has no pid yet; one whose PID 1 just ended may still have
     * its lock held by bubblewrap for a moment. Both are looked at again soon. */
    while (rc == 0 && p.state == SANDBOX_RUNNING) {
        pid_t pid;
        ferry_cleanup_fd int fd =
            read_identity(h, uid, &pid, NULL) == 1 ? open_pid(h, uid, pid) : -1;
        struct pollfd polls[] = {{.fd = stop_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

        if (poll(polls, 2, fd < 0 ? 20 : -1) > 0 && polls[0].revents) {
            return ferry_fail(err, FERRY_CANCELLED, "stopping");
        }
        rc = sandbox_probe(h, uid, &p, err);
    }
    return rc;
}

int sandbox_signal(const struct sandbox_host *h, const char *uid, int sig, struct ferry_error *err)
{
    pid_t pid;
    int rc = read_identity(h, uid, &pid, err);
    ferry_cleanup_fd int fd = rc == 1 ? open_pid(h, uid, pid) : -1;

    if (fd < 0) {
        return rc < 0 ? rc : 0;
    }
    rc = ferry_user_signal(fd, pid, sig, err);
    return rc < 0 ? ferry_wrap(err, "signalling the sandbox of pod %s", uid) : 0;
}

pid_t sandbox_pid(const struct sandbox_host *h, const char *uid)
{
    pid_t pid;
    ferry_cleanup_fd int fd = read_identity(h, uid, &pid, NULL) == 1 ? open_pid(h, uid, pid) : -1;

    return fd < 0 ? 0 : pid;
}

int sandbox_stop(const struct sandbox_host *h, const char *uid, struct ferry_error *err)
{
    ferry_cleanup_free char *path = file_of(h, uid, "stop");
    struct ferry_error why;

    if (access(path, F_OK) < 0 && ferry_write_file(path, "", 0, 0600, &why) < 0) {
        ferry_warn("cannot record the grace period: it may start anew after a restart",
                   F_STR("pod", uid), F_ERR(&why));
    }
    return sandbox_signal(h, uid, SIGTERM, err);
}

int sandbox_remove(const struct sandbox_host *h, const char *uid, struct ferry_error *err)
{
    ferry_cleanup_free char *dir = ferry_asprintf("%s/%s", h->pods_dir, uid);
    struct sandbox_probe p;
    int rc = sandbox_probe(h, uid, &p, err);

    if (rc < 0) {
        return rc;
    }
    if (p.state == SANDBOX_RUNNING) {
        return ferry_fail(err, FERRY_CONFLICT, "the sandbox of pod %s is still running", uid);
    }
    rc = h->cgroups ? cgroup_remove(h->cgroups, uid, err) : 0;
    if (rc < 0) {
        return rc;
    }
    /* At once for everybody who looks: away from under its name first, then bit by bit. */
    ferry_cleanup_free char *gone = ferry_asprintf("%s/" GONE_PREFIX "%s", h->pods_dir, uid);
    if (rename(dir, gone) < 0 && errno != ENOENT) {
        return ferry_fail_errno(err, errno, "removing %s", dir);
    }
    pod_dir_remove(gone);
    return ferry_remove_tree(gone, err);
}
