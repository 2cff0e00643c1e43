#include "launcher/domain/cpu_report.h"

#include <string.h>
#include <yyjson.h>

#include "api/machine_type.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "launcher/domain/xml_read.h"
#include "launcher/domain/xml_write.h"
#include "json/doc.h"

static void free_xml(xmlChar **s)
{
    if (*s) {
        xmlFree(*s);
    }
}
#define cleanup_text ferry_cleanup(free_xml) xmlChar *

static bool is_element(const xmlNode *n, const char *name)
{
    return n->type == XML_ELEMENT_NODE && ferry_streq((const char *)n->name, name);
}

static xmlNode *child(const xmlNode *parent, const char *name)
{
    xmlNode *n = parent ? parent->children : NULL;

    while (n && !is_element(n, name)) {
        n = n->next;
    }
    return n;
}

static bool has(xmlNode *n, const char *attribute, const char *value)
{
    cleanup_text text = xmlGetProp(n, (const xmlChar *)attribute);

    return ferry_streq((const char *)text, value);
}

/* <mode name='NAME' supported='yes'> of the capabilities' <cpu>. */
static xmlNode *mode(const xmlNode *root, const char *name)
{
    xmlNode *cpu = child(root, "cpu");

    for (xmlNode *n = cpu ? cpu->children : NULL; n; n = n->next) {
        if (is_element(n, "mode") && has(n, "name", name)) {
            return has(n, "supported", "yes") ? n : NULL;
        }
    }
    return NULL;
}

static int read_xml(const char *xml, const char *root, xmlDocPtr *ret, struct ferry_error *err)
{
    xmlDocPtr doc = xml_read(xml);
    const xmlNode *top = doc ? xmlDocGetRootElement(doc) : NULL;

    *ret = doc;
    if (!top || !is_element(top, root)) {
        return ferry_fail(err, FERRY_PEER, "libvirt's answer is no <%s>", root);
    }
    return 0;
}

/* ---- the host's model -------------------------------------------------------------------------
 */

int cpu_report_host(const char *capabilities_xml, char **ret_xml, struct ferry_error *err)
{
    xml_cleanup_doc xmlDocPtr doc = NULL;
    int rc = read_xml(capabilities_xml, "domainCapabilities", &doc, err);
    struct xml_write x;

    *ret_xml = NULL;
    xmlNode *host = rc < 0 ? NULL : mode(xmlDocGetRootElement(doc), "host-model");
    cleanup_text model = host ? xmlNodeGetContent(child(host, "model")) : NULL;
    if (rc < 0 || ferry_str_empty((const char *)model)) {
        return rc;
    }
    rc = xml_write_init(&x, err);
    if (rc == 0) {
        cleanup_text vendor = xmlNodeGetContent(child(host, "vendor"));

        xml_write_start(&x, "cpu");
        xml_write_attribute(&x, "mode", "custom");
        xml_write_attribute(&x, "match", "exact");
        xml_write_start(&x, "model");
        xml_write_attribute(&x, "fallback", "forbid");
        xml_write_text(&x, (const char *)model);
        xml_write_end(&x);
        if (!ferry_str_empty((const char *)vendor)) {
            xml_write_text_element(&x, "vendor", (const char *)vendor);
        }
        for (xmlNode *f = host->children; f; f = f->next) {
            cleanup_text policy = xmlGetProp(f, (const xmlChar *)"policy");
            cleanup_text name = xmlGetProp(f, (const xmlChar *)"name");

            if (is_element(f, "feature") && policy && name) {
                XML_LEAF(&x, "feature", "policy", (const char *)policy, "name", (const char *)name);
            }
        }
        xml_write_end(&x);
    }
    return xml_write_finish(&x, rc, ret_xml, err);
}

/* ---- the report -------------------------------------------------------------------------------
 */

static void add_text(yyjson_mut_doc *out, yyjson_mut_val *o, const char *key, const xmlNode *from)
{
    cleanup_text text = from ? xmlNodeGetContent(from) : NULL;

    if (!ferry_str_empty((const char *)text)) {
        yyjson_mut_obj_add_strcpy(out, o, key, (const char *)text);
    }
}

/* Features that a CPU has: policy require, or force. */
static yyjson_mut_val *required(yyjson_mut_doc *out, const xmlNode *cpu)
{
    yyjson_mut_val *list = yyjson_mut_arr(out);

    for (xmlNode *f = cpu ? cpu->children : NULL; f; f = f->next) {
        cleanup_text name = xmlGetProp(f, (const xmlChar *)"name");

        if (is_element(f, "feature") && name &&
            (has(f, "policy", "require") || has(f, "policy", "force"))) {
            yyjson_mut_arr_add_strcpy(out, list, (const char *)name);
        }
    }
    return list;
}

static yyjson_mut_val *usable_models(yyjson_mut_doc *out, const xmlNode *custom)
{
    yyjson_mut_val *list = yyjson_mut_arr(out);

    for (xmlNode *m = custom ? custom->children : NULL; m; m = m->next) {
        if (is_element(m, "model") && has(m, "usable", "yes")) {
            cleanup_text name = xmlNodeGetContent(m);

            yyjson_mut_arr_add_strcpy(out, list, (const char *)name);
        }
    }
    return list;
}

/* Those of <guest>s that are whole machines of this kind; aliases mean others elsewhere. */
static yyjson_mut_val *machines(yyjson_mut_doc *out, const xmlNode *capabilities)
{
    yyjson_mut_val *list = yyjson_mut_arr(out);

    for (xmlNode *g = capabilities->children; g; g = g->next) {
        cleanup_text os = is_element(g, "guest") ? xmlNodeGetContent(child(g, "os_type")) : NULL;
        xmlNode *arch = ferry_streq((const char *)os, "hvm") ? child(g, "arch") : NULL;

        for (xmlNode *m = arch && has(arch, "name", "x86_64") ? arch->children : NULL; m;
             m = m->next) {
            cleanup_text name = is_element(m, "machine") ? xmlNodeGetContent(m) : NULL;

            if (api_machine_is_pinned((const char *)name)) {
                yyjson_mut_arr_add_strcpy(out, list, (const char *)name);
            }
        }
    }
    return list;
}

int cpu_report(const char *capabilities_xml, const char *expanded_xml, const char *machines_xml,
               char **ret_json, struct ferry_error *err)
{
    xml_cleanup_doc xmlDocPtr doc = NULL;
    xml_cleanup_doc xmlDocPtr expanded = NULL;
    xml_cleanup_doc xmlDocPtr host_caps = NULL;

    if (read_xml(capabilities_xml, "domainCapabilities", &doc, err) < 0 ||
        read_xml(machines_xml, "capabilities", &host_caps, err) < 0 ||
        (expanded_xml && read_xml(expanded_xml, "cpu", &expanded, err) < 0)) {
        return -FERRY_PEER;
    }
    const xmlNode *root = xmlDocGetRootElement(doc), *host = mode(root, "host-model");
    yyjson_mut_doc *out = json_doc_new();
    yyjson_mut_val *o = json_doc_object(out);

    add_text(out, o, "accelerator", child(root, "domain"));
    add_text(out, o, "vendor", child(host, "vendor"));
    add_text(out, o, "hostModel", child(host, "model"));
    yyjson_mut_obj_add_val(out, o, "requiredFeatures", required(out, host));
    yyjson_mut_obj_add_val(out, o, "models", usable_models(out, mode(root, "custom")));
    yyjson_mut_obj_add_val(out, o, "features",
                           required(out, expanded ? xmlDocGetRootElement(expanded) : host));
    yyjson_mut_obj_add_val(out, o, "machines", machines(out, xmlDocGetRootElement(host_caps)));
    *ret_json = json_doc_text(out, 0, NULL);
    yyjson_mut_doc_free(out);
    return 0;
}
