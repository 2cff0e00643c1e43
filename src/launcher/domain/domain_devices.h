/* Interfaces, host devices and hugepages of a VMI in its domain XML. Pure.
 *
 * An interface with binding bridge or masquerade is a tap device that the pod must have: tap0 for
 * the first, tap1 and so on. A host device, and an SR-IOV interface, is a PCI function that was
 * given to the pod; which one, the environment says as KubeVirt's device plugins do: addresses
 * separated by commas in PCI_RESOURCE_NAME for a host device of that deviceName, and for an SR-IOV
 * interface in PCIDEVICE_NAME, where KUBEVIRT_RESOURCE_NAME_network is the name. (In NAME letters
 * are capitals, and all that is no letter or digit is _.) Devices with the same name take one
 * address each. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "launcher/domain/xml_write.h"

/* Alias of the hostdev of an SR-IOV interface: this, then the interface's name. */
#define DOMAIN_DEVICES_SRIOV "ua-sriov-"

/* <memoryBacking> */
int domain_devices_backing(struct xml_write *x, const struct api_machine *machine,
                           struct ferry_error *err);
/* <interface> and <hostdev>; `environment` is "NAME=VALUE"..., NULL, or NULL. */
int domain_devices(struct xml_write *x, const struct api_vmi *vmi, const char *const *environment,
                   struct ferry_error *err);
/* Tap devices that the domain needs: tap0 to tapN-1. */
size_t domain_devices_taps(const struct api_machine *machine);
