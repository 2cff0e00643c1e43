#include "launcher/libvirt/machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/machine_type.h"
#include "api/object.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/libvirt/qmp.h"

#define CLASS_SUFFIX "-machine"

enum { ASK_MS = 300, AGAIN_MS = 5000 };

struct machine {
    char *qmp_path; /* immutable */
    pthread_mutex_t lock;
    char type[MACHINE_SIZE]; /* guarded by lock: "" = not known */
    int64_t again_ns;        /* guarded by lock: not before */
};

void machine_of_class(const char *name, char ret[MACHINE_SIZE])
{
    size_t len = name ? strlen(name) : 0, suffix = strlen(CLASS_SUFFIX);

    ret[0] = '\0';
    if (len > suffix && len - suffix < MACHINE_SIZE && ferry_str_ends(name, CLASS_SUFFIX)) {
        snprintf(ret, MACHINE_SIZE, "%.*s", (int)(len - suffix), name);
    }
    if (!api_machine_is_pinned(ret)) {
        ret[0] = '\0';
    }
}

struct machine *machine_new(const char *qmp_path)
{
    struct machine *m = ferry_xcalloc(1, sizeof(*m));

    m->qmp_path = ferry_strdup(qmp_path);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void machine_free(struct machine *m)
{
    if (m) {
        pthread_mutex_destroy(&m->lock);
        free(m->qmp_path);
        free(m);
    }
}

static void ask_qemu(struct machine *m, char ret[MACHINE_SIZE])
{
    static const char arguments[] = "{\"path\":\"/machine\",\"property\":\"type\"}";
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct ferry_error err;

    if (qmp_call(m->qmp_path, "qom-get", arguments, ferry_now_ns() + ASK_MS * FERRY_NS_PER_MS, &doc,
                 &err) < 0) {
        ferry_debug("QEMU does not say what machine it is", F_ERR(&err));
    }
    machine_of_class(api_json_str(yyjson_doc_get_root(doc), "/return"), ret);
}

void machine_get(struct machine *m, bool ask, char ret[MACHINE_SIZE])
{
    int64_t now = ferry_now_ns();

    pthread_mutex_lock(&m->lock);
    memcpy(ret, m->type, MACHINE_SIZE);
    ask = ask && !ret[0] && now >= m->again_ns;
    if (ask) {
        m->again_ns = now + AGAIN_MS * FERRY_NS_PER_MS; /* the others need not wait for it, too */
    }
    pthread_mutex_unlock(&m->lock);
    if (!ask) {
        return;
    }
    ask_qemu(m, ret);
    pthread_mutex_lock(&m->lock);
    memcpy(m->type, ret, MACHINE_SIZE);
    pthread_mutex_unlock(&m->lock);
}
