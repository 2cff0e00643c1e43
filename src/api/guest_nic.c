#include "api/guest_nic.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void api_guest_mac(const char *owner_uid, const char *interface, char ret[API_MAC_TEXT])
{
    uint64_t h = 14695981039346656037u;

    for (const char *p = owner_uid; p && *p; p++) {
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    }
    for (const char *p = interface; *p; p++) {
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    }
    snprintf(ret, API_MAC_TEXT, "02:%02x:%02x:%02x:%02x:%02x", (unsigned)(h >> 56) & 255,
             (unsigned)(h >> 48) & 255, (unsigned)(h >> 40) & 255, (unsigned)(h >> 32) & 255,
             (unsigned)(h >> 24) & 255);
}

static const char *network_of(const struct api_machine *m, const char *name)
{
    for (size_t i = 0; i < m->n_networks; i++) {
        if (ferry_streq(m->networks[i].name, name)) {
            return m->networks[i].multus;
        }
    }
    return NULL;
}

size_t api_guest_nics(const struct api_vmi *vmi, struct api_guest_nic ret[API_GUEST_NICS])
{
    const struct api_machine *m = &vmi->machine;
    size_t n = 0;

    for (size_t i = 0; i < m->n_interfaces && n < API_GUEST_NICS; i++) {
        const struct api_interface *x = &m->interfaces[i];

        if (x->sriov || ferry_str_empty(x->name)) {
            continue;
        }
        ret[n] = (struct api_guest_nic){
            .name = x->name, .network = network_of(m, x->name), .tap = (unsigned)n};
        if (ferry_str_empty(x->mac)) {
            api_guest_mac(vmi->meta.uid, x->name, ret[n].mac);
        } else {
            snprintf(ret[n].mac, sizeof(ret[n].mac), "%s", x->mac);
        }
        n++;
    }
    return n;
}

void api_guest_network(const char *network, const char *ns, char **ret_ns, char **ret_name)
{
    const char *slash = strchr(network, '/');

    *ret_ns = slash ? ferry_strndup(network, (size_t)(slash - network)) : ferry_strdup(ns);
    *ret_name = ferry_strdup(slash ? slash + 1 : network);
}
