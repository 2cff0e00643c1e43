/* The instance type and the preference of a VM. What is taken is a copy, a ControllerRevision that
 * the VM owns and that its status names: a later change of the instance type does not change a VM
 * that had it before. KubeVirt's rules; only that a VM which runs can be stopped while what it
 * names is not there. */
#include <string.h>

#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/vm/vm_case.h"

enum { LOOK_AGAIN_MS = 300000, COLLECT_MS = 1000 };

static void refuse(struct vm_case *d, const char *reason)
{
    d->refusal = d->sizing.msg;
    d->refusal_reason = reason;
    plan_again(d->plan, LOOK_AGAIN_MS); /* usually a watch is sooner */
}

static void refuse_missing(struct vm_case *d, const struct matcher *m)
{
    bool revision = m->revision != NULL;

    (void)ferry_fail(&d->sizing, FERRY_NOT_FOUND, "%s.%s \"%.250s\" not found",
                     revision ? "controllerrevisions" : m->resource->plural,
                     revision ? "apps" : m->resource->group,
                     revision ? m->revision : (m->name ? m->name : ""));
    refuse(d, m->of == MATCHER_INSTANCETYPE ? "FailedFindInstancetype" : "FailedFindPreference");
}

/* What is there of it: the copy, or as long as there is none the object. */
static const struct api_object *source_of(const struct vm_case *d, const struct matcher *m)
{
    const struct vm_named *named = &d->view->named[m->of];

    return m->revision ? named->revision : named->object;
}

/* False when one of them is not there, or does not fit the machine. */
static bool read_both(struct vm_case *d, struct instancetype_pair *ret)
{
    const yyjson_val *specs[MATCHER_COUNT] = {NULL};

    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (!matcher_read(d->view->vm->root, of, &m)) {
            continue;
        }
        if (!m.resource) {
            (void)matcher_check(d->view->vm->root, NULL, &d->sizing);
            refuse(d, "FailedCreate");
            return false;
        }
        if (!source_of(d, &m)) {
            refuse_missing(d, &m);
            return false;
        }
        specs[of] = matcher_spec(&m, source_of(d, &m)->root);
        if (!specs[of]) {
            (void)ferry_fail(&d->sizing, FERRY_INVALID,
                             "unexpected type in ControllerRevision %.250s", m.revision);
            refuse(d, "FailedCreate");
            return false;
        }
    }
    *ret = (struct instancetype_pair){.type = specs[MATCHER_INSTANCETYPE],
                                      .preference = specs[MATCHER_PREFERENCE]};
    if (instancetype_admit(d->view->vm->root, ret, &d->sizing) < 0) {
        refuse(d, "FailedCreate");
        return false;
    }
    return true;
}

static bool names_any(const struct vm_case *d, bool unrecorded_only)
{
    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (matcher_read(d->view->vm->root, of, &m) && !(unrecorded_only && m.recorded)) {
            return true;
        }
    }
    return false;
}

bool vm_sizing(struct vm_case *d, struct instancetype_pair *ret)
{
    *ret = (struct instancetype_pair){0};
    if (d->refusal) {
        return false;
    }
    if (!names_any(d, false)) {
        return true;
    }
    if (!d->view->looked) {
        d->plan->confirm = true;
        return false;
    }
    return read_both(d, ret);
}

/* ---- copies ------------------------------------------------------------------------------------
 */

static bool is_of_vm(const struct vm_case *d, const struct api_object *revision)
{
    for (size_t i = 0; i < revision->meta->n_owners; i++) {
        if (ferry_streq(revision->meta->owners[i].uid, d->view->vm->meta->uid)) {
            return true;
        }
    }
    return false;
}

static bool is_copy_of(const struct matcher *m, const struct vm_named *named)
{
    yyjson_val *kept = (yyjson_val *)matcher_spec(m, named->revision->root);
    yyjson_val *now = (yyjson_val *)matcher_spec(m, named->object->root);

    return kept && now && yyjson_equals(kept, now);
}

/* Plans the copy; its name, owned by the caller, or NULL when it cannot be now. */
static char *keep(struct vm_case *d, const struct matcher *m)
{
    const struct api_object *vm = d->view->vm;
    const struct vm_named *named = &d->view->named[m->of];

    if (m->asked) {
        return ferry_strdup(m->revision);
    }
    ferry_cleanup_free char *name = matcher_revision_name(vm->root, m, named->object->root);
    if (named->revision && !is_of_vm(d, named->revision)) {
        /* That of an earlier VM of this name, on its way out. */
        (void)ferry_fail(&d->sizing, FERRY_CONFLICT,
                         "waiting for ControllerRevision %.250s of an earlier VM to go", name);
        refuse(d, "FailedCreate");
        plan_again(d->plan, COLLECT_MS);
        return NULL;
    }
    if (named->revision && !is_copy_of(m, named)) {
        (void)ferry_fail(&d->sizing, FERRY_INVALID,
                         "found existing ControllerRevision with unexpected data: %.250s", name);
        refuse(d, "FailedCreate");
        return NULL;
    }
    if (!named->revision) {
        plan_create_of(d->plan, api_resource_find("apps", "v1", "controllerrevisions"),
                       vm->meta->namespace_, name,
                       matcher_revision(vm->root, m, named->object->root));
    }
    return ferry_take_ptr(name);
}

bool vm_keep_copies(struct vm_case *d)
{
    struct instancetype_pair both;
    struct api_patch *p = NULL;

    if (!names_any(d, true)) {
        return false;
    }
    if (!d->view->looked) {
        d->plan->confirm = true;
        return true;
    }
    if (!read_both(d, &both)) {
        return false;
    }
    p = api_patch_new();
    plan_guard(p, d->view->vm);
    plan_ensure_object(p, d->view->vm, "/status");
    for (enum matcher_of of = 0; of < MATCHER_COUNT && !d->refusal; of++) {
        struct matcher m;

        if (matcher_read(d->view->vm->root, of, &m) && !m.recorded) {
            ferry_cleanup_free char *name = keep(d, &m);
            ferry_cleanup_free char *status = name ? matcher_status(&m, name) : NULL;

            if (status) {
                api_patch_add_raw(p, matcher_status_path(of), status);
            }
        }
    }
    if (d->refusal) {
        api_patch_free(p);
        return false;
    }
    plan_patch_status(d->plan, d->view->vm, p);
    return true;
}
