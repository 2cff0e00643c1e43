/* Sockets of a relay that is not root, on a machine whose TCP may be set up in any way. */
#include "lib/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "relay/common/net.h"

/* What the kernel uses on a socket that a relay dialled; run in a process of its own. */
static int dialled_by_nobody(int port)
{
    const struct relay_net_way way = {.address = "127.0.0.1", .port = port};
    char name[32] = "";
    socklen_t len = sizeof(name) - 1;
    struct ferry_error err;

    if (getuid() == 0 && setuid(65534) < 0) {
        return 1;
    }
    ferry_cleanup_fd int fd = relay_net_dial(&way, -1, ferry_now_ns() + 10 * FERRY_NS_PER_S, &err);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) < 0) {
        return 2;
    }
    fprintf(stderr, "congestion control: %s\n", name);
    return ferry_streq(name, "cubic") || ferry_streq(name, "reno") ? 0 : 3;
}

/* bbr, whose streams share a link unevenly, is not left in place where it is the default. */
static void losses_slow_a_stream_down(void **state)
{
    struct ferry_error err;
    int port = 0, status = 0;
    ferry_cleanup_fd int listener = relay_net_listen("127.0.0.1", &port, false, &err);

    (void)state;
    assert_true(listener >= 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(dialled_by_nobody(port));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(losses_slow_a_stream_down)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
