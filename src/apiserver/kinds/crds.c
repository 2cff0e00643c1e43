#include "apiserver/kinds/crds.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "api/json.h"
#include "apiserver/kinds/core_schema.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

enum { MAX_CRDS = 32, FILE_MAX = 4 << 20 };

/* Written by crds_load() before any other thread runs. */
static struct {
    const struct api_resource *resource;
    yyjson_doc *doc; /* of the first of its versions; NULL of the others */
    const yyjson_val *version;
} crds[MAX_CRDS];
static size_t n_crds;

static int add_version(yyjson_doc **doc, const char *group, const char *plural,
                       const yyjson_val *version, struct ferry_error *err)
{
    const struct api_resource *r = api_resource_find(group, api_json_str(version, "/name"), plural);

    if (!r) {
        ferry_warn("definition of a kind that is not served", F_STR("plural", plural));
        return 0;
    }
    if (n_crds == MAX_CRDS) {
        return ferry_fail(err, FERRY_INVALID, "more than %d definitions", MAX_CRDS);
    }
    crds[n_crds].resource = r;
    crds[n_crds].version = version;
    crds[n_crds++].doc = ferry_take_ptr(*doc);
    return 0;
}

static int add(void *ctx, const char *json, size_t len, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse(json, len, &doc, err);
    yyjson_val *version;
    size_t i, max;

    (void)ctx;
    if (rc < 0) {
        return rc;
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *versions = yyjson_ptr_get(root, "/spec/versions");
    const char *group = api_json_str(root, "/spec/group");
    const char *plural = api_json_str(root, "/spec/names/plural");
    if (!ferry_streq(api_json_str(root, "/kind"), "CustomResourceDefinition") || !group ||
        !plural || yyjson_arr_size(versions) == 0) {
        return ferry_fail(err, FERRY_INVALID, "not a CustomResourceDefinition");
    }
    yyjson_arr_foreach(versions, i, max, version)
    {
        rc = rc < 0 ? rc : add_version(&doc, group, plural, version, err);
    }
    return rc;
}

int crds_load(const char *dir, struct ferry_error *err)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    int rc = 0;

    if (!d) {
        return ferry_fail_errno(err, errno, "opening %s", dir);
    }
    while (rc == 0 && (e = readdir(d))) {
        if (!ferry_str_ends(e->d_name, ".yaml")) {
            continue;
        }
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, e->d_name);
        ferry_cleanup_buf struct ferry_buf text = {0};

        rc = ferry_read_file(path, FILE_MAX, &text, err);
        if (rc == 0) {
            rc = api_yaml_each(text.data ? text.data : "", text.len, add, NULL, err);
            rc = rc < 0 ? ferry_wrap(err, "%s", path) : rc;
        }
    }
    closedir(d);
    return rc;
}

void crds_unload(void)
{
    for (size_t i = 0; i < n_crds; i++) {
        yyjson_doc_free(crds[i].doc);
    }
    n_crds = 0;
}

static const yyjson_val *find(const struct api_resource *r, const char *pointer)
{
    for (size_t i = 0; i < n_crds; i++) {
        if (crds[i].resource == r) {
            return yyjson_ptr_get((yyjson_val *)crds[i].version, pointer);
        }
    }
    return NULL;
}

const yyjson_val *crds_schema(const struct api_resource *r)
{
    return find(r, "/schema/openAPIV3Schema");
}

const yyjson_val *crds_any_schema(const struct api_resource *r)
{
    const yyjson_val *built_in = core_schema(r);

    return built_in ? built_in : crds_schema(r);
}

const yyjson_val *crds_columns(const struct api_resource *r)
{
    return find(r, "/additionalPrinterColumns");
}
