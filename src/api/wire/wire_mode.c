#include "api/wire/wire_mode.h"

#include <string.h>

#include "base/count.h"

static const char *const texts[] = {
    [MODE_NONE] = "",
    [MODE_PRE_COPY] = "PreCopy",
    [MODE_PAUSED] = "Paused",
    [MODE_POST_COPY] = "PostCopy",
};
_Static_assert(FERRY_COUNT(texts) == MODE_COUNT, "one text per mode");
const struct wire_words wire_modes = {texts, MODE_COUNT};

const char *wire_mode_text(enum wire_mode mode)
{
    return texts[mode];
}

bool wire_mode_is(const char *text, enum wire_mode mode)
{
    return strcmp(texts[mode], text ? text : "") == 0;
}
