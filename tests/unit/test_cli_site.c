/* Tables for the parts of a site: plan, state file, restart pauses, recognition of processes. */
#include "lib/unit.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/str.h"
#include "cli/site/site_down.h"
#include "cli/site/site_plan.h"
#include "cli/site/site_state.h"
#include "cli/site/site_sweep.h"
#include "cli/site/site_way.h"
#include "cli/site/supervise.h"
#include "cli/verbs/join_plan.h"

static struct site_plan *plan(const char *root, int nodes, int port)
{
    struct site_plan *p = NULL;
    struct ferry_error err;
    const struct site_settings s = {.root = root,
                                    .bin_dir = "/opt/f/bin",
                                    .guest_dir = "/opt/f/guest",
                                    .nodes = nodes,
                                    .port = port};

    assert_int_equal(site_plan_new(&s, &p, &err), 0);
    return p;
}

static void settings_are_checked(void **state)
{
    static const struct {
        const char *root;
        int nodes, port;
        const char *says; /* NULL = fine */
    } cases[] = {
        {"/var/lib/ferry-site", 1, 1, NULL},
        {"/tmp/x", 8, 65535, NULL},
        {"/tmp/x", 0, 6443, "--nodes: 0"},
        {"/tmp/x", 9, 6443, "--nodes: 9"},
        {"/tmp/x", 2, 0, "--port: 0"},
        {"/tmp/x", 2, 65536, "--port: 65536"},
        {"/", 2, 6443, "--root: '/'"},
        {"relative", 2, 6443, "--root: 'relative'"},
        {"/tmp/a b", 2, 6443, "--root: '/tmp/a b'"},
        {"/tmp/../etc", 2, 6443, "--root: '/tmp/../etc'"},
        {"/tmp//x", 2, 6443, "--root: '/tmp//x'"},
        {"/tmp/x/", 2, 6443, "--root: '/tmp/x/'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        site_cleanup_plan struct site_plan *p = NULL;
        struct ferry_error err = {0};
        const struct site_settings s = {.root = cases[i].root,
                                        .bin_dir = "b",
                                        .guest_dir = "g",
                                        .nodes = cases[i].nodes,
                                        .port = cases[i].port};
        int rc = site_plan_new(&s, &p, &err);

        if (!cases[i].says) {
            assert_int_equal(rc, 0);
            continue;
        }
        assert_int_equal(rc, -FERRY_INVALID);
        if (!strstr(err.msg, cases[i].says)) {
            fail_msg("case %zu: '%s' does not say '%s'", i, err.msg, cases[i].says);
        }
    }
}

static void sites_do_not_share_names(void **state)
{
    site_cleanup_plan struct site_plan *a = plan(SITE_DEFAULT_ROOT, 2, 6443);
    site_cleanup_plan struct site_plan *b = plan("/tmp/one", 2, 6443);
    site_cleanup_plan struct site_plan *c = plan("/tmp/two", 2, 6443);
    site_cleanup_plan struct site_plan *again = plan("/tmp/two", 2, 6443);

    (void)state;
    assert_string_equal(a->fabric, "ferry-fabric");
    assert_string_equal(a->nodes[1].netns, "ferry-node2");
    assert_string_not_equal(b->fabric, c->fabric);
    assert_string_not_equal(b->nodes[0].netns, c->nodes[0].netns);
    assert_string_equal(c->nodes[0].netns, again->nodes[0].netns);
    assert_string_equal(b->nodes[0].name, "node1");
}

static void network_of_one_node(void **state)
{
    static const char *const want[] = {
        "ip netns add ferry-fabric",
        "ip -n ferry-fabric link set lo up",
        "ip -n ferry-fabric link add nodes type bridge",
        "ip -n ferry-fabric link add migration type bridge",
        "ip -n ferry-fabric addr add 10.77.0.1/24 dev nodes",
        "ip -n ferry-fabric link set nodes up",
        "ip -n ferry-fabric link set migration up",
        "ip netns add ferry-node1",
        "ip -n ferry-node1 link set lo up",
        "ip -n ferry-fabric link add n1 type veth peer name eth0 netns ferry-node1",
        "ip -n ferry-fabric link set n1 master nodes up",
        "ip -n ferry-node1 addr add 10.77.0.11/24 dev eth0",
        "ip -n ferry-node1 link set eth0 up",
        "ip -n ferry-fabric link add m1 type veth peer name migration0 netns ferry-node1",
        "ip -n ferry-fabric link set m1 master migration up",
        "ip -n ferry-node1 addr add 10.78.0.11/24 dev migration0",
        "ip -n ferry-node1 link set migration0 up",
    };
    site_cleanup_plan struct site_plan *p = plan(SITE_DEFAULT_ROOT, 1, 6443);
    site_cleanup_strings char **lines = site_plan_network(p);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        assert_non_null(lines[i]);
        assert_string_equal(lines[i], want[i]);
    }
    assert_null(lines[COUNT_OF(want)]);
}

/* Everything but `ip netns add` names a namespace: nothing is made in the host's own. */
static void network_stays_out_of_the_host(void **state)
{
    site_cleanup_plan struct site_plan *p = plan("/tmp/one", 8, 6443);
    site_cleanup_strings char **lines = site_plan_network(p);

    (void)state;
    for (char **l = lines; *l; l++) {
        assert_true(ferry_str_starts(*l, "ip netns add ferry-") ||
                    ferry_str_starts(*l, "ip -n ferry-"));
    }
}

static char *join(char *const *argv)
{
    struct ferry_buf b = {0};

    for (; *argv; argv++) {
        ferry_buf_printf(&b, "%s%s", b.len ? " " : "", *argv);
    }
    return ferry_buf_take(&b);
}

static void commands_of_the_programs(void **state)
{
    static const struct {
        const char *name, *netns, *after, *line;
        bool sockets;
    } want[] = {
        {"api", "F", NULL,
         "/opt/f/bin/ferry-apiserver serve --root /s/api --data /s/api/var/lib/ferry --user "
         "61202:61202 --controller-gid 61203",
         true},
        {"controller", NULL, "/s/api/var/lib/ferry/controller.kubeconfig",
         "/opt/f/bin/ferry-controller --config /dev/null --kubeconfig "
         "/s/api/var/lib/ferry/controller.kubeconfig "
         "--embedded --user 61203:61203",
         false},
        {"node1-relay", "N", "/s/node1/var/lib/ferry/node.kubeconfig",
         "/opt/f/bin/ferry-relay serve --root /s/node1 --node node1 --user 61200:61200", false},
        {"node1-pods", "N", "/s/node1/var/lib/ferry/node.kubeconfig",
         "/opt/f/bin/ferry-pods --root /s/node1 --node node1 --kubeconfig "
         "/s/node1/var/lib/ferry/node.kubeconfig --launcher /opt/f/bin/ferry-launcher --guest-dir "
         "/opt/f/guest --relay-gid 61200",
         false},
        {"node1-handler", "N", "/s/node1/var/lib/ferry/node.kubeconfig",
         "/opt/f/bin/ferry-handler --root /s/node1 --node node1 --kubeconfig "
         "/s/node1/var/lib/ferry/node.kubeconfig --node-address 10.77.0.11 --migration-interface "
         "migration0",
         false},
    };
    site_cleanup_plan struct site_plan *p = plan("/s", 1, 7000);
    site_cleanup_daemons struct site_daemons d = site_plan_daemons(p);

    (void)state;
    assert_int_equal(d.n, COUNT_OF(want));
    for (size_t i = 0; i < d.n; i++) {
        ferry_cleanup_free char *line = join(d.items[i].argv);

        assert_string_equal(d.items[i].name, want[i].name);
        assert_string_equal(line, want[i].line);
        assert_int_equal(d.items[i].api_sockets, want[i].sockets);
        const char *netns = !want[i].netns                    ? NULL
                            : ferry_streq(want[i].netns, "F") ? p->fabric
                                                              : p->nodes[0].netns;
        assert_true(ferry_streq(d.items[i].netns, netns));
        assert_true(ferry_streq(d.items[i].after, want[i].after));
    }
}

static void credentials_of_a_node(void **state)
{
    site_cleanup_plan struct site_plan *p = plan("/s", 2, 7000);
    site_cleanup_strings char **node = site_plan_node_pki(p, 1);
    site_cleanup_strings char **controller = site_plan_controller_pki(p);
    ferry_cleanup_free char *n = join(node), *c = join(controller);

    (void)state;
    assert_string_equal(n, "/opt/f/bin/ferry-apiserver pki node node2 --out /s/node2/var/lib/ferry "
                           "--server https://10.77.0.1:7000 --relay-owner 61200:61200 --data "
                           "/s/api/var/lib/ferry");
    assert_string_equal(c, "/opt/f/bin/ferry-apiserver pki controller --server "
                           "https://127.0.0.1:7000 --out "
                           "/s/api/var/lib/ferry/controller.kubeconfig --data "
                           "/s/api/var/lib/ferry --controller-gid 61203");
}

static void state_survives_a_round(void **state)
{
    struct site_process rows[] = {
        {.name = "api", .pid = 41, .start_time = 12345678901, .restarts = 2, .last_exit = 137},
        {.name = "node1-relay", .last_exit = -1},
    };
    struct site_state s = {.bin_dir = (char[]){"/b"},
                           .guest_dir = (char[]){"/g \"quoted\""},
                           .nodes = 3,
                           .port = 7000,
                           .made = {.root = true, .netns = true},
                           .supervisor = {.name = "supervisor", .pid = 40, .start_time = 5},
                           .daemons = rows,
                           .n_daemons = 2};
    ferry_cleanup_free char *text = site_state_encode(&s);
    site_cleanup_state struct site_state *back = NULL;
    struct ferry_error err;

    (void)state;
    assert_int_equal(site_state_decode(text, strlen(text), &back, &err), 0);
    assert_string_equal(back->guest_dir, s.guest_dir);
    assert_int_equal(back->nodes, 3);
    assert_int_equal(back->port, 7000);
    assert_true(back->made.root && back->made.netns);
    assert_int_equal(back->supervisor.pid, 40);
    assert_int_equal(back->n_daemons, 2);
    assert_string_equal(back->daemons[0].name, "api");
    assert_int_equal(back->daemons[0].start_time, 12345678901);
    assert_int_equal(back->daemons[0].last_exit, 137);
    assert_int_equal(back->daemons[1].last_exit, -1);
}

static void broken_state_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "{",
        "[]",
        "{\"version\": 2}",
        "{\"version\": 1}",
        "{\"version\": 1, \"binDir\": \"/b\", \"guestDir\": \"/g\"}",
        ("{\"version\": 1, \"binDir\": \"/b\", \"guestDir\": \"/g\", \"supervisor\": {\"name\": "
         "\"s\"}, \"daemons\": [{}]}"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct site_state *s = NULL;
        struct ferry_error err;

        assert_int_equal(site_state_decode(cases[i], strlen(cases[i]), &s, &err), -FERRY_INVALID);
    }
}

static void a_process_is_pid_and_start(void **state)
{
    struct site_process me = {.pid = getpid(), .start_time = ferry_proc_start_time(getpid())};

    (void)state;
    assert_true(site_process_alive(&me));
    me.start_time++;
    assert_false(site_process_alive(&me));
    assert_false(site_process_alive(&(struct site_process){0}));
}

static void pauses_grow_and_forget(void **state)
{
    static const struct {
        int before;
        int64_t lived_ms, pause_ms;
        int after;
    } cases[] = {
        {0, 0, 100, 1},   {1, 500, 200, 2},      {2, 10, 400, 3},       {5, 9999, 3200, 6},
        {6, 10, 5000, 7}, {1000, 1, 5000, 1001}, {1000, 10000, 100, 1}, {3, 3600000, 100, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int failures = cases[i].before;

        assert_int_equal(supervise_pause_ms(&failures, cases[i].lived_ms), cases[i].pause_ms);
        assert_int_equal(failures, cases[i].after);
    }
}

static void marks_in_environments(void **state)
{
#define ENV(s) s, sizeof(s) - 1
    static const struct {
        const char *text;
        size_t len;
        bool marked;
    } cases[] = {
        {ENV("FERRY_SITE=/s\0"), true},
        {ENV("A=b\0FERRY_SITE=/s\0C=d\0"), true},
        {ENV("A=b\0FERRY_SITE=/s"), true},
        {ENV("FERRY_SITE=/s2\0"), false},
        {ENV("FERRY_SITE=/\0"), false},
        {ENV("XFERRY_SITE=/s\0"), false},
        {ENV(""), false},
        {ENV("\0\0"), false},
    };
#undef ENV

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(site_sweep_marked(cases[i].text, cases[i].len, "/s"), cases[i].marked);
    }
}

static void sandbox_files(void **state)
{
    static const struct {
        const char *text;
        pid_t pid;
        uint64_t ns;
    } cases[] = {
        {"{ \"child-pid\": 4711, \"pid-namespace\": 4026532281 }\n", 4711, 4026532281},
        {"{\"child-pid\": 4711, \"pid-namespace\": 1}\n{\"exit-code\": 0}\n", 4711, 1},
        {"{\"child-pid\": 1, \"pid-namespace\": 1}", 0, 1},
        {"{\"child-pid\": -3}", 0, 0},
        {"{\"child-pid\": \"12\"}", 0, 0},
        {"{\"child-pid\": 12", 0, 0},
        {"", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t ns = 0;

        assert_int_equal(site_sweep_sandbox(cases[i].text, strlen(cases[i].text), &ns),
                         cases[i].pid);
        assert_int_equal(ns, cases[i].ns);
    }
}

static void same_call(void **state)
{
    static const struct {
        const char *cmdline;
        size_t len;
        bool same;
    } rows[] = {
#define LINE(text) text, sizeof(text)
        {LINE("/usr/bin/ferry-relay\0serve\0--node\0n1"), true},
        {LINE("/opt/new/ferry-relay\0serve\0--node\0n1"), true},
        {LINE("ferry-relay\0serve\0--node\0n1"), true},
        {LINE("/usr/bin/ferry-relay\0serve\0--node\0n2"), false},
        {LINE("/usr/bin/ferry-relay\0serve\0--node"), false},
        {LINE("/usr/bin/ferry-relay\0serve\0--node\0n1\0--rate\0001"), false},
        {LINE("/usr/bin/ferry-pods\0serve\0--node\0n1"), false},
        {"/usr/bin/ferry-relay", 20, false}, /* cut off */
        {"", 0, false},
#undef LINE
    };
    char *const argv[] = {(char *)"/usr/bin/ferry-relay", (char *)"serve", (char *)"--node",
                          (char *)"n1", NULL};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (supervise_same_call(rows[i].cmdline, rows[i].len, argv) != rows[i].same) {
            fail_msg("row %zu", i);
        }
    }
}

/* ---- joining --------------------------------------------------------------------------------- */

#define PIN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void tokens_for_joining(void **state)
{
    static const struct {
        const char *text, *token, *pin; /* token NULL = refused */
    } cases[] = {
        {"ferry.a.b", "ferry.a.b", ""},
        {"ferry.a.b:" PIN, "ferry.a.b", PIN},
        {"ferry.a.b:", NULL, NULL},
        {"ferry.a.b:" PIN "0", NULL, NULL},
        {"ferry.a.b:X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", NULL, NULL},
        {"kube.a.b", NULL, NULL},
        {"", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct join_token t = {0};
        int rc = join_token_parse(cases[i].text, &t, NULL);

        assert_int_equal(rc == 0, cases[i].token != NULL);
        assert_true(ferry_streq(t.token, cases[i].token));
        assert_true(!cases[i].pin || ferry_streq(t.fingerprint, cases[i].pin));
        join_token_done(&t);
    }
}

static void servers_to_join(void **state)
{
    static const struct {
        const char *where, *url; /* NULL = refused */
    } cases[] = {
        {"10.0.0.1:7000", "https://10.0.0.1:7000"},
        {"api.example", "https://api.example:6443"},
        {"https://api.example:1", "https://api.example:1"},
        {"[fd00::1]:7000", "https://[fd00::1]:7000"},
        {"[fd00::1]", "https://[fd00::1]:6443"},
        {"fd00::1", NULL},
        {"[fd00::1", NULL},
        {"[fd00::1]x", NULL},
        {"host:0", NULL},
        {"host:70000", NULL},
        {"host:x", NULL},
        {":6443", NULL},
        {"", NULL},
        {"https://", NULL},
        {"host/path", NULL},
        {"user@host", NULL},
        {"a b", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        ferry_cleanup_free char *url = join_server(cases[i].where, &err);

        print_message("  %s\n", cases[i].where);
        assert_true(ferry_streq(url, cases[i].url));
        assert_true(url || err.msg[0]);
    }
}

/* Which directory stops the relay's user: the first that it may not pass. */
static void ways_of_a_user(void **state)
{
#define STEP(p, m, u, g)                                                                           \
    {                                                                                              \
        .path = (char *)(p), .mode = (m), .uid = (u), .gid = (g)                                   \
    }
    static const struct {
        const char *name;
        uid_t uid;
        gid_t gid;
        struct site_step steps[3];
        const char *stops; /* NULL = none does */
    } cases[] = {
        {"open to all", 61200, 61200, {STEP("/", 0755, 0, 0), STEP("/a", 0755, 0, 0)}, NULL},
        {"passable is enough", 61200, 61200, {STEP("/", 0711, 0, 0), STEP("/a", 0711, 0, 0)}, NULL},
        {"a home", 61200, 61200, {STEP("/", 0755, 0, 0), STEP("/root", 0700, 0, 0)}, "/root"},
        {"readable is not passable", 61200, 61200, {STEP("/a", 0744, 0, 0)}, "/a"},
        {"the first one is named",
         61200,
         61200,
         {STEP("/", 0755, 0, 0), STEP("/a", 0700, 0, 0), STEP("/a/b", 0700, 0, 0)},
         "/a"},
        {"only the last", 61200, 61200, {STEP("/", 0755, 0, 0), STEP("/s", 0750, 0, 0)}, "/s"},
        {"its own", 61200, 61200, {STEP("/a", 0700, 61200, 0)}, NULL},
        {"its own, and shut", 61200, 61200, {STEP("/a", 0077, 61200, 0)}, "/a"},
        {"its group's", 61200, 61200, {STEP("/a", 0710, 0, 61200)}, NULL},
        {"its group's, and shut", 61200, 61200, {STEP("/a", 0701, 0, 61200)}, "/a"},
        {"another group's", 61201, 61201, {STEP("/a", 0710, 0, 61200)}, "/a"},
        {"root passes everything", 0, 0, {STEP("/a", 0600, 1000, 1000)}, NULL},
        {"sticky bits are no matter", 61200, 61200, {STEP("/tmp", 01777, 0, 0)}, NULL},
        {"a list says more than the mode",
         61200,
         61200,
         {{.path = (char *)"/a", .mode = 0710, .listed = true}},
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t n = 0;

        while (n < COUNT_OF(cases[i].steps) && cases[i].steps[n].path) {
            n++;
        }
        const struct site_step *s = site_way_stop(cases[i].steps, n, cases[i].uid, cases[i].gid);

        print_message("  %s\n", cases[i].name);
        assert_true(ferry_streq(s ? s->path : NULL, cases[i].stops));
    }
#undef STEP
}

static void mounts_that_go_with_a_site(void **state)
{
    static const struct {
        const char *point;
        bool goes;
    } cases[] = {
        {"/s", false},         {"/s/node1", true},     {"/s/node8/a/b", true}, {"/s/api/x", true},
        {"/s/log", true},      {"/s/mine", false},     {"/s/node9", false},    {"/s/node1x", false},
        {"/s/node", false},    {"/s/logs/x", false},   {"/sx/node1", false},   {"/", false},
        {"/x/s/node1", false}, {"/s/mine/api", false}, {"/s/node10", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].point);
        assert_int_equal(site_down_unmounts("/s", cases[i].point), cases[i].goes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_call),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(sites_do_not_share_names),
        cmocka_unit_test(network_of_one_node),
        cmocka_unit_test(network_stays_out_of_the_host),
        cmocka_unit_test(commands_of_the_programs),
        cmocka_unit_test(credentials_of_a_node),
        cmocka_unit_test(state_survives_a_round),
        cmocka_unit_test(broken_state_is_refused),
        cmocka_unit_test(a_process_is_pid_and_start),
        cmocka_unit_test(pauses_grow_and_forget),
        cmocka_unit_test(marks_in_environments),
        cmocka_unit_test(sandbox_files),
        cmocka_unit_test(tokens_for_joining),
        cmocka_unit_test(servers_to_join),
        cmocka_unit_test(ways_of_a_user),
        cmocka_unit_test(mounts_that_go_with_a_site),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
