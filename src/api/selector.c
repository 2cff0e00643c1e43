#include "api/selector.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/names.h"
#include "base/str.h"

enum { MAX_REQUIREMENTS = 64, MAX_VALUES = 1024, MAX_TEXT = 16384 };

enum operation { OP_IN, OP_NOT_IN, OP_EXISTS, OP_MISSING };

struct requirement {
    enum operation op;
    char *key;
    char **values;
    size_t n_values;
};

struct api_selector {
    struct requirement *items;
    size_t n;
};

void api_selector_free(struct api_selector *s)
{
    if (!s) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < s->items[i].n_values; j++) {
            free(s->items[i].values[j]);
        }
        free(s->items[i].values);
        free(s->items[i].key);
    }
    free(s->items);
    free(s);
}

static void add_value(struct requirement *r, char *value_take)
{
    r->values = ferry_xrealloc(r->values, r->n_values + 1, sizeof(*r->values));
    r->values[r->n_values++] = value_take;
}

static struct requirement *add_requirement(struct api_selector *s)
{
    s->items = ferry_xrealloc(s->items, s->n + 1, sizeof(*s->items));
    s->items[s->n] = (struct requirement){0};
    return &s->items[s->n++];
}

/* ---- labels ------------------------------------------------------------------------------------
 */

struct scanner {
    const char *text, *at;
    struct ferry_error *err;
};

static int fail(const struct scanner *sc, const char *what)
{
    return ferry_fail(sc->err, FERRY_INVALID, "selector '%.200s', position %zu: %s", sc->text,
                      (size_t)(sc->at - sc->text), what);
}

static void skip_space(struct scanner *sc)
{
    while (isspace((unsigned char)*sc->at)) {
        sc->at++;
    }
}

static char *word(struct scanner *sc)
{
    skip_space(sc);
    size_t n = strcspn(sc->at, " \t\n\r=!,()<>");
    char *w = ferry_strndup(sc->at, n);

    sc->at += n;
    skip_space(sc);
    return w;
}

static bool accept(struct scanner *sc, const char *token)
{
    skip_space(sc);
    if (!ferry_str_starts(sc->at, token)) {
        return false;
    }
    sc->at += strlen(token);
    return true;
}

static int label_value(struct scanner *sc, struct requirement *r)
{
    ferry_cleanup_free char *value = word(sc);

    if (!api_name_is_label_value(value)) {
        return fail(sc, "not a label value");
    }
    if (r->n_values == MAX_VALUES) {
        return fail(sc, "too many values");
    }
    add_value(r, ferry_take_ptr(value));
    return 0;
}

static int label_values(struct scanner *sc, struct requirement *r)
{
    if (!accept(sc, "(")) {
        return fail(sc, "expected '('");
    }
    do {
        int rc = label_value(sc, r);

        if (rc < 0) {
            return rc;
        }
    } while (accept(sc, ","));
    return accept(sc, ")") ? 0 : fail(sc, "expected ',' or ')'");
}

static int label_operation(struct scanner *sc, struct requirement *r)
{
    if (accept(sc, "==") || accept(sc, "=")) {
        r->op = OP_IN;
        return label_value(sc, r);
    }
    if (accept(sc, "!=")) {
        r->op = OP_NOT_IN;
        return label_value(sc, r);
    }
    if (*sc->at == ',' || !*sc->at) {
        r->op = OP_EXISTS;
        return 0;
    }
    ferry_cleanup_free char *name = word(sc);
    if (strcmp(name, "in") != 0 && strcmp(name, "notin") != 0) {
        return fail(sc, "expected =, ==, !=, in or notin");
    }
    r->op = name[0] == 'i' ? OP_IN : OP_NOT_IN;
    return label_values(sc, r);
}

static int label_requirement(struct scanner *sc, struct api_selector *s)
{
    struct requirement *r = add_requirement(s);
    bool missing = accept(sc, "!");

    r->key = word(sc);
    if (!api_name_is_label_key(r->key)) {
        return fail(sc, "not a label key");
    }
    if (missing) {
        r->op = OP_MISSING;
        return 0;
    }
    return label_operation(sc, r);
}

static int parse_labels(struct scanner *sc, struct api_selector *s)
{
    skip_space(sc);
    while (*sc->at) {
        if (s->n == MAX_REQUIREMENTS) {
            return fail(sc, "too many requirements");
        }
        int rc = label_requirement(sc, s);
        if (rc < 0) {
            return rc;
        }
        skip_space(sc);
        if (*sc->at && !accept(sc, ",")) {
            return fail(sc, "expected ','");
        }
    }
    return 0;
}

/* ---- fields ------------------------------------------------------------------------------------
 */

static int field_value(struct scanner *sc, struct requirement *r)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (; *sc->at && *sc->at != ','; sc->at++) {
        if (*sc->at == '\\') {
            sc->at++;
            if (!*sc->at || !strchr("\\,=", *sc->at)) {
                return fail(sc, "a backslash must stand before '\\', ',' or '='");
            }
        } else if (*sc->at == '=') {
            return fail(sc, "unexpected '='");
        }
        ferry_buf_append(&b, sc->at, 1);
    }
    add_value(r, ferry_buf_take(&b));
    return 0;
}

static int parse_fields(struct scanner *sc, struct api_selector *s)
{
    while (*sc->at) {
        if (accept(sc, ",")) {
            continue;
        }
        if (s->n == MAX_REQUIREMENTS) {
            return fail(sc, "too many requirements");
        }
        struct requirement *r = add_requirement(s);
        r->key = word(sc);
        if (!*r->key) {
            return fail(sc, "expected a field");
        }
        if (accept(sc, "!=")) {
            r->op = OP_NOT_IN;
        } else if (accept(sc, "==") || accept(sc, "=")) {
            r->op = OP_IN;
        } else {
            return fail(sc, "expected =, == or !=");
        }
        int rc = field_value(sc, r);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int parse(const char *text, int (*how)(struct scanner *, struct api_selector *),
                 struct api_selector **ret, struct ferry_error *err)
{
    api_cleanup_selector struct api_selector *s = ferry_xcalloc(1, sizeof(*s));
    struct scanner sc = {.text = text ? text : "", .at = text ? text : "", .err = err};

    if (strlen(sc.text) > MAX_TEXT) {
        return ferry_fail(err, FERRY_INVALID, "selector longer than %d bytes", MAX_TEXT);
    }
    int rc = how(&sc, s);
    if (rc < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(s);
    return 0;
}

int api_selector_parse_labels(const char *text, struct api_selector **ret, struct ferry_error *err)
{
    return parse(text, parse_labels, ret, err);
}

int api_selector_parse_fields(const char *text, struct api_selector **ret, struct ferry_error *err)
{
    return parse(text, parse_fields, ret, err);
}

/* ---- matching ----------------------------------------------------------------------------------
 */

static bool holds(const struct requirement *r, struct ferry_span value)
{
    bool in = false;

    for (size_t i = 0; value.at && i < r->n_values && !in; i++) {
        in = ferry_span_is(value, r->values[i]);
    }
    switch (r->op) {
    case OP_IN:
        return in;
    case OP_NOT_IN:
        return !in;
    case OP_EXISTS:
        return value.at != NULL;
    case OP_MISSING:
        return value.at == NULL;
    }
    return false;
}

bool api_selector_empty(const struct api_selector *s)
{
    return !s || s->n == 0;
}

bool api_selector_matches(const struct api_selector *s,
                          struct ferry_span (*get)(const void *object, const char *key),
                          const void *object)
{
    for (size_t i = 0; s && i < s->n; i++) {
        if (!holds(&s->items[i], get(object, s->items[i].key))) {
            return false;
        }
    }
    return true;
}

struct ferry_span api_selector_field(const yyjson_val *object, const char *path,
                                     char number[API_SELECTOR_NUMBER])
{
    yyjson_val *v = (yyjson_val *)object;

    while (v && *path) {
        size_t n = strcspn(path, ".");

        v = yyjson_obj_getn(v, path, n);
        path += n + (path[n] == '.');
    }
    if (yyjson_is_str(v)) {
        return (struct ferry_span){.at = yyjson_get_str(v), .len = yyjson_get_len(v)};
    }
    if (yyjson_is_bool(v)) {
        return ferry_span_of(yyjson_get_bool(v) ? "true" : "false");
    }
    if (yyjson_is_int(v)) {
        snprintf(number, API_SELECTOR_NUMBER, "%lld", (long long)yyjson_get_sint(v));
        return ferry_span_of(number);
    }
    return ferry_span_of("");
}

size_t api_selector_count(const struct api_selector *s)
{
    return s ? s->n : 0;
}

const char *api_selector_key(const struct api_selector *s, size_t i)
{
    return s->items[i].key;
}

const char *api_selector_equal(const struct api_selector *s, const char *key)
{
    for (size_t i = 0; s && i < s->n; i++) {
        const struct requirement *r = &s->items[i];

        if (r->op == OP_IN && r->n_values == 1 && strcmp(r->key, key) == 0) {
            return r->values[0];
        }
    }
    return NULL;
}
