/* Theory of operation.
 *
 * kube_record() builds what is known at the call (object, reason, message, time) and appends it to
 * the bounded list of one of a few scribes, each with a thread that writes its list one by one. All
 * events of one object are with one scribe, so they come in order. For aggregation a scribe keeps
 * the last events that it created, in a ring: the same object, type, reason and message again
 * becomes a patch of count and lastTimestamp of that event. */
#include "kube/recorder.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/str.h"
#include "json/doc.h"

/* A burst of thousands of moves is written down in the end: it costs a few MiB until then. */
enum { TOO_MANY = 429, PAUSE_MAX_S = 32 };
enum { SCRIBES = 3, WAITING_MAX = 16384, REMEMBERED = 256, FLUSH_S = 3, MESSAGE_TEXT = 1024 };

struct note {
    struct note *next;
    char *api_version, *kind, *ns, *name, *uid; /* the object it is about */
    char *vmi;                                  /* that a migration moves, else NULL */
    const char *type;
    char *reason, *code, *message;
    int64_t at_ms;
};

struct remembered {
    char *identity; /* object, type, reason and message in one */
    char *ns, *event;
    int64_t count;
};

struct scribe {
    struct kube_recorder *recorder;
    pthread_t thread;
    bool started;

    struct remembered ring[REMEMBERED]; /* the thread's own */
    size_t next;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct note *first, *last;
    size_t waiting;
    bool stopping;
    int64_t flush_until_ns;
};

struct kube_recorder {
    struct kube_client *client;
    char *component, *host;
    const struct api_resource *events;
    struct scribe scribes[SCRIBES];
};

static void note_free(struct note *n)
{
    free(n->api_version);
    free(n->kind);
    free(n->ns);
    free(n->name);
    free(n->uid);
    free(n->vmi);
    free(n->reason);
    free(n->code);
    free(n->message);
    free(n);
}

static void remembered_done(struct remembered *m)
{
    free(m->identity);
    free(m->ns);
    free(m->event);
    *m = (struct remembered){0};
}

/* ---- writing ---------------------------------------------------------------------------------
 */

static void put_related(yyjson_mut_doc *doc, yyjson_mut_val *related, const struct note *n)
{
    yyjson_mut_obj_add_str(doc, related, "apiVersion", n->api_version);
    yyjson_mut_obj_add_str(doc, related, "kind", "VirtualMachineInstance");
    yyjson_mut_obj_add_str(doc, related, "namespace", n->ns ? n->ns : "default");
    yyjson_mut_obj_add_str(doc, related, "name", n->vmi);
}

static char *event_json(const struct kube_recorder *r, const struct note *n, const char *name)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_val *about = yyjson_mut_obj_add_obj(doc, root, "involvedObject");
    yyjson_mut_val *source = yyjson_mut_obj_add_obj(doc, root, "source");
    char when[FERRY_RFC3339_SIZE];

    ferry_rfc3339(n->at_ms, when);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "Event");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", n->ns ? n->ns : "default");
    yyjson_mut_obj_add_str(doc, about, "apiVersion", n->api_version);
    yyjson_mut_obj_add_str(doc, about, "kind", n->kind);
    if (n->ns) {
        yyjson_mut_obj_add_str(doc, about, "namespace", n->ns);
    }
    yyjson_mut_obj_add_str(doc, about, "name", n->name);
    yyjson_mut_obj_add_str(doc, about, "uid", n->uid);
    if (n->vmi) {
        put_related(doc, yyjson_mut_obj_add_obj(doc, root, "related"), n);
    }
    yyjson_mut_obj_add_str(doc, source, "component", r->component);
    if (r->host) {
        yyjson_mut_obj_add_str(doc, source, "host", r->host);
    }
    yyjson_mut_obj_add_str(doc, root, "type", n->type);
    yyjson_mut_obj_add_str(doc, root, "reason", n->reason);
    if (n->code) {
        yyjson_mut_obj_add_str(doc, root, "action", n->code);
    }
    yyjson_mut_obj_add_str(doc, root, "message", n->message);
    yyjson_mut_obj_add_str(doc, root, "firstTimestamp", when);
    yyjson_mut_obj_add_str(doc, root, "lastTimestamp", when);
    yyjson_mut_obj_add_int(doc, root, "count", 1);
    yyjson_mut_obj_add_str(doc, root, "reportingComponent", r->component);
    yyjson_mut_obj_add_str(doc, root, "reportingInstance", r->host ? r->host : "");
    yyjson_mut_doc_set_root(doc, root);
    return json_doc_take(doc);
}

static struct remembered *recall(struct scribe *r, const char *identity)
{
    for (size_t i = 0; i < REMEMBERED; i++) {
        if (ferry_streq(r->ring[i].identity, identity)) {
            return &r->ring[i];
        }
    }
    return NULL;
}

static int count_up(struct kube_recorder *r, struct remembered *m, int64_t at_ms,
                    struct ferry_error *err)
{
    char when[FERRY_RFC3339_SIZE];
    ferry_cleanup_free char *body =
        ferry_asprintf("{\"count\":%" PRId64 ",\"lastTimestamp\":\"%s\"}", m->count + 1,
                       ferry_rfc3339(at_ms, when));
    struct kube_ref ref = {.resource = r->events, .ns = m->ns, .name = m->event};
    int rc = kube_client_patch(r->client, ref, KUBE_PATCH_MERGE, body, NULL, err);

    if (rc == 0) {
        m->count++;
    }
    return rc;
}

static int write_note(struct scribe *s, const struct note *n, struct ferry_error *err)
{
    struct kube_recorder *r = s->recorder;
    ferry_cleanup_free char *identity =
        ferry_asprintf("%s\n%s\n%s\n%s", n->uid, n->type, n->reason, n->message);
    struct remembered *m = recall(s, identity);

    if (m) {
        int rc = count_up(r, m, n->at_ms, err);

        if (rc != -FERRY_NOT_FOUND) {
            return rc;
        }
        remembered_done(m); /* expired at the server: a new one */
    }
    ferry_cleanup_free char *name =
        ferry_asprintf("%.200s.%" PRIx64, n->name, (uint64_t)ferry_now_ns());
    ferry_cleanup_free char *json = event_json(r, n, name);
    const char *ns = n->ns ? n->ns : "default";
    int rc = kube_client_create(r->client, (struct kube_ref){.resource = r->events, .ns = ns}, json,
                                NULL, err);

    if (rc == 0) {
        m = &s->ring[s->next++ % REMEMBERED];
        remembered_done(m);
        *m = (struct remembered){.identity = ferry_take_ptr(identity),
                                 .ns = ferry_strdup(ns),
                                 .event = ferry_take_ptr(name),
                                 .count = 1};
    }
    return rc;
}

/* False when there is no time left: it is to stop. */
static bool pause_writing(struct scribe *s, int64_t seconds)
{
    int64_t deadline_ns = ferry_now_ns() + seconds * FERRY_NS_PER_S;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping && ferry_cond_wait(&s->changed, &s->lock, deadline_ns)) {
    }
    bool go_on = !s->stopping;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

/* A server that says "too much" for now has what is to be recorded later. */
static int write_in_time(struct scribe *s, const struct note *n, struct ferry_error *err)
{
    int rc = write_note(s, n, err);

    for (int64_t wait_s = 1; rc < 0 && err->http == TOO_MANY && pause_writing(s, wait_s);) {
        wait_s = wait_s < PAUSE_MAX_S ? 2 * wait_s : wait_s;
        rc = write_note(s, n, err);
    }
    return rc;
}

static void *scribe_thread(void *arg)
{
    struct scribe *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->stopping) {
            pthread_cond_wait(&s->changed, &s->lock);
        }
        if (!s->first || (s->stopping && ferry_now_ns() > s->flush_until_ns)) {
            break;
        }
        struct note *n = s->first;
        struct ferry_error err = {0};

        s->first = n->next;
        s->last = s->first ? s->last : NULL;
        s->waiting--;
        pthread_mutex_unlock(&s->lock);
        if (write_in_time(s, n, &err) < 0) {
            ferry_warn("cannot record an event", F_STR("object", n->name),
                       F_STR("reason", n->reason), F_STR("message", n->message), F_ERR(&err));
        }
        note_free(n);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- outside ---------------------------------------------------------------------------------
 */

static void scribe_done(struct scribe *s)
{
    for (struct note *n = s->first, *next; n; n = next) {
        next = n->next;
        note_free(n);
    }
    for (size_t i = 0; i < REMEMBERED; i++) {
        remembered_done(&s->ring[i]);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

int kube_recorder_start(struct kube_client *client, const char *component, const char *host,
                        struct kube_recorder **ret, struct ferry_error *err)
{
    struct kube_recorder *r = ferry_xcalloc(1, sizeof(*r));
    int e = 0;

    r->client = client;
    r->component = ferry_strdup(component);
    r->host = ferry_strdup(host);
    r->events = api_resource_find("", "v1", "events");
    for (size_t i = 0; i < SCRIBES; i++) {
        struct scribe *s = &r->scribes[i];

        s->recorder = r;
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->changed, NULL);
        e = e ? e : pthread_create(&s->thread, NULL, scribe_thread, s);
        s->started = e == 0;
    }
    if (e != 0) {
        kube_recorder_stop(r);
        return ferry_fail_errno(err, e, "starting the event recorder");
    }
    *ret = r;
    return 0;
}

static void end_scribe(struct scribe *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    s->flush_until_ns = ferry_now_ns() + FLUSH_S * FERRY_NS_PER_S;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void kube_recorder_stop(struct kube_recorder *r)
{
    if (!r) {
        return;
    }
    for (size_t i = 0; i < SCRIBES; i++) {
        end_scribe(&r->scribes[i]);
    }
    for (size_t i = 0; i < SCRIBES; i++) {
        if (r->scribes[i].started) {
            pthread_join(r->scribes[i].thread, NULL);
        }
        scribe_done(&r->scribes[i]);
    }
    free(r->component);
    free(r->host);
    free(r);
}

static struct scribe *scribe_of(struct kube_recorder *r, const char *uid)
{
    uint32_t hash = 2166136261u;

    for (; *uid; uid++) {
        hash = (hash ^ (unsigned char)*uid) * 16777619u;
    }
    return &r->scribes[(hash ^ hash >> 16) % SCRIBES];
}

/* False when there are too many already. */
static bool enqueue(struct scribe *s, struct note *n)
{
    pthread_mutex_lock(&s->lock);
    bool room = s->waiting < WAITING_MAX && !s->stopping;

    if (room && s->last) {
        s->last->next = n;
    } else if (room) {
        s->first = n;
    }
    if (room) {
        s->last = n;
        s->waiting++;
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return room;
}

void kube_record_about(struct kube_recorder *r, enum api_kind kind, const struct api_meta *about,
                       const char *vmi, enum kube_event_type type, const char *reason,
                       const char *code, const char *message)
{
    if (!r) {
        return;
    }
    const struct api_resource *res = api_resource_of_kind(kind);
    struct note *n = ferry_xcalloc(1, sizeof(*n));

    n->api_version = res->group[0] ? ferry_asprintf("%s/%s", res->group, res->version)
                                   : ferry_strdup(res->version);
    n->kind = ferry_strdup(res->kind_name);
    n->ns = ferry_strdup(about->namespace_);
    n->name = ferry_strdup(about->name);
    n->uid = ferry_strdup(about->uid ? about->uid : "");
    n->vmi = ferry_strdup(vmi);
    n->type = type == KUBE_EVENT_WARNING ? "Warning" : "Normal";
    n->reason = ferry_strdup(reason);
    n->code = ferry_strdup(code);
    n->message = ferry_strdup(message);
    n->at_ms = ferry_now_unix_ms();

    if (!enqueue(scribe_of(r, n->uid), n)) {
        ferry_warn("event queue full, event dropped", F_STR("object", n->name),
                   F_STR("reason", n->reason));
        note_free(n);
    }
}

const char *kube_record_vmi(const struct api_object *about)
{
    return about->kind == API_KIND_MIGRATION ? about->u.migration.vmi_name : NULL;
}

void kube_record(struct kube_recorder *r, const struct api_object *about, enum kube_event_type type,
                 const char *reason, const char *fmt, ...)
{
    char message[MESSAGE_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    kube_record_about(r, about->kind, about->meta, kube_record_vmi(about), type, reason, NULL,
                      message);
}
