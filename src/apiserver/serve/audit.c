#include "apiserver/serve/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/serve/audit_log.h"
#include "apiserver/store/ident.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { POLICY_MAX = 1 << 20, AGENT_MAX = 256 };

struct audit {
    yyjson_doc *policy; /* or NULL */
    struct audit_log *log;
};

static int read_policy(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    yyjson_doc **ret = ctx;

    if (*ret) {
        return ferry_fail(err, FERRY_INVALID, "more than one document");
    }
    int rc = api_json_parse(json, len, ret, err);
    return rc < 0 ? rc : audit_policy_check(yyjson_doc_get_root(*ret), err);
}

int audit_open(const struct audit_config *cfg, struct audit **ret, struct ferry_error *err)
{
    struct audit *a = ferry_xcalloc(1, sizeof(*a));
    ferry_cleanup_buf struct ferry_buf text = {0};
    int rc = cfg->policy ? ferry_read_file(cfg->policy, POLICY_MAX, &text, err) : 0;

    if (rc == 0 && cfg->policy) {
        rc = api_yaml_each(text.data ? text.data : "", text.len, read_policy, &a->policy, err);
        rc = rc == 0 && !a->policy ? ferry_fail(err, FERRY_INVALID, "it is empty") : rc;
        rc = rc < 0 ? ferry_wrap(err, "audit policy %s", cfg->policy) : 0;
    }
    rc = rc < 0 ? rc : audit_log_open(cfg->log, cfg->max_bytes, cfg->max_backups, &a->log, err);
    if (rc < 0) {
        audit_close(a);
        return rc;
    }
    *ret = a;
    return 0;
}

void audit_close(struct audit *a)
{
    if (a) {
        yyjson_doc_free(a->policy);
        audit_log_close(a->log);
        free(a);
    }
}

/* ---- the call ----------------------------------------------------------------------------------
 */

/* `groups` is room for the caller's. */
static void read_call(struct request *r, const char *groups[AUTH_GROUPS_MAX],
                      struct audit_call *ret)
{
    *ret = (struct audit_call){.user = r->who.user, .groups = groups};
    for (; ret->n_groups < r->who.n_groups; ret->n_groups++) {
        groups[ret->n_groups] = r->who.groups[ret->n_groups];
    }
    audit_call_read(http_method(r->x), http_path(r->x), request_flag(r, "watch"), ret);
    if (ret->resource && !*ret->name && r->route.resource &&
        ferry_streq(ret->plural, r->route.resource->plural)) {
        snprintf(ret->name, sizeof(ret->name), "%s", r->route.name); /* it came with the body */
    }
}

static enum audit_level level_of(const struct audit *a, const struct audit_call *call, int code)
{
    return a->policy ? audit_policy_level(yyjson_doc_get_root(a->policy), call)
                     : audit_default_level(call, code);
}

void audit_begin(const struct audit *a, struct request *r)
{
    const char *groups[AUTH_GROUPS_MAX];
    struct audit_call call;

    read_call(r, groups, &call);
    r->keeps_answer = level_of(a, &call, 0) == AUDIT_REQUEST_RESPONSE;
}

/* ---- the event ---------------------------------------------------------------------------------
 */

static void put_text(struct ferry_buf *b, const char *key, const char *text)
{
    ferry_buf_printf(b, ",\"%s\":", key);
    ferry_buf_json(b, text);
}

static void put_object_ref(struct ferry_buf *b, const struct audit_call *c)
{
    const struct {
        const char *key, *value;
    } fields[] = {
        {"namespace", c->ns},
        {"name", c->name},
        {"apiGroup", c->group},
        {"apiVersion", c->version},
        {"subresource", c->subresource},
    };

    ferry_buf_puts(b, ",\"objectRef\":{\"resource\":");
    ferry_buf_json(b, c->plural);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (*fields[i].value) {
            put_text(b, fields[i].key, fields[i].value);
        }
    }
    ferry_buf_puts(b, "}");
}

/* A body that is JSON, as it is; another one only by its length. */
static void put_body(struct ferry_buf *b, const char *key, const char *body, size_t len)
{
    api_cleanup_doc yyjson_doc *doc = len ? yyjson_read(body, len, 0) : NULL;
    ferry_cleanup_free char *text =
        doc ? json_doc_val_text(yyjson_doc_get_root(doc), 0, NULL) : NULL;

    if (text) {
        ferry_buf_printf(b, ",\"%s\":", key);
        ferry_buf_puts(b, text);
    } else if (len) {
        ferry_buf_printf(b, ",\"%s\":{\"kind\":\"Unknown\",\"bytes\":%zu}", key, len);
    }
}

static void put_who(struct ferry_buf *b, const struct audit_call *c)
{
    ferry_buf_puts(b, ",\"user\":{\"username\":");
    ferry_buf_json(b, c->user);
    ferry_buf_puts(b, ",\"groups\":[");
    for (size_t i = 0; i < c->n_groups; i++) {
        ferry_buf_puts(b, i ? "," : "");
        ferry_buf_json(b, c->groups[i]);
    }
    ferry_buf_puts(b, "]}");
}

static void put_event(struct ferry_buf *b, struct request *r, const struct audit_call *c,
                      enum audit_level level, int64_t begin_unix_ms)
{
    char uid[IDENT_UID_SIZE], begin[FERRY_RFC3339_SIZE], now[FERRY_RFC3339_SIZE];
    ferry_cleanup_free char *query = http_query_text(r->x);
    ferry_cleanup_free char *uri = ferry_asprintf("%s%s", c->path, query);
    const char *agent = http_header(r->x, "User-Agent");
    ferry_cleanup_free char *shown =
        ferry_strndup(agent ? agent : "", agent ? ferry_utf8_fit(agent, AGENT_MAX) : 0);
    bool forbidden = r->code == 401 || r->code == 403;

    ident_uid(uid);
    ferry_buf_printf(b,
                     "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"%s\","
                     "\"auditID\":\"%s\",\"stage\":\"%s\"",
                     audit_level_name(level), uid,
                     ferry_streq(c->verb, "watch") && r->code == 200 ? "ResponseStarted"
                                                                     : "ResponseComplete");
    put_text(b, "requestURI", uri);
    put_text(b, "verb", c->verb);
    put_who(b, c);
    ferry_buf_puts(b, ",\"sourceIPs\":[");
    ferry_buf_json(b, http_peer(r->x)->address);
    ferry_buf_puts(b, "]");
    put_text(b, "userAgent", shown);
    if (c->resource) {
        put_object_ref(b, c);
    }
    ferry_buf_printf(b, ",\"responseStatus\":{\"metadata\":{},\"code\":%d", r->code);
    if (r->code >= 400) {
        put_text(b, "message", r->st.message);
    }
    ferry_buf_puts(b, "}");
    if (level >= AUDIT_REQUEST) {
        size_t len = 0;
        const char *body = http_body(r->x, &len);

        put_body(b, "requestObject", body, len);
    }
    if (level == AUDIT_REQUEST_RESPONSE && r->answer.len) {
        put_body(b, "responseObject", r->answer.data, r->answer.len);
    }
    ferry_buf_printf(b,
                     ",\"requestReceivedTimestamp\":\"%s\",\"stageTimestamp\":\"%s\","
                     "\"annotations\":{\"authorization.k8s.io/decision\":\"%s\"}}\n",
                     ferry_rfc3339(begin_unix_ms, begin), ferry_rfc3339(ferry_now_unix_ms(), now),
                     forbidden ? "forbid" : "allow");
}

void audit_end(struct audit *a, struct request *r, int64_t begin_unix_ms)
{
    const char *groups[AUTH_GROUPS_MAX];
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct audit_call call;

    read_call(r, groups, &call);
    enum audit_level level = level_of(a, &call, r->code);
    if (level != AUDIT_NONE) {
        put_event(&b, r, &call, level, begin_unix_ms);
        audit_log_write(a->log, b.data, b.len);
    }
    ferry_buf_done(&r->answer);
}
