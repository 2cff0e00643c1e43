#include "handler/node/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>

#include "base/str.h"

static const char *numeric(const struct sockaddr *sa, char *buf)
{
    if (sa->sa_family == AF_INET) {
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, buf,
                         ADDRESS_SIZE);
    }
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return IN6_IS_ADDR_LINKLOCAL(a) ? NULL : inet_ntop(AF_INET6, a, buf, ADDRESS_SIZE);
}

int address_for_migration(const char *name, const char *node_address, char ret[ADDRESS_SIZE],
                          struct ferry_error *err)
{
    static const sa_family_t order[] = {AF_INET, AF_INET6};
    struct ifaddrs *list = NULL;
    bool found = false;

    if (ferry_str_empty(name) || if_nametoindex(name) == 0) {
        snprintf(ret, ADDRESS_SIZE, "%s", node_address);
        return 0;
    }
    if (getifaddrs(&list) < 0) {
        return ferry_fail_errno(err, errno, "listing network interfaces");
    }
    for (size_t i = 0; i < 2 && !found; i++) {
        for (const struct ifaddrs *a = list; a && !found; a = a->ifa_next) {
            found = a->ifa_addr && a->ifa_addr->sa_family == order[i] &&
                    ferry_streq(a->ifa_name, name) && numeric(a->ifa_addr, ret);
        }
    }
    freeifaddrs(list);
    return found ? 0 : ferry_fail(err, FERRY_RETRY, "interface %s has no usable address", name);
}
