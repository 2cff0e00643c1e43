#include "launcher/seed.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* after what it needs and does not include */
#define LIBISOFS_WITHOUT_LIBBURN yes
#include <libisofs/libisofs.h>

#include "api/base64.h"
#include "api/object.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

enum {
    SECTOR = 2048,
    WITH_LONG_NAMES = 2, /* Rock Ridge and Joliet */
    ALL_TREES = 7,
    ALWAYS = 946684800, /* the date of everything: 2000-01-01 */
    ROUND = 1 << 20,    /* so that a guest sees the same size though a Secret grew a little */
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
        if (rc != -(int)FERRY_NOT_FOUND) {
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
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "instance-id", id);
    yyjson_mut_obj_add_str(doc, root, "local-hostname", name);
    ret->data = yyjson_mut_write(doc, 0, &ret->n);
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

/* libisofs gives 1 or more for success; so does this, and it does nothing after a failure. */
static int add_file(IsoDir *root, const char *name, const struct seed_part *p)
{
    unsigned char *copy = ferry_xcalloc(1, p->n + 1); /* the stream's */
    IsoStream *stream = NULL;

    if (p->n) {
        memcpy(copy, p->data, p->n);
    }
    int rc = iso_memory_stream_new(copy, p->n, &stream);
    if (rc < 0) {
        free(copy);
        return rc;
    }
    rc = iso_tree_add_new_file(root, name, stream, NULL);
    if (rc < 0) {
        iso_stream_unref(stream);
    }
    return rc;
}

static int add_files(IsoDir *root, const struct seed *s)
{
    int rc = add_file(root, "meta-data", &s->meta);

    rc = rc < 0 ? rc : add_file(root, "user-data", &s->user);
    return rc < 0 || !s->network.data ? rc : add_file(root, "network-config", &s->network);
}

/* Nothing of when, where and by whom. */
static int settle(IsoWriteOpts *opts)
{
    const int answers[] = {
        iso_write_opts_set_relaxed_vol_atts(opts, 1), /* a label in small letters */
        iso_write_opts_set_always_gmt(opts, 1),
        iso_write_opts_set_replace_mode(opts, 1, 1, 1, 1),
        iso_write_opts_set_replace_timestamps(opts, 2),
        iso_write_opts_set_default_timestamp(opts, ALWAYS),
        iso_write_opts_set_dir_rec_mtime(opts, ALL_TREES),
        iso_write_opts_set_pvd_times(opts, ALWAYS, ALWAYS, 0, ALWAYS, (char *)""),
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i] < 0) {
            return answers[i];
        }
    }
    return 1;
}

/* All that the library's thread writes. */
static int drain(IsoImage *image, IsoWriteOpts *opts, struct ferry_buf *ret)
{
    struct burn_source *src = NULL;
    unsigned char sector[SECTOR];
    int rc = iso_image_create_burn_source(image, opts, &src), n = 0;

    if (rc < 0) {
        return rc;
    }
    while ((n = src->read_xt ? src->read_xt(src, sector, SECTOR) : src->read(src, sector, SECTOR)) >
           0) {
        ferry_buf_append(ret, sector, (size_t)n);
    }
    src->free_data(src);
    free(src);
    return n < 0 ? ISO_ERROR : 1;
}

int seed_image(const struct seed *seed, struct seed_part *ret, struct ferry_error *err)
{
    struct ferry_buf b = {0};
    IsoImage *image = NULL;
    IsoWriteOpts *opts = NULL;
    int rc = iso_init();

    rc = rc < 0 ? rc : iso_image_new("cidata", &image);
    rc = rc < 0 ? rc : add_files(iso_image_get_root(image), seed);
    rc = rc < 0 ? rc : iso_write_opts_new(&opts, WITH_LONG_NAMES);
    rc = rc < 0 ? rc : settle(opts);
    rc = rc < 0 ? rc : drain(image, opts, &b);
    iso_write_opts_free(opts);
    if (image) {
        iso_image_unref(image);
    }
    struct seed_part made = {b.data, b.len};
    if (rc < 0) {
        seed_part_done(&made);
        return ferry_fail(err, FERRY_FATAL, "making an ISO image: %s", iso_error_to_msg(rc));
    }
    ret->n = (made.n + ROUND - 1) / ROUND * ROUND;
    ret->data = ferry_xcalloc(1, ret->n);
    memcpy(ret->data, made.data, made.n);
    seed_part_done(&made);
    return 0;
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
    if (rc < 0 || (rc = seed_image(&seed, &image, err)) < 0 ||
        (rc = ferry_mkdir_p(dir, 0700, err)) < 0 ||
        (rc = ferry_write_file(path, image.data, image.n, 0600, err)) < 0) {
        return rc;
    }
    ferry_info("a cloud-init seed is made", F_STR("volume", name),
               F_INT("bytes", (int64_t)image.n));
    return 0;
}
