/* What CPUs guests can have here. No guest is involved: libvirt starts a QEMU without one and asks
 * it. That needs no rights, so none are kept. */
#include "programs/ferry-launcher-cpu.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/options.h"
#include "base/str.h"
#include "launcher/libvirt/cpu_ask.h"

enum { NOBODY = 65534 };

/* A user without any file; with KVM, one who may open its device. */
static int give_up_root(bool kvm, struct ferry_error *err)
{
    struct stat st;
    gid_t groups[1];
    size_t n = 0;

    if (geteuid() != 0) {
        return 0;
    }
    if (kvm && stat("/dev/kvm", &st) == 0) {
        groups[n++] = st.st_gid;
    }
    if (setgroups(n, groups) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0) {
        return ferry_fail_errno(err, errno, "giving up root");
    }
    return 0;
}

/* libvirt makes some directories where it is told by these, whatever its root is. */
static void live_in(const char *dir)
{
    static const char *const variables[] = {"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
                                            "XDG_CACHE_HOME", "XDG_DATA_HOME"};

    for (size_t i = 0; i < FERRY_COUNT(variables); i++) {
        setenv(variables[i], dir, 1);
    }
}

static int describe(const char *emulator, bool kvm, struct ferry_error *err)
{
    char dir[] = "/tmp/ferry-cpu.XXXXXX";
    ferry_cleanup_free char *json = NULL;
    int rc = give_up_root(kvm, err);

    if (rc == 0 && !mkdtemp(dir)) {
        rc = ferry_fail_errno(err, errno, "making %s", dir);
    }
    if (rc < 0) {
        return rc;
    }
    live_in(dir);
    rc = cpu_ask(emulator, kvm, dir, &json, err);
    if (rc == 0) {
        puts(json);
        fflush(stdout);
    }
    ferry_remove_tree(dir, NULL);
    return rc;
}

int launcher_describe_cpu(const char *emulator, bool kvm)
{
    struct ferry_error err;

    _exit(describe(emulator, kvm, &err) < 0 ? ferry_die("ferry-launcher", FERRY_EXIT_FAILED, &err)
                                            : FERRY_EXIT_OK);
}
