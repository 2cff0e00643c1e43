/* What is left of a move that is over. Numbers of cases are items of docs/conformance.md. */
#include "move_case.h"

static const struct move_row rows[] = {
    /* finished */
    {"succeeded: clean-up", "{" PHASE("Succeeded") "}", STATE("'completed':true"), PLAIN,
     .rule = "finished", .own_patch = "ferry.io~1result"},
    {"failed: the target pod goes", "{" PHASE("Failed") "}", PLAIN, PLAIN, .rule = "finished",
     .deletes_target = true, .own_patch = "/metadata/finalizers"},
    {"100: failed, but the nodes do not know", "{" PHASE("Failed") "}", STATE("'targetPod':'x'"),
     PLAIN, .rule = "finished", .deletes_target = true, .own_patch = "/metadata/finalizers",
     .vmi_patch = "\"/status/migrationState/failed\""},
    {"failed, but the VM is there", "{" PHASE("Failed") "}", "{'status':{'nodeName':'b'}}", PLAIN,
     .rule = "finished", .own_patch = "/metadata/finalizers"},
    {"failed without VMI: the target pod goes", "{" PHASE("Failed") "}", GONE, PLAIN,
     .rule = "finished", .deletes_target = true, .own_patch = "/metadata/finalizers"},
    {"finished and cleaned: nothing", "{'metadata':{'finalizers':null}," PHASE("Succeeded") "}",
     STATE("'completed':true"), PLAIN, .rule = "finished"},
    {"cancelled after its end: only the finalizer goes", "{" DELETING "," PHASE("Succeeded") "}",
     STATE("'completed':true"), PLAIN, .rule = "finished", .own_patch = "/metadata/finalizers"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_row(&rows[i]);
    }
}

/* 51, 52, 54, 55, 56: nothing is collected by one that is not over */
static void test_only_finished_ones_collect(void **state)
{
    static const char *const phases[] = {"", "Pending", "PreparingTarget", "TargetReady",
                                         "Running"};
    struct api_object *old[8];
    (void)state;

    for (int i = 0; i < (int)COUNT_OF(old); i++) {
        char merge[160];

        snprintf(merge, sizeof(merge),
                 "{'metadata':{'name':'o%d','uid':'o%d'},'status':{'phase':'Failed'}}", i, i);
        old[i] = make_object(API_KIND_MIGRATION, MIGRATION, merge);
    }
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        char merge[128];

        snprintf(merge, sizeof(merge), "{'status':{'phase':'%s'}}", phases[i]);
        api_cleanup_object struct api_object *m =
            make_object(API_KIND_MIGRATION, MIGRATION, phases[i][0] ? merge : "{}");
        api_cleanup_object struct api_object *vmi =
            make_object(API_KIND_VMI, VMI, STATE("'targetNodeAddress':'x'"));
        api_cleanup_object struct api_object *target = make_object(API_KIND_POD, TARGET, NULL);
        struct migration_view view = {.migration = m,
                                      .vmi = vmi,
                                      .target_pod = target,
                                      .migrations = (const struct api_object *const *)old,
                                      .n_migrations = COUNT_OF(old),
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        migration_decide(&view, NOW_MS, &p);
        assert_null(plan_find(&p, PLAN_DELETE, API_KIND_MIGRATION));
    }
    for (size_t i = 0; i < COUNT_OF(old); i++) {
        api_object_unref(old[i]);
    }
}

/* 49, 50: five that are over stay, and all that are not */
static void test_old_ones_are_collected(void **state)
{
    (void)state;
    const struct api_object *all[9];
    struct migration_view view = {
        .migrations = all, .n_migrations = COUNT_OF(all), .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    for (int i = 0; i < (int)COUNT_OF(all); i++) {
        char merge[256];

        snprintf(merge, sizeof(merge),
                 "{'metadata':{'name':'m%d','uid':'u%d','finalizers':null,'creationTimestamp':"
                 "'2025-12-31T23:%02d:00Z'},'status':{'phase':'%s'}}",
                 i, i, 50 - i,
                 i == 8  ? "Running"
                 : i % 2 ? "Failed"
                         : "Succeeded");
        all[i] = make_object(API_KIND_MIGRATION, MIGRATION, merge);
    }
    view.migration = all[0];
    migration_decide(&view, NOW_MS, &p);
    /* Eight are finished; the three oldest (created first) go, never the running one. */
    assert_int_equal(p.n, 3);
    for (size_t i = 0; i < p.n; i++) {
        static const char *const names[] = {"m7", "m6", "m5"};

        assert_int_equal(p.actions[i].op, PLAN_DELETE);
        assert_string_equal(p.actions[i].name, names[i]);
    }
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        api_object_unref((struct api_object *)all[i]);
    }
}

static void test_result_text(void **state)
{
    (void)state;
    struct objects o = {
        .migration = make_object(
            API_KIND_MIGRATION, MIGRATION,
            "{'status':{'phase':'Succeeded','migrationState':{'startTimestamp':"
            "'2025-12-31T23:59:00Z','endTimestamp':'2025-12-31T23:59:07Z','completed':true}}}"),
        .vmi = make_object(API_KIND_VMI, VMI, NULL),
    };
    const char *progress = "[{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{"
                           "\"ferry.io/progress\":\"{\\\"uid\\\":\\\"mig-1\\\",\\\"downtimeMs\\\":"
                           "42,\\\"processedBytes\\\":1000}\"}}]";
    struct api_object *with = patched_object(o.vmi, progress, false);
    struct migration_view view = {
        .migration = o.migration, .vmi = with, .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    migration_decide(&view, NOW_MS, &p);
    ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
    assert_non_null(strstr(text, "\\\"totalMs\\\":7000"));
    assert_non_null(strstr(text, "\\\"downtimeMs\\\":42"));
    assert_non_null(strstr(text, "\\\"transferredBytes\\\":1000"));
    api_object_unref(with);
    objects_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_only_finished_ones_collect),
        cmocka_unit_test(test_old_ones_are_collected),
        cmocka_unit_test(test_result_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
