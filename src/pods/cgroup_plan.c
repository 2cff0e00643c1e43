#include "pods/cgroup_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

enum {
    MILLI = 1000,
    PERIOD_US = 100000,
    SHARES_PER_CPU = 1024,
    SHARES_MIN = 2,
    SHARES_MAX = 262144,
    WEIGHT_MAX = 10000,
    QUOTA_MIN_US = 1000, /* the kernel takes no less */
    /* What a pod gets beyond its request that says nothing of a limit: QEMU without hardware
     * virtualisation keeps up to 1 GiB of translated code, a move has buffers for each of its
     * connections, and nothing ordinary is ever to meet this limit. */
    ROOM_MIB = 2048,
    ROOM_SHARE = 4, /* and a part of the request */
    /* Launcher, libvirtd and QEMU with all its threads need a few hundred; a runaway needs more. */
    PIDS_MAX = 4096,
};

/* ---- where controllers are --------------------------------------------------------------------
 */

const char *cgroup_controller_name(enum cgroup_controller c)
{
    static const char *const names[] = {"cpu", "memory", "pids"};

    return names[c];
}

/* "\040" and the like, as mountinfo writes what would end a word. */
static char *unescape(const char *word, size_t n)
{
    char *s = ferry_strndup(word, n), *to = s;

    for (const char *from = s; *from; to++) {
        if (from[0] == '\\' && from[1] && from[2] && from[3]) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
    return s;
}

/* One line of mountinfo: ID PARENT DEV ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPEROPTIONS */
struct mount_line {
    const char *point, *type, *options;
    size_t point_n, type_n, options_n;
};

static const char *next_word(const char *at, const char *end, size_t *n)
{
    while (at < end && *at == ' ') {
        at++;
    }
    const char *stop = memchr(at, ' ', (size_t)(end - at));
    *n = (size_t)((stop ? stop : end) - at);
    return at;
}

static bool read_line(const char *line, const char *end, struct mount_line *ret)
{
    const char *at = line, *dash = NULL;
    size_t n = 0;

    for (int i = 0; i < 5; i++) {
        at = next_word(at + n, end, &n);
    }
    *ret = (struct mount_line){.point = at, .point_n = n};
    while (n && !(n == 1 && *at == '-')) {
        at = next_word(at + n, end, &n);
    }
    dash = n ? at : NULL;
    if (!dash) {
        return false;
    }
    ret->type = next_word(dash + 1, end, &ret->type_n);
    at = next_word(ret->type + ret->type_n, end, &n);
    ret->options = next_word(at + n, end, &ret->options_n);
    return ret->options_n > 0;
}

static bool is_word(const char *word, size_t n, const char *expected)
{
    return strlen(expected) == n && memcmp(word, expected, n) == 0;
}

/* Whether `list`, separated by any of `separators`, has the word. */
static bool has_word(const char *list, size_t n, const char *separators, const char *word)
{
    for (size_t i = 0; i < n;) {
        size_t len = strcspn(list + i, separators);

        len = len < n - i ? len : n - i;
        if (is_word(list + i, len, word)) {
            return true;
        }
        i += len + 1;
    }
    return false;
}

/* Calls out each line; the first for which `take` says yes ends it. */
static bool each_mount(const char *mountinfo, bool (*take)(const struct mount_line *, void *),
                       void *ctx)
{
    for (const char *line = mountinfo; *line;) {
        const char *end = line + strcspn(line, "\n");
        struct mount_line m;

        if (read_line(line, end, &m) && take(&m, ctx)) {
            return true;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

static bool take_unified(const struct mount_line *m, void *ctx)
{
    char **ret = ctx;

    if (!is_word(m->type, m->type_n, "cgroup2")) {
        return false;
    }
    *ret = unescape(m->point, m->point_n);
    return true;
}

char *cgroup_unified_mount(const char *mountinfo)
{
    char *mount = NULL;

    each_mount(mountinfo, take_unified, &mount);
    return mount;
}

static bool take_own(const struct mount_line *m, void *ctx)
{
    struct cgroup_layout *l = ctx;

    for (enum cgroup_controller c = 0;
         is_word(m->type, m->type_n, "cgroup") && c < CGROUP_CONTROLLERS; c++) {
        if (!l->of[c].mount && has_word(m->options, m->options_n, ",", cgroup_controller_name(c))) {
            l->of[c] = (struct cgroup_place){.mount = unescape(m->point, m->point_n)};
        }
    }
    return false;
}

void cgroup_layout_read(const char *mountinfo, const char *unified_controllers,
                        struct cgroup_layout *ret)
{
    ferry_cleanup_free char *unified = cgroup_unified_mount(mountinfo);

    *ret = (struct cgroup_layout){0};
    each_mount(mountinfo, take_own, ret);
    for (enum cgroup_controller c = 0; unified && c < CGROUP_CONTROLLERS; c++) {
        if (!ret->of[c].mount && has_word(unified_controllers, strlen(unified_controllers), " \n",
                                          cgroup_controller_name(c))) {
            ret->of[c] = (struct cgroup_place){.mount = ferry_strdup(unified), .unified = true};
        }
    }
}

void cgroup_layout_done(struct cgroup_layout *l)
{
    for (enum cgroup_controller c = 0; c < CGROUP_CONTROLLERS; c++) {
        free(l->of[c].mount);
    }
    for (size_t i = 0; i < l->n_locks; i++) {
        close(l->locks[i]);
    }
    free(l->node);
    *l = (struct cgroup_layout){0};
}

/* ---- limits -----------------------------------------------------------------------------------
 */

int cgroup_limits_read(const yyjson_val *container, struct cgroup_limits *ret,
                       struct ferry_error *err)
{
    struct cgroup_limits l = {0};
    int64_t memory_request = 0;
    const struct {
        const char *pointer;
        int64_t scale, *into;
    } rows[] = {
        {"/resources/requests/cpu", MILLI, &l.cpu_request_milli},
        {"/resources/limits/cpu", MILLI, &l.cpu_limit_milli},
        {"/resources/limits/memory", 1, &l.memory_limit_bytes},
        {"/resources/requests/memory", 1, &memory_request},
    };

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        const yyjson_val *v = yyjson_ptr_get((yyjson_val *)container, rows[i].pointer);

        if (v && api_quantity_val(v, rows[i].scale, rows[i].into, err) < 0) {
            return ferry_wrap(err, "spec.containers[0]%s", rows[i].pointer);
        }
        if (*rows[i].into < 0) {
            return ferry_fail(err, FERRY_INVALID, "spec.containers[0]%s: must not be negative",
                              rows[i].pointer);
        }
    }
    memory_request = memory_request < INT64_MAX / 4 ? memory_request : INT64_MAX / 4;
    if (!l.memory_limit_bytes) {
        l.memory_default_bytes =
            memory_request + memory_request / ROOM_SHARE + ((int64_t)ROOM_MIB << 20);
    }
    *ret = l;
    return 0;
}

static int64_t clamp(int64_t n, int64_t min, int64_t max)
{
    return n < min ? min : n > max ? max : n;
}

struct plan {
    const struct cgroup_layout *layout;
    struct cgroup_write *writes;
    size_t n;
};

static struct cgroup_write *add(struct plan *p, enum cgroup_controller c, const char *file)
{
    p->writes[p->n] = (struct cgroup_write){.controller = c, .file = file};
    return &p->writes[p->n++];
}

static void add_number(struct plan *p, enum cgroup_controller c, const char *file, int64_t n)
{
    struct cgroup_write *w = add(p, c, file);

    snprintf(w->value, sizeof(w->value), "%" PRId64, n);
}

static void plan_cpu(struct plan *p, const struct cgroup_limits *l)
{
    bool unified = p->layout->of[CGROUP_CPU].unified;
    int64_t shares = clamp(l->cpu_request_milli * SHARES_PER_CPU / MILLI, SHARES_MIN, SHARES_MAX);
    int64_t quota = l->cpu_limit_milli * PERIOD_US / MILLI;

    /* As kubelet translates them. */
    add_number(p, CGROUP_CPU, unified ? "cpu.weight" : "cpu.shares",
               unified ? 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN)
                       : shares);
    if (!l->cpu_limit_milli) {
        return;
    }
    quota = quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
    if (unified) {
        struct cgroup_write *w = add(p, CGROUP_CPU, "cpu.max");

        snprintf(w->value, sizeof(w->value), "%" PRId64 " %d", quota, PERIOD_US);
    } else {
        add_number(p, CGROUP_CPU, "cpu.cfs_period_us", PERIOD_US);
        add_number(p, CGROUP_CPU, "cpu.cfs_quota_us", quota);
    }
}

static void plan_memory(struct plan *p, const struct cgroup_limits *l)
{
    bool unified = p->layout->of[CGROUP_MEMORY].unified;
    int64_t bytes = l->memory_limit_bytes ? l->memory_limit_bytes : l->memory_default_bytes;

    if (!bytes) {
        return;
    }
    add_number(p, CGROUP_MEMORY, unified ? "memory.max" : "memory.limit_in_bytes", bytes);
    if (unified) {
        /* Half a sandbox is of no use to anybody. */
        add_number(p, CGROUP_MEMORY, "memory.oom.group", 1);
        p->writes[p->n - 1].may_miss = true;
    }
}

size_t cgroup_plan(const struct cgroup_limits *limits, const struct cgroup_layout *layout,
                   struct cgroup_write ret[CGROUP_WRITES_MAX])
{
    struct plan p = {.layout = layout, .writes = ret};

    if (layout->of[CGROUP_CPU].mount) {
        plan_cpu(&p, limits);
    }
    if (layout->of[CGROUP_MEMORY].mount) {
        plan_memory(&p, limits);
    }
    if (layout->of[CGROUP_PIDS].mount) {
        add_number(&p, CGROUP_PIDS, "pids.max", PIDS_MAX);
    }
    return p.n;
}

const char *cgroup_unkept(const struct cgroup_limits *limits, const struct cgroup_layout *layout)
{
    if (limits->memory_limit_bytes && !layout->of[CGROUP_MEMORY].mount) {
        return cgroup_controller_name(CGROUP_MEMORY);
    }
    return limits->cpu_limit_milli && !layout->of[CGROUP_CPU].mount
               ? cgroup_controller_name(CGROUP_CPU)
               : NULL;
}

/* ---- what the kernel killed -------------------------------------------------------------------
 */

const char *cgroup_kills_file(const struct cgroup_layout *layout)
{
    return layout->of[CGROUP_MEMORY].unified ? "memory.events" : "memory.oom_control";
}
