/* What the files of instancetype_apply() share. Not for others. */
#pragma once

#include "api/instancetype/instancetype.h"

struct instancetype_edit {
    yyjson_mut_doc *doc;
    yyjson_mut_val *spec, *metadata;
};

/* At a path like "domain/cpu/model"; NULL where there is nothing or null. */
yyjson_mut_val *instancetype_get(const struct instancetype_edit *e, const char *path);
const yyjson_val *instancetype_from(const yyjson_val *spec, const char *path);
/* Makes the objects on the way. */
void instancetype_put(const struct instancetype_edit *e, const char *path, yyjson_mut_val *value);
/* An object under `key`: the one that is there, or a new one. */
yyjson_mut_val *instancetype_object(yyjson_mut_doc *doc, yyjson_mut_val *of, const char *key);

/* How the vCPUs of a type are laid out. */
enum instancetype_topology {
    TOPOLOGY_SOCKETS,
    TOPOLOGY_CORES,
    TOPOLOGY_THREADS,
    TOPOLOGY_ANY,
    TOPOLOGY_SPREAD
};
enum instancetype_across {
    ACROSS_SOCKETS_CORES,
    ACROSS_CORES_THREADS,
    ACROSS_SOCKETS_CORES_THREADS
};
struct instancetype_layout {
    enum instancetype_topology topology;
    enum instancetype_across across;
    int64_t ratio;
};
/* `preference` may be NULL. */
struct instancetype_layout instancetype_layout(const yyjson_val *preference);

void instancetype_prefer(const struct instancetype_edit *e, const yyjson_val *preference);
