/* The bubblewrap command line of a pod's sandbox. Pure: values in, words out.
 *
 * What the pod sees is fixed in docs/contracts/pods.md. Bubblewrap
 * runs as root, because only root may make these namespaces without a user namespace; ferry-init
 * gives up user and capabilities before it starts anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Descriptors as bubblewrap gets them. */
enum { SANDBOX_FD_CONTROL = 3, SANDBOX_FD_EXIT = 4, SANDBOX_FD_INFO = 5, SANDBOX_FD_KILLS = 6 };

/* A volume of the pod, at /var/run/kubevirt-private/PLACE/NAME. */
enum sandbox_place {
    SANDBOX_AT_DISKS,
    SANDBOX_AT_CONFIG_MAP,
    SANDBOX_AT_SECRET,
    SANDBOX_AT_VFIO /* not there: /dev/vfio/NAME */
};
enum { SANDBOX_DISKS_MAX = 17 };
struct sandbox_disk {
    char *path, *name; /* on the host; in the pod */
    bool device, readonly;
    bool hugepages; /* not a disk: /dev/hugepages */
    enum sandbox_place place;
};
struct sandbox_disks {
    struct sandbox_disk list[SANDBOX_DISKS_MAX];
    size_t n;
};

struct sandbox_spec {
    const char *dir;       /* the pod's directory on the host */
    const char *hostname;  /* the pod's name; cut to what the kernel takes */
    const char *init_path; /* programs on the host */
    const char *launcher_path;
    const char *guest_dir;      /* or NULL */
    const char *uffd_path;      /* device node for userfaultfd, or NULL */
    const char *tun_path;       /* device node for taps, or NULL: none in the sandbox */
    const char *vhost_net_path; /* device node for vhost-net, or NULL: none in the sandbox */
    const char *kvm_path;       /* device node for KVM, or NULL: none in the sandbox */
    bool kills;                 /* there is a descriptor of what the kernel kills for memory */
    uid_t uid;                  /* who runs in the sandbox */
    gid_t gid;
    const char *const *args; /* the launcher's arguments */
    size_t n_args;
    const struct sandbox_disks *disks; /* or NULL */
};

struct sandbox_args {
    char **argv; /* NULL-terminated, owned */
    size_t n;
};

void sandbox_args(const struct sandbox_spec *spec, struct sandbox_args *ret);
void sandbox_args_done(struct sandbox_args *a);
#define sandbox_args_cleanup ferry_cleanup(sandbox_args_done)
