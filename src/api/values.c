/* Quantities and times as Kubernetes writes them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

enum { MAX_DIGITS = 18, MAX_TEXT = 64 };

/* 2 to the power `binary`, times 10 to the power `decimal`. */
struct suffix {
    const char *text;
    int binary, decimal;
};

static const struct suffix suffixes[] = {
    {"", 0, 0},    {"n", 0, -9},  {"u", 0, -6},  {"m", 0, -3},  {"k", 0, 3},   {"M", 0, 6},
    {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18},  {"Ki", 10, 0}, {"Mi", 20, 0},
    {"Gi", 30, 0}, {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0},
};

struct number {
    bool negative;
    unsigned __int128 digits;
    int binary, decimal; /* exponents */
};

/* Sign, digits and point; returns what follows, NULL when there is no number. */
static const char *read_digits(const char *s, struct number *n)
{
    bool point = false;
    size_t count = 0, significant = 0;

    n->negative = *s == '-';
    s += *s == '-' || *s == '+';
    for (;; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        if (!isdigit((unsigned char)*s)) {
            break;
        }
        count++;
        significant += n->digits || *s != '0';
        if (significant > MAX_DIGITS) {
            return NULL;
        }
        n->digits = n->digits * 10 + (unsigned)(*s - '0');
        n->decimal -= point;
    }
    return count ? s : NULL;
}

static bool read_suffix(const char *s, struct number *n)
{
    for (size_t i = 0; i < FERRY_COUNT(suffixes); i++) {
        if (strcmp(s, suffixes[i].text) == 0) {
            n->binary += suffixes[i].binary;
            n->decimal += suffixes[i].decimal;
            return true;
        }
    }
    long long exponent;
    if ((*s == 'e' || *s == 'E') && ferry_parse_int(s + 1, -60, 60, &exponent, NULL) == 0 &&
        !isspace((unsigned char)s[1])) {
        n->decimal += (int)exponent;
        return true;
    }
    return false;
}

/* Rounds away from zero, as Kubernetes does. False when it does not fit. */
static bool scale_number(const struct number *n, int64_t scale, int64_t *ret)
{
    unsigned __int128 v = n->digits;
    bool rest = false;

    if (__builtin_mul_overflow(v, (unsigned __int128)scale, &v)) {
        return false;
    }
    int decimal = n->decimal;
    for (int i = 0; i < n->binary; i++) {
        if (__builtin_mul_overflow(v, (unsigned __int128)2, &v)) {
            return false;
        }
    }
    for (; decimal > 0 && v; decimal--) {
        if (__builtin_mul_overflow(v, (unsigned __int128)10, &v)) {
            return false;
        }
    }
    for (; decimal < 0 && v; decimal++) {
        rest = rest || v % 10;
        v /= 10;
    }
    v += rest;
    if (v > INT64_MAX) {
        return false;
    }
    *ret = n->negative ? -(int64_t)v : (int64_t)v;
    return true;
}

int api_quantity(const char *text, int64_t scale, int64_t *ret, struct ferry_error *err)
{
    struct number n = {0};

    if (strlen(text) > MAX_TEXT) {
        return ferry_fail(err, FERRY_INVALID, "'%.20s...' is not a quantity", text);
    }
    const char *rest = read_digits(text, &n);
    if (!rest || !read_suffix(rest, &n)) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is not a quantity (like %s)", text,
                          scale == 1 ? "500M or 1.5Gi" : "500m or 2");
    }
    if (!scale_number(&n, scale, ret)) {
        return ferry_fail(err, FERRY_INVALID, "quantity '%s' is too large", text);
    }
    return 0;
}

int api_quantity_val(const yyjson_val *v, int64_t scale, int64_t *ret, struct ferry_error *err)
{
    char text[32];
    int64_t n;

    if (yyjson_is_str((yyjson_val *)v)) {
        return api_quantity(yyjson_get_str((yyjson_val *)v), scale, ret, err);
    }
    if (api_json_get_int(v, &n)) {
        snprintf(text, sizeof(text), "%lld", (long long)n);
        return api_quantity(text, scale, ret, err);
    }
    if (yyjson_is_real((yyjson_val *)v)) {
        int len = snprintf(text, sizeof(text), "%.9f", yyjson_get_real((yyjson_val *)v));

        while (len < (int)sizeof(text) && text[len - 1] == '0') { /* they are no digits of it */
            text[--len] = '\0';
        }
        return api_quantity(text, scale, ret, err);
    }
    return ferry_fail(err, FERRY_INVALID, "must be a quantity (like \"500m\" or \"1.5Gi\")");
}

/* ---- times -------------------------------------------------------------------------------------
 */

/* Exactly `n` digits. */
static bool number_of(const char **s, int n, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*s)++) {
        if (!isdigit((unsigned char)**s)) {
            return false;
        }
        v = v * 10 + (**s - '0');
    }
    *ret = v;
    return true;
}

static bool char_of(const char **s, const char *any)
{
    if (!**s || !strchr(any, **s)) {
        return false;
    }
    (*s)++;
    return true;
}

static bool fraction_of(const char **s, int *ret_ms)
{
    int scale = 100;

    *ret_ms = 0;
    if (**s != '.') {
        return true;
    }
    (*s)++;
    if (!isdigit((unsigned char)**s)) {
        return false;
    }
    for (; isdigit((unsigned char)**s); (*s)++) {
        *ret_ms += (**s - '0') * scale;
        scale /= 10;
    }
    return true;
}

static bool offset_of(const char **s, int *ret_minutes)
{
    int hours, minutes;

    *ret_minutes = 0;
    if (char_of(s, "Zz")) {
        return true;
    }
    int sign = **s == '-' ? -1 : 1;
    if (!char_of(s, "+-") || !number_of(s, 2, &hours) || !char_of(s, ":") ||
        !number_of(s, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

int api_time_parse(const char *rfc3339, int64_t *ret_unix_ms, struct ferry_error *err)
{
    const char *s = rfc3339;
    int year, month, day, hour, minute, second, ms, offset;

    if (!number_of(&s, 4, &year) || !char_of(&s, "-") || !number_of(&s, 2, &month) ||
        !char_of(&s, "-") || !number_of(&s, 2, &day) || !char_of(&s, "Tt") ||
        !number_of(&s, 2, &hour) || !char_of(&s, ":") || !number_of(&s, 2, &minute) ||
        !char_of(&s, ":") || !number_of(&s, 2, &second) || !fraction_of(&s, &ms) ||
        !offset_of(&s, &offset) || *s || month < 1 || month > 12 || day < 1 ||
        day > days_in(year, month) || hour > 23 || minute > 59 || second > 60) {
        return ferry_fail(err, FERRY_INVALID,
                          "'%.40s' is not a time of the form 2006-01-02T15:04:05Z", rfc3339);
    }
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute,
                    .tm_sec = second};
    *ret_unix_ms = ((int64_t)timegm(&tm) - (int64_t)offset * 60) * 1000 + ms;
    return 0;
}
