/* Get and list. Each answers the exchange and returns 0, or fills r->st and returns -1. */
#pragma once

#include "apiserver/request/request.h"

int read_get(struct request *r);
int read_list(struct request *r);
/* Answers with these objects as a list (or table); `token` and `left` as page_cut() gives them. */
void read_answer_list(struct request *r, const struct entry_list *list, const char *token,
                      size_t left);
