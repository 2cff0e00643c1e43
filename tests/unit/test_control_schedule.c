#include "lib/objects.h"

#include "control/pod/pod_render.h"
#include "control/schedule/schedule_pick.h"

/* ---- schedule_pick ---------------------------------------------------------------------------
 */

static const char NODE[] =
    "{'metadata':{'name':'n','resourceVersion':'1','labels':{'kubevirt.io/"
    "schedulable':'true'}},'status':{'allocatable':{'cpu':'4',"
    "'memory':'4Gi','pods':'10'},'conditions':[{'type':'Ready','status':'True'}]}}";
static const char POD[] =
    "{'metadata':{'name':'p','namespace':'ns','uid':'new','labels':{'kubevirt.io/created-by':"
    "'vmi-1'}},'spec':{'containers':[{'name':'compute','resources':{'requests':{'cpu':'100m',"
    "'memory':'1Gi'}}}]}}";

#define APART                                                                                      \
    "{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"  \
    "'labelSelector':{'matchLabels':{'kubevirt.io/created-by':'vmi-1'}},'topologyKey':"            \
    "'kubernetes.io/hostname'}]}}}}"
#define APART_EXPRESSION                                                                           \
    "{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"  \
    "'labelSelector':{'matchExpressions':[{'key':'kubevirt.io/created-by','operator':'In',"        \
    "'values':['vmi-1']}]},'topologyKey':'kubernetes.io/hostname'}]}}}}"

#define TAINT(effect) "{'spec':{'taints':[{'key':'gpu','value':'big','effect':'" effect "'}]}}"
#define ZONE(z) "{'metadata':{'labels':{'zone':'" z "'}}}"
#define NODE_AFFINITY(e)                                                                           \
    "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"      \
    "'nodeSelectorTerms':[{'matchExpressions':[{" e "}]}]}}}}}"
#define TOGETHER(key)                                                                              \
    "{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"      \
    "'labelSelector':{'matchLabels':{'kubevirt.io/created-by':'vmi-1'}},'topologyKey':'" key       \
    "'}]}}}}"
#define SPREAD(skew, when)                                                                         \
    "{'spec':{'topologySpreadConstraints':[{'maxSkew':" skew                                       \
    ",'topologyKey':'zone','whenUnsatisfiable':'" when                                             \
    "','labelSelector':{'matchLabels':{'kubevirt.io/created-by':'vmi-1'}}}]}}"
#define REQUESTS(r) "{'spec':{'containers':[{'name':'compute','resources':{'requests':{" r "}}}]}}"
#define USES "{'spec':{'volumes':[{'name':'x','persistentVolumeClaim':{'claimName':'data'}}]}}"
#define BOUND "{'spec':{'volumeName':'v0'},'status':{'phase':'Bound'}}"
#define LOCAL(node)                                                                                \
    "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"       \
    "'kubernetes.io/hostname','operator':'In','values':['" node "']}]}]}}}}"

static const struct pick_row {
    const char *name, *pod;
    const char *nodes[3]; /* merges; named a, b, c */
    struct {
        const char *node, *merge;
    } others[4]; /* pods that are there */
    const char *want, *message;
    const char *claim, *class; /* merges; NULL = none */
    const char *volumes[2];    /* merges; named v0, v1 */
    const char *keeps;         /* volume to be kept for the claim */
} picks[] = {
    {"an empty node", "{}", {"{}"}, .want = "a"},
    {"no node at all", "{}", {NULL}, .message = "no nodes available to schedule pods"},
    {"the emptier one", "{}", {"{}", "{}"}, {{"a", "{}"}}, .want = "b"},
    {"the larger one", "{}", {"{}", "{'status':{'allocatable':{'memory':'16Gi'}}}"}, .want = "b"},
    {"the first of equals", "{}", {"{}", "{}", "{}"}, .want = "a"},
    {"not ready",
     "{}",
     {"{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}", "{}"},
     .want = "b"},
    {"never reported",
     "{}",
     {"{'status':{'conditions':null}}"},
     .message = "0/1 nodes are available: 1 node(s) were not ready."},
    {"cordoned",
     "{}",
     {"{'spec':{'unschedulable':true}}"},
     .message = "0/1 nodes are available: 1 node(s) were unschedulable."},
    {"selector",
     "{'spec':{'nodeSelector':{'zone':'2'}}}",
     {"{'metadata':{'labels':{'zone':'1'}}}", "{'metadata':{'labels':{'zone':'2'}}}"},
     .want = "b"},
    {"selector by host name, without the label",
     "{'spec':{'nodeSelector':{'kubernetes.io/hostname':'b'}}}",
     {"{}", "{}"},
     .want = "b"},
    {"selector of nobody",
     "{'spec':{'nodeSelector':{'zone':'9'}}}",
     {"{}", "{}"},
     .message = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
    {"memory",
     "{}",
     {"{}"},
     {{"a", "{}"}, {"a", "{}"}, {"a", "{}"}, {"a", "{}"}},
     .message = "0/1 nodes are available: 1 Insufficient memory."},
    {"memory to the last byte", "{}", {"{}"}, {{"a", "{}"}, {"a", "{}"}, {"a", "{}"}}, .want = "a"},
    {"memory, one byte more",
     REQUESTS("'cpu':'100m','memory':'1073741825'"),
     {"{}"},
     {{"a", "{}"}, {"a", "{}"}, {"a", "{}"}},
     .message = "0/1 nodes are available: 1 Insufficient memory."},
    {"cpu to the last share", REQUESTS("'cpu':'4'"), {"{}"}, .want = "a"},
    {"cpu, one share more",
     REQUESTS("'cpu':'4001m'"),
     {"{}"},
     .message = "0/1 nodes are available: 1 Insufficient cpu."},
    {"huge pages to the last",
     REQUESTS("'hugepages-2Mi':'4Mi','hugepages-1Gi':'1Gi'"),
     {"{'status':{'allocatable':{'hugepages-2Mi':'4Mi','hugepages-1Gi':'1Gi'}}}"},
     .want = "a"},
    {"huge pages of 1 GiB, one more",
     REQUESTS("'hugepages-1Gi':'1Gi'"),
     {"{'status':{'allocatable':{'hugepages-1Gi':'1Gi'}}}"},
     {{"a", REQUESTS("'hugepages-1Gi':'1Gi'")}},
     .message = "0/1 nodes are available: 1 Insufficient hugepages-1Gi."},
    {"finished pods need nothing",
     "{}",
     {"{}"},
     {{"a", "{'status':{'phase':'Succeeded'}}"},
      {"a", "{'status':{'phase':'Failed'}}"},
      {"a", "{}"},
      {"a", "{}"}},
     .want = "a"},
    {"cpu",
     "{'spec':{'containers':[{'name':'compute','resources':{'requests':{'cpu':'5'}}}]}}",
     {"{}"},
     .message = "0/1 nodes are available: 1 Insufficient cpu."},
    {"pods",
     "{}",
     {"{'status':{'allocatable':{'pods':'1'}}}"},
     {{"a", "{}"}},
     .message = "0/1 nodes are available: 1 Too many pods."},
    {"anti-affinity", APART, {"{}", "{}"}, {{"a", "{}"}}, .want = "b"},
    {"anti-affinity by expression", APART_EXPRESSION, {"{}", "{}"}, {{"b", "{}"}}, .want = "a"},
    {"anti-affinity against a pod that is being deleted",
     APART,
     {"{}"},
     {{"a", "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}}"}},
     .message = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."},
    {"anti-affinity not against finished pods",
     APART,
     {"{}"},
     {{"a", "{'status':{'phase':'Failed'}}"}},
     .want = "a"},
    {"anti-affinity not against other VMs",
     APART,
     {"{}"},
     {{"a", "{'metadata':{'labels':{'kubevirt.io/created-by':'vmi-2'}}}"}},
     .want = "a"},
    {"anti-affinity not against other namespaces",
     APART,
     {"{}"},
     {{"a", "{'metadata':{'namespace':'other'}}"}},
     .want = "a"},
    {"reasons together, as kube-scheduler writes them",
     APART,
     {"{}", "{'status':{'allocatable':{'memory':'512Mi'}}}"},
     {{"a", "{}"}},
     .message = "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match pod "
                "anti-affinity rules."},
    {"rules it does not know are not ignored",
     "{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
     "'labelSelector':{},'namespaceSelector':{},'topologyKey':'x'}]}}}}",
     {"{}"},
     .message = "0/1 nodes are available: 1 node(s) refused affinity rules that this scheduler "
                "does not know."},
    {"nor are operators",
     "{'spec':{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
     "'labelSelector':{'matchExpressions':[{'key':'a','operator':'Near'}]},'topologyKey':'x'}]}}}}",
     {"{}"},
     .message = "0/1 nodes are available: 1 node(s) refused affinity rules that this scheduler "
                "does not know."},
    {"preferences may be ignored",
     "{'spec':{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]}}}"
     "}",
     {"{}"},
     .want = "a"},

    {"taint",
     "{}",
     {TAINT("NoSchedule")},
     .message = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
    {"taint that is tolerated",
     "{'spec':{'tolerations':[{'key':'gpu','value':'big'}]}}",
     {TAINT("NoExecute")},
     .want = "a"},
    {"taint that is tolerated whatever its value",
     "{'spec':{'tolerations':[{'key':'gpu','operator':'Exists','effect':'NoSchedule'}]}}",
     {TAINT("NoSchedule")},
     .want = "a"},
    {"toleration of another effect",
     "{'spec':{'tolerations':[{'key':'gpu','operator':'Exists','effect':'NoExecute'}]}}",
     {TAINT("NoSchedule")},
     .message = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
    {"toleration of everything",
     "{'spec':{'tolerations':[{'operator':'Exists'}]}}",
     {TAINT("NoSchedule")},
     .want = "a"},
    {"a taint that only would rather not", "{}", {TAINT("PreferNoSchedule"), "{}"}, .want = "b"},
    {"a taint that only would rather not, and nothing else",
     "{}",
     {TAINT("PreferNoSchedule")},
     .want = "a"},

    {"node affinity: In",
     NODE_AFFINITY("'key':'zone','operator':'In','values':['2','3']"),
     {ZONE("1"), ZONE("2")},
     .want = "b"},
    {"node affinity: NotIn",
     NODE_AFFINITY("'key':'zone','operator':'NotIn','values':['1']"),
     {ZONE("1"), "{}"},
     .want = "b"},
    {"node affinity: Exists",
     NODE_AFFINITY("'key':'zone','operator':'Exists'"),
     {"{}", ZONE("1")},
     .want = "b"},
    {"node affinity: DoesNotExist",
     NODE_AFFINITY("'key':'zone','operator':'DoesNotExist'"),
     {ZONE("1")},
     .message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
    {"node affinity: Gt",
     NODE_AFFINITY("'key':'zone','operator':'Gt','values':['1']"),
     {ZONE("1"), ZONE("2")},
     .want = "b"},
    {"node affinity: Lt of no number",
     NODE_AFFINITY("'key':'zone','operator':'Lt','values':['9']"),
     {ZONE("x")},
     .message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
    {"node affinity: by name",
     "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
     "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['b']}]}"
     "]}}}}}",
     {"{}", "{}"},
     .want = "b"},
    {"node affinity: preferred",
     "{'spec':{'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
     "'weight':5,'preference':{'matchExpressions':[{'key':'zone','operator':'In','values':['1']}]}}"
     "]}}}}",
     {"{}", ZONE("1")},
     {{"b", "{}"}},
     .want = "b"},

    {"affinity: where the other is",
     TOGETHER("kubernetes.io/hostname"),
     {"{}", "{}"},
     {{"b", "{}"}},
     .want = "b"},
    {"affinity: in its zone",
     TOGETHER("zone"),
     {ZONE("1"), ZONE("2"), ZONE("2")},
     {{"b", "{}"}, {"b", "{}"}},
     .want = "c"},
    {"affinity: nobody there yet, but it is one itself",
     TOGETHER("zone"),
     {ZONE("1")},
     .want = "a"},
    {"affinity: nobody there, and it is none itself",
     "{'metadata':{'labels':{'kubevirt.io/created-by':'vmi-2'}},'spec':{'affinity':{'podAffinity':{"
     "'requiredDuringSchedulingIgnoredDuringExecution':[{'labelSelector':{'matchLabels':{"
     "'kubevirt.io/created-by':'vmi-1'}},'topologyKey':'zone'}]}}}}",
     {ZONE("1")},
     .message = "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."},
    {"anti-affinity of those that are there", "{}", {"{}", "{}"}, {{"a", APART}}, .want = "b"},
    {"anti-affinity of those that are there, everywhere",
     "{}",
     {"{}"},
     {{"a", APART}},
     .message = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity "
                "rules."},

    {"spread: to the emptier zone",
     SPREAD("1", "DoNotSchedule"),
     {ZONE("1"), ZONE("2")},
     {{"a", "{}"}},
     .want = "b"},
    {"spread: not beyond the skew",
     SPREAD("1", "DoNotSchedule"),
     {ZONE("1"), "{'metadata':{'labels':{'zone':'2'}},'status':{'allocatable':{'memory':'1Mi'}}}"},
     {{"a", "{}"}},
     .message = "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match pod "
                "topology spread constraints."},
    {"spread: a skew of two may be",
     SPREAD("2", "DoNotSchedule"),
     {ZONE("1"), "{'metadata':{'labels':{'zone':'2'}},'status':{'allocatable':{'memory':'1Mi'}}}"},
     {{"a", "{}"}},
     .want = "a"},
    {"spread: a node without the label",
     SPREAD("1", "DoNotSchedule"),
     {"{}"},
     .message = "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints "
                "(missing required label)."},
    {"spread: only preferred",
     SPREAD("1", "ScheduleAnyway"),
     {"{'metadata':{'labels':{'zone':'1'}},'status':{'allocatable':{'memory':'64Gi'}}}", ZONE("2")},
     {{"a", "{}"}},
     .want = "b"},

    {"huge pages",
     REQUESTS("'hugepages-2Mi':'4Mi'"),
     {"{}", "{'status':{'allocatable':{'hugepages-2Mi':'8Mi'}}}"},
     .want = "b"},
    {"huge pages in use",
     REQUESTS("'hugepages-2Mi':'4Mi'"),
     {"{'status':{'allocatable':{'hugepages-2Mi':'6Mi'}}}"},
     {{"a", REQUESTS("'hugepages-2Mi':'4Mi'")}},
     .message = "0/1 nodes are available: 1 Insufficient hugepages-2Mi."},
    {"devices",
     REQUESTS("'v.com/gpu':'1'"),
     {"{}", "{'status':{'allocatable':{'v.com/gpu':'1'}}}"},
     .want = "b"},
    {"devices in use",
     REQUESTS("'v.com/gpu':'1'"),
     {"{'status':{'allocatable':{'v.com/gpu':'1'}}}"},
     {{"a", REQUESTS("'v.com/gpu':'1'")}},
     .message = "0/1 nodes are available: 1 Insufficient v.com/gpu."},

    {"volume: no such claim",
     USES,
     {"{}"},
     .message = "0/1 nodes are available: persistentvolumeclaim \"data\" not found."},
    {"volume: not bound",
     USES,
     {"{}"},
     .claim = "{}",
     .message = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
    {"volume: on one node",
     USES,
     {"{}", "{}"},
     .claim = BOUND,
     .volumes = {LOCAL("b")},
     .want = "b"},
    {"volume: everywhere", USES, {"{}", "{}"}, .claim = BOUND, .volumes = {"{}"}, .want = "a"},
    {"volume: on another node",
     USES,
     {"{}"},
     .claim = BOUND,
     .volumes = {LOCAL("b")},
     .message = "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node "
                "affinity."},
    {"volume: bound with the pod, where there is one",
     USES,
     {"{}", "{}"},
     .claim = "{}",
     .class = "{}",
     .volumes = {LOCAL("b")},
     .want = "b",
     .keeps = "v0"},
    {"volume: the smallest that fits",
     USES,
     {"{}"},
     .claim = "{}",
     .class = "{}",
     .volumes = {"{'spec':{'capacity':{'storage':'9Gi'}}}", "{}"},
     .want = "a",
     .keeps = "v1"},
    {"volume: none that is free",
     USES,
     {"{}"},
     .claim = "{}",
     .class = "{}",
     .volumes = {"{'spec':{'claimRef':{'name':'x','namespace':'ns'}}}"},
     .message = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to "
                "bind."},
};

static const char CLAIM[] =
    "{'metadata':{'name':'data','namespace':'ns','uid':'c1','resourceVersion':'1'},'spec':{"
    "'storageClassName':'slow','accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':"
    "'1Gi'}}},'status':{'phase':'Pending'}}";
static const char VOLUME[] =
    "{'metadata':{'name':'v','resourceVersion':'1'},'spec':{'storageClassName':'slow',"
    "'accessModes':['ReadWriteOnce'],'capacity':{'storage':'2Gi'}},'status':{'phase':'Available'}}";
static const char CLASS[] = "{'metadata':{'name':'slow'},'provisioner':'x','volumeBindingMode':"
                            "'WaitForFirstConsumer'}";

static void test_picks(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(picks); i++) {
        const struct pick_row *r = &picks[i];
        struct api_object *pod = make_object(API_KIND_POD, POD, r->pod), *nodes[3], *pods[4];
        struct schedule_view view = {.pod = &pod->u.pod, .index = schedule_index_new()};
        struct schedule_answer answer;
        size_t n_nodes = 0, n_pods = 0;

        for (; n_nodes < 3 && r->nodes[n_nodes]; n_nodes++) {
            ferry_cleanup_free char *merge = ferry_asprintf(
                "[{\"op\":\"add\",\"path\":\"/metadata/name\",\"value\":\"%s\"}]", names[n_nodes]);
            api_cleanup_object struct api_object *n =
                make_object(API_KIND_NODE, NODE, r->nodes[n_nodes]);

            nodes[n_nodes] = patched_object(n, merge, false);
            schedule_index_put_node(view.index, nodes[n_nodes]);
        }
        for (; n_pods < 4 && r->others[n_pods].node; n_pods++) {
            size_t k = n_pods;
            ferry_cleanup_free char *uid = ferry_asprintf(
                "{'metadata':{'name':'p%zu','namespace':'ns','uid':'u%zu','resourceVersion':'1',"
                "'labels':{'kubevirt.io/created-by':'vmi-1'}},'spec':{'containers':[{'name':"
                "'compute','resources':{'requests':{'cpu':'100m','memory':'1Gi'}}}]}}",
                k, k);

            pods[k] = make_object(API_KIND_POD, uid, r->others[k].merge);
            schedule_index_put_pod(view.index, pods[k]);
            schedule_index_assume(view.index, pods[k]->meta->uid, r->others[k].node);
        }
        api_cleanup_object struct api_object *claim =
            r->claim ? make_object(API_KIND_CLAIM, CLAIM, r->claim) : NULL;
        api_cleanup_object struct api_object *class =
            r->class ? make_object(API_KIND_STORAGE_CLASS, CLASS, r->class) : NULL;
        struct api_object *volumes[2] = {0};

        for (size_t k = 0; k < 2 && r->volumes[k]; k++) {
            ferry_cleanup_free char *rename = ferry_asprintf(
                "[{\"op\":\"add\",\"path\":\"/metadata/name\",\"value\":\"v%zu\"}]", k);
            api_cleanup_object struct api_object *v =
                make_object(API_KIND_VOLUME, VOLUME, r->volumes[k]);

            volumes[k] = patched_object(v, rename, false);
            view.n_volumes++;
        }
        view.claims = (const struct api_object *const *)&claim;
        view.n_claims = claim != NULL;
        view.classes = (const struct api_object *const *)&class;
        view.n_classes = class != NULL;
        view.volumes = (const struct api_object *const *)volumes;
        schedule_pick(&view, &answer);
        if (answer.n_keep != (r->keeps != NULL) ||
            (r->keeps && !ferry_streq(answer.keep[0].volume->meta->name, r->keeps))) {
            fail_msg("%s: keeps %zu volumes", r->name, answer.n_keep);
        }
        api_object_unref(volumes[0]);
        api_object_unref(volumes[1]);
        if (!ferry_streq(answer.node ? answer.node->meta.name : NULL, r->want) ||
            (r->message && strcmp(answer.message, r->message) != 0)) {
            fail_msg("%s: node %s, '%s'", r->name, answer.node ? answer.node->meta.name : "none",
                     answer.message);
        }
        for (size_t k = 0; k < n_nodes; k++) {
            api_object_unref(nodes[k]);
        }
        for (size_t k = 0; k < n_pods; k++) {
            api_object_unref(pods[k]);
        }
        schedule_index_free(view.index);
        api_object_unref(pod);
    }
}

/* What pod_render writes is what schedule_pick understands. */
static void test_target_goes_elsewhere(void **state)
{
    (void)state;
    static const char VMI[] = "{'metadata':{'name':'web','namespace':'ns','uid':'vmi-1'},'spec':{"
                              "'domain':{'memory':{'guest':'64Mi'}}}}";
    static const char MOVE[] = "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1'},'spec':"
                               "{'vmiName':'web'}}";
    api_cleanup_object struct api_object *vmi = make_object(API_KIND_VMI, VMI, NULL);
    api_cleanup_object struct api_object *move = make_object(API_KIND_MIGRATION, MOVE, NULL);
    api_cleanup_object struct api_object *a =
        make_object(API_KIND_NODE, NODE, "{'metadata':{'name':'a'}}");
    api_cleanup_object struct api_object *b =
        make_object(API_KIND_NODE, NODE, "{'metadata':{'name':'b'}}");
    struct pod_settings settings = {.launcher_image = "x"};
    ferry_cleanup_free char *source_json =
        pod_render(&(struct pod_request){.vmi = &vmi->u.vmi, .settings = &settings});
    ferry_cleanup_free char *target_json = pod_render(&(struct pod_request){
        .vmi = &vmi->u.vmi, .migration = &move->u.migration, .settings = &settings});
    api_cleanup_object struct api_object *source =
        make_object(API_KIND_POD, source_json, "{'metadata':{'uid':'source'}}");
    api_cleanup_object struct api_object *target =
        make_object(API_KIND_POD, target_json, "{'metadata':{'uid':'target'}}");
    struct schedule_index *index = schedule_index_new();
    struct schedule_answer answer;

    schedule_index_put_node(index, b);
    schedule_index_put_node(index, a);
    schedule_index_put_pod(index, source);
    schedule_index_put_pod(index, target);
    schedule_index_assume(index, source->meta->uid, "b");
    schedule_pick(&(struct schedule_view){.pod = &target->u.pod, .index = index}, &answer);
    assert_non_null(answer.node);
    assert_string_equal(answer.node->meta.name, "a");
    schedule_index_free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks),
        cmocka_unit_test(test_target_goes_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
