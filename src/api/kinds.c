/* Which table decodes which kind, and looking into what was decoded. */
#include "api/kinds.h"

#include <stdio.h>
#include <string.h>

#include "api/decode.h"
#include "api/fields.h"
#include "base/count.h"
#include "base/str.h"

static const struct {
    struct api_table *table;
    size_t size;
    bool keep_invalid; /* see api_object.invalid */
} kinds[] = {
    [API_KIND_NONE] = {NULL, sizeof(struct api_meta), false},
    [API_KIND_NODE] = {&api_node_table, sizeof(struct api_node), false},
    [API_KIND_POD] = {&api_pod_table, sizeof(struct api_pod), false},
    [API_KIND_VMI] = {&api_vmi_table, sizeof(struct api_vmi), false},
    [API_KIND_MIGRATION] = {&api_migration_table, sizeof(struct api_migration), false},
    [API_KIND_LEASE] = {&api_lease_table, sizeof(struct api_lease), false},
    [API_KIND_NAMESPACE] = {&api_namespace_table, sizeof(struct api_namespace), false},
    [API_KIND_EVENT] = {&api_event_table, sizeof(struct api_event), false},
    [API_KIND_CONFIG_MAP] = {&api_config_map_table, sizeof(struct api_config_map), false},
    [API_KIND_SECRET] = {&api_secret_table, sizeof(struct api_secret), false},
    [API_KIND_VOLUME] = {&api_volume_table, sizeof(struct api_volume), false},
    [API_KIND_CLAIM] = {&api_claim_table, sizeof(struct api_claim), false},
    [API_KIND_QUOTA] = {&api_quota_table, sizeof(struct api_quota), false},
    [API_KIND_STORAGE_CLASS] = {&api_storage_class_table, sizeof(struct api_storage_class), false},
    [API_KIND_STORAGE_PROFILE] = {&api_storage_profile_table, sizeof(struct api_storage_profile),
                                  false},
    [API_KIND_NETWORK] = {&api_network_table, sizeof(struct api_network), false},
    [API_KIND_VM] = {&api_vm_table, sizeof(struct api_vm), false},
    [API_KIND_KUBEVIRT] = {&api_kubevirt_table, sizeof(struct api_kubevirt), true},
    [API_KIND_POLICY] = {&api_policy_table, sizeof(struct api_policy), true},
};
_Static_assert(FERRY_COUNT(kinds) == API_KIND_COUNT, "one row per kind");

size_t api_kind_size(enum api_kind kind)
{
    return kinds[kind].size;
}

static const char *keep_text(struct api_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(api_arena_alloc(arena, size, 1), text, size);
}

int api_kind_decode(enum api_kind kind, const yyjson_val *root, struct api_arena *arena,
                    struct api_object *out, struct ferry_error *err)
{
    struct ferry_error why = {0};
    /* Every kind's struct begins with its meta. */
    int rc = api_codec_decode(&api_meta_table, root, &out->u.bare, arena, err);

    if (rc < 0 || !kinds[kind].table) {
        return rc;
    }
    rc = api_codec_decode(kinds[kind].table, root, &out->u, arena, &why);
    if (rc < 0 && kinds[kind].keep_invalid) {
        out->invalid = keep_text(arena, why.msg);
        return 0;
    }
    if (rc < 0 && err) {
        *err = why;
    }
    return rc;
}

const char *api_map_get(const struct api_map *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->items[i].key, key) == 0) {
            return map->items[i].value;
        }
    }
    return NULL;
}

bool api_strings_have(const struct api_strings *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++) {
        if (ferry_streq(list->items[i], text)) {
            return true;
        }
    }
    return false;
}

const struct api_condition *api_condition_find(const struct api_conditions *list, const char *type)
{
    for (size_t i = 0; i < list->n; i++) {
        if (ferry_streq(list->items[i].type, type)) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool api_condition_true(const struct api_conditions *list, const char *type)
{
    const struct api_condition *c = api_condition_find(list, type);

    return c && ferry_streq(c->status, "True");
}
