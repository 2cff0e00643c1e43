/* What may be called how. Lengths and characters as Kubernetes has them. */
#pragma once

#include <stdbool.h>

bool api_name_is_dns_label(const char *s);     /* a namespace: [a-z0-9-], 63 */
bool api_name_is_dns_subdomain(const char *s); /* an object: labels with dots, 253 */
bool api_name_is_label_key(const char *s);     /* "zone", "kubevirt.io/nodeName" */
bool api_name_is_label_value(const char *s);   /* "" or 63 of [A-Za-z0-9_.-] */
