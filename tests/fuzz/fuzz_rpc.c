/* What the libvirt of another host says: a byte for where its connection stands, then messages as
 * they come, in the middle of one as well. What passes once passes again. */
#include "fuzz.h"

#include "base/fd.h"
#include "rpc/rpc_frame.h"
#include "rpc/rpc_judge.h"

static const struct rpc_agreement *agreement(void)
{
    static struct rpc_agreement a;

    if (!a.domain) {
        ferry_cleanup_buf struct ferry_buf text = {0};

        must(ferry_read_file(GOLDEN_DIR "/control/agreed.xml", RPC_XML_MAX, &text, NULL) == 0);
        must(rpc_agreement_read(text.data, text.len, &a, NULL) == 0);
    }
    return &a;
}

/* A copy of its own, so that ASan sees a byte too many. */
static int judge(struct rpc_session *s, const uint8_t *data, size_t n, struct ferry_error *err)
{
    uint8_t *copy = malloc(n);

    memcpy(copy, data, n);
    int rc = rpc_judge(s, agreement(), copy, n, 0, err);
    free(copy);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_session s = {.state = size ? (enum rpc_state)(data[0] % (RPC_CLOSED + 1)) : RPC_NEW};
    size_t length, at = 1;

    rpc_compare_domain(agreement()->domain, (const char *)data, size, NULL);
    rpc_compare_cookie(agreement()->domain, (const char *)data, size, NULL);
    while (at < size && rpc_frame_length(data + at, size - at, RPC_CALL_MAX, &length, NULL) == 0 &&
           length > 0 && length <= size - at) {
        struct rpc_session again = s;
        struct ferry_error err = {0};
        int rc = judge(&s, data + at, length, &err);

        must(rc == 0 || (rc == -FERRY_DENIED && err.msg[0]));
        must(judge(&again, data + at, length, NULL) == rc && again.state == s.state);
        at += length;
    }
    return 0;
}
