#include "launcher/domain/domain_devices.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/guest_nic.h"
#include "api/spec/vmi_rules.h"
#include "base/count.h"
#include "base/str.h"

enum { NAME_MAX_BYTES = 63 };

struct pci {
    unsigned domain, bus, slot, function;
};

static int fail(struct ferry_error *err, const char *what, const char *name, const char *why)
{
    return ferry_fail(err, FERRY_INVALID, "spec.domain.%s[%s]: %s", what, name, why);
}

/* Names become parts of aliases and of names of variables. */
static int check_name(const char *what, const char *name, struct ferry_error *err)
{
    size_t n = name ? strlen(name) : 0;

    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_') {
            n = 0;
        }
    }
    return n > 0 && n <= NAME_MAX_BYTES
               ? 0
               : ferry_fail(err, FERRY_INVALID,
                            "spec.domain.%s: each needs a name of letters, digits, - and _", what);
}

/* ---- hugepages --------------------------------------------------------------------------------
 */

int domain_devices_backing(struct xml_write *x, const struct api_machine *machine,
                           struct ferry_error *err)
{
    static const struct {
        const char *size, *number, *unit;
    } sizes[] = {{"2Mi", "2", "MiB"}, {"1Gi", "1", "GiB"}};
    const char *wanted = machine->hugepages;

    if (ferry_str_empty(wanted)) {
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(sizes); i++) {
        if (ferry_streq(wanted, sizes[i].size)) {
            xml_write_start(x, "memoryBacking");
            xml_write_start(x, "hugepages");
            XML_LEAF(x, "page", "size", sizes[i].number, "unit", sizes[i].unit);
            xml_write_end(x);
            xml_write_end(x);
            return 0;
        }
    }
    return ferry_fail(err, FERRY_INVALID,
                      "spec.domain.memory.hugepages.pageSize: must be 2Mi or 1Gi");
}

/* ---- PCI functions ----------------------------------------------------------------------------
 */

/* "0000:81:01.0" */
static bool parse_pci(const char *s, size_t n, struct pci *ret)
{
    char text[16], rest;

    if (n != 12) {
        return false;
    }
    snprintf(text, sizeof(text), "%.12s", s);
    return sscanf(text, "%4x:%2x:%2x.%1x%c", &ret->domain, &ret->bus, &ret->slot, &ret->function,
                  &rest) == 4 &&
           ret->slot < 32 && ret->function < 8;
}

static void write_address(struct xml_write *x, const struct pci *a, bool typed)
{
    char parts[4][12];

    snprintf(parts[0], sizeof(parts[0]), "0x%04x", a->domain);
    snprintf(parts[1], sizeof(parts[1]), "0x%02x", a->bus);
    snprintf(parts[2], sizeof(parts[2]), "0x%02x", a->slot);
    snprintf(parts[3], sizeof(parts[3]), "0x%x", a->function);
    xml_write_start(x, "address");
    if (typed) {
        xml_write_attribute(x, "type", "pci");
    }
    xml_write_attribute(x, "domain", parts[0]);
    xml_write_attribute(x, "bus", parts[1]);
    xml_write_attribute(x, "slot", parts[2]);
    xml_write_attribute(x, "function", parts[3]);
    xml_write_end(x);
}

static const char *variable(const char *const *environment, const char *name)
{
    size_t n = strlen(name);

    for (; environment && *environment; environment++) {
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
            return *environment + n + 1;
        }
    }
    return NULL;
}

static char *variable_name(const char *prefix, const char *resource)
{
    char *name = ferry_asprintf("%s%s", prefix, resource);

    for (char *p = name + strlen(prefix); *p; p++) {
        *p = (char)(isalnum((unsigned char)*p) ? toupper((unsigned char)*p) : '_');
    }
    return name;
}

/* Address number `index` of those that were given for `resource`. */
static int given_pci(const char *const *environment, const char *prefix, const char *resource,
                     size_t index, struct pci *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *name = variable_name(prefix, resource);
    const char *at = variable(environment, name);

    for (; at && index; index--) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    if (!at || !*at) {
        return ferry_fail(err, FERRY_INVALID, "no device of %s was given to this pod (%s)",
                          resource, name);
    }
    if (!parse_pci(at, strcspn(at, ","), ret)) {
        return ferry_fail(err, FERRY_INVALID, "%s does not hold PCI addresses like 0000:81:01.0",
                          name);
    }
    return 0;
}

static void write_hostdev(struct xml_write *x, const struct pci *at, const char *alias_prefix,
                          const char *name, const char *type)
{
    ferry_cleanup_free char *alias = ferry_asprintf("%s%s", alias_prefix, name);

    xml_write_start(x, "hostdev");
    xml_write_attribute(x, "mode", "subsystem");
    xml_write_attribute(x, "type", type);
    xml_write_attribute(x, "managed", "no"); /* whoever gave it to the pod has prepared it */
    XML_LEAF(x, "driver", "name", "vfio");
    xml_write_start(x, "source");
    write_address(x, at, false);
    xml_write_end(x);
    XML_LEAF(x, "alias", "name", alias);
    xml_write_end(x);
}

static int write_host_device(struct xml_write *x, const struct api_machine *m, size_t i,
                             const char *const *environment, struct ferry_error *err)
{
    const struct api_device *d = &m->host_devices[i];
    struct pci at;
    size_t before = 0;

    if (check_name("devices.hostDevices", d->name, err) < 0) {
        return -FERRY_INVALID;
    }
    if (ferry_str_empty(d->device_name) || strlen(d->device_name) > 253) {
        return fail(err, "devices.hostDevices", d->name, "deviceName is missing or too long");
    }
    for (size_t k = 0; k < i; k++) {
        before += ferry_streq(m->host_devices[k].device_name, d->device_name);
    }
    if (given_pci(environment, "PCI_RESOURCE_", d->device_name, before, &at, err) < 0) {
        return ferry_wrap(err, "spec.domain.devices.hostDevices[%s]", d->name);
    }
    write_hostdev(x, &at, "ua-hostdevice-", d->name, "pci");
    return 0;
}

/* ---- interfaces -------------------------------------------------------------------------------
 */

static bool is_mac(const char *s)
{
    for (int i = 0; i < 17; i++) {
        if (i % 3 == 2 ? s[i] != ':' : !isxdigit((unsigned char)s[i])) {
            return false;
        }
    }
    return s[17] == '\0' && !(strtol((char[]){s[0], s[1], 0}, NULL, 16) & 1); /* not multicast */
}

static bool is_tap(const struct api_interface *n)
{
    return !n->sriov;
}

size_t domain_devices_taps(const struct api_machine *machine)
{
    size_t n = 0;

    for (size_t i = 0; i < machine->n_interfaces; i++) {
        n += is_tap(&machine->interfaces[i]);
    }
    return n;
}

static int check_interface(const struct api_machine *m, const struct api_interface *n,
                           struct ferry_error *err)
{
    static const char *const models[] = {"virtio",  "e1000", "e1000e",
                                         "rtl8139", "pcnet", "ne2k_pci"};
    bool known = ferry_str_empty(n->model), network = false;

    if (check_name("devices.interfaces", n->name, err) < 0) {
        return -FERRY_INVALID;
    }
    for (size_t i = 0; i < FERRY_COUNT(models); i++) {
        known = known || ferry_streq(n->model, models[i]);
    }
    for (size_t i = 0; i < m->n_networks; i++) {
        network = network || ferry_streq(m->networks[i].name, n->name);
    }
    if (!network) {
        return fail(err, "devices.interfaces", n->name, "there is no network of that name");
    }
    if (n->binding || n->passt || n->slirp || n->macvtap) {
        return fail(err, "devices.interfaces", n->name,
                    "only bridge, masquerade and sriov are supported");
    }
    if (!known) {
        return fail(err, "devices.interfaces", n->name,
                    "model: must be virtio, e1000, e1000e, rtl8139, pcnet or ne2k_pci");
    }
    if (!ferry_str_empty(n->mac) && !is_mac(n->mac)) {
        return fail(err, "devices.interfaces", n->name,
                    "macAddress: must be a unicast address like 02:00:00:00:00:01");
    }
    return 0;
}

static int write_place(struct xml_write *x, const struct api_interface *n, struct ferry_error *err)
{
    struct pci at;

    if (n->boot_order > 0) {
        xml_write_start(x, "boot");
        xml_write_number(x, "order", n->boot_order);
        xml_write_end(x);
    }
    if (ferry_str_empty(n->pci_address)) {
        return 0;
    }
    if (!parse_pci(n->pci_address, strlen(n->pci_address), &at)) {
        return fail(err, "devices.interfaces", n->name, "pciAddress: must be like 0000:81:01.0");
    }
    write_address(x, &at, true);
    return 0;
}

static int write_tap(struct xml_write *x, const struct api_vmi *vmi, const struct api_interface *n,
                     size_t number, struct ferry_error *err)
{
    ferry_cleanup_free char *alias = ferry_asprintf("ua-%s", n->name);
    ferry_cleanup_free char *tap = ferry_asprintf("tap%zu", number);
    char mac[API_MAC_TEXT];

    api_guest_mac(vmi->meta.uid, n->name, mac);
    xml_write_start(x, "interface");
    xml_write_attribute(x, "type", "ethernet");
    XML_LEAF(x, "mac", "address", ferry_str_empty(n->mac) ? mac : n->mac);
    XML_LEAF(x, "target", "dev", tap, "managed", "no");
    XML_LEAF(x, "model", "type", ferry_str_empty(n->model) ? "virtio" : n->model);
    if (ferry_streq(n->state, "down")) {
        XML_LEAF(x, "link", "state", "down");
    }
    XML_LEAF(x, "rom", "enabled", "no");
    XML_LEAF(x, "alias", "name", alias);
    int rc = write_place(x, n, err);
    xml_write_end(x);
    return rc;
}

static int write_sriov(struct xml_write *x, const struct api_machine *m, size_t i,
                       const char *const *environment, struct ferry_error *err)
{
    const struct api_interface *n = &m->interfaces[i];
    ferry_cleanup_free char *where = ferry_asprintf("KUBEVIRT_RESOURCE_NAME_%s", n->name);
    const char *resource = variable(environment, where);
    struct pci at;
    size_t before = 0;

    if (ferry_str_empty(resource)) {
        return ferry_fail(
            err, FERRY_INVALID,
            "spec.domain.devices.interfaces[%s]: no SR-IOV function was given to this "
            "pod (%s is not set)",
            n->name, where);
    }
    for (size_t k = 0; k < i; k++) {
        ferry_cleanup_free char *other =
            ferry_asprintf("KUBEVIRT_RESOURCE_NAME_%s", m->interfaces[k].name);

        before += m->interfaces[k].sriov && ferry_streq(variable(environment, other), resource);
    }
    if (given_pci(environment, "PCIDEVICE_", resource, before, &at, err) < 0) {
        return ferry_wrap(err, "spec.domain.devices.interfaces[%s]", n->name);
    }
    write_hostdev(x, &at, DOMAIN_DEVICES_SRIOV, n->name, "pci");
    return 0;
}

int domain_devices(struct xml_write *x, const struct api_vmi *vmi, const char *const *environment,
                   struct ferry_error *err)
{
    const struct api_machine *m = &vmi->machine;
    size_t taps = 0;
    int rc = 0;

    if (m->n_interfaces > VMI_HOST_DEVICES_MAX || m->n_host_devices > VMI_HOST_DEVICES_MAX) {
        return ferry_fail(err, FERRY_INVALID,
                          "spec.domain.devices: at most %d interfaces and %d host devices",
                          VMI_HOST_DEVICES_MAX, VMI_HOST_DEVICES_MAX);
    }
    for (size_t i = 0; rc == 0 && i < m->n_interfaces; i++) {
        const struct api_interface *n = &m->interfaces[i];

        rc = check_interface(m, n, err);
        if (rc == 0) {
            rc = is_tap(n) ? write_tap(x, vmi, n, taps++, err)
                           : write_sriov(x, m, i, environment, err);
        }
    }
    for (size_t i = 0; rc == 0 && i < m->n_host_devices; i++) {
        rc = write_host_device(x, m, i, environment, err);
    }
    return rc;
}
