/* Command-line options from a table: parsing, --help and --version in one form for every program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"

enum ferry_option_type {
    FERRY_OPTION_FLAG,   /* dest: bool */
    FERRY_OPTION_STRING, /* dest: const char * (into argv) */
    FERRY_OPTION_INT,    /* dest: int, not negative */
    FERRY_OPTION_LIST,   /* dest: struct ferry_option_list, may be given more than once */
};

struct ferry_option {
    const char *name; /* without the dashes; NULL ends the table */
    char letter;      /* or 0 */
    enum ferry_option_type type;
    void *dest;
    const char *argument; /* shown in the help: "DIR" */
    const char *help;
};

enum { FERRY_OPTION_LIST_MAX = 16 };
struct ferry_option_list {
    const char *items[FERRY_OPTION_LIST_MAX];
    size_t n;
};

struct ferry_command {
    const char *name;    /* "ferry-relay serve" */
    const char *usage;   /* what follows the name: "[OPTION]... VM" */
    const char *summary; /* one or more sentences */
    const struct ferry_option *options;
    const char *epilogue; /* after the options, or NULL */
    /* Program whose settings file these options may come from, ROOT/etc/ferry/NAME.conf (ROOT from
     * --root when there is such an option), or NULL. Then there is --config FILE too, and an option
     * without a value can be taken back: --FLAG=no. */
    const char *config;
};

/* Stores a value where the option says; NULL = a flag that was given without one. */
int ferry_option_store(const struct ferry_option *o, const char *value, struct ferry_error *err);

/* The settings file counts first, then the command line: what is given there replaces what the file
 * says. Returns the index of the first positional argument (options may stand anywhere; positionals
 * are moved to the end of argv in order), or a negative class. --help and --version print and exit
 * 0.
 */
int ferry_options_parse(const struct ferry_command *cmd, int argc, char **argv,
                        struct ferry_error *err);

/* Options every program has: log level and format. Put these rows into the table. */
struct ferry_log_options {
    const char *level, *format;
};
#define FERRY_LOG_OPTION_ROWS(lo)                                                                  \
    {"log-level",  0,       FERRY_OPTION_STRING,                                                   \
     &(lo)->level, "LEVEL", "debug, info (default), warning or error"},                            \
    {                                                                                              \
        "log-format", 0, FERRY_OPTION_STRING, &(lo)->format, "FORMAT", "text (default) or json"    \
    }

/* Checks the two values and starts the log. */
int ferry_log_options_apply(const char *program, const struct ferry_log_options *lo,
                            struct ferry_error *err);

/* Blocks SIGTERM, SIGINT and SIGHUP, ignores SIGPIPE. Call before the first thread. */
void ferry_signals_block(void);
/* And one more. */
void ferry_signals_block_also(int sig);
/* Waits for one of the blocked signals; returns its number, or 0 when `deadline_ns` passed. */
int ferry_signals_wait(int64_t deadline_ns);

/* Prints "PROGRAM: message" on standard error; returns `code`. */
int ferry_die(const char *program, int code, const struct ferry_error *err);

/* Exit codes that every program shares. */
enum {
    FERRY_EXIT_OK = 0,
    FERRY_EXIT_FAILED = 1, /* it was tried and did not work */
    FERRY_EXIT_USAGE = 2,  /* the call itself is wrong */
};
