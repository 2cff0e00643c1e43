#include "control/loops/clock_notes.h"

#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "json/doc.h"

/* Of this kernel since it was started: its clocks are one pair. "" = not known. */
static char *this_boot(void)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (ferry_read_file("/proc/sys/kernel/random/boot_id", 64, &b, NULL) < 0 || !b.data) {
        return ferry_strdup("");
    }
    b.data[strcspn(b.data, "\n")] = '\0';
    return ferry_buf_take(&b);
}

static struct kube_ref lease_of(const struct cluster *c)
{
    return kube_ref(API_KIND_LEASE, c->lease_ns, c->lease_name);
}

void clock_notes_recall(struct cluster *c)
{
    api_cleanup_object struct api_object *lease = NULL;
    struct ferry_error err = {0};

    if (!c->lease_name || kube_client_get(c->client, lease_of(c), &lease, &err) < 0) {
        if (err.msg[0]) {
            ferry_warn("clock steps before this start are unknown", F_ERR(&err));
        }
        return;
    }
    ferry_cleanup_free char *boot = this_boot();
    pthread_mutex_lock(&c->clock_lock);
    clock_steps_recall(&c->clock, api_map_get(&lease->meta->annotations, ANNOTATION_CLOCK_STEPS),
                       boot);
    size_t n = c->clock.n_steps;
    pthread_mutex_unlock(&c->clock_lock);
    if (n > 0) {
        ferry_info("clock was set before this program started", F_UINT("times", n));
    }
}

int clock_notes_reconcile(void *ctx, const char *key, struct kube_again *again,
                          struct ferry_error *err)
{
    struct cluster *c = ctx;
    ferry_cleanup_free char *boot = this_boot();
    (void)key;
    (void)again;

    if (!c->lease_name) {
        return 0;
    }
    pthread_mutex_lock(&c->clock_lock);
    ferry_cleanup_free char *text = clock_steps_text(&c->clock, boot);
    pthread_mutex_unlock(&c->clock_lock);
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_val *notes = yyjson_mut_obj_add_obj(doc, meta, "annotations");
    yyjson_mut_obj_add_str(doc, notes, ANNOTATION_CLOCK_STEPS, text);
    ferry_cleanup_free char *body = json_doc_take(doc);
    return kube_client_patch(c->client, lease_of(c), KUBE_PATCH_MERGE, body, NULL, err);
}
