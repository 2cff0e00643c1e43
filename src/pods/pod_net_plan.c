#include "pods/pod_net_plan.h"

#include <stdint.h>
#include <stdio.h>

#include "api/wire/wire_networks.h"

/* Unique on the host, fifteen characters at most. */
void pod_net_port(const char *pod_uid, unsigned tap, char ret[API_NAD_LINK_NAME])
{
    uint32_t h = UINT32_C(2166136261);

    for (const char *c = pod_uid; *c; c++) {
        h = (h ^ (unsigned char)*c) * UINT32_C(16777619);
    }
    snprintf(ret, API_NAD_LINK_NAME, "ferry%08x%u", h, tap);
}

int pod_net_plan(const struct wire_network *net, const struct api_nad *nad,
                 const struct pod_net_place *place, struct ferry_buf *ret_host,
                 struct ferry_buf *ret_pod, struct ferry_error *err)
{
    char port[API_NAD_LINK_NAME];
    unsigned i = net->tap;

    if (nad->type != API_NAD_BRIDGE) {
        return ferry_fail(err, FERRY_INVALID,
                          "NetworkAttachmentDefinition %s/%s: a guest can only be attached to a "
                          "bridge",
                          net->ns, net->name);
    }
    pod_net_port(place->pod_uid, i, port);
    if (!place->bridge_exists) {
        ferry_buf_printf(ret_host, "link add name %s type bridge\nlink set dev %s up\n", nad->link,
                         nad->link);
    }
    ferry_buf_printf(ret_host, "link add name %s type veth peer name net%u netns %d\n", port, i,
                     (int)place->pid);
    ferry_buf_printf(ret_host, "link set dev %s addrgenmode none master %s up\n", port, nad->link);
    ferry_buf_printf(ret_pod, "link add name br%u type bridge mcast_snooping 0\n", i);
    ferry_buf_printf(ret_pod, "tuntap add dev tap%u mode tap user %u group %u\n", i, place->uid,
                     place->gid);
    for (size_t k = 0; k < 3; k++) {
        static const char *const links[] = {"br", "net", "tap"};

        if (nad->mtu) {
            ferry_buf_printf(ret_pod, "link set dev %s%u mtu %d\n", links[k], i, nad->mtu);
        }
        ferry_buf_printf(ret_pod, "link set dev %s%u addrgenmode none", links[k], i);
        if (k > 0) {
            ferry_buf_printf(ret_pod, " master br%u", i);
        }
        ferry_buf_puts(ret_pod, " up\n");
    }
    return 0;
}
