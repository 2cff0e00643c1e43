#include "cli/cli.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/session/call.h"
#include "cli/session/sink.h"
#include "cli/verbs/verbs.h"

/* What could not be written was not said: a full disk must not look like success, whichever verb it
 * was and however it ends. */
static void close_output(void)
{
    int code = sink_close();

    if (code) {
        _exit(code);
    }
}

int cli_main(int argc, char **argv)
{
    struct ferry_error err = {0};

    sink_open();
    atexit(close_output);
    ferry_log_init("ferry", FERRY_LOG_WARN, FERRY_LOG_TEXT);
    int rc = cli_dispatch("ferry",
                          "Moves running virtual machines between hosts: a site to try it on, "
                          "virtual\nmachines, and their migrations.",
                          cli_verbs, argc, argv, &err);

    return rc < 0 ? ferry_die("ferry", cli_exit_code(&err), &err) : rc;
}
