/* A QEMU that says anything on its monitor, in pieces of any size: a command ends with an error,
 * never with somebody else's answer. */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "launcher/libvirt/qmp.h"

enum { ROOM = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct qmp_command c = {.name = "query-migrate"};
    struct ferry_error err = {0};
    yyjson_doc *doc = NULL;
    int ends[2];

    if (size > ROOM || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return 0;
    }
    must(size == 0 || write(ends[1], data, size) == (ssize_t)size);
    shutdown(ends[1], SHUT_WR);
    struct qmp *q = qmp_adopt(ends[0]);
    must(qmp_execute(q, &c, ferry_now_ns() + FERRY_NS_PER_S, &doc, &err) < 0 && err.msg[0]);
    must(doc == NULL);
    qmp_close(q);
    close(ends[1]);
    return 0;
}
