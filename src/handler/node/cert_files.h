/* Keys and certificates of a node, replaced in pairs. Programs keep what they have while the two
 * files do not fit, but one that is started then has nothing: so both new files are complete beside
 * the old ones, for their owner, before either takes its place; and whoever dies in between leaves
 * what the next one needs to finish. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* What is to be done about files that wait beside a pair (NAME.key.new, NAME.crt.new). */
enum cert_files_step {
    CERT_FILES_NOTHING,
    CERT_FILES_DROP_KEY, /* its certificate never came */
    CERT_FILES_BOTH,     /* key first */
    CERT_FILES_REST,     /* the key is in its place already */
};

/* Pure: by which of the two wait. */
enum cert_files_step cert_files_decide(bool key_waits, bool certificate_waits);

/* Puts a new pair beside DIR/NAME.key and DIR/NAME.crt; its owner is that of the old key. */
int cert_files_stage(const char *dir, const char *name, const char *key_pem, const char *crt_pem,
                     struct ferry_error *err);

/* Puts in place what waits; 1 = it did something. Idempotent, also after a death at any instant. */
int cert_files_settle(const char *dir, const char *name, struct ferry_error *err);
