/* What a NetworkAttachmentDefinition asks for, and which of its addresses one gets. Pure.
 *
 * Known are the plugins macvlan, vlan and bridge, alone or as the first of a list of plugins, and
 * the address managers static, host-local and whereabouts, by the names of their own documentation.
 * A definition has pools: of each, a holder gets one address. What is asked for and would not be
 * done is refused, not passed over. */
#pragma once

#include <stddef.h>

#include "api/ip.h"
#include "base/error.h"

enum {
    API_NAD_POOLS = 4,
    API_NAD_RANGES = 8,   /* of one pool */
    API_NAD_EXCLUDES = 8, /* of one range */
    API_NAD_LINK_NAME = 16,
    API_NAD_ROUTES = 8,
};

enum api_nad_type { API_NAD_MACVLAN, API_NAD_VLAN, API_NAD_BRIDGE };

struct api_nad_route {
    struct api_ip_net to;
    struct api_ip via; /* with has_via, else directly */
    bool has_via;
};

struct api_nad_range {
    struct api_ip_net net;
    struct api_ip first, last; /* that may be given away */
    struct api_ip_net excludes[API_NAD_EXCLUDES];
    size_t n_excludes;
    struct api_ip gateway;
    bool has_gateway;
};

struct api_nad_pool {
    struct api_nad_range ranges[API_NAD_RANGES];
    size_t n;
};

struct api_nad {
    enum api_nad_type type;
    char link[API_NAD_LINK_NAME]; /* bridge: its name; else the interface below */
    const char *mode;             /* of a macvlan, static */
    int mtu;                      /* 0 = not said */
    int vlan;                     /* of a vlan, its number */
    struct api_nad_pool pools[API_NAD_POOLS];
    size_t n_pools;
    struct api_nad_route routes[API_NAD_ROUTES];
    size_t n_routes;
};

/* `config` is the JSON text of spec.config. -FERRY_INVALID names the field. */
int api_nad_parse(const char *config, struct api_nad *ret, struct ferry_error *err);

struct api_nad_claim { /* an address that somebody has */
    struct api_ip ip;
    const char *holder; /* borrowed */
};
/* The address of the pool that `holder` has, else the first that is free; `*ret_held` says which.
 * False when all are taken. */
bool api_nad_pick(const struct api_nad_pool *pool, const struct api_nad_claim *claims, size_t n,
                  const char *holder, struct api_ip_net *ret, bool *ret_held);
/* The pool from which api_nad_pick() could give this address away, or NULL. */
const struct api_nad_pool *api_nad_giver(const struct api_nad *nad, const struct api_ip *ip);
/* Whether any pool has this address in one of its ranges. */
bool api_nad_has(const struct api_nad *nad, const struct api_ip *ip);
