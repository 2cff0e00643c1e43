#include "cli/verbs/preflight.h"

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"

bool preflight_usable(const struct api_node *n)
{
    return !n->unschedulable && api_condition_true(&n->conditions, CONDITION_READY);
}

static int check_wish(const struct api_vmi *vm, struct api_object *const *nodes, size_t n,
                      const char *to, struct ferry_error *err)
{
    if (ferry_streq(vm->node_name, to)) {
        return ferry_fail(err, FERRY_FATAL, "%s is on %s already", vm->meta.name, to);
    }
    for (size_t i = 0; nodes && i < n; i++) {
        const struct api_node *node = &nodes[i]->u.node;

        if (!ferry_streq(node->meta.name, to)) {
            continue;
        }
        return preflight_usable(node)
                   ? 0
                   : ferry_fail(err, FERRY_FATAL, "node %s takes no virtual machines: %s", to,
                                node->unschedulable ? "it is cordoned"
                                                    : "it is not "
                                                      "ready");
    }
    return nodes ? ferry_fail(err, FERRY_NOT_FOUND,
                              "there is no node '%s'; 'ferry node list' shows them", to)
                 : 0;
}

static int refuse_phase(const struct api_vmi *vm, struct ferry_error *err)
{
    const char *phase = wire_phase_shown(vm->phase);
    const char *name = vm->meta.name;

    if (wire_vmi_is_over(vm)) {
        return ferry_fail(err, FERRY_FATAL,
                          "%s is %s; only a running virtual machine can be moved, and 'ferry vm "
                          "start %s' starts it",
                          name, phase, name);
    }
    return ferry_fail(err, FERRY_FATAL,
                      "%s is %s; only a running virtual machine can be moved: it is still "
                      "starting, and 'ferry vm start --wait %s' returns when it runs",
                      name, phase, name);
}

int preflight_check(const struct api_vmi *vm, struct api_object *const *nodes, size_t n,
                    const char *to, struct ferry_error *err)
{
    if (vm->meta.deleted_ms) {
        return ferry_fail(err, FERRY_FATAL, "%s is being deleted; it cannot be moved any more",
                          vm->meta.name);
    }
    if (!wire_phase_is(vm->phase, PHASE_RUNNING)) {
        return refuse_phase(vm, err);
    }
    const struct api_condition *movable =
        api_condition_find(&vm->conditions, CONDITION_LIVE_MIGRATABLE);
    if (movable && ferry_streq(movable->status, "False")) {
        return ferry_fail(err, FERRY_FATAL, "%s cannot be moved: %s", vm->meta.name,
                          !ferry_str_empty(movable->message)  ? movable->message
                          : !ferry_str_empty(movable->reason) ? movable->reason
                                                              : "it is not migratable");
    }
    if (to) {
        return check_wish(vm, nodes, n, to, err);
    }
    for (size_t i = 0; nodes && i < n; i++) {
        if (!ferry_streq(nodes[i]->meta->name, vm->node_name) &&
            preflight_usable(&nodes[i]->u.node)) {
            return 0;
        }
    }
    return nodes ? ferry_fail(err, FERRY_FATAL,
                              "there is no node that %s could move to: besides %s, where it is, "
                              "none is ready and takes virtual machines",
                              vm->meta.name, vm->node_name)
                 : 0;
}
