/* Label and field selectors: parse once, match often. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/kinds.h"
#include "base/cleanup.h"
#include "base/error.h"

struct api_selector;

/* "a=b,c!=d,e,!f,g in (x,y),h notin (z)"; "" and NULL match everything. */
int api_selector_parse_labels(const char *text, struct api_selector **ret, struct ferry_error *err);
/* "metadata.name=x,spec.nodeName!=y"; values escape ',', '=' and '\' with a backslash. */
int api_selector_parse_fields(const char *text, struct api_selector **ret, struct ferry_error *err);
void api_selector_free(struct api_selector *s);
FERRY_DEFINE_CLEANUP(struct api_selector *, api_selector_free)
#define api_cleanup_selector ferry_cleanup(api_selector_freep)

bool api_selector_empty(const struct api_selector *s); /* matches everything; NULL does too */
bool api_selector_matches_labels(const struct api_selector *s, const struct api_map *labels);
/* The same on an object as JSON. */
bool api_selector_matches_labels_of(const struct api_selector *s, const yyjson_val *object);
/* Values at the dotted paths; absent equals "". Booleans and numbers compare as text. */
bool api_selector_matches_fields(const struct api_selector *s, const yyjson_val *object);

/* Keys of the requirements, to check them or to find a shortcut. */
size_t api_selector_count(const struct api_selector *s);
const char *api_selector_key(const struct api_selector *s, size_t i);
/* The value that `key` must have when one requirement says key=value, else NULL. */
const char *api_selector_equal(const struct api_selector *s, const char *key);
