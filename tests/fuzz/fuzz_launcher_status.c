/* What a launcher, whoever runs in its sandbox, says to the handler of its node: refused, or values
 * that come back as they are when they are written again; and options, as a launcher reads them. */
#include "fuzz.h"

#include "api/json.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_launcher_status.h"
#include "api/wire/wire_options.h"
#include "base/str.h"

static void try_status(const char *text, size_t size)
{
    struct launcher_status s, back;
    struct ferry_error err;

    if (wire_launcher_status_read(text, size, &s, &err) < 0) {
        must(err.cls != FERRY_OK);
        return;
    }
    ferry_cleanup_free char *once = wire_launcher_status_write(&s);
    must(once && wire_launcher_status_read(once, strlen(once), &back, &err) == 0);
    ferry_cleanup_free char *twice = wire_launcher_status_write(&back);
    must(ferry_streq(once, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    api_cleanup_doc yyjson_doc *doc = NULL;
    struct wire_options o;
    struct ferry_error err;

    try_status(text, size);
    if (api_json_read(text, size, &doc, NULL) == 0) {
        wire_options_read(yyjson_doc_get_root(doc), &o, &err);
        wire_error_read(FERRY_PEER, 400, yyjson_doc_get_root(doc), &err);
    }
    return 0;
}
