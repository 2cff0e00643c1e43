#include "api/wire/wire_words.h"

#include "base/str.h"

unsigned wire_words_find(const struct wire_words *words, const char *text)
{
    unsigned i = 0;

    while (i < words->n && (ferry_str_empty(text) || !ferry_streq(text, words->texts[i]))) {
        i++;
    }
    return i;
}

const char *wire_words_text(const struct wire_words *words, unsigned value)
{
    return value < words->n ? words->texts[value] : "";
}
