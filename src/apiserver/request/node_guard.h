/* What a node that calls may do beyond its role: the rules of access/node_rules.h and the budgets
 * of access/budget.h, asked with what the server knows. Everybody else passes. */
#pragma once

#include "apiserver/request/request.h"

struct node_budgets;

struct node_budgets *node_guard_budgets_new(void);
void node_guard_budgets_free(struct node_budgets *b);

/* Before a call is done: how large it is, and how often the node comes. Any thread. */
int node_guard_admit(struct request *r, struct node_budgets *b);
/* Inside the transaction: a new object, and one that becomes another; -1 fills r->st. */
int node_guard_new(struct request *r, const yyjson_val *object);
int node_guard_change(struct request *r, const yyjson_val *old, const yyjson_val *object);
