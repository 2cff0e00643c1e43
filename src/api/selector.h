/* Label and field selectors: parse once, match often. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

struct api_selector;

/* "a=b,c!=d,e,!f,g in (x,y),h notin (z)"; "" and NULL match everything. */
int api_selector_parse_labels(const char *text, struct api_selector **ret, struct ferry_error *err);
/* "metadata.name=x,spec.nodeName!=y"; values escape ',', '=' and '\' with a backslash. */
int api_selector_parse_fields(const char *text, struct api_selector **ret, struct ferry_error *err);
void api_selector_free(struct api_selector *s);
FERRY_DEFINE_CLEANUP(struct api_selector *, api_selector_free)
#define api_cleanup_selector ferry_cleanup(api_selector_freep)

bool api_selector_empty(const struct api_selector *s); /* matches everything; NULL does too */
/* `get` gives the value that `object` has for a key: of labels, or of the field at a dotted path. A
 * field that is absent equals "", a label does not. */
bool api_selector_matches(const struct api_selector *s,
                          struct ferry_span (*get)(const void *object, const char *key),
                          const void *object);

enum { API_SELECTOR_NUMBER = 32 };
/* What a field selector compares with: the value at a dotted path, booleans and numbers as text;
 * "" when absent. `number` is room for one. */
struct ferry_span api_selector_field(const yyjson_val *object, const char *path,
                                     char number[API_SELECTOR_NUMBER]);

/* Keys of the requirements, to check them or to find a shortcut. */
size_t api_selector_count(const struct api_selector *s);
const char *api_selector_key(const struct api_selector *s, size_t i);
/* The value that `key` must have when one requirement says key=value, else NULL. */
const char *api_selector_equal(const struct api_selector *s, const char *key);
