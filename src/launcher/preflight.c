#include "launcher/preflight.h"

#include <libvirt/virterror.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "launcher/migrate_call.h"

static void free_doc(xmlDocPtr *doc)
{
    xmlFreeDoc(*doc);
}
#define cleanup_xml ferry_cleanup(free_doc)

static void close_connection(virConnectPtr *conn)
{
    if (*conn) {
        virConnectClose(*conn);
    }
}
#define cleanup_connection ferry_cleanup(close_connection)

/* ---- reading -----------------------------------------------------------------------------------
 */

/* The element at `path` ("host/uuid") below the root; NULL when there is none. */
static xmlNodePtr element(const char *xml, const char *path, xmlDocPtr *ret_doc)
{
    *ret_doc = xml ? xmlReadMemory(xml, (int)strlen(xml), "libvirt.xml", NULL,
                                   XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)
                   : NULL;
    xmlNodePtr at = *ret_doc ? xmlDocGetRootElement(*ret_doc) : NULL;

    while (at && *path) {
        size_t n = strcspn(path, "/");
        xmlNodePtr c = at->children;

        while (c && (c->type != XML_ELEMENT_NODE || strlen((const char *)c->name) != n ||
                     strncmp((const char *)c->name, path, n) != 0)) {
            c = c->next;
        }
        at = c;
        path += n + (path[n] == '/');
    }
    return at;
}

char *preflight_host(const char *capabilities_xml)
{
    cleanup_xml xmlDocPtr doc = NULL;
    xmlNodePtr uuid = element(capabilities_xml, "host/uuid", &doc);
    xmlChar *text = uuid ? xmlNodeGetContent(uuid) : NULL;
    char *copy = text && *text ? ferry_strdup((const char *)text) : NULL;

    xmlFree(text);
    return copy;
}

static bool is(xmlNodePtr node, const char *name, const char *value)
{
    xmlChar *text = xmlGetProp(node, BAD_CAST name);
    bool same = ferry_streq((const char *)text, value);

    xmlFree(text);
    return same;
}

char *preflight_cpu(const char *domain_xml)
{
    cleanup_xml xmlDocPtr doc = NULL;
    xmlNodePtr cpu = element(domain_xml, "cpu", &doc);

    if (!cpu || !is(cpu, "mode", "custom")) {
        return NULL;
    }
    xmlBufferPtr buffer = xmlBufferCreate();
    char *text = buffer && xmlNodeDump(buffer, doc, cpu, 0, 0) >= 0
                     ? ferry_strdup((const char *)xmlBufferContent(buffer))
                     : NULL;
    xmlBufferFree(buffer);
    return text;
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
    return cpu && lacks(c, there, cpu, err) && !lacks(c, here, cpu, NULL) ? -(int)FERRY_INVALID : 0;
}

int preflight(const struct context *c, const char **ret_code, struct ferry_error *err)
{
    ferry_cleanup_free char *uri = migrate_destination_uri(c->migration_dir, c->uid, c->system);
    cleanup_connection virConnectPtr here = virt_connection(c->virt, err);

    *ret_code = "LibvirtError";
    if (!here) {
        return -(int)err->cls;
    }
    cleanup_connection virConnectPtr there = virConnectOpen(uri);
    if (!there) {
        return virt_fail(err, "connecting to the target's libvirt");
    }
    int rc = check_host(here, there, err);
    if (rc == 0 && (rc = check_cpu(c, here, there, err)) < 0) {
        *ret_code = "CPUIncompatible";
    }
    return rc;
}
