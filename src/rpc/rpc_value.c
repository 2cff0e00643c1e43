#include "rpc/rpc_value.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/count.h"
#include "base/str.h"

enum { VALUE_MAX = 255 };

static bool made_of(const char *s, const char *signs)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && !strchr(signs, s[i])) {
            return false;
        }
    }
    return n > 0 && n <= VALUE_MAX;
}

static bool is_number(const char *s)
{
    bool hex = strncmp(s, "0x", 2) == 0;
    const char *digits = hex ? s + 2 : s[0] == '-' ? s + 1 : s;
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

    return n > 0 && n <= 20 && !digits[n];
}

static bool is_uuid(const char *s)
{
    size_t n = strlen(s);

    for (size_t i = 0; i < n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i])) {
            return false;
        }
    }
    return n == 36;
}

static bool is_listed(const char *words, const char *s)
{
    size_t n = strlen(s);

    for (const char *w = words; n > 0 && *w; w += strspn(w, " ")) {
        size_t len = strcspn(w, " ");

        if (len == n && memcmp(w, s, n) == 0) {
            return true;
        }
        w += len;
    }
    return false;
}

/* In KiB, rounded up as libvirt does it; 0 when it is none. */
static uint64_t size_of(const char *value, const char *unit)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"b", 0}, {"bytes", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    long long n;

    if (ferry_parse_int(value, 1, INT64_MAX >> 30, &n, NULL) < 0) {
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(units); i++) {
        if (strcmp(units[i].name, unit ? unit : "KiB") == 0) {
            return (((uint64_t)n << units[i].shift) + 1023) >> 10;
        }
    }
    return 0;
}

/* QEMU makes a versioned type of an alias when the guest starts. */
static bool same_type(const char *value, const char *agreed)
{
    static const struct {
        const char *alias, *begin;
    } types[] = {{"pc", "pc-i440fx-"}, {"q35", "pc-q35-"}};

    for (size_t i = 0; i < FERRY_COUNT(types); i++) {
        if (strcmp(agreed, types[i].alias) == 0 && ferry_str_starts(value, types[i].begin)) {
            return made_of(value, "-.+");
        }
    }
    return strcmp(value, agreed) == 0;
}

static bool same_size(const char *value, const char *unit, const char *agreed,
                      const char *unit_agreed)
{
    uint64_t size = size_of(value, unit);

    return size > 0 && size == size_of(agreed, unit_agreed);
}

bool rpc_value_allowed(const struct rpc_rule *rule, const char *value, const char *unit,
                       const char *agreed, const char *unit_agreed)
{
    switch (rule->value) {
    case RPC_EMPTY:
    case RPC_FLAG:
        return !*value;
    case RPC_SAME:
    case RPC_EQUAL:
        return agreed && strcmp(value, agreed) == 0;
    case RPC_MAC:
        return agreed && strcasecmp(value, agreed) == 0;
    case RPC_SIZE:
    case RPC_AMOUNT:
        return agreed && same_size(value, unit, agreed, unit_agreed);
    case RPC_TYPE:
        return agreed && same_type(value, agreed);
    case RPC_NUMBER:
        return is_number(value);
    case RPC_WORD:
        return made_of(value, "-_.:+#");
    case RPC_UUID:
        return is_uuid(value);
    case RPC_LABEL:
        return made_of(value, "-_.:+, ");
    case RPC_ONE_OF:
        return is_listed(rule->words, value);
    case RPC_SAME_OR_OF:
        return agreed ? strcmp(value, agreed) == 0 : is_listed(rule->words, value);
    }
    return false;
}
