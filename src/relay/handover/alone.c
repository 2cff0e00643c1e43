#include "relay/handover/alone.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/pages.h"
#include "relay/handover/takeover.h"
#include "relay/manager/group.h"

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

static int go_on(struct relay_takeover *t, struct relay_manager *m, struct ferry_error *err)
{
    int control = -1, rc;

    if ((rc = relay_takeover_restore(t, true, m, &control, err)) < 0 ||
        (rc = relay_takeover_commit(t, m, err)) < 0) {
        return rc;
    }
    relay_manager_resume(m);
    return 0;
}

int relay_alone_run(struct relay_spec *spec_take, struct tls_credentials *credentials,
                    const struct relay_alone *how, struct ferry_error *err)
{
    ferry_cleanup(relay_spec_freep) struct relay_spec *spec = spec_take;
    struct relay_life life = {.self = how->self, .fd_store = how->fd_store};
    struct relay_takeover t;

    relay_takeover_look(&t);
    int rc = relay_manager_new(credentials, credentials, 0, &life.manager, err);
    if (rc == 0) {
        relay_manager_set_memory(life.manager, how->memory);
    }
    if (rc == 0 && t.from != RELAY_FROM_NOBODY) {
        rc = go_on(&t, life.manager, err);
    } else if (rc == 0) {
        rc = relay_manager_add(life.manager, ferry_take_ptr(spec), err);
        if (rc == 0) {
            print_listening(relay_manager_first(life.manager));
        }
    }
    relay_takeover_done(&t);
    if (rc == 0) {
        ferry_pages_forget();
        relay_life_run(&life);
    }
    relay_manager_free(life.manager);
    return rc;
}
