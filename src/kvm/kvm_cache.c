#include "kvm/kvm_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "kvm/kvm_probe.h"

enum { FILE_MAX = 65536 };
/* Of the text, too: another version asks anew. */
#define FIRST_LINE "ferry's answer of the KVM probe, version 1\n"
#define ANSWER "answer"

bool kvm_cache_is_final(const struct kvm_answer *a)
{
    return a->stage == KVM_STAGE_STOPPED || a->stage == KVM_STAGE_RUN;
}

char *kvm_cache_write(const char *key, const struct kvm_answer *a)
{
    return ferry_asprintf(FIRST_LINE "%s\n" ANSWER " %d %d %d %u %" PRIu64 " %" PRId64 "\n", key,
                          (int)a->stage, a->errnum, a->version, a->exit_reason, a->rbx, a->took_ns);
}

bool kvm_cache_read(const char *text, const char *key, struct kvm_answer *ret)
{
    ferry_cleanup_free char *head = ferry_asprintf(FIRST_LINE "%s\n" ANSWER " ", key);
    struct kvm_answer a = {0};
    int stage, end = 0;

    if (!ferry_str_starts(text, head) ||
        sscanf(text + strlen(head), "%d %d %d %u %" SCNu64 " %" SCNd64 "%n", &stage, &a.errnum,
               &a.version, &a.exit_reason, &a.rbx, &a.took_ns, &end) != 6 ||
        strcmp(text + strlen(head) + end, "\n") != 0 || stage < 0 || stage >= KVM_STAGE_COUNT) {
        return false;
    }
    a.stage = (enum kvm_stage)stage;
    if (!kvm_cache_is_final(&a)) {
        return false;
    }
    *ret = a;
    return true;
}

char *kvm_cache_key(const char *cpu, const char *device)
{
    static const char *const parameters[] = {"/sys/module/kvm_intel/parameters/ept",
                                             "/sys/module/kvm_amd/parameters/npt"};
    struct ferry_buf b = {0};
    struct utsname kernel = {0};
    struct stat st;

    uname(&kernel);
    ferry_buf_printf(&b, "%s %s %s\n%s\n%s", kernel.sysname, kernel.release, kernel.version, cpu,
                     device);
    if (stat(device, &st) == 0) {
        ferry_buf_printf(&b, " %ju", (uintmax_t)st.st_rdev);
    }
    for (size_t i = 0; i < FERRY_COUNT(parameters); i++) {
        ferry_cleanup_buf struct ferry_buf text = {0};

        if (ferry_read_file(parameters[i], FILE_MAX, &text, NULL) == 0 && text.len) {
            ferry_buf_printf(&b, "\n%s %.8s", parameters[i], text.data);
        }
    }
    return b.data;
}

bool kvm_cache_probe(const char *path, const char *key, const char *device, struct kvm_answer *ret)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct ferry_error err;

    if (access(device, R_OK | W_OK) == 0 && ferry_read_file(path, FILE_MAX, &text, NULL) == 0 &&
        text.len && kvm_cache_read(text.data, key, ret)) {
        return true;
    }
    kvm_probe(device, ret);
    ferry_cleanup_free char *kept = kvm_cache_write(key, ret);
    if (!kvm_cache_is_final(ret)) {
        unlink(path);
    } else if (ferry_write_file(path, kept, strlen(kept), 0600, &err) < 0) {
        ferry_warn("the answer of the KVM probe cannot be kept", F_ERR(&err));
    }
    return false;
}
