/* The disks that a move copies: how large they are on one side reaches the other in the VMI's
 * annotations ferry.io/source-disks and ferry.io/target-disks, {"uid", "disks": [{name, bytes}]},
 * and the launchers as the same list. Pure. */
#pragma once

#include "api/wire/wire_json.h"

enum { WIRE_DISKS = 64, WIRE_DISK_NAME = 64 };

struct wire_disk {
    char name[WIRE_DISK_NAME];
    int64_t bytes;
};
struct wire_disks {
    struct wire_disk list[WIRE_DISKS];
    size_t n;
};

/* From a list of disks; false when it is none, or one of them has no name or size. */
bool wire_disks_read(const yyjson_val *list, struct wire_disks *ret);
/* What an annotation says of the move `uid`; false when that is nothing. */
bool wire_disks_of(const char *text, const char *uid, struct wire_disks *ret);

char *wire_disks_list(const struct wire_disks *d);                  /* [...], the caller's */
char *wire_disks_text(const char *uid, const struct wire_disks *d); /* the annotation, likewise */
