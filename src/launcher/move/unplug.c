#include "launcher/move/unplug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/hostdevs.h"

enum { RECHECK_MS = 500, FILE_MAX_BYTES = 256 << 10 };

#define cleanup_hostdevs ferry_cleanup(hostdevs_done)

static int live_xml(const struct context *c, virDomainPtr *ret_domain, char **ret_xml,
                    struct ferry_error *err)
{
    struct ferry_error own;
    virDomainPtr d = virt_domain(c->virt, err ? err : &own);

    if (!d) {
        return -(int)(err ? err->cls : own.cls);
    }
    *ret_xml = virDomainGetXMLDesc(d, 0);
    if (!*ret_xml) {
        virDomainFree(d);
        return virt_fail(err, "reading the domain");
    }
    *ret_domain = d;
    return 0;
}

bool unplug_keeps_some(const struct context *c)
{
    virt_cleanup_domain virDomainPtr d = NULL;
    ferry_cleanup_free char *xml = NULL;

    return live_xml(c, &d, &xml, NULL) == 0 && hostdevs_others(xml);
}

bool unplug_needed(const struct context *c)
{
    virt_cleanup_domain virDomainPtr d = NULL;
    ferry_cleanup_free char *xml = NULL;
    cleanup_hostdevs struct hostdevs all = {0};

    return live_xml(c, &d, &xml, NULL) == 0 && hostdevs_find(xml, &all, NULL) == 0 && all.n > 0;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static int write_list(const struct context *c, const struct hostdevs *h, struct ferry_error *err)
{
    ferry_cleanup_free char *text = hostdevs_encode(h);

    return ferry_write_file(c->devices_path, text, strlen(text), 0600, err);
}

static void forget(const struct context *c)
{
    if (unlink(c->devices_path) < 0 && errno != ENOENT) {
        struct ferry_error err;

        ferry_fail_errno(&err, errno, "removing %s", c->devices_path);
        ferry_warn("cannot remove the list of devices", F_ERR(&err));
    }
}

/* ---- out ---------------------------------------------------------------------------------------
 */

static int ask(virDomainPtr d, const struct hostdev *h, struct record *record,
               struct ferry_error *err)
{
    record_note(record, "unplug", h->alias);
    ferry_info("unplugging a host device", F_STR("device", h->alias));
    return virDomainDetachDeviceFlags(d, h->xml, VIR_DOMAIN_AFFECT_LIVE) < 0
               ? virt_fail(err, "taking %s out of the guest", h->alias)
               : 0;
}

/* The abort is carried out here: libvirt has no job yet. */
static int stop_here(const struct context *c, struct ferry_error *err)
{
    state_lock(c->state)->migration.abort_accepted = true;
    int rc = state_commit(c->state, err);

    return rc < 0 ? rc : ferry_fail(err, FERRY_CANCELLED, "cancelled before the move began");
}

/* One pass, one step; 1 when all are gone. */
static int step(const struct context *c, const struct hostdevs *all, size_t *asked,
                int64_t *asked_ns, struct record *record, struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = NULL;
    ferry_cleanup_free char *xml = NULL;
    cleanup_hostdevs struct hostdevs present = {0};
    struct state_values v;
    size_t i;
    int rc = live_xml(c, &d, &xml, err);

    if (rc < 0 || (rc = hostdevs_find(xml, &present, err)) < 0) {
        return rc;
    }
    state_get(c->state, &v);
    switch (hostdevs_decide(all, &present, *asked, (ferry_now_ns() - *asked_ns) / FERRY_NS_PER_MS,
                            v.migration.abort != STATE_ABORT_NONE, &i)) {
    case HOSTDEVS_ASK:
        *asked = i + 1;
        *asked_ns = ferry_now_ns();
        return ask(d, &all->list[i], record, err);
    case HOSTDEVS_WAIT:
        return 0;
    case HOSTDEVS_STOP:
        return stop_here(c, err);
    case HOSTDEVS_REFUSED:
        return ferry_fail(err, FERRY_INVALID,
                          "the guest did not let go of %s, a device of its host, within %d s",
                          all->list[i].alias, HOSTDEVS_WAIT_MS / 1000);
    default:
        return 1;
    }
}

int unplug_all(const struct context *c, struct record *record, struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = NULL;
    ferry_cleanup_free char *xml = NULL;
    cleanup_hostdevs struct hostdevs all = {0};
    size_t asked = 0, before;
    int64_t asked_ns = ferry_now_ns();
    uint64_t seen = virt_last_event(c->virt);
    int rc = live_xml(c, &d, &xml, err);

    if (rc < 0 || (rc = hostdevs_find(xml, &all, err)) < 0 || all.n == 0 ||
        (rc = write_list(c, &all, err)) < 0) {
        return rc;
    }
    do {
        struct virt_event e;
        int64_t until = ferry_now_ns() + RECHECK_MS * FERRY_NS_PER_MS;

        before = asked;
        rc = step(c, &all, &asked, &asked_ns, record, err);
        if (rc == 0 && asked == before && virt_next_event(c->virt, seen, until, &e)) {
            seen = e.seq;
        }
    } while (rc == 0);
    return rc < 0 ? rc : 0;
}

/* ---- in ----------------------------------------------------------------------------------------
 */

int unplug_expect(const struct context *c, const char *domain_xml, struct ferry_error *err)
{
    cleanup_hostdevs struct hostdevs all = {0};
    int rc = hostdevs_find(domain_xml, &all, err);

    if (rc == 0 && all.n == 0) {
        forget(c);
    }
    return rc < 0 || all.n == 0 ? rc : write_list(c, &all, err);
}

static int plug_in(const struct context *c, const struct hostdevs *all, struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = NULL;
    ferry_cleanup_free char *xml = NULL;
    cleanup_hostdevs struct hostdevs present = {0};
    int rc = live_xml(c, &d, &xml, err);

    if (rc < 0 || (rc = hostdevs_find(xml, &present, err)) < 0) {
        return rc;
    }
    for (size_t i = 0; i < all->n; i++) {
        if (hostdevs_has(&present, all->list[i].alias)) {
            continue;
        }
        if (virDomainAttachDeviceFlags(d, all->list[i].xml, VIR_DOMAIN_AFFECT_LIVE) < 0) {
            return virt_fail(err, "plugging %s into the guest", all->list[i].alias);
        }
        ferry_info("host device plugged into the guest", F_STR("device", all->list[i].alias));
    }
    return 0;
}

bool unplug_tend(const struct context *c)
{
    cleanup_hostdevs struct hostdevs all = {0};
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct state_values v;
    struct ferry_error err;
    struct view now;

    state_get(c->state, &v);
    if (access(c->devices_path, F_OK) < 0 || !state_migration_over(&v.migration) ||
        virt_view(c->virt, &now, NULL) < 0) {
        return true;
    }
    /* A QEMU that is stuck in a migration takes none. */
    bool wanted = view_active(&now) && !v.rescued;
    int rc = ferry_read_file(c->devices_path, FILE_MAX_BYTES, &text, &err);
    if (rc == 0 && wanted && (rc = hostdevs_decode(text.data, text.len, &all, &err)) == 0) {
        rc = plug_in(c, &all, &err);
    }
    if (rc == 0) {
        forget(c);
    } else {
        ferry_warn("host device not plugged back", F_ERR(&err));
    }
    return rc == 0;
}
