/* May the spec of a VirtualMachineInstance or of a VirtualMachine be? Every field that is set is
 * looked up in the table of fields (vmi_fields.h), then the parts are held against each other
 * (vmi_rules.h). Fields that KubeVirt does not have are the schema's business. Pure; what it costs
 * is bounded, whoever wrote the object. */
#pragma once

#include "api/spec/vmi_fields.h"
#include "api/spec/vmi_findings.h"

/* `object`, as it shall be; `before` as it is (NULL when it is new): what was found there already
 * is not found again. */
void vmi_field_check(enum vmi_fields_of of, const yyjson_val *object, const yyjson_val *before,
                     struct vmi_findings *ret);
