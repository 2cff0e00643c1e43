#include "pods/sandbox_args.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

/* The only part of the sandbox's own root that its user may write to. */
#define TMP_BYTES "67108864"

enum { HOSTNAME_MAX = 63 };

static void add(struct sandbox_args *a, char *word_take)
{
    a->argv = ferry_xrealloc(a->argv, a->n + 2, sizeof(*a->argv));
    a->argv[a->n++] = word_take;
    a->argv[a->n] = NULL;
}

static void add_words(struct sandbox_args *a, const char *const *words)
{
    for (; *words; words++) {
        add(a, ferry_strdup(*words));
    }
}

#define ADD(a, ...) add_words((a), (const char *const[]){__VA_ARGS__, NULL})

/* --OPTION DIR/NAME DEST */
static void add_bind(struct sandbox_args *a, const char *option, const char *dir, const char *name,
                     const char *dest)
{
    ADD(a, option);
    add(a, ferry_asprintf("%s/%s", dir, name));
    ADD(a, dest);
}

static void add_namespaces(struct sandbox_args *a, const struct sandbox_spec *s)
{
    /* The network namespace is there already (pod_netns.h). */
    ADD(a, "bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname");
    add(a, ferry_strndup(s->hostname, HOSTNAME_MAX));
    ADD(a, "--as-pid-1", "--new-session", "--info-fd");
    add(a, ferry_asprintf("%d", SANDBOX_FD_INFO));
    ADD(a, "--clearenv");
}

static void add_environment(struct sandbox_args *a)
{
    static const char *const vars[][2] = {
        {"PATH", "/usr/sbin:/usr/bin"},
        {"LC_ALL", "C"},
        {"HOME", "/var/run/ferry-home"},
        {"USER", "qemu"},
        {"LOGNAME", "qemu"},
        {"XDG_RUNTIME_DIR", "/var/run/ferry-home/rt"},
        {"XDG_CONFIG_HOME", "/var/run/ferry-home/config"},
        {"XDG_CACHE_HOME", "/var/run/ferry-home/cache"},
        {"XDG_DATA_HOME", "/var/run/ferry-home/data"},
    };

    for (size_t i = 0; i < FERRY_COUNT(vars); i++) {
        ADD(a, "--setenv", vars[i][0], vars[i][1]);
    }
}

static void add_system(struct sandbox_args *a, const struct sandbox_spec *s)
{
    static const char *const etc[] = {"passwd", "group", "hosts", "nsswitch.conf"};

    ADD(a, "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin",
        "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64");
    ADD(a, "--proc", "/proc", "--dev", "/dev");
    if (s->uffd_path) {
        ADD(a, "--dev-bind", s->uffd_path, "/dev/userfaultfd");
    }
    if (s->tun_path) {
        ADD(a, "--perms", "0755", "--dir", "/dev/net", "--dev-bind", s->tun_path, "/dev/net/tun");
    }
    if (s->vhost_net_path) {
        ADD(a, "--dev-bind", s->vhost_net_path, "/dev/vhost-net");
    }
    if (s->kvm_path) {
        ADD(a, "--dev-bind", s->kvm_path, "/dev/kvm");
    }
    /* libvirt counts CPUs and memory there; the rest of sysfs would show the host's network. */
    ADD(a, "--perms", "0755", "--dir", "/sys", "--perms", "0755", "--dir", "/sys/devices",
        "--ro-bind", "/sys/devices/system", "/sys/devices/system");
    ADD(a, "--perms", "0755", "--dir", "/etc", "--ro-bind-try", "/etc/ld.so.cache",
        "/etc/ld.so.cache");
    for (size_t i = 0; i < FERRY_COUNT(etc); i++) {
        ferry_cleanup_free char *name = ferry_asprintf("etc/%s", etc[i]);
        ferry_cleanup_free char *dest = ferry_asprintf("/etc/%s", etc[i]);

        add_bind(a, "--ro-bind", s->dir, name, dest);
    }
}

static void add_disks(struct sandbox_args *a, const struct sandbox_disks *disks)
{
    static const char *const places[] = {
        [SANDBOX_AT_DISKS] = "/run/kubevirt-private/vmi-disks",
        [SANDBOX_AT_CONFIG_MAP] = "/run/kubevirt-private/config-map",
        [SANDBOX_AT_SECRET] = "/run/kubevirt-private/secret",
        [SANDBOX_AT_VFIO] = "/dev/vfio",
    };
    bool vfio = false;

    ADD(a, "--perms", "0755", "--dir", "/run/kubevirt-private");
    for (size_t i = 0; i < SANDBOX_AT_VFIO; i++) {
        ADD(a, "--perms", "0755", "--dir", places[i]);
    }
    for (size_t i = 0; disks && i < disks->n; i++) {
        vfio = vfio || disks->list[i].place == SANDBOX_AT_VFIO;
    }
    if (vfio) {
        ADD(a, "--perms", "0755", "--dir", places[SANDBOX_AT_VFIO]);
    }
    for (size_t i = 0; disks && i < disks->n; i++) {
        const struct sandbox_disk *d = &disks->list[i];

        ADD(a, d->device ? "--dev-bind" : d->readonly ? "--ro-bind" : "--bind", d->path);
        add(a, d->hugepages ? ferry_strdup("/dev/hugepages")
                            : ferry_asprintf("%s/%s", places[d->place], d->name));
    }
}

/* libvirtd's lock driver and the control channel's filter, at their places beside the launcher as
 * on the host. */
static void add_companions(struct sandbox_args *a, const char *launcher)
{
    const char *slash = strrchr(launcher, '/');

    ADD(a, "--perms", "0755", "--dir", "/run/ferry/lib", "--perms", "0755", "--dir",
        "/run/ferry/lib/ferry", "--ro-bind-try");
    add(a,
        ferry_asprintf("%.*s../lib/ferry/gate", slash ? (int)(slash - launcher + 1) : 0, launcher));
    ADD(a, "/run/ferry/lib/ferry/gate", "--ro-bind-try");
    add(a,
        ferry_asprintf("%.*sferry-rpc-filter", slash ? (int)(slash - launcher + 1) : 0, launcher));
    ADD(a, "/run/ferry/bin/ferry-rpc-filter");
}

static void add_directories(struct sandbox_args *a, const struct sandbox_spec *s)
{
    ADD(a, "--size", TMP_BYTES, "--perms", "1777", "--tmpfs", "/tmp", "--perms", "0755", "--tmpfs",
        "/run", "--perms", "0755", "--tmpfs", "/var", "--symlink", "../run", "/var/run");
    ADD(a, "--perms", "0755", "--dir", "/run/ferry", "--perms", "0755", "--dir", "/run/ferry/bin",
        "--ro-bind", s->init_path, "/run/ferry/bin/ferry-init", "--ro-bind", s->launcher_path,
        "/run/ferry/bin/ferry-launcher");
    add_companions(a, s->launcher_path);
    if (s->guest_dir) {
        ADD(a, "--ro-bind", s->guest_dir, "/run/ferry-guest");
    }
    if (s->uid == 0) { /* as root, libvirtd does not ask where its files are to be */
        ADD(a, "--tmpfs", "/etc/libvirt", "--tmpfs", "/var/lib/libvirt", "--tmpfs",
            "/var/cache/libvirt", "--tmpfs", "/var/log/libvirt", "--tmpfs", "/run/libvirt");
    }
    ADD(a, "--perms", "0755", "--dir", "/run/kubevirt");
    add_bind(a, "--bind", s->dir, "m", "/run/kubevirt/migrationproxy");
    add_bind(a, "--bind", s->dir, "libvirt", "/run/ferry-libvirt");
    add_bind(a, "--bind", s->dir, "console", "/run/ferry-console");
    add_bind(a, "--bind", s->dir, "state", "/run/ferry-state");
    add_bind(a, "--bind", s->dir, "home", "/run/ferry-home");
    add_disks(a, s->disks);
    ADD(a, "--remount-ro", "/", "--remount-ro", "/run", "--remount-ro", "/var");
}

static void add_command(struct sandbox_args *a, const struct sandbox_spec *s)
{
    /* Just what ferry-init needs to give the rest away. */
    ADD(a, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add",
        "CAP_SETPCAP");
    if (s->uid == 0) {
        ADD(a, "--cap-add", "CAP_DAC_OVERRIDE");
    }
    ADD(a, "--", "/run/ferry/bin/ferry-init", "--exit-fd");
    add(a, ferry_asprintf("%d", SANDBOX_FD_EXIT));
    if (s->kills) {
        ADD(a, "--kills-fd");
        add(a, ferry_asprintf("%d", SANDBOX_FD_KILLS));
    }
    ADD(a, "--user");
    add(a, ferry_asprintf("%ju:%ju", (uintmax_t)s->uid, (uintmax_t)s->gid));
    ADD(a, "--", "/run/ferry/bin/ferry-launcher");
    for (size_t i = 0; i < s->n_args; i++) {
        ADD(a, s->args[i]);
    }
    if (s->guest_dir) {
        ADD(a, "--guest-dir", "/var/run/ferry-guest");
    }
}

void sandbox_args(const struct sandbox_spec *s, struct sandbox_args *ret)
{
    *ret = (struct sandbox_args){0};
    add_namespaces(ret, s);
    add_environment(ret);
    add_system(ret, s);
    add_directories(ret, s);
    add_command(ret, s);
}

void sandbox_args_done(struct sandbox_args *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->argv[i]);
    }
    free(a->argv);
    *a = (struct sandbox_args){0};
}
