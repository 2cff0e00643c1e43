#include "api/wire/wire_networks.h"

#include <stdio.h>
#include <string.h>

#include "api/names.h"
#include "api/wire/wire_json.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"

static int wrong(struct ferry_error *err, const char *key)
{
    return ferry_fail(
        err, FERRY_INVALID,
        "annotation " ANNOTATION_NETWORKS ": '%.40s': must be tapN with NAMESPACE/NAME", key);
}

static bool tap_of(const char *key, unsigned *ret)
{
    long long tap;

    if (!ferry_str_starts(key, "tap") ||
        ferry_parse_int(key + strlen("tap"), 0, API_GUEST_NICS - 1, &tap, NULL) < 0) {
        return false;
    }
    *ret = (unsigned)tap;
    return true;
}

static int read_one(const char *key, const char *value, struct wire_networks *ret,
                    struct ferry_error *err)
{
    const char *slash = value ? strchr(value, '/') : NULL;
    struct wire_network *n = &ret->list[ret->n];

    if (!slash || slash - value >= WIRE_NAMESPACE || strlen(slash + 1) >= WIRE_NAME ||
        wire_networks_of(ret, key) || ret->n == API_GUEST_NICS || !tap_of(key, &n->tap)) {
        return wrong(err, key);
    }
    snprintf(n->ns, sizeof(n->ns), "%.*s", (int)(slash - value), value);
    snprintf(n->name, sizeof(n->name), "%s", slash + 1);
    if (!api_name_is_dns_label(n->ns) || !api_name_is_dns_subdomain(n->name)) {
        return wrong(err, key);
    }
    ret->n++;
    return 0;
}

int wire_networks_read(const char *text, struct wire_networks *ret, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    yyjson_val *key, *value;
    size_t i, max;

    *ret = (struct wire_networks){0};
    if (ferry_str_empty(text)) {
        return 0;
    }
    if (strnlen(text, WIRE_TEXT_MAX + 1) > WIRE_TEXT_MAX) {
        return ferry_fail(err, FERRY_INVALID, "annotation " ANNOTATION_NETWORKS ": is too long");
    }
    if (api_json_parse_depth(text, strlen(text), API_JSON_DEPTH, &doc, err) < 0) {
        return ferry_wrap(err, "annotation " ANNOTATION_NETWORKS);
    }
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, max, key, value)
    {
        if (read_one(yyjson_get_str(key), yyjson_get_str(value), ret, err) < 0) {
            *ret = (struct wire_networks){0};
            return -FERRY_INVALID;
        }
    }
    return 0;
}

const struct wire_network *wire_networks_of(const struct wire_networks *n, const char *tap)
{
    unsigned number;

    for (size_t i = 0; tap_of(tap, &number) && i < n->n; i++) {
        if (n->list[i].tap == number) {
            return &n->list[i];
        }
    }
    return NULL;
}

char *wire_networks_text(const struct api_vmi *vmi)
{
    struct api_guest_nic nics[API_GUEST_NICS];
    size_t n = api_guest_nics(vmi, nics);
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    for (size_t i = 0; i < n; i++) {
        ferry_cleanup_free char *ns = NULL, *name = NULL;
        char tap[16];

        if (nics[i].network) {
            api_guest_network(nics[i].network, vmi->meta.namespace_, &ns, &name);
            ferry_cleanup_free char *full = ferry_asprintf("%s/%s", ns, name);

            snprintf(tap, sizeof(tap), "tap%u", nics[i].tap);
            yyjson_mut_obj_put(o, yyjson_mut_strcpy(doc, tap), yyjson_mut_strcpy(doc, full));
        }
    }
    if (yyjson_mut_obj_size(o) == 0) {
        yyjson_mut_doc_free(doc);
        return NULL;
    }
    return wire_json_write(doc);
}
