/* ferry-launcher --describe-cpu */
#pragma once

#include <stdbool.h>

/* Prints the report and returns an exit code, or ends the process. Gives up root first. */
int launcher_describe_cpu(const char *emulator, bool kvm);
