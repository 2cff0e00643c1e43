#include "handler/move/move_trouble.h"

#include <stdio.h>
#include <string.h>

#include "api/wire/wire_reason.h"
#include "api/wire/wire_trouble.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"

enum {
    FRESH_MS = 1000, /* a program that is started anew is away for less */
    AGAIN_MS = 1000,
    AGAIN_FRESH_MS = 100,
};

/* A relay's words for good; a launcher knows itself what it will never do. */
static bool is_for_good(enum move_part part, const struct ferry_error *err)
{
    switch (part) {
    case MOVE_PART_RELAY:
        return err->http && (err->cls == FERRY_DENIED || err->cls == FERRY_INVALID);
    case MOVE_PART_LAUNCHER:
        return launcher_refused(err) != NULL;
    case MOVE_PART_NETWORK: /* comes when somebody sees to it */
        break;
    }
    return false;
}

struct move_trouble move_trouble_of(enum move_part part, const struct ferry_error *err,
                                    int64_t since_ms)
{
    static const enum wire_reason reasons[] = {[MOVE_PART_RELAY] = REASON_RELAY_TROUBLE,
                                               [MOVE_PART_LAUNCHER] = REASON_LAUNCHER_TROUBLE,
                                               [MOVE_PART_NETWORK] = REASON_NETWORK_TROUBLE};
    struct move_trouble t = {
        .reason = reasons[part], .cls = err->cls, .for_good = is_for_good(part, err)};

    if (part == MOVE_PART_LAUNCHER && t.for_good) {
        t.reason = REASON_REFUSED;
    }
    t.fresh = !t.for_good && since_ms < FRESH_MS;
    /* Half a character would make the whole of it unreadable. */
    const char *words = ferry_error_words(err); /* the call says nothing to who reads the object */
    snprintf(t.message, sizeof(t.message), "%.*s",
             (int)ferry_utf8_fit(words, sizeof(t.message) - 1), words);
    return t;
}

int64_t move_trouble_again_ms(const struct move_trouble *t)
{
    return t->fresh ? AGAIN_FRESH_MS : AGAIN_MS;
}

void move_trouble_say(struct vmi_edit *e, const char *key, const struct move_trouble *t)
{
    if (t->fresh) {
        return;
    }
    struct wire_trouble told = {.reason = t->reason, .cls = t->cls};

    snprintf(told.message, sizeof(told.message), "%s", t->message);
    ferry_cleanup_free char *json = wire_trouble_text(e->vmi->migration.uid, &told);
    if (json) { /* what is not text cannot be told */
        vmi_edit_annotation(e, key, json);
    }
}

struct api_patch *move_trouble_forget(const struct api_vmi *vmi, const char *key,
                                      struct api_patch *patch_take, int64_t now_ms)
{
    if (!api_map_get(&vmi->meta.annotations, key)) {
        return patch_take;
    }
    struct vmi_edit e = patch_take ? (struct vmi_edit){.vmi = vmi, .patch = patch_take}
                                   : vmi_edit_begin_move(vmi, now_ms);
    vmi_edit_annotation(&e, key, NULL);
    return vmi_edit_end(&e);
}
