#include "launcher/move/preflight.h"

#include <libvirt/virterror.h>
#include <stdlib.h>

#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "launcher/domain/xml_read.h"
#include "launcher/move/migrate_call.h"

static void close_connection(virConnectPtr *conn)
{
    if (*conn) {
        virConnectClose(*conn);
    }
}
#define cleanup_connection ferry_cleanup(close_connection)

/* ---- reading -----------------------------------------------------------------------------------
 */

char *preflight_host(const char *capabilities_xml)
{
    xml_cleanup_doc xmlDocPtr doc = xml_read(capabilities_xml);
    const xmlNode *host = doc ? xml_read_child(xmlDocGetRootElement(doc), "host") : NULL;

    return xml_read_content(xml_read_child(host, "uuid"));
}

char *preflight_cpu(const char *domain_xml)
{
    xml_cleanup_doc xmlDocPtr doc = xml_read(domain_xml);
    xmlNodePtr cpu = doc ? xml_read_child(xmlDocGetRootElement(doc), "cpu") : NULL;
    ferry_cleanup_free char *mode = xml_read_attribute(cpu, "mode");

    return ferry_streq(mode, "custom") ? xml_read_whole(doc, cpu) : NULL;
}

/* ---- asking ------------------------------------------------------------------------------------
 */

static int check_host(virConnectPtr here, virConnectPtr there, struct ferry_error *err)
{
    ferry_cleanup_free char *xml_here = virConnectGetCapabilities(here);
    ferry_cleanup_free char *xml_there = virConnectGetCapabilities(there);
    ferry_cleanup_free char *a = preflight_host(xml_here);
    ferry_cleanup_free char *b = preflight_host(xml_there);

    if (a && ferry_streq(a, b)) {
        return ferry_fail(err, FERRY_INVALID,
                          "source and target are the same host by their libvirts' UUID, %s", a);
    }
    return 0;
}

/* Whether libvirt says for sure that a host lacks something of the CPU; `err` has what. */
static bool lacks(const struct context *c, virConnectPtr host, const char *cpu,
                  struct ferry_error *err)
{
    int fits = virConnectCompareHypervisorCPU(host, c->domain.emulator, "x86_64", NULL,
                                              c->domain.kvm ? "kvm" : "qemu", cpu,
                                              VIR_CONNECT_COMPARE_CPU_FAIL_INCOMPATIBLE);
    virErrorPtr e = fits < 0 ? virGetLastError() : NULL;

    if (fits != VIR_CPU_COMPARE_INCOMPATIBLE && (!e || e->code != VIR_ERR_CPU_INCOMPATIBLE)) {
        return false;
    }
    ferry_fail(err, FERRY_INVALID, "the target cannot give the guest its CPU: %s",
               e && e->message ? e->message : "it lacks features");
    return true;
}

/* What emulation leaves out of a model here it may leave out there too. */
static int check_cpu(const struct context *c, virConnectPtr here, virConnectPtr there,
                     struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = virt_domain(c->virt, err);
    ferry_cleanup_free char *xml = d ? virDomainGetXMLDesc(d, VIR_DOMAIN_XML_MIGRATABLE) : NULL;
    ferry_cleanup_free char *cpu = preflight_cpu(xml);

    if (!d) {
        return -(int)err->cls;
    }
    return cpu && lacks(c, there, cpu, err) && !lacks(c, here, cpu, NULL) ? -FERRY_INVALID : 0;
}

int preflight_run(const struct context *c, enum wire_reason *ret_code, struct ferry_error *err)
{
    ferry_cleanup_free char *uri = migrate_destination_uri(c->migration_dir, c->uid, c->system);
    cleanup_connection virConnectPtr here = virt_connection(c->virt, err);

    *ret_code = REASON_LIBVIRT_ERROR;
    if (!here) {
        return -(int)err->cls;
    }
    cleanup_connection virConnectPtr there = virConnectOpen(uri);
    if (!there) {
        return virt_fail(err, "connecting to the target's libvirt");
    }
    int rc = check_host(here, there, err);
    if (rc == 0 && (rc = check_cpu(c, here, there, err)) < 0) {
        *ret_code = REASON_CPU_INCOMPATIBLE;
    }
    return rc;
}
