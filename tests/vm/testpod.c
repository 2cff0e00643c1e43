/* testpod: runs a launcher in the very sandbox that ferry-pods makes, without an API server.
 *
 * testpod start NODE_ROOT BIN_DIR GUEST_DIR POD_UID POD_NAME LAUNCHER_ARGUMENT...
 * testpod signal|remove|harvest NODE_ROOT POD_UID [SIGNAL]
 *
 * `start` returns when the sandbox stands; it goes on without us. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "pods/sandbox.h"

enum { VM_USER = 61201, RELAY_USER = 61200 };

/* As scripts/run-tests says. */
static bool is_accelerated(void)
{
    return ferry_streq(getenv("FERRY_ACCELERATOR"), "kvm");
}

static int start(struct sandbox_host *h, const char *bin_dir, const char *guest_dir,
                 const char *uid, const char *name, char **args, struct ferry_error *err)
{
    ferry_cleanup_free char *init = ferry_asprintf("%s/ferry-init", bin_dir);
    ferry_cleanup_free char *launcher = ferry_asprintf("%s/ferry-launcher", bin_dir);
    size_t n = 0;
    pid_t pid;

    while (args[n]) {
        n++;
    }
    h->init_path = init;
    h->launcher_path = launcher;
    h->guest_dir = guest_dir;
    return sandbox_start(h,
                         &(struct sandbox_pod){.uid = uid,
                                               .ns = "default",
                                               .name = name,
                                               .args = (const char *const *)args,
                                               .n_args = n,
                                               .kvm = is_accelerated(),
                                               .incoming = true},
                         &pid, err);
}

int main(int argc, char **argv)
{
    struct ferry_error err = {0};
    const char *verb = argc > 3 ? argv[1] : "";
    ferry_cleanup_free char *pods = ferry_asprintf("%s/run/ferry/pods", argc > 2 ? argv[2] : "");
    ferry_cleanup_free char *cache =
        ferry_asprintf("%s/var/lib/ferry/libvirt-cache", argc > 2 ? argv[2] : "");
    struct sandbox_host host = {
        .pods_dir = pods,
        .cache_dir = cache,
        .vm_uid = VM_USER,
        .vm_gid = VM_USER,
        .relay_uid = RELAY_USER,
        .relay_gid = RELAY_USER,
    };
    int rc;

    ferry_log_init("testpod", FERRY_LOG_INFO, FERRY_LOG_TEXT);
    if (strcmp(verb, "start") == 0 && argc >= 7) {
        rc = start(&host, argv[3], argv[4], argv[5], argv[6], argv + 7, &err);
    } else if (strcmp(verb, "signal") == 0 && argc == 5) {
        rc = sandbox_signal(&host, argv[3], atoi(argv[4]), &err);
    } else if (strcmp(verb, "remove") == 0) {
        rc = sandbox_remove(&host, argv[3], &err);
    } else if (strcmp(verb, "harvest") == 0) {
        rc = sandbox_harvest(&host, argv[3], &err);
    } else {
        rc = ferry_fail(&err, FERRY_INVALID, "wrong call, see the source");
    }
    return rc < 0 ? ferry_die("testpod", FERRY_EXIT_FAILED, &err) : 0;
}
