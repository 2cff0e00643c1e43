/* kubeconfigs from anybody. */
#include "fuzz.h"

#include "kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kube_cleanup_config struct kube_config c = {0};
    struct ferry_error err;

    if (kube_config_parse("/nowhere/config", (const char *)data, size, &c, &err) == 0) {
        must(c.server && !c.cert_pem == !c.key_pem);
    }
    return 0;
}
