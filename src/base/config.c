#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/suggest.h"

enum { OPTIONS_MAX = 64, WORD_SHOWN = 40 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the blanks off both ends. */
static char *trim(char *s)
{
    size_t n = strlen(s);

    while (n && is_blank(s[n - 1])) {
        s[--n] = '\0';
    }
    while (is_blank(*s)) {
        s++;
    }
    return s;
}

static int check_characters(const char *s, struct ferry_error *err)
{
    for (; *s; s++) {
        if ((iscntrl((unsigned char)*s) && !is_blank(*s))) {
            return ferry_fail(err, FERRY_INVALID, "a control character (%d)", (unsigned char)*s);
        }
    }
    return 0;
}

static int fail_unknown(const struct ferry_option *options, const char *key,
                        struct ferry_error *err)
{
    const char *names[OPTIONS_MAX];
    size_t n = 0;

    for (; options[n].name && n < OPTIONS_MAX; n++) {
        names[n] = options[n].name;
    }
    const char *near = ferry_suggest(key, names, n);
    return ferry_fail(err, FERRY_INVALID, "there is no setting '%.*s'%s%s%s", WORD_SHOWN, key,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int set(const struct ferry_option *options, char *line, int number, int *seen,
               struct ferry_error *err)
{
    char *equals = strchr(line, '=');
    size_t i = 0;

    if (check_characters(line, err) < 0) {
        return -FERRY_INVALID;
    }
    if (!equals) {
        return ferry_fail(err, FERRY_INVALID, "expected SETTING = VALUE");
    }
    *equals = '\0';
    const char *key = trim(line), *value = trim(equals + 1);
    while (options[i].name && strcmp(options[i].name, key) != 0) {
        i++;
    }
    if (!options[i].name) {
        return fail_unknown(options, key, err);
    }
    if (seen[i] && options[i].type != FERRY_OPTION_LIST) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is set in line %d already", key, seen[i]);
    }
    if (!*value) {
        return ferry_fail(err, FERRY_INVALID, "'%s' has no value", key);
    }
    seen[i] = number;
    return ferry_option_store(&options[i], value, err);
}

int ferry_config_apply(const char *name, char *text, size_t len, const struct ferry_option *options,
                       int *seen, struct ferry_error *err)
{
    char *at = text, *end = text + len;

    for (int number = 1; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline ? newline : end;
        int rc = 0;

        if (memchr(at, '\0', (size_t)(stop - at))) {
            return ferry_fail(err, FERRY_INVALID, "%s:%d: a control character (0)", name, number);
        }
        *stop = '\0';
        char *line = trim(at);
        if (*line && *line != '#') {
            rc = set(options, line, number, seen, err);
        }
        if (rc < 0) {
            return ferry_wrap(err, "%s:%d", name, number);
        }
        at = stop + 1;
    }
    return 0;
}

/* Values point into it; a program reads one file, and is done with it when it ends. */
static char *kept;

int ferry_config_read(const char *path, bool needed, const struct ferry_option *options, int *seen,
                      struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct stat st;

    if (fd < 0 && errno == ENOENT && !needed) {
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        return ferry_fail_errno(err, errno, "reading %s", path);
    }
    if (S_ISREG(st.st_mode) && (st.st_mode & (S_IWGRP | S_IWOTH))) {
        return ferry_fail(err, FERRY_DENIED, "%s: others than its owner may write it (mode %04o)",
                          path, (unsigned)st.st_mode & 07777);
    }
    int rc = ferry_read_file(path, FERRY_CONFIG_MAX_BYTES, &text, err);
    if (rc < 0 || text.len == 0) {
        return rc;
    }
    size_t len = text.len;
    free(kept);
    kept = ferry_buf_take(&text);
    return ferry_config_apply(path, kept, len, options, seen, err);
}
