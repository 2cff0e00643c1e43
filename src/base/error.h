/* Errors by value: what went wrong, what class of trouble it is, in words an operator can use.
 *
 * A function that can fail takes `struct ferry_error *err` last and returns 0 (or a count, a
 * descriptor) on success and the negative class on failure. `err` is set once, at the failure; it
 * is untouched on success; NULL means "not interested". Nothing here allocates, so nothing can
 * fail. Callers add what they were doing with ferry_wrap(); only the top of a call chain logs. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

enum ferry_class {
    FERRY_OK = 0,
    FERRY_RETRY,     /* may work later: peer away, timeout, busy */
    FERRY_CONFLICT,  /* somebody else changed it first */
    FERRY_NOT_FOUND, /* the named thing is not there */
    FERRY_INVALID,   /* input that can never work */
    FERRY_DENIED,    /* not allowed */
    FERRY_CANCELLED, /* asked to stop */
    FERRY_PEER,      /* the other side broke a rule */
    FERRY_FATAL,     /* this process cannot go on with it */
    FERRY_CLASS_COUNT
};

enum { FERRY_ERROR_TEXT = 512, FERRY_ERROR_REASON = 40 };

struct ferry_error {
    enum ferry_class cls;
    int sys;  /* errno when a system call failed, else 0 */
    int http; /* HTTP status when a server answered, else 0 */
    /* Where in `msg` the words begin that are about something or from somebody; 0 = all of it. */
    unsigned short words;
    char reason[FERRY_ERROR_REASON]; /* for programs: CamelCase; "" = the class says all */
    char msg[FERRY_ERROR_TEXT];      /* for people: no program looks for words in it */
};

/* Fills `err`, returns -cls. */
int ferry_fail(struct ferry_error *err, enum ferry_class cls, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As ferry_fail, for a caller that tells this failure from others of its class. */
int ferry_fail_reason(struct ferry_error *err, enum ferry_class cls, const char *reason,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* As ferry_fail, with ": " and the text of `errnum` appended; the class follows from `errnum`. */
int ferry_fail_errno(struct ferry_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " in front of the message already in `err`, returns -err->cls (-FERRY_FATAL for NULL).
 */
int ferry_wrap(struct ferry_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, and remembers that what was there begins behind it: "fmt" is what it is about (a field)
 * or who said it (a call to a program). */
int ferry_wrap_about(struct ferry_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "fmt" in front as it is; the beginning of a path, say. */
int ferry_prefix(struct ferry_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The message without what it is about; all of it when that is not known. */
const char *ferry_error_words(const struct ferry_error *err);
/* What it is about: the first `*ret_len` bytes of the message, 0 = not known. */
const char *ferry_error_about(const struct ferry_error *err, size_t *ret_len);
/* The reason; that of the class when there is none of its own. Never empty. */
const char *ferry_error_reason(const struct ferry_error *err);

/* "retry", "conflict", ... */
const char *ferry_class_name(enum ferry_class cls);

enum ferry_class ferry_class_of_errno(int errnum);

#ifdef __clang_analyzer__
/* The analyser looks at one file at a time: tell it that these never return 0. */
#define ferry_fail(err, cls, ...) (ferry_fail(err, cls, __VA_ARGS__), -(int)(cls))
#define ferry_fail_errno(err, errnum, ...) (ferry_fail_errno(err, errnum, __VA_ARGS__), -1)
#define ferry_fail_reason(err, cls, ...) (ferry_fail_reason(err, cls, __VA_ARGS__), -(int)(cls))
#define ferry_wrap(err, ...) (ferry_wrap(err, __VA_ARGS__), -1)
#define ferry_wrap_about(err, ...) (ferry_wrap_about(err, __VA_ARGS__), -1)
#define ferry_prefix(err, ...) (ferry_prefix(err, __VA_ARGS__), -1)
#endif
