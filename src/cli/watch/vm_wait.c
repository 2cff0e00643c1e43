#include "cli/watch/vm_wait.h"

#include <stdio.h>
#include <string.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/printable.h"
#include "base/str.h"
#include "cli/session/call.h"
#include "cli/watch/events.h"

enum { STEP_MS = 100, WARNINGS_MS = 2000 };

/* One step of a wait; 0 = look again. `what` completes "waiting for ...". */
static int wait_step(int64_t deadline_ns, const char *what, struct ferry_error *err)
{
    if (ferry_signals_wait(ferry_now_ns() + STEP_MS * FERRY_NS_PER_MS)) {
        return ferry_fail(err, FERRY_CANCELLED, "interrupted while waiting for %s", what);
    }
    if (ferry_ms_left(deadline_ns) == 0) {
        return ferry_fail(err, FERRY_RETRY,
                          "waited too long for %s; 'ferry vm list' and 'ferry events' show how far "
                          "it is",
                          what);
    }
    return 0;
}

/* What keeps a VirtualMachine from having an instance, as an error; 0 when nothing does. */
static int check_owner(struct session *s, const char *ns, const char *name, struct ferry_error *err)
{
    api_cleanup_object struct api_object *vm = NULL;
    int rc = kube_client_get(s->client, kube_ref(API_KIND_VM, ns, name), &vm, err);

    if (rc < 0) {
        return rc == -FERRY_NOT_FOUND
                   ? ferry_fail(err, FERRY_NOT_FOUND, "%s was deleted meanwhile", name)
                   : session_explain(err);
    }
    const struct api_condition *c = api_condition_find(&vm->u.vm.conditions, CONDITION_FAILURE);
    return c && ferry_streq(c->status, "True")
               ? ferry_fail(err, FERRY_FATAL, "%s cannot start: %s", name,
                            c->message ? c->message : "no reason is given")
               : 0;
}

static int check_instance(const struct api_vmi *v, struct ferry_error *err)
{
    if (!wire_vmi_is_over(v)) {
        return 0;
    }
    return ferry_fail(err, FERRY_FATAL, "%s does not run: it is %s%s%s", v->meta.name, v->phase,
                      v->reason ? ", reason " : "", v->reason ? v->reason : "");
}

/* ---- warnings meanwhile -----------------------------------------------------------------------
 */

static bool is_about(const struct api_event *e, const char *name)
{
    ferry_cleanup_free char *pods = ferry_asprintf(LABEL_APP_LAUNCHER "-%s-", name);

    return ferry_streq(e->about_name, name) ||
           (ferry_streq(e->about_kind, "Pod") && e->about_name &&
            ferry_str_starts(e->about_name, pods));
}

/* Says once what keeps `vmi`, and not only when the wait is over; `told` has a line for each. Who
 * may not see events gets none. */
static void tell_warnings(struct session *s, const struct api_object *vmi, struct ferry_buf *told)
{
    const char *name = vmi->meta->name;
    kube_cleanup_list struct kube_list events = {0};
    struct ferry_error err;

    if (events_list(s, vmi->meta->namespace_, &events, &err) < 0) {
        return;
    }
    for (size_t i = 0; i < events.n; i++) {
        const struct api_event *e = &events.items[i]->u.event;

        if (!ferry_streq(e->type, "Warning") || !e->message || !is_about(e, name) ||
            events_time_ms(events.items[i]) < vmi->meta->created_ms ||
            (told->data && strstr(told->data, e->message))) {
            continue;
        }
        ferry_buf_printf(told, "%s\n", e->message);
        ferry_cleanup_free char *text = ferry_printable_dup(e->message);

        fprintf(stderr, "%s waits: %s\n", name, text);
    }
}

int vm_wait_running(struct session *s, const char *ns, const char *name, int timeout_s,
                    struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + timeout_s * FERRY_NS_PER_S;
    ferry_cleanup_free char *what = ferry_asprintf("%s to run", name);
    ferry_cleanup_buf struct ferry_buf told = {0};
    int64_t tell_ns = ferry_now_ns() + WARNINGS_MS * FERRY_NS_PER_MS;

    for (;;) {
        api_cleanup_object struct api_object *o = NULL;
        int rc = kube_client_get(s->client, kube_ref(API_KIND_VMI, ns, name), &o, err);

        if (rc == 0 && wire_phase_is(o->u.vmi.phase, PHASE_RUNNING)) {
            printf("%s runs on %s\n", name, o->u.vmi.node_name);
            return 0;
        }
        /* An instance that is on its way out makes room for the next. */
        if (rc == 0 && !o->meta->deleted_ms) {
            rc = check_instance(&o->u.vmi, err);
            if (ferry_now_ns() >= tell_ns) {
                tell_warnings(s, o, &told);
                tell_ns = ferry_now_ns() + WARNINGS_MS * FERRY_NS_PER_MS;
            }
        } else if (rc == 0 || rc == -FERRY_NOT_FOUND) {
            rc = check_owner(s, ns, name, err);
        } else {
            rc = session_explain(err);
        }
        if (rc < 0 || (rc = wait_step(deadline, what, err)) < 0) {
            return rc;
        }
    }
}

int vm_wait_gone(struct session *s, const struct api_object *o, bool over, int timeout_s,
                 struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + timeout_s * FERRY_NS_PER_S;
    ferry_cleanup_free char *what = ferry_asprintf("%s to %s", o->meta->name, over ? "stop" : "go");

    for (;;) {
        api_cleanup_object struct api_object *now = NULL;
        int rc = kube_client_get(s->client, kube_ref_of(o), &now, err);

        if (rc == -FERRY_NOT_FOUND || (now && !ferry_streq(now->meta->uid, o->meta->uid))) {
            return 0;
        }
        if (rc < 0) {
            return session_explain(err);
        }
        if (over && now && now->kind == API_KIND_VMI && check_instance(&now->u.vmi, err) < 0) {
            return 0;
        }
        rc = wait_step(deadline, what, err);
        if (rc < 0) {
            return rc;
        }
    }
}

int vm_wait_paused(struct session *s, const char *name, bool paused, int timeout_s,
                   struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + timeout_s * FERRY_NS_PER_S;
    ferry_cleanup_free char *what = ferry_asprintf("the status of %s to say that it %s", name,
                                                   paused ? "is paused" : "goes on");

    for (;;) {
        api_cleanup_object struct api_object *o = NULL;
        int rc = cli_get_vm(s, name, &o, err);

        if (rc < 0 || cli_vm_paused(&o->u.vmi) == paused) {
            return rc;
        }
        if ((rc = wait_step(deadline, what, err)) < 0) {
            return rc;
        }
    }
}
