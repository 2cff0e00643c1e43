/* A VMI from anybody to a domain: refused by name, or XML that is well formed whatever its strings
 * hold. */
#include "fuzz.h"

#include <libxml/parser.h>

#include "api/object.h"
#include "api/wire/wire_options.h"
#include "launcher/domain/disks.h"
#include "launcher/domain/domain_xml.h"
#include "launcher/domain/hostdevs.h"

static const char *const environment[] = {"PCI_RESOURCE_X=0000:81:01.0",
                                          "KUBEVIRT_RESOURCE_NAME_net=a/b",
                                          "PCIDEVICE_A_B=0000:81:02.0,0000:81:02.1", NULL};
static const struct domain_xml_options options = {.emulator = "/usr/bin/qemu-system-x86_64",
                                                  .guest_dir = "/guest",
                                                  .disk_dir = "/disks",
                                                  .console_dir = "/console",
                                                  .environment = environment,
                                                  .qmp_path = "/qmp.sock",
                                                  .qmp_session_path = "/kept.sock"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    api_cleanup_object struct api_object *o = NULL;
    ferry_cleanup_free char *xml = NULL;
    struct hostdevs h = {0};
    struct disks disks;
    struct wire_options m;
    struct ferry_error err;

    if (api_object_parse(API_KIND_VMI, (const char *)data, size, &o, &err) < 0) {
        return 0;
    }
    wire_options_read(o->u.vmi.spec, &m, &err);
    if (disks_decode(&o->u.vmi, &disks, &err) == 0 &&
        domain_xml(&o->u.vmi, &disks, &options, &xml, &err) == 0) {
        xmlDocPtr doc = xmlReadMemory(xml, (int)strlen(xml), "d.xml", NULL,
                                      XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);

        must(doc != NULL);
        xmlFreeDoc(doc);
        must(hostdevs_find(xml, &h, &err) == 0);
        hostdevs_done(&h);
    }
    return 0;
}
