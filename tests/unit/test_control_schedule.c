#include "lib/objects.h"

#include "control/migration_limits.h"
#include "control/node_decide.h"
#include "control/pod_render.h"
#include "control/schedule_pick.h"
#include "kube/queue.h"

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
        struct schedule_pod placed[4];
        struct schedule_view view = {
            .pod = &pod->u.pod, .nodes = (const struct api_object *const *)nodes, .pods = placed};
        struct schedule_answer answer;

        for (; view.n_nodes < 3 && r->nodes[view.n_nodes]; view.n_nodes++) {
            ferry_cleanup_free char *merge =
                ferry_asprintf("[{\"op\":\"add\",\"path\":\"/metadata/name\",\"value\":\"%s\"}]",
                               names[view.n_nodes]);
            api_cleanup_object struct api_object *n =
                make_object(API_KIND_NODE, NODE, r->nodes[view.n_nodes]);

            nodes[view.n_nodes] = patched_object(n, merge, false);
        }
        for (; view.n_pods < 4 && r->others[view.n_pods].node; view.n_pods++) {
            size_t k = view.n_pods;
            ferry_cleanup_free char *uid = ferry_asprintf(
                "{'metadata':{'name':'p%zu','namespace':'ns','uid':'u%zu','resourceVersion':'1',"
                "'labels':{'kubevirt.io/created-by':'vmi-1'}},'spec':{'containers':[{'name':"
                "'compute','resources':{'requests':{'cpu':'100m','memory':'1Gi'}}}]}}",
                k, k);

            pods[k] = make_object(API_KIND_POD, uid, r->others[k].merge);
            placed[k] = (struct schedule_pod){&pods[k]->u.pod, r->others[k].node};
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
        for (size_t k = 0; k < view.n_nodes; k++) {
            api_object_unref(nodes[k]);
        }
        for (size_t k = 0; k < view.n_pods; k++) {
            api_object_unref(pods[k]);
        }
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
    api_cleanup_object struct api_object *source = make_object(API_KIND_POD, source_json, NULL);
    api_cleanup_object struct api_object *target = make_object(API_KIND_POD, target_json, NULL);
    const struct api_object *nodes[] = {a, b};
    struct schedule_pod pods[] = {{&source->u.pod, "b"}, {&target->u.pod, NULL}};
    struct schedule_answer answer;

    schedule_pick(
        &(struct schedule_view){
            .pod = &target->u.pod, .nodes = nodes, .n_nodes = 2, .pods = pods, .n_pods = 2},
        &answer);
    assert_non_null(answer.node);
    assert_string_equal(answer.node->meta.name, "a");
}

/* ---- limits ----------------------------------------------------------------------------------
 */

/* Entries as text: "NAME:NODE:PRIORITY:STATE", state a(ctive), r(eady), b(locked); in order of
 * age. */
static const struct limits_row {
    const char *name, *entries[8], *self;
    bool start;
    const char *reason;
    size_t position;
} limits_rows[] = {
    {"alone", {"1:a::r"}, "1", true, NULL, 1},
    {"22: two leave the node already",
     {"1:a::a", "2:a::a", "3:a::r"},
     "3",
     false,
     "OutboundLimit",
     1},
    {"16: from another node it may", {"1:a::a", "2:a::a", "3:b::r"}, "3", true, NULL, 1},
    {"14: cluster full",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::a", "6:f::r"},
     "6",
     false,
     "ClusterLimit",
     1},
    {"13: a fifth", {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r"}, "5", true, NULL, 1},
    {"the older takes the last place",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f::r"},
     "6",
     false,
     "ClusterLimit",
     2},
    {"and the older gets it",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f::r"},
     "5",
     true,
     NULL,
     1},
    {"priority before age",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f:system-critical:r"},
     "5",
     false,
     "ClusterLimit",
     2},
    {"priority before age, the other way",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::r", "6:f:system-critical:r"},
     "6",
     true,
     NULL,
     1},
    {"one held back by its node does not hold back others",
     {"1:a::a", "2:a::a", "3:a::r", "4:b::r"},
     "4",
     true,
     NULL,
     2},
    {"one that is not ready does not take a place",
     {"1:a::a", "2:b::a", "3:c::a", "4:d::a", "5:e::b", "6:f::r"},
     "6",
     true,
     NULL,
     2},
    {"waiting ones of a node share its places",
     {"1:a::a", "2:a::r", "3:a::r"},
     "3",
     false,
     "OutboundLimit",
     2},
    {"unknown source counts for the cluster only", {"1:::a", "2:::a", "3:::r"}, "3", true, NULL, 1},
};

static void test_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(limits_rows); i++) {
        const struct limits_row *r = &limits_rows[i];
        struct limits_ledger *l =
            limits_ledger_new(&(struct migration_limits){.cluster = 5, .outbound_per_node = 2});

        for (size_t n = 0; n < 8 && r->entries[n]; n++) {
            const char *from = r->entries[n];
            char texts[4][32];

            for (int k = 0; k < 4; k++) {
                size_t len = strcspn(from, ":");

                snprintf(texts[k], 32, "%.*s", (int)len, from);
                from += len + (from[len] == ':');
            }
            limits_ledger_put(
                l, &(struct limits_move){.uid = texts[0],
                                         .key = texts[0],
                                         .created_ms = (int64_t)n * 1000,
                                         .priority = texts[2][0] ? KUBE_PRIORITY_CRITICAL : 0,
                                         .source_node = texts[1][0] ? texts[1] : NULL,
                                         .active = texts[3][0] == 'a',
                                         .ready = texts[3][0] == 'r'});
        }
        struct limits_answer a = limits_ledger_check(l, r->self);
        if (a.start != r->start || !ferry_streq(a.reason, r->reason) || a.position != r->position) {
            fail_msg("%s: start %d reason %s position %zu", r->name, a.start,
                     a.reason ? a.reason : "-", a.position);
        }
        limits_ledger_free(l);
    }
}

/* Random changes against the answer worked out the slow way. */
enum { MOVES = 40, SITES = 4 };

static int slow_order(const void *pa, const void *pb)
{
    const struct limits_move *a = pa, *b = pb;

    return a->priority != b->priority       ? (a->priority > b->priority ? -1 : 1)
           : a->created_ms != b->created_ms ? (a->created_ms < b->created_ms ? -1 : 1)
                                            : strcmp(a->uid, b->uid);
}

static bool slow_may_start(const struct limits_move *all, size_t n, const char *uid,
                           const struct migration_limits *limits)
{
    size_t active = 0, out[SITES] = {0};

    for (size_t i = 0; i < n; i++) {
        active += all[i].active;
        out[all[i].source_node[0] - 'a'] += all[i].active;
    }
    for (size_t i = 0; i < n && active < limits->cluster; i++) {
        size_t *o = &out[all[i].source_node[0] - 'a'];

        if (!all[i].active && all[i].ready && *o < limits->outbound_per_node) {
            if (strcmp(all[i].uid, uid) == 0) {
                return true;
            }
            ++*o;
            active++;
        }
    }
    return false;
}

static void test_ledger_at_random(void **state)
{
    static const char *const nodes[SITES] = {"a", "b", "c", "d"};
    const struct migration_limits limits = {
        .cluster = 7, .outbound_per_node = 2, .inbound_per_node = 2};
    struct limits_ledger *l = limits_ledger_new(&limits);
    char uids[MOVES][8];
    struct limits_move all[MOVES];
    bool in[MOVES] = {false};
    unsigned seed = 7;
    (void)state;

    for (int i = 0; i < MOVES; i++) {
        snprintf(uids[i], sizeof(uids[i]), "u%02d", i);
    }
    for (int step = 0; step < 4000; step++) {
        int i = rand_r(&seed) % MOVES;

        if (in[i] && rand_r(&seed) % 4 == 0) {
            limits_ledger_drop(l, uids[i]);
            in[i] = false;
        } else {
            all[i] = (struct limits_move){.uid = uids[i],
                                          .key = uids[i],
                                          .source_node = nodes[rand_r(&seed) % SITES],
                                          .priority = rand_r(&seed) % 3,
                                          .created_ms = rand_r(&seed) % 5,
                                          .active = rand_r(&seed) % 8 == 0,
                                          .ready = rand_r(&seed) % 2};
            limits_ledger_put(l, &all[i]);
            in[i] = true;
        }
        struct limits_move sorted[MOVES];
        size_t n = 0, waiting = 0;
        for (int k = 0; k < MOVES; k++) {
            if (in[k]) {
                sorted[n++] = all[k];
            }
        }
        qsort(sorted, n, sizeof(sorted[0]), slow_order);
        for (size_t k = 0; k < n; k++) {
            struct limits_answer a = limits_ledger_check(l, sorted[k].uid);
            bool start = slow_may_start(sorted, n, sorted[k].uid, &limits);

            waiting += !sorted[k].active;
            if (a.start != start || a.position != (sorted[k].active ? 0 : waiting)) {
                fail_msg("step %d, %s: start %d, expected %d; position %zu of %zu", step,
                         sorted[k].uid, a.start, start, a.position, waiting);
            }
        }
    }
    limits_ledger_free(l);
}

/* A budget may be used up, and not by a byte more. */
static void test_budget_to_the_last_byte(void **state)
{
    static const struct {
        int64_t bandwidth;
        bool start;
    } rows[] = {{60, true}, {61, false}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct limits_ledger *l =
            limits_ledger_new(&(struct migration_limits){.cluster = 5,
                                                         .outbound_per_node = 5,
                                                         .inbound_per_node = 5,
                                                         .bandwidth_per_node = 100});

        limits_ledger_put(
            l, &(struct limits_move){
                   .uid = "a", .key = "a", .source_node = "n", .bandwidth = 40, .active = true});
        limits_ledger_put(l, &(struct limits_move){.uid = "b",
                                                   .key = "b",
                                                   .source_node = "n",
                                                   .bandwidth = rows[i].bandwidth,
                                                   .ready = true});
        struct limits_answer answer = limits_ledger_check(l, "b");
        assert_int_equal(answer.start, rows[i].start);
        assert_true(answer.start || ferry_streq(answer.reason, "BandwidthBudget"));
        limits_ledger_free(l);
    }
}

static void test_ledger_of_nodes(void **state)
{
    struct limits_ledger *l = limits_ledger_new(&(struct migration_limits){
        .cluster = 10, .outbound_per_node = 9, .inbound_per_node = 1, .bandwidth_per_node = 100});
    struct limits_move one = {.uid = "1",
                              .key = "n/1",
                              .source_node = "a",
                              .target_node = "z",
                              .bandwidth = 60,
                              .active = true,
                              .handed_off = true};
    struct limits_move two = {.uid = "2",
                              .key = "n/2",
                              .source_node = "b",
                              .target_node = "z",
                              .bandwidth = 30,
                              .active = true};
    struct limits_move three = {
        .uid = "3", .key = "n/3", .source_node = "a", .bandwidth = 50, .ready = true};
    (void)state;

    limits_ledger_put(l, &one);
    limits_ledger_put(l, &two);
    limits_ledger_put(l, &three);
    struct limits_answer a = limits_ledger_check(l, "2");
    assert_false(a.enter);
    assert_string_equal(a.enter_reason, "InboundLimit");
    assert_string_equal(a.enter_blocker, "n/1");
    a = limits_ledger_check(l, "3");
    assert_false(a.start);
    assert_string_equal(a.reason, "BandwidthBudget");
    assert_string_equal(a.blocker, "n/1");
    limits_ledger_drop(l, "1");
    assert_true(limits_ledger_check(l, "2").enter);
    assert_true(limits_ledger_check(l, "3").start);
    assert_string_equal(limits_ledger_next(l, 0), "n/3");
    /* A claim holds the place until it shows. */
    limits_ledger_claim(l, "3", false);
    assert_true(limits_ledger_check(l, "3").start);
    assert_int_equal(limits_ledger_check(l, "3").running, 2);
    assert_null(limits_ledger_next(l, 0));
    limits_ledger_disclaim(l, "3");
    assert_string_equal(limits_ledger_next(l, 0), "n/3");
    limits_ledger_free(l);
}

/* ---- node_decide -----------------------------------------------------------------------------
 */

static void test_node(void **state)
{
    static const struct {
        const char *merge;
        int64_t silent_ms;
        bool patches;
        int64_t again_ms;
    } cases[] = {
        {"{}", 0, false, 40000},
        {"{}", 39999, false, 1},
        {"{}", 40000, true, 0},
        {"{'status':{'conditions':[{'type':'Ready','status':'False'}]}}", 50000, true, 0},
        {"{'status':{'conditions':null}}", 50000, true, 0},
        {"{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}", 50000, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *node =
            make_object(API_KIND_NODE, NODE, cases[i].merge);
        plan_cleanup struct plan p = {0};

        node_decide(node, cases[i].silent_ms, 1767225600000, &p);
        const struct plan_action *a = plan_find(&p, PLAN_PATCH_STATUS, API_KIND_NODE);
        assert_int_equal(a != NULL, cases[i].patches);
        assert_int_equal(p.again_ms, cases[i].again_ms);
        if (a) {
            api_cleanup_object struct api_object *after = patched_object(node, a->body, false);
            const struct api_condition *c = api_condition_find(&after->u.node.conditions, "Ready");

            assert_string_equal(c->status, "Unknown");
            assert_int_equal(after->u.node.conditions.n, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks),
        cmocka_unit_test(test_target_goes_elsewhere),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ledger_at_random),
        cmocka_unit_test(test_budget_to_the_last_byte),
        cmocka_unit_test(test_ledger_of_nodes),
        cmocka_unit_test(test_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
