#include "api/machine_type.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

enum { LABEL_NAME_MAX = 63, PARTS = 4, DIGITS_MAX = 6 };

static const struct {
    const char *alias, *prefix;
} families[] = {{"pc", "pc-i440fx-"}, {"q35", "pc-q35-"}};

/* What stands behind the family; NULL: it is of none. */
static const char *after_family(const char *type, const char *alias)
{
    for (size_t i = 0; type && i < FERRY_COUNT(families); i++) {
        if ((!alias || ferry_streq(alias, families[i].alias)) &&
            ferry_str_starts(type, families[i].prefix)) {
            return type + strlen(families[i].prefix);
        }
    }
    return NULL;
}

bool api_machine_is_pinned(const char *type)
{
    const char *rest = after_family(type, NULL);
    size_t len = rest ? strlen(type) : 0;

    if (ferry_str_empty(rest) || len > LABEL_NAME_MAX || !isalnum((unsigned char)type[len - 1])) {
        return false;
    }
    for (; *rest; rest++) {
        if (!isalnum((unsigned char)*rest) && !strchr(".-", *rest)) {
            return false;
        }
    }
    return true;
}

bool api_machine_is_known(const char *type)
{
    return ferry_streq(type, "pc") || ferry_streq(type, "q35") || api_machine_is_pinned(type);
}

/* "rhel9.6.0": whose it is, and its number. False when that is not all. */
static bool parse(const char *rest, size_t *ret_vendor, long ret[PARTS])
{
    const char *at = rest;

    memset(ret, 0, PARTS * sizeof(ret[0]));
    while (isalpha((unsigned char)*at)) {
        at++;
    }
    *ret_vendor = (size_t)(at - rest);
    for (int i = 0; i < PARTS; i++) {
        char *end;

        if (!isdigit((unsigned char)*at)) {
            return false;
        }
        ret[i] = strtol(at, &end, 10);
        if (end - at > DIGITS_MAX || !*end) {
            return !*end && end - at <= DIGITS_MAX;
        }
        if (*end != '.') {
            return false;
        }
        at = end + 1;
    }
    return false;
}

bool api_machine_is_of(const char *type, const char *alias)
{
    const char *rest = after_family(type, ferry_str_empty(alias) ? "pc" : alias);
    size_t vendor;
    long parts[PARTS];

    return rest && api_machine_is_pinned(type) && parse(rest, &vendor, parts);
}

int api_machine_compare(const char *a, const char *b)
{
    const char *ra = after_family(a, NULL), *rb = after_family(b, NULL);
    size_t va, vb;
    long pa[PARTS], pb[PARTS];

    if (!ra || !rb || !parse(ra, &va, pa) || !parse(rb, &vb, pb)) {
        return 0;
    }
    if (!va != !vb) {
        return va ? -1 : 1;
    }
    int whose = strncmp(ra, rb, va > vb ? va : vb);
    if (va && whose != 0) {
        return whose;
    }
    for (int i = 0; i < PARTS; i++) {
        if (pa[i] != pb[i]) {
            return pa[i] < pb[i] ? -1 : 1;
        }
    }
    return 0;
}
