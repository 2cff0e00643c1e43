/* Runs a fuzz target over its corpus as an ordinary test: FILE... or DIRECTORY.... */
#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "fuzz_cost.h"

#undef LLVMFuzzerTestOneInput
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    ferry_cleanup_buf struct ferry_buf b = {0};
    struct ferry_error err;

    if (ferry_read_file(path, 16 << 20, &b, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return -1;
    }
    LLVMFuzzerTestOneInput((const uint8_t *)(b.data ? b.data : ""), b.len);
    return 1;
}

static int run_directory(const char *path)
{
    DIR *d = opendir(path);
    int count = 0;

    if (!d) {
        perror(path);
        return -1;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') {
            continue;
        }
        ferry_cleanup_free char *file = ferry_asprintf("%s/%s", path, e->d_name);
        int rc = run_file(file);

        if (rc < 0) {
            closedir(d);
            return rc;
        }
        count += rc;
    }
    closedir(d);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;
        int rc = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_directory(argv[i])
                                                                : run_file(argv[i]);

        if (rc < 0) {
            return 1;
        }
        count += rc;
    }
    struct fuzz_cost worst = fuzz_cost_worst();
    printf("%d inputs, for each byte at most %" PRId64 " ns and %" PRId64 " bytes of memory\n",
           count, worst.ns, worst.bytes);
    return count > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
