/* Tables: how a plan is applied, and the reasons of moves that wait. Numbers of cases are items of
 * docs/conformance.md. */
#include "lib/objects.h"

#include "control/loops/plan_apply.h"
#include "control/migration/pending_reason.h"

static const char MOVE[] = "{'metadata':{'name':'move','namespace':'ns','uid':'mig-1',"
                           "'resourceVersion':'7'},'spec':{'vmiName':'web'}}";

/* Nobody listens there. */
static struct kube_client *no_server(void)
{
    struct kube_client *client = NULL;
    struct ferry_error err = {0};
    char server[] = "http://127.0.0.1:1";
    const struct kube_config config = {.server = server};

    if (kube_client_new(&config, &client, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return client;
}

/* 58, 459: a deletion that is refused is an error, and what is independent of it is still tried */
static void test_errors_are_told(void **state)
{
    kube_cleanup_client struct kube_client *client = no_server();
    api_cleanup_object struct api_object *move = make_object(API_KIND_MIGRATION, MOVE, NULL);
    struct ferry_error err = {0};
    plan_cleanup struct plan p = {0};
    (void)state;

    plan_delete(&p, move);
    plan_event(&p, move, KUBE_EVENT_NORMAL, "SuccessfulDelete", "gone");
    assert_true(plan_apply(&p, &(struct plan_writer){.client = client}, &err) < 0);
    assert_non_null(strstr(err.msg, "move"));
    assert_true(plan_apply_each(&p, &(struct plan_writer){.client = client}, &err) < 0);
}

/* The map that is missing is made once: made for each, it loses what was there before. */
static void test_two_notes_on_a_bare_object(void **state)
{
    api_cleanup_object struct api_object *move = make_object(API_KIND_MIGRATION, MOVE, NULL);
    struct api_patch *p = api_patch_new();
    (void)state;

    plan_set_annotation(p, move, "one", "1");
    plan_set_annotation(p, move, "two", "2");
    ferry_cleanup_free char *text = api_patch_take(p);
    api_cleanup_object struct api_object *now = patched_object(move, text, false);
    assert_string_equal(api_map_get(&now->meta->annotations, "one"), "1");
    assert_string_equal(api_map_get(&now->meta->annotations, "two"), "2");
}

static void test_pending_reasons(void **state)
{
    static const struct {
        const char *message, *reason;
    } rows[] = {
        {"", "Unschedulable"},
        {"no nodes available to schedule pods", "Unschedulable"},
        {"0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.",
         "Unschedulable"},
        {"0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 Insufficient "
         "memory.",
         "Unschedulable"},
        {"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node "
         "affinity/selector.",
         "Unschedulable"},
        {"0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 node(s) "
         "didn't match Pod's node affinity/selector.",
         "NeverSchedulable"},
        {"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. "
         "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
         "NeverSchedulable"},
        {"0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
         "VolumeNotReady"},
        {"0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) didn't "
         "match pod anti-affinity rules.",
         "VolumeNotReady"},
        {"0/2 nodes are available: 2 node(s) had untolerated taint {a: b}.", "Unschedulable"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!ferry_streq(wire_reason_text(pending_reason(rows[i].message)), rows[i].reason)) {
            fail_msg("%s: %s", rows[i].message, wire_reason_text(pending_reason(rows[i].message)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_are_told),
                                       cmocka_unit_test(test_two_notes_on_a_bare_object),
                                       cmocka_unit_test(test_pending_reasons)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
