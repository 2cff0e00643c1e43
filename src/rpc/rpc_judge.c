#include "rpc/rpc_judge.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "rpc/rpc_call.h"

enum { PING = 1, PONG = 2, FEATURES_MAX = 64, CONNECTIONS_MAX = 255 };
/* How the caller found its socket; read-only is another bit. */
enum { OPEN_USER = 1 << 1, OPEN_AUTOSTART = 1 << 2 };

/* virDomainMigrateFlags: what migrate_call.c asks for, as it arrives here. */
enum {
    FLAG_LIVE = 1 << 0,
    FLAG_PEER2PEER = 1 << 1,
    FLAG_PERSIST_DEST = 1 << 3,
    FLAG_PAUSED = 1 << 5,
    FLAG_NON_SHARED_INC = 1 << 7,
    FLAG_UNSAFE = 1 << 9,
    FLAG_COMPRESSED = 1 << 11,
    FLAG_AUTO_CONVERGE = 1 << 13,
    FLAG_POSTCOPY = 1 << 15,
    FLAG_PARALLEL = 1 << 17,
    FLAGS_NEEDED = FLAG_LIVE | FLAG_PEER2PEER | FLAG_PERSIST_DEST,
    FLAGS_ALLOWED = FLAGS_NEEDED | FLAG_PAUSED | FLAG_NON_SHARED_INC | FLAG_UNSAFE |
                    FLAG_COMPRESSED | FLAG_AUTO_CONVERGE | FLAG_POSTCOPY | FLAG_PARALLEL,
};

/* ---- parameters --------------------------------------------------------------------------------
 */

/* Each: 0 when the value may pass. */
typedef int param_check(const struct rpc_agreement *a, const struct rpc_param *p,
                        struct ferry_error *err);

static int refuse_value(const struct rpc_param *p, struct ferry_error *err)
{
    return ferry_fail(err, FERRY_DENIED, "parameter %.*s is not what was agreed", (int)p->name.len,
                      p->name.data);
}

static int check_domain(const struct rpc_agreement *a, const struct rpc_param *p,
                        struct ferry_error *err)
{
    return rpc_compare_domain(a->domain, p->text.data, p->text.len, err);
}

static int check_name(const struct rpc_agreement *a, const struct rpc_param *p,
                      struct ferry_error *err)
{
    return rpc_text_is(p->text, rpc_agreed_name(a->domain)) ? 0 : refuse_value(p, err);
}

static int check_memory(const struct rpc_agreement *a, const struct rpc_param *p,
                        struct ferry_error *err)
{
    return rpc_text_is(p->text, a->memory) ? 0 : refuse_value(p, err);
}

static int check_disks(const struct rpc_agreement *a, const struct rpc_param *p,
                       struct ferry_error *err)
{
    return a->disks && rpc_text_is(p->text, a->disks) ? 0 : refuse_value(p, err);
}

static int check_copied(const struct rpc_agreement *a, const struct rpc_param *p,
                        struct ferry_error *err)
{
    for (size_t i = 0; i < a->n_copied; i++) {
        if (rpc_text_is(p->text, a->copied[i])) {
            return 0;
        }
    }
    return refuse_value(p, err);
}

static int check_compression(const struct rpc_agreement *a, const struct rpc_param *p,
                             struct ferry_error *err)
{
    (void)a;
    return rpc_text_is(p->text, "zstd") ? 0 : refuse_value(p, err);
}

static int check_connections(const struct rpc_agreement *a, const struct rpc_param *p,
                             struct ferry_error *err)
{
    (void)a;
    return p->number >= 1 && p->number <= CONNECTIONS_MAX ? 0 : refuse_value(p, err);
}

static const struct param_rule {
    const char *name;
    enum rpc_param_type type;
    bool needed, many;
    param_check *check; /* NULL: any value */
} param_rules[] = {
    {"destination_xml", RPC_PARAM_STRING, true, false, check_domain},
    {"migrate_uri", RPC_PARAM_STRING, true, false, check_memory},
    {"destination_name", RPC_PARAM_STRING, false, false, check_name},
    {"disks_uri", RPC_PARAM_STRING, false, false, check_disks},
    {"migrate_disks", RPC_PARAM_STRING, false, true, check_copied},
    {"migrate_disks_detect_zeroes", RPC_PARAM_STRING, false, true, check_copied},
    {"compression", RPC_PARAM_STRING, false, false, check_compression},
    {"parallel.connections", RPC_PARAM_INT, false, false, check_connections},
    {"bandwidth", RPC_PARAM_ULLONG, false, false, NULL},
    {"bandwidth.avail.switchover", RPC_PARAM_ULLONG, false, false, NULL},
};
enum { PARAM_RULES = FERRY_COUNT(param_rules) };

static int check_param(const struct rpc_agreement *a, const struct rpc_param *p,
                       bool seen[PARAM_RULES], struct ferry_error *err)
{
    for (size_t i = 0; i < PARAM_RULES; i++) {
        const struct param_rule *r = &param_rules[i];

        if (!rpc_text_is(p->name, r->name)) {
            continue;
        }
        if (p->type != r->type || (seen[i] && !r->many)) {
            return ferry_fail(err, FERRY_DENIED, "parameter %s: wrong type, or there twice",
                              r->name);
        }
        seen[i] = true;
        return r->check ? r->check(a, p, err) : 0;
    }
    char name[RPC_NAME_MAX + 1];
    for (size_t i = 0; i < p->name.len; i++) {
        name[i] = (char)(p->name.data[i] >= ' ' && p->name.data[i] <= '~' ? p->name.data[i] : '?');
    }
    name[p->name.len] = '\0';
    return ferry_fail(err, FERRY_DENIED, "parameter '%s' is not part of a move", name);
}

static int check_flags(const struct rpc_agreement *a, uint32_t flags, struct ferry_error *err)
{
    uint32_t allowed = a->n_copied ? FLAGS_ALLOWED : FLAGS_ALLOWED & ~(uint32_t)FLAG_NON_SHARED_INC;

    return (flags & ~allowed) == 0 && (flags & FLAGS_NEEDED) == FLAGS_NEEDED
               ? 0
               : ferry_fail(err, FERRY_DENIED, "flags 0x%x are not those of a move", flags);
}

static int check_migrate(const struct rpc_agreement *a, const struct rpc_migrate *m,
                         struct ferry_error *err)
{
    bool seen[PARAM_RULES] = {false};
    int rc = check_flags(a, m->flags, err);

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        rc = check_param(a, &m->params[i], seen, err);
    }
    for (size_t i = 0; rc == 0 && i < PARAM_RULES; i++) {
        if (param_rules[i].needed && !seen[i]) {
            rc = ferry_fail(err, FERRY_DENIED, "parameter %s is missing", param_rules[i].name);
        }
    }
    return rc < 0 ? rc : rpc_compare_cookie(a->domain, m->cookie.data, m->cookie.len, err);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

struct call {
    const struct rpc_agreement *agreement;
    struct rpc_xdr arguments;
    struct rpc_session *session;
};

static int refuse_arguments(struct ferry_error *err)
{
    return ferry_fail(err, FERRY_DENIED, "its arguments cannot be read");
}

static int judge_nothing(struct call *c, struct ferry_error *err)
{
    return rpc_call_nothing(&c->arguments) ? 0 : refuse_arguments(err);
}

static int judge_open(struct call *c, struct ferry_error *err)
{
    struct rpc_open o;

    if (!rpc_call_open(&c->arguments, &o)) {
        return refuse_arguments(err);
    }
    if (!o.named || !rpc_text_is(o.name, c->agreement->connect) ||
        (o.flags & ~(uint32_t)(OPEN_USER | OPEN_AUTOSTART)) != 0) {
        return ferry_fail(err, FERRY_DENIED, "only %s may be opened, for writing",
                          c->agreement->connect);
    }
    c->session->state = RPC_OPEN;
    return 0;
}

static int judge_close(struct call *c, struct ferry_error *err)
{
    c->session->state = RPC_CLOSED;
    return judge_nothing(c, err);
}

static int judge_feature(struct call *c, struct ferry_error *err)
{
    int32_t feature;

    return rpc_call_feature(&c->arguments, &feature) && feature > 0 && feature <= FEATURES_MAX
               ? 0
               : refuse_arguments(err);
}

/* libvirtd runs the program that it is asked about. */
static int judge_compare_cpu(struct call *c, struct ferry_error *err)
{
    struct rpc_compare_cpu cpu;

    if (!rpc_call_compare_cpu(&c->arguments, &cpu)) {
        return refuse_arguments(err);
    }
    return !cpu.has_emulator || rpc_text_is(cpu.emulator, rpc_agreed_emulator(c->agreement->domain))
               ? 0
               : ferry_fail(err, FERRY_DENIED, "another emulator than the one that was agreed");
}

static int judge_prepare(struct call *c, struct ferry_error *err)
{
    struct rpc_migrate m;

    if (!rpc_call_prepare(&c->arguments, &m)) {
        return refuse_arguments(err);
    }
    if (c->session->refused) { /* who asked for more once gets no guest in at the next try */
        return ferry_fail(err, FERRY_DENIED, "refused before: %s", c->session->refused);
    }
    c->session->state = RPC_PREPARED;
    return check_migrate(c->agreement, &m, err);
}

static int judge_finish(struct call *c, struct ferry_error *err)
{
    struct rpc_migrate m;

    if (!rpc_call_finish(&c->arguments, &m)) {
        return refuse_arguments(err);
    }
    c->session->state = RPC_FINISHED;
    return check_migrate(c->agreement, &m, err);
}

#define IN(state) (1U << (state))
#define WHILE_OPEN (IN(RPC_OPEN) | IN(RPC_PREPARED) | IN(RPC_FINISHED))

/* The whole of what passes. tests/golden/control has what was seen in moves;
 * capabilities and CPU are asked for by the source's launcher (preflight.c) before a guest gives
 * devices back. */
static const struct procedure {
    enum rpc_procedure number;
    const char *name;
    unsigned states;
    int (*judge)(struct call *c, struct ferry_error *err);
} procedures[] = {
    {RPC_AUTH_LIST, "auth list", IN(RPC_NEW), judge_nothing},
    {RPC_CONNECT_OPEN, "connect open", IN(RPC_NEW), judge_open},
    {RPC_CONNECT_SUPPORTS_FEATURE, "connect supports feature", IN(RPC_NEW) | WHILE_OPEN,
     judge_feature},
    {RPC_CONNECT_REGISTER_CLOSE_CALLBACK, "connect register close callback", WHILE_OPEN,
     judge_nothing},
    {RPC_CONNECT_UNREGISTER_CLOSE_CALLBACK, "connect unregister close callback", WHILE_OPEN,
     judge_nothing},
    {RPC_CONNECT_GET_CAPABILITIES, "connect get capabilities", IN(RPC_OPEN), judge_nothing},
    {RPC_CONNECT_COMPARE_HYPERVISOR_CPU, "connect compare hypervisor CPU", IN(RPC_OPEN),
     judge_compare_cpu},
    {RPC_DOMAIN_MIGRATE_PREPARE3_PARAMS, "domain migrate prepare3 params", IN(RPC_OPEN),
     judge_prepare},
    {RPC_DOMAIN_MIGRATE_FINISH3_PARAMS, "domain migrate finish3 params", IN(RPC_PREPARED),
     judge_finish},
    {RPC_CONNECT_CLOSE, "connect close", WHILE_OPEN, judge_close},
};

static const struct procedure *find(int32_t number)
{
    for (size_t i = 0; i < FERRY_COUNT(procedures); i++) {
        if ((int32_t)procedures[i].number == number) {
            return &procedures[i];
        }
    }
    return NULL;
}

static int judge_call(struct rpc_session *s, const struct rpc_agreement *a,
                      const struct rpc_header *h, const void *payload, size_t len,
                      struct ferry_error *err)
{
    const struct procedure *p = h->program == RPC_PROGRAM_REMOTE ? find(h->procedure) : NULL;
    struct call c = {a, {.at = payload, .left = len}, s};

    if (!p || h->version != 1) {
        return ferry_fail(err, FERRY_DENIED, "procedure %d of program 0x%x is not part of a move",
                          h->procedure, h->program);
    }
    if (++s->calls > RPC_CALLS_MAX) {
        return ferry_fail(err, FERRY_DENIED, "more than %d calls", RPC_CALLS_MAX);
    }
    if (!(p->states & IN(s->state))) {
        return ferry_fail(err, FERRY_DENIED, "procedure %d (%s) does not come at this point",
                          h->procedure, p->name);
    }
    int rc = p->judge(&c, err);
    if (rc < 0) {
        ferry_wrap(err, "procedure %d (%s)", h->procedure, p->name);
    }
    return rc;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static int judge_keepalive(struct rpc_session *s, const struct rpc_header *h, size_t len,
                           int64_t now_ns, struct ferry_error *err)
{
    bool known = h->version == 1 && (h->procedure == PING || h->procedure == PONG) &&
                 h->type == RPC_TYPE_MESSAGE && len == 0;

    if (now_ns - s->keepalive_ns >= FERRY_NS_PER_S) {
        s->keepalive_ns = now_ns;
        s->keepalives = 0;
    }
    return known && ++s->keepalives <= RPC_KEEPALIVE_MAX
               ? 0
               : ferry_fail(err, FERRY_DENIED, "keep-alive messages of another kind or too many");
}

int rpc_judge(struct rpc_session *s, const struct rpc_agreement *a, const void *message, size_t len,
              int64_t now_ns, struct ferry_error *err)
{
    const struct rpc_header h = rpc_frame_header(message);
    const char *payload = (const char *)message + RPC_SMALLEST;

    if (h.status != RPC_STATUS_OK) {
        return ferry_fail(err, FERRY_DENIED, "a message with status %u", h.status);
    }
    if (h.program == RPC_PROGRAM_KEEPALIVE) {
        return judge_keepalive(s, &h, len - RPC_SMALLEST, now_ns, err);
    }
    if (h.type != RPC_TYPE_CALL) {
        return ferry_fail(err, FERRY_DENIED,
                          "a message of type %u of program 0x%x: a source only calls", h.type,
                          h.program);
    }
    return judge_call(s, a, &h, payload, len - RPC_SMALLEST, err);
}
