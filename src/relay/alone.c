#include "relay/alone.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/pages.h"
#include "relay/group.h"

static void print_listening(const struct relay_group *g)
{
    const struct relay_spec *s = relay_group_spec(g);

    if (s->role == RELAY_SOURCE) {
        printf("listening unix:%s\n", s->channels[0].unix_path);
    } else {
        printf(strchr(s->address, ':') ? "listening [%s]:%d\n" : "listening %s:%d\n", s->address,
               relay_group_port(g));
    }
    fflush(stdout);
}

static bool told_to_end(int sig)
{
    return sig != 0 && sig != SIGHUP; /* credentials are re-read without being told */
}

static void serve(struct relay_group *g)
{
    while (!told_to_end(ferry_signals_wait(INT64_MAX))) {
    }
    ferry_info("ends when no stream is left", F_UINT("streams", relay_group_stream_count(g)));
    while (relay_group_stream_count(g) > 0) {
        if (told_to_end(ferry_signals_wait(ferry_now_ns() + 100 * FERRY_NS_PER_MS))) {
            ferry_warn("stopped by a second signal",
                       F_UINT("streams", relay_group_stream_count(g)));
            return;
        }
    }
}

int relay_alone_run(struct relay_spec *spec_take, struct tls_credentials *credentials,
                    struct ferry_error *err)
{
    struct relay_env env = {.server = credentials, .client = credentials};
    struct relay_group *g = NULL;

    if (getrandom(env.instance, sizeof(env.instance), 0) != (ssize_t)sizeof(env.instance)) {
        relay_spec_free(spec_take);
        return ferry_fail_errno(err, errno, "reading random bytes");
    }
    env.rate = relay_rate_new(NULL, 0);
    int rc = relay_group_start(spec_take, &env, &g, err);
    if (rc == 0) {
        print_listening(g);
        ferry_pages_forget();
        serve(g);
    }
    relay_group_stop(g);
    relay_rate_free(env.rate);
    return rc;
}
