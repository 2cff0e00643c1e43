#include "launcher/report/context.h"

#include <errno.h>
#include <net/if.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/oom_kills.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/domain_devices.h"
#include "launcher/report/guest_note.h"
#include "launcher/report/status.h"
#include "json/doc.h"

enum { KILLS_MAX = 4096 };

void context_publish_migration(const struct context *c, const struct launcher_sample *sample)
{
    struct launcher_migration m;
    struct state_values v;

    state_get(c->state, &v);
    if (v.migration.role == LAUNCHER_ROLE_NONE) {
        return;
    }
    yyjson_mut_doc *doc = json_doc_new();
    status_of_migration(&v.migration, sample, &m);
    yyjson_mut_doc_set_root(doc, wire_launcher_migration_write(doc, &m));
    events_publish(c->events, "migration", doc);
}

int context_check_vmi(const struct context *c, const struct api_vmi *vmi, struct ferry_error *err)
{
    if (!ferry_streq(vmi->meta.namespace_, c->namespace_) ||
        !ferry_streq(vmi->meta.name, c->name) || !ferry_streq(vmi->meta.uid, c->uid)) {
        return ferry_fail(err, FERRY_INVALID,
                          "this launcher is for VMI %s/%s (%s), not for %s/%s (%s)", c->namespace_,
                          c->name, c->uid, vmi->meta.namespace_ ? vmi->meta.namespace_ : "",
                          vmi->meta.name ? vmi->meta.name : "", vmi->meta.uid ? vmi->meta.uid : "");
    }
    return 0;
}

int64_t context_oom_kills(const struct context *c)
{
    /* In a container of Kubernetes: of its own group. A sandbox of ferry-pods sees none. */
    static const char *const paths[] = {"/sys/fs/cgroup/memory.events",
                                        "/sys/fs/cgroup/memory/memory.oom_control"};

    if (c->kills_fd >= 0) {
        char text[KILLS_MAX];
        ssize_t n = pread(c->kills_fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        return ferry_oom_kills(text);
    }
    for (size_t i = 0; i < FERRY_COUNT(paths); i++) {
        ferry_cleanup_buf struct ferry_buf text = {0};

        if (ferry_read_file(paths[i], KILLS_MAX, &text, NULL) == 0 && text.len > 0) {
            return ferry_oom_kills(text.data);
        }
    }
    return 0;
}

int context_view(const struct context *c, struct view *ret, struct ferry_error *err)
{
    struct state_values v;
    struct view domain;
    int rc = virt_view(c->virt, &domain, err);

    if (rc < 0) {
        return rc;
    }
    state_get(c->state, &v);
    *ret =
        guest_view(&domain, &v, domain.state == LAUNCHER_DOMAIN_CRASHED ? context_oom_kills(c) : 0);
    return 0;
}

int context_domain(const struct context *c, const struct api_vmi *vmi, char **ret_xml,
                   struct ferry_error *err)
{
    ferry_cleanup_free char *kernel = NULL;
    struct disks disks;
    struct disks_sizes sizes;
    int rc = disk_image_find(vmi, c->domain.disk_dir, &disks, err);

    if (rc < 0 || (rc = domain_xml(vmi, &disks, &c->domain, ret_xml, err)) < 0 ||
        (rc = domain_xml_kernel(vmi, &c->domain, &kernel, err)) < 0) {
        return rc;
    }
    for (size_t i = 0; i < domain_devices_taps(&vmi->machine); i++) {
        ferry_cleanup_free char *tap = ferry_asprintf("tap%zu", i);

        if (if_nametoindex(tap) == 0) {
            return ferry_fail(err, FERRY_INVALID,
                              "spec.domain.devices.interfaces: this pod has no device %s for an "
                              "interface",
                              tap);
        }
    }
    if (disk_image_sizes(&disks, c->domain.disk_dir, false, &sizes, err) < 0) {
        return -FERRY_INVALID;
    }
    if (kernel && access(kernel, R_OK) < 0) {
        ferry_fail_errno(err, errno, "spec.domain.firmware.kernelBoot.container.kernelPath: %s",
                         kernel);
        err->cls = FERRY_INVALID;
        return -FERRY_INVALID;
    }
    return 0;
}
