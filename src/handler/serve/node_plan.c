#include "handler/serve/node_plan.h"

#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/relay_client.h"
#include "handler/serve/node_pod.h"
#include "handler/source/source_decide.h"
#include "json/doc.h"

/* A link that nothing was sent over yet is taken for a gigabit. */
#define ASSUMED_BYTES_PER_S INT64_C(117000000)

/* The caller's settings, decoded as those that a move carries are. */
static int read_configuration(struct http_exchange *x, struct api_object **ret, yyjson_doc **doc,
                              struct ferry_error *err)
{
    size_t len;
    const char *body = http_body(x, &len);
    int rc = api_json_parse(len ? body : "{}", len ? len : 2, doc, err);

    if (rc < 0) {
        return rc;
    }
    yyjson_val *config = yyjson_ptr_get(yyjson_doc_get_root(*doc), "/configuration");
    ferry_cleanup_free char *text = config ? json_doc_val_text(config, 0, NULL) : NULL;
    ferry_cleanup_free char *vmi =
        ferry_asprintf("{\"metadata\":{\"name\":\"plan\"},\"status\":{\"migrationState\":"
                       "{\"migrationUid\":\"plan\",\"migrationConfiguration\":%s}}}",
                       text ? text : "{}");
    return api_object_parse(API_KIND_VMI, vmi, strlen(vmi), ret, err);
}

/* The launcher's answer with what is known here of the path. */
static char *with_path(const struct http_reply *r, bool measured)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(r->body.data, r->body.len, 0);
    api_cleanup_mut_doc yyjson_mut_doc *mut = json_doc_copy(doc);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(mut);

    if (!yyjson_mut_is_obj(root)) {
        return NULL;
    }
    yyjson_mut_obj_add_bool(mut, root, "pathMeasured", measured);
    return json_doc_text(mut, 0, NULL);
}

void node_plan(struct http_exchange *x, const struct node_api_config *cfg, const char *vm)
{
    api_cleanup_object struct api_object *pod = NULL, *asked = NULL;
    api_cleanup_doc yyjson_doc *doc = NULL;
    http_cleanup_reply struct http_reply reply = {0};
    struct relay_path path = {0};
    struct ferry_error err;
    int rc = node_pod_of_vm(cfg, vm, &pod, &err);

    if (rc == 0) {
        rc = read_configuration(x, &asked, &doc, &err);
    }
    const char *to = rc == 0 ? api_json_str(yyjson_doc_get_root(doc), "/to") : NULL;
    if (to) { /* not known is fine */
        relay_get_path(cfg->node->relay_socket, to, &path, NULL);
    }
    if (rc == 0) {
        ferry_cleanup_free char *socket = node_pod_socket(cfg, pod);
        ferry_cleanup_free char *options = source_options(
            &asked->u.vmi, path.bytes_per_s ? path.bytes_per_s : ASSUMED_BYTES_PER_S);

        const struct launcher_at launcher = node_pod_launcher(socket, pod);

        rc = launcher_plan(&launcher, options, &reply, &err);
    }
    ferry_cleanup_free char *json = rc == 0 ? with_path(&reply, path.bytes_per_s > 0) : NULL;
    if (rc == 0 && !json) {
        rc = ferry_fail(&err, FERRY_PEER, "the launcher's answer is not an object");
    }
    if (rc < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    http_answer_json(x, 200, json);
}
