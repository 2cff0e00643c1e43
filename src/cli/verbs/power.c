#include "cli/verbs/power.h"

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"

struct power_case {
    const struct api_vm *vm;
    const struct api_vmi *vmi;
    bool runs; /* there is an instance that is not over, and stays */
    struct power_plan *plan;
};

static bool follows(const struct power_case *c, const char *strategy)
{
    return ferry_streq(c->vm->run_strategy, strategy);
}

static void set_spec(const struct power_case *c, bool run)
{
    c->plan->patch =
        c->vm->has_running
            ? ferry_asprintf("{\"spec\":{\"running\":%s}}", run ? "true" : "false")
            : ferry_asprintf("{\"spec\":{\"runStrategy\":\"%s\"}}", run ? "Always" : "Halted");
}

/* An instance that is over makes room first. */
static void ask(const struct power_case *c, bool start)
{
    ferry_cleanup_free char *stop =
        c->vmi ? ferry_asprintf("{\"action\":\"Stop\",\"uid\":\"%s\"}", c->vmi->meta.uid) : NULL;

    c->plan->status = true;
    c->plan->patch =
        ferry_asprintf("{\"status\":{\"stateChangeRequests\":[%s%s%s]}}", stop ? stop : "",
                       stop && start ? "," : "", start ? "{\"action\":\"Start\"}" : "");
}

static int decide_start(const struct power_case *c, struct ferry_error *err)
{
    if (follows(c, "Halted")) {
        set_spec(c, true);
    } else if (c->runs) {
        c->plan->nothing = true;
    } else if (follows(c, "Manual") || follows(c, "RerunOnFailure")) {
        ask(c, true);
    } else if (follows(c, "Always")) {
        c->plan->nothing = true; /* it is started again by itself */
    } else {
        return ferry_fail(err, FERRY_FATAL,
                          "%s runs once and has; its runStrategy is %s: change that to Always or "
                          "Manual first",
                          c->vm->meta.name, c->vm->run_strategy);
    }
    return 0;
}

static int decide_stop(const struct power_case *c)
{
    if (follows(c, "Always") || follows(c, "Once")) {
        set_spec(c, false);
    } else if (!c->runs || follows(c, "Halted")) {
        c->plan->nothing = true;
    } else {
        ask(c, false);
    }
    return 0;
}

int power_decide(const struct api_object *vm, const struct api_vmi *vmi, enum power what,
                 struct power_plan *ret, struct ferry_error *err)
{
    struct power_case c = {.vm = &vm->u.vm, .vmi = vmi, .plan = ret};

    *ret = (struct power_plan){0};
    if (vm->meta->deleted_ms) {
        return ferry_fail(err, FERRY_FATAL, "%s is being deleted", vm->meta->name);
    }
    c.runs = vmi && !vmi->meta.deleted_ms && !wire_vmi_is_over(vmi);
    return what == POWER_START ? decide_start(&c, err) : decide_stop(&c);
}
