/* Names of QEMU's machine types: "pc-i440fx-10.0", "pc-q35-9.2", "pc-q35-rhel9.6.0", and the
 * aliases "pc" and "q35", which mean another one with every QEMU. Pure. */
#pragma once

#include <stdbool.h>

/* What a guest may be given: an alias, or a type that is the same everywhere. */
bool api_machine_is_known(const char *type);
/* Only the latter; such a name can be part of a label. */
bool api_machine_is_pinned(const char *type);

/* Whether `type` is a pinned one with a number that the alias could mean. No alias, or "": "pc". */
bool api_machine_is_of(const char *type, const char *alias);
/* < 0: `a` is older than `b`. Types of QEMU itself count as newer than those of a distribution,
 * which nobody else has. Both as api_machine_is_of() takes them, for one alias. */
int api_machine_compare(const char *a, const char *b);
