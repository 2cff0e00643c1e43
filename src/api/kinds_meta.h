/* What all kinds share: metadata, maps, lists, conditions.
 *
 * Absent strings are NULL, absent times 0 (unix milliseconds), absent numbers 0 unless a has_ flag
 * says otherwise. Lists are an array and a count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

struct api_pair {
    const char *key, *value;
};
struct api_map {
    const struct api_pair *items;
    size_t n;
};
/* NULL when absent. */
const char *api_map_get(const struct api_map *map, const char *key);

struct api_strings {
    const char *const *items;
    size_t n;
};
bool api_strings_have(const struct api_strings *list, const char *text);

struct api_ints {
    const int64_t *items;
    size_t n;
};

struct api_owner {
    const char *api_version, *kind, *name, *uid;
    bool controller;
};

struct api_meta {
    const char *name, *namespace_, *uid, *resource_version, *generate_name;
    int64_t created_ms, deleted_ms; /* deleted_ms: deletionTimestamp; 0 = not being deleted */
    int64_t generation, deletion_grace_s;
    struct api_map labels, annotations;
    struct api_strings finalizers;
    const struct api_owner *owners;
    size_t n_owners;
};

struct api_condition {
    const char *type, *status, *reason, *message;
    int64_t last_transition_ms, last_probe_ms;
};
struct api_conditions {
    const struct api_condition *items;
    size_t n;
};
const struct api_condition *api_condition_find(const struct api_conditions *list, const char *type);
bool api_condition_true(const struct api_conditions *list, const char *type);
