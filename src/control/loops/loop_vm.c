#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/evacuate/auto_move.h"
#include "control/loops/loops.h"
#include "control/loops/plan_apply.h"
#include "control/vm/vm_decide.h"

/* The VM and the instance of its name; all referenced, each may be NULL. */
struct pair {
    struct api_object *vm, *vmi;
    bool looked; /* what the VM names was read, too */
    struct {
        struct api_object *object, *revision;
    } named[MATCHER_COUNT];
};

static void pair_done(struct pair *p)
{
    api_object_unref(p->vm);
    api_object_unref(p->vmi);
    for (size_t i = 0; i < MATCHER_COUNT; i++) {
        api_object_unref(p->named[i].object);
        api_object_unref(p->named[i].revision);
    }
    *p = (struct pair){0};
}

static struct pair look(struct cluster *c, const char *ns, const char *name)
{
    return (struct pair){.vm = kube_informer_get(c->vms, ns, name),
                         .vmi = kube_informer_get(c->vmis, ns, name)};
}

static int get(struct cluster *c, const struct api_resource *resource, const char *ns,
               const char *name, struct api_object **ret, struct ferry_error *err)
{
    const struct kube_ref ref = {
        .resource = resource, .ns = resource->namespaced ? ns : NULL, .name = name};
    int rc = kube_client_get(c->client, ref, ret, err);

    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* The copy that the VM has; where there is none yet what would be copied. */
static int look_named(struct cluster *c, enum matcher_of of, struct pair *o,
                      struct ferry_error *err)
{
    const struct api_resource *revisions = api_resource_find("apps", "v1", "controllerrevisions");
    const char *ns = o->vm->meta->namespace_;
    struct matcher m;

    if (!matcher_read(o->vm->root, of, &m) || !m.resource || ferry_str_empty(m.name)) {
        return 0;
    }
    if (m.revision) {
        return get(c, revisions, ns, m.revision, &o->named[of].revision, err);
    }
    int rc = get(c, m.resource, ns, m.name, &o->named[of].object, err);
    if (rc < 0 || !o->named[of].object) {
        return rc;
    }
    ferry_cleanup_free char *name =
        matcher_revision_name(o->vm->root, &m, o->named[of].object->root);
    return get(c, revisions, ns, name, &o->named[of].revision, err);
}

static int look_live(struct cluster *c, const char *ns, const char *name, struct pair *ret,
                     struct ferry_error *err)
{
    *ret = (struct pair){0};
    int rc = kube_client_get(c->client, kube_ref(API_KIND_VM, ns, name), &ret->vm, err);
    if (rc == 0) {
        rc = kube_client_get(c->client, kube_ref(API_KIND_VMI, ns, name), &ret->vmi, err);
    }
    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    rc = 0;
    for (enum matcher_of of = 0; rc == 0 && ret->vm && of < MATCHER_COUNT; of++) {
        rc = look_named(c, of, ret, err);
    }
    ret->looked = rc == 0;
    return rc;
}

static void decide(struct cluster *c, const struct pair *o, struct plan *ret)
{
    const struct api_meta *m = o->vm->meta;
    ferry_cleanup_free char *key = cluster_key(m->namespace_, m->name);
    kube_cleanup_snapshot struct kube_snapshot moves = kube_informer_find(c->migrations, key);
    struct cluster_storage storage = cluster_storage(c, m->namespace_, &o->vm->u.vm.machine,
                                                     o->vmi ? &o->vmi->u.vmi.machine : NULL);

    struct vm_view view = {
        .vm = o->vm,
        .vmi = o->vmi,
        .storage = storage.view,
        .moves_open = auto_move_is_open((const struct api_object *const *)moves.items, moves.n),
        .looked = o->looked};

    for (size_t i = 0; i < MATCHER_COUNT; i++) {
        view.named[i].object = o->named[i].object;
        view.named[i].revision = o->named[i].revision;
    }
    plan_done(ret);
    vm_decide(&view, ferry_now_unix_ms(), ret);
    cluster_storage_done(&storage);
}

/* An instance that the API does not take is said in the VM's status; others are tried again. */
static void refused(struct cluster *c, const struct pair *o, const char *message)
{
    plan_cleanup struct plan p = {0};
    struct ferry_error ignored;

    vm_decide_refused(&(struct vm_view){.vm = o->vm, .vmi = o->vmi}, message, ferry_now_unix_ms(),
                      &p);
    (void)plan_apply(&p, &c->writer, &ignored); /* the retry comes for the refusal */
}

/* The instance, or a copy of what it is to be made by. */
static bool plans_create(const struct plan *p)
{
    return plan_find(p, PLAN_CREATE, API_KIND_VMI) || plan_find(p, PLAN_CREATE, API_KIND_NONE);
}

static int reconcile(struct cluster *c, const char *ns, const char *name, struct pair *o,
                     struct kube_again *again, struct ferry_error *err)
{
    plan_cleanup struct plan p = {0};

    decide(c, o, &p);
    if (p.confirm) {
        pair_done(o);
        int rc = look_live(c, ns, name, o, err);

        if (rc < 0 || !o->vm) {
            return rc;
        }
        decide(c, o, &p);
    }
    int rc = plan_apply(&p, &c->writer, err);
    if (rc == 0 && plan_find(&p, PLAN_CREATE, API_KIND_VMI)) {
        ferry_info("VM started", F_STR("namespace", ns), F_STR("vm", name));
    } else if (rc == 0 && plan_find(&p, PLAN_DELETE, API_KIND_VMI)) {
        ferry_info("VM stopped", F_STR("namespace", ns), F_STR("vm", name));
    } else if ((rc == -FERRY_INVALID || rc == -FERRY_DENIED) && plans_create(&p)) {
        refused(c, o, err->msg);
    }
    if (p.again_ms) {
        *again = (struct kube_again){.wanted = true, .after_ns = p.again_ms * FERRY_NS_PER_MS};
    }
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

int loop_vm_reconcile(void *ctx, const char *key, struct kube_again *again, struct ferry_error *err)
{
    struct cluster *c = ctx;
    ferry_cleanup_free char *ns = NULL, *name = NULL;

    if (!cluster_split_key(key, &ns, &name)) {
        return 0;
    }
    struct pair o = look(c, ns, name);
    int rc = o.vm ? reconcile(c, ns, name, &o, again, err) : 0;
    pair_done(&o);
    return rc;
}
