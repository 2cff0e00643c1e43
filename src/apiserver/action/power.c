#include "apiserver/action/power.h"

#include <string.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"

struct power {
    const char *name;
    yyjson_mut_doc *vm;
    const yyjson_val *vmi;
    const char *strategy;
    bool active; /* there is an instance that is not over */
    struct status *st;
};

static yyjson_mut_val *at(const struct power *p, const char *pointer)
{
    return yyjson_mut_ptr_get(yyjson_mut_doc_get_root(p->vm), pointer);
}

static int refuse(const struct power *p, const char *why)
{
    return status_conflict(p->st, api_resource_of_kind(API_KIND_VM), p->name, why);
}

static int refuse_strategy(const struct power *p, const char *what)
{
    ferry_cleanup_free char *why =
        ferry_asprintf("%s does not support manual %s requests", p->strategy, what);

    return refuse(p, why);
}

/* From now on it runs, or not. */
static int set_running(const struct power *p, bool running)
{
    yyjson_mut_val *spec = at(p, "/spec");
    bool legacy = yyjson_mut_obj_get(spec, "running") != NULL;

    if (legacy) {
        yyjson_mut_obj_put(spec, yyjson_mut_str(p->vm, "running"), yyjson_mut_bool(p->vm, running));
    } else {
        yyjson_mut_obj_put(spec, yyjson_mut_str(p->vm, "runStrategy"),
                           yyjson_mut_str(p->vm, running ? "Always" : "Halted"));
    }
    return 0;
}

static int ask(const struct power *p, bool stop, bool start)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(p->vm);
    yyjson_mut_val *status = yyjson_mut_obj_get(root, "status");
    const char *uid = p->vmi ? api_json_str(p->vmi, "/metadata/uid") : NULL;

    if (yyjson_mut_arr_size(at(p, "/status/stateChangeRequests")) > 0) {
        return refuse(p, "unable to complete request: stop/start already underway");
    }
    if (!yyjson_mut_is_obj(status)) {
        status = yyjson_mut_obj(p->vm);
        yyjson_mut_obj_put(root, yyjson_mut_str(p->vm, "status"), status);
    }
    yyjson_mut_val *list = yyjson_mut_arr(p->vm);
    yyjson_mut_obj_put(status, yyjson_mut_str(p->vm, "stateChangeRequests"), list);
    if (stop && uid) {
        yyjson_mut_val *request = yyjson_mut_arr_add_obj(p->vm, list);

        yyjson_mut_obj_add_str(p->vm, request, "action", "Stop");
        yyjson_mut_obj_add_strcpy(p->vm, request, "uid", uid);
    }
    if (start) {
        yyjson_mut_obj_add_str(p->vm, yyjson_mut_arr_add_obj(p->vm, list), "action", "Start");
    }
    return 0;
}

static bool follows(const struct power *p, const char *strategy)
{
    return ferry_streq(p->strategy, strategy);
}

static int start(const struct power *p)
{
    if (p->active) {
        return refuse(p, "VM is already running");
    }
    if (follows(p, "Halted")) {
        return set_running(p, true);
    }
    if (follows(p, "RerunOnFailure") && p->vmi &&
        wire_phase_is(api_json_str(p->vmi, "/status/phase"), PHASE_FAILED)) {
        return refuse(p, "RerunOnFailure does not support starting VM from failed state");
    }
    if (follows(p, "Manual") || follows(p, "RerunOnFailure")) {
        return ask(p, p->vmi != NULL, true); /* one that is over makes room first */
    }
    return refuse_strategy(p, "start");
}

static int stop(const struct power *p)
{
    if (follows(p, "Always") || follows(p, "Once")) {
        return set_running(p, false);
    }
    if (!p->active) {
        return refuse(p, "VM is not running");
    }
    if (follows(p, "Manual") || follows(p, "RerunOnFailure")) {
        return ask(p, true, false);
    }
    return refuse_strategy(p, "stop");
}

static int restart(const struct power *p)
{
    if (follows(p, "Halted") || follows(p, "Once")) {
        return refuse_strategy(p, "restart");
    }
    return p->active ? ask(p, true, true) : refuse(p, "VM is not running");
}

static const struct {
    const char *verb;
    int (*request)(const struct power *p);
} verbs[] = {{"start", start}, {"stop", stop}, {"restart", restart}};

enum { VERBS = FERRY_COUNT(verbs) };

bool power_is_verb(const char *verb)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (ferry_streq(verb, verbs[i].verb)) {
            return true;
        }
    }
    return false;
}

int power_request(const char *verb, const char *name, yyjson_mut_doc *vm, const yyjson_val *vmi,
                  struct status *st)
{
    const char *phase = vmi ? api_json_str(vmi, "/status/phase") : NULL;
    struct power p = {.name = name, .vm = vm, .vmi = vmi, .st = st};

    p.active = vmi && !wire_phase_is_over(phase);
    p.strategy = yyjson_mut_get_str(at(&p, "/spec/runStrategy"));
    if (ferry_str_empty(p.strategy)) {
        p.strategy = yyjson_mut_is_true(at(&p, "/spec/running")) ? "Always" : "Halted";
    }
    for (size_t i = 0; i < VERBS; i++) {
        if (ferry_streq(verb, verbs[i].verb)) {
            return verbs[i].request(&p);
        }
    }
    return status_fail(st, 404, "the server could not find the requested resource");
}
