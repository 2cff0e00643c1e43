#include "cli/site/site_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"

#define NETNS_DIR "/run/netns"

enum { COMMAND_WORDS = 24, BACKLOG = 128 };

static int run_line(const char *line, struct ferry_error *err)
{
    ferry_cleanup_free char *copy = ferry_strdup(line);
    const char *argv[COMMAND_WORDS + 1] = {NULL};
    size_t n = 0;
    char *save = NULL;

    for (char *w = strtok_r(copy, " ", &save); w && n < COMMAND_WORDS;
         w = strtok_r(NULL, " ", &save)) {
        argv[n++] = w;
    }
    return ferry_run(argv, NULL, err);
}

int site_net_make(const struct site_plan *p, struct ferry_error *err)
{
    site_cleanup_strings char **lines = site_plan_network(p);

    for (char **l = lines; *l; l++) {
        if (run_line(*l, err) < 0) {
            return ferry_wrap(err, "making the site's network");
        }
    }
    return 0;
}

static int remove_one(const char *name, struct ferry_error *err)
{
    ferry_cleanup_free char *path = site_plan_netns_path(name);

    if (access(path, F_OK) < 0) {
        return 0;
    }
    int rc = ferry_run((const char *const[]){"ip", "netns", "delete", name, NULL}, NULL, err);
    return rc < 0 ? rc : 1;
}

bool site_net_is_mounted(void)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    bool found = false;

    for (struct mntent *m; f && !found && (m = getmntent(f));) {
        found = ferry_streq(m->mnt_dir, NETNS_DIR);
    }
    if (f) {
        endmntent(f);
    }
    return found;
}

int site_net_remove(const char *root, bool unmount, struct ferry_error *err)
{
    int removed = 0, rc;

    for (int i = SITE_MAX_NODES - 1; i >= -1; i--) {
        ferry_cleanup_free char *name =
            i < 0 ? site_plan_fabric_name(root) : site_plan_netns_name(root, i);

        rc = remove_one(name, err);
        if (rc < 0) {
            return rc;
        }
        removed += rc;
    }
    /* While another namespace has its name there, this fails and all stays as it is. The directory
     * stays: to remove it would take away what others, in mounts of their own, have there. */
    if (removed && unmount) {
        umount2(NETNS_DIR, UMOUNT_NOFOLLOW);
    }
    return removed;
}

static int listen_here(const char *address, int port, struct ferry_error *err)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;

    if (inet_pton(AF_INET, address, &sa.sin_addr) != 1) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is not an IPv4 address", address);
    }
    ferry_cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, BACKLOG) < 0) {
        return ferry_fail_errno(err, errno, "listening on %s:%d", address, port);
    }
    return ferry_take_fd(&fd);
}

int site_net_listen(const char *netns, const char *address, int port, struct ferry_error *err)
{
    if (!netns) {
        return listen_here(address, port, err);
    }
    ferry_cleanup_free char *path = site_plan_netns_path(netns);
    ferry_cleanup_fd int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    ferry_cleanup_fd int there = open(path, O_RDONLY | O_CLOEXEC);

    if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) < 0) {
        return ferry_fail_errno(err, errno, "entering network namespace %s", netns);
    }
    int fd = listen_here(address, port, err);
    if (setns(home, CLONE_NEWNET) < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return ferry_fail_errno(err, errno, "leaving network namespace %s", netns);
    }
    return fd;
}
