/* Scripts that complete words in a shell, made from the table of verbs. Pure. */
#pragma once

#include "base/str.h"
#include "cli/session/call.h"
#include "cli/verbs/verbs.h"

void completion_bash(const struct cli_verb *verbs, struct ferry_buf *out);
void completion_zsh(const struct cli_verb *verbs, struct ferry_buf *out);
