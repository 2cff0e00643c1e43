#include "base/options.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/count.h"
#include "base/printable.h"
#include "base/str.h"

#ifndef FERRY_VERSION
#define FERRY_VERSION "unknown"
#endif

enum { OPT_HELP = 256, OPT_VERSION, OPT_CONFIG, OPT_FIRST };

static void print_help(const struct ferry_command *cmd)
{
    printf("Usage: %s %s\n\n%s\n\nOptions:\n", cmd->name, cmd->usage, cmd->summary);
    for (const struct ferry_option *o = cmd->options; o && o->name; o++) {
        char left[64];

        snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
                 o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
                 o->argument ? " " : "", o->argument ? o->argument : "");
        printf("  %-30s %s\n", left, o->help);
    }
    if (cmd->config) {
        printf("  %-30s %s%s.conf)\n", "    --config FILE",
               "these options as settings (default: /etc/ferry/", cmd->config);
    }
    printf("  %-30s %s\n  %-30s %s\n", "-h, --help", "show this help", "    --version",
           "show the version");
    if (cmd->epilogue) {
        printf("\n%s\n", cmd->epilogue);
    }
}

static int store_flag(const struct ferry_option *o, const char *value, struct ferry_error *err)
{
    static const char *const words[] = {"no", "yes", "false", "true"};

    for (size_t i = 0; value && i < FERRY_COUNT(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *(bool *)o->dest = i % 2;
            return 0;
        }
    }
    *(bool *)o->dest = true;
    return value
               ? ferry_fail(err, FERRY_INVALID, "--%s: '%s' is neither yes nor no", o->name, value)
               : 0;
}

int ferry_option_store(const struct ferry_option *o, const char *value, struct ferry_error *err)
{
    long long number;

    switch (o->type) {
    case FERRY_OPTION_FLAG:
        return store_flag(o, value, err);
    case FERRY_OPTION_STRING:
        *(const char **)o->dest = value;
        return 0;
    case FERRY_OPTION_INT:
        if (ferry_parse_int(value, 0, INT_MAX, &number, err) < 0) {
            return ferry_wrap(err, "--%s", o->name);
        }
        *(int *)o->dest = (int)number;
        return 0;
    case FERRY_OPTION_LIST: {
        struct ferry_option_list *list = o->dest;

        if (list->n == FERRY_OPTION_LIST_MAX) {
            return ferry_fail(err, FERRY_INVALID, "--%s: given more than %d times", o->name,
                              FERRY_OPTION_LIST_MAX);
        }
        list->items[list->n++] = value;
        return 0;
    }
    }
    return ferry_fail(err, FERRY_FATAL, "--%s: unknown option type", o->name);
}

/* ---- the command line -------------------------------------------------------------------------
 */

struct line {
    const struct ferry_command *cmd;
    size_t n; /* options */
    struct option *longs;
    struct ferry_buf shorts;
    int *seen; /* line of the settings file that set an option; 0 = none */
    const char *config, *root;
};

static void line_done(struct line *l)
{
    free(l->longs);
    free(l->seen);
    ferry_buf_done(&l->shorts);
}

static void line_init(struct line *l, const struct ferry_command *cmd)
{
    *l = (struct line){.cmd = cmd};
    for (const struct ferry_option *o = cmd->options; o && o->name; o++) {
        l->n++;
    }
    l->longs = ferry_xcalloc(l->n + 4, sizeof(*l->longs));
    l->seen = ferry_xcalloc(l->n + 1, sizeof(*l->seen));
    ferry_buf_puts(&l->shorts, ":h");
    for (size_t i = 0; i < l->n; i++) {
        const struct ferry_option *o = &cmd->options[i];
        bool flag = o->type == FERRY_OPTION_FLAG;
        int has_arg = !flag ? required_argument : cmd->config ? optional_argument : no_argument;

        l->longs[i] = (struct option){o->name, has_arg, NULL, OPT_FIRST + (int)i};
        if (o->letter) {
            ferry_buf_printf(&l->shorts, "%c%s", o->letter, flag ? "" : ":");
        }
    }
    l->longs[l->n] = (struct option){"help", no_argument, NULL, OPT_HELP};
    l->longs[l->n + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    if (cmd->config) {
        l->longs[l->n + 2] = (struct option){"config", required_argument, NULL, OPT_CONFIG};
    }
}

static size_t find_option(const struct line *l, int c)
{
    size_t i = 0;

    while (i < l->n && c != OPT_FIRST + (int)i && (c >= 256 || c != l->cmd->options[i].letter)) {
        i++;
    }
    return i;
}

/* What is given replaces what the file says. */
static int take(struct line *l, size_t i, const char *value, struct ferry_error *err)
{
    const struct ferry_option *o = &l->cmd->options[i];

    if (l->seen[i] && o->type == FERRY_OPTION_LIST) {
        ((struct ferry_option_list *)o->dest)->n = 0;
    }
    l->seen[i] = 0;
    return ferry_option_store(o, value, err);
}

/* One pass over argv. With `only_look` nothing is stored but where the settings file is. */
static int pass(struct line *l, bool only_look, int argc, char **argv, struct ferry_error *err)
{
    optind = 0; /* restart getopt: verbs parse their own part */
    opterr = 0;
    for (;;) {
        int c = getopt_long(argc, argv, l->shorts.data, l->longs, NULL), rc = 0;

        if (c == -1) {
            return optind;
        }
        if (c == 'h' || c == OPT_HELP) {
            print_help(l->cmd);
            exit(FERRY_EXIT_OK);
        }
        if (c == OPT_VERSION) {
            printf("%s %s\n", l->cmd->name, FERRY_VERSION);
            exit(FERRY_EXIT_OK);
        }
        if (c == '?' || c == ':') {
            return ferry_fail(err, FERRY_INVALID, "%s %s (see %s --help)",
                              c == '?' ? "unknown option" : "a value is missing after",
                              argv[optind - 1], l->cmd->name);
        }
        size_t i = find_option(l, c);
        if (c == OPT_CONFIG) {
            l->config = optarg;
        } else if (i == l->n) {
            return ferry_fail(err, FERRY_FATAL, "option %d is not in the table", c);
        } else if (only_look) {
            l->root = strcmp(l->cmd->options[i].name, "root") == 0 ? optarg : l->root;
        } else {
            rc = take(l, i, optarg, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
}

int ferry_options_parse(const struct ferry_command *cmd, int argc, char **argv,
                        struct ferry_error *err)
{
    ferry_cleanup(line_done) struct line l;
    int rc = 0;

    line_init(&l, cmd);
    if (cmd->config) {
        rc = pass(&l, true, argc, argv, err);
        if (rc >= 0) {
            ferry_cleanup_free char *standard =
                ferry_asprintf("%s/etc/ferry/%s.conf", l.root ? l.root : "", cmd->config);

            rc = ferry_config_read(l.config ? l.config : standard, l.config != NULL, cmd->options,
                                   l.seen, err);
        }
    }
    return rc < 0 ? rc : pass(&l, false, argc, argv, err);
}

int ferry_log_options_apply(const char *program, const struct ferry_log_options *lo,
                            struct ferry_error *err)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    int level = lo->level ? -1 : FERRY_LOG_INFO;
    enum ferry_log_format format = FERRY_LOG_TEXT;

    for (int i = 0; lo->level && i < 4; i++) {
        if (ferry_streq(lo->level, levels[i])) {
            level = i;
        }
    }
    if (level < 0) {
        return ferry_fail(err, FERRY_INVALID,
                          "--log-level: '%s' is none of debug, info, warning, error", lo->level);
    }
    if (lo->format) {
        if (ferry_streq(lo->format, "json")) {
            format = FERRY_LOG_JSON;
        } else if (!ferry_streq(lo->format, "text")) {
            return ferry_fail(err, FERRY_INVALID, "--log-format: '%s' is neither text nor json",
                              lo->format);
        }
    }
    ferry_log_init(program, (enum ferry_log_level)level, format);
    return 0;
}

static int extra_signal; /* set before the first thread */

static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    if (extra_signal) {
        sigaddset(set, extra_signal);
    }
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void ferry_signals_block(void)
{
    sigset_t set;

    stop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void ferry_signals_block_also(int sig)
{
    extra_signal = sig;
    ferry_signals_block();
}

int ferry_signals_wait(int64_t deadline_ns)
{
    sigset_t set;

    stop_signals(&set);
    for (;;) {
        int left = ferry_ms_left(deadline_ns);
        struct timespec t = {.tv_sec = left / 1000, .tv_nsec = (left % 1000) * FERRY_NS_PER_MS};
        int got = sigtimedwait(&set, NULL, &t);

        if (got > 0) {
            return got;
        }
        if (ferry_ms_left(deadline_ns) == 0) {
            return 0;
        }
    }
}

int ferry_die(const char *program, int code, const struct ferry_error *err)
{
    ferry_cleanup_free char *text = ferry_printable_dup(err->msg); /* others had a part in it */

    fprintf(stderr, "%s: %s\n", program, text);
    return code;
}
