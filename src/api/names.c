#include "api/names.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { LABEL_MAX = 63, SUBDOMAIN_MAX = 253 };

static bool lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool alnum(char c)
{
    return lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_dns_part(const char *s, size_t n)
{
    if (n == 0 || !lower_alnum(s[0]) || !lower_alnum(s[n - 1])) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!lower_alnum(s[i]) && s[i] != '-') {
            return false;
        }
    }
    return true;
}

bool api_name_is_dns_label(const char *s)
{
    return s && strlen(s) <= LABEL_MAX && is_dns_part(s, strlen(s));
}

static bool is_subdomain(const char *s, size_t len)
{
    if (len == 0 || len > SUBDOMAIN_MAX) {
        return false;
    }
    for (size_t from = 0; from <= len;) {
        const char *dot = memchr(s + from, '.', len - from);
        size_t n = dot ? (size_t)(dot - s) - from : len - from;

        if (!is_dns_part(s + from, n)) {
            return false;
        }
        from += n + 1;
    }
    return true;
}

bool api_name_is_dns_subdomain(const char *s)
{
    return s && is_subdomain(s, strlen(s));
}

bool api_name_is_label_value(const char *s)
{
    size_t n = s ? strlen(s) : 0;

    if (!s || n > LABEL_MAX) {
        return false;
    }
    if (n == 0) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!alnum(s[i]) && !strchr("-_.", s[i])) {
            return false;
        }
    }
    return alnum(s[0]) && alnum(s[n - 1]);
}

bool api_name_is_label_key(const char *s)
{
    const char *slash = s ? strchr(s, '/') : NULL;
    const char *name = slash ? slash + 1 : s;

    if (slash && !is_subdomain(s, (size_t)(slash - s))) {
        return false;
    }
    return name && *name && api_name_is_label_value(name);
}
