/* Which of this host's addresses a move comes in on. */
#pragma once

#include "base/error.h"

enum { ADDRESS_SIZE = 64 };

/* First global address of the interface `name` (IPv4 before IPv6), numeric; `node_address` when
 * there is no such interface. An interface without an address is an error: falling back would put
 * guest memory on a network it was not meant for. */
int address_for_migration(const char *name, const char *node_address, char ret[ADDRESS_SIZE],
                          struct ferry_error *err);
