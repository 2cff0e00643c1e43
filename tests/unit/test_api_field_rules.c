/* Which node writes which field of a VMI, and when: the table, by what handlers write and by what a
 * node that was taken over would. `test_api_field_rules --rows` prints the rows, so that tests can
 * have real API servers judge them, too. */
#include "lib/objects.h"

#include "api/owners/field_rules.h"
#include "api/wire/wire_keys.h"

#define VMI(labels, notes, status)                                                                 \
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'v',"       \
    "'uid':'u','labels':{'app':'x'" labels "},'annotations':{'ferry.io/addresses':'{}'" notes      \
    "}},'spec':{'domain':{}},'status':{'runtimeUser':7,'volumeStatus':[{'name':'d'}],"             \
    "'activePods':{'p':'a'}," status "}}"
#define ON(node) ",'kubevirt.io/nodeName':'" node "'"
#define TO(node) ",'kubevirt.io/migrationTargetNodeName':'" node "'"
#define STATE(more)                                                                                \
    "'migrationState':{'migrationUid':'m','sourceNode':'a','sourcePod':'p','targetNode':'b',"      \
    "'targetPod':'q','migrationConfiguration':{'allowPostCopy':true}" more "}"
#define PHASE_ON(phase, node) "'phase':'" phase "','nodeName':'" node "'"
#define CONDITIONS                                                                                 \
    "'conditions':[{'type':'EvictionRequested','status':'True'},{'type':'Ready','status':'True'}]"
#define PORTS ",'targetNodeAddress':'10.0.0.2','targetDirectMigrationNodePorts':{'4000':0}"
#define FIRST ",'startTimestamp':'2026-01-01T00:00:00Z'"
#define LAST ",'endTimestamp':'2026-01-01T00:00:09Z'"
#define FAILED ",'completed':true,'failed':true" FIRST LAST

static const char pending[] = VMI("", "", "'phase':'Pending'");
static const char scheduled[] = VMI(ON("a"), "", PHASE_ON("Scheduled", "a"));
static const char running[] = VMI(ON("a"), "", PHASE_ON("Running", "a") "," CONDITIONS);
static const char over[] = VMI(ON("a"), "", PHASE_ON("Succeeded", "a"));
static const char begins[] = VMI(ON("a") TO("b"), "", PHASE_ON("Running", "a") "," STATE(""));
static const char moving[] =
    VMI(ON("a") TO("b"), "", PHASE_ON("Running", "a") "," CONDITIONS "," STATE(PORTS FIRST));
static const char arrived[] =
    VMI(ON("b") TO("b"), "", PHASE_ON("Running", "b") "," STATE(PORTS FIRST LAST));
static const char moved[] =
    VMI(ON("b"), "", PHASE_ON("Running", "b") "," STATE(PORTS FIRST LAST ",'completed':true"));
static const char moved_now[] = VMI(
    ON("b") TO("b"), "", PHASE_ON("Running", "b") "," STATE(PORTS FIRST LAST ",'completed':true"));
static const char failed[] =
    VMI(ON("a") TO("b"), "", PHASE_ON("Running", "a") "," STATE(PORTS FAILED));
static const char unconfirmed[] = VMI(ON("a") TO("b"), ",'ferry.io/unconfirmed':'m'",
                                      PHASE_ON("Running", "a") "," STATE(PORTS FAILED));
static const char let_go[] =
    VMI(ON("a"), ",'ferry.io/unconfirmed':'m'", PHASE_ON("Running", "a") "," STATE(PORTS FAILED));
static const char of_another[] = VMI(ON("a") TO("b"), ",'ferry.io/unconfirmed':'older'",
                                     PHASE_ON("Running", "a") "," STATE(PORTS FAILED));

#define S(more) "{'status':{" more "}}"
#define M(more) "{'status':{'migrationState':{" more "}}}"
#define NOTE(key, value) "{'metadata':{'annotations':{'ferry.io/" key "':" value "}}}"
#define MARK(key, value) "{'metadata':{'labels':{'" key "':" value "}}}"
#define TAKE(node, more)                                                                           \
    "{'metadata':{'labels':{'kubevirt.io/nodeName':'" node "'}},'status':{'nodeName':'" node       \
    "','activePods':{'p':null,'q':'" node "'},'migrationTransport':'Unix','migrationState':{"      \
    "'targetNodeDomainDetected':true,'targetNodeDomainReadyTimestamp':'2026-01-01T00:00:09Z'" more \
    "}}}"
#define FAIL                                                                                       \
    "'failed':true,'completed':true,'failureReason':'x','endTimestamp':'2026-01-01T00:00:09Z'"

static const struct {
    const char *name, *before, *node, *merge, *refused; /* in the text; NULL = allowed */
} rows[] = {
    /* what runs a guest says how it is */
    {"it runs", scheduled, "a",
     S("'phase':'Running','phaseTransitionTimestamps':[{'phase':'Running',"
       "'phaseTransitionTimestamp':'2026-01-01T00:00:00Z'}],'interfaces':[{'name':'x'}],"
       "'machine':{'type':'q35'},'migrationMethod':'LiveMigration','migrationTransport':'Unix',"
       "'conditions':[{'type':'Ready','status':'True'},{'type':'LiveMigratable','status':'True'},"
       "{'type':'StorageLiveMigratable','status':'True'},{'type':'Paused','status':'True'},"
       "{'type':'Synchronized','status':'True'}]"),
     NULL},
    {"it ended", running, "a", S("'phase':'Succeeded'"), NULL},
    {"it crashed", moving, "a", S("'phase':'Failed'"), NULL},
    {"nothing is changed", running, "a", "{}", NULL},
    {"by somebody else", running, "c", S("'phase':'Failed'"), "status.phase: that is for the node"},
    {"by nobody", running, "", S("'phase':'Failed'"), "status.phase"},
    {"what is over stays over", over, "a", S("'phase':'Running'"), "status.phase"},
    {"no phase of the controller", running, "a", S("'phase':'Scheduled'"), "status.phase"},
    {"no phase at all", running, "a", S("'phase':null"), "status.phase"},
    {"of a guest that is on no node", pending, "a", S("'phase':'Running'"), "status.phase"},
    {"a VMI that is on no node", pending, "a", S("'nodeName':'a'"), "status.nodeName"},
    {"to be moved away", running, "a", S("'evacuationNodeName':'a'"),
     "status.evacuationNodeName: no node writes that"},
    {"another's user", running, "a", S("'runtimeUser':8"), "status.runtimeUser"},
    {"volumes", running, "a", S("'volumeStatus':[]"), "status.volumeStatus"},
    {"no user any more", running, "a", S("'runtimeUser':null"), "status.runtimeUser"},
    {"volumes to be exchanged", running, "a", S("'migratedVolumes':[{}]"),
     "status.migratedVolumes"},
    {"a reason of a guest that runs", running, "a", S("'reason':'x'"), "status.reason"},
    {"why it failed", running, "a", S("'phase':'Failed','reason':'OutOfMemory'"), NULL},
    {"why another's failed", running, "b", S("'reason':'OutOfMemory'"), "status.reason"},
    {"that it was reset", running, "a", S("'conditions':[{'type':'GuestReset','status':'True'}]"),
     ""},
    {"a field that nobody knows", running, "a", S("'x':1"), "status.x: no node writes that"},
    {"no status", running, "a", "{'status':null}", "status."},
    {"a status that is none", running, "a", "{'status':[]}", "/status"},
    {"a pod", running, "a", S("'activePods':{'p':'a','r':'a'}"), "status.activePods"},
    {"gives it to another", running, "a", S("'nodeName':'b'"), "status.nodeName"},
    {"gives it to nobody", running, "a", S("'nodeName':null"), "status.nodeName"},
    {"gives it to another by the label", running, "a", MARK("kubevirt.io/nodeName", "'b'"),
     "the label kubevirt.io/nodeName"},
    {"a label", running, "a", MARK("app", "'y'"), "the label app: no node writes that"},
    {"no label", running, "a", MARK("app", "null"), "the label app"},
    {"no labels", running, "a", "{'metadata':{'labels':null}}", "the label "},
    {"a target's label", running, "a", MARK("kubevirt.io/migrationTargetNodeName", "'a'"),
     "the label kubevirt.io/migrationTargetNodeName"},
    {"an annotation", running, "a", "{'metadata':{'annotations':{'x':'y'}}}", "the annotation x"},
    {"others' annotations go", running, "a", "{'metadata':{'annotations':null}}",
     "the annotation ferry.io/addresses"},
    {"a condition of the controller", running, "a",
     S("'conditions':[{'type':'EvictionRequested','status':'False'},{'type':'Ready',"
       "'status':'True'}]"),
     "status.conditions EvictionRequested"},
    {"it goes", running, "a", S("'conditions':[{'type':'Ready','status':'True'}]"),
     "status.conditions EvictionRequested"},
    {"all go", running, "a", S("'conditions':null"), "status.conditions EvictionRequested"},
    {"one without a type", running, "a",
     S("'conditions':[{'type':'EvictionRequested','status':'True'},{'status':'True'}]"),
     "status.conditions "},
    {"another order", running, "a",
     S("'conditions':[{'type':'Ready','status':'False'},{'type':'EvictionRequested',"
       "'status':'True'}]"),
     NULL},
    {"a move that nobody asked for", running, "a",
     S("'migrationState':{'migrationUid':'n','sourceNode':'a','targetNode':'c'}"),
     "status.migrationState."},
    {"an older one goes", moved, "b", S("'migrationState':null"), "status.migrationState."},

    /* the source says how far it is, and how it ended */
    {"it begins", begins, "a",
     "{'metadata':{'annotations':{'ferry.io/progress':'{}','ferry.io/source-disks':'{}'}},"
     "'status':{'migrationState':{'startTimestamp':'2026-01-01T00:00:00Z','mode':'PreCopy'}}}",
     NULL},
    {"trouble", begins, "a", NOTE("source-trouble", "'{}'"), NULL},
    {"streams anew", moving, "a", NOTE("recover", "'m/1'"), NULL},
    {"it was aborted", moving, "a",
     "{'metadata':{'annotations':{'ferry.io/failure':'m/Aborted'}},'status':{'migrationState':{"
     "'abortStatus':'Succeeded'," FAIL "}}}",
     NULL},
    {"it failed, and where the guest is nobody knows", moving, "a",
     "{'metadata':{'annotations':{'ferry.io/unconfirmed':'m'}},'status':{'migrationState':{" FAIL
     "}}}",
     NULL},
    {"the last word after the guest has arrived", arrived, "a", NOTE("progress", "'{}'"), NULL},
    {"it ends a move whose guest has arrived", arrived, "a", M("'failed':true,'completed':true"),
     "status.migrationState.failed"},
    {"it completes the move", arrived, "a", M("'completed':true"),
     "status.migrationState.completed"},
    {"half an end", moving, "a", M("'failed':true"), "status.migrationState.failed"},
    {"the other half", moving, "a", M("'completed':true"), "status.migrationState.completed"},
    {"doubts of an earlier move", moving, "a",
     "{'metadata':{'annotations':{'ferry.io/unconfirmed':'l'}},'status':{'migrationState':{" FAIL
     "}}}",
     "the annotation ferry.io/unconfirmed"},
    {"doubts before the end", moving, "a", NOTE("unconfirmed", "'m'"),
     "the annotation ferry.io/unconfirmed"},
    {"another target", moving, "a", M("'targetNode':'c'"), "status.migrationState.targetNode"},
    {"another target's pod", moving, "a", M("'targetPod':'r'"), "status.migrationState.targetPod"},
    {"another uid", moving, "a", M("'migrationUid':'n'"), "status.migrationState.migrationUid"},
    {"no source any more", moving, "a", M("'sourceNode':null"), "status.migrationState.sourceNode"},
    {"without encryption", moving, "a", M("'migrationConfiguration':{'disableTLS':true}"),
     "status.migrationState.migrationConfiguration"},
    {"a policy", moving, "a", M("'migrationPolicyName':'x'"),
     "status.migrationState.migrationPolicyName"},
    {"as if it was asked to abort", moving, "a", M("'abortRequested':true"),
     "status.migrationState.abortRequested"},
    {"the target's address", moving, "a", M("'targetNodeAddress':'10.0.0.3'"),
     "status.migrationState.targetNodeAddress: that is for the target"},
    {"the target's ports", moving, "a", M("'targetDirectMigrationNodePorts':{'1':0}"),
     "status.migrationState.targetDirectMigrationNodePorts"},
    {"it has arrived, says the source", moving, "a", TAKE("b", LAST), "status."},
    {"another beginning", moving, "a", M("'startTimestamp':'2026-02-01T00:00:00Z'"),
     "status.migrationState.startTimestamp: it is written once"},
    {"the target's words", moving, "a", NOTE("target-disks", "'{}'"),
     "the annotation ferry.io/target-disks"},
    {"no target's label", moving, "a", MARK("kubevirt.io/migrationTargetNodeName", "null"),
     "the label kubevirt.io/migrationTargetNodeName"},
    {"all of it anew", moving, "a", S("'migrationState':{'targetNode':'c'}"),
     "status.migrationState.targetNode"},
    {"once it is over, nothing", moved, "a", NOTE("progress", "'{}'"),
     "the annotation ferry.io/progress"},
    {"nor of the move", moved, "a", M("'mode':'PostCopy'"), "status.migrationState.mode"},
    {"nor of the guest", moved, "a", S("'phase':'Failed'"), "status.phase"},
    {"nor does it come back", moved, "a", S("'nodeName':'a'"), "status.nodeName"},
    {"nor while it is on its way", arrived, "a", S("'nodeName':'a'"), "status.nodeName"},
    {"Paused after the guest has left", arrived, "a",
     S("'conditions':[{'type':'Paused','status':'True'}]"), "status.conditions Paused"},

    /* the target says where it is, takes the guest, and lets go */
    {"where it is", begins, "b",
     "{'metadata':{'annotations':{'ferry.io/target-disks':'{}','ferry.io/target-trouble':'{}'}},"
     "'status':{'migrationState':{'targetNodeAddress':'10.0.0.2',"
     "'targetDirectMigrationNodePorts':{'4000':0},'targetNodeDomainDetected':true}}}",
     NULL},
    {"other ports", moving, "b",
     "{'metadata':{'annotations':{'ferry.io/ports-generation':'m/1'}},'status':{'migrationState':{"
     "'targetDirectMigrationNodePorts':{'4001':0}}}}",
     NULL},
    {"the guest is here", moving, "b", TAKE("b", LAST), NULL},
    {"before the source said that it began", begins, "b", TAKE("b", FIRST LAST), NULL},
    {"and through", moving, "b", TAKE("b", LAST ",'completed':true"), NULL},
    {"it is done", arrived, "b", M("'completed':true"), NULL},
    {"it was stopped by the source, and runs here", moving, "b",
     S("'nodeName':'b','conditions':[{'type':'EvictionRequested','status':'True'},{'type':'Ready',"
       "'status':'True'},{'type':'Paused','status':'False'}]"),
     NULL},
    {"it never will", begins, "b",
     "{'metadata':{'annotations':{'ferry.io/failure':'m/Refused'}},'status':{'migrationState':"
     "{" FAIL "}}}",
     NULL},
    {"the source is silent", begins, "b", M("'startTimestamp':'2026-01-01T00:00:00Z'," FAIL), NULL},
    {"it never ran here", moving, "b", NOTE("target-state", "'m/never-ran'"), NULL},
    {"nor after the end", failed, "b", NOTE("target-state", "'m/never-ran'"), NULL},
    {"it lets go", moved_now, "b", MARK("kubevirt.io/migrationTargetNodeName", "null"), NULL},
    {"of a move that failed", failed, "b", MARK("kubevirt.io/migrationTargetNodeName", "null"),
     NULL},
    {"it holds on", failed, "b", MARK("kubevirt.io/migrationTargetNodeName", "'c'"),
     "the label kubevirt.io/migrationTargetNodeName: a node only takes it away"},
    {"in the name of another", moving, "b", TAKE("c", LAST), "status."},
    {"with the label of another", moving, "b",
     "{'metadata':{'labels':{'kubevirt.io/nodeName':'c'}},'status':{'nodeName':'b'}}",
     "the label kubevirt.io/nodeName: a node writes its own name there"},
    {"by the label alone", moving, "b", MARK("kubevirt.io/nodeName", "'b'"),
     "the label kubevirt.io/nodeName"},
    {"it completes without the guest", moving, "b", M("'completed':true"),
     "status.migrationState.completed"},
    {"it completes as failed what it has", arrived, "b", M("'failed':true,'completed':true"),
     "status.migrationState.failed"},
    {"it takes the guest as failed", moving, "b", TAKE("b", LAST ",'completed':true,'failed':true"),
     "status.migrationState."},
    {"as if it was asked to abort", moving, "b", M("'abortRequested':true"),
     "status.migrationState.abortRequested"},
    {"another source", moving, "b", M("'sourceNode':'c'"), "status.migrationState.sourceNode"},
    {"another source's pod", moving, "b", M("'sourcePod':'r'"), "status.migrationState.sourcePod"},
    {"the source's progress", moving, "b", NOTE("progress", "'{}'"),
     "the annotation ferry.io/progress"},
    {"doubts", moving, "b",
     "{'metadata':{'annotations':{'ferry.io/unconfirmed':'m'}},'status':{'migrationState':{" FAIL
     "}}}",
     "the annotation ferry.io/unconfirmed"},
    {"the phase of what it does not have", moving, "b", S("'phase':'Failed'"), "status.phase"},
    {"ready twice",
     VMI(ON("b") TO("b"), "",
         PHASE_ON("Running",
                  "b") "," STATE(",'targetNodeDomainReadyTimestamp':'2026-01-01T00:00:00Z'")),
     "b", M("'targetNodeDomainReadyTimestamp':'2026-01-01T00:00:01Z'"),
     "status.migrationState.targetNodeDomainReadyTimestamp"},

    /* a former target has no rights */
    {"it takes a guest after the end", failed, "b", TAKE("b", ""), "status."},
    {"it reopens the move", failed, "b", M("'completed':null,'failed':null"),
     "status.migrationState."},
    {"with an end of its own", failed, "b", M("'completed':false"),
     "status.migrationState.completed"},
    {"it makes up one", failed, "b",
     S("'nodeName':'b','migrationState':{'migrationUid':'n','sourceNode':'a','targetNode':'b'}"),
     "status."},
    {"another address", failed, "b", M("'targetNodeAddress':'10.0.0.3'"),
     "status.migrationState.targetNodeAddress"},
    {"trouble", failed, "b", NOTE("target-trouble", "'{}'"),
     "the annotation ferry.io/target-trouble"},
    {"not even notes, once it has let go", let_go, "b", NOTE("target-state", "'m/never-ran'"),
     "the annotation ferry.io/target-state"},

    /* but where nobody knows who has the guest */
    {"it has the guest", unconfirmed, "b", TAKE("b", ""), NULL},
    {"it has let go", let_go, "b", TAKE("b", ""), "status."},
    {"that was another move", of_another, "b", TAKE("b", ""), "status."},
    {"not the source's to take", unconfirmed, "b", TAKE("c", ""), "status."},
    {"it changes how the move ended", unconfirmed, "b", M("'failed':false"),
     "status.migrationState.failed"},
    {"it writes the end again", unconfirmed, "b",
     TAKE("b", ",'endTimestamp':'2026-02-01T00:00:00Z'"),
     "status.migrationState.endTimestamp: it is written once"},
    {"others do not", unconfirmed, "c", TAKE("c", ""), "status."},
};

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *before =
            make_object(API_KIND_NONE, rows[i].before, NULL);
        api_cleanup_object struct api_object *after =
            make_object(API_KIND_NONE, rows[i].before, rows[i].merge);
        char said[FIELD_TEXT];
        const struct field_write w = {rows[i].node, before->root, after->root};
        bool allowed = field_rules_allow(&w, said);

        print_message("  %s\n", rows[i].name);
        if (allowed != !rows[i].refused || (rows[i].refused && !strstr(said, rows[i].refused))) {
            fail_msg("%s: %s: '%s', expected '%s'", rows[i].name, allowed ? "allowed" : "refused",
                     said, rows[i].refused ? rows[i].refused : "");
        }
    }
}

static void concerns(void **state)
{
    static const struct {
        const char *vmi, *nodes; /* that have a part */
    } cases[] = {
        {pending, ""}, {running, "a"},   {over, "a"},    {moving, "ab"},      {arrived, "ab"},
        {moved, "b"},  {moved_now, "b"}, {failed, "ab"}, {unconfirmed, "ab"}, {let_go, "a"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = make_object(API_KIND_NONE, cases[i].vmi, NULL);

        for (char node[] = "a"; *node <= 'c'; (*node)++) {
            if (field_rules_concern(node, o->root) != (strchr(cases[i].nodes, *node) != NULL)) {
                fail_msg("case %zu, node %s", i, node);
            }
        }
        assert_false(field_rules_concern("", o->root));
    }
}

static void table(void **state)
{
    size_t n, n_parts;
    const struct field_rule *rules = field_rules(&n);
    const struct field_part_row *parts = field_rules_parts(&n_parts);
    unsigned all = 0;

    (void)state;
    for (size_t i = 0; i < n_parts; i++) {
        assert_false(all & parts[i].part);
        all |= parts[i].part;
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(rules[i].parts && !(rules[i].parts & ~all));
        for (size_t k = 0; k < i; k++) {
            assert_false(rules[i].place == rules[k].place &&
                         strcmp(rules[i].key, rules[k].key) == 0);
        }
    }
}

static void print_rows(void)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        api_cleanup_object struct api_object *before =
            make_object(API_KIND_NONE, rows[i].before, NULL);
        api_cleanup_object struct api_object *after =
            make_object(API_KIND_NONE, rows[i].before, rows[i].merge);
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        yyjson_mut_val *row = yyjson_mut_obj(doc);

        yyjson_mut_doc_set_root(doc, row);
        yyjson_mut_obj_add_str(doc, row, "name", rows[i].name);
        yyjson_mut_obj_add_str(doc, row, "node", rows[i].node);
        yyjson_mut_obj_add_bool(doc, row, "allowed", !rows[i].refused);
        yyjson_mut_obj_add_val(doc, row, "before",
                               yyjson_val_mut_copy(doc, (yyjson_val *)before->root));
        yyjson_mut_obj_add_val(doc, row, "after",
                               yyjson_val_mut_copy(doc, (yyjson_val *)after->root));
        ferry_cleanup_free char *text = yyjson_mut_write(doc, 0, NULL);
        printf("%s\n", text);
        yyjson_mut_doc_free(doc);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(concerns),
        cmocka_unit_test(table),
    };

    if (argc > 1 && strcmp(argv[1], "--rows") == 0) {
        print_rows();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
