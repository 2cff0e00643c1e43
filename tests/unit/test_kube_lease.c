#include "lib/unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "kube/lease.h"

static void test_decide(void **state)
{
    static const struct {
        const char *name, *holder;
        bool none, gone;
        int64_t duration_s, unchanged_ms;
        enum kube_lease_step step;
    } cases[] = {
        {"there is none", NULL, .none = true, .step = KUBE_LEASE_CREATE},
        {"given back", "", .duration_s = 15, .step = KUBE_LEASE_TAKE},
        {"never held", NULL, .duration_s = 15, .step = KUBE_LEASE_TAKE},
        {"ours", "me", .duration_s = 15, .step = KUBE_LEASE_RENEW},
        {"ours, long ago", "me", .duration_s = 15, .unchanged_ms = 60000, .step = KUBE_LEASE_RENEW},
        {"another's", "you", .duration_s = 15, .unchanged_ms = 14999, .step = KUBE_LEASE_WAIT},
        {"another's, expired", "you", .duration_s = 15, .unchanged_ms = 15000,
         .step = KUBE_LEASE_TAKE},
        {"another's with its own duration", "you", .duration_s = 60, .unchanged_ms = 20000,
         .step = KUBE_LEASE_WAIT},
        {"another's without a duration", "you", .unchanged_ms = 14000, .step = KUBE_LEASE_WAIT},
        {"another's, whose process is gone", "you", .duration_s = 15, .gone = true,
         .step = KUBE_LEASE_TAKE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct api_lease lease = {.holder = cases[i].holder, .duration_s = cases[i].duration_s};
        enum kube_lease_step got =
            kube_lease_decide(&(struct kube_lease_view){.lease = cases[i].none ? NULL : &lease,
                                                        .self = "me",
                                                        .unchanged_ms = cases[i].unchanged_ms,
                                                        .holder_is_gone = cases[i].gone});

        if (got != cases[i].step) {
            fail_msg("%s: step %d", cases[i].name, got);
        }
    }
}

static void test_identity(void **state)
{
    (void)state;
    ferry_cleanup_free char *me = kube_lease_identity();
    ferry_cleanup_free char *elsewhere = ferry_asprintf("x%s", me);
    ferry_cleanup_free char *odd = ferry_asprintf("%s_1", me);
    int fds[2];
    char child[512] = "";

    assert_false(kube_lease_is_gone(me));
    assert_false(kube_lease_is_gone(elsewhere)); /* another host: nothing can be said */
    assert_false(kube_lease_is_gone(odd));
    assert_false(kube_lease_is_gone(""));
    assert_false(kube_lease_is_gone("somebody"));

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ferry_cleanup_free char *id = kube_lease_identity();

        _exit(write(fds[1], id, strlen(id)) < 0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(read(fds[0], child, sizeof(child) - 1) > 0);
    close(fds[0]);
    close(fds[1]);
    assert_true(kube_lease_is_gone(child));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decide),
        cmocka_unit_test(test_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
