#include "relay/stream/endpoint.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "relay/common/memory.h"

FERRY_DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)
FERRY_DEFINE_CLEANUP(struct ifaddrs *, freeifaddrs)

static int look_up(const char *option, const char *host, char ret[RELAY_HOST_SIZE],
                   struct ferry_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    ferry_cleanup(freeaddrinfop) struct addrinfo *info = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &info);

    if (rc == 0) {
        rc = getnameinfo(info->ai_addr, info->ai_addrlen, ret, RELAY_HOST_SIZE, NULL, 0,
                         NI_NUMERICHOST);
    }
    return rc == 0 ? 0
                   : ferry_fail(err, FERRY_INVALID, "%s: '%s': %s", option, host, gai_strerror(rc));
}

int relay_endpoint_tcp(const char *option, const char *text, char ret_host[RELAY_HOST_SIZE],
                       int *ret_port, struct ferry_error *err)
{
    const char *colon = strrchr(text, ':');
    bool bracketed = text[0] == '[' && colon > text && colon[-1] == ']';
    long long port = 0;

    if (!colon || ferry_parse_int(colon + 1, 0, 65535, &port, NULL) < 0 ||
        (!bracketed && strchr(text, ':') != colon)) {
        return ferry_fail(err, FERRY_INVALID, "%s: '%s' is not HOST:PORT or [IPV6]:PORT", option,
                          text);
    }
    ferry_cleanup_free char *host = bracketed ? ferry_strndup(text + 1, (size_t)(colon - text) - 2)
                                              : ferry_strndup(text, (size_t)(colon - text));
    *ret_port = (int)port;
    if (!*host || ferry_streq(host, "*")) {
        snprintf(ret_host, RELAY_HOST_SIZE, "::");
        return 0;
    }
    return look_up(option, host, ret_host, err);
}

int relay_endpoint_unix(const char *option, const char *text, const char **ret_path,
                        struct ferry_error *err)
{
    if (!ferry_str_starts(text, "unix:/")) {
        return ferry_fail(err, FERRY_INVALID, "%s: '%s' is not unix: and an absolute path", option,
                          text);
    }
    *ret_path = text + strlen("unix:");
    return 0;
}

/* The lower the better; -1 = not usable. */
static int rank(const struct sockaddr *sa, int family)
{
    if (!sa || (family != AF_UNSPEC && sa->sa_family != family)) {
        return -1;
    }
    if (sa->sa_family == AF_INET) {
        return 0;
    }
    if (sa->sa_family != AF_INET6) {
        return -1;
    }
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)sa)->sin6_addr) ? 2 : 1;
}

int relay_endpoint_interface(const char *name, int family, char ret_host[RELAY_HOST_SIZE],
                             struct ferry_error *err)
{
    ferry_cleanup(freeifaddrsp) struct ifaddrs *all = NULL;
    const struct ifaddrs *best = NULL;

    if (getifaddrs(&all) < 0 || if_nametoindex(name) == 0) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no network interface '%s'", name);
    }
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (ferry_streq(i->ifa_name, name) && rank(i->ifa_addr, family) >= 0 &&
            (!best || rank(i->ifa_addr, family) < rank(best->ifa_addr, family))) {
            best = i;
        }
    }
    if (!best) {
        return ferry_fail(err, FERRY_NOT_FOUND, "network interface '%s' has no %saddress", name,
                          family == AF_INET6  ? "IPv6 "
                          : family == AF_INET ? "IPv4 "
                                              : "");
    }
    socklen_t len = best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                         : sizeof(struct sockaddr_in6);
    int rc = getnameinfo(best->ifa_addr, len, ret_host, RELAY_HOST_SIZE, NULL, 0, NI_NUMERICHOST);
    return rc == 0 ? 0
                   : ferry_fail(err, FERRY_INVALID, "address of '%s': %s", name, gai_strerror(rc));
}

int relay_endpoint_bytes(const char *option, const char *text, uint64_t *ret,
                         struct ferry_error *err)
{
    static const char suffixes[] = "KMG";
    size_t n = strlen(text);
    const char *suffix = n > 1 ? strchr(suffixes, text[n - 1]) : NULL;
    ferry_cleanup_free char *digits = ferry_strndup(text, suffix ? n - 1 : n);
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    long long value = 0;

    if (ferry_parse_int(digits, 0, INT64_MAX >> shift, &value, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "%s: '%s' is not a number of bytes (K, M, G)", option,
                          text);
    }
    *ret = (uint64_t)value << shift;
    return 0;
}

int relay_endpoint_memory(const char *text, uint64_t *ret, struct ferry_error *err)
{
    *ret = RELAY_MEMORY_DEFAULT;
    if (!text) {
        return 0;
    }
    int rc = relay_endpoint_bytes("--memory", text, ret, err);
    if (rc == 0 && *ret < RELAY_MEMORY_LEAST) {
        return ferry_fail(err, FERRY_INVALID, "--memory: at least 1M");
    }
    return rc;
}
