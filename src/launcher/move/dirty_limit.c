#include "launcher/move/dirty_limit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/domain/xml_read.h"
#include "launcher/libvirt/qmp_session.h"

enum { QMP_MS = 1000 };

int64_t dirty_limit_vcpus_of(const char *xml)
{
    xml_cleanup_doc xmlDocPtr doc = xml_read(xml);
    const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
    const xmlNode *ring =
        xml_read_child(xml_read_child(xml_read_child(root, "features"), "kvm"), "dirty-ring");
    ferry_cleanup_free char *type = root ? xml_read_attribute(root, "type") : NULL;
    ferry_cleanup_free char *state = ring ? xml_read_attribute(ring, "state") : NULL;
    const xmlNode *vcpu = xml_read_child(root, "vcpu");
    ferry_cleanup_free char *n = vcpu ? xml_read_content(vcpu) : NULL;

    return ferry_streq(type, "kvm") && ferry_streq(state, "on") && n ? strtoll(n, NULL, 10) : 0;
}

int64_t dirty_limit_vcpus(const struct context *c)
{
    virt_cleanup_domain virDomainPtr d = c->domain.kvm ? virt_domain(c->virt, NULL) : NULL;
    ferry_cleanup_free char *xml = d ? virDomainGetXMLDesc(d, 0) : NULL;

    return xml ? dirty_limit_vcpus_of(xml) : 0;
}

static int tell(const struct context *c, const char *command, const char *arguments,
                struct ferry_error *err)
{
    return qmp_session_execute(c->qmp,
                               &(struct qmp_command){.name = command, .arguments = arguments},
                               ferry_now_ns() + QMP_MS * FERRY_NS_PER_MS, NULL, err);
}

int dirty_limit_set(const struct context *c, int64_t mib_per_s, struct ferry_error *err)
{
    ferry_cleanup_free char *arguments =
        ferry_asprintf("{\"dirty-rate\":%lld}", (long long)mib_per_s);

    return tell(c, "set-vcpu-dirty-limit", arguments, err);
}

void dirty_limit_cancel(const struct context *c)
{
    struct ferry_error err;

    if (c->domain.kvm && tell(c, "cancel-vcpu-dirty-limit", NULL, &err) < 0) {
        ferry_warn("a limit to what the guest writes may be left", F_ERR(&err));
    }
}
