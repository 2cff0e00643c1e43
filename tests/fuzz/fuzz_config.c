/* A settings file of anything: an error that names its line, or values that lie within the text. */
#include "base/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    const char *string = NULL;
    struct ferry_option_list list = {0};
    bool flag = false;
    int number = -1, seen[5] = {0};
    const struct ferry_option options[] = {
        {"string", 0, FERRY_OPTION_STRING, &string, "X", ""},
        {"number", 0, FERRY_OPTION_INT, &number, "N", ""},
        {"flag", 0, FERRY_OPTION_FLAG, &flag, NULL, ""},
        {"list", 0, FERRY_OPTION_LIST, &list, "X", ""},
        {0},
    };
    struct ferry_error err = {0};
    int rc = ferry_config_apply("f.conf", text, size, options, seen, &err);

    must(rc == 0 || (rc == -FERRY_INVALID && ferry_str_starts(err.msg, "f.conf:")));
    must(!string || (string >= text && string + strlen(string) <= text + size && *string));
    must(list.n <= FERRY_OPTION_LIST_MAX);
    for (size_t i = 0; i < list.n; i++) {
        must(list.items[i] >= text && list.items[i] + strlen(list.items[i]) <= text + size);
    }
    must(rc < 0 || (!seen[1] == (number == -1)));
    free(text);
    return 0;
}
