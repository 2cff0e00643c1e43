/* What the files of control.h share. Not for others. */
#pragma once

#include <yyjson.h>

#include "api/kinds.h"
#include "api/wire/wire_launcher_words.h"
#include "base/cleanup.h"
#include "http/server.h"
#include "launcher/control/control.h"
#include "launcher/libvirt/machine.h"

struct control {
    struct control_parts parts;
    struct http_server *server;
    struct machine *machine;
};

/* ---- control_reply.c --------------------------------------------------------------------------
 */

struct control_body {
    yyjson_doc *doc;
    yyjson_val *root;
    struct api_object *vmi; /* NULL unless asked for */
};
void control_body_done(struct control_body *b);
#define control_cleanup_body ferry_cleanup(control_body_done)

/* An empty body is an empty object. */
int control_body_read(struct http_exchange *x, bool with_vmi, struct control_body *ret,
                      struct ferry_error *err);
/* Its member "vmi", which must be there. */
int control_body_vmi(struct control_body *b, struct ferry_error *err);
/* The string `name` of the body in `words`; INVALID when it is none of them. */
int control_body_word(const struct control_body *b, const char *name,
                      const struct wire_words *words, unsigned *ret, struct ferry_error *err);

void control_answer_status(struct control *c, struct http_exchange *x);
/* Answers with the status, or with the error. */
void control_answer(struct control *c, struct http_exchange *x, int rc,
                    const struct ferry_error *err);
/* Likewise for what must be taken while libvirtd is silent: without a status. */
void control_answer_done(struct http_exchange *x, int rc, const struct ferry_error *err);

/* ---- the calls --------------------------------------------------------------------------------
 * `uid` is that of the move in the path, or "". */

void control_put_vm(struct control *c, struct http_exchange *x, const char *uid);
void control_delete_vm(struct control *c, struct http_exchange *x, const char *uid);
void control_post_pause(struct control *c, struct http_exchange *x, const char *uid);
void control_post_unpause(struct control *c, struct http_exchange *x, const char *uid);
void control_get_status(struct control *c, struct http_exchange *x, const char *uid);
void control_get_events(struct control *c, struct http_exchange *x, const char *uid);
void control_get_metrics(struct control *c, struct http_exchange *x, const char *uid);
void control_post_disks(struct control *c, struct http_exchange *x, const char *uid);
void control_put_target(struct control *c, struct http_exchange *x, const char *uid);
void control_put_migration(struct control *c, struct http_exchange *x, const char *uid);
void control_post_cancel(struct control *c, struct http_exchange *x, const char *uid);
void control_post_finalize(struct control *c, struct http_exchange *x, const char *uid);
void control_post_withdraw(struct control *c, struct http_exchange *x, const char *uid);
void control_post_recover(struct control *c, struct http_exchange *x, const char *uid);
void control_put_path(struct control *c, struct http_exchange *x, const char *uid);
void control_put_target_state(struct control *c, struct http_exchange *x, const char *uid);
void control_post_plan(struct control *c, struct http_exchange *x, const char *uid);
void control_get_record(struct control *c, struct http_exchange *x, const char *uid);
