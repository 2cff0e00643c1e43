/* Settings files: the options of a program, one to a line.
 *
 *     # a comment
 *     node-address = 10.0.0.11
 *     listen = 10.0.0.1:6443
 *     listen = 127.0.0.1:6443
 *     no-cgroups = yes
 *
 * An option that may be given more than once may stand more than once, one without a value is set
 * by yes or no. A value is all that follows the equals sign, without the blanks around it. Errors
 * name file and line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

enum { FERRY_CONFIG_MAX_BYTES = 65536 };

/* Sets what `text` says: `name` is the file in error messages. `text` is cut up and must live as
 * long as the values; it ends with a NUL at `len`. `seen` has a place for each option, zeroed: it
 * becomes the line that set it. Pure but for the options' destinations. */
int ferry_config_apply(const char *name, char *text, size_t len, const struct ferry_option *options,
                       int *seen, struct ferry_error *err);

/* The same from a file, whose text is kept for good. A file that others than its owner may write is
 * refused; one that is missing only if it is `needed`. */
int ferry_config_read(const char *path, bool needed, const struct ferry_option *options, int *seen,
                      struct ferry_error *err);
