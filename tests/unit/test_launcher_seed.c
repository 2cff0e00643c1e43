/* The seed of cloud-init: what is in it, and that it is always the same. */
#include "lib/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/domain/seed.h"

static char dir[] = "/tmp/ferry-seed-XXXXXX";

static struct api_object *vmi_with(const char *source, const char *hostname)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{%s\"volumes\":[{"
        "\"name\":"
        "\"other\",\"emptyDisk\":{}},{\"name\":\"seed\",\"cloudInitNoCloud\":{%s}}]}}",
        hostname, source);
    struct api_object *o = NULL;
    struct ferry_error err;

    if (api_object_parse(API_KIND_VMI, json, strlen(json), &o, &err) < 0) {
        fail_msg("%s: %s", json, err.msg);
    }
    return o;
}

static void secret(const char *sub, const char *key, const char *text)
{
    ferry_cleanup_free char *parent = ferry_asprintf("%s/%s", dir, sub);
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", parent, key);

    assert_int_equal(ferry_mkdir_p(parent, 0700, NULL), 0);
    assert_int_equal(ferry_write_file(path, text, strlen(text), 0600, NULL), 0);
}

static void parts(void **state)
{
    static const struct {
        const char *source, *keys;  /* keys: "DIR/KEY" with text "from KEY" */
        const char *user, *network; /* NULL = none */
        const char *said;           /* of the error, NULL = none */
    } cases[] = {
        {"\"userData\":\"#cloud-config\\n\"", "", "#cloud-config\n", NULL, NULL},
        {"\"userDataBase64\":\"eHl6\"", "", "xyz", NULL, NULL},
        {"\"userData\":\"a\",\"networkData\":\"b\"", "", "a", "b", NULL},
        {"\"userData\":\"a\",\"networkDataBase64\":\"eHl6\"", "", "a", "xyz", NULL},
        {"\"networkData\":\"b\"", "", NULL, "b", NULL},
        {"\"secretRef\":{\"name\":\"s\"}", "seed-udata/userdata", "from userdata", NULL, NULL},
        {"\"secretRef\":{\"name\":\"s\"}", "seed-udata/userData", "from userData", NULL, NULL},
        {"\"userData\":\"a\",\"networkDataSecretRef\":{\"name\":\"s\"}", "seed-ndata/networkdata",
         "a", "from networkdata", NULL},
        {"\"secretRef\":{\"name\":\"s\"}", "seed-udata/other", NULL, NULL, "has no key 'userdata'"},
        {"\"secretRef\":{\"name\":\"s\"}", "", NULL, NULL, "has no key 'userdata'"},
        {"\"networkDataSecretRef\":{\"name\":\"s\"}", "seed-udata/userdata", NULL, NULL,
         "has no key 'networkdata'"},
        {"\"userDataBase64\":\"s3cr3t!\"", "", NULL, NULL, "userDataBase64: is not base64"},
        {"\"userData\":\"s3cr3t\",\"userDataBase64\":\"eHl6\"", "", NULL, NULL,
         "more than one source"},
        {"", "", NULL, NULL, "neither user nor network data"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        api_cleanup_object struct api_object *o = vmi_with(cases[i].source, "");
        ferry_cleanup(seed_done) struct seed s = {0};
        struct ferry_error err = {0};

        print_message("  %s\n", cases[i].source);
        assert_int_equal(ferry_remove_tree(dir, NULL), 0);
        if (*cases[i].keys) {
            ferry_cleanup_free char *sub = ferry_strdup(cases[i].keys);
            char *key = strchr(sub, '/');

            *key++ = '\0';
            ferry_cleanup_free char *text = ferry_asprintf("from %s", key);
            secret(sub, key, text);
        }
        int rc = seed_read(&o->u.vmi, "seed", dir, &s, &err);
        if (cases[i].said) {
            assert_int_equal(rc, -FERRY_INVALID);
            assert_non_null(strstr(err.msg, cases[i].said));
            assert_null(strstr(err.msg, "s3cr3t"));
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(!s.user.data, !cases[i].user);
        assert_true(!s.user.data || (s.user.n == strlen(cases[i].user) &&
                                     memcmp(s.user.data, cases[i].user, s.user.n) == 0));
        assert_int_equal(!s.network.data, !cases[i].network);
        assert_true(!s.network.data ||
                    (s.network.n == strlen(cases[i].network) &&
                     memcmp(s.network.data, cases[i].network, s.network.n) == 0));
        assert_string_equal(s.meta.data,
                            "{\"instance-id\":\"web.shop\",\"local-hostname\":\"web\"}");
    }
}

static void a_hostname(void **state)
{
    api_cleanup_object struct api_object *o =
        vmi_with("\"userData\":\"a\"", "\"hostname\":\"front\",");
    ferry_cleanup(seed_done) struct seed s = {0};

    (void)state;
    assert_int_equal(seed_read(&o->u.vmi, "seed", dir, &s, NULL), 0);
    assert_string_equal(s.meta.data,
                        "{\"instance-id\":\"front.shop\",\"local-hostname\":\"front\"}");
}

static bool has_file(const struct seed_part *image, const char *text)
{
    for (size_t at = 0; at + 2048 <= image->n; at += 2048) {
        if (memcmp(image->data + at, text, strlen(text)) == 0) {
            return true;
        }
    }
    return false;
}

/* The same whoever makes it and when, so that a move need not carry it. */
static void always_the_same(void **state)
{
    api_cleanup_object struct api_object *o =
        vmi_with("\"userData\":\"#cloud-config\\n\",\"networkData\":\"version: 2\"", "");
    ferry_cleanup(seed_done) struct seed s = {0};
    ferry_cleanup(seed_part_done) struct seed_part one = {0}, two = {0};

    (void)state;
    assert_int_equal(seed_read(&o->u.vmi, "seed", dir, &s, NULL), 0);
    assert_int_equal(seed_image(&s, dir, &one, NULL), 0);
    ferry_sleep_ms(2100);
    assert_int_equal(seed_image(&s, dir, &two, NULL), 0);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.data, two.data, one.n);
    assert_int_equal(one.n % (1 << 20), 0);
    assert_memory_equal(one.data + 16 * 2048 + 40, "cidata                          ", 32);
    /* each file is at the start of a sector; the Linux guest of tests/vm mounts the whole */
    assert_true(has_file(&one, "#cloud-config\n"));
    assert_true(has_file(&one, "version: 2"));
    assert_true(has_file(&one, "{\"instance-id\":\"web.shop\""));
    assert_false(has_file(&one, "version: 3"));
}

static void the_largest(void **state)
{
    ferry_cleanup(seed_done) struct seed s = {
        .user = {ferry_xcalloc(1, SEED_PART_MAX), SEED_PART_MAX},
        .network = {ferry_xcalloc(1, SEED_PART_MAX), SEED_PART_MAX},
        .meta = {ferry_strdup("{}"), 2}};
    ferry_cleanup(seed_part_done) struct seed_part image = {0};

    (void)state;
    assert_int_equal(seed_image(&s, dir, &image, NULL), 0);
    assert_in_range(image.n, 2 * SEED_PART_MAX, 4 * SEED_PART_MAX);
}

/* What is there stays; what is made is its user's alone. */
static void a_file(void **state)
{
    api_cleanup_object struct api_object *o = vmi_with("\"userData\":\"a\"", "");
    ferry_cleanup_free char *path = ferry_asprintf("%s/disks/seed/disk.img", dir);
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct stat st;

    (void)state;
    assert_int_equal(seed_make(&o->u.vmi, "seed", dir, path, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(ferry_write_file(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(seed_make(&o->u.vmi, "seed", dir, path, NULL), 0);
    assert_int_equal(ferry_read_file(path, 100, &b, NULL), 0);
    assert_string_equal(b.data, "x");
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return ferry_remove_tree(dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),           cmocka_unit_test(a_hostname),
        cmocka_unit_test(always_the_same), cmocka_unit_test(the_largest),
        cmocka_unit_test(a_file),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
