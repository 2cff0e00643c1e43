/* ferry-launcher: one VM, inside its pod. */
#include <unistd.h>

#include "api/wire/wire_keys.h"
#include "base/daemon.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "launcher/launcher.h"
#include "programs/ferry-launcher-cpu.h"

/* The control socket, ferry-init's store where there is one, and the counter of what the kernel
 * kills. */
static int descriptors(const char *path, struct launcher_config *cfg, struct ferry_error *err)
{
    int n = ferry_listen_fds();

    cfg->control_fd = FERRY_LISTEN_FDS_START;
    for (int i = 0; i < 2; i++) {
        cfg->store_fds[i] = n >= 3 ? FERRY_LISTEN_FDS_START + 1 + i : -1;
    }
    cfg->kills_fd = n == 4 ? FERRY_LISTEN_FDS_START + 3 : -1;
    if (path) {
        cfg->control_fd = ferry_unix_listen(path, 0600, 16, err);
        return cfg->control_fd < 0 ? -(int)err->cls : 0;
    }
    return n == 1 || n == 3 || n == 4
               ? 0
               : ferry_fail(err, FERRY_INVALID,
                            "no control socket: descriptor 3 must be a listening socket "
                            "(LISTEN_FDS=1), or --control PATH given");
}

struct settings {
    struct launcher_config cfg;
    const char *control, *accelerator;
    bool describe;
};

static int check(void *ctx, struct ferry_error *err)
{
    struct settings *s = ctx;

    if (!s->describe && (ferry_str_empty(s->cfg.namespace_) || ferry_str_empty(s->cfg.name) ||
                         ferry_str_empty(s->cfg.uid))) {
        return ferry_fail(err, FERRY_INVALID, "--namespace, --name and --uid are needed");
    }
    s->cfg.kvm = ferry_streq(s->accelerator, "kvm");
    if (!s->cfg.kvm && !ferry_streq(s->accelerator, "tcg")) {
        return ferry_fail(err, FERRY_INVALID, "--accelerator: must be tcg or kvm, not '%s'",
                          s->accelerator);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct settings s = {.accelerator = "tcg"};
    struct launcher_config *cfg = &s.cfg;

    *cfg = (struct launcher_config){
        .guest_dir = "/var/run/ferry-guest",
        .console_dir = "/var/run/ferry-console",
        .disk_dir = "/var/run/kubevirt-private/vmi-disks",
        .migration_dir = "/var/run/kubevirt/migrationproxy",
        .libvirt_dir = "/var/run/ferry-libvirt",
        .state_dir = "/var/run/ferry-state",
        .emulator = "/usr/bin/qemu-system-x86_64",
        .libvirtd = "libvirtd",
    };
    struct ferry_log_options lo = {0};
    struct ferry_error err;
    const struct ferry_option options[] = {
        {"namespace", 0, FERRY_OPTION_STRING, &cfg->namespace_, "NS", "namespace of the VMI"},
        {"name", 0, FERRY_OPTION_STRING, &cfg->name, "NAME", "name of the VMI"},
        {"uid", 0, FERRY_OPTION_STRING, &cfg->uid, "UID", "UID of the VMI"},
        {"control", 0, FERRY_OPTION_STRING, &s.control, "PATH",
         "listen for control here instead of on descriptor 3"},
        {"guest-dir", 0, FERRY_OPTION_STRING, &cfg->guest_dir, "DIR",
         "kernels of image " IMAGE_BUILTIN},
        {"console-dir", 0, FERRY_OPTION_STRING, &cfg->console_dir, "DIR",
         "where serial.sock and serial.log go"},
        {"disk-dir", 0, FERRY_OPTION_STRING, &cfg->disk_dir, "DIR",
         "images of disks: VOLUME/disk.img"},
        {"migration-dir", 0, FERRY_OPTION_STRING, &cfg->migration_dir, "DIR",
         "where the sockets of moves are"},
        {"libvirt-dir", 0, FERRY_OPTION_STRING, &cfg->libvirt_dir, "DIR",
         "where libvirt-sock goes"},
        {"state-dir", 0, FERRY_OPTION_STRING, &cfg->state_dir, "DIR",
         "state file and flight records"},
        {"accelerator", 0, FERRY_OPTION_STRING, &s.accelerator, "NAME", "tcg (default) or kvm"},
        {"emulator", 0, FERRY_OPTION_STRING, &cfg->emulator, "PATH", "QEMU's program"},
        {"libvirtd", 0, FERRY_OPTION_STRING, &cfg->libvirtd, "PATH", "libvirtd's program"},
        {"libvirt", 0, FERRY_OPTION_STRING, &cfg->libvirt_uri, "URI",
         "use this libvirt instead of starting one"},
        {"describe-cpu", 0, FERRY_OPTION_FLAG, &s.describe, NULL,
         "print what CPUs and machines guests can have on this host, as JSON, and end"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry-launcher",
        .usage = "--namespace NS --name NAME --uid UID [OPTION]...",
        .summary =
            "Runs one VM inside its pod: starts a private libvirtd, starts, moves and stops\n"
            "the guest as told over its control socket.",
        .options = options,
        .epilogue = "SIGTERM shuts the guest down, by force after its grace period, and ends the\n"
                    "launcher with code 0.",
    };
    const struct ferry_daemon daemon = {
        .program = "ferry-launcher", .command = &cmd, .log = &lo, .check = check, .ctx = &s};

    if (ferry_daemon_parse(&daemon, argc, argv, &err) < 0) {
        return ferry_die("ferry-launcher", FERRY_EXIT_USAGE, &err);
    }
    if (s.describe) {
        return launcher_describe_cpu(cfg->emulator, cfg->kvm);
    }
    ferry_signals_block();
    if (descriptors(s.control, cfg, &err) < 0) {
        return ferry_die("ferry-launcher", FERRY_EXIT_USAGE, &err);
    }
    if (launcher_run(cfg, &err) < 0) {
        return ferry_die("ferry-launcher", FERRY_EXIT_FAILED, &err);
    }
    return FERRY_EXIT_OK;
}
