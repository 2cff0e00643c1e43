/* Which fields of a VirtualMachineInstance a node may write, and when (docs/contracts/fields.md):
 * one table for the embedded API server, for the admission policy on Kubernetes
 * (deploy/kubernetes/fields.yaml is made of it) and for tests. Pure.
 *
 * A write is judged by the VMI as it was, as it shall be, and the node's name: no clock, no other
 * object. What the table does not give to a node is the controller's, or people's; fields that
 * nobody knows, labels and annotations are, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

struct field_write {
    const char *node;                 /* who writes */
    const yyjson_val *before, *after; /* the VMI */
};

enum field_part { /* what the node is to the VMI in this write */
                  FIELD_RUNS = 1 << 0,
                  FIELD_LIVES = 1 << 1,
                  FIELD_SOURCE = 1 << 2,
                  FIELD_TARGET = 1 << 3,
                  FIELD_TAKES = 1 << 4,
                  FIELD_FAILS = 1 << 5,
                  FIELD_DOUBTS = 1 << 6,
                  FIELD_COMPLETES = 1 << 7,
                  FIELD_LEAVES = 1 << 8,
                  FIELD_ENDS = 1 << 9,
};
struct field_part_row {
    enum field_part part;
    const char *name; /* of the policy's variable */
    const char *who;  /* for people */
    bool (*is)(const struct field_write *w);
    const char *cel; /* the same, as the policy has it */
};
const struct field_part_row *field_rules_parts(size_t *ret_n);

enum field_place {
    FIELD_OF_STATUS,
    FIELD_OF_MOVE,       /* status.migrationState */
    FIELD_OF_CONDITIONS, /* the condition of that type */
    FIELD_OF_LABELS,
    FIELD_OF_ANNOTATIONS,
    FIELD_PLACE_COUNT
};
enum field_limit {                          /* beyond who writes it */
                   FIELD_ONCE = 1 << 0,     /* and nobody changes it again in this move */
                   FIELD_OWN_NAME = 1 << 1, /* to the node's own name */
                   FIELD_AWAY = 1 << 2,     /* it may only be taken away */
                   FIELD_MOVE_UID = 1 << 3, /* to the move's uid */
};
struct field_rule {
    enum field_place place;
    const char *key;
    unsigned parts;  /* of enum field_part: any of them */
    unsigned limits; /* of enum field_limit: all of them */
};
const struct field_rule *field_rules(size_t *ret_n);

/* The node has any part in the VMI as it is: where it has none, it writes nothing at all. */
bool field_rules_concern(const char *node, const yyjson_val *vmi);

enum { FIELD_TEXT = 512 };
/* False when something is changed that is not the node's to write: `ret` is which field and why,
 * "status.nodeName: that is for ...". */
bool field_rules_allow(const struct field_write *w, char ret[FIELD_TEXT]);
