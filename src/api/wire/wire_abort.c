#include "api/wire/wire_abort.h"

#include <string.h>

#include "base/count.h"

static const char *const texts[] = {
    [ABORT_NONE] = "",
    [ABORT_UNDER_WAY] = "Aborting",
    [ABORT_SUCCEEDED] = "Succeeded",
    [ABORT_FAILED] = "Failed",
};
_Static_assert(FERRY_COUNT(texts) == ABORT_COUNT, "one text per word");
const struct wire_words wire_aborts = {texts, ABORT_COUNT};

const char *wire_abort_text(enum wire_abort abort)
{
    return texts[abort];
}

bool wire_abort_is(const char *text, enum wire_abort abort)
{
    return strcmp(texts[abort], text ? text : "") == 0;
}
