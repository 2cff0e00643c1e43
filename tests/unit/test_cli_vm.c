/* Starting and stopping under every run strategy; how lists are shown. */
#include "lib/objects.h"

#include "cli/verbs/manifest.h"
#include "cli/verbs/power.h"
#include "cli/views/listing.h"
#include "cli/watch/events.h"
#include "cli/watch/moves.h"

#define VM                                                                                         \
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachine','metadata':{'name':'web',"             \
    "'namespace':'default','uid':'vm-1'},'spec':{'runStrategy':'Manual','template':{'spec':"       \
    "{'domain':{}}}}}"
#define VMI                                                                                        \
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstance','metadata':{'name':'web',"     \
    "'namespace':'default','uid':'vmi-1'},'spec':{'domain':{}},'status':{'phase':'Running'}}"

#define START "{'status':{'stateChangeRequests':[{'action':'Start'}]}}"
#define STOP "{'status':{'stateChangeRequests':[{'action':'Stop','uid':'vmi-1'}]}}"
#define AGAIN                                                                                      \
    "{'status':{'stateChangeRequests':[{'action':'Stop','uid':'vmi-1'},{'action':'Start'}]}}"
#define OVER "{'status':{'phase':'Succeeded'}}"
#define FAILED "{'status':{'phase':'Failed'}}"
#define SPEC(strategy) "{'spec':{'runStrategy':'" strategy "'}}"

static void start_and_stop(void **state)
{
    static const struct {
        const char *vm, *vmi; /* merge patches; vmi NULL = there is none */
        enum power what;
        const char *patch; /* NULL = nothing is to be done; "!" = refused */
    } cases[] = {
        {NULL, NULL, POWER_START, START},
        {NULL, "{}", POWER_START, NULL},
        {NULL, OVER, POWER_START, AGAIN},
        {NULL, FAILED, POWER_START, AGAIN},
        {NULL, "{'status':null}", POWER_START, NULL},
        {NULL, "{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}}", POWER_START, AGAIN},
        {NULL, NULL, POWER_STOP, NULL},
        {NULL, "{}", POWER_STOP, STOP},
        {NULL, OVER, POWER_STOP, NULL},
        {SPEC("Always"), NULL, POWER_START, NULL},
        {SPEC("Always"), "{}", POWER_STOP, SPEC("Halted")},
        {SPEC("Always"), NULL, POWER_STOP, SPEC("Halted")},
        {SPEC("Halted"), NULL, POWER_START, SPEC("Always")},
        {SPEC("Halted"), "{}", POWER_START, SPEC("Always")},
        {SPEC("Halted"), NULL, POWER_STOP, NULL},
        {SPEC("RerunOnFailure"), NULL, POWER_START, START},
        {SPEC("RerunOnFailure"), "{}", POWER_STOP, STOP},
        {SPEC("Once"), "{}", POWER_START, NULL},
        {SPEC("Once"), OVER, POWER_START, "!"},
        {SPEC("Once"), "{}", POWER_STOP, SPEC("Halted")},
        {"{'spec':{'runStrategy':null,'running':true}}", "{}", POWER_STOP,
         "{'spec':{'running':false}}"},
        {"{'spec':{'runStrategy':null,'running':false}}", NULL, POWER_START,
         "{'spec':{'running':true}}"},
        {"{'metadata':{'deletionTimestamp':'2026-01-01T00:00:00Z'}}", NULL, POWER_START, "!"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *vm = make_object(API_KIND_VM, VM, cases[i].vm);
        api_cleanup_object struct api_object *vmi =
            cases[i].vmi ? make_object(API_KIND_VMI, VMI, cases[i].vmi) : NULL;
        struct power_plan plan;
        struct ferry_error err = {0};
        int rc = power_decide(vm, vmi ? &vmi->u.vmi : NULL, cases[i].what, &plan, &err);
        ferry_cleanup_free char *patch = plan.patch;
        ferry_cleanup_free char *want = cases[i].patch ? unquote(cases[i].patch) : NULL;

        if (ferry_streq(want, "!")) {
            assert_true(rc < 0 && err.msg[0] && !patch);
            continue;
        }
        assert_int_equal(rc, 0);
        if (!ferry_streq(patch, want)) {
            fail_msg("row %zu: %s, not %s", i, patch ? patch : "nothing", want ? want : "nothing");
        }
        assert_true(plan.nothing == !want);
        assert_true(plan.status == (want && strstr(want, "\"status\"") != NULL));
    }
}

static void strategies_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *in;
    } cases[] = {
        {NULL, "\"runStrategy\":\"Manual\""},
        {"Always", "\"runStrategy\":\"Always\""},
        {"Halted", "\"runStrategy\":\"Halted\""},
        {"always", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct manifest_vm vm = {.name = "a", .memory = "64Mi", .run_strategy = cases[i].strategy};
        ferry_cleanup_free char *json = NULL;
        struct ferry_error err = {0};

        if (!cases[i].in) {
            assert_int_equal(manifest_vm(&vm, &json, &err), -FERRY_INVALID);
            assert_non_null(strstr(err.msg, "--run-strategy"));
            continue;
        }
        assert_int_equal(manifest_vm(&vm, &json, &err), 0);
        assert_non_null(strstr(json, cases[i].in));
        assert_non_null(strstr(json, "\"kind\":\"VirtualMachine\""));
    }
}

static void put_beside(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    if (context->n_beside > 0) {
        ferry_buf_printf(out, "%s+%zu", o->meta->name, context->n_beside);
    }
}

static void tables(void **state)
{
    static const struct listing_column columns[] = {
        LISTING_NAME,
        {"BESIDE", put_beside},
        {"AGE", listing_put_age},
        {"PHASE", .wide = true, .pointer = "/status/phase"},
        {0},
    };
    static const struct listing l = {.namespaced = true, .columns = columns};
    static const struct {
        bool wide, all;
        size_t beside;
        const char *text;
    } cases[] = {
        {false, false, 0, "NAME   BESIDE   AGE\nweb    -        7s\n"},
        {true, false, 1, "NAME   BESIDE   AGE   PHASE\nweb    web+1    7s    Running\n"},
        {false, true, 1, "NAMESPACE   NAME   BESIDE   AGE\ndefault     web    web+1    7s\n"},
    };
    api_cleanup_object struct api_object *o =
        make_object(API_KIND_VMI, VMI, "{'metadata':{'creationTimestamp':'1970-01-01T00:00:03Z'}}");

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf out = {0};
        const struct listing_context context = {10000, &o, cases[i].beside};

        listing_render(&l, &o, 1, &context, cases[i].wide, cases[i].all, &out);
        assert_string_equal(out.data, cases[i].text);
    }
}

static void age_orders(void **state)
{
    static const char *const when[] = {
        "{'metadata':{'name':'c','creationTimestamp':'2026-01-01T00:00:02Z'}}",
        "{'metadata':{'name':'b','creationTimestamp':'2026-01-01T00:00:01Z'}}",
        "{'metadata':{'name':'a','creationTimestamp':'2026-01-01T00:00:02Z'}}",
    };
    struct api_object *items[COUNT_OF(when)];
    struct kube_list list = {.items = items, .n = COUNT_OF(when)};

    (void)state;
    for (size_t i = 0; i < list.n; i++) {
        items[i] = make_object(API_KIND_VMI, VMI, when[i]);
    }
    listing_sort_by_age(&list);
    assert_string_equal(items[0]->meta->name, "b");
    assert_string_equal(items[1]->meta->name, "a");
    assert_string_equal(items[2]->meta->name, "c");
    for (size_t i = 0; i < list.n; i++) {
        api_object_unref(items[i]);
    }
}

static void events_are_shown(void **state)
{
    api_cleanup_object struct api_object *e = make_object(
        API_KIND_EVENT,
        "{'apiVersion':'v1','kind':'Event','metadata':{'name':'e','namespace':'default'},"
        "'involvedObject':{'kind':'VirtualMachineInstance','name':'web'},'type':'Normal',"
        "'reason':'Migrated','message':'there','count':3,'lastTimestamp':'1970-01-01T00:00:01Z'}",
        NULL);
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)state;
    listing_render(&events_listing, &e, 1, &(struct listing_context){.now_ms = 3000}, false, false,
                   &out);
    assert_string_equal(out.data, "AGE   TYPE     REASON     OBJECT   TIMES   MESSAGE\n"
                                  "2s    Normal   Migrated   vm/web   3x      there\n");
    assert_true(events_listing.about(e, "web"));
    assert_false(events_listing.about(e, "other"));
}

#define MOVE                                                                                       \
    "{'apiVersion':'kubevirt.io/v1','kind':'VirtualMachineInstanceMigration','metadata':{"         \
    "'name':'web-1','namespace':'default','uid':'m1','creationTimestamp':'1970-01-01T00:01:00Z'}," \
    "'spec':{'vmiName':'web'},'status':{'phase':'Running','migrationState':{'sourceNode':'n1'}}}"
#define ACCOUNT(more)                                                                              \
    "{'status':{'migrationState':{'migrationUid':'m1','sourceNode':'n1','targetNode':'n2',"        \
    "'startTimestamp':'1970-01-01T00:01:10Z'" more "}}}"
#define ENDED ",'completed':true,'endTimestamp':'1970-01-01T00:01:14Z'"
#define EVENT                                                                                      \
    "{'apiVersion':'v1','kind':'Event','metadata':{'name':'e','namespace':'default'},"             \
    "'involvedObject':{'kind':'VirtualMachineInstanceMigration','namespace':'default',"            \
    "'name':'web-1','uid':'m1'},'related':{'name':'web'},"                                         \
    "'firstTimestamp':'1970-01-01T00:01:00Z','lastTimestamp':'1970-01-01T00:01:15Z'}"
#define MADE "{'reason':'SuccessfulCreate'}"
#define ASKED "{'reason':'SuccessfulAbortMigration','message':'Asked the source node to abort'}"
#define OF_MOVE(text) "{'reason':'FailedMigration','message':'" text "'}"

/* The first line of `text`, runs of blanks made one. */
static void one_blank(const char *text, struct ferry_buf *out)
{
    for (; *text && *text != '\n'; text++) {
        if (*text != ' ' || text[1] != ' ') {
            ferry_buf_printf(out, "%c", *text);
        }
    }
}

/* Rows of the list, blanks made one; "" when there is none. */
static void moves_are_listed(void **state)
{
    static const struct {
        const char *move, *vmi, *events[3]; /* merge patches; NULL = there is none */
        const char *row;
    } cases[] = {
        /* while it goes on the VM knows where to */
        {"{}", "{}", {0}, "web-1 web Running n1 - 40s - - -"},
        {"{}", ACCOUNT(",'mode':'PreCopy'"), {0}, "web-1 web Running n1 n2 40s - PreCopy -"},
        {"{'metadata':{'deletionTimestamp':'1970-01-01T00:01:30Z'}}",
         ACCOUNT(""),
         {ASKED},
         "web-1 web Cancelling n1 n2 40s - - -"},
        {"{'metadata':{'uid':'m2'}}", ACCOUNT(ENDED), {0}, "web-1 web Running n1 - 40s - - -"},
        /* it took what its result says, not what seconds make of it */
        {"{'metadata':{'annotations':{'ferry.io/result':'{\\u0022totalMs\\u0022:5102}'}},"
         "'status':{'phase':'Succeeded'}}",
         ACCOUNT(ENDED),
         {0},
         "web-1 web Succeeded n1 n2 40s 5.1 s - -"},
        {"{'status':{'phase':'Failed'}}",
         ACCOUNT(ENDED ",'failed':true,'failureReason':'Stuck: there'"),
         {0},
         "web-1 web Failed n1 n2 40s 4.0 s - Stuck: there"},
        {"{'status':{'phase':'Failed'}}",
         ACCOUNT(ENDED ",'failed':true,'abortRequested':true,'failureReason':'Aborted: so'"),
         {ASKED},
         "web-1 web Cancelled n1 n2 40s 4.0 s - Aborted: so"},
        /* cancelled: the object is gone */
        {NULL,
         ACCOUNT(ENDED ",'failed':true,'abortRequested':true,'failureReason':'Aborted: so'"),
         {MADE, ASKED, OF_MOVE("Aborted: so")},
         "web-1 web Cancelled n1 n2 40s 4.0 s - Aborted: so"},
        {NULL,
         "{}",
         {MADE, OF_MOVE("Aborted: early")},
         "web-1 web Cancelled - - 40s - - Aborted: early"},
        {NULL, NULL, {OF_MOVE("Aborted: early")}, "web-1 web Cancelled - - 40s - - Aborted: early"},
        {NULL,
         ACCOUNT(ENDED ",'failed':true,'abortRequested':true,'failureReason':'Aborted: so'"),
         {0},
         "- web Cancelled n1 n2 30s 4.0 s - Aborted: so"},
        {NULL,
         ACCOUNT(ENDED ",'abortRequested':true"),
         {ASKED, "{'reason':'SuccessfulMigration','message':'The VM runs on n2'}"},
         "web-1 web Succeeded n1 n2 40s 4.0 s - -"},
        /* removed after its end, by its owner or to make room: nobody misses it */
        {NULL, ACCOUNT(ENDED ",'failed':true"), {MADE, OF_MOVE("Stuck: there")}, ""},
        {NULL,
         ACCOUNT(ENDED),
         {"{'reason':'SuccessfulMigration','message':'The VM runs on n2'}"},
         ""},
        {NULL, ACCOUNT(""), {0}, ""},
        {NULL, NULL, {"{'involvedObject':{'kind':'Pod'},'reason':'SuccessfulAbortMigration'}"}, ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_object *events[3] = {0}, *vmi = NULL;
        kube_cleanup_list struct kube_list moves = {0};
        ferry_cleanup_buf struct ferry_buf out = {0}, row = {0};
        size_t n = 0;

        if (cases[i].move) {
            moves.items = ferry_xcalloc(1, sizeof(struct api_object *));
            moves.items[moves.n++] = make_object(API_KIND_MIGRATION, MOVE, cases[i].move);
        }
        for (; n < COUNT_OF(events) && cases[i].events[n]; n++) {
            events[n] = make_object(API_KIND_EVENT, EVENT, cases[i].events[n]);
        }
        vmi = cases[i].vmi ? make_object(API_KIND_VMI, VMI, cases[i].vmi) : NULL;
        moves_add_cancelled(&moves, &vmi, vmi ? 1 : 0, events, n);
        assert_true(moves.n <= 1);
        const struct listing_context context = {100000, &vmi, vmi ? 1 : 0};
        listing_render(&moves_listing, moves.items, moves.n, &context, true, false, &out);
        one_blank(strchr(out.data, '\n') + 1, &row);
        if (!ferry_streq(row.data ? row.data : "", cases[i].row)) {
            fail_msg("row %zu: %s", i, out.data);
        }
        for (size_t k = 0; k < n; k++) {
            api_object_unref(events[k]);
        }
        api_object_unref(vmi);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_and_stop),   cmocka_unit_test(strategies_are_checked),
        cmocka_unit_test(tables),           cmocka_unit_test(age_orders),
        cmocka_unit_test(events_are_shown), cmocka_unit_test(moves_are_listed),
    };

    return cmocka_run_group_tests_name("cli: virtual machines and lists", tests, NULL, NULL);
}
