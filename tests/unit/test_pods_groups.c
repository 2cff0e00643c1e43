/* Agents that start at the same time remove what dead ones left, and never what one of them has.
 * Needs root and control groups; skipped without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "pods/cgroup.h"

enum { AGENTS = 6, STARTS = 150 };

static char *node_group(const struct cgroup_layout *l, int c)
{
    return ferry_asprintf("%s/ferry-pods/%s", l->of[c].mount, l->node);
}

/* An agent: starts, looks whether its groups are there, ends, again and again. */
static int agent(const char *dir)
{
    for (int i = 0; i < STARTS; i++) {
        struct cgroup_layout l;

        cgroup_detect(dir, &l);
        for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
            ferry_cleanup_free char *group = l.of[c].mount ? node_group(&l, c) : NULL;

            if (group && access(group, F_OK) < 0) {
                fprintf(stderr, "%s is gone at start %d\n", group, i);
                return 1;
            }
        }
        cgroup_layout_done(&l);
    }
    return 0;
}

/* The last agent takes what the others left, and then its own. */
static void leave_nothing(const char *base)
{
    struct cgroup_layout l;

    cgroup_detect(base, &l);
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        ferry_cleanup_free char *group = l.of[c].mount ? node_group(&l, c) : NULL;

        if (group) {
            rmdir(group);
        }
    }
    cgroup_layout_done(&l);
    ferry_remove_tree(base, NULL);
}

static void groups_of_the_living_stay(void **state)
{
    char base[] = "/tmp/ferry-groups-XXXXXX";
    struct cgroup_layout l;
    pid_t agents[AGENTS];

    (void)state;
    assert_non_null(mkdtemp(base));
    cgroup_detect(base, &l);
    bool any = l.of[0].mount || l.of[1].mount || l.of[2].mount;
    cgroup_layout_done(&l);
    for (int i = 0; any && i < AGENTS; i++) {
        agents[i] = fork();
        assert_true(agents[i] >= 0);
        if (agents[i] == 0) {
            ferry_cleanup_free char *dir = ferry_asprintf("%s/%d", base, i);

            _exit(agent(dir));
        }
    }
    int bad = 0;
    for (int i = 0; any && i < AGENTS; i++) {
        int status = 0;

        assert_int_equal(waitpid(agents[i], &status, 0), agents[i]);
        bad += status != 0;
    }
    leave_nothing(base);
    if (!any) {
        skip();
    }
    assert_int_equal(bad, 0);
}

/* An agent is away for a moment while another one starts on the host: the group of its pod that has
 * ended stays as long as the pod's directory, and is gone without. */
static void groups_of_an_agent_that_is_away_stay(void **state)
{
    char base[] = "/tmp/ferry-groups-XXXXXX";
    const struct cgroup_limits none = {0};
    struct ferry_error err;
    struct cgroup_layout l;

    (void)state;
    assert_non_null(mkdtemp(base));
    ferry_cleanup_free char *away = ferry_asprintf("%s/away", base);
    ferry_cleanup_free char *other = ferry_asprintf("%s/other", base);
    ferry_cleanup_free char *pod = ferry_asprintf("%s/there", away);
    assert_int_equal(ferry_mkdir_p(pod, 0700, &err), 0);
    cgroup_detect(away, &l);
    enum cgroup_controller c = 0;
    while (c < CGROUP_CONTROLLERS && !l.of[c].mount) {
        c++;
    }
    if (c == CGROUP_CONTROLLERS) {
        ferry_remove_tree(base, NULL);
        skip();
    }
    ferry_cleanup_free char *node = node_group(&l, (int)c);
    ferry_cleanup_free char *there = ferry_asprintf("%s/there", node);
    ferry_cleanup_free char *gone = ferry_asprintf("%s/gone", node);
    for (int i = 0; i < 2; i++) {
        ferry_cleanup(cgroup_joins_done) struct cgroup_joins joins = {0};

        assert_int_equal(cgroup_make(&l, i ? "gone" : "there", &none, &joins, &err), 0);
    }
    cgroup_layout_done(&l);
    cgroup_detect(other, &l);
    assert_int_equal(access(there, F_OK), 0);
    assert_int_not_equal(access(gone, F_OK), 0);
    cgroup_layout_done(&l);
    assert_int_equal(ferry_remove_tree(pod, &err), 0);
    cgroup_detect(other, &l);
    assert_int_not_equal(access(node, F_OK), 0);
    cgroup_layout_done(&l);
    leave_nothing(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_the_living_stay),
        cmocka_unit_test(groups_of_an_agent_that_is_away_stay),
    };

    ferry_log_init("test", FERRY_LOG_ERROR, FERRY_LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
