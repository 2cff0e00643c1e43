/* What calls have in common: the body of a request, and the status or the error as its answer. */
#include "launcher/control/control_priv.h"

#include "api/object.h"
#include "base/str.h"
#include "launcher/report/status.h"

void control_body_done(struct control_body *b)
{
    yyjson_doc_free(b->doc);
    api_object_unref(b->vmi);
}

int control_body_vmi(struct control_body *b, struct ferry_error *err)
{
    yyjson_val *vmi = yyjson_obj_get(b->root, "vmi");

    if (!vmi) {
        return ferry_fail(err, FERRY_INVALID, "request: the field 'vmi' is missing");
    }
    int rc = api_object_from_val(API_KIND_VMI, vmi, &b->vmi, err);
    return rc < 0 ? ferry_wrap(err, "vmi") : 0;
}

int control_body_read(struct http_exchange *x, bool with_vmi, struct control_body *ret,
                      struct ferry_error *err)
{
    size_t len;
    const char *text = http_body(x, &len);
    int rc = api_json_parse(len ? text : "{}", len ? len : 2, &ret->doc, err);

    if (rc < 0) {
        return ferry_wrap(err, "request");
    }
    ret->root = yyjson_doc_get_root(ret->doc);
    return with_vmi ? control_body_vmi(ret, err) : 0;
}

int control_body_word(const struct control_body *b, const char *name,
                      const struct wire_words *words, unsigned *ret, struct ferry_error *err)
{
    unsigned value = wire_words_find(words, yyjson_get_str(yyjson_obj_get(b->root, name)));

    if (value == words->n) {
        return ferry_fail(err, FERRY_INVALID, "%s: missing, or not one of the known words", name);
    }
    *ret = value;
    return 0;
}

static int status_text(struct control *c, char **ret, struct ferry_error *err)
{
    const struct context *ctx = c->parts.context;
    struct state_values v;
    struct launcher_sample sample;
    struct view domain;
    char machine[MACHINE_SIZE];
    int rc = context_view(ctx, &domain, err);

    /* Not knowing is said as such: an invented "none" would look like a lost guest. */
    if (rc < 0) {
        return rc;
    }
    state_get(ctx->state, &v);
    migrate_sample(c->parts.migrate, &sample);
    /* Its monitor is left alone while the guest moves, and its main loop may stand still. */
    machine_get(c->machine,
                view_active(&domain) && !domain.between && !domain.postcopy &&
                    state_migration_over(&v.migration),
                machine);
    *ret = status_json(&domain, machine, &v, &sample);
    return 0;
}

void control_answer_status(struct control *c, struct http_exchange *x)
{
    ferry_cleanup_free char *text = NULL;
    struct ferry_error err;

    if (status_text(c, &text, &err) < 0) {
        http_answer_error(x, 0, &err);
    } else {
        http_answer_json(x, 200, text);
    }
}

void control_answer(struct control *c, struct http_exchange *x, int rc,
                    const struct ferry_error *err)
{
    if (rc < 0) {
        http_answer_error(x, 0, err);
    } else {
        control_answer_status(c, x);
    }
}

void control_answer_done(struct http_exchange *x, int rc, const struct ferry_error *err)
{
    if (rc < 0) {
        http_answer_error(x, 0, err);
    } else {
        http_answer_json(x, 200, "{}");
    }
}
