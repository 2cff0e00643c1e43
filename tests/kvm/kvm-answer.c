/* kvm-answer [DEVICE]: whether hardware runs guests here, by the handler's probe, in one line:
 * "yes: WHY" or "no: WHY". Exits 0 for yes, 1 for no. */
#include <stdio.h>

#include "kvm/kvm_probe.h"

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : KVM_DEVICE;
    struct kvm_answer answer;
    char why[KVM_WHY_BYTES];

    kvm_probe(device, &answer);
    int yes = kvm_judge(&answer, device, why);
    printf("%s: %s\n", yes ? "yes" : "no", why);
    return yes ? 0 : 1;
}
