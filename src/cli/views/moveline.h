/* One line about a move, from its objects. Pure, but for the width of the terminal. */
#pragma once

#include "api/kinds.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_result.h"
#include "base/str.h"
#include "cli/views/outcome.h"
#include "cli/views/progress.h"

/* The sample of this very move, while it runs; `vmi` may be NULL. */
bool moveline_sample(const struct api_migration *m, const struct api_vmi *vmi,
                     struct wire_progress *ret);

/* Phase and figures, or what it waits for; see progress_line() for `width`. */
void moveline_put(const struct api_migration *m, const struct api_vmi *vmi, int width,
                  struct ferry_buf *out);

/* Its figures; what is not known is -1. `total_ms` is how long the move took: from when the source
 * began until the guest was over, by the hypervisor's clock where that was told (ferry.io/result),
 * else the difference of startTimestamp and endTimestamp, which are whole seconds. */
struct wire_result moveline_result(const struct api_migration *m, const struct api_vmi *vmi);

/* How it ended; `source` is the node that the VM was seen on before, or NULL: for when the objects
 * do not tell. */
void moveline_end(const struct api_migration *m, const struct api_vmi *vmi, const char *source,
                  enum outcome outcome, struct ferry_buf *out);

/* Standard output is a terminal on which lines can be drawn again. */
bool moveline_terminal(void);
/* Columns and rows of the terminal on standard output, 80 and 24 when it does not say. */
int moveline_terminal_width(void);
int moveline_terminal_height(void);
