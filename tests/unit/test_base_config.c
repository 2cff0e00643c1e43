/* Settings files: what they may say, what they may not, and who wins. */
#include "lib/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/fd.h"
#include "base/str.h"

struct values {
    const char *node, *root;
    int port;
    bool flag, other;
    struct ferry_option_list listen;
};

enum { OPTIONS = 7 };

static void fill(struct ferry_option ret[OPTIONS], struct values *v)
{
    const struct ferry_option all[OPTIONS] = {
        {"node", 'n', FERRY_OPTION_STRING, &v->node, "NAME", ""},
        {"root", 0, FERRY_OPTION_STRING, &v->root, "DIR", ""},
        {"port", 0, FERRY_OPTION_INT, &v->port, "N", ""},
        {"flag", 'f', FERRY_OPTION_FLAG, &v->flag, NULL, ""},
        {"other", 0, FERRY_OPTION_FLAG, &v->other, NULL, ""},
        {"listen", 0, FERRY_OPTION_LIST, &v->listen, "ADDRESS", ""},
        {0},
    };

    memcpy(ret, all, sizeof(all));
}

/* The values in one line. */
static char *show(const struct values *v)
{
    struct ferry_buf b = {0};

    ferry_buf_printf(&b, "node=%s port=%d flag=%d other=%d", v->node ? v->node : "-", v->port,
                     v->flag, v->other);
    for (size_t i = 0; i < v->listen.n; i++) {
        ferry_buf_printf(&b, " %s", v->listen.items[i]);
    }
    return ferry_buf_take(&b);
}

#define NUL "\001" /* becomes one */

static void files(void **state)
{
    static const struct {
        const char *name, *text;
        const char *want, *error; /* one of them */
    } cases[] = {
        {"nothing", "", "node=- port=0 flag=0 other=0", NULL},
        {"comments and empty lines", "\n# node = a\n   \n\t# x\n", "node=- port=0 flag=0 other=0",
         NULL},
        {"a setting", "node = a\n", "node=a port=0 flag=0 other=0", NULL},
        {"no newline at the end", "node = a", "node=a port=0 flag=0 other=0", NULL},
        {"no blanks", "node=a\nport=7", "node=a port=7 flag=0 other=0", NULL},
        {"blanks around", "  node \t=\t a b \t\n", "node=a b port=0 flag=0 other=0", NULL},
        {"lines of DOS", "node = a\r\nport = 7\r\n", "node=a port=7 flag=0 other=0", NULL},
        {"a value is taken as it stands", "node = \"a\" # = b\n",
         "node=\"a\" # = b port=0 flag=0 other=0", NULL},
        {"flags", "flag = yes\nother = true\n", "node=- port=0 flag=1 other=1", NULL},
        {"flags that are not", "flag = no\nother = false\n", "node=- port=0 flag=0 other=0", NULL},
        {"more than once", "listen = 1\nnode = a\nlisten = 2\n", "node=a port=0 flag=0 other=0 1 2",
         NULL},
        {"not known", "node = a\n\nnod = b\n", NULL,
         "f:3: there is no setting 'nod'; did you mean 'node'?"},
        {"not known at all", "elephant = b\n", NULL, "f:1: there is no setting 'elephant'"},
        {"with its dashes", "--node = b\n", NULL,
         "f:1: there is no setting '--node'; did you mean 'node'?"},
        {"the file itself", "config = /x\n", NULL, "f:1: there is no setting 'config'"},
        {"no key", "= b\n", NULL, "f:1: there is no setting ''"},
        {"no equals sign", "# x\nnode a\n", NULL, "f:2: expected SETTING = VALUE"},
        {"no value", "node =  \n", NULL, "f:1: 'node' has no value"},
        {"twice", "node = a\nport = 1\nnode = a\n", NULL, "f:3: 'node' is set in line 1 already"},
        {"no number", "port = x\n", NULL, "f:1: --port: 'x' is not a whole number"},
        {"a flag that is neither", "flag = 1\n", NULL, "f:1: --flag: '1' is neither yes nor no"},
        {"a section", "[ferry]\nnode = a\n", NULL, "f:1: expected SETTING = VALUE"},
        {"a control character", "port = 1\nnode = a\033[31m\n", NULL,
         "f:2: a control character (27)"},
        {"a NUL", "node = a" NUL "b\n", NULL, "f:1: a control character (0)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct values v = {0};
        struct ferry_option options[OPTIONS];
        struct ferry_error err = {0};
        int seen[OPTIONS] = {0};
        size_t len = strlen(cases[i].text);
        ferry_cleanup_free char *text = ferry_strdup(cases[i].text);

        for (size_t k = 0; k < len; k++) {
            text[k] = text[k] == NUL[0] ? '\0' : text[k];
        }
        fill(options, &v);
        int rc = ferry_config_apply("f", text, len, options, seen, &err);
        ferry_cleanup_free char *got = show(&v);
        if (rc < 0 ? !cases[i].error || !ferry_str_starts(err.msg, cases[i].error)
                   : !ferry_streq(got, cases[i].want)) {
            fail_msg("%s: %s", cases[i].name, rc < 0 ? err.msg : got);
        }
    }
}

/* The settings file stands at ROOT/etc/ferry/test.conf, `other` beside it. */
struct home {
    char root[64], *standard, *other;
};

static int make_home(void **state)
{
    struct home *h = ferry_xcalloc(1, sizeof(*h));
    static const char text[] = "node = file\nport = 1\nflag = yes\nlisten = f1\nlisten = f2\n";
    static const char other[] = "node = elsewhere\n";

    snprintf(h->root, sizeof(h->root), "/tmp/ferry-config.XXXXXX");
    assert_non_null(mkdtemp(h->root));
    ferry_cleanup_free char *dir = ferry_asprintf("%s/etc/ferry", h->root);
    h->standard = ferry_asprintf("%s/test.conf", dir);
    h->other = ferry_asprintf("%s/other.conf", dir);
    assert_int_equal(ferry_mkdir_p(dir, 0755, NULL), 0);
    assert_int_equal(ferry_write_file(h->standard, text, strlen(text), 0644, NULL), 0);
    assert_int_equal(ferry_write_file(h->other, other, strlen(other), 0644, NULL), 0);
    *state = h;
    return 0;
}

static int drop_home(void **state)
{
    struct home *h = *state;

    ferry_remove_tree(h->root, NULL);
    free(h->standard);
    free(h->other);
    free(h);
    return 0;
}

/* Words of a line; ROOT and OTHER stand for the paths. */
static int parse(const struct home *h, const char *line, bool has_config, struct values *v,
                 struct ferry_error *err)
{
    ferry_cleanup_free char *words = ferry_strdup(line);
    char program[] = "test", *argv[16] = {program}, *save = NULL;
    struct ferry_option options[OPTIONS];
    int argc = 1;

    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        argv[argc++] = strcmp(w, "ROOT") == 0    ? (char *)h->root
                       : strcmp(w, "OTHER") == 0 ? h->other
                                                 : w;
    }
    fill(options, v);
    const struct ferry_command cmd = {.name = "test",
                                      .usage = "",
                                      .summary = "",
                                      .options = options,
                                      .config = has_config ? "test" : NULL};
    int rc = ferry_options_parse(&cmd, argc, argv, err);
    /* Values of the line go with it. */
    static char node[32];
    if (v->node) {
        snprintf(node, sizeof(node), "%s", v->node);
        v->node = node;
    }
    static char items[FERRY_OPTION_LIST_MAX][32];
    for (size_t i = 0; i < v->listen.n; i++) {
        snprintf(items[i], sizeof(items[i]), "%s", v->listen.items[i]);
        v->listen.items[i] = items[i];
    }
    return rc;
}

static void who_wins(void **state)
{
    static const struct {
        const char *line;
        bool no_config;
        const char *want, *error;
    } cases[] = {
        {"--root ROOT", false, "node=file port=1 flag=1 other=0 f1 f2", NULL},
        {"", false, "node=- port=0 flag=0 other=0", NULL},
        {"--root ROOT", true, "node=- port=0 flag=0 other=0", NULL},
        {"--root ROOT --node line", false, "node=line port=1 flag=1 other=0 f1 f2", NULL},
        {"-n line --root ROOT", false, "node=line port=1 flag=1 other=0 f1 f2", NULL},
        {"--root ROOT --port 0", false, "node=file port=0 flag=1 other=0 f1 f2", NULL},
        {"--root ROOT --flag=no --other", false, "node=file port=1 flag=0 other=1 f1 f2", NULL},
        {"--root ROOT --listen a", false, "node=file port=1 flag=1 other=0 a", NULL},
        {"--root ROOT --listen a --listen b --listen c", false,
         "node=file port=1 flag=1 other=0 a b c", NULL},
        {"--root ROOT --config OTHER", false, "node=elsewhere port=0 flag=0 other=0", NULL},
        {"--config OTHER --port 4", false, "node=elsewhere port=4 flag=0 other=0", NULL},
        {"--root ROOT --config /dev/null", false, "node=- port=0 flag=0 other=0", NULL},
        {"--config /nonexistent/x", false, NULL, "reading /nonexistent/x"},
        {"--config OTHER", true, NULL, "unknown option --config"},
        {"--flag=no", true, NULL, "unknown option --flag=no"},
        {"--flag=perhaps", false, NULL, "--flag: 'perhaps' is neither yes nor no"},
        {"--config", false, NULL, "a value is missing after --config"},
    };
    const struct home *h = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct values v = {0};
        struct ferry_error err = {0};
        int rc = parse(h, cases[i].line, !cases[i].no_config, &v, &err);
        ferry_cleanup_free char *got = show(&v);

        if (rc < 0 ? !cases[i].error || !ferry_str_starts(err.msg, cases[i].error)
                   : !ferry_streq(got, cases[i].want)) {
            fail_msg("'%s': %s", cases[i].line, rc < 0 ? err.msg : got);
        }
    }
}

/* What others may write, they could have a root's program do. */
static void who_wrote_it(void **state)
{
    static const struct {
        mode_t mode;
        bool taken;
    } cases[] = {{0644, true}, {0600, true}, {0664, false}, {0646, false}, {0666, false}};
    const struct home *h = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct values v = {0};
        struct ferry_error err = {0};

        assert_int_equal(chmod(h->other, cases[i].mode), 0);
        int rc = parse(h, "--config OTHER", true, &v, &err);
        assert_int_equal(rc >= 0, cases[i].taken);
        assert_true(rc >= 0 || strstr(err.msg, "others than its owner may write it"));
    }
}

static void too_long(void **state)
{
    const struct home *h = *state;
    ferry_cleanup_free char *text = ferry_xcalloc(1, FERRY_CONFIG_MAX_BYTES + 2);
    struct values v = {0};
    struct ferry_error err = {0};

    memset(text, '#', FERRY_CONFIG_MAX_BYTES + 1);
    assert_int_equal(ferry_write_file(h->other, text, FERRY_CONFIG_MAX_BYTES, 0644, NULL), 0);
    assert_true(parse(h, "--config OTHER", true, &v, &err) >= 0);
    assert_int_equal(ferry_write_file(h->other, text, FERRY_CONFIG_MAX_BYTES + 1, 0644, NULL), 0);
    assert_true(parse(h, "--config OTHER", true, &v, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
        cmocka_unit_test_setup_teardown(who_wins, make_home, drop_home),
        cmocka_unit_test_setup_teardown(who_wrote_it, make_home, drop_home),
        cmocka_unit_test_setup_teardown(too_long, make_home, drop_home),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
