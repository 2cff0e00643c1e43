#include "launcher/report/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/cond.h"
#include "json/doc.h"

enum { KEPT = 1024, READ_BATCH = 64 * 1024 };

struct events {
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint64_t first, next; /* guarded by lock: sequence numbers kept are [first, next) */
    char *lines[KEPT];    /* guarded by lock: line of `seq` at seq % KEPT */
};

struct events *events_new(void)
{
    struct events *e = ferry_xcalloc(1, sizeof(*e));

    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->more, NULL);
    e->first = e->next = (uint64_t)ferry_now_unix_ms();
    return e;
}

void events_free(struct events *e)
{
    if (!e) {
        return;
    }
    for (size_t i = 0; i < KEPT; i++) {
        free(e->lines[i]);
    }
    pthread_cond_destroy(&e->more);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void events_publish(struct events *e, const char *type, yyjson_mut_doc *doc_take)
{
    yyjson_mut_val *o = yyjson_mut_doc_get_root(doc_take);
    char time_text[FERRY_RFC3339_SIZE];

    ferry_rfc3339_micro(ferry_now_unix_ms(), time_text);
    yyjson_mut_obj_insert(o, yyjson_mut_str(doc_take, "type"), yyjson_mut_str(doc_take, type), 0);
    yyjson_mut_obj_insert(o, yyjson_mut_str(doc_take, "time"), yyjson_mut_str(doc_take, time_text),
                          0);
    pthread_mutex_lock(&e->lock);
    yyjson_mut_obj_insert(o, yyjson_mut_str(doc_take, "seq"), yyjson_mut_uint(doc_take, e->next),
                          0);
    char **slot = &e->lines[e->next % KEPT];
    free(*slot);
    *slot = json_doc_text(doc_take, 0, NULL);
    e->next++;
    if (e->next - e->first > KEPT) {
        e->first = e->next - KEPT;
    }
    pthread_cond_broadcast(&e->more);
    pthread_mutex_unlock(&e->lock);
    yyjson_mut_doc_free(doc_take);
}

size_t events_read(struct events *e, uint64_t *io_since, int64_t deadline_ns, struct ferry_buf *out)
{
    size_t n = 0;

    pthread_mutex_lock(&e->lock);
    while (*io_since + 1 >= e->next || e->first == e->next) {
        if (!ferry_cond_wait(&e->more, &e->lock, deadline_ns)) {
            break;
        }
    }
    uint64_t seq = *io_since + 1 > e->first ? *io_since + 1 : e->first;
    for (; seq < e->next && out->len < READ_BATCH; seq++, n++) {
        ferry_buf_puts(out, e->lines[seq % KEPT]);
        ferry_buf_puts(out, "\n");
        *io_since = seq;
    }
    pthread_mutex_unlock(&e->lock);
    return n;
}
