#include "handler/node/cpu_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_accelerator.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "json/doc.h"

#ifndef FERRY_VERSION
#define FERRY_VERSION "unknown"
#endif

enum {
    REPORT_MAX = 1 << 20,
    ANSWER_S = 120, /* a cold start on a busy host takes a few seconds */
    RECHECK_MS = 60000,
    CPUINFO_MAX = 16384, /* the first CPU of it is enough */
    GRACE_MS = 1000,
};

struct cpu_probe {
    struct cpu_probe_config cfg;
    char *key;            /* what the present report was made of; the thread's */
    struct node_cpu *now; /* and older ones, which may still be read; the thread's */
    pthread_t thread;
    int wake; /* eventfd: time to stop */
};

/* ---- what a report depends on -----------------------------------------------------------------
 */

static void add_program(struct ferry_buf *b, const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0) { /* ctime: a package installs files with the mtime of their build */
        ferry_buf_printf(b, "%s %lld %lld.%ld\n", path, (long long)st.st_size,
                         (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    }
}

char *cpu_probe_identity(void)
{
    char cpuinfo[CPUINFO_MAX] = "";
    ferry_cleanup_fd int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, cpuinfo, sizeof(cpuinfo) - 1);

    cpuinfo[n < 0 ? 0 : n] = '\0';
    return node_cpu_identity(cpuinfo);
}

static char *make_key(const struct cpu_probe *p, bool accelerated)
{
    struct ferry_buf b = {0};
    struct utsname kernel;

    uname(&kernel);
    ferry_cleanup_free char *cpu = cpu_probe_identity();
    ferry_buf_printf(&b, "ferry " FERRY_VERSION "\n%s\n%s\n%s", kernel.release, cpu,
                     wire_accelerator_text(accelerated ? ACCELERATOR_KVM : ACCELERATOR_TCG));
    add_program(&b, "/usr/bin/qemu-system-x86_64");
    add_program(&b, "/usr/sbin/libvirtd");
    add_program(&b, p->cfg.launcher);
    return b.data;
}

/* ---- the sandbox ------------------------------------------------------------------------------
 */

/* No network, no process and hardly a file of the host; what it leaves goes with it. It is in no
 * hurry: guests have the CPU first. */
static const char *const sandbox[] = {"nice",
                                      "-n",
                                      "19",
                                      "bwrap",
                                      "--unshare-pid",
                                      "--unshare-net",
                                      "--unshare-ipc",
                                      "--unshare-uts",
                                      "--die-with-parent",
                                      "--new-session",
                                      "--clearenv",
                                      "--setenv",
                                      "PATH",
                                      "/usr/sbin:/usr/bin",
                                      "--setenv",
                                      "HOME",
                                      "/tmp",
                                      "--ro-bind",
                                      "/usr",
                                      "/usr",
                                      "--symlink",
                                      "usr/bin",
                                      "/bin",
                                      "--symlink",
                                      "usr/sbin",
                                      "/sbin",
                                      "--symlink",
                                      "usr/lib",
                                      "/lib",
                                      "--symlink",
                                      "usr/lib64",
                                      "/lib64",
                                      "--proc",
                                      "/proc",
                                      "--dev",
                                      "/dev",
                                      "--perms",
                                      "0755",
                                      "--dir",
                                      "/sys",
                                      "--perms",
                                      "0755",
                                      "--dir",
                                      "/sys/devices",
                                      "--perms",
                                      "0755",
                                      "--dir",
                                      "/etc",
                                      "--ro-bind",
                                      "/sys/devices/system",
                                      "/sys/devices/system",
                                      "--ro-bind-try",
                                      "/etc/ld.so.cache",
                                      "/etc/ld.so.cache",
                                      "--ro-bind-try",
                                      "/etc/passwd",
                                      "/etc/passwd",
                                      "--ro-bind-try",
                                      "/etc/group",
                                      "/etc/group",
                                      "--perms",
                                      "1777",
                                      "--tmpfs",
                                      "/tmp",
                                      "--perms",
                                      "0755",
                                      "--tmpfs",
                                      "/run",
                                      "--perms",
                                      "0755",
                                      "--tmpfs",
                                      "/var",
                                      "--cap-drop",
                                      "ALL",
                                      "--cap-add",
                                      "CAP_SETUID",
                                      "--cap-add",
                                      "CAP_SETGID"};
static const char *const with_device[] = {"--dev-bind", "/dev/kvm", "/dev/kvm"};

static int spawn(const char *launcher, bool accelerated, int out_fd, pid_t *ret,
                 struct ferry_error *err)
{
    const char *const program[] = {
        "--ro-bind",
        launcher,
        "/run/ferry-launcher",
        "--",
        "/run/ferry-launcher",
        "--describe-cpu",
        "--accelerator",
        wire_accelerator_text(accelerated ? ACCELERATOR_KVM : ACCELERATOR_TCG)};
    const char *argv[FERRY_COUNT(sandbox) + FERRY_COUNT(with_device) + FERRY_COUNT(program) + 1];
    size_t n = 0;

    for (size_t i = 0; i < FERRY_COUNT(sandbox); i++) {
        argv[n++] = sandbox[i];
    }
    for (size_t i = 0; accelerated && i < FERRY_COUNT(with_device); i++) {
        argv[n++] = with_device[i];
    }
    for (size_t i = 0; i < FERRY_COUNT(program); i++) {
        argv[n++] = program[i];
    }
    argv[n] = NULL;
    return ferry_spawn(&(struct ferry_spawn){.argv = argv, .out_fd = out_fd}, ret, err);
}

/* All that it says, to its end; -FERRY_CANCELLED when it is time to stop. */
static int listen_to(const struct cpu_probe *p, int fd, struct ferry_buf *out,
                     struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + ANSWER_S * FERRY_NS_PER_S;

    for (;;) {
        struct pollfd f[] = {{.fd = fd, .events = POLLIN}, {.fd = p->wake, .events = POLLIN}};
        int left = ferry_ms_left(deadline);
        int n = poll(f, 2, left);

        if (f[1].revents & POLLIN) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped");
        }
        if (left == 0) {
            return ferry_fail(err, FERRY_RETRY, "no answer within %d s", ANSWER_S);
        }
        if (n <= 0 || !f[0].revents) {
            continue;
        }
        ferry_buf_reserve(out, 65536);
        ssize_t got = read(fd, out->data + out->len, 65535);
        if (got <= 0) {
            out->data[out->len] = '\0';
            return 0;
        }
        out->len += (size_t)got;
        if (out->len > REPORT_MAX) {
            return ferry_fail(err, FERRY_PEER, "the answer is longer than %d bytes", REPORT_MAX);
        }
    }
}

/* The report is the last line; what was logged stands before it. */
static const char *last_line(struct ferry_buf *out)
{
    while (out->len && out->data[out->len - 1] == '\n') {
        out->data[--out->len] = '\0';
    }
    const char *line = out->len ? strrchr(out->data, '\n') : NULL;
    return line ? line + 1 : out->len ? out->data : "";
}

static int ask(const struct cpu_probe *p, bool accelerated, char **ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf out = {0};
    int pipe_fds[2], code = 0;
    pid_t pid;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        return ferry_fail_errno(err, errno, "making a pipe");
    }
    ferry_cleanup_fd int from = pipe_fds[0];
    int rc = spawn(p->cfg.launcher, accelerated, pipe_fds[1], &pid, err);
    close(pipe_fds[1]);
    if (rc < 0) {
        return rc;
    }
    rc = listen_to(p, from, &out, err);
    if (rc < 0) {
        ferry_proc_end(pid, 0, GRACE_MS, NULL);
        ferry_wait_child(pid, ferry_now_ns() + FERRY_NS_PER_S, &code, NULL);
        return rc;
    }
    rc = ferry_wait_child(pid, ferry_now_ns() + ANSWER_S * FERRY_NS_PER_S, &code, err);
    const char *line = last_line(&out);
    if (rc == 0 && code != 0) {
        rc = ferry_fail(err, FERRY_FATAL, "code %d: %.200s", code, line);
    }
    *ret = rc == 0 ? ferry_strdup(line) : NULL;
    return rc;
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static struct node_cpu *from_cache(const struct cpu_probe *p, const char *key)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct node_cpu *cpu = NULL;

    if (ferry_read_file(p->cfg.cache, REPORT_MAX * 2, &text, NULL) < 0 || !text.data ||
        api_json_parse(text.data, text.len, &doc, NULL) < 0) {
        return NULL;
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *report = api_json_str(root, "/report");
    if (report && ferry_streq(api_json_str(root, "/key"), key) &&
        node_cpu_parse(report, strlen(report), &cpu, NULL) < 0) {
        return NULL;
    }
    return cpu;
}

static void to_cache(const struct cpu_probe *p, const char *key, const char *report)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);
    struct ferry_error err;
    size_t len;

    yyjson_mut_obj_add_str(doc, o, "key", key);
    yyjson_mut_obj_add_str(doc, o, "report", report);
    ferry_cleanup_free char *text = json_doc_text(doc, 0, &len);
    yyjson_mut_doc_free(doc);
    if (ferry_write_file(p->cfg.cache, text, len, 0600, &err) < 0) {
        ferry_warn("cannot cache the CPU capabilities", F_ERR(&err));
    }
}

/* ---- the thread -------------------------------------------------------------------------------
 */

static int look(struct cpu_probe *p, struct ferry_error *err)
{
    bool accelerated = p->cfg.is_accelerated(p->cfg.ctx);
    ferry_cleanup_free char *key = make_key(p, accelerated);
    ferry_cleanup_free char *report = NULL;
    struct node_cpu *cpu = NULL;

    if (ferry_streq(key, p->key)) {
        return 0;
    }
    cpu = from_cache(p, key);
    if (!cpu) {
        int rc = ask(p, accelerated, &report, err);

        if (rc < 0 || !report || (rc = node_cpu_parse(report, strlen(report), &cpu, err)) < 0) {
            return rc;
        }
        to_cache(p, key, report);
    }
    free(p->key);
    p->key = ferry_take_ptr(key);
    ferry_info("CPU capabilities read", F_INT("labels", (int64_t)cpu->n));
    cpu->older = p->now; /* somebody may be reading it */
    p->now = cpu;
    p->cfg.news(p->cfg.ctx, cpu);
    return 0;
}

static void *run(void *ctx)
{
    struct cpu_probe *p = ctx;
    struct pollfd stop = {.fd = p->wake, .events = POLLIN};

    do {
        struct ferry_error err;
        int rc = look(p, &err);

        if (rc < 0 && rc != -FERRY_CANCELLED) {
            ferry_warn("CPU capabilities unknown, retrying", F_ERR(&err));
        }
    } while (poll(&stop, 1, RECHECK_MS) <= 0);
    return NULL;
}

void cpu_probe_free(struct cpu_probe *p)
{
    if (!p) {
        return;
    }
    ferry_closep(&p->wake);
    node_cpu_free(p->now);
    free(p->key);
    free(p);
}

int cpu_probe_start(const struct cpu_probe_config *cfg, struct cpu_probe **ret,
                    struct ferry_error *err)
{
    struct cpu_probe *p = ferry_xcalloc(1, sizeof(*p));

    p->cfg = *cfg;
    p->wake = eventfd(0, EFD_CLOEXEC);
    int rc = p->wake < 0 ? errno : pthread_create(&p->thread, NULL, run, p);
    if (rc != 0) {
        cpu_probe_free(p);
        return ferry_fail_errno(err, rc, "starting to look at the CPU");
    }
    *ret = p;
    return 0;
}

void cpu_probe_stop(struct cpu_probe *p)
{
    if (p) {
        eventfd_write(p->wake, 1);
        pthread_join(p->thread, NULL);
    }
}
