/* What a move takes of the limits, and what a refusal does to it. Numbers of cases are items of
 * docs/conformance.md. */
#include "move_case.h"

#include "api/wire/wire_error.h"

static void test_quota(void **state)
{
    (void)state;
    struct objects o = {
        .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Pending") "}"),
        .vmi = make_object(API_KIND_VMI, VMI, NULL),
        .source = make_object(API_KIND_POD, SOURCE, NULL),
    };
    const struct api_object *all[] = {o.migration};
    struct migration_view view = {.migration = o.migration,
                                  .vmi = o.vmi,
                                  .source_pod = o.source,
                                  .migrations = all,
                                  .n_migrations = 1,
                                  .settings = &migration_default_settings};
    plan_cleanup struct plan p = {0};

    struct ferry_error err;

    ferry_fail_reason(&err, FERRY_DENIED, wire_error_text(WIRE_ERROR_QUOTA),
                      "pods x is forbidden: exceeded quota: q");
    migration_decide_refused(&view, &err, NOW_MS, &p);
    ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
    assert_non_null(strstr(text, "migrationRejectedByResourceQuota"));
    assert_non_null(strstr(text, "\\\"reason\\\":\\\"Quota\\\""));
    assert_int_equal(p.again_ms, 30000);
    assert_true(migration_ledger_row(&view, "k", NOW_MS).ready);

    /* Once refused it takes what is left over only. */
    struct api_object *refused = patched_object(
        o.migration, plan_find(&p, PLAN_PATCH_STATUS, API_KIND_MIGRATION)->body, false);
    all[0] = view.migration = refused;
    assert_false(migration_ledger_row(&view, "k", NOW_MS).ready);
    plan_cleanup struct plan waits = {0}, goes = {0};
    migration_decide(&view, NOW_MS, &waits);
    assert_null(plan_find(&waits, PLAN_CREATE, API_KIND_POD));
    view.limits.room = true;
    migration_decide(&view, NOW_MS, &goes);
    assert_non_null(plan_find(&goes, PLAN_CREATE, API_KIND_POD));
    api_object_unref(refused);
    objects_done(&o);
}

/* 15: one that waits and has a target pod has a place */
static void test_pending_with_a_pod_counts(void **state)
{
    static const char *const pods[] = {NULL, STARTING, PLAIN, "{'status':{'phase':'Failed'}}"};
    static const bool active[] = {false, true, true, false};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(pods); i++) {
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Pending") "}"),
            .vmi = make_object(API_KIND_VMI, VMI, NULL),
            .target = pods[i] ? make_object(API_KIND_POD, TARGET, pods[i]) : NULL,
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        const struct api_object *all[] = {o.migration};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .target_pod = o.target,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .settings = &migration_default_settings};

        assert_int_equal(migration_ledger_row(&view, "k", NOW_MS).active, active[i]);
        objects_done(&o);
    }
}

/* A pod that was refused for another reason says so, and stands aside as well. */
static void test_refused(void **state)
{
    static const struct {
        const char *name, *message, *condition, *other, *reason;
        enum wire_error error;
    } rows[] = {
        {"quota", "pods x is forbidden: exceeded quota: q", "migrationRejectedByResourceQuota",
         "migrationTargetPodRefused", "Quota", WIRE_ERROR_QUOTA},
        {"admission", "create pods ns/x: violates PodSecurity", "migrationTargetPodRefused",
         "migrationRejectedByResourceQuota", "TargetPodPending", WIRE_ERROR_NONE},
    };
    static const char *const before[] = {
        "{" PHASE("Pending") "}", "{}",
        "{'status':{'phase':'Pending','conditions':[{'type':'migrationTargetPodRefused','status':"
        "'True'},{'type':'migrationRejectedByResourceQuota','status':'True'},{'type':'x','status':"
        "'True'}]}}"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(before); i++) {
        size_t k = i % COUNT_OF(rows);
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, before[i / COUNT_OF(rows)]),
            .vmi = make_object(API_KIND_VMI, VMI, NULL),
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        const struct api_object *all[] = {o.migration};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        struct ferry_error err;

        ferry_fail_reason(&err, FERRY_DENIED, wire_error_text(rows[k].error), "%s",
                          rows[k].message);
        migration_decide_refused(&view, &err, NOW_MS, &p);
        ferry_cleanup_free char *text = patches_of(&p, API_KIND_MIGRATION);
        if (!strstr(text, rows[k].condition) || strstr(text, rows[k].other) ||
            !strstr(text, rows[k].message) || !ferry_streq(p.reason, rows[k].reason)) {
            fail_msg("%s: %s: %s", rows[k].name, p.reason, text);
        }
        assert_true(has_event(&p, "FailedCreate"));
        assert_int_equal(p.again_ms, 30000);
        check_patch(rows[k].name, &p, o.migration, API_KIND_MIGRATION, rows[k].condition);
        api_cleanup_object struct api_object *refused = patched_object(
            o.migration, plan_find(&p, PLAN_PATCH_STATUS, API_KIND_MIGRATION)->body, false);
        assert_true(migration_is_refused(&refused->u.migration));
        assert_true(i / COUNT_OF(rows) != 2 ||
                    api_condition_true(&refused->u.migration.conditions, "x"));
        view.migration = all[0] = refused;
        assert_false(migration_ledger_row(&view, "k", NOW_MS).ready);

        /* Let in, the condition goes. */
        plan_cleanup struct plan waits = {0}, goes = {0};
        migration_decide(&view, NOW_MS, &waits);
        assert_null(plan_find(&waits, PLAN_CREATE, API_KIND_POD));
        view.limits.room = true;
        migration_decide(&view, NOW_MS, &goes);
        assert_non_null(plan_find(&goes, PLAN_CREATE, API_KIND_POD));
        objects_done(&o);
    }
}

/* One that cannot start for its policy does not stand at the head of the queue. */
static void test_policy_that_cannot_be_used(void **state)
{
    static const struct {
        const char *name, *policy;
        bool ready;
    } rows[] = {
        {"fine", "{'spec':{'selectors':{},'bandwidthPerMigration':'1Gi'}}", true},
        {"no quantity", "{'spec':{'selectors':{},'bandwidthPerMigration':'much'}}", false},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, "{" PHASE("Pending") "}"),
            .vmi = make_object(API_KIND_VMI, VMI, NULL),
            .source = make_object(API_KIND_POD, SOURCE, NULL),
        };
        api_cleanup_object struct api_object *policy =
            make_object(API_KIND_POLICY, "{'metadata':{'name':'p'}}", rows[i].policy);
        const struct api_object *all[] = {o.migration}, *policies[] = {policy};
        struct migration_view view = {.migration = o.migration,
                                      .vmi = o.vmi,
                                      .source_pod = o.source,
                                      .migrations = all,
                                      .n_migrations = 1,
                                      .policies = policies,
                                      .n_policies = 1,
                                      .limits = {.start = true},
                                      .settings = &migration_default_settings};
        plan_cleanup struct plan p = {0};

        migration_decide(&view, NOW_MS, &p);
        bool ready = migration_ledger_row(&view, "k", NOW_MS).ready;
        bool creates = plan_find(&p, PLAN_CREATE, API_KIND_POD) != NULL;
        if (ready != rows[i].ready || creates != rows[i].ready) {
            fail_msg("%s: ready %d, creates %d: %s", rows[i].name, ready, creates,
                     p.reason ? p.reason : "-");
        }
        objects_done(&o);
    }
}

/* What an answer that was lost may hide. */
static void test_took_effect(void **state)
{
    static const struct {
        const char *name, *vmi, *target;
        bool did;
    } rows[] = {
        {"nothing was done", PLAIN, NULL, false},
        {"the VM is gone", GONE, NULL, false},
        {"the pod is there", PLAIN, STARTING, true},
        {"the VM was handed over", STATE("'targetPod':'x'"), NULL, true},
        {"the VM was handed to another", OTHER_STATE(""), NULL, false},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct objects o = {
            .migration = make_object(API_KIND_MIGRATION, MIGRATION, NULL),
            .vmi =
                strcmp(rows[i].vmi, GONE) == 0 ? NULL : make_object(API_KIND_VMI, VMI, rows[i].vmi),
            .target = rows[i].target ? make_object(API_KIND_POD, TARGET, rows[i].target) : NULL,
        };

        if (migration_took_effect(&(struct migration_view){
                .migration = o.migration, .vmi = o.vmi, .target_pod = o.target}) != rows[i].did) {
            fail_msg("%s", rows[i].name);
        }
        objects_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota),       cmocka_unit_test(test_pending_with_a_pod_counts),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_policy_that_cannot_be_used),
        cmocka_unit_test(test_took_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
