#include "launcher/domain/hostdevs.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "base/str.h"
#include "launcher/domain/domain_devices.h"
#include "launcher/domain/xml_read.h"
#include "json/doc.h"

void hostdevs_done(struct hostdevs *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->list[i].alias);
        free(h->list[i].xml);
    }
    *h = (struct hostdevs){0};
}

static xmlNodePtr devices_of(const char *xml, xmlDocPtr *ret_doc)
{
    *ret_doc = xml_read(xml);
    return *ret_doc ? xml_read_child(xmlDocGetRootElement(*ret_doc), "devices") : NULL;
}

/* Whether the device may be one of the host's at all. */
static bool emulated(xmlNodePtr device)
{
    ferry_cleanup_free char *type = xml_read_attribute(device, "type");
    const char *name = (const char *)device->name;

    return ferry_streq(name, "disk") ||
           (ferry_streq(name, "interface") && !ferry_streq(type, "hostdev"));
}

/* Its alias when it is given back for a move; owned by the caller. */
static char *given_back(xmlNodePtr device)
{
    char *alias = xml_read_attribute(xml_read_child(device, "alias"), "name");

    if (alias && (!ferry_str_starts(alias, DOMAIN_DEVICES_SRIOV) || emulated(device))) {
        free(alias);
        return NULL;
    }
    return alias;
}

int hostdevs_find(const char *domain_xml, struct hostdevs *ret, struct ferry_error *err)
{
    xml_cleanup_doc xmlDocPtr doc = NULL;
    xmlNodePtr devices = devices_of(domain_xml, &doc);

    *ret = (struct hostdevs){0};
    if (!devices) {
        return ferry_fail(err, FERRY_FATAL, "libvirt's domain XML cannot be read");
    }
    for (xmlNodePtr d = devices->children; d; d = d->next) {
        char *alias = d->type == XML_ELEMENT_NODE ? given_back(d) : NULL;

        if (!alias) {
            continue;
        }
        char *xml = xml_read_whole(doc, d);
        if (!xml || ret->n == HOSTDEVS_MAX) {
            free(alias);
            free(xml);
            hostdevs_done(ret);
            return ferry_fail(err, FERRY_FATAL, "more than %d devices to be given back",
                              HOSTDEVS_MAX);
        }
        ret->list[ret->n++] = (struct hostdev){.alias = alias, .xml = xml};
    }
    return 0;
}

bool hostdevs_others(const char *domain_xml)
{
    xml_cleanup_doc xmlDocPtr doc = NULL;
    xmlNodePtr devices = devices_of(domain_xml, &doc);

    for (xmlNodePtr d = devices ? devices->children : NULL; d; d = d->next) {
        bool of_host = d->type == XML_ELEMENT_NODE &&
                       (ferry_streq((const char *)d->name, "hostdev") ||
                        (ferry_streq((const char *)d->name, "interface") && !emulated(d)));
        ferry_cleanup_free char *alias = of_host ? given_back(d) : NULL;

        if (of_host && !alias) {
            return true;
        }
    }
    return false;
}

bool hostdevs_has(const struct hostdevs *h, const char *alias)
{
    for (size_t i = 0; i < h->n; i++) {
        if (ferry_streq(h->list[i].alias, alias)) {
            return true;
        }
    }
    return false;
}

char *hostdevs_encode(const struct hostdevs *h)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *list = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < h->n; i++) {
        yyjson_mut_val *d = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_strcpy(doc, d, "alias", h->list[i].alias);
        yyjson_mut_obj_add_strcpy(doc, d, "xml", h->list[i].xml);
    }
    return json_doc_take(doc);
}

int hostdevs_decode(const char *json, size_t len, struct hostdevs *ret, struct ferry_error *err)
{
    yyjson_doc *doc = yyjson_read(json, len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc), *item;
    yyjson_arr_iter it = yyjson_arr_iter_with(root);
    bool good = yyjson_is_arr(root) && yyjson_arr_size(root) <= HOSTDEVS_MAX;

    *ret = (struct hostdevs){0};
    while (good && (item = yyjson_arr_iter_next(&it))) {
        const char *alias = yyjson_get_str(yyjson_obj_get(item, "alias"));
        const char *xml = yyjson_get_str(yyjson_obj_get(item, "xml"));

        good = alias && xml;
        if (good) {
            ret->list[ret->n++] =
                (struct hostdev){.alias = ferry_strdup(alias), .xml = ferry_strdup(xml)};
        }
    }
    yyjson_doc_free(doc);
    if (!good) {
        hostdevs_done(ret);
        return ferry_fail(err, FERRY_INVALID, "not a list of devices");
    }
    return 0;
}

enum hostdevs_step hostdevs_decide(const struct hostdevs *all, const struct hostdevs *present,
                                   size_t asked, int64_t waited_ms, bool cancelled,
                                   size_t *ret_index)
{
    size_t left = all->n;

    for (size_t i = all->n; i-- > 0;) {
        left = hostdevs_has(present, all->list[i].alias) ? i : left;
    }
    *ret_index = left;
    if (left == all->n) {
        return HOSTDEVS_GONE;
    }
    if (cancelled) {
        return HOSTDEVS_STOP;
    }
    for (size_t i = asked; i < all->n; i++) {
        if (hostdevs_has(present, all->list[i].alias)) {
            *ret_index = i;
            return HOSTDEVS_ASK;
        }
    }
    return waited_ms >= HOSTDEVS_WAIT_MS ? HOSTDEVS_REFUSED : HOSTDEVS_WAIT;
}
