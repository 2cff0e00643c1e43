/* The garbage collector: dependents of owners that are gone, contents of namespaces that are being
 * deleted, old events. One thread of its own. */
#pragma once

#include "apiserver/store/store.h"

struct collector;
struct collector *collector_start(struct store *store);
void collector_stop(struct collector *c); /* takes NULL */
