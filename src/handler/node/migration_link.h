/* The interface of the migration network: what it is, what it shall be, and what has to be done.
 * Pure; migration_net.c looks and does.
 *
 * An interface that Ferry made carries an alias that says what it was made from. One without such
 * an alias is somebody else's and is used as it is found. */
#pragma once

#include "api/nad.h"
#include "base/str.h"

enum { MIGRATION_LINK_ALIAS = 96, MIGRATION_LINK_ADDRESSES = 8 };

struct migration_link_seen {
    bool exists, ours, up;
    char alias[MIGRATION_LINK_ALIAS];
    struct api_ip_net addresses[MIGRATION_LINK_ADDRESSES]; /* global ones */
    size_t n;
};

/* `json` is what `ip -json -details addr show dev NAME` says. */
int migration_link_parse(const char *json, size_t len, struct migration_link_seen *ret,
                         struct ferry_error *err);

struct migration_link_wanted {
    const char *name;
    const struct api_nad *nad; /* NULL = there shall be none */
    const struct api_ip_net *addresses;
    size_t n;
    bool bridge_exists; /* that of a bridge definition */
};

/* What a network may ask for that this interface cannot give; -FERRY_INVALID names the field. */
int migration_link_check(const struct api_nad *nad, struct ferry_error *err);

/* Commands of iproute2, one per line without the word "ip"; empty when all is well. */
void migration_link_plan(const struct migration_link_seen *seen,
                         const struct migration_link_wanted *wanted, struct ferry_buf *ret);
