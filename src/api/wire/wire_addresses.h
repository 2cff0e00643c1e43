/* Addresses of the interfaces of a guest that Ferry gave it: the VMI's annotation
 * ferry.io/addresses, {"INTERFACE": ["10.1.2.3/24", ...]}, written by the controller. Pure. */
#pragma once

#include "api/guest_nic.h"
#include "api/nad.h"
#include "api/wire/wire_json.h"

struct wire_interface {
    const char *name;
    struct api_ip_net nets[API_NAD_POOLS];
    size_t n;
};
struct wire_addresses {
    struct wire_interface list[API_GUEST_NICS];
    size_t n;
    yyjson_doc *doc; /* owns the names of what was read */
};

/* False when it cannot be read: no JSON, no addresses, or more than there can be. */
bool wire_addresses_read(const char *text, struct wire_addresses *ret);
void wire_addresses_done(struct wire_addresses *a);
#define wire_cleanup_addresses ferry_cleanup(wire_addresses_done)
/* NULL when it has none. */
const struct wire_interface *wire_addresses_of(const struct wire_addresses *a, const char *name);

/* The text, the caller's; NULL when a name is no text. */
char *wire_addresses_text(const struct wire_addresses *a);
