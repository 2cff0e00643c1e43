#include "api/spec/vmi_fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define TEMPLATE "template.spec."

const struct vmi_fields *const *vmi_fields_of_vmi(void)
{
    static const struct vmi_fields *const tables[] = {&vmi_fields_domain, &vmi_fields_devices,
                                                      &vmi_fields_volumes, &vmi_fields_rest, NULL};

    return tables;
}

static int compare(const void *path, const void *row)
{
    return strcmp(path, ((const struct vmi_field *)row)->path);
}

static const struct vmi_field *find_in(const struct vmi_fields *table, const char *path)
{
    return bsearch(path, table->rows, table->n, sizeof(*table->rows), compare);
}

const struct vmi_field *vmi_fields_find(enum vmi_fields_of of, const char *path)
{
    const struct vmi_field *found = NULL;

    if (of == VMI_FIELDS_OF_VM) {
        return ferry_str_starts(path, TEMPLATE)
                   ? vmi_fields_find(VMI_FIELDS_OF_VMI, path + strlen(TEMPLATE))
                   : find_in(&vmi_fields_vm, path);
    }
    for (const struct vmi_fields *const *t = vmi_fields_of_vmi(); *t && !found; t++) {
        found = find_in(*t, path);
    }
    return found;
}
