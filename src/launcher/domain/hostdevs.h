/* Devices of the host that a guest gives back for a move: SR-IOV functions. Pure.
 *
 * Such a function cannot move. The guest gets it taken away before the move, and one of the host
 * where it then runs: the target's after a move, the same again after a move that failed. Guests
 * see a network card that goes and comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HOSTDEVS_MAX = 32, HOSTDEVS_WAIT_MS = 30000 /* KubeVirt's */ };

struct hostdev {
    char *alias, *xml; /* <hostdev>, as libvirt takes it to plug and to unplug one */
};

struct hostdevs {
    size_t n;
    struct hostdev list[HOSTDEVS_MAX];
};
void hostdevs_done(struct hostdevs *h);

/* Those of a domain. Known by their alias (domain_devices.h), whatever libvirt makes of them; disks
 * and emulated network cards have names of their user's choice and are never meant. */
int hostdevs_find(const char *domain_xml, struct hostdevs *ret, struct ferry_error *err);
/* Whether a domain has another device of the host: then QEMU cannot fetch memory after the guest.
 */
bool hostdevs_others(const char *domain_xml);
bool hostdevs_has(const struct hostdevs *h, const char *alias);

/* As text that is kept in a file, and back. */
char *hostdevs_encode(const struct hostdevs *h);
int hostdevs_decode(const char *json, size_t len, struct hostdevs *ret, struct ferry_error *err);

enum hostdevs_step {
    HOSTDEVS_ASK,     /* for the removal of number `*ret_index` */
    HOSTDEVS_WAIT,    /* for the guest to let go */
    HOSTDEVS_GONE,    /* all of them */
    HOSTDEVS_REFUSED, /* the guest does not let go of number `*ret_index` */
    HOSTDEVS_STOP,    /* the move was cancelled */
};
/* What to do about those of `all` that are still `present`; `asked` of them have been asked for, in
 * the order of the list, the last `waited_ms` ago. */
enum hostdevs_step hostdevs_decide(const struct hostdevs *all, const struct hostdevs *present,
                                   size_t asked, int64_t waited_ms, bool cancelled,
                                   size_t *ret_index);
