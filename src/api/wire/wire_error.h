/* Reasons that travel with an error, from whoever refuses to whoever acts on it: as `reason` in the
 * body of a control API's error, as the reason of a cause in a Kubernetes Status (its own `reason`
 * belongs to the HTTP status), and of a move that failed in an annotation of the VMI. Pure. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "api/kinds.h"
#include "api/wire/wire_reason.h"
#include "base/error.h"

/* Those that a program tells from others of their class. */
enum wire_error {
    WIRE_ERROR_NONE,
    WIRE_ERROR_MOVE_IN_FLIGHT, /* the VM has a move already */
    WIRE_ERROR_QUOTA,          /* a quota of the namespace does not leave room */
    WIRE_ERROR_COUNT
};
const char *wire_error_text(enum wire_error e);
enum wire_error wire_error_find(const char *text); /* NONE when it is none of them */
bool wire_error_is(const struct ferry_error *err, enum wire_error e);

/* The error that an answer is: words and reason from its body (NULL = nothing that can be read),
 * the HTTP status, class `cls`. A body without a reason of ours is read as those of older programs
 * are (wire_error_old.h). Returns -cls. */
int wire_error_read(enum ferry_class cls, int status, const yyjson_val *body,
                    struct ferry_error *err);

/* ---- what no node has -------------------------------------------------------------------------
 */

/* Of a move that waits: which of the guest's demands keeps it from every other node. */
enum wire_lack { WIRE_LACK_NOTHING, WIRE_LACK_CPU, WIRE_LACK_MACHINE, WIRE_LACK_COUNT };

/* Into the note ferry.io/queue, as its member "lack"; nothing for NOTHING. `text` is borrowed for
 * as long as `doc` lives. Of wire_queue.c alone. */
void wire_error_lack_write(yyjson_mut_doc *doc, yyjson_mut_val *queue, enum wire_lack lack,
                           const char *text);
/* Who lacks what, in words that point into `queue`, or NULL. */
const char *wire_error_lack_read(const yyjson_val *queue, enum wire_lack *ret);

/* ---- moves that failed ------------------------------------------------------------------------
 */

/* Why a migration failed: its condition says so, or in one of an older controller the text alone.
 * NONE = it did not fail, or nothing is known. */
enum wire_reason wire_error_failure_of(const struct api_migration *m);

/* The annotation ferry.io/failure of a VMI, "MOVEUID/CODE": whoever sets `failed` in its
 * migrationState says why in this, too. The caller's. */
char *wire_error_failure_write(const char *uid, enum wire_reason code);
/* What the annotations say of the move `uid`; NONE = nothing. */
enum wire_reason wire_error_failure_read(const struct api_map *annotations, const char *uid);
