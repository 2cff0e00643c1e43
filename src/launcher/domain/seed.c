#include "launcher/domain/seed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/base64.h"
#include "api/object.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "json/doc.h"

#define ALWAYS "2000010100000000" /* the date of everything */
#define ALWAYS_MADE "--modification-date=2000010100000000"
enum {
    IMAGE_MAX = 16 << 20,
    ROUND = 1 << 20, /* so that a guest sees the same size though a Secret grew a little */
};

void seed_part_done(struct seed_part *p)
{
    if (p->data) {
        explicit_bzero(p->data, p->n);
    }
    free(p->data);
    *p = (struct seed_part){0};
}

void seed_done(struct seed *s)
{
    seed_part_done(&s->user);
    seed_part_done(&s->network);
    seed_part_done(&s->meta);
}

/* ---- what is in it ----------------------------------------------------------------------------
 */

/* One of the two parts that a user writes. */
struct source {
    const char *what, *secret, *base64, *text; /* fields of cloudInitNoCloud */
    const char *suffix, *keys[2];              /* of the directory; of the Secret */
};

static const struct source user_source = {"user data", "secretRef", "userDataBase64",
                                          "userData",  "udata",     {"userdata", "userData"}};
static const struct source network_source = {
    "network data", "networkDataSecretRef",        "networkDataBase64", "networkData",
    "ndata",        {"networkdata", "networkData"}};

static int read_secret(const struct source *s, const char *name, const char *secrets,
                       struct seed_part *ret, struct ferry_error *err)
{
    for (size_t i = 0; i < 2; i++) {
        ferry_cleanup_free char *path =
            ferry_asprintf("%s/%s-%s/%s", secrets, name, s->suffix, s->keys[i]);
        struct ferry_buf b = {0};
        int rc = ferry_read_file(path, SEED_PART_MAX, &b, err);

        if (rc == 0) {
            *ret = (struct seed_part){b.data ? b.data : ferry_strdup(""), b.len};
            return 0;
        }
        ferry_buf_done(&b);
        if (rc != -FERRY_NOT_FOUND) {
            return ferry_wrap(err, "spec.volumes[%s]", name);
        }
    }
    return ferry_fail(err, FERRY_INVALID, "spec.volumes[%s]: the secret of %s has no key '%s'",
                      name, s->what, s->keys[0]);
}

/* 0 also when there is none. */
static int read_part(const struct source *s, yyjson_val *v, const char *name, const char *secrets,
                     struct seed_part *ret, struct ferry_error *err)
{
    yyjson_val *secret = yyjson_obj_get(v, s->secret), *base64 = yyjson_obj_get(v, s->base64);
    yyjson_val *text = yyjson_obj_get(v, s->text), *given = base64 ? base64 : text;

    if (!!secret + !!base64 + !!text > 1) {
        return ferry_fail(err, FERRY_INVALID, "spec.volumes[%s]: more than one source of %s", name,
                          s->what);
    }
    if (secret) {
        return read_secret(s, name, secrets, ret, err);
    }
    if (!given) {
        return 0;
    }
    size_t n = yyjson_get_len(given);
    if (!yyjson_is_str(given) || n > SEED_PART_MAX / 3 * 4) {
        return ferry_fail(err, FERRY_INVALID, "spec.volumes[%s]: %s: is no text or too long", name,
                          s->what);
    }
    if (base64 && !api_base64_decode(yyjson_get_str(base64), n, &ret->data, &ret->n)) {
        return ferry_fail(err, FERRY_INVALID, "spec.volumes[%s].%s: is not base64", name,
                          s->base64);
    }
    if (!base64) {
        ret->data = ferry_strndup(yyjson_get_str(text), n);
        ret->n = n;
    }
    return ret->n <= SEED_PART_MAX
               ? 0
               : ferry_fail(err, FERRY_INVALID, "spec.volumes[%s]: %s: more than %d bytes", name,
                            s->what, SEED_PART_MAX);
}

/* As KubeVirt has it; YAML takes JSON. */
static void write_meta(const struct api_vmi *vmi, struct seed_part *ret)
{
    const char *hostname = api_json_str(vmi->spec, "/hostname");
    const char *name = ferry_str_empty(hostname) ? vmi->meta.name : hostname;
    ferry_cleanup_free char *id = ferry_asprintf("%s.%s", name, vmi->meta.namespace_);
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "instance-id", id);
    yyjson_mut_obj_add_str(doc, root, "local-hostname", name);
    ret->data = json_doc_text(doc, 0, &ret->n);
    yyjson_mut_doc_free(doc);
}

static yyjson_val *find_source(const struct api_vmi *vmi, const char *name)
{
    yyjson_arr_iter it =
        yyjson_arr_iter_with(yyjson_ptr_get((yyjson_val *)(uintptr_t)vmi->spec, "/volumes"));

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(yyjson_get_str(yyjson_obj_get(v, "name")), name)) {
            return yyjson_obj_get(v, "cloudInitNoCloud");
        }
    }
    return NULL;
}

int seed_read(const struct api_vmi *vmi, const char *name, const char *secrets, struct seed *ret,
              struct ferry_error *err)
{
    yyjson_val *v = find_source(vmi, name);
    struct seed s = {0};
    int rc = read_part(&user_source, v, name, secrets, &s.user, err);

    rc = rc < 0 ? rc : read_part(&network_source, v, name, secrets, &s.network, err);
    if (rc == 0 && !s.user.data && !s.network.data) {
        rc = ferry_fail(err, FERRY_INVALID, "spec.volumes[%s]: has neither user nor network data",
                        name);
    }
    if (rc < 0) {
        seed_done(&s);
        return rc;
    }
    write_meta(vmi, &s.meta);
    *ret = s;
    return 0;
}

/* ---- the image --------------------------------------------------------------------------------
 */

static int add_file(const char *dir, const char *name, const struct seed_part *p,
                    struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, name);

    return ferry_write_file(path, p->n ? p->data : "", p->n, 0600, err);
}

/* Says nothing of when, where and by whom: without dates, owners and the program's own name. */
static int make_image(const char *files, const char *image, struct ferry_error *err)
{
    const char *const argv[] = {"xorriso", "-no_rc", "-as",   "mkisofs",   "-quiet",
                                "-J",      "-r",     "-V",    "cidata",    "-A",
                                "",        "-p",     "FERRY", ALWAYS_MADE, "--set_all_file_dates",
                                ALWAYS,    "-o",     image,   files,       NULL};
    int rc = ferry_run(argv, NULL, err);

    return rc < 0 ? ferry_wrap(err, "making a cloud-init seed (package xorriso)") : 0;
}

/* In a directory of its own, `work`. */
static int image_in(const struct seed *seed, const char *work, struct ferry_buf *ret,
                    struct ferry_error *err)
{
    ferry_cleanup_free char *files = ferry_asprintf("%s/files", work);
    ferry_cleanup_free char *image = ferry_asprintf("%s/image", work);
    int rc = ferry_mkdir_p(files, 0700, err);

    rc = rc < 0 ? rc : add_file(files, "meta-data", &seed->meta, err);
    rc = rc < 0 ? rc : add_file(files, "user-data", &seed->user, err);
    if (rc == 0 && seed->network.data) {
        rc = add_file(files, "network-config", &seed->network, err);
    }
    rc = rc < 0 ? rc : make_image(files, image, err);
    return rc < 0 ? rc : ferry_read_file(image, IMAGE_MAX, ret, err);
}

int seed_image(const struct seed *seed, const char *dir, struct seed_part *ret,
               struct ferry_error *err)
{
    ferry_cleanup_free char *work = ferry_asprintf("%s/seed-XXXXXX", dir);
    struct ferry_buf b = {0};
    int rc = ferry_mkdir_p(dir, 0700, err);

    if (rc == 0 && !mkdtemp(work)) {
        rc = ferry_fail_errno(err, errno, "making a directory in %s", dir);
    }
    if (rc < 0) {
        return rc;
    }
    rc = image_in(seed, work, &b, err);
    struct seed_part made = {b.data, b.len};
    if (rc == 0) {
        rc = ferry_remove_tree(work, err);
    } else {
        ferry_remove_tree(work, NULL);
    }
    if (rc == 0) {
        ret->n = (made.n + ROUND - 1) / ROUND * ROUND;
        ret->data = ferry_xcalloc(1, ret->n);
        memcpy(ret->data, made.data, made.n);
    }
    seed_part_done(&made);
    return rc;
}

int seed_make(const struct api_vmi *vmi, const char *name, const char *secrets, const char *path,
              struct ferry_error *err)
{
    ferry_cleanup(seed_done) struct seed seed = {0};
    ferry_cleanup(seed_part_done) struct seed_part image = {0};
    ferry_cleanup_free char *dir = ferry_strdup(path);
    char *slash = strrchr(dir, '/');

    if (access(path, F_OK) == 0) {
        return 0;
    }
    if (slash) {
        *slash = '\0';
    }
    int rc = seed_read(vmi, name, secrets, &seed, err);
    if (rc < 0 || (rc = seed_image(&seed, dir, &image, err)) < 0 ||
        (rc = ferry_write_file(path, image.data, image.n, 0600, err)) < 0) {
        return rc;
    }
    ferry_info("cloud-init seed made", F_STR("volume", name), F_INT("bytes", (int64_t)image.n));
    return 0;
}
