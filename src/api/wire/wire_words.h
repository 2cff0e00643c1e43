/* The texts of an enum, as a table that codecs walk. */
#pragma once

struct wire_words { /* `n` texts, one for each value in turn */
    const char *const *texts;
    unsigned n;
};

/* The value of `text` (may be NULL); `words->n` when it is none of them. "" is none. */
unsigned wire_words_find(const struct wire_words *words, const char *text);
/* The text of `value`; "" when there is no such value. */
const char *wire_words_text(const struct wire_words *words, unsigned value);
