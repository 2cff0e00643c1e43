/* What of others' text reaches a terminal or a log, and how. */
#include "lib/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"

static void texts(void **state)
{
    static const struct {
        const char *name, *text, *shown;
    } cases[] = {
        {"nothing", "", ""},
        {"plain", "virt-launcher-web-x7 ~", "virt-launcher-web-x7 ~"},
        {"letters of others", "f\xc3\xa4hre \xe6\xb8\xa1 \xf0\x9f\x9b\xa5",
         "f\xc3\xa4hre \xe6\xb8\xa1 \xf0\x9f\x9b\xa5"},
        {"colours, a title, a cleared screen", "\033[31mred\033]0;t\a\033[2J",
         "\\u001b[31mred\\u001b]0;t\\u0007\\u001b[2J"},
        {"another line", "ok\nBROKEN\r\n", "ok\\u000aBROKEN\\u000d\\u000a"},
        {"a line over itself", "failed\rfine  \b\b", "failed\\u000dfine  \\u0008\\u0008"},
        {"a tab and DEL", "a\tb\x7f", "a\\u0009b\\u007f"},
        {"C1: CSI, OSC, NEL",
         "\xc2\x9b"
         "31m\xc2\x9d\xc2\x85",
         "\\u009b31m\\u009d\\u0085"},
        {"the same as bytes",
         "\x9b"
         "31m",
         "\\u009b31m"},
        {"after C1", "\xc2\xa0|", "\xc2\xa0|"},
        {"directions",
         "a\xe2\x80\xae"
         "b\xe2\x80\x8f\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c",
         "a\\u202eb\\u200f\\u2066\\u2069\\u061c"},
        {"separators of lines and paragraphs", "\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
        {"half a character", "x\xe2\x80", "x\\u00e2\\u0080"},
        {"half a character, then a letter", "\xe2\x80z", "\\u00e2\\u0080z"},
        {"too long a form of ESC", "\xc0\x9b", "\\u00c0\\u009b"},
        {"half of a pair", "\xed\xa0\x80", "\\u00ed\\u00a0\\u0080"},
        {"beyond the last character", "\xf4\x90\x80\x80\xff",
         "\\u00f4\\u0090\\u0080\\u0080\\u00ff"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *shown = ferry_printable_dup(cases[i].text);
        ferry_cleanup_buf struct ferry_buf b = {0};

        print_message("  %s\n", cases[i].name);
        assert_string_equal(shown, cases[i].shown);
        ferry_buf_puts(&b, "kept\n");
        ferry_buf_puts(&b, cases[i].text);
        ferry_buf_one_line(&b, 5);
        assert_string_equal(b.data + 5, cases[i].shown);
        assert_int_equal(b.len, 5 + strlen(cases[i].shown));
    }
    assert_null(ferry_printable_dup(NULL));
}

/* A stream comes in pieces of any size, and is the same in the end. */
static void pieces(void **state)
{
    static const char text[] = "a\xe6\xb8\xa1\r\n\xc2\x9b\xf0\x9f\x9b\xa5\r\xe2\x80\xae\xe2|\xe2";
    static const char shown[] =
        "a\xe6\xb8\xa1\r\n\\u009b\xf0\x9f\x9b\xa5\\u000d\\u202e\\u00e2|\\u00e2";

    (void)state;
    for (size_t step = 1; step < sizeof(text); step++) {
        ferry_cleanup_buf struct ferry_buf in = {0}, out = {0};
        size_t at = 0, taken = 0;

        while (at < sizeof(text) - 1) {
            size_t n = sizeof(text) - 1 - at < step ? sizeof(text) - 1 - at : step;

            ferry_buf_append(&in, text + at, n);
            at += n;
            taken += ferry_printable(in.data + taken, in.len - taken, "\n\t", true, &out);
            assert_true(in.len - taken < 4);
        }
        ferry_printable(in.data + taken, in.len - taken, "\n\t", false, &out);
        assert_string_equal(out.data, shown);
    }
}

static void zeros(void **state)
{
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)state;
    assert_int_equal(ferry_printable("a\0b", 3, "\n", false, &out), 3);
    assert_string_equal(out.data, "a\\u0000b");
}

/* What a daemon logs of a peer's text is one line, whatever its format. */
static void log_lines(void **state)
{
    static const char text[] =
        "x\n2026 error ferry: forged \033[2J\xc2\x9b\xe2\x80\xae\"\\ \xff \xe6\xb8\xa1";
    static const char shown[] =
        "\"x\\n2026 error ferry: forged \\u001b[2J\\u009b\\u202e\\\"\\\\ \\u00ff \xe6\xb8\xa1\"";
    char line[512] = "";
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    ferry_cleanup_fd int saved = dup(STDERR_FILENO);
    dup2(fds[1], STDERR_FILENO);
    for (int format = FERRY_LOG_TEXT; format <= (int)FERRY_LOG_JSON; format++) {
        ferry_log_init("test", FERRY_LOG_INFO, (enum ferry_log_format)format);
        ferry_info("said", F_STR("text", text));
        ssize_t n = read(fds[0], line, sizeof(line) - 1);
        assert_true(n > 0);
        line[n] = '\0';
        assert_non_null(strstr(line, shown));
        assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    }
    ferry_log_init("test", FERRY_LOG_INFO, FERRY_LOG_TEXT);
    ferry_info("said", F_STR("text", "\xff"));
    ssize_t n = read(fds[0], line, sizeof(line) - 1);
    line[n < 0 ? 0 : n] = '\0';
    dup2(saved, STDERR_FILENO);
    assert_non_null(strstr(line, "text=\"\\u00ff\""));
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(pieces),
        cmocka_unit_test(zeros),
        cmocka_unit_test(log_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
