/* Follows what launchers on this node tell by themselves (GET /v1/events), so that a guest that
 * arrived, stopped or failed is looked at at once and not with the next pass.
 *
 * One small thread per launcher. It lives as long as somebody asks for it again now and then, and
 * reconnects while a launcher restarts; nothing depends on it but speed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct follow;

/* `woken` is called from many threads, with the key that was given. */
struct follow *follow_new(void (*woken)(void *ctx, const char *key), void *ctx);
/* Waits for all threads. Takes NULL. */
void follow_free(struct follow *f);

/* Idempotent: follow the launcher at `socket`, or go on with it. `f` may be NULL. */
void follow_launcher(struct follow *f, const char *socket, const char *key);

/* Whether a line of the stream is a reason to look. Pure. */
bool follow_line_matters(const char *line, size_t len);
