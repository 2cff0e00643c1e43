#include "pods/pod_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "pods/host_path.h"
#include "pods/pod_dir.h"
#include "pods/pod_files.h"

#define IMAGE "disk.img"

/* Nodes of block devices: not in the pod's directory, because /run is usually mounted nodev. */
#define DEVICES "/dev/ferry"

/* ---- where ------------------------------------------------------------------------------------
 */

/* The path of the volume that a claim is bound to; owned by the caller. */
static int path_of_claim(struct kube_client *client, const char *ns, const struct pod_volume *v,
                         char **ret, struct ferry_error *err)
{
    api_cleanup_object struct api_object *claim = NULL, *volume = NULL;
    int rc = kube_client_get(client, kube_ref(API_KIND_CLAIM, ns, v->source), &claim, err);

    if (rc == -FERRY_NOT_FOUND) {
        return ferry_fail(err, FERRY_RETRY, "volume '%s': there is no claim '%s'", v->name,
                          v->source);
    }
    if (rc < 0) {
        return rc;
    }
    if (ferry_str_empty(claim->u.claim.volume_name)) {
        return ferry_fail(err, FERRY_RETRY, "volume '%s': claim '%s' is not bound", v->name,
                          v->source);
    }
    rc = kube_client_get(client, kube_ref(API_KIND_VOLUME, NULL, claim->u.claim.volume_name),
                         &volume, err);
    if (rc < 0) {
        return rc;
    }
    if (ferry_str_empty(volume->u.volume.path)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': PersistentVolume '%s' is neither local nor hostPath, and "
                          "this node mounts nothing itself: let the host mount it and name the "
                          "path",
                          v->name, volume->meta->name);
    }
    *ret = ferry_strdup(volume->u.volume.path);
    return 0;
}

static char *in_pod(const struct sandbox_host *h, const char *uid, const char *dir,
                    const char *name)
{
    return ferry_asprintf("%s/%s/%s%s%s", h->pods_dir, uid, dir, *name ? "/" : "", name);
}

/* ---- ready ------------------------------------------------------------------------------------
 */

static int give(const struct sandbox_host *h, const char *path, mode_t mode,
                struct ferry_error *err)
{
    if (chown(path, h->vm_uid, h->vm_gid) < 0 || chmod(path, mode) < 0) {
        return ferry_fail_errno(err, errno, "giving %s to the guest's user", path);
    }
    return 0;
}

/* The image in a directory, if it is there and a file: links lead elsewhere and are left alone. */
static int give_image(const struct sandbox_host *h, const char *dir, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/" IMAGE, dir);
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid == h->vm_uid) {
        return 0;
    }
    /* What is left of a time when all guests ran as one user is taken over here, too. */
    return fchown(fd, h->vm_uid, h->vm_gid) < 0
               ? ferry_fail_errno(err, errno,
                                  "giving %s to the guest's user %u; where storage does not let "
                                  "root do that, ferry-pods runs all guests as one with --vm-user",
                                  path, (unsigned)h->vm_uid)
               : 0;
}

/* As kubelets do with an fsGroup: the guest's group may write in the volume, so that an image can
 * be made there. Where that cannot be (a share that belongs to somebody else), what is there is
 * used. */
static void open_to_guest(const struct sandbox_host *h, const char *path, const struct stat *st)
{
    bool closed = (st->st_mode & 0070) != 0070;

    if (st->st_uid != h->vm_uid && st->st_gid != h->vm_gid &&
        (chown(path, (uid_t)-1, h->vm_gid) < 0 ||
         (closed && chmod(path, (st->st_mode & 07777) | 0070) < 0))) {
        ferry_debug("a volume keeps its group", F_STR("path", path));
    }
}

static int ready_directory(const struct sandbox_host *h, const struct pod_volume *v,
                           const char *path, struct ferry_error *err)
{
    struct stat st;

    if (stat(path, &st) < 0 && errno == ENOENT && v->create) {
        int rc = ferry_mkdir_p(path, 0755, err);

        return rc < 0 ? rc : give(h, path, 0750, err);
    }
    if (stat(path, &st) < 0) {
        return ferry_fail(err, FERRY_NOT_FOUND, "volume '%s': there is no %s on this node", v->name,
                          path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return ferry_fail(err, FERRY_INVALID, "volume '%s': %s is not a directory", v->name, path);
    }
    if (v->kind == POD_VOLUME_CLAIM) {
        open_to_guest(h, path, &st);
    }
    return give_image(h, path, err);
}

/* A node of the same device that only the pod's user can open. The sandbox keeps it: once that is
 * up, its name here goes (pod_storage_done). */
static int ready_device(const struct sandbox_host *h, const char *uid, const char *name,
                        const char *path, mode_t type, char **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *copy = ferry_asprintf(DEVICES "/disk-%s-%s", uid, name);
    struct stat st;

    if (stat(path, &st) < 0 || (st.st_mode & S_IFMT) != type) {
        return ferry_fail(err, FERRY_INVALID, "volume '%s': %s is not a %s device of this node",
                          name, path, type == S_IFBLK ? "block" : "character");
    }
    int rc = ferry_mkdir_p(DEVICES, 0700, err);
    if (rc < 0) {
        return rc;
    }
    if (mknod(copy, type | 0600, st.st_rdev) < 0 && errno != EEXIST) {
        return ferry_fail_errno(err, errno, "making %s", copy);
    }
    rc = give(h, copy, 0600, err);
    if (rc == 0) {
        *ret = ferry_take_ptr(copy);
    }
    return rc;
}

static int ready_empty(const struct sandbox_host *h, const char *uid, const struct pod_volume *v,
                       char **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *path = in_pod(h, uid, "disks", v->name);
    int rc = ferry_mkdir_p(path, 0711, err);

    if (rc == 0) {
        rc = give(h, path, 0700, err);
    }
    if (rc == 0) {
        *ret = ferry_take_ptr(path);
    }
    return rc;
}

static int write_files(const struct sandbox_host *h, const char *dir, const struct pod_files *files,
                       struct ferry_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        const struct pod_file *f = &files->list[i];
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, f->name);

        rc = ferry_write_file(path, f->data, f->n, 0400, err);
        rc = rc < 0 ? rc : give(h, path, 0400, err);
    }
    return rc;
}

/* A ConfigMap or Secret as files that only the pod's user can read. They live in the pod's own
 * directory and go with it. */
static int ready_files(struct kube_client *client, const struct sandbox_host *h, const char *ns,
                       const char *uid, const struct pod_volume *v, char **ret,
                       struct ferry_error *err)
{
    enum api_kind kind = v->kind == POD_VOLUME_SECRET ? API_KIND_SECRET : API_KIND_CONFIG_MAP;
    ferry_cleanup_free char *all = in_pod(h, uid, "files", "");
    ferry_cleanup_free char *dir = in_pod(h, uid, "files", v->name);
    api_cleanup_object struct api_object *o = NULL;
    pod_files_cleanup struct pod_files files = {0};
    int rc = kube_client_get(client, kube_ref(kind, ns, v->source), &o, err);

    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return ferry_wrap(err, "volume '%s'", v->name);
    }
    rc = pod_files_plan(v, o ? o->root : NULL, &files, err);
    /* What an earlier attempt left may be of other keys. */
    if (rc < 0 || (rc = ferry_remove_tree(dir, err)) < 0 ||
        (rc = ferry_mkdir_p(all, 0711, err)) < 0 || (rc = ferry_mkdir_p(dir, 0700, err)) < 0 ||
        (rc = write_files(h, dir, &files, err)) < 0 || (rc = give(h, dir, 0500, err)) < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(dir);
    return 0;
}

static int check_host_path(const struct sandbox_host *h, const struct pod_volume *v,
                           struct ferry_error *err)
{
    enum host_path_kind kind = v->device   ? HOST_PATH_DEVICE
                               : v->create ? HOST_PATH_MADE
                                           : HOST_PATH_DIRECTORY;
    int rc = host_path_check(h->root, h->host_path_roots, v->source, kind, err);

    return rc < 0 ? ferry_wrap(err, "volume '%s'", v->name) : 0;
}

static int ready_one(struct kube_client *client, const struct sandbox_host *h, const char *ns,
                     const char *uid, const struct pod_volume *v, char **ret,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *named = NULL;
    int rc = 0;

    switch (v->kind) {
    case POD_VOLUME_EMPTY:
        return ready_empty(h, uid, v, ret, err);
    case POD_VOLUME_CONFIG_MAP:
    case POD_VOLUME_SECRET:
        return ready_files(client, h, ns, uid, v, ret, err);
    case POD_VOLUME_HUGEPAGES:
        *ret = ferry_strdup("/dev/hugepages");
        return access(*ret, F_OK) == 0
                   ? 0
                   : ferry_fail(err, FERRY_NOT_FOUND, "this node has no /dev/hugepages");
    case POD_VOLUME_HOST_PATH:
        rc = check_host_path(h, v, err);
        named = ferry_strdup(v->source);
        break;
    case POD_VOLUME_VFIO:
        named = ferry_strdup(v->source);
        break;
    case POD_VOLUME_CLAIM:
        rc = path_of_claim(client, ns, v, &named, err);
        break;
    }
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *path = ferry_asprintf("%s%s", h->root ? h->root : "", named);
    if (v->device) {
        return ready_device(h, uid, v->name, path, v->kind == POD_VOLUME_VFIO ? S_IFCHR : S_IFBLK,
                            ret, err);
    }
    rc = ready_directory(h, v, path, err);
    if (rc == 0) {
        *ret = ferry_take_ptr(path);
    }
    return rc;
}

static enum sandbox_place place_of(enum pod_volume_kind kind)
{
    return kind == POD_VOLUME_SECRET       ? SANDBOX_AT_SECRET
           : kind == POD_VOLUME_CONFIG_MAP ? SANDBOX_AT_CONFIG_MAP
           : kind == POD_VOLUME_VFIO       ? SANDBOX_AT_VFIO
                                           : SANDBOX_AT_DISKS;
}

/* Beside its group everybody who uses one opens /dev/vfio/vfio. */
static int ready_vfio(const struct sandbox_host *h, const char *uid, struct sandbox_disks *ret,
                      struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/dev/vfio/vfio", h->root ? h->root : "");
    char *copy = NULL;

    for (size_t i = 0; i < ret->n; i++) {
        if (ret->list[i].place == SANDBOX_AT_VFIO) {
            return 0;
        }
    }
    int rc = ready_device(h, uid, "vfio", path, S_IFCHR, &copy, err);
    if (rc == 0) {
        ret->list[ret->n++] = (struct sandbox_disk){
            .path = copy, .name = ferry_strdup("vfio"), .device = true, .place = SANDBOX_AT_VFIO};
    }
    return rc;
}

int pod_storage_ready(struct kube_client *client, const struct sandbox_host *host, const char *ns,
                      const char *pod_uid, const struct pod_volumes *volumes,
                      struct sandbox_disks *ret, struct ferry_error *err)
{
    int64_t empty = pod_volumes_empty_bytes(volumes);
    ferry_cleanup_free char *dir = ferry_asprintf("%s/%s", host->pods_dir, pod_uid);

    if (empty && pod_dir_make_disks(dir, pod_dir_disks_bytes(host->pods_dir, empty), err) < 0) {
        return -(int)err->cls;
    }
    for (size_t i = 0; i < volumes->n; i++) {
        const struct pod_volume *v = &volumes->list[i];
        bool vfio = v->kind == POD_VOLUME_VFIO;
        char *path = NULL;
        int rc = vfio ? ready_vfio(host, pod_uid, ret, err) : 0;

        rc = rc < 0 ? rc : ready_one(client, host, ns, pod_uid, v, &path, err);
        if (rc < 0) {
            free(path);
            return rc;
        }
        struct sandbox_disk *d = &ret->list[ret->n];
        *d = (struct sandbox_disk){.path = path,
                                   .name =
                                       ferry_strdup(vfio ? strrchr(v->source, '/') + 1 : v->name),
                                   .device = v->device,
                                   .readonly = v->readonly,
                                   .hugepages = v->kind == POD_VOLUME_HUGEPAGES,
                                   .place = place_of(v->kind)};
        ret->n++;
    }
    return 0;
}

void pod_storage_done(struct sandbox_disks *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->list[i].device) {
            unlink(d->list[i].path);
        }
        free(d->list[i].path);
        free(d->list[i].name);
    }
    *d = (struct sandbox_disks){0};
}
