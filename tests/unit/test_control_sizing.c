/* VMs that name an instance type and a preference: what is kept of them, what they are made by.
 * Numbers of cases are items of docs/conformance.md. */
#include "lib/objects.h"

#include "api/wire/wire_keys.h"
#include "control/vm/vm_decide.h"
#include "control/vm/vm_render.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

#define VM                                                                                         \
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachine','metadata':{'name':'web','namespace':" \
    "'ns','uid':'vm-1','resourceVersion':'5','generation':3,'finalizers':["                        \
    "'kubevirt.io/virtualMachineControllerFinalize']},'spec':{'runStrategy':'Always',"             \
    "'instancetype':{'name':'small'},'preference':{'name':'linux','kind':"                         \
    "'VirtualMachinePreference'},'template':{'spec':{'domain':{'devices':{'disks':[{'name':'d'}]}" \
    "}}}}}"
#define TYPE                                                                                       \
    "{'metadata':{'name':'small','uid':'t','generation':1},'spec':{'cpu':{'guest':2},'memory':{"   \
    "'guest':'64Mi'}}}"
#define PREFERENCE                                                                                 \
    "{'metadata':{'name':'linux','namespace':'ns','uid':'p','generation':2},'spec':{'devices':{"   \
    "'preferredDiskBus':'sata'}}}"
#define REVISION(name, owner, kind, spec)                                                          \
    "{'metadata':{'name':'" name "','namespace':'ns','ownerReferences':[{'uid':'" owner            \
    "','kind':'VirtualMachine','name':'web','controller':true}]},'data':{'apiVersion':"            \
    "'instancetype.kubevirt.io/v1beta1','kind':'" kind "','spec':" spec "}}"
#define TYPE_COPY                                                                                  \
    REVISION("r-t", "vm-1", "VirtualMachineClusterInstancetype",                                   \
             "{'cpu':{'guest':2},'memory':{'guest':'64Mi'}}")
#define PREFERENCE_COPY                                                                            \
    REVISION("r-p", "vm-1", "VirtualMachinePreference", "{'devices':{'preferredDiskBus':'sata'}}")
#define RECORDED                                                                                   \
    "'status':{'instancetypeRef':{'name':'small','kind':'VirtualMachineClusterInstancetype',"      \
    "'controllerRevisionRef':{'name':'r-t'}},'preferenceRef':{'name':'linux','kind':"              \
    "'VirtualMachinePreference','controllerRevisionRef':{'name':'r-p'}}}"
#define HALTED "{'spec':{'runStrategy':'Halted'}}"

static const char VMI[] =
    "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1','resourceVersion':'9',"
    "'ownerReferences':[{'uid':'vm-1','kind':'VirtualMachine','name':'web','controller':true}]},"
    "'spec':{'domain':{}},'status':{'phase':'Running','phaseTransitionTimestamps':[{'phase':"
    "'Running'}]}}";

static const struct row {
    const char *name, *vm; /* merge on VM */
    bool looked;
    const char *objects[MATCHER_COUNT], *revisions[MATCHER_COUNT];
    const char *vmi; /* merge on VMI; NULL = none */
    const char *rule;
    bool confirm, creates, deletes;
    size_t copies;
    const char *patch, *never_patch, *event, *printable;
    int64_t again_s;
} rows[] = {
    {"unseen: the API is asked first", "{}", .rule = "sizing", .confirm = true},
    {"707: both are kept before anything starts",
     "{}",
     true,
     {TYPE, PREFERENCE},
     .rule = "sizing",
     .copies = 2,
     .patch = "\"path\":\"/status/instancetypeRef\",\"value\":{\"name\":\"small\",\"kind\":"
              "\"VirtualMachineClusterInstancetype\",\"controllerRevisionRef\":{\"name\":"
              "\"web-small-v1beta1-t-1\"}}"},
    {"also of one that is not to run",
     HALTED,
     true,
     {TYPE, PREFERENCE},
     .rule = "sizing",
     .copies = 2,
     .patch = "web-linux-v1beta1-p-2"},
    {"a copy of an earlier try is taken",
     "{}",
     true,
     {TYPE, PREFERENCE},
     {TYPE_COPY},
     .rule = "sizing",
     .copies = 1,
     .patch = "web-small-v1beta1-t-1"},
    {"a copy of an earlier VM is waited for",
     "{}",
     true,
     {TYPE, PREFERENCE},
     {REVISION("r-t", "vm-0", "VirtualMachineClusterInstancetype",
               "{'cpu':{'guest':2},'memory':{'guest':'64Mi'}}")},
     .rule = "strategy",
     .patch = "of an earlier VM to go",
     .event = "FailedCreate",
     .again_s = 1,
     .printable = "Starting"},
    {"711: a copy of something else",
     "{}",
     true,
     {TYPE, PREFERENCE},
     {REVISION("r-t", "vm-1", "VirtualMachineClusterInstancetype", "{'cpu':{'guest':8}}")},
     .rule = "strategy",
     .patch = "unexpected data",
     .event = "FailedCreate",
     .again_s = 300},
    {"kept: it starts once what was kept is read", "{" RECORDED "}", .rule = "strategy",
     .confirm = true},
    {"708: kept: it starts by the copies", "{" RECORDED "}", true,
     .revisions = {TYPE_COPY, PREFERENCE_COPY}, .rule = "strategy", .confirm = true,
     .creates = true, .printable = "Starting", .never_patch = "Failure"},
    {"kept, halted: nothing is read", "{'spec':{'runStrategy':'Halted'}," RECORDED "}",
     .rule = "strategy", .printable = "Stopped"},

    {"706: no instance type of that name",
     "{}",
     true,
     {NULL, PREFERENCE},
     .rule = "strategy",
     .patch = "virtualmachineclusterinstancetypes.instancetype.kubevirt.io \\\"small\\\" not found",
     .event = "FailedFindInstancetype",
     .printable = "Starting",
     .again_s = 300},
    {"706: no preference of that name",
     "{}",
     true,
     {TYPE},
     .rule = "strategy",
     .patch = "virtualmachinepreferences.instancetype.kubevirt.io \\\"linux\\\" not found",
     .event = "FailedFindPreference",
     .printable = "Starting",
     .again_s = 300},
    {"halted: said as well",
     HALTED,
     true,
     {NULL, PREFERENCE},
     .rule = "strategy",
     .patch = "FailedFindInstancetype",
     .event = "FailedFindInstancetype",
     .printable = "Stopped",
     .again_s = 300},
    {"a copy that was taken away", "{" RECORDED "}", true, .revisions = {NULL, PREFERENCE_COPY},
     .rule = "strategy", .patch = "controllerrevisions.apps \\\"r-t\\\" not found",
     .event = "FailedFindInstancetype", .again_s = 300},
    {"a revision that is asked for and is not there",
     "{'spec':{'instancetype':{'revisionName':'mine'}}}",
     true,
     {NULL, PREFERENCE},
     .rule = "strategy",
     .patch = "controllerrevisions.apps \\\"mine\\\" not found",
     .event = "FailedFindInstancetype",
     .again_s = 300},
    {"710: a revision that is asked for is recorded",
     "{'spec':{'instancetype':{'revisionName':'mine'}}," RECORDED "}", true,
     .revisions = {TYPE_COPY, PREFERENCE_COPY}, .rule = "sizing",
     .patch = "\"controllerRevisionRef\":{\"name\":\"mine\"}", .never_patch = "preferenceRef"},
    {"a revision of another kind", "{'spec':{'instancetype':{'revisionName':'mine'}}," RECORDED "}",
     true, .revisions = {PREFERENCE_COPY, PREFERENCE_COPY}, .rule = "strategy",
     .patch = "unexpected type in ControllerRevision mine", .event = "FailedCreate",
     .again_s = 300},
    {"a kind that is none",
     "{'spec':{'instancetype':{'kind':'Pod'}}}",
     true,
     {NULL, PREFERENCE},
     .rule = "strategy",
     .patch = "got unexpected kind in InstancetypeMatcher: Pod",
     .event = "FailedCreate",
     .again_s = 300},
    {"another name is another copy",
     "{'spec':{'instancetype':{'name':'big'}}," RECORDED "}",
     true,
     {TYPE},
     {NULL, PREFERENCE_COPY},
     .vmi = "{}",
     .rule = "sizing",
     .copies = 1,
     .patch = "web-big-v1beta1-t-1"},
    {"709: a VM that runs says that it needs a restart", "{" RECORDED "}",
     .vmi = "{'metadata':{'annotations':{'ferry.io/vm-template':'another'}}}", .rule = "strategy",
     .patch = "RestartRequired", .printable = "Running"},
    {"a VM that runs can be stopped though what it names is gone",
     "{'spec':{'runStrategy':'Halted'}}", true, .vmi = "{}", .rule = "strategy", .deletes = true,
     .patch = "FailedFindInstancetype", .event = "FailedFindInstancetype", .again_s = 300},

    {"702: the machine says what the type says",
     "{'spec':{'template':{'spec':{'domain':{'memory':{'guest':'1Gi'}}}}}}",
     true,
     {TYPE, PREFERENCE},
     .rule = "strategy",
     .patch = "VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance "
              "type",
     .event = "FailedCreate",
     .printable = "Starting",
     .again_s = 300},
    {"the same of one that was kept before",
     "{'spec':{'template':{'spec':{'domain':{'cpu':{'cores':2}}}}}," RECORDED "}", true,
     .revisions = {TYPE_COPY, PREFERENCE_COPY}, .rule = "strategy",
     .patch = "spec.template.spec.domain.cpu.cores conflicts", .event = "FailedCreate",
     .again_s = 300},
    {"703: the preference requires more",
     "{}",
     true,
     {TYPE, "{'metadata':{'name':'linux','uid':'p'},'spec':{'requirements':{'cpu':{'guest':4}}}}"},
     .rule = "strategy",
     .patch = "preference requires 4 vCPU",
     .event = "FailedCreate",
     .again_s = 300},

    {"what is no longer named is forgotten",
     "{'spec':{'instancetype':null,'preference':null}," RECORDED "}", .vmi = "{}",
     .rule = "strategy", .patch = "{\"op\":\"remove\",\"path\":\"/status/instancetypeRef\"}"},
};

static struct api_object *made(const char *text)
{
    return text ? make_object(API_KIND_NONE, text, NULL) : NULL;
}

static void check_row(const struct row *r)
{
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, r->vm);
    api_cleanup_object struct api_object *vmi =
        r->vmi ? make_object(API_KIND_VMI, VMI, r->vmi) : NULL;
    api_cleanup_object struct api_object *type = made(r->objects[0]),
                                         *type_copy = made(r->revisions[0]);
    api_cleanup_object struct api_object *pref = made(r->objects[1]),
                                         *pref_copy = made(r->revisions[1]);
    const struct vm_view view = {
        .vm = vm, .vmi = vmi, .looked = r->looked, .named = {{type, type_copy}, {pref, pref_copy}}};
    const char *event = NULL, *printable = NULL;
    ferry_cleanup_buf struct ferry_buf texts = {0};
    plan_cleanup struct plan p = {0};
    size_t copies = 0;

    vm_decide(&view, NOW_MS, &p);
    for (size_t i = 0; i < p.n; i++) {
        const struct plan_action *a = &p.actions[i];

        copies += a->op == PLAN_CREATE && a->kind == API_KIND_NONE;
        event =
            a->op == PLAN_EVENT && a->event_type == KUBE_EVENT_WARNING ? a->event_reason : event;
        if (a->op == PLAN_PATCH_STATUS) {
            ferry_buf_puts(&texts, a->body);
            api_cleanup_object struct api_object *after = patched_object(vm, a->body, false);
            printable = r->printable && ferry_streq(after->u.vm.printable_status, r->printable)
                            ? r->printable
                            : printable;
        }
    }
    bool creates = plan_find(&p, PLAN_CREATE, API_KIND_VMI) != NULL;
    bool deletes = plan_find(&p, PLAN_DELETE, API_KIND_VMI) != NULL;
    if (!ferry_streq(p.rule, r->rule) || creates != r->creates || deletes != r->deletes ||
        p.confirm != r->confirm || copies != r->copies || p.again_ms != r->again_s * 1000) {
        fail_msg("%s: rule '%s' creates %d deletes %d confirm %d copies %zu again %lld\n%s",
                 r->name, p.rule, creates, deletes, p.confirm, copies, (long long)p.again_ms,
                 texts.data ? texts.data : "");
    }
    if ((r->patch && !(texts.data && strstr(texts.data, r->patch))) ||
        (r->never_patch && texts.data && strstr(texts.data, r->never_patch)) ||
        !ferry_streq(event, r->event) || !ferry_streq(printable, r->printable)) {
        fail_msg("%s: event %s, patches %s", r->name, event ? event : "none",
                 texts.data ? texts.data : "none");
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

static void test_instance(void **state)
{
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, "{" RECORDED "}");
    api_cleanup_object struct api_object *type = made(TYPE_COPY), *pref = made(PREFERENCE_COPY);
    struct ferry_error err = {0};
    struct api_object *o = NULL;
    plan_cleanup struct plan p = {0};

    (void)state;
    vm_decide(&(struct vm_view){.vm = vm, .looked = true, .named = {{NULL, type}, {NULL, pref}}},
              NOW_MS, &p);
    const struct plan_action *a = plan_find(&p, PLAN_CREATE, API_KIND_VMI);
    assert_non_null(a);
    if (api_object_parse(API_KIND_VMI, a->body, strlen(a->body), &o, &err) < 0) {
        fail_msg("%s: %s", a->body, err.msg);
    }
    api_cleanup_object struct api_object *vmi = o;
    assert_int_equal(vmi->u.vmi.vcpus, 2);
    assert_int_equal(vmi->u.vmi.memory_bytes, 64 << 20);
    assert_string_equal(vmi->u.vmi.machine.disks[0].bus, "sata");
    assert_string_equal(api_map_get(&vmi->meta->annotations, ANNOTATION_CLUSTER_INSTANCETYPE),
                        "small");
    assert_string_equal(api_map_get(&vmi->meta->annotations, ANNOTATION_PREFERENCE), "linux");
    assert_null(api_map_get(&vmi->meta->annotations, ANNOTATION_INSTANCETYPE));
}

static void test_tag(void **state)
{
    static const struct {
        const char *merge;
        bool same;
    } cases[] = {
        {"{" RECORDED "}", true},
        {"{" RECORDED ",'spec':{'runStrategy':'Manual'}}", true},
        {"{" RECORDED ",'spec':{'instancetype':{'kind':'VirtualMachineClusterInstancetype'}}}",
         true},
        {"{" RECORDED ",'spec':{'instancetype':{'name':'big'}}}", false},
        {"{" RECORDED ",'spec':{'instancetype':null}}", false},
        {"{" RECORDED ",'spec':{'preference':null}}", false},
        {"{" RECORDED ",'spec':{'instancetype':{'revisionName':'other'}}}", false},
    };
    api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, "{" RECORDED "}");
    char want[VM_TEMPLATE_TAG], got[VM_TEMPLATE_TAG];

    (void)state;
    vm_template_tag(vm, want);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = make_object(API_KIND_VM, VM, cases[i].merge);

        if ((strcmp(want, vm_template_tag(o, got)) == 0) != cases[i].same) {
            fail_msg("%s", cases[i].merge);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_instance),
                                       cmocka_unit_test(test_tag)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
