/* PCI devices on the first bus. */
#pragma once

#include <stdint.h>

enum { PCI_SLOTS = 32 };

uint32_t pci_device(uint32_t slot); /* device and vendor */
/* Lets the device use its ports and the memory; its first port. */
uint16_t pci_enable(uint32_t slot);
