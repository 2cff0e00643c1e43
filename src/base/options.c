#include "base/options.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"

#ifndef FERRY_VERSION
#define FERRY_VERSION "unknown"
#endif

enum { OPT_HELP = 256, OPT_VERSION, OPT_FIRST };

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
    printf("  %-30s %s\n  %-30s %s\n", "-h, --help", "show this help", "    --version",
           "show the version");
    if (cmd->epilogue) {
        printf("\n%s\n", cmd->epilogue);
    }
}

static int store(const struct ferry_option *o, const char *value, struct ferry_error *err)
{
    long long number;

    switch (o->type) {
    case FERRY_OPTION_FLAG:
        *(bool *)o->dest = true;
        return 0;
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

int ferry_options_parse(const struct ferry_command *cmd, int argc, char **argv,
                        struct ferry_error *err)
{
    size_t n = 0;

    for (const struct ferry_option *o = cmd->options; o && o->name; o++) {
        n++;
    }
    ferry_cleanup_free struct option *longs = ferry_xcalloc(n + 3, sizeof(*longs));
    ferry_cleanup_buf struct ferry_buf shorts = {0};
    ferry_buf_puts(&shorts, ":h");
    for (size_t i = 0; i < n; i++) {
        const struct ferry_option *o = &cmd->options[i];
        int has_arg = o->type == FERRY_OPTION_FLAG ? no_argument : required_argument;

        longs[i] = (struct option){o->name, has_arg, NULL, OPT_FIRST + (int)i};
        if (o->letter) {
            ferry_buf_printf(&shorts, "%c%s", o->letter, has_arg == required_argument ? ":" : "");
        }
    }
    longs[n] = (struct option){"help", no_argument, NULL, OPT_HELP};
    longs[n + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};

    optind = 0; /* restart getopt: verbs parse their own part */
    opterr = 0;
    for (;;) {
        int c = getopt_long(argc, argv, shorts.data, longs, NULL);

        if (c == -1) {
            return optind;
        }
        if (c == 'h' || c == OPT_HELP) {
            print_help(cmd);
            exit(FERRY_EXIT_OK);
        }
        if (c == OPT_VERSION) {
            printf("%s %s\n", cmd->name, FERRY_VERSION);
            exit(FERRY_EXIT_OK);
        }
        if (c == '?' || c == ':') {
            return ferry_fail(err, FERRY_INVALID, "%s %s (see %s --help)",
                              c == '?' ? "unknown option" : "a value is missing after",
                              argv[optind - 1], cmd->name);
        }
        const struct ferry_option *o = NULL;
        for (size_t i = 0; i < n && !o; i++) {
            if (c == OPT_FIRST + (int)i || (c < 256 && c == cmd->options[i].letter)) {
                o = &cmd->options[i];
            }
        }
        if (!o) {
            return ferry_fail(err, FERRY_FATAL, "option %d is not in the table", c);
        }
        int rc = store(o, optarg, err);
        if (rc < 0) {
            return rc;
        }
    }
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
    fprintf(stderr, "%s: %s\n", program, err->msg);
    return code;
}
