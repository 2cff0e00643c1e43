#include "launcher/libvirt/probes.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

enum { CMDLINE_MAX = 64 << 10 };

/* libvirt's monitor of a probe is "DIR/.../qmp-XXXXXX/qmp.monitor". */
static bool is_monitor(const char *argument, const char *const *dirs)
{
    const char *path = ferry_str_starts(argument, "unix:") ? argument + strlen("unix:") : NULL;
    bool ours = false;

    for (; path && *dirs; dirs++) {
        size_t n = strlen(*dirs);

        ours = ours || (strncmp(path, *dirs, n) == 0 && path[n] == '/');
    }
    return ours && strstr(path, "/qmp-") && strstr(path, "/qmp.monitor");
}

bool probes_is_one(const char *cmdline, size_t len, const char *const *dirs)
{
    bool no_machine = false, monitor = false;
    const char *option = "";

    for (size_t at = 0; at < len && memchr(cmdline + at, '\0', len - at);
         at += strlen(cmdline + at) + 1) {
        const char *argument = cmdline + at;

        no_machine =
            no_machine || (ferry_streq(option, "-machine") &&
                           (ferry_streq(argument, "none") || ferry_str_starts(argument, "none,")));
        monitor = monitor || (ferry_streq(option, "-qmp") && is_monitor(argument, dirs));
        option = argument;
    }
    return no_machine && monitor;
}

static bool same_mounts(const char *pid)
{
    ferry_cleanup_free char *path = ferry_asprintf("/proc/%s/ns/mnt", pid);
    struct stat ours, theirs;

    return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

static void end_one(const char *pid, const char *const *dirs)
{
    ferry_cleanup_free char *path = ferry_asprintf("/proc/%s/cmdline", pid);
    ferry_cleanup_buf struct ferry_buf cmdline = {0};
    long long number = 0;

    if (ferry_parse_int(pid, 2, INT32_MAX, &number, NULL) == 0 &&
        ferry_read_file(path, CMDLINE_MAX, &cmdline, NULL) == 0 && cmdline.len &&
        probes_is_one(cmdline.data, cmdline.len, dirs) && same_mounts(pid) &&
        kill((pid_t)number, SIGKILL) == 0) {
        ferry_info("killed a QEMU that libvirtd had started to read its capabilities",
                   F_STR("pid", pid));
    }
}

void probes_end(const char *const *dirs)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;

    while (all && (entry = readdir(all))) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            end_one(entry->d_name, dirs);
        }
    }
    if (all) {
        closedir(all);
    }
}
