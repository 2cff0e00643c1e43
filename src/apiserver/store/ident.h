/* Names that nobody else has. */
#pragma once

enum { IDENT_UID_SIZE = 37, IDENT_SUFFIX_SIZE = 6 };

/* A random UUID (version 4). */
void ident_uid(char uid[IDENT_UID_SIZE]);
/* Five letters for generateName. */
void ident_suffix(char suffix[IDENT_SUFFIX_SIZE]);
