/* QEMU's own monitor (QMP), for what libvirt cannot do: the domain has two beside libvirt's, one
 * for calls that open a connection of their own, and one whose connection is kept (qmp_session.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

struct qmp;

struct qmp_command {
    const char *name;
    const char *arguments; /* JSON text of an object, or NULL */
    /* Out of band: works while QEMU's main loop waits for guest memory; few commands allow it. */
    bool at_once;
};

/* Connects and agrees on capabilities, which takes QEMU's main loop. One thread at a time uses a
 * connection. */
int qmp_open(const char *path, int64_t deadline_ns, struct qmp **ret, struct ferry_error *err);
/* Goes on with a connection on which capabilities were agreed upon, maybe by a process that died
 * between a command and its answer. Takes `fd`. */
struct qmp *qmp_adopt(int fd);
int qmp_fd(const struct qmp *q);
void qmp_close(struct qmp *q); /* takes NULL */

/* `ret`, when not NULL, gets the answer's document, whose root has the member "return";
 * yyjson_doc_free() it. An answer of QEMU that says no is class CONFLICT with its words; RETRY: no
 * answer in time; FATAL: the connection is of no more use. */
int qmp_execute(struct qmp *q, const struct qmp_command *c, int64_t deadline_ns, yyjson_doc **ret,
                struct ferry_error *err);

/* All of it on a connection of its own, in band. Any thread. */
int qmp_call(const char *path, const char *command, const char *arguments, int64_t deadline_ns,
             yyjson_doc **ret, struct ferry_error *err);
