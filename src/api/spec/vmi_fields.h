/* Every field of the spec of a VirtualMachineInstance and of a VirtualMachine, as KubeVirt has
 * them, and what becomes of it here: who acts upon it, or why it is refused and what to do instead,
 * or why it may stand there without effect. Admission asks this table (vmi_field_check.h); the
 * schemas in deploy/kubernetes/crds and docs/vmi-fields.md are made of it (test_api_vmi_fields).
 * Constant; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum vmi_verdict {
    VMI_FIELD_PARTS,     /* nothing by itself: the fields in it are judged */
    VMI_FIELD_HONOURED,  /* and the fields in it are judged */
    VMI_FIELD_REFUSED,   /* with all that is in it */
    VMI_FIELD_NO_EFFECT, /* with all that is in it */
    VMI_FIELD_BELOW,     /* as the field that it is in */
};

struct vmi_field {
    const char *path; /* "domain.devices.disks[].disk.bus": below spec; [] = each of a list */
    /* "string", "boolean", "int32", "int64", "object", "any", "map" (of strings), "quantity",
     * "quantities" (a map), "intorstring"; else a type of Kubernetes' own ("Affinity",
     * "[]Toleration"), all of it with this verdict */
    const char *type;
    enum vmi_verdict verdict;
    const char *by;     /* HONOURED: the function that acts upon it, or the program */
    const char *text;   /* what it is; REFUSED and NO_EFFECT: why */
    const char *todo;   /* REFUSED, and where there are `values`: what to do instead */
    const char *values; /* HONOURED: only these, separated by spaces; of a map: these keys */
    bool always;        /* REFUSED even where it switches something off */
    bool required;
    const char *schema; /* more keywords of its schema */
};

/* In the order of strcmp(): vmi_fields_find() relies on it. */
struct vmi_fields {
    const struct vmi_field *rows;
    size_t n;
};
extern const struct vmi_fields vmi_fields_domain, vmi_fields_devices, vmi_fields_volumes,
    vmi_fields_rest, vmi_fields_vm;

enum vmi_fields_of {
    VMI_FIELDS_OF_VMI,
    VMI_FIELDS_OF_VM, /* with "template.spec.", below which the fields of a VMI are */
};

/* NULL: KubeVirt has no such field. */
const struct vmi_field *vmi_fields_find(enum vmi_fields_of of, const char *path);
/* The tables that have the fields of a VMI, NULL at the end. */
const struct vmi_fields *const *vmi_fields_of_vmi(void);
