#include "handler/local/follow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"

enum {
    STACK_BYTES = 128 << 10,
    LINE_MAX_BYTES = 256 << 10,
    AGAIN_MS = 500, /* while a launcher is away */
    UNASKED_S = 15, /* then nobody needs it any more */
};

struct followed {
    struct followed *next;
    struct follow *set;
    char *socket, *key;
    int64_t asked_ns; /* guarded by the set's lock */
    struct ferry_buf line;
    bool overlong;
};

struct follow {
    void (*woken)(void *ctx, const char *key);
    void *ctx;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t ended;
    struct followed *list; /* each until its thread ends */
    bool stopping;
};

bool follow_line_matters(const char *line, size_t len)
{
    yyjson_doc *doc = yyjson_read(line, len, 0);
    const char *type = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "type"));
    bool matters =
        ferry_streq(type, "domain") || ferry_streq(type, "migration") || ferry_streq(type, "guest");

    yyjson_doc_free(doc);
    return matters;
}

static bool is_over(struct followed *f)
{
    struct follow *set = f->set;

    pthread_mutex_lock(&set->lock);
    bool over = set->stopping || ferry_now_ns() - f->asked_ns > (int64_t)UNASKED_S * FERRY_NS_PER_S;
    pthread_mutex_unlock(&set->lock);
    return over;
}

static bool stop(void *ctx)
{
    return is_over(ctx);
}

/* A line may come in pieces; one that is too long is somebody's joke and is passed over. */
static bool on_data(void *ctx, const char *data, size_t n)
{
    struct followed *f = ctx;
    bool wake = false;

    for (size_t i = 0; i < n;) {
        const char *end = memchr(data + i, '\n', n - i);
        size_t piece = end ? (size_t)(end - data) - i : n - i;

        f->overlong = f->overlong || f->line.len + piece > LINE_MAX_BYTES;
        if (!f->overlong) {
            ferry_buf_append(&f->line, data + i, piece);
        }
        i += piece;
        if (end) {
            wake = wake || (!f->overlong && follow_line_matters(f->line.data, f->line.len));
            f->line.len = 0;
            f->overlong = false;
            i++;
        }
    }
    if (wake) {
        ferry_debug("woken by its launcher", F_STR("vmi", f->key));
        f->set->woken(f->set->ctx, f->key);
    }
    return true;
}

static void follow_once(struct followed *f)
{
    ferry_cleanup_buf struct ferry_buf refusal = {0};
    struct http_client *client = NULL;
    struct ferry_error err;
    int status = 0;

    if (http_client_new(
            &(struct http_client_config){.base_url = "http://localhost", .unix_socket = f->socket},
            &client, &err) == 0) {
        http_client_stream(client,
                           &(struct http_stream_call){.path = "/v1/events",
                                                      .accept = "application/x-ndjson",
                                                      .on_data = on_data,
                                                      .stop = stop,
                                                      .ctx = f},
                           &status, &refusal, &err);
        http_client_free(client);
    }
    f->line.len = 0;
    f->overlong = false;
}

static void followed_free(struct followed *f)
{
    ferry_buf_done(&f->line);
    free(f->socket);
    free(f->key);
    free(f);
}

static void *run(void *arg)
{
    struct followed *f = arg;
    struct follow *set = f->set;

    while (!is_over(f)) {
        follow_once(f);
        for (int waited = 0; waited < AGAIN_MS && !is_over(f); waited += 50) {
            ferry_sleep_ms(50);
        }
    }
    pthread_mutex_lock(&set->lock);
    for (struct followed **p = &set->list; *p; p = &(*p)->next) {
        if (*p == f) {
            *p = f->next;
            break;
        }
    }
    followed_free(f);
    pthread_cond_broadcast(&set->ended);
    pthread_mutex_unlock(&set->lock);
    return NULL;
}

static int start(struct followed *f)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
#ifndef __SANITIZE_ADDRESS__
    pthread_attr_setstacksize(&attr, STACK_BYTES);
#endif
    int rc = pthread_create(&thread, &attr, run, f);
    pthread_attr_destroy(&attr);
    return rc;
}

void follow_launcher(struct follow *set, const char *socket, const char *key)
{
    if (!set) {
        return;
    }
    pthread_mutex_lock(&set->lock);
    struct followed *f = set->list;
    while (f && strcmp(f->socket, socket) != 0) {
        f = f->next;
    }
    if (f) {
        f->asked_ns = ferry_now_ns();
    } else if (!set->stopping) {
        f = ferry_xcalloc(1, sizeof(*f));
        *f = (struct followed){.set = set,
                               .socket = ferry_strdup(socket),
                               .key = ferry_strdup(key),
                               .asked_ns = ferry_now_ns(),
                               .next = set->list};
        set->list = f;
        if (start(f) != 0) { /* looks go on by themselves */
            set->list = f->next;
            followed_free(f);
        }
    }
    pthread_mutex_unlock(&set->lock);
}

struct follow *follow_new(void (*woken)(void *ctx, const char *key), void *ctx)
{
    struct follow *f = ferry_xcalloc(1, sizeof(*f));

    f->woken = woken;
    f->ctx = ctx;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ended, NULL);
    return f;
}

void follow_free(struct follow *f)
{
    if (!f) {
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    while (f->list) {
        pthread_cond_wait(&f->ended, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    pthread_cond_destroy(&f->ended);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
