/* Addresses and networks of both families as one kind of value. Pure.
 *
 * Sixteen bytes in network order; IPv4 is kept as ::ffff:a.b.c.d, so that comparing, counting and
 * masking are the same for both. */
#pragma once

#include <stdbool.h>

enum { API_IP_BYTES = 16, API_IP_TEXT = 64 };

struct api_ip {
    unsigned char bytes[API_IP_BYTES];
};

struct api_ip_net { /* an address in its network: 10.1.1.5/24 */
    struct api_ip ip;
    int prefix; /* of 128: 96 more than written for IPv4 */
};

bool api_ip_parse(const char *text, struct api_ip *ret);
/* "10.1.1.0/24"; the address may have host bits. */
bool api_ip_parse_net(const char *text, struct api_ip_net *ret);
bool api_ip_is_v4(const struct api_ip *ip);
const char *api_ip_text(const struct api_ip *ip, char ret[API_IP_TEXT]);
const char *api_ip_net_text(const struct api_ip_net *net, char ret[API_IP_TEXT]);

int api_ip_compare(const struct api_ip *a, const struct api_ip *b);
bool api_ip_in(const struct api_ip_net *net, const struct api_ip *ip);
/* The first and the last address of the network, hosts or not. */
struct api_ip api_ip_first(const struct api_ip_net *net);
struct api_ip api_ip_last(const struct api_ip_net *net);
/* One more or one less; false at the end of all addresses. */
bool api_ip_next(struct api_ip *ip);
bool api_ip_previous(struct api_ip *ip);
