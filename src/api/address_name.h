/* The claim to an address as an object: a Lease whose name is made from the address. Pure. */
#pragma once

#include "api/ip.h"
#include "api/object.h"

#define API_ADDRESS_NAMESPACE "kube-system"

enum { API_ADDRESS_NAME = 96 };

const char *api_address_name(const struct api_ip *ip, char ret[API_ADDRESS_NAME]);
/* False when the name is none that api_address_name() gives. */
bool api_address_of_name(const char *name, struct api_ip *ret);
/* The Lease as JSON, the caller's. `owner` may be NULL. */
char *api_address_manifest(const char *name, const char *holder, const struct api_object *owner);
