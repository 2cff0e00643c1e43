/* What libvirt says about the CPUs and machines that guests can have on this host, as JSON. Pure.
 */
#pragma once

#include "base/error.h"

/* The host's CPU model as libvirt's domain capabilities have it, written as the CPU of a guest, for
 * virConnectBaselineHypervisorCPU(); NULL when libvirt names none. XML, the caller's. */
int cpu_report_host(const char *capabilities_xml, char **ret_xml, struct ferry_error *err);

/* {"accelerator", "vendor", "hostModel", "requiredFeatures": [], "models": [], "features": [],
 * "machines": []}. `models` are those that a guest can have here. `expanded_xml` is the host's
 * model with all of its features written out (NULL: only those that libvirt adds to the model are
 * known). `machines_xml` are libvirt's capabilities of the host, for the machine types with a
 * version. JSON, the caller's.
 */
int cpu_report(const char *capabilities_xml, const char *expanded_xml, const char *machines_xml,
               char **ret_json, struct ferry_error *err);
