/* What the tests of the handler's decisions share: VMIs and launchers written as JSON. */
#pragma once

#include "lib/objects.h"

#include "api/object.h"
#include "api/owners/field_rules.h"
#include "base/str.h"
#include "handler/local/launcher_status.h"

/* 2023-11-14T22:13:20Z */
#define NOW 1700000000000LL

/* A VMI with uid "vmi-uid" from pieces of JSON; NULL pieces are left out. */
static inline struct api_object *case_vmi(const char *meta, const char *spec, const char *status)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\",\"metadata\":{"
        "\"name\":\"vm\",\"namespace\":\"ns\",\"uid\":\"vmi-uid\",\"resourceVersion\":\"7\"%s%s},"
        "\"spec\":{%s},\"status\":{%s}}",
        meta ? "," : "", meta ? meta : "", spec ? spec : "", status ? status : "");
    struct api_object *o = NULL;
    struct ferry_error err;

    if (api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

/* "{domain...}" as a launcher answers it; or one of "no-pod", "ended", "ended-0",
 * "ended-OOMKilled", "starting", "silent". `status` must outlive the view. */
static inline struct launcher_view case_launcher(const char *text, struct launcher_status *status)
{
    struct launcher_view v = {.pod_uid = "pod-uid"};
    struct ferry_error err;

    *status = (struct launcher_status){0};
    if (ferry_streq(text, "no-pod")) {
        return (struct launcher_view){.reach = LAUNCHER_NO_POD};
    }
    if (ferry_str_starts(text, "ended")) {
        v.reach = LAUNCHER_ENDED;
        v.pod_succeeded = ferry_streq(text, "ended-0");
        v.pod_reason = ferry_streq(text, "ended-OOMKilled") ? "OOMKilled" : NULL;
    } else if (ferry_streq(text, "starting")) {
        v.reach = LAUNCHER_STARTING;
    } else if (ferry_streq(text, "silent")) {
        v.reach = LAUNCHER_SILENT;
    } else {
        if (wire_launcher_status_read(text, strlen(text), status, &err) < 0) {
            fail_msg("%s: %s", text, err.msg);
        }
        v.reach = LAUNCHER_UP;
        v.status = status;
    }
    return v;
}

#define DOMAIN(state, reason) "{\"domain\":{\"state\":\"" state "\",\"reason\":\"" reason "\"}}"
#define MIGRATION(state, reason, role, phase, more)                                                \
    "{\"domain\":{\"state\":\"" state "\",\"reason\":\"" reason                                    \
    "\"},\"migration\":{\"uid\":\"move\",\"role\":\"" role "\",\"phase\":\"" phase "\"" more "}}"

/* Every word of a '|'-separated list is in `text`; with a leading '!', is not. NULL = `text` must
 * be NULL. */
static inline void case_check_words(const char *name, const char *text, const char *words)
{
    if (!words) {
        if (text) {
            fail_msg("%s: unexpected patch %s", name, text);
        }
        return;
    }
    if (!text) {
        fail_msg("%s: no patch, expected %s", name, words);
    }
    ferry_cleanup_free char *list = ferry_strdup(words);
    char *save = NULL;
    for (char *w = strtok_r(list, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
        bool not_wanted = *w == '!';

        if ((strstr(text, w + not_wanted) != NULL) == not_wanted) {
            fail_msg("%s: '%s' in %s", name, w, text);
        }
    }
}

static inline char *case_patch(struct api_patch *p)
{
    return p ? api_patch_take(p) : NULL;
}

/* The API takes the patch from that node: its handler writes nothing but what is its own. */
static inline void case_check_fields(const char *name, const struct api_object *vmi,
                                     const char *node, const char *patch)
{
    char why[FIELD_TEXT];

    if (!patch) {
        return;
    }
    api_cleanup_object struct api_object *after = patched_object(vmi, patch, false);
    if (!field_rules_allow(&(struct field_write){node, vmi->root, after->root}, why)) {
        fail_msg("%s: node %s may not write %s: %s", name, node, patch, why);
    }
}
