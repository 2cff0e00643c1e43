#include "api/ip.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { V4_AT = 12, V4_PREFIX = 96, BITS = 128 };
static const unsigned char v4_prefix[V4_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool api_ip_parse(const char *text, struct api_ip *ret)
{
    struct api_ip ip;

    if (!text) {
        return false;
    }
    memcpy(ip.bytes, v4_prefix, sizeof(v4_prefix));
    if (inet_pton(AF_INET, text, ip.bytes + V4_AT) != 1 &&
        inet_pton(AF_INET6, text, ip.bytes) != 1) {
        return false;
    }
    *ret = ip;
    return true;
}

bool api_ip_is_v4(const struct api_ip *ip)
{
    return memcmp(ip->bytes, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool api_ip_parse_net(const char *text, struct api_ip_net *ret)
{
    const char *slash = text ? strchr(text, '/') : NULL;
    struct api_ip ip;
    long long prefix;

    if (!slash) {
        return false;
    }
    ferry_cleanup_free char *address = ferry_strndup(text, (size_t)(slash - text));
    if (!api_ip_parse(address, &ip)) {
        return false;
    }
    int more = api_ip_is_v4(&ip) ? V4_PREFIX : 0;
    if (ferry_parse_int(slash + 1, 0, BITS - more, &prefix, NULL) < 0) {
        return false;
    }
    *ret = (struct api_ip_net){.ip = ip, .prefix = (int)prefix + more};
    return true;
}

const char *api_ip_text(const struct api_ip *ip, char ret[API_IP_TEXT])
{
    bool v4 = api_ip_is_v4(ip);

    inet_ntop(v4 ? AF_INET : AF_INET6, ip->bytes + (v4 ? V4_AT : 0), ret, API_IP_TEXT);
    return ret;
}

const char *api_ip_net_text(const struct api_ip_net *net, char ret[API_IP_TEXT])
{
    size_t len = strlen(api_ip_text(&net->ip, ret));

    snprintf(ret + len, API_IP_TEXT - len, "/%d",
             net->prefix - (api_ip_is_v4(&net->ip) ? V4_PREFIX : 0));
    return ret;
}

int api_ip_compare(const struct api_ip *a, const struct api_ip *b)
{
    return memcmp(a->bytes, b->bytes, API_IP_BYTES);
}

/* The bits of byte `i` that belong to the host. */
static unsigned char host_bits(int prefix, int i)
{
    int fixed = prefix - i * 8;

    return (unsigned char)(fixed >= 8 ? 0 : fixed <= 0 ? 0xff : 0xff >> fixed);
}

struct api_ip api_ip_first(const struct api_ip_net *net)
{
    struct api_ip ip = net->ip;

    for (int i = 0; i < API_IP_BYTES; i++) {
        ip.bytes[i] &= (unsigned char)~host_bits(net->prefix, i);
    }
    return ip;
}

struct api_ip api_ip_last(const struct api_ip_net *net)
{
    struct api_ip ip = net->ip;

    for (int i = 0; i < API_IP_BYTES; i++) {
        ip.bytes[i] |= host_bits(net->prefix, i);
    }
    return ip;
}

bool api_ip_in(const struct api_ip_net *net, const struct api_ip *ip)
{
    struct api_ip first = api_ip_first(net), last = api_ip_last(net);

    return api_ip_compare(ip, &first) >= 0 && api_ip_compare(ip, &last) <= 0;
}

bool api_ip_next(struct api_ip *ip)
{
    for (int i = API_IP_BYTES - 1; i >= 0; i--) {
        if (++ip->bytes[i] != 0) {
            return true;
        }
    }
    return false;
}

bool api_ip_previous(struct api_ip *ip)
{
    for (int i = API_IP_BYTES - 1; i >= 0; i--) {
        if (ip->bytes[i]-- != 0) {
            return true;
        }
    }
    return false;
}
