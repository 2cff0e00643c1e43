/* Whether a host's KVM runs guests: answers that were recorded, and the probe on what is no KVM. */
#include "lib/unit.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "kvm/kvm_cache.h"
#include "kvm/kvm_guest.h"
#include "kvm/kvm_probe.h"

#define MS(n) ((int64_t)(n)*1000000)
#define RAN(ns)                                                                                    \
    {                                                                                              \
        .stage = KVM_STAGE_STOPPED, .version = 12, .exit_reason = KVM_EXIT_HLT,                    \
        .rbx = KVM_GUEST_DONE, .took_ns = (ns)                                                     \
    }

static void answers(void **state)
{
    static const struct {
        const char *name;
        struct kvm_answer answer;
        bool works;
        const char *word;
    } rows[] = {
        {"a laptop of 2017", RAN(MS(1)), true, "1.00 ms"},
        {"a server that is busy", RAN(MS(38)), true, "38.00 ms"},
        {"a KVM that emulates each instruction", RAN(MS(900)), false, "900 ms"},
        {"a microVM's paravirtualised KVM, given time", RAN(MS(6247)), false, "no hardware"},
        {"the same, within the time that it is given",
         {.stage = KVM_STAGE_RUN, .errnum = ETIME},
         false,
         "within 50 ms"},
        {"no device", {.stage = KVM_STAGE_OPEN, .errnum = ENOENT}, false, "No such file"},
        {"a device for others",
         {.stage = KVM_STAGE_OPEN, .errnum = EACCES},
         false,
         "Permission denied"},
        {"hardware that another hypervisor has",
         {.stage = KVM_STAGE_MAKE, .errnum = EBUSY},
         false,
         "makes no guest"},
        {"something else", {.stage = KVM_STAGE_VERSION, .errnum = ENOTTY}, false, "is no KVM"},
        {"another interface", {.stage = KVM_STAGE_VERSION, .version = 13}, false, "version 13"},
        {"an entry that fails",
         {.stage = KVM_STAGE_STOPPED, .exit_reason = KVM_EXIT_FAIL_ENTRY},
         false,
         "exit reason 9"},
        {"no return from an interrupt",
         {.stage = KVM_STAGE_STOPPED, .exit_reason = KVM_EXIT_SHUTDOWN},
         false,
         "exit reason 8"},
        {"stopped on the way",
         {.stage = KVM_STAGE_STOPPED, .exit_reason = KVM_EXIT_HLT},
         false,
         "before its end"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char why[KVM_WHY_BYTES];

        if (kvm_judge(&rows[i].answer, "/dev/kvm", why) != rows[i].works ||
            !strstr(why, rows[i].word)) {
            fail_msg("%s: %s", rows[i].name, why);
        }
    }
}

static void devices_that_are_none(void **state)
{
    static const struct {
        const char *path;
        enum kvm_stage stage;
        int errnum;
    } rows[] = {
        {"/dev/null", KVM_STAGE_VERSION, ENOTTY},
        {"/dev/there-is-none", KVM_STAGE_OPEN, ENOENT},
        {"/", KVM_STAGE_OPEN, EISDIR},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct kvm_answer a;
        char why[KVM_WHY_BYTES];

        kvm_probe(rows[i].path, &a);
        assert_int_equal(a.stage, rows[i].stage);
        assert_int_equal(a.errnum, rows[i].errnum);
        assert_false(kvm_judge(&a, rows[i].path, why));
    }
}

/* What is kept is what was found, and for the same kernel and CPU alone. */
static void answers_are_kept(void **state)
{
    static const struct {
        const char *name;
        struct kvm_answer answer;
        bool final;
    } rows[] = {
        {"hardware",
         {.stage = KVM_STAGE_STOPPED,
          .version = 12,
          .exit_reason = KVM_EXIT_HLT,
          .rbx = KVM_GUEST_DONE,
          .took_ns = 730000},
         true},
        {"too slow", {.stage = KVM_STAGE_RUN, .errnum = ETIME, .version = 12}, true},
        {"not there", {.stage = KVM_STAGE_OPEN, .errnum = ENOENT}, false},
        {"no guest made", {.stage = KVM_STAGE_MAKE, .errnum = ENOMEM, .version = 12}, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *text = kvm_cache_write("linux 6\nAMD", &rows[i].answer);
        struct kvm_answer back = {0};

        print_message("  %s\n", rows[i].name);
        assert_int_equal(kvm_cache_is_final(&rows[i].answer), rows[i].final);
        assert_int_equal(kvm_cache_read(text, "linux 6\nAMD", &back), rows[i].final);
        if (rows[i].final) {
            assert_memory_equal(&back, &rows[i].answer, sizeof(back));
        }
        assert_false(kvm_cache_read(text, "linux 7\nAMD", &back));
        assert_false(kvm_cache_read(text, "linux 6", &back));
        text[strlen(text) - 1] = '\0'; /* cut */
        assert_false(kvm_cache_read(text, "linux 6\nAMD", &back));
    }
    struct kvm_answer none;
    assert_false(kvm_cache_read("", "k", &none));
}

/* A file that says yes is believed while the device is there, and no longer. */
static void the_file(void **state)
{
    static const struct kvm_answer yes = {.stage = KVM_STAGE_STOPPED,
                                          .version = 12,
                                          .exit_reason = KVM_EXIT_HLT,
                                          .rbx = KVM_GUEST_DONE,
                                          .took_ns = 730000};
    ferry_cleanup_free char *text = kvm_cache_write("key", &yes);
    char path[] = "/tmp/ferry-test-kvm-XXXXXX";
    struct kvm_answer a;

    (void)state;
    ferry_cleanup_fd int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ferry_write_file(path, text, strlen(text), 0600, NULL), 0);
    assert_true(kvm_cache_probe(path, "key", "/dev/null", &a));
    assert_memory_equal(&a, &yes, sizeof(a));
    assert_false(kvm_cache_probe(path, "key", "/dev/there-is-none", &a));
    assert_int_equal(a.stage, KVM_STAGE_OPEN);
    assert_int_equal(access(path, F_OK), -1); /* nor is it believed when the device is back */
    assert_int_equal(ferry_write_file(path, text, strlen(text), 0600, NULL), 0);
    assert_false(kvm_cache_probe(path, "another CPU", "/dev/null", &a));
    assert_int_equal(a.stage, KVM_STAGE_VERSION);
    unlink(path);
}

/* Whatever this machine has, the probe ends and has an answer. */
static void this_machine(void **state)
{
    struct kvm_answer a;
    char why[KVM_WHY_BYTES];

    (void)state;
    kvm_probe(KVM_DEVICE, &a);
    bool yes = kvm_judge(&a, KVM_DEVICE, why);
    print_message("  %s: %s\n", yes ? "yes" : "no", why);
    assert_true(strlen(why) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers),
                                       cmocka_unit_test(devices_that_are_none),
                                       cmocka_unit_test(answers_are_kept),
                                       cmocka_unit_test(the_file), cmocka_unit_test(this_machine)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
