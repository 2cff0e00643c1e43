/* The table is in the order in which KubeVirt names conflicts. Where KubeVirt lets the type win
 * without a word (cpu.maxSockets), that is a conflict here. */
#include "api/instancetype/instancetype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/instancetype/instancetype_edit.h"
#include "base/count.h"
#include "json/doc.h"

enum { PATH_SIZE = 160, THREADS_PER_CORE = 2, PERCENT = 100 };

/* ---- paths -------------------------------------------------------------------------------------
 */

const yyjson_val *instancetype_from(const yyjson_val *spec, const char *path)
{
    char pointer[PATH_SIZE];

    snprintf(pointer, sizeof(pointer), "/%s", path);
    yyjson_val *v = yyjson_ptr_get((yyjson_val *)spec, pointer);
    return yyjson_is_null(v) ? NULL : v;
}

yyjson_mut_val *instancetype_get(const struct instancetype_edit *e, const char *path)
{
    char pointer[PATH_SIZE];

    snprintf(pointer, sizeof(pointer), "/%s", path);
    yyjson_mut_val *v = yyjson_mut_ptr_get(e->spec, pointer);
    return yyjson_mut_is_null(v) ? NULL : v;
}

yyjson_mut_val *instancetype_object(yyjson_mut_doc *doc, yyjson_mut_val *of, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(of, key);

    if (!yyjson_mut_is_obj(v)) {
        v = yyjson_mut_obj(doc);
        yyjson_mut_obj_put(of, yyjson_mut_strcpy(doc, key), v);
    }
    return v;
}

void instancetype_put(const struct instancetype_edit *e, const char *path, yyjson_mut_val *value)
{
    yyjson_mut_val *at = e->spec;
    const char *slash;

    for (; (slash = strchr(path, '/')); path = slash + 1) {
        ferry_cleanup_free char *key = ferry_strndup(path, (size_t)(slash - path));

        at = instancetype_object(e->doc, at, key);
    }
    yyjson_mut_obj_put(at, yyjson_mut_strcpy(e->doc, path), value);
}

/* ---- the type ----------------------------------------------------------------------------------
 */

static const struct {
    const char *from; /* in the type; NULL: the machine may not say it, whatever the type says */
    const char *to;   /* in the machine */
} rows[] = {
    {"nodeSelector", "nodeSelector"},
    {"schedulerName", "schedulerName"},
    {NULL, "domain/resources/requests/cpu"},
    {NULL, "domain/resources/limits/cpu"},
    {NULL, "domain/cpu/sockets"},
    {NULL, "domain/cpu/cores"},
    {NULL, "domain/cpu/threads"},
    {"cpu/model", "domain/cpu/model"},
    {"cpu/dedicatedCPUPlacement", "domain/cpu/dedicatedCPUPlacement"},
    {"cpu/isolateEmulatorThread", "domain/cpu/isolateEmulatorThread"},
    {"cpu/numa", "domain/cpu/numa"},
    {"cpu/realtime", "domain/cpu/realtime"},
    {"cpu/maxSockets", "domain/cpu/maxSockets"},
    {"memory/guest", "domain/memory/guest"},
    {"memory/hugepages", "domain/memory/hugepages"},
    {"memory/maxGuest", "domain/memory/maxGuest"},
    {NULL, "domain/resources/requests/memory"},
    {NULL, "domain/resources/limits/memory"},
    {"ioThreads/supplementalPoolThreadCount", "domain/ioThreads/supplementalPoolThreadCount"},
    {"ioThreadsPolicy", "domain/ioThreadsPolicy"},
    {"launchSecurity", "domain/launchSecurity"},
    {"gpus", "domain/devices/gpus"},
    {"hostDevices", "domain/devices/hostDevices"},
};

/* In the type: what is there, but no empty text and no empty list. */
static const yyjson_val *offered(const yyjson_val *type, const char *from)
{
    const yyjson_val *v = from ? instancetype_from(type, from) : NULL;
    bool empty = (yyjson_is_str((yyjson_val *)v) && yyjson_get_len((yyjson_val *)v) == 0) ||
                 (yyjson_is_arr((yyjson_val *)v) && yyjson_arr_size((yyjson_val *)v) == 0);

    return empty ? NULL : v;
}

/* In the machine: 0, false, "" and [] are as good as nothing, as Go has it. */
static bool is_said(yyjson_mut_val *v)
{
    if (yyjson_mut_is_num(v)) {
        return yyjson_mut_get_num(v) != 0;
    }
    if (yyjson_mut_is_bool(v)) {
        return yyjson_mut_get_bool(v);
    }
    if (yyjson_mut_is_str(v)) {
        return yyjson_mut_get_len(v) > 0;
    }
    return yyjson_mut_is_arr(v) ? yyjson_mut_arr_size(v) > 0 : v != NULL;
}

static void add_conflict(struct ferry_buf *b, const char *base, const char *path)
{
    ferry_buf_printf(b, "%s%s%s", b->len ? ", " : "", base, *base ? "." : "");
    for (; *path; path++) {
        ferry_buf_append(b, *path == '/' ? "." : path, 1);
    }
}

static size_t find_conflicts(const struct instancetype_edit *e, const yyjson_val *type,
                             const char *base, struct ferry_buf *ret)
{
    yyjson_mut_val *has = yyjson_mut_obj_get(e->metadata, "annotations");
    yyjson_val *key, *value;
    size_t i, max, n = 0;

    for (i = 0; i < FERRY_COUNT(rows); i++) {
        bool wanted = !rows[i].from || offered(type, rows[i].from);

        if (wanted && is_said(instancetype_get(e, rows[i].to))) {
            add_conflict(ret, base, rows[i].to);
            n++;
        }
    }
    yyjson_obj_foreach((yyjson_val *)instancetype_from(type, "annotations"), i, max, key, value)
    {
        const char *own = yyjson_mut_get_str(yyjson_mut_obj_get(has, yyjson_get_str(key)));

        if (own && !ferry_streq(own, yyjson_get_str(value))) {
            ferry_buf_printf(ret, "%sannotations.%s", ret->len ? ", " : "", yyjson_get_str(key));
            n++;
        }
    }
    return n;
}

/* ---- vCPUs -------------------------------------------------------------------------------------
 */

struct instancetype_layout instancetype_layout(const yyjson_val *preference)
{
    static const char *const topologies[][2] = {[TOPOLOGY_SOCKETS] = {"sockets", "preferSockets"},
                                                [TOPOLOGY_CORES] = {"cores", "preferCores"},
                                                [TOPOLOGY_THREADS] = {"threads", "preferThreads"},
                                                [TOPOLOGY_ANY] = {"any", "preferAny"},
                                                [TOPOLOGY_SPREAD] = {"spread", "preferSpread"}};
    static const char *const across[] = {[ACROSS_SOCKETS_CORES] = "SocketsCores",
                                         [ACROSS_CORES_THREADS] = "CoresThreads",
                                         [ACROSS_SOCKETS_CORES_THREADS] = "SocketsCoresThreads"};
    const char *name = api_json_str(preference, "/cpu/preferredCPUTopology");
    const char *over = api_json_str(preference, "/cpu/spreadOptions/across");
    int64_t older = api_json_int(preference, "/preferSpreadSocketToCoreRatio", 0);
    struct instancetype_layout l = {
        .ratio = api_json_int(preference, "/cpu/spreadOptions/ratio", older)};

    for (size_t i = 0; i < FERRY_COUNT(topologies); i++) {
        if (ferry_streq(name, topologies[i][0]) || ferry_streq(name, topologies[i][1])) {
            l.topology = (enum instancetype_topology)i;
        }
    }
    for (size_t i = 0; i < FERRY_COUNT(across); i++) {
        if (ferry_streq(over, across[i])) {
            l.across = (enum instancetype_across)i;
        }
    }
    l.ratio = l.ratio > 0 ? l.ratio : 2;
    return l;
}

static void put_topology(const struct instancetype_edit *e, int64_t sockets, int64_t cores,
                         int64_t threads)
{
    instancetype_put(e, "domain/cpu/sockets", yyjson_mut_sint(e->doc, sockets));
    instancetype_put(e, "domain/cpu/cores", yyjson_mut_sint(e->doc, cores));
    instancetype_put(e, "domain/cpu/threads", yyjson_mut_sint(e->doc, threads));
}

static void lay_out(const struct instancetype_edit *e, int64_t n, struct instancetype_layout l)
{
    if (n == 1) {
        put_topology(e, 1, 1, 1);
        return;
    }
    switch (l.topology) {
    case TOPOLOGY_SOCKETS:
    case TOPOLOGY_ANY:
        put_topology(e, n, 1, 1);
        return;
    case TOPOLOGY_CORES:
        put_topology(e, 1, n, 1);
        return;
    case TOPOLOGY_THREADS:
        put_topology(e, 1, 1, n);
        return;
    case TOPOLOGY_SPREAD:
        break;
    }
    switch (l.across) {
    case ACROSS_SOCKETS_CORES:
        put_topology(e, n / l.ratio, l.ratio, 1);
        break;
    case ACROSS_CORES_THREADS:
        put_topology(e, 1, n / l.ratio, l.ratio);
        break;
    case ACROSS_SOCKETS_CORES_THREADS:
        put_topology(e, n / THREADS_PER_CORE / l.ratio, l.ratio, THREADS_PER_CORE);
        break;
    }
}

/* ---- memory ------------------------------------------------------------------------------------
 */

/* "512Mi": the largest unit without a remainder. */
static void put_bytes(const struct instancetype_edit *e, const char *path, int64_t bytes)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    char text[32];
    size_t u = 0;

    while (bytes && bytes % 1024 == 0 && u + 1 < FERRY_COUNT(units)) {
        bytes /= 1024;
        u++;
    }
    snprintf(text, sizeof(text), "%" PRId64 "%s", bytes, units[u]);
    instancetype_put(e, path, yyjson_mut_strcpy(e->doc, text));
}

/* The pod asks for less than the guest has. */
static void overcommit(const struct instancetype_edit *e, const yyjson_val *type)
{
    int64_t percent = api_json_int(type, "/memory/overcommitPercent", 0), bytes = 0;

    if (percent > 0 && percent <= PERCENT &&
        api_quantity_val(instancetype_from(type, "memory/guest"), 1, &bytes, NULL) == 0) {
        put_bytes(e, "domain/resources/requests/memory",
                  bytes / PERCENT * (PERCENT - percent) +
                      bytes % PERCENT * (PERCENT - percent) / PERCENT);
    }
}

/* ---- both --------------------------------------------------------------------------------------
 */

static void add_annotations(const struct instancetype_edit *e, const yyjson_val *from)
{
    yyjson_mut_val *to = NULL;
    yyjson_val *key, *value;
    size_t i, max;

    yyjson_obj_foreach((yyjson_val *)instancetype_from(from, "annotations"), i, max, key, value)
    {
        to = to ? to : instancetype_object(e->doc, e->metadata, "annotations");
        if (!yyjson_mut_obj_get(to, yyjson_get_str(key))) {
            yyjson_mut_obj_add_val(e->doc, to, yyjson_get_str(key),
                                   yyjson_val_mut_copy(e->doc, value));
        }
    }
}

static void apply_type(const struct instancetype_edit *e, const struct instancetype_pair *given)
{
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        const yyjson_val *v = offered(given->type, rows[i].from);

        if (v) {
            instancetype_put(e, rows[i].to, yyjson_val_mut_copy(e->doc, (yyjson_val *)v));
        }
    }
    lay_out(e, api_json_int(given->type, "/cpu/guest", 1), instancetype_layout(given->preference));
    overcommit(e, given->type);
    add_annotations(e, given->type);
}

size_t instancetype_apply(yyjson_mut_doc *doc, yyjson_mut_val *spec, yyjson_mut_val *metadata,
                          const struct instancetype_pair *given, const char *base,
                          struct ferry_buf *conflicts)
{
    const struct instancetype_edit e = {.doc = doc, .spec = spec, .metadata = metadata};

    if (given->type) {
        size_t n = find_conflicts(&e, given->type, base, conflicts);

        if (n > 0) {
            return n;
        }
        apply_type(&e, given);
    }
    if (given->preference) {
        instancetype_prefer(&e, given->preference);
        add_annotations(&e, given->preference);
    }
    return 0;
}
