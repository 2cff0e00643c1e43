/* Addresses as people write them: HOST:PORT, [IPV6]:PORT, unix:PATH; and rates such as 200M. */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum { RELAY_HOST_SIZE = 64 };

/* The host is looked up if it is a name; the result is numeric. An empty host or '*' is every
 * address. `option` is for messages. */
int relay_endpoint_tcp(const char *option, const char *text, char ret_host[RELAY_HOST_SIZE],
                       int *ret_port, struct ferry_error *err);
/* Behind "unix:", an absolute path. */
int relay_endpoint_unix(const char *option, const char *text, const char **ret_path,
                        struct ferry_error *err);
/* The first usable address of a network interface, of `family` or any (AF_UNSPEC): global before
 * link-local, IPv4 before IPv6. */
int relay_endpoint_interface(const char *name, int family, char ret_host[RELAY_HOST_SIZE],
                             struct ferry_error *err);
/* Bytes, with K, M or G for powers of 1024. */
int relay_endpoint_bytes(const char *option, const char *text, uint64_t *ret,
                         struct ferry_error *err);
/* The value of --memory; NULL = the default of relay/common/memory.h. */
int relay_endpoint_memory(const char *text, uint64_t *ret, struct ferry_error *err);
