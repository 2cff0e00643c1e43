/* How rows of the table of fields are written: what a later version can do, it says by one other
 * word in front. */
#pragma once

/* clang-format off */
#define PARTS(p, what, ...) \
    {.path = (p), .type = "object", .verdict = VMI_FIELD_PARTS, .text = (what), __VA_ARGS__}
#define HONOURED(p, t, who, what, ...) \
    {.path = (p), .type = (t), .verdict = VMI_FIELD_HONOURED, .by = (who), .text = (what), \
     __VA_ARGS__}
#define HONOURED_VALUES(p, t, who, list, what, instead, ...) \
    {.path = (p), .type = (t), .verdict = VMI_FIELD_HONOURED, .by = (who), .values = (list), \
     .text = (what), .todo = (instead), __VA_ARGS__}
#define REFUSED(p, t, why, instead, ...) \
    {.path = (p), .type = (t), .verdict = VMI_FIELD_REFUSED, .text = (why), .todo = (instead), \
     __VA_ARGS__}
#define NO_EFFECT(p, t, why) \
    {.path = (p), .type = (t), .verdict = VMI_FIELD_NO_EFFECT, .text = (why)}
#define BELOW(p, t) \
    {.path = (p), .type = (t), .verdict = VMI_FIELD_BELOW}
/* clang-format on */
